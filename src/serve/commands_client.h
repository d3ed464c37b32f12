/* commands_client.h - the CLIENT command, and names of connections. */
#ifndef SERVE_COMMANDS_CLIENT_H
#define SERVE_COMMANDS_CLIENT_H

#include "serve/command.h"

void command_client(struct call *call);

/* Is it printable and without spaces? Where not, the error has been written; `what` begins its sentence. */
bool client_name_fits(struct call *call, struct hg_bytes name, const char *what) HG_MUST_USE;
/* CLIENT SETNAME; the empty name clears it. False, and an error written, without memory. */
bool client_set_name(struct call *call, struct hg_bytes name) HG_MUST_USE;

#endif
