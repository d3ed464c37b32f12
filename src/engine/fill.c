/* fill.c - the ends of flights that come from outside: writes, fills with a token, invalidations; and the fence. */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

/* ---- writes by commands --------------------------------------------------------------------------------------- */

/* May another leader whose lease an invalidation has voided still write? */
static bool any_voided(const struct record *record)
{
	LIST_EACH (node, &record->nils) {
		const struct nil *nil = LIST_ENTRY(node, struct nil, in_record);

		if (nil->generation != record->generation && !nil->invalidated)
			return true;
	}
	return false;
}

/* A plain write inside the fence's window: may it be the work of a leader whose lease an invalidation has voided? */
static enum write_fate fence(struct engine *engine, struct record *record, const struct link *link, int64_t now_us)
{
	const struct gate_policy *policy = &record->gate->policy;
	struct nil *nil = link != NULL && !link->multiplexed ? nil_find(record, link) : NULL;

	if (now_us >= record->fence_until_us)
		return WRITE_STORE;
	if (nil != NULL && nil->generation == record->generation)
		return WRITE_STORE; /* it was given its nil after the invalidation: the new leader */
	if (nil != NULL && !nil->invalidated) {
		nil_forget(engine, record, nil);
		if (!any_voided(record))
			record->fence_until_us = 0; /* that was the old leader: the window is closed */
		return WRITE_FENCED;
	}
	switch (policy->late_set) {
	case GATE_LATE_CUT:
		return WRITE_CUT;
	case GATE_LATE_DROP:
		return WRITE_FENCED;
	case GATE_LATE_ACCEPT:
		break;
	}
	return WRITE_STORE;
}

/* When the load began that this write ends; HG_NEVER: it ends none. Whose lease has lapsed may write late, and a pool
 * takes any connection for it. A stranger ends what is under way, and most likely the first load of it. */
static int64_t load_start(const struct record *record, const struct link *link)
{
	const struct flight *flight = record->flight;
	int64_t start;

	if (flight != NULL && flight->holder == HOLDER_LINK && link != NULL && flight->leader == link)
		return flight->start_us;
	start = record_past_start(record, link);
	if (start != HG_NEVER)
		return start;
	if (flight == NULL || flight->holder == HOLDER_LOAD || flight->holder == HOLDER_CALLER)
		return HG_NEVER;
	if (record->past_len > 0)
		return record->past[0].start_us;
	return flight->holder != HOLDER_NONE ? flight->start_us : HG_NEVER;
}

static void learn(struct gate *gate, int64_t took_us)
{
	gate_learn(gate, took_us);
	gate->counters.fills++;
	gate->counters.load_us = sat_add(gate->counters.load_us, took_us);
	gate->load_hist[log2_bucket(took_us)]++;
}

static void gate_filled(struct engine *engine, struct gate *gate, const struct key *key, int64_t now_us)
{
	gate->ever_filled = true;
	gate->last_filled_us = now_us;
	history_add(&engine->history, key->hash);
}

enum write_fate engine_write(struct engine *engine, const struct key *key, struct gate *gate, struct link *link,
			     bool plain, int64_t ttl_us, int64_t now_us, struct times *out_times, bool *out_flight)
{
	struct record *record = record_find(engine, key);
	struct gate_policy policy = gate->policy;
	enum write_fate fate = WRITE_STORE;
	int64_t took = 0, start = HG_NEVER;

	engine->calls++;
	*out_flight = false;
	if (record != NULL && plain && gate->policy.mode == GATE_HOLD)
		fate = fence(engine, record, link, now_us);
	if (fate == WRITE_FENCED) {
		gate->counters.fenced++;
		return fate;
	}
	if (record != NULL)
		start = load_start(record, link);
	if (start != HG_NEVER) {
		took = sat_max(sat_sub(now_us, start), 1);
		*out_flight = true;
	}
	if (fate == WRITE_CUT) {
		int64_t median = gate_median_us(gate);

		gate->counters.cut++;
		ttl_us = sat_min(ttl_us, median > 0 ? median : CUT_UNMEASURED_US);
	}
	if (policy.leader == GATE_ORIGIN)
		policy.jitter_ppm = 0; /* that of the loads: who writes says how long */
	gate_times(&policy, ttl_us, took, *out_flight && fate == WRITE_STORE, &engine->dice, now_us, out_times);
	/* A cut life has no grace: what may be wrong is not served for longer. */
	if (fate == WRITE_CUT)
		out_times->dead_at_us = out_times->fresh_until_us;
	return fate;
}

