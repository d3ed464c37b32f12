/* flight.c - one recompute of one key: its lease, the lease's end, and the hand-over to a waiter.
 *
 * Invariants: a flight has a lease, or waiters and an instant at which one of them is given it; a flight that has
 * neither ends at once (what must outlive it is in the record). At most one flight of a key is joined; those that an
 * invalidation overtook are in the record's list of voids until their load reports.
 */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

struct flight *flight_create(struct engine *engine, struct record *record, int64_t now_us)
{
	struct flight *flight = alloc_zeroed(engine->allocator, sizeof(*flight));

	if (flight == NULL)
		return NULL;
	assert(record->flight == NULL);
	heap_remove(&engine->memories, &record->forget);
	flight->record = record;
	flight->gate = record->gate;
	flight->serial = ++engine->serials;
	flight->began_us = now_us;
	flight->handover_us = HG_NEVER;
	flight->leader_closed_us = HG_NEVER;
	list_init(&flight->waiters);
	list_init(&flight->in_voids);
	list_init(&flight->in_orders);
	list_init(&flight->in_link);
	list_init(&flight->in_overdue);
	heap_node_init(&flight->timer);
	list_push_back(&engine->flights, &flight->in_engine);
	engine->flights_len++;
	record->flight = flight;
	return flight;
}

/* A client's lease begins when its nil is written, at the latest `lease` after the grant. */
static int64_t latest_start(const struct flight *flight)
{
	return flight->sent ? flight->start_us : sat_add(flight->granted_us, flight->gate->policy.lease_us);
}

void flight_schedule(struct engine *engine, struct flight *flight)
{
	int64_t due = HG_NEVER;

	if (flight->holder != HOLDER_NONE) {
		due = flight->end_us;
		if (flight->holder == HOLDER_LINK && flight->leader != NULL && !flight->overdue)
			due = sat_min(due, sat_add(latest_start(flight), gate_blocked_after_us(flight->gate)));
	} else {
		due = flight->handover_us;
	}
	if (due == HG_NEVER)
		heap_remove(&engine->timers, &flight->timer);
	else
		heap_set(&engine->timers, &flight->timer, due);
}

static int64_t lease_span(const struct flight *flight, enum holder holder)
{
	const struct record *record = flight->record;
	const struct gate_policy *policy = &flight->gate->policy;

	if (holder == HOLDER_TOKEN)
		return policy->lease_us;
	if (holder != HOLDER_LINK)
		return policy->load_timeout_us;
	if (record->lease_span_us > 0)
		return record->lease_span_us;
	return gate_lease_us(flight->gate);
}

void flight_grant(struct engine *engine, struct flight *flight, enum holder holder, struct link *link, int64_t now_us)
{
	struct record *record = flight->record;

	assert(flight->holder == HOLDER_NONE && !flight->void_);
	flight->holder = holder;
	flight->token = (struct token){engine->config.boot_id, ++engine->tokens};
	flight->span_us = lease_span(flight, holder);
	flight->granted_us = now_us;
	flight->start_us = now_us;
	flight->sent = holder != HOLDER_LINK;
	flight->end_us = sat_add(latest_start(flight), flight->span_us);
	flight->leader_closed_us = HG_NEVER;
	flight->cut_short = false;
	flight->handover_us = HG_NEVER;
	flight->vacant = false;
	flight->avoid_peer = 0;
	flight->call = engine->calls;
	flight->passes = 0;
	flight->leader = link;
	flight->leader_link = link != NULL ? link->id : 0;
	flight->leader_peer = link != NULL ? link->peer->serial : 0;
	if (link != NULL)
		list_push_back(&link->leases, &flight->in_link);
	if (record->first_lease_us == HG_NEVER)
		record->first_lease_us = now_us;
	flight->leases++;
	engine->leases_len++;
	flight->gate->counters.loads += !flight->observed;
	flight_schedule(engine, flight);
}

void flight_order_load(struct engine *engine, struct flight *flight, int64_t now_us)
{
	flight_grant(engine, flight, HOLDER_LOAD, NULL, now_us);
	list_push_back(&engine->loads_out, &flight->in_orders);
}

void flight_unlease(struct engine *engine, struct flight *flight)
{
	if (flight->holder == HOLDER_NONE)
		return;
	flight->holder = HOLDER_NONE;
	flight->token = (struct token){0, 0};
	flight->holder_pointer = NULL;
	flight->leader = NULL;
	flight->overdue = false;
	list_remove(&flight->in_link);
	list_remove(&flight->in_overdue);
	list_remove(&flight->in_orders);
	engine->leases_len--;
}

