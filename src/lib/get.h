/* get.h - one call of hg_cache_get(), between its two files: get.c looks without a lock, ask.c asks the engine. */
#ifndef LIB_GET_H
#define LIB_GET_H

#include "lib/pick.h"
#include "lib/seat.h"

struct request {
	struct hg_cache *cache;
	const struct hg_ask *ask; /* or NULL */
	struct hg_answer *answer;
	struct hg_fault *fault;
	struct seat *seat;
	struct key key;
	int64_t looked_us;
	bool probe; /* neither load nor wait */
	bool stale; /* what was picked up is past its soft expiry */
	bool early; /* drew, and was chosen for an early refresh */
	struct pick pick;
};

/* What no look could answer. */
enum hg_err get_visit(struct request *request);

/* Is there anything to serve instead of an error? Then it is picked up. */
bool get_fallback(struct request *request);

#endif
