/* queue.h - the order in which one shard evicts: SIEVE (Zhang, Yang, Yue, Vigfusson, Rashmi: SIEVE is Simpler than LRU,
 * NSDI 2024), kept in chunks of pointers.
 *
 * New entries join at the young end. A hand walks from the old end to the young one and over again; an entry that was
 * visited loses its mark and stays where it is in the order, the first that was not visited is the victim. What stays
 * moves down into the gap that the victims left, so the chunks behind the hand are dense and a chunk whose entries are
 * gone is freed at once. An entry costs 8 bytes here and a number in its header; no neighbour is touched.
 *
 *     old   [kept kept kept|kept ____ ____ ____|____ hand .... ....|.... .... young ____]   new
 *
 * Only a writer with the shard's lock comes here.
 */
#ifndef STORE_QUEUE_H
#define STORE_QUEUE_H

#include "base/list.h"
#include "store/memory.h"

#define QUEUE_CHUNK 60u /* pointers; with its head a chunk has 512 bytes */

struct chunk;

struct queue {
	const struct hg_allocator *allocator;
	struct list_node chunks;          /* old to young */
	struct chunk **directory;         /* by number */
	uint32_t directory_size, numbers; /* numbers: how many were ever given */
	uint32_t free_number;             /* first of a chain of numbers to give again */
	uint32_t hand_at;
	struct chunk *hand, *keep; /* keep: the chunk that takes what stays, or NULL: the hand's own */
	uint64_t live;             /* entries */
	uint64_t chunk_count;
};

void queue_init(struct queue *queue, const struct hg_allocator *allocator);
void queue_fini(struct queue *queue);
int64_t queue_footprint(const struct queue *queue);

/* Makes sure that the next push succeeds; false without memory, and then nothing changed. */
bool queue_reserve(struct queue *queue);

/* Adds `entry` at the young end, after a successful queue_reserve(). */
void queue_push(struct queue *queue, struct entry *entry);

/* Puts `new` in the place of `old`, which must be in. */
void queue_replace(struct queue *queue, const struct entry *old, struct entry *new);

void queue_erase(struct queue *queue, const struct entry *entry);

/* The next to be evicted, which stays in until it is erased: not visited, or dead at `now_us`; never `spared`. NULL
 * where there is no other. Moves the hand. Cost: one entry looked at for each mark taken away. */
struct entry *queue_victim(struct queue *queue, const struct entry *spared, int64_t now_us);

bool queue_has(const struct queue *queue, const struct entry *entry);

/* Asserts every invariant. Cost: one visit of each entry. */
void queue_check(const struct queue *queue);

#endif
