/* map.h - an intrusive hash table with chains. Only growing allocates, and a growth that fails leaves a slower table,
 * not an error: after map_init nothing here can fail. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "herdgate.h"

struct map_node {
	struct map_node *next;
	uint64_t hash;
};

struct map {
	struct map_node **buckets;
	size_t mask; /* buckets - 1 */
	size_t count;
	const struct hg_allocator *allocator;
};

/* Borrows `allocator` for the map's life; NULL is the C library's. Fails with HG_ERR_MEMORY. */
enum hg_err map_init(struct map *map, const struct hg_allocator *allocator) HG_MUST_USE;

/* Frees the buckets; the members are the caller's. */
void map_fini(struct map *map);

/* Adds a node that is in no map; O(1) amortised. Nodes of equal hash may be many. */
void map_insert(struct map *map, struct map_node *node, uint64_t hash);

/* Takes out a member; anything else is a programmer's error. */
void map_remove(struct map *map, struct map_node *node);

/* First node of the chain in which `hash` would be; follow `next` and compare `hash`, then the key. */
struct map_node *map_chain(const struct map *map, uint64_t hash);

/* Walks all nodes, in no order: start with a zeroed cursor; returns NULL at the end. The node that was returned last
 * may be removed meanwhile, no other one, and nothing may be inserted. */
struct map_cursor {
	size_t bucket;
	struct map_node *next;
};
struct map_node *map_walk(const struct map *map, struct map_cursor *cursor);

#endif
