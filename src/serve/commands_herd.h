/* commands_herd.h - the subcommands of HERD that show and switch (commands_herd_show.c). Each writes one reply. */
#ifndef SERVE_COMMANDS_HERD_H
#define SERVE_COMMANDS_HERD_H

#include "serve/hold_inside.h"

void herd_explain(struct call *call);
void herd_gates(struct call *call);
void herd_gate(struct call *call);
void herd_flights(struct call *call);
void herd_recent(struct call *call);

#endif
