/* seat.h - a thread's place in a cache: its reader of the store, its dice, its counters. All that a hit writes is here.
 *
 * A hush says that a key needs no visit for a moment, because somebody leads its refresh or it is backed off. Without
 * it every ask for a stale value would take a lock. It is bound to the times of the very value, so a new value ends it.
 */
#ifndef LIB_SEAT_H
#define LIB_SEAT_H

#include "base/dice.h"
#include "base/list.h"
#include "lib/cache.h"
#include "lib/thread.h"

#define SEAT_HUSHES 8u
#define SEAT_HUSH_US 1000

struct hush {
	uint64_t hash;
	int64_t fresh_until_us, until_us;
	bool flying; /* a load of the key was under way */
};

struct seat {
	struct memory_reader *reader;
	struct hg_cache *cache;
	struct list_node in_cache;
	struct dice dice;
	/* Written by this thread alone, read by hg_cache_stats(). */
	_Atomic uint64_t fresh, stale, refused, avoided, probes;
	struct hush hushes[SEAT_HUSHES];
};

/* The seat that this thread used last. */
struct seat_last {
	uint64_t cache_id;
	struct seat *seat;
};
extern __thread struct seat_last seat_last __attribute__((tls_model("initial-exec")));

struct seat *seat_search(struct hg_cache *cache); /* or make one; NULL without memory */

static inline struct seat *seat_of(struct hg_cache *cache)
{
	if (__builtin_expect(seat_last.cache_id == cache->id, 1))
		return seat_last.seat;
	return seat_search(cache);
}

/* The thread ends, or its cache does. Under the registry's lock. */
void seat_leave(struct seat *seat);

static inline void seat_count(_Atomic uint64_t *counter)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1, memory_order_relaxed);
}

static inline struct hush *seat_hush(struct seat *seat, uint64_t hash)
{
	return &seat->hushes[hash % SEAT_HUSHES];
}

#endif