void flight_end(struct engine *engine, struct flight *flight, const char *outcome, int64_t now_us)
{
	struct record *record = flight->record;

	assert(list_empty(&flight->waiters));
	engine_ended(engine, flight, outcome, now_us);
	flight_unlease(engine, flight);
	heap_remove(&engine->timers, &flight->timer);
	list_remove(&flight->in_engine);
	list_remove(&flight->in_voids);
	engine->flights_len--;
	if (record->flight == flight)
		record->flight = NULL;
	flight->record = NULL;
	if (flight->canceled.serial != 0) /* freed when the driver has taken the order */
		list_push_back(&engine->cancels_out, &flight->in_orders);
	else
		alloc_free(engine->allocator, flight);
	record_settle(engine, record, now_us);
}

/* ---- the lease is over without a fill ------------------------------------------------------------------------- */

/* A key never filled before, lapsed twice and long enough, while the gate works otherwise: nobody will ever SET it. */
static bool is_unfilled(const struct engine *engine, const struct flight *flight)
{
	const struct record *record = flight->record;
	const struct gate *gate = flight->gate;

	if (record->unfilled)
		return true;
	return record->lapses >= 2 && record->lapsed_total_us >= gate->policy.unfilled_after_us &&
	       !history_has(&engine->history, record->key.hash) &&
	       (!gate->ever_filled || gate->last_filled_us >= record->first_lease_us);
}

static void unfilled(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct record *record = flight->record;

	if (!record->unfilled) {
		record->unfilled = true;
		record->unfilled_span_us = flight->span_us;
		flight->gate->counters.unfilled++;
		engine_remark(engine, REMARK_UNFILLED, flight->gate, &record->key, NULL, record->lapsed_total_us,
			      record->unfilled_span_us);
	} else {
		record->unfilled_span_us = sat_min(sat_mul(record->unfilled_span_us, 2), SPAN_MAX_US);
	}
	record->unfilled_until_us = sat_add(now_us, record->unfilled_span_us);
	flight_unlease(engine, flight);
	flight->ending = true;
	while (!list_empty(&flight->waiters))
		ask_answer(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), ANSWER_PASS, now_us);
	flight_end(engine, flight, "unfilled", now_us);
}

static void remember_lapse(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct record *record = flight->record;
	const struct gate_policy *policy = &flight->gate->policy;

	flight->gate->counters.lapsed++;
	record_past(record, flight);
	record->lapses++;
	record->lapsed_total_us = sat_add(record->lapsed_total_us, flight->span_us);
	if (flight->holder == HOLDER_LINK) /* the lease of a token is not learnt */
		record->lease_span_us =
			sat_min(sat_mul(flight->span_us, 2), sat_max(policy->lease_us, flight->span_us));
	record->remember_until_us = sat_add(now_us, sat_max(REMEMBER_US, sat_mul(2, record->lease_span_us)));
	engine_remark(engine, REMARK_LAPSED, flight->gate, &record->key, NULL, flight->span_us,
		      lease_span(flight, flight->holder));
}

/* Over before its time since its leader's connection has closed. A waiter is given the lease when every loop has read
 * its closes; without waiters what is known of the close stays for the next ask. */
static void ended_by_close(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct record *record = flight->record;

	if (flight->sent) {
		record->closes++;
		record_past(record, flight);
		record->remember_until_us = sat_max(record->remember_until_us, sat_add(now_us, REMEMBER_US));
	}
	flight_unlease(engine, flight);
	flight->handover_us = sat_add(now_us, HANDOVER_DELAY_US);
	if (list_empty(&flight->waiters))
		flight_end(engine, flight, "abandon", now_us);
	else
		flight_schedule(engine, flight);
}

void flight_lapse(struct engine *engine, struct flight *flight, int64_t now_us)
{
	if (flight->observed) {
		flight_end(engine, flight, "lapse", now_us);
		return;
	}
	if (flight->void_) { /* an overtaken load whose time is over: nobody may wait for it any more */
		flight_fail(engine, flight, "the load did not end in time", now_us);
		return;
	}
	if (flight->holder == HOLDER_LOAD) {
		flight->gate->counters.load_timeouts++;
		engine_remark(engine, REMARK_LOAD_TIMEOUT, flight->gate, &flight->record->key, NULL, flight->span_us,
			      0);
		flight_fail(engine, flight, "the load did not end within load_timeout", now_us);
		return;
	}
	if (flight->cut_short) {
		ended_by_close(engine, flight, now_us);
		return;
	}
	blocked_lapsed(engine, flight, now_us);
	remember_lapse(engine, flight, now_us);
	if (flight->holder == HOLDER_LINK && is_unfilled(engine, flight)) {
		unfilled(engine, flight, now_us);
		return;
	}
	flight_unlease(engine, flight);
	flight_hand_over(engine, flight, now_us);
}

