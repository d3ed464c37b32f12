/* watch.c - which connections watch which keys, one table for each shard, under that shard's lock.
 *
 * A watch remembers whether its key was there. It is broken by any change that a command makes (marked when it is made)
 * and by the key's being gone at EXEC where it was there at WATCH: expired, evicted. Where a shard has no watches a
 * change costs one load.
 *
 * Invariants: a watch is in its shard's table and in its connection's list, both or neither. A shard's table is made
 * with its first watch and kept.
 */
#include "base/alloc.h"
#include "base/map.h"
#include "serve/keyspace.h"

#include <assert.h>

struct watch {
	struct map_node in_shard;
	struct list_node in_conn;
	const struct conn *conn;
	struct key key; /* its bytes follow */
	bool there;     /* when it was watched */
	bool broken;
	unsigned char bytes[];
};

struct watches {
	const struct hg_allocator *allocator;
	struct map shards[MEMORY_SHARDS]; /* buckets NULL: none yet */
};

static struct map *shard_of(struct watches *watches, const struct key *key)
{
	return &watches->shards[__builtin_ctzll(memory_mask(key))];
}

static struct watch *of_node(struct map_node *node)
{
	return (struct watch *)(void *)((char *)node - offsetof(struct watch, in_shard));
}

enum hg_err keyspace_open(struct server *server)
{
	struct watches *watches = alloc_zeroed(server->allocator, sizeof(*watches));

	if (watches == NULL)
		return HG_ERR_MEMORY;
	watches->allocator = server->allocator;
	server->watches = watches;
	return HG_OK;
}

void keyspace_close(struct server *server)
{
	struct watches *watches = server->watches;
	unsigned i;

	if (watches == NULL)
		return;
	for (i = 0; i < MEMORY_SHARDS; i++) {
		if (watches->shards[i].buckets == NULL)
			continue;
		assert(watches->shards[i].count == 0);
		map_fini(&watches->shards[i]);
	}
	alloc_free(watches->allocator, watches);
	server->watches = NULL;
}

void keyspace_changed(struct server *server, const struct key *key)
{
	struct map *shard = shard_of(server->watches, key);
	struct map_node *node;

	if (shard->count == 0)
		return;
	for (node = map_chain(shard, key->hash); node != NULL; node = node->next) {
		if (node->hash == key->hash && key_equal(&of_node(node)->key, key))
			of_node(node)->broken = true;
	}
}

static bool watched_by(const struct map *shard, const struct key *key, const struct conn *conn)
{
	struct map_node *node;

	for (node = map_chain(shard, key->hash); node != NULL; node = node->next) {
		if (node->hash == key->hash && of_node(node)->conn == conn && key_equal(&of_node(node)->key, key))
			return true;
	}
	return false;
}

enum hg_err keyspace_watch(struct call *call, const struct key *key)
{
	struct watches *watches = call->server->watches;
	struct map *shard = shard_of(watches, key);
	struct watch *watch;

	if (shard->buckets == NULL && map_init(shard, watches->allocator) != HG_OK)
		return HG_ERR_MEMORY;
	if (watched_by(shard, key, call->conn))
		return HG_OK;
	watch = alloc_get(watches->allocator, sizeof(*watch) + key->bytes.len);
	if (watch == NULL)
		return HG_ERR_MEMORY;
	watch->conn = call->conn;
	watch->key = *key;
	watch->key.bytes.at = watch->bytes;
	if (key->bytes.len > 0)
		memcpy(watch->bytes, key->bytes.at, key->bytes.len);
	watch->there = keyspace_look(call, key) != NULL;
	watch->broken = false;
	map_insert(shard, &watch->in_shard, key->hash);
	list_push_back(&call->conn->watches, &watch->in_conn);
	call->conn->watching = true;
	return HG_OK;
}

uint64_t keyspace_watch_mask(const struct conn *conn)
{
	uint64_t mask = 0;

	LIST_EACH (node, &conn->watches)
		mask |= memory_mask(&LIST_ENTRY(node, struct watch, in_conn)->key);
	return mask;
}

void keyspace_unwatch(struct server *server, struct conn *conn, uint64_t held)
{
	uint64_t mask = keyspace_watch_mask(conn);

	assert(held == 0 || (mask & ~held) == 0);
	conn->watching = false;
	if (mask == 0)
		return;
	if (held == 0)
		memory_lock(server->memory, mask);
	LIST_EACH_SAFE (node, after, &conn->watches) {
		struct watch *watch = LIST_ENTRY(node, struct watch, in_conn);

		map_remove(shard_of(server->watches, &watch->key), &watch->in_shard);
		list_remove(&watch->in_conn);
		alloc_free(server->watches->allocator, watch);
	}
	if (held == 0)
		memory_unlock(server->memory, mask);
}

bool keyspace_watch_broken(struct call *call)
{
	LIST_EACH (node, &call->conn->watches) {
		struct watch *watch = LIST_ENTRY(node, struct watch, in_conn);

		if (watch->broken || (watch->there && keyspace_look(call, &watch->key) == NULL))
			return true;
	}
	return false;
}

void keyspace_flushing(struct call *call, uint8_t db)
{
	struct watches *watches = call->server->watches;
	unsigned i;

	for (i = 0; i < MEMORY_SHARDS; i++) {
		struct map_cursor cursor = {0, NULL};
		struct map_node *node;

		if (watches->shards[i].count == 0)
			continue;
		while ((node = map_walk(&watches->shards[i], &cursor)) != NULL) {
			struct watch *watch = of_node(node);

			if ((db == STORE_SPACE_ALL || db == watch->key.space) &&
			    keyspace_look(call, &watch->key) != NULL)
				watch->broken = true;
		}
	}
}