static void answer_value(struct engine *engine, struct flight *flight, void *value, int64_t now_us)
{
	struct gate_counters *counters = &flight->gate->counters;

	flight->ending = true;
	while (!list_empty(&flight->waiters)) {
		struct ask *ask = LIST_ENTRY(flight->waiters.next, struct ask, in_flight);

		counters->avoided += ask->verdict != VERDICT_LEAD; /* its own load was no other's */
		flight->gate->wait_hist[log2_bucket(now_us - ask->arrived_us)]++;
		ask->value = value;
		if (engine->config.keep != NULL)
			engine->config.keep(value);
		ask_answer(engine, ask, ANSWER_VALUE, now_us);
	}
}

void engine_wrote(struct engine *engine, const struct key *key, struct gate *gate, struct link *link, void *value,
		  int64_t now_us)
{
	struct record *record = record_find(engine, key);
	struct flight *flight;
	struct nil *nil;
	int64_t start;

	gate_filled(engine, gate, key, now_us);
	if (record == NULL)
		return;
	start = load_start(record, link);
	if (start != HG_NEVER && !(record->flight != NULL && record->flight->observed))
		learn(gate, sat_max(sat_sub(now_us, start), 1));
	nil = link != NULL ? nil_find(record, link) : NULL;
	if (nil != NULL)
		nil_forget(engine, record, nil);
	record_filled(engine, record);
	flight = record->flight;
	if (flight == NULL) {
		record_settle(engine, record, now_us);
		return;
	}
	blocked_prove(engine, flight, link);
	flight_unlease(engine, flight);
	answer_value(engine, flight, value, now_us);
	flight_end(engine, flight, "fill", now_us);
}

/* ---- fills with a token --------------------------------------------------------------------------------------- */

static bool token_equal(struct token one, struct token two)
{
	return one.serial == two.serial && one.boot == two.boot && one.serial != 0;
}

/* The flight that `token` leads: the key's own, or a load that an invalidation overtook. */
static struct flight *find_led(struct record *record, struct token token)
{
	if (record->flight != NULL && token_equal(record->flight->token, token))
		return record->flight;
	LIST_EACH (node, &record->voids) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_voids);

		if (token_equal(flight->token, token))
			return flight;
	}
	return NULL;
}

static void fill_value(struct engine *engine, struct record *record, struct flight *flight, struct fill *fill,
		       int64_t now_us)
{
	struct gate *gate = flight->gate;
	const struct gate_policy *policy = &gate->policy;
	bool absent = fill->kind == FILL_ABSENT;
	int64_t took = sat_max(sat_sub(now_us, flight->start_us), 1);
	int64_t ttl = fill->ttl_us != 0 ? fill->ttl_us : absent ? policy->absent_ttl_us : policy->ttl_us;

	/* Only clients' fills teach the lease of clients. */
	if (flight->holder == HOLDER_LINK || policy->leader != GATE_CLIENT)
		learn(gate, took);
	else
		gate->counters.fills++;
	gate->counters.absences += absent;
	fill->store = !flight->void_ && ttl > 0;
	gate_times(policy, ttl, took, !absent, &engine->dice, now_us, &fill->times);
	if (absent)
		fill->times.dead_at_us = fill->times.fresh_until_us;
	if (!flight->void_) {
		gate_filled(engine, gate, &record->key, now_us);
		record_filled(engine, record);
	}
	flight_unlease(engine, flight);
	flight->ending = true;
	if (absent) {
		while (!list_empty(&flight->waiters))
			ask_answer(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), ANSWER_ABSENT,
				   now_us);
	} else {
		answer_value(engine, flight, fill->value, now_us);
	}
	flight_end(engine, flight, absent ? "absent" : "fill", now_us);
}

