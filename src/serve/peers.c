/* peers.c - how many connections each address has, for limits.clients_per_peer. Loop 0 counts them when it accepts;
 * each loop takes its own off. A peer without connections is forgotten. */
#include "base/alloc.h"
#include "base/hash.h"
#include "serve/state.h"

#include <stdio.h>

struct server_peer *peer_count(struct server *server, const char *name, uint32_t most)
{
	struct server_private *own = server->own;
	uint64_t hash = hash_key(bytes_of(name), 0, 0);
	struct server_peer *found = NULL;

	uv_mutex_lock(&own->peers_lock);
	for (struct map_node *node = map_chain(&own->peers, hash); node != NULL && found == NULL; node = node->next) {
		struct server_peer *peer = LIST_ENTRY(node, struct server_peer, node);

		if (node->hash == hash && strcmp(peer->name, name) == 0)
			found = peer;
	}
	if (found == NULL) {
		found = alloc_zeroed(server->allocator, sizeof(*found));
		if (found != NULL) {
			(void)snprintf(found->name, sizeof(found->name), "%s", name);
			map_insert(&own->peers, &found->node, hash);
		}
	}
	if (found != NULL && found->count >= most)
		found = NULL;
	if (found != NULL)
		found->count++;
	uv_mutex_unlock(&own->peers_lock);
	return found;
}

void peer_forget(struct server *server, struct server_peer *peer)
{
	struct server_private *own = server->own;

	if (peer == NULL)
		return;
	uv_mutex_lock(&own->peers_lock);
	peer->count--;
	if (peer->count == 0)
		map_remove(&own->peers, &peer->node);
	else
		peer = NULL;
	uv_mutex_unlock(&own->peers_lock);
	alloc_free(server->allocator, peer);
}