/* When the lease of a leader that has just closed ends: a client may compute on, and SET from another connection. */
static int64_t end_after_close(const struct flight *flight, int64_t now_us)
{
	const struct record *record = flight->record;
	int64_t span = sat_scale(gate_slowest_us(flight->gate), 1250);

	if (!flight->sent || flight->holder == HOLDER_TOKEN) /* nobody computes */
		return now_us;
	if (span == 0)
		return record->closes == 0 ? now_us : flight->end_us;
	for (uint32_t i = 0; i < record->closes && span < SPAN_MAX_US; i++)
		span = sat_mul(span, 2);
	return sat_max(sat_min(flight->end_us, sat_add(flight->start_us, span)), now_us);
}

void flight_leader_closed(struct engine *engine, struct flight *flight, int64_t now_us)
{
	int64_t end = end_after_close(flight, now_us);

	flight->gate->counters.closed_leaders++;
	flight->leader_closed_us = now_us;
	list_remove(&flight->in_link);
	list_remove(&flight->in_overdue);
	flight->overdue = false;
	flight->leader = NULL;
	flight->avoid_peer = flight->leader_peer;
	flight->cut_short = end < flight->end_us;
	flight->end_us = end;
	if (flight->cut_short && end == now_us)
		ended_by_close(engine, flight, now_us);
	else
		flight_schedule(engine, flight);
}

/* ---- hand-over ------------------------------------------------------------------------------------------------ */

static struct ask *choose_waiter(const struct flight *flight)
{
	struct ask *second = NULL;

	LIST_EACH (node, &flight->waiters) {
		struct ask *ask = LIST_ENTRY(node, struct ask, in_flight);

		if (!ask_may_lead(ask))
			continue;
		if (flight->avoid_peer == 0 || ask->link == NULL || ask->link->peer->serial != flight->avoid_peer)
			return ask;
		if (second == NULL)
			second = ask;
	}
	return second;
}

static void give_lease(struct engine *engine, struct flight *flight, struct ask *ask, int64_t now_us)
{
	flight->gate->counters.handed_over++;
	ask->handed_over = true;
	flight_grant(engine, flight, ask_holder(ask), ask->link, now_us);
	flight->holder_pointer = ask->holder;
	ask->token = flight->token;
	ask->lease_us = flight->span_us;
	ask_answer(engine, ask, ANSWER_LEAD, now_us);
}

/* The lease is free: one waiter whose reply can leave is given it. Where all waiters are members of commands that wait
 * for something else too, whoever asks next is given it, and the first of them is taken out to do so as soon as nothing
 * else holds it; after a while the next. */
void flight_hand_over(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct ask *ask;

	assert(flight->holder == HOLDER_NONE);
	if (list_empty(&flight->waiters)) {
		flight_end(engine, flight, "lapse", now_us);
		return;
	}
	if (flight->gate->policy.leader == GATE_ORIGIN) {
		flight_order_load(engine, flight, now_us);
		return;
	}
	ask = choose_waiter(flight);
	if (ask != NULL) {
		give_lease(engine, flight, ask, now_us);
		return;
	}
	flight->vacant = true;
	ask_withdraw(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), now_us);
	flight->handover_us = sat_add(now_us, RETRY_DELAY_US);
	if (list_empty(&flight->waiters))
		flight_end(engine, flight, "lapse", now_us);
	else
		flight_schedule(engine, flight);
}

/* A load reported an error, or its time is over: shared with those who wait, then remembered for a growing time. */
void flight_fail(struct engine *engine, struct flight *flight, const char *text, int64_t now_us)
{
	struct record *record = flight->record;
	const struct gate_policy *policy = &flight->gate->policy;

	flight->gate->counters.load_errors++;
	strncpy(engine->error, text, sizeof(engine->error) - 1);
	if (!flight->void_) {
		int64_t backoff = policy->error_backoff_us;

		for (uint32_t i = 0; i < record->failures && backoff < policy->error_backoff_max_us; i++)
			backoff = sat_mul(backoff, 2);
		record->failures += record->failures < 64;
		record->backoff_until_us = sat_add(now_us, sat_min(backoff, policy->error_backoff_max_us));
		memcpy(record->error, engine->error, sizeof(record->error));
	}
	if (flight->holder == HOLDER_LOAD && now_us >= flight->end_us)
		flight->canceled = flight->token;
	flight->ending = true;
	while (!list_empty(&flight->waiters))
		ask_error(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), HG_ERR_LOAD, engine->error,
			  0, now_us);
	flight_end(engine, flight, "fail", now_us);
}

void flight_due(struct engine *engine, struct flight *flight, int64_t now_us)
{
	if (flight->holder == HOLDER_NONE) {
		flight_hand_over(engine, flight, now_us);
		return;
	}
	if (now_us >= flight->end_us) {
		flight_lapse(engine, flight, now_us);
		return;
	}
	blocked_overdue(engine, flight, now_us);
}
