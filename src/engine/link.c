/* link.c - connections and their peers: who shares a pool, who cannot be held, who gives up when.
 *
 * A peer is address, user and client name: the closest thing to "one program" that a server can see. It outlives its
 * connections for as long as it has marks or a learnt limit, since some programs connect anew for every command. */
#include "engine/inside.h"

#include "base/hash.h"

#include <assert.h>
#include <string.h>

/* ---- marks ---------------------------------------------------------------------------------------------------- */

struct mark *mark_find(const struct list_node *marks, const struct gate *gate)
{
	LIST_EACH (node, marks) {
		struct mark *mark = LIST_ENTRY(node, struct mark, in_owner);

		if (mark->gate == gate)
			return mark;
	}
	return NULL;
}

struct mark *mark_get(struct engine *engine, struct list_node *marks, const struct gate *gate)
{
	struct mark *mark = mark_find(marks, gate);

	if (mark != NULL)
		return mark;
	mark = alloc_zeroed(engine->allocator, sizeof(*mark));
	if (mark == NULL)
		return NULL;
	mark->gate = gate;
	list_push_back(marks, &mark->in_owner);
	return mark;
}

static void free_marks(struct engine *engine, struct list_node *marks)
{
	struct list_node *node;

	while ((node = list_pop(marks)) != NULL)
		alloc_free(engine->allocator, LIST_ENTRY(node, struct mark, in_owner));
}

static bool exempt(const struct list_node *marks, const struct gate *gate, int64_t now_us)
{
	const struct mark *mark = mark_find(marks, gate);

	return mark != NULL && mark->exempt_until_us > now_us;
}

bool link_exempt(const struct link *link, const struct gate *gate, int64_t now_us)
{
	return link != NULL && (exempt(&link->marks, gate, now_us) || exempt(&link->peer->marks, gate, now_us));
}

int64_t link_wait_us(const struct link *link, const struct gate *gate, int64_t now_us)
{
	int64_t wait = gate->policy.wait_us;

	if (link != NULL && link->peer->limit_until_us > now_us)
		wait = sat_min(wait, sat_scale(link->peer->limit_us, 800));
	return wait;
}

/* ---- peers ---------------------------------------------------------------------------------------------------- */

static struct peer *peer_find(struct engine *engine, struct hg_bytes name, uint64_t hash)
{
	for (struct map_node *node = map_chain(&engine->peers, hash); node != NULL; node = node->next) {
		struct peer *peer = LIST_ENTRY(node, struct peer, by_name);

		if (node->hash == hash && bytes_equal(peer->name, name))
			return peer;
	}
	return NULL;
}

static struct peer *peer_get(struct engine *engine, struct hg_bytes name)
{
	uint64_t hash = hash_key(name, 0, engine->config.seed);
	struct peer *peer = peer_find(engine, name, hash);

	if (peer != NULL)
		return peer;
	peer = alloc_zeroed(engine->allocator, sizeof(*peer) + name.len);
	if (peer == NULL)
		return NULL;
	if (name.len > 0)
		memcpy(peer->bytes, name.at, name.len);
	peer->name = (struct hg_bytes){peer->bytes, name.len};
	peer->serial = ++engine->serials;
	list_init(&peer->links);
	list_init(&peer->overdue);
	list_init(&peer->marks);
	heap_node_init(&peer->forget);
	map_insert(&engine->peers, &peer->by_name, hash);
	return peer;
}

void peer_free(struct engine *engine, struct peer *peer)
{
	assert(list_empty(&peer->links) && list_empty(&peer->overdue));
	heap_remove(&engine->peer_memories, &peer->forget);
	map_remove(&engine->peers, &peer->by_name);
	free_marks(engine, &peer->marks);
	alloc_free(engine->allocator, peer);
}

/* Without connections: kept while something is remembered, freed when not. */
void peer_settle(struct engine *engine, struct peer *peer, int64_t now_us)
{
	int64_t until = peer->limit_until_us;

	if (peer->links_len > 0) {
		heap_remove(&engine->peer_memories, &peer->forget);
		return;
	}
	LIST_EACH (node, &peer->marks) {
		const struct mark *mark = LIST_ENTRY(node, struct mark, in_owner);

		/* An exemption that is over still tells how long the next one is. */
		until = sat_max(until,
				sat_add(mark->exempt_until_us, mark->exempt_until_us > 0 ? mark->exempt_span_us : 0));
	}
	if (peer->gave_up_len > 0)
		until = sat_max(until, sat_add(now_us, REMEMBER_US));
	if (until <= now_us || engine->peers.count > PEERS_MAX)
		peer_free(engine, peer);
	else
		heap_set(&engine->peer_memories, &peer->forget, until);
}

