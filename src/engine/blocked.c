/* blocked.c - holding that blocks its own leader: it fails open, once, and remembers (design 4, "Blocked leader").
 *
 * A lease is overdue `blocked_after` after its start. An overdue flight whose leader cannot send its fill - its
 * connection is multiplexed and has held replies, or every connection of its peer is held - releases those replies,
 * unless it has been proved that this connection or peer fills all the same. */
#include "engine/inside.h"

static bool proved(const struct list_node *marks, const struct gate *gate)
{
	const struct mark *mark = mark_find(marks, gate);

	return mark != NULL && mark->proved;
}

static bool link_blocked(const struct link *link)
{
	return link->multiplexed && link->held;
}

static bool peer_blocked(const struct peer *peer)
{
	return peer->counted > 0 && peer->counted_held == peer->counted;
}

static void count_release(const struct ask *ask, enum release_reason reason)
{
	struct gate_counters *counters = &ask->gate->counters;

	counters->released_blocked += reason == RELEASE_BLOCKED;
	counters->released_hol += reason == RELEASE_HOL;
	counters->released_bytes += reason == RELEASE_BYTES;
}

/* Nil would say that the origin has no such row. */
static bool nil_would_lie(const struct ask *ask)
{
	return ask->kind == ASK_READ && ask->gate->policy.leader == GATE_ORIGIN;
}

static void release(struct engine *engine, struct ask *ask, enum release_reason reason, int64_t now_us)
{
	count_release(ask, reason);
	if (nil_would_lie(ask))
		ask_error(engine, ask, HG_ERR_LIMIT,
			  reason == RELEASE_HOL ? "other replies have waited long enough (hol_max)"
						: "too much waits behind this reply (held_bytes_max)",
			  0, now_us);
	else
		ask_answer(engine, ask, ANSWER_PASS, now_us);
}

/* The first hold of the link ends. What is parked behind it gets its turn by that. A load of an origin needs nobody's
 * reply to end, so it is left to do so where a blocked leader is the reason. Returns whether anything was released. */
bool link_release_head(struct engine *engine, struct link *link, enum release_reason reason, int64_t now_us)
{
	struct turn *turn;
	bool any = false;

	if (list_empty(&link->turns))
		return false;
	turn = LIST_ENTRY(link->turns.next, struct turn, in_link);
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		struct ask *ask = &turn->asks[i];

		if (ask->state != ASK_WAITING || (reason == RELEASE_BLOCKED && nil_would_lie(ask)))
			continue;
		release(engine, ask, reason, now_us);
		any = true;
	}
	return any;
}

static bool first_held(const struct link *link)
{
	return !list_empty(&link->turns) && LIST_ENTRY(link->turns.next, struct turn, in_link)->state == TURN_HELD;
}

/* Ends the first hold, and the next where that is one too. Returns whether there was any. */
static bool release_link(struct engine *engine, struct link *link, int64_t now_us)
{
	bool any = false;

	while (first_held(link) && link_release_head(engine, link, RELEASE_BLOCKED, now_us))
		any = true;
	return any;
}

static bool release_peer(struct engine *engine, struct peer *peer, int64_t now_us)
{
	bool any = false;

	LIST_EACH (node, &peer->links)
		any |= release_link(engine, LIST_ENTRY(node, struct link, in_peer), now_us);
	return any;
}

/* Said once for as long as it lasts. */
static void exempt_link(struct engine *engine, const struct flight *flight, int64_t now_us)
{
	struct link *link = flight->leader;
	struct mark *mark = mark_get(engine, &link->marks, flight->gate);

	if (mark == NULL)
		return;
	if (mark->exempt_until_us <= now_us)
		engine_remark(engine, REMARK_BLOCKED_LINK, flight->gate, &flight->record->key, link->peer,
			      now_us - flight->start_us, LINK_EXEMPT_US);
	mark->exempt_until_us = sat_add(now_us, LINK_EXEMPT_US);
}

static void exempt_peer(struct engine *engine, const struct flight *flight, int64_t now_us)
{
	struct peer *peer = flight->leader->peer;
	struct mark *mark = mark_get(engine, &peer->marks, flight->gate);

	if (mark == NULL || mark->exempt_until_us > now_us)
		return;
	mark->exempt_span_us =
		mark->exempt_span_us == 0 ? PEER_EXEMPT_US : sat_min(sat_mul(mark->exempt_span_us, 2), SPAN_MAX_US);
	mark->exempt_until_us = sat_add(now_us, mark->exempt_span_us);
	engine_remark(engine, REMARK_BLOCKED_PEER, flight->gate, &flight->record->key, peer, now_us - flight->start_us,
		      mark->exempt_span_us);
}

