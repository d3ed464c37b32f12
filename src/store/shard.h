/* shard.h - one of 64 parts of the memory store: its table, its queue, what it retired, its share of the counts.
 * Everything here is called with the shard's lock held, unless said otherwise. What is retired under a lock is not
 * freed before that lock is given back, so a writer may go on reading what it found. Private to src/store. */
#ifndef STORE_SHARD_H
#define STORE_SHARD_H

#include "store/entry.h"
#include "store/queue.h"
#include "store/table.h"

#define SHARD_SPACES 16u

/* Things that no reader can find any more, but some may still hold. */
struct batch {
	uintptr_t entries; /* chain through own.retired; lowest bit set: the blob went to a successor */
	struct table *tables;
	int64_t bytes;
	uint64_t count; /* entries and tables */
};

/* The account of the whole store, shared by its shards. */
struct budget {
	_Atomic int64_t max_bytes;
	_Atomic int64_t bytes;   /* everything, retired included */
	_Atomic int64_t retired; /* the part that waits for readers */
	_Atomic int64_t tables;  /* the part that is tables */
};

struct shard {
	const struct hg_allocator *allocator;
	struct epoch *epoch;
	struct budget *budget;
	_Atomic(struct table *) *table; /* the readers' pointer to the table */
	struct queue queue;
	struct batch open, closed; /* retired since, and before, the last advance of the epoch */
	uint64_t closed_stamp;
	int64_t bytes;              /* of what is not retired */
	int64_t fixed_bytes;        /* the part of it that is table and queue */
	uint32_t sweep_from;        /* where the search for the dead goes on: a position within the shard */
	int64_t sweep_next;         /* earliest death seen by the sweep under way */
	_Atomic int64_t next_death; /* no entry dies earlier; HG_NEVER: none dies */
	_Atomic uint64_t entries, evicted, expired, retired;
	_Atomic uint32_t keys[SHARD_SPACES], expires[SHARD_SPACES];
	pthread_mutex_t lock;
	_Atomic(const void *) holder; /* identity of the thread that holds the lock */
};

struct shard_config {
	const struct hg_allocator *allocator;
	struct epoch *epoch;
	struct budget *budget;
	_Atomic(struct table *) *table;
};

bool shard_init(struct shard *shard, const struct shard_config *config); /* false without memory */
void shard_fini(struct shard *shard);                                    /* no reader may be left */

/* No lock needed. */
void shard_lock(struct shard *shard);
void shard_unlock(struct shard *shard);
bool shard_trylock(struct shard *shard);
bool shard_held(const struct shard *shard); /* by this thread */

static inline struct table *shard_table(const struct shard *shard)
{
	return atomic_load_explicit(shard->table, memory_order_acquire);
}

/* Publishes `entry`, whose key has `hash`. Grows the table and the queue as needed. False without memory, and then
 * nothing was published. */
bool shard_add(struct shard *shard, struct entry *entry, uint64_t hash);

/* Publishes `entry` instead of `old`, which has the same key, and retires `old`; `moved`: `entry` has its blob. */
void shard_replace(struct shard *shard, struct entry *entry, struct entry *old, bool moved);

/* Takes `entry` out and retires it. */
void shard_remove(struct shard *shard, struct entry *entry);

/* Removes the next victim of the queue, but never `spared`. Returns false where there is none. */
bool shard_evict(struct shard *shard, const struct entry *spared, int64_t now_us);

/* Frees what was retired before the lock was taken and no reader holds any more. */
void shard_reclaim(struct shard *shard);

/* As the last thing before the lock is given back: closes the open batch too. Up to one system call. Giving back the
 * lock does it by itself where the batch is full. */
void shard_collect(struct shard *shard);

/* Makes the table fit the number of entries where it has become far too large. */
void shard_shrink(struct shard *shard);

/* Walks everything and asserts. */
void shard_check(struct shard *shard, uint32_t number);

#endif
