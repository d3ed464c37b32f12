/* arguments.h - what the demo is told on the command line. */
#ifndef DEMO_ARGUMENTS_H
#define DEMO_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#define ARGUMENTS_REQUESTS_MAX 20000u /* as many as loopback has ports for, with room for others */
#define ARGUMENTS_POOL_MAX 1024u
#define ARGUMENTS_TIMEOUT_MS_MAX 3600000u

struct arguments {
	uint32_t requests, pool_max;
	uint32_t acquire_timeout_ms; /* 0: for ever */
	bool json, help;
	const char *svg; /* a file to write the picture to; NULL: none */
};

extern const char arguments_help[];

/* False where an argument is wrong, which is named on standard error. Borrows `argv`. */
bool arguments_read(int argc, char **argv, struct arguments *out_arguments);

#endif