/* Not to be cached: those who wait share the value where there is one, else each goes on for itself, side by side;
 * and so do later askers for a while. */
static void fill_nostore(struct engine *engine, struct record *record, struct flight *flight, struct fill *fill,
			 int64_t now_us)
{
	flight->gate->counters.nostores++;
	if (!flight->void_) {
		record_filled(engine, record);
		record->pass_until_us = sat_add(now_us, flight->gate->policy.lease_us);
	}
	flight_unlease(engine, flight);
	flight->ending = true;
	if (fill->kind == FILL_NOSTORE && fill->value != NULL)
		answer_value(engine, flight, fill->value, now_us);
	while (!list_empty(&flight->waiters))
		ask_answer(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), ANSWER_PASS, now_us);
	flight_end(engine, flight, "nostore", now_us);
}

void engine_write_refused(struct engine *engine, const struct key *key, int64_t now_us)
{
	struct record *record = record_find(engine, key);
	struct fill fill = {.kind = FILL_PRIVATE};

	engine->calls++;
	if (record != NULL && record->flight != NULL && !record->flight->observed)
		fill_nostore(engine, record, record->flight, &fill, now_us);
}

uint32_t engine_waiters(struct engine *engine, const struct key *key)
{
	const struct record *record = record_find(engine, key);

	return record != NULL && record->flight != NULL ? record->flight->waiters_len : 0;
}

bool engine_load_wanted(struct engine *engine, const struct key *key, struct token token)
{
	struct record *record = record_find(engine, key);
	const struct flight *flight = record != NULL ? find_led(record, token) : NULL;

	return flight != NULL && (!flight->void_ || flight->waiters_len > 0);
}

bool engine_fill(struct engine *engine, const struct key *key, struct token token, struct fill *fill, int64_t now_us)
{
	struct record *record = record_find(engine, key);
	struct flight *flight = record != NULL ? find_led(record, token) : NULL;

	engine->calls++;
	fill->store = false;
	if (flight == NULL)
		return false;
	/* A lease that is over is over even where its timer has not run yet (a suspended machine). */
	if (now_us >= flight->end_us && !flight->void_) {
		flight_lapse(engine, flight, now_us);
		return false;
	}
	if (flight->void_ && flight->holder == HOLDER_TOKEN)
		return false;
	list_remove(&flight->in_orders);
	switch (fill->kind) {
	case FILL_VALUE:
	case FILL_ABSENT:
		fill_value(engine, record, flight, fill, now_us);
		break;
	case FILL_NOSTORE:
	case FILL_PRIVATE:
		fill_nostore(engine, record, flight, fill, now_us);
		break;
	case FILL_FAIL:
		flight_fail(engine, flight, fill->text, now_us);
		break;
	case FILL_ABANDON:
		flight_unlease(engine, flight);
		if (flight->void_ && !list_empty(&flight->waiters))
			flight_fail(engine, flight, "the load was abandoned", now_us);
		else
			flight_hand_over(engine, flight, now_us);
		break;
	}
	return true;
}

bool engine_token_live(struct engine *engine, const struct key *key, struct token token, int64_t now_us)
{
	struct record *record = record_find(engine, key);

	return record != NULL && record->flight != NULL && token_equal(record->flight->token, token) &&
	       now_us < record->flight->end_us;
}

int64_t engine_renew(struct engine *engine, const struct key *key, struct token token, int64_t now_us)
{
	struct record *record = record_find(engine, key);
	struct flight *flight;
	int64_t most;

	engine->calls++;
	if (!engine_token_live(engine, key, token, now_us))
		return 0;
	flight = record->flight;
	most = sat_add(flight->start_us, flight->gate->policy.load_timeout_us);
	flight->end_us = sat_max(sat_min(sat_add(now_us, flight->span_us), most), flight->end_us);
	flight_schedule(engine, flight);
	return flight->end_us - now_us;
}

