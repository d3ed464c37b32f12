/* daemon.h - the daemon as a child process: this same program, `serve`, with a configuration in the demo's folder, on a
 * loopback port that the system chooses. It dies with the demo, also where that is killed. */
#ifndef DEMO_DAEMON_H
#define DEMO_DAEMON_H

#include "demo/folder.h"
#include "demo/arguments.h"
#include "demo/stage.h"

#include <sys/types.h>

/* Three ways to protect one key, by its first word. */
#define DAEMON_KEY_PLAIN "plain:"   /* not at all */
#define DAEMON_KEY_CLIENT "client:" /* a gate that clients fill */
#define DAEMON_KEY_ORIGIN "origin:" /* a gate that reads the catalogue itself */

struct daemon {
	pid_t pid; /* 0: none */
	uv_pipe_t log;
	uint16_t port;
	bool ready, ended;
	size_t line_len;
	char line[512];  /* of the log, not yet whole */
	char words[240]; /* its last line of level error */
	char read[4096];
};

/* Starts it and waits until it answers. HG_ERR_IO, HG_ERR_TIMEOUT, HG_ERR_CLOSED (a signal came). Call daemon_stop()
 * also where it failed. */
enum hg_err daemon_start(struct daemon *daemon, struct stage *stage, const struct folder *folder,
			 const struct arguments *arguments, struct hg_fault *out_fault) HG_MUST_USE;
/* Asks it to end, and kills it where it does not within 5 s. */
void daemon_stop(struct daemon *daemon);

#endif
