/* cache.h - a cache of the library: one memory store, sixteen engines in lanes, and what both need.
 *
 * A key's lane follows from its hash, so that each of the store's 64 shards belongs to one lane. Locks are taken in
 * this order: a store shard's, its lane's, then one of the leaves (the graph of nested loads, the executor's queue).
 * The registry's lock is held alone. Code of the user (loaders, hooks) is called with none of them held.
 */
#ifndef LIB_CACHE_H
#define LIB_CACHE_H

#include "base/list.h"
#include "lib/lane.h"
#include "store/memory.h"

#include <stdatomic.h>

#define CACHE_LANES 16u
#define CACHE_VERSION 1u

struct executor;

/* Counted where no lane and no thread's seat is at hand. */
struct tallies {
	_Atomic uint64_t loads, nested, fenced, refreshes, refreshes_dropped, not_stored, invalidations;
};

struct hg_cache {
	/* What a hit reads. Not written after the opening. */
	uint64_t id; /* never used again, by no other cache */
	struct memory *memory;
	struct hg_cache_config config;
	const struct hg_allocator *allocator;
	char apart[64];
	/* What others write. */
	struct tallies tallies;
	_Atomic int64_t sweep_due_us; /* when the store wants to be ticked */
	_Atomic uint32_t jobs;        /* refreshes that the user's executor has accepted and not run yet */
	struct executor *executor;    /* NULL where the user has given one */
	struct list_node in_registry; /* this and the next three: under the registry's lock */
	uint32_t pins;                /* threads that are leaving and still look after a load here */
	struct list_node seats;       /* struct seat */
	uint64_t gone_fresh, gone_stale, gone_refused, gone_avoided,
		gone_probes; /* counted by threads that have ended */
	struct lane lanes[CACHE_LANES];
};

static inline struct lane *cache_lane(struct hg_cache *cache, const struct key *key)
{
	return &cache->lanes[key->hash >> 60];
}

/* The time now, exactly. Cost: about 25 ns. */
int64_t cache_now_us(const struct hg_cache *cache);

/* A time at most CACHE_COARSE_US before now, as a rule: cheap, for a first look at values that are far from their
 * expiry. Exact where the clock is the user's. */
#define CACHE_COARSE_US 20000
int64_t cache_coarse_us(const struct hg_cache *cache);

/* Work in the background that writers do on the way: expiry, and freeing what readers no longer hold. */
void cache_sweep(struct hg_cache *cache, int64_t now_us);

/* The registry: which caches are open. A cache that is pinned is not freed before it is released. NULL where it has
 * been closed. */
void registry_lock(void);
void registry_unlock(void);
struct hg_cache *registry_find(uint64_t id); /* under the lock */
struct hg_cache *registry_pin(uint64_t id);
void registry_unpin(struct hg_cache *cache);

/* Fills in a fault, where there is one. Returns `err`. */
enum hg_err fault_set(struct hg_fault *fault, enum hg_err err, int64_t retry_after_us, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#endif