/* ---- links ---------------------------------------------------------------------------------------------------- */

static void enter_peer(struct engine *engine, struct link *link, struct peer *peer)
{
	link->peer = peer;
	list_push_back(&peer->links, &link->in_peer);
	peer->links_len++;
	peer->counted += link->counted;
	peer->counted_held += link->counted && link->held;
	heap_remove(&engine->peer_memories, &peer->forget);
}

static void leave_peer(struct link *link)
{
	struct peer *peer = link->peer;

	list_remove(&link->in_peer);
	peer->links_len--;
	peer->counted -= link->counted;
	peer->counted_held -= link->counted && link->held;
}

enum hg_err link_open(struct engine *engine, struct link *link, struct hg_bytes peer_name)
{
	struct peer *peer = peer_get(engine, peer_name);

	if (peer == NULL)
		return HG_ERR_MEMORY;
	memset(link, 0, sizeof(*link));
	link->id = ++engine->serials;
	link->counted = true;
	list_init(&link->turns);
	list_init(&link->leases);
	list_init(&link->marks);
	list_init(&link->nils);
	heap_node_init(&link->hol);
	enter_peer(engine, link, peer);
	engine->links_len++;
	return HG_OK;
}

enum hg_err link_rename(struct engine *engine, struct link *link, struct hg_bytes peer_name)
{
	struct peer *before = link->peer;
	struct peer *peer = peer_get(engine, peer_name);

	if (peer == NULL)
		return HG_ERR_MEMORY;
	if (peer == before)
		return HG_OK;
	leave_peer(link);
	enter_peer(engine, link, peer);
	LIST_EACH (node, &link->leases) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_link);

		flight->leader_peer = peer->serial;
		if (flight->overdue) {
			list_remove(&flight->in_overdue);
			list_push_back(&peer->overdue, &flight->in_overdue);
		}
	}
	peer_settle(engine, before, 0);
	return HG_OK;
}

void link_set_counted(struct engine *engine, struct link *link, bool counted, int64_t now_us)
{
	if (link->counted == counted)
		return;
	leave_peer(link);
	link->counted = counted;
	enter_peer(engine, link, link->peer);
	blocked_check_peer(engine, link->peer, now_us);
}

void link_multiplexed(struct engine *engine, struct link *link, int64_t now_us)
{
	if (link->multiplexed)
		return;
	link->multiplexed = true;
	blocked_check_peer(engine, link->peer, now_us);
}

void link_update_held(struct engine *engine, struct link *link, int64_t now_us)
{
	bool held = !list_empty(&link->turns);

	if (held != link->held && link->counted)
		link->peer->counted_held += held ? 1u : -1u;
	link->held = held;
	if (held)
		blocked_check_peer(engine, link->peer, now_us);
}

bool link_unsent(const struct link *link)
{
	LIST_EACH (node, &link->leases) {
		if (!LIST_ENTRY(node, struct flight, in_link)->sent)
			return true;
	}
	return false;
}

void link_sent(struct engine *engine, struct link *link, int64_t now_us)
{
	LIST_EACH (node, &link->leases) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_link);

		if (flight->sent)
			continue;
		flight->sent = true;
		flight->start_us = sat_min(now_us, sat_add(flight->granted_us, flight->gate->policy.lease_us));
		flight->end_us = sat_add(flight->start_us, flight->span_us);
		flight_schedule(engine, flight);
	}
}

/* ---- a hold's limits ------------------------------------------------------------------------------------------ */

static struct turn *first_turn(const struct link *link)
{
	return list_empty(&link->turns) ? NULL : LIST_ENTRY(link->turns.next, struct turn, in_link);
}

/* Since when the first hold has kept a ready reply back; HG_NEVER: it keeps none. */
static int64_t behind_since(const struct link *link)
{
	int64_t since = HG_NEVER;

	LIST_EACH (node, &link->turns)
		since = sat_min(since, LIST_ENTRY(node, struct turn, in_link)->behind_since_us);
	return since;
}

void link_arm_hol(struct engine *engine, struct link *link, int64_t now_us)
{
	const struct turn *turn = first_turn(link);
	int64_t most = HG_NEVER;

	for (uint32_t i = 0; turn != NULL && i < turn->asks_len; i++) {
		if (turn->asks[i].state == ASK_WAITING)
			most = sat_min(most, turn->asks[i].gate->policy.hol_max_us);
	}
	if (most != HG_NEVER)
		most = sat_add(behind_since(link), most);
	if (most != HG_NEVER)
		heap_set(&engine->links, &link->hol, sat_max(most, now_us));
	else
		heap_remove(&engine->links, &link->hol);
}

