/* map.c - a hash table of chains whose members bring their own links.
 *
 * The table doubles when it holds as many members as buckets, so that a chain is one member long on average. It never
 * shrinks: what was once needed will be needed again. Upper and lower half of a hash are folded, since an owner may
 * have spent either (the low bits choose a shard) before the map sees it.
 *
 * Invariants: the number of buckets is a power of two; every member is in the bucket that its hash names.
 */
#include "base/alloc.h"
#include "base/map.h"

#include <assert.h>

#define BUCKETS_MIN 16u

static size_t place(const struct map *map, uint64_t hash)
{
	return (size_t)(hash ^ (hash >> 32)) & map->mask;
}

enum hg_err map_init(struct map *map, const struct hg_allocator *allocator)
{
	struct map_node **buckets;

	if (allocator == NULL)
		allocator = &alloc_libc;
	buckets = alloc_zeroed(allocator, BUCKETS_MIN * sizeof(struct map_node *));
	if (buckets == NULL)
		return HG_ERR_MEMORY;
	*map = (struct map){.buckets = buckets, .mask = BUCKETS_MIN - 1, .allocator = allocator};
	return HG_OK;
}

void map_fini(struct map *map)
{
	alloc_free(map->allocator, map->buckets);
	map->buckets = NULL;
	map->count = 0;
}

/* Twice as many buckets; without memory the old ones stay and chains get longer. */
static void grow(struct map *map)
{
	size_t old_len = map->mask + 1;
	struct map_node **old = map->buckets, **buckets;

	if (old_len > SIZE_MAX / 2 / sizeof(struct map_node *))
		return;
	buckets = alloc_zeroed(map->allocator, 2 * old_len * sizeof(struct map_node *));
	if (buckets == NULL)
		return;
	map->buckets = buckets;
	map->mask = 2 * old_len - 1;
	for (size_t i = 0; i < old_len; i++) {
		for (struct map_node *node = old[i], *after; node != NULL; node = after) {
			struct map_node **bucket = &buckets[place(map, node->hash)];

			after = node->next;
			node->next = *bucket;
			*bucket = node;
		}
	}
	alloc_free(map->allocator, old);
}

void map_insert(struct map *map, struct map_node *node, uint64_t hash)
{
	struct map_node **bucket;

	if (map->count > map->mask)
		grow(map);
	bucket = &map->buckets[place(map, hash)];
	node->hash = hash;
	node->next = *bucket;
	*bucket = node;
	map->count++;
}

void map_remove(struct map *map, struct map_node *node)
{
	struct map_node **link = &map->buckets[place(map, node->hash)];

	while (*link != node) {
		assert(*link != NULL && "map_remove: not a member");
		link = &(*link)->next;
	}
	*link = node->next;
	node->next = NULL;
	map->count--;
}

struct map_node *map_chain(const struct map *map, uint64_t hash)
{
	return map->buckets[place(map, hash)];
}

struct map_node *map_walk(const struct map *map, struct map_cursor *cursor)
{
	struct map_node *node = cursor->next;

	while (node == NULL) {
		if (cursor->bucket > map->mask)
			return NULL;
		node = map->buckets[cursor->bucket++];
	}
	cursor->next = node->next;
	return node;
}
