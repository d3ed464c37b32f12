/* history.h - which keys have ever been filled: a bounded set of hashes in two halves; when the young half is full it
 * becomes the old one and the old one is dropped. A hash that is remembered wrongly only makes a never-filled key wait
 * as a filled one does; one that is forgotten, the other way round. */
#ifndef ENGINE_HISTORY_H
#define ENGINE_HISTORY_H

#include "herdgate.h"

struct history_half {
	uint64_t *slots; /* open addressing; 0 is free */
	size_t mask, count;
};

struct history {
	struct history_half young, old;
	size_t half_max; /* hashes in one half */
	const struct hg_allocator *allocator;
};

void history_init(struct history *history, const struct hg_allocator *allocator, uint32_t hashes_max);
void history_fini(struct history *history);

/* Remembers; without memory it does not. O(1) amortised. */
void history_add(struct history *history, uint64_t hash);
bool history_has(const struct history *history, uint64_t hash);

#endif