void link_behind(struct engine *engine, struct link *link, int64_t now_us)
{
	struct turn *last;

	if (list_empty(&link->turns))
		return;
	last = LIST_ENTRY(link->turns.prev, struct turn, in_link);
	last->behind_since_us = sat_min(last->behind_since_us, now_us);
	link_arm_hol(engine, link, now_us);
}

void link_hol_due(struct engine *engine, struct link *link, int64_t now_us)
{
	heap_remove(&engine->links, &link->hol);
	(void)link_release_head(engine, link, RELEASE_HOL, now_us);
}

void link_release(struct engine *engine, struct link *link, int64_t now_us)
{
	engine->calls++;
	(void)link_release_head(engine, link, RELEASE_BYTES, now_us);
}

/* ---- close ---------------------------------------------------------------------------------------------------- */

/* The third close of a peer at nearly the same age of a hold, in as many flights, shows its time-out. A leader that
 * closes with them does not: that is a program that ends. */
static void learn_limit(struct engine *engine, struct peer *peer, const struct ask *ask, int64_t now_us)
{
	const struct flight *flight = ask->flight;
	int64_t age = sat_sub(now_us, ask->arrived_us);
	int64_t apart = age > peer->gave_up_age_us ? age - peer->gave_up_age_us : peer->gave_up_age_us - age;

	if (age < GAVE_UP_LEAST_US)
		return;
	if (flight->leader_closed_us != HG_NEVER && sat_sub(now_us, flight->leader_closed_us) <= HANDOVER_DELAY_US)
		return;
	for (uint32_t i = 0; i < peer->gave_up_len; i++) {
		if (peer->gave_up[i].flight == flight->serial)
			return;
	}
	if (peer->gave_up_len == GAVE_UP_FLIGHTS || apart > peer->gave_up_age_us / 10)
		peer->gave_up_len = 0;
	if (peer->gave_up_len == 0)
		peer->gave_up_age_us = age;
	peer->gave_up[peer->gave_up_len].flight = flight->serial;
	peer->gave_up[peer->gave_up_len++].at_us = now_us;
	if (peer->gave_up_len < GAVE_UP_FLIGHTS)
		return;
	peer->limit_us = peer->gave_up_age_us;
	peer->limit_until_us = sat_add(now_us, PEER_LIMIT_US);
	engine_remark(engine, REMARK_GAVE_UP, ask->gate, &ask->key, peer, peer->limit_us,
		      sat_scale(peer->limit_us, 800));
}

/* The leader of `flight` closes too: who has just closed was no proof, and a limit that rests on it is none. */
static void unlearn_limit(struct peer *peer, const struct flight *flight, int64_t now_us)
{
	for (uint32_t i = 0; i < peer->gave_up_len; i++) {
		if (peer->gave_up[i].flight != flight->serial ||
		    sat_sub(now_us, peer->gave_up[i].at_us) > HANDOVER_DELAY_US)
			continue;
		if (peer->gave_up_len == GAVE_UP_FLIGHTS)
			peer->limit_until_us = 0;
		peer->gave_up[i] = peer->gave_up[--peer->gave_up_len];
		return;
	}
}

static void close_turns(struct engine *engine, struct link *link, int64_t now_us)
{
	struct turn *turn = first_turn(link);

	if (turn != NULL) {
		for (uint32_t i = 0; i < turn->asks_len; i++) {
			struct ask *ask = &turn->asks[i];

			if (ask->state != ASK_WAITING)
				continue;
			ask->gate->counters.gave_up++;
			learn_limit(engine, link->peer, ask, now_us);
		}
	}
	while (!list_empty(&link->turns))
		turn_drop(engine, LIST_ENTRY(link->turns.next, struct turn, in_link), now_us);
}

void link_close(struct engine *engine, struct link *link, int64_t now_us)
{
	struct peer *peer = link->peer;

	engine->calls++;
	close_turns(engine, link, now_us);
	heap_remove(&engine->links, &link->hol);
	LIST_EACH_SAFE (node, after, &link->leases) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_link);

		unlearn_limit(peer, flight, now_us);
		flight_leader_closed(engine, flight, now_us);
	}
	while (!list_empty(&link->nils)) {
		struct nil *nil = LIST_ENTRY(link->nils.next, struct nil, in_link);

		list_remove(&nil->in_link);
		nil->owner = NULL;
	}
	leave_peer(link); /* it is still counted as held there if it was */
	free_marks(engine, &link->marks);
	engine->links_len--;
	if (peer->links_len == 0)
		peer_settle(engine, peer, now_us);
	else
		blocked_check_peer(engine, peer, now_us);
}
