/* heap.c - a pairing heap of timers.
 *
 * Why this one: members bring their own links, so setting a timer cannot fail, and setting is O(1), which is what
 * happens most (nearly every timer is taken out before it is due). Two trees are merged by making the later root the
 * first child of the earlier one. Taking out a root merges its children in pairs from left to right, then the pairs
 * from right to left; both passes are loops, so a heap of any shape needs no stack.
 *
 * Invariants: no member comes before its parent; `prev` of a first child is its parent, of any other its left sibling;
 * the root has neither `prev` nor `next`; `linked` says whether a node is in a heap.
 */
#include "base/heap.h"

#include <stddef.h>

void heap_init(struct heap *heap)
{
	heap->root = NULL;
	heap->seq = 0;
}

void heap_node_init(struct heap_node *node)
{
	*node = (struct heap_node){.linked = false};
}

static bool before(const struct heap_node *one, const struct heap_node *two)
{
	return one->due_us != two->due_us ? one->due_us < two->due_us : one->seq < two->seq;
}

/* Merges two trees whose roots have no siblings; either may be NULL. */
static struct heap_node *merge(struct heap_node *one, struct heap_node *two)
{
	if (one == NULL)
		return two;
	if (two == NULL)
		return one;
	if (before(two, one)) {
		struct heap_node *later = one;

		one = two;
		two = later;
	}
	two->prev = one;
	two->next = one->child;
	if (two->next != NULL)
		two->next->prev = two;
	one->child = two;
	return one;
}

/* Takes `node` and its right sibling out of a list of siblings and merges them; `*list` is what follows them. */
static struct heap_node *merge_two(struct heap_node *node, struct heap_node **list)
{
	struct heap_node *other = node->next;

	node->prev = NULL;
	node->next = NULL;
	if (other == NULL) {
		*list = NULL;
		return node;
	}
	*list = other->next;
	other->prev = NULL;
	other->next = NULL;
	return merge(node, other);
}

/* One tree of a list of siblings, NULL where the list is empty. */
static struct heap_node *merge_siblings(struct heap_node *list)
{
	struct heap_node *pairs = NULL, *root = NULL;

	while (list != NULL) {
		struct heap_node *pair = merge_two(list, &list);

		pair->next = pairs;
		pairs = pair;
	}
	while (pairs != NULL) {
		struct heap_node *pair = pairs;

		pairs = pair->next;
		pair->next = NULL;
		root = merge(root, pair);
	}
	return root;
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	struct heap_node *below;

	if (!node->linked)
		return;
	below = merge_siblings(node->child);
	if (node == heap->root) {
		heap->root = below;
	} else {
		if (node->prev->child == node)
			node->prev->child = node->next;
		else
			node->prev->next = node->next;
		if (node->next != NULL)
			node->next->prev = node->prev;
		heap->root = merge(heap->root, below);
	}
	node->child = NULL;
	node->next = NULL;
	node->prev = NULL;
	node->linked = false;
}

void heap_set(struct heap *heap, struct heap_node *node, int64_t due_us)
{
	heap_remove(heap, node);
	node->child = NULL;
	node->next = NULL;
	node->prev = NULL;
	node->due_us = due_us;
	node->seq = heap->seq++;
	node->linked = true;
	heap->root = merge(heap->root, node);
}
