/* heap.h - an intrusive pairing heap of timers: the earliest `due_us` first, equal ones in order of insertion.
 * (Fredman, Sedgewick, Sleator, Tarjan 1986.) Insertion cannot fail: O(1); removal O(log n) amortised. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct heap_node {
	struct heap_node *child, *next, *prev; /* prev: the left sibling, or the parent of a first child */
	int64_t due_us;
	uint64_t seq;
	bool linked;
};

struct heap {
	struct heap_node *root;
	uint64_t seq;
};

void heap_init(struct heap *heap);
void heap_node_init(struct heap_node *node);

/* Inserts `node` due at `due_us`; moves it where it is already in. */
void heap_set(struct heap *heap, struct heap_node *node, int64_t due_us);

/* Takes `node` out; nothing happens where it is not in. */
void heap_remove(struct heap *heap, struct heap_node *node);

/* The earliest node, NULL where empty. Stays in. */
static inline struct heap_node *heap_first(const struct heap *heap)
{
	return heap->root;
}

#endif