/* True where something was released. The exemption comes first: what is looked up again then finds it. */
static bool check(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct link *link = flight->leader;
	struct peer *peer = link->peer;

	if (link_blocked(link) && !proved(&link->marks, flight->gate)) {
		exempt_link(engine, flight, now_us);
		return release_link(engine, link, now_us);
	}
	if (peer_blocked(peer) && !proved(&peer->marks, flight->gate)) {
		exempt_peer(engine, flight, now_us);
		return release_peer(engine, peer, now_us);
	}
	return false;
}

void blocked_overdue(struct engine *engine, struct flight *flight, int64_t now_us)
{
	if (flight->overdue || flight->leader == NULL) {
		flight_schedule(engine, flight);
		return;
	}
	flight->overdue = true;
	list_push_back(&flight->leader->peer->overdue, &flight->in_overdue);
	flight_schedule(engine, flight);
	(void)check(engine, flight, now_us);
}

void blocked_check_peer(struct engine *engine, struct peer *peer, int64_t now_us)
{
	/* A release can end flights, also the one that is next in the list: begin anew after each. It ends, since what
	 * was released is exempt and held no more. */
	for (struct list_node *node = peer->overdue.next; node != &peer->overdue;) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_overdue);

		node = check(engine, flight, now_us) ? peer->overdue.next : node->next;
	}
}

static void prove(struct engine *engine, struct list_node *marks, const struct gate *gate)
{
	struct mark *mark = mark_get(engine, marks, gate);

	if (mark != NULL)
		mark->proved = true;
}

/* A fill has come, on `filler`, although the leader seemed blocked: it gets through, and holding it is no harm. */
void blocked_prove(struct engine *engine, struct flight *flight, const struct link *filler)
{
	struct link *link = flight->leader;
	uint32_t counted, held;

	if (link == NULL || flight->holder != HOLDER_LINK)
		return;
	if (link->held)
		prove(engine, &link->marks, flight->gate);
	if (filler == NULL || filler->peer != link->peer)
		return;
	counted = link->peer->counted - filler->counted;
	held = link->peer->counted_held - (filler->counted && filler->held);
	/* A peer of one connection has proved it where that connection was itself held. */
	if (held == counted && (counted > 0 || filler->held))
		prove(engine, &link->peer->marks, flight->gate);
}

/* Does the link itself wait for the very flight that it leads? */
static bool waits_for_itself(const struct link *link, const struct flight *flight)
{
	const struct turn *turn = list_empty(&link->turns) ? NULL : LIST_ENTRY(link->turns.next, struct turn, in_link);

	for (uint32_t i = 0; turn != NULL && i < turn->asks_len; i++) {
		if (turn->asks[i].flight == flight)
			return true;
	}
	return false;
}

/* A program that looks again after a lock of its own: the cure is proposed, at most every ten minutes. */
static void propose_own_lock(struct engine *engine, const struct flight *flight, int64_t now_us)
{
	struct gate *gate = flight->gate;

	gate->looked_again++;
	if (gate->own_lock_told_us != 0 && now_us < sat_add(gate->own_lock_told_us, SPAN_MAX_US))
		return;
	gate->own_lock_told_us = now_us;
	engine_remark(engine, REMARK_OWN_LOCK, gate, &flight->record->key, flight->leader->peer, 0, 0);
}

void blocked_lapsed(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct link *link = flight->leader;
	struct mark *mark;

	if (link == NULL || flight->holder != HOLDER_LINK)
		return;
	if (!link->multiplexed && !flight->gate->policy.own_lock && waits_for_itself(link, flight))
		propose_own_lock(engine, flight, now_us);
	/* One lapse may be a load that has become slow, and its fill may be on the way; two in a row take a proof back.
	 */
	if (flight->record->lapses == 0)
		return;
	mark = mark_find(&link->marks, flight->gate);
	if (mark != NULL && link_blocked(link))
		mark->proved = false;
	mark = mark_find(&link->peer->marks, flight->gate);
	if (mark != NULL && peer_blocked(link->peer))
		mark->proved = false;
}
