/* lead.h - one load that this process runs: prepared by an ask, led by it or queued for the executor, ended by a fill.
 *
 *              register                     run                  finish
 *   PREPARED -------------> QUEUED ----------------> RUNNING ----------------> OVER
 *      |                      |                       ^   |                     ^
 *      +----------------------|-----------------------+   +----> ABANDONED -----+
 *             leads at once   +----> STOLEN (a waiter runs it instead) ---------+
 *
 * It is on the heap, and in its lane's map while it is queued or runs, so that a loader which leaves by an odd path
 * leaves nothing behind that cannot be found: by its thread's frame, by the thread's end, or by the close.
 */
#ifndef LIB_LEAD_H
#define LIB_LEAD_H

#include "lib/cache.h"

enum lead_state { LEAD_PREPARED, LEAD_QUEUED, LEAD_STOLEN, LEAD_RUNNING, LEAD_ABANDONED, LEAD_OVER };

struct hg_load {
	struct map_node in_lane;
	struct hg_cache *cache;
	struct key key; /* its bytes are behind the struct */
	enum lead_state state;
	struct token token;              /* {0, 0}: without a lease, a pass */
	_Atomic(struct thread *) thread; /* who runs it; NULL: queued */
	hg_load_fn load;
	void *arg;
	void (*drop)(void *kept);   /* not NULL: `arg` is a copy of ours */
	int64_t ttl_us, own_ttl_us; /* the ask's and the loader's; 0: the policy's */
	int64_t deadline_us;
	int64_t fresh_us; /* of the result, where it was stored */
	struct list_node in_queue;
	struct blob *value;
	struct blob *held; /* of the caller, who will want it again when the loader returns */
	enum hg_err err;   /* of a failure: HG_ERR_LOAD or HG_ERR_MEMORY */
	char error[201];
	unsigned char bytes[];
};

/* With loader and argument of `ask` (or NULL), else of the cache. NULL without memory. */
struct hg_load *lead_create(struct hg_cache *cache, const struct key *key, const struct hg_ask *ask);
/* One that is in no map. Accepts NULL. */
void lead_destroy(struct hg_load *load);

/* The one mover of states. */
void lead_move(struct hg_load *load, enum lead_state to);

/* Inside a visit: into the map, as QUEUED or RUNNING; out of it. */
void lead_register(struct visit *visit, struct hg_load *load, struct token token, enum lead_state state,
		   struct thread *thread);
void lead_unregister(struct lane *lane, struct hg_load *load, enum lead_state state);

/* Inside a visit: the load of `key` whose lease is live. */
struct hg_load *lead_find(struct visit *visit, const struct key *key);

/* Outside. Calls the loader of a RUNNING load. Where the loader leaves by another way than by returning, the load is
 * abandoned and destroyed. */
enum hg_outcome lead_run(struct hg_load *load);

/* Outside. Stores the result, answers who waits for it, takes the load out of the map. Its value stays. */
void lead_finish(struct hg_load *load, enum hg_outcome outcome);

/* Outside. Nothing came of it: a waiter takes over. Takes the load out of the map, and destroys it. */
void lead_abandon(struct hg_load *load);

#endif
