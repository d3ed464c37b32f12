/* round.h - one round: the key is warm, expires, and in that instant everybody asks. */
#ifndef DEMO_ROUND_H
#define DEMO_ROUND_H

#include "demo/daemon.h"
#include "demo/stage.h"

enum round_kind { ROUND_NO_GATE, ROUND_CLIENT_FILLS, ROUND_ORIGIN_FILLS, ROUNDS };

/* What came of it. The times are from a request's GET to its end, of all of them, served or not. */
struct figures {
	const char *round;
	uint32_t requests, ok, failed;
	uint64_t queries;       /* that the database ran, counted by whoever has its connections */
	uint64_t longest_queue; /* most requests that waited for a connection at the same time */
	int64_t p50_us, p99_us, max_us;
	int64_t total_us; /* from the first question to the last end */
	char cause[200];  /* why the first one failed */
};

const char *round_name(enum round_kind kind);

/* `show` is called while it goes on, with how many have come to their end. HG_ERR_IO, HG_ERR_MEMORY, HG_ERR_TIMEOUT,
 * HG_ERR_CLOSED (a signal came). */
struct round_place {
	struct stage *stage;
	const struct daemon *daemon;
	const struct folder *folder;
	const struct arguments *arguments;
	void (*show)(const char *round, uint32_t done, uint32_t all);
};
enum hg_err round_play(const struct round_place *place, enum round_kind kind, struct figures *out_figures,
		       struct hg_fault *out_fault) HG_MUST_USE;

#endif
