/* commands_config.h - the CONFIG command. */
#ifndef SERVE_COMMANDS_CONFIG_H
#define SERVE_COMMANDS_CONFIG_H

#include "serve/command.h"

void command_config(struct call *call);

#endif