/* ---- invalidation --------------------------------------------------------------------------------------------- */

/* A load of the program's or of a caller goes on beside its key: it answers who asked before, and stores nothing. */
static void overtake_load(struct record *record, struct flight *flight)
{
	flight->void_ = true;
	record->flight = NULL;
	list_push_back(&record->voids, &flight->in_voids);
}

/* A client's lease is void at once: one of those who wait is given a new one. */
static void void_lease(struct engine *engine, struct flight *flight, int64_t now_us)
{
	struct record *record = flight->record;

	/* A nil that is not known to be written is leaving about now, or begins a load of after the invalidation. */
	if (flight->holder == HOLDER_LINK)
		record->fence_until_us = sat_max(
			record->fence_until_us,
			flight->sent ? flight->end_us : sat_min(flight->end_us, sat_add(now_us, flight->span_us)));
	record->first_lease_us = HG_NEVER;
	record->past_len = 0;
	flight_unlease(engine, flight);
	if (list_empty(&flight->waiters))
		flight_end(engine, flight, "void", now_us);
	else
		flight_hand_over(engine, flight, now_us);
}

static void invalidate(struct engine *engine, struct record *record, struct link *link, int64_t now_us)
{
	struct flight *flight = record->flight;
	struct nil *nil = link != NULL ? nil_find(record, link) : NULL;

	record->generation++;
	if (nil != NULL)
		nil->invalidated = true;
	record->backoff_until_us = 0; /* the origin has changed: ask it again */
	record->failures = 0;
	record->pass_until_us = 0;
	if (flight == NULL) {
		record_settle(engine, record, now_us);
		return;
	}
	flight->gate->counters.invalidations++;
	if (flight->observed)
		flight_end(engine, flight, "void", now_us);
	else if (flight->holder == HOLDER_LOAD || flight->holder == HOLDER_CALLER)
		overtake_load(record, flight);
	else if (flight->holder != HOLDER_NONE)
		void_lease(engine, flight, now_us);
}

void engine_invalidate(struct engine *engine, const struct key *key, struct link *link, int64_t now_us)
{
	struct record *record = record_find(engine, key);

	engine->calls++;
	if (record != NULL)
		invalidate(engine, record, link, now_us);
}

void engine_flush(struct engine *engine, uint8_t space, struct link *link, int64_t now_us)
{
	struct map_cursor cursor = {0};
	struct map_node *node;

	engine->calls++;
	while ((node = map_walk(&engine->records, &cursor)) != NULL) {
		struct record *record = LIST_ENTRY(node, struct record, by_key);

		if (space == 255 || record->key.space == space)
			invalidate(engine, record, link, now_us);
	}
}

/* The flight's key is under another gate, or its gate in another mode. */
static void end_protection(struct engine *engine, struct flight *flight, int64_t now_us)
{
	flight->ending = true;
	while (!list_empty(&flight->waiters))
		ask_answer(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight), ANSWER_PASS, now_us);
	flight->ending = false;
	if (flight->void_)
		return;
	if (flight->holder == HOLDER_LOAD || flight->holder == HOLDER_CALLER)
		overtake_load(flight->record, flight);
	else
		flight_end(engine, flight, "void", now_us);
}

void engine_gates_changed(struct engine *engine, struct gate *(*gate_of)(void *arg, const struct key *key), void *arg,
			  int64_t now_us)
{
	engine->calls++;
	LIST_EACH_SAFE (node, after, &engine->flights) {
		struct flight *flight = LIST_ENTRY(node, struct flight, in_engine);
		const struct gate *gate = gate_of(arg, &flight->record->key);
		enum gate_mode mode = flight->observed ? GATE_OBSERVE : GATE_HOLD;

		if (gate != flight->gate || gate->policy.mode != mode)
			end_protection(engine, flight, now_us);
	}
}
