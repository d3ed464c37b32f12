/* lane.h - one engine with its lock, and the carrying out of its effects.
 *
 * A visit is the one way in: it takes the locks, reads the clock, lets the engine end what is due, and on the way out
 * collects whom the engine has answered, gives the locks back, and only then wakes them, each on a futex of its own.
 *
 * No thread of ours watches the engine's timers: one of the lane's waiters, the keeper, sleeps no longer than until the
 * next timer is due, and then makes a visit. When the keeper is answered another waiter is appointed. Invariant: a lane
 * with waiters has a keeper, and it sleeps at most until armed_us, which is not after any instant that was due when it
 * went to sleep; whoever joins with something due earlier becomes the keeper.
 */
#ifndef LIB_LANE_H
#define LIB_LANE_H

#include "engine/engine.h"

#include <pthread.h>

struct hg_cache;
struct hg_load;
struct thread;

enum waiter_word {
	WAITER_ASLEEP,
	WAITER_NUDGED, /* you are the keeper now */
	WAITER_WOKEN,  /* answered; nobody else will touch the waiter any more */
};

/* What a load gave to those who waited for it. */
struct shared {
	struct blob *blob; /* NULL: no bytes */
	enum hg_outcome outcome;
	int64_t fresh_us;
};

/* One caller of hg_cache_get() that waits; lives on its stack. */
struct waiter {
	struct ask ask;
	_Atomic uint32_t word;
	struct list_node in_lane;
	int64_t until_us; /* its own: when it will look at the timers, whatever happens */
	struct waiter *next_woken;
	struct hg_load *load;  /* to be led if the lease is handed over */
	struct thread *nested; /* not NULL: in the graph of nested loads */
	/* out */
	struct shared shared; /* with a reference of its own */
	bool closed;
	struct hg_fault fault;
};

struct lane {
	pthread_mutex_t lock;
	struct hg_cache *cache;
	struct engine *engine;
	struct gate gate;
	struct map loads;         /* struct hg_load: those that are queued or run */
	struct list_node waiters; /* struct waiter */
	uint32_t waiters_len;
	struct waiter *keeper;
	int64_t armed_us;
	bool stopped;
	char apart[64];
};

struct visit {
	struct hg_cache *cache;
	struct lane *lane;
	uint64_t mask; /* of the store's locks that are held */
	int64_t now_us;
	struct waiter *woken, **woken_end;
	struct waiter *nudged;
	struct hg_load *own;       /* the asker's load, for an order that its ask may cause; or NULL */
	struct thread *own_thread; /* who runs it then, at once; NULL: it is queued */
	bool ordered;              /* there was an order: `own` is queued, or runs */
};

enum hg_err lane_init(struct lane *lane, struct hg_cache *cache, const struct engine_config *config,
		      const struct gate_policy *policy) HG_MUST_USE;
/* Frees also what is left of loads whose threads have gone by odd paths. */
void lane_fini(struct lane *lane);

/* `mask`: store shards to lock, those of the keys that the visit is about (all belong to `lane`), or 0. */
void visit_begin(struct visit *visit, struct hg_cache *cache, struct lane *lane, uint64_t mask);
void visit_end(struct visit *visit);
/* Collects what the engine has answered so far, before something that the answers depend on goes away. */
void visit_settle(struct visit *visit);

/* Inside a visit. The waiter's ask is ASK_WAITING. */
void waiter_join(struct visit *visit, struct waiter *waiter);
/* Outside. Sleeps until the waiter is answered. */
void waiter_sleep(struct lane *lane, struct waiter *waiter);

/* Answers all waiters HG_ERR_CLOSED, for good. */
void lane_stop(struct hg_cache *cache, struct lane *lane);

#endif
