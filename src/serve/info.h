/* info.h - the INFO command, and what it counts from. */
#ifndef SERVE_INFO_H
#define SERVE_INFO_H

#include "serve/command.h"

void command_info(struct call *call);
/* CONFIG RESETSTAT: the counters of INFO begin anew. */
void info_reset(struct server *server);
/* The TCP port of the first listener that has one; 0: none. */
unsigned info_port(const struct server *server);

#endif
