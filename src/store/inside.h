/* inside.h - what the files of the memory store share: the store itself. Private to src/store. */
#ifndef STORE_INSIDE_H
#define STORE_INSIDE_H

#include "store/shard.h"

struct memory {
	_Atomic(struct table *) tables[MEMORY_SHARDS]; /* all that a reader needs of the store, in eight lines */
	uint64_t seed;
	const struct hg_allocator *allocator;
	void *block;
	uint32_t spaces;
	struct epoch epoch;
	struct budget budget;
	_Atomic uint32_t shed_from; /* the shard that gives next where one cannot make room by itself */
	pthread_mutex_t ticking;
	uint32_t tick_from; /* under `ticking`: the shard to begin with */
	struct shard shards[MEMORY_SHARDS];
};

/* Bytes that live things (entries, tables, queues) may take now: the limit without the room for what is retired. */
int64_t memory_room(struct memory *memory);

/* What they take. */
static inline int64_t memory_live(struct memory *memory)
{
	return atomic_load_explicit(&memory->budget.bytes, memory_order_relaxed) -
	       atomic_load_explicit(&memory->budget.retired, memory_order_relaxed);
}

#endif
