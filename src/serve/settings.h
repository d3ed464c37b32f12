/* settings.h - the CONFIG command. */
#ifndef SERVE_SETTINGS_H
#define SERVE_SETTINGS_H

#include "serve/command.h"

void command_config(struct call *call);

#endif
