/* commands_herd_show.c - what operators look at: HERD EXPLAIN, GATES, FLIGHTS, RECENT; and the switch HERD GATE. Maps
 * in RESP3, flat arrays in RESP2. The fields are documented in the manual page. */
#include "serve/commands_herd.h"

#include "base/sat.h"

#define SHOWN_MAX 128u

/* ---- fields --------------------------------------------------------------------------------------------------- */

static void text_field(struct call *call, const char *name, const char *text)
{
	resp_write_bulk(call->out, bytes_of(name));
	resp_write_bulk(call->out, bytes_of(text));
}

static void number_field(struct call *call, const char *name, int64_t number)
{
	resp_write_bulk(call->out, bytes_of(name));
	resp_write_integer(call->out, number);
}

static const char *mode_name(enum gate_mode mode)
{
	return mode == GATE_HOLD ? "hold" : mode == GATE_OBSERVE ? "observe" : "off";
}

static const char *state_name(enum freshness state)
{
	return state == FRESH ? "fresh" : state == STALE ? "stale" : "absent";
}

void hold_printable(char *out, size_t room, struct hg_bytes bytes)
{
	const unsigned char *at = bytes.at;
	size_t len = bytes.len < room - 1 ? bytes.len : room - 1;

	for (size_t i = 0; i < len; i++)
		out[i] = at[i] >= 0x20 && at[i] < 0x7f ? (char)at[i] : '?';
	out[len] = '\0';
}

/* ---- EXPLAIN -------------------------------------------------------------------------------------------------- */

struct seen {
	enum freshness state;
	int64_t fresh_ms, dead_ms, cost_us;
	bool absence;
};

static void see(struct call *call, const struct key *key, struct seen *out)
{
	const struct entry *entry;

	*out = (struct seen){.state = ABSENT};
	memory_read_begin(call->loop->reader);
	entry = memory_find(call->server->memory, key);
	out->state = entry_state(entry, call->now_us);
	if (out->state != ABSENT) {
		out->fresh_ms = entry->fresh_until_us == HG_NEVER
					? -1
					: sat_max(sat_sub(entry->fresh_until_us, call->now_us), 0) / 1000;
		out->dead_ms = entry->dead_at_us == HG_NEVER ? -1 : sat_sub(entry->dead_at_us, call->now_us) / 1000;
		out->cost_us = entry->cost_us;
		out->absence = entry->flags & ENTRY_ABSENCE;
	}
	memory_read_end(call->loop->reader);
}

static const char *advice_for(const struct hold_gate *gate, const struct explain *explain)
{
	if (gate == NULL)
		return "no gate covers this key: it is answered as plain Redis does";
	if (hold_mode(gate) != GATE_HOLD)
		return "the gate only observes: HERD GATE switches it to hold";
	if (explain->unfilled)
		return "nobody SETs this key after a miss; it is not held for now";
	if (explain->exempt_link || explain->exempt_peer)
		return "holding blocked this client's own leader: it is not held for now; use grace, or a larger pool";
	if (explain->lapses > 0)
		return "its leases lapse: the load is slower than the lease, or it fails without a SET";
	if (gate->policy.grace_us == 0)
		return "grace is 0: after expiry everybody waits; a grace would serve the old value meanwhile";
	return "";
}

void herd_explain(struct call *call)
{
	struct key key;
	const struct hold_gate *gate;
	struct explain explain = {.holder = "none"};
	struct seen seen;

	if (call->args_len != 3) {
		reply_subcommand_arity(call, "herd|explain");
		return;
	}
	key = keyspace_key(call, call->args[2]);
	gate = hold_gate_of(call->server, call->args[2]);
	see(call, &key, &seen);
	hold_enter(call->server->hold);
	if (gate != NULL)
		engine_explain(call->server->hold->engine, &key, gate->gate, &call->conn->hold->link, call->now_us,
			       &explain);
	hold_leave(call->server->hold);
	resp_write_map(call->out, call->resp, 25);
	text_field(call, "gate", gate != NULL ? gate->gate->name : "");
	text_field(call, "mode", gate != NULL ? mode_name(hold_mode(gate)) : "off");
	text_field(call, "filled_by", gate == NULL ? "" : gate->origin != NULL ? gate->origin_name : "client");
	text_field(call, "state", state_name(seen.state));
	number_field(call, "absence", seen.absence);
	number_field(call, "fresh_ms", seen.fresh_ms);
	number_field(call, "grace_ends_ms", seen.dead_ms);
	number_field(call, "cost_us", seen.cost_us);
	text_field(call, "leader", explain.holder);
	number_field(call, "leader_client", (int64_t)explain.leader_link);
	number_field(call, "lease_left_ms", explain.lease_left_us / 1000);
	number_field(call, "running_ms", explain.running_us / 1000);
	number_field(call, "waiters", explain.waiters);
	number_field(call, "lapses", explain.lapses);
	number_field(call, "failures", explain.failures);
	number_field(call, "filled_before", explain.filled_before);
	number_field(call, "unfilled", explain.unfilled);
	number_field(call, "unfilled_ms", explain.unfilled_left_us / 1000);
	number_field(call, "fenced_ms", explain.fence_left_us / 1000);
	number_field(call, "backoff_ms", explain.backoff_left_us / 1000);
	number_field(call, "uncacheable_ms", explain.pass_left_us / 1000);
	number_field(call, "not_held_connection", explain.exempt_link);
	number_field(call, "not_held_peer", explain.exempt_peer);
	text_field(call, "last_error", explain.last_error);
	text_field(call, "advice", advice_for(gate, &explain));
}

/* ---- GATES ---------------------------------------------------------------------------------------------------- */

/* The upper end of the bucket in which the share lies, in milliseconds. */
static int64_t quantile_ms(const uint64_t histogram[36], double share)
{
	uint64_t total = 0, sum = 0;

	for (unsigned i = 0; i < 36; i++)
		total += histogram[i];
	for (unsigned i = 0; i < 36 && total > 0; i++) {
		sum += histogram[i];
		if ((double)sum >= share * (double)total)
			return (INT64_C(2) << i) / 1000;
	}
	return 0;
}

static const char *gate_advice(const struct hold_gate *gate, const struct gate_counters *counters)
{
	if (hold_mode(gate) == GATE_OBSERVE && counters->would_wait == 0)
		return "";
	if (hold_mode(gate) == GATE_OBSERVE)
		return strcmp(gate->gate->name, "*") != 0 ? "holding would have saved loads: HERD GATE <pattern> hold"
							  : "holding would have saved loads: the herd_prefix lines of "
							    "INFO herdgate say of which keys; give those a gate";
	if (gate->gate->looked_again > 0 && !gate->policy.own_lock)
		return "leaders ask for their own key before they fill it: set own_lock = yes if they have a lock of "
		       "their own";
	if (counters->released_blocked > 0)
		return "holding blocked leaders: use grace, larger pools, or a client of its own for gated keys";
	if (counters->unfilled > 0)
		return "some keys are never SET after a miss: exclude them, or raise unfilled_after";
	if (counters->gave_up > counters->waited / 100)
		return "clients give up while held: raise their read time-out, or lower wait";
	if (counters->lapsed > counters->fills / 10 && counters->lapsed > 1)
		return "leases lapse: loads are slower than the lease, or end without a SET";
	if (gate->policy.grace_us == 0 && counters->waited > 0)
		return "with a grace nobody would have waited for an expired value";
	return "";
}

static void show_gate(struct call *call, const struct hold_gate *gate)
{
	const struct gate *known = gate->gate;
	struct gate_counters sum;
	uint64_t leases;

	hold_counters(call->server, gate->number, &sum);
	leases = sum.loads > 0 ? sum.loads : 1;
	resp_write_map(call->out, call->resp, 16);
	text_field(call, "gate", known->name);
	text_field(call, "mode", mode_name(hold_mode(gate)));
	text_field(call, "filled_by", gate->origin != NULL ? gate->origin_name : "client");
	number_field(call, "asks", (int64_t)(sum.fresh + sum.stale + sum.led + sum.waited + sum.passed + sum.refused));
	number_field(call, "fresh", (int64_t)sum.fresh);
	number_field(call, "stale", (int64_t)sum.stale);
	number_field(call, "led", (int64_t)sum.led);
	number_field(call, "waited", (int64_t)sum.waited);
	number_field(call, "passed", (int64_t)sum.passed);
	number_field(call, "refused", (int64_t)sum.refused);
	number_field(call, "would_wait", (int64_t)sum.would_wait);
	number_field(call, "fill_p50_ms", quantile_ms(known->load_hist, 0.50));
	number_field(call, "fill_p99_ms", quantile_ms(known->load_hist, 0.99));
	number_field(call, "filled_percent",
		     (int64_t)(sat_min((int64_t)sum.fills, (int64_t)leases) * 100 / (int64_t)leases));
	number_field(call, "lease_ms", gate_lease_us(known) / 1000);
	text_field(call, "advice", gate_advice(gate, &sum));
}

void herd_gates(struct call *call)
{
	struct gates *gates = hold_gates(call->server);

	if (call->args_len != 2) {
		reply_subcommand_arity(call, "herd|gates");
		return;
	}
	hold_enter(call->server->hold);
	resp_write_array(call->out, gates->len);
	for (uint32_t i = 0; i < gates->len; i++)
		show_gate(call, &gates->list[i]);
	hold_leave(call->server->hold);
}

/* ---- the switch ----------------------------------------------------------------------------------------------- */

static bool mode_of(struct hg_bytes arg, enum gate_mode *out)
{
	if (arg_is(arg, "HOLD"))
		*out = GATE_HOLD;
	else if (arg_is(arg, "OBSERVE"))
		*out = GATE_OBSERVE;
	else if (arg_is(arg, "OFF"))
		*out = GATE_OFF;
	else
		return false;
	return true;
}

static struct hold_gate *gate_named(struct gates *gates, struct hg_bytes name)
{
	for (uint32_t i = 0; i < gates->len; i++) {
		if (bytes_equal(pattern_text(gates->list[i].pattern), name))
			return &gates->list[i];
	}
	return NULL;
}

void herd_gate(struct call *call)
{
	struct hold *hold = call->server->hold;
	struct hold_gate *gate;
	enum gate_mode mode;

	if (call->args_len != 4) {
		reply_subcommand_arity(call, "herd|gate");
		return;
	}
	gate = gate_named(hold_gates(call->server), call->args[2]);
	if (gate == NULL) {
		resp_write_error(call->out, bytes_of("ERR no such gate (HERD GATES lists them)"));
		return;
	}
	if (!mode_of(call->args[3], &mode)) {
		resp_write_error(call->out, bytes_of("ERR mode must be hold, observe or off"));
		return;
	}
	hold_enter(hold);
	atomic_store_explicit(&gate->mode, (int)mode, memory_order_relaxed);
	gate->gate->policy.mode = mode;
	hold_gates_changed(hold);
	hold_leave(hold);
	server_log(LOG_WARN, "gate_switched", "gate=\"%s\" mode=%s client=%llu", gate->gate->name, mode_name(mode),
		   (unsigned long long)call->conn->id);
	reply_ok(call);
}

/* ---- FLIGHTS, RECENT ------------------------------------------------------------------------------------------ */

struct shown {
	uint32_t len;
	struct {
		char key[64], gate[64];
		const char *holder;
		int64_t running_us, left_us;
		uint32_t waiters, db;
		bool overtaken;
	} list[SHOWN_MAX];
};

static void collect(void *arg, const struct flight_view *view)
{
	struct shown *shown = arg;

	hold_printable(shown->list[shown->len].key, 64, view->key.bytes);
	hold_printable(shown->list[shown->len].gate, 64, bytes_of(view->gate->name));
	shown->list[shown->len].holder = view->holder;
	shown->list[shown->len].running_us = view->running_us;
	shown->list[shown->len].left_us = view->lease_left_us;
	shown->list[shown->len].waiters = view->waiters;
	shown->list[shown->len].db = view->key.space;
	shown->list[shown->len].overtaken = view->void_;
	shown->len++;
}

void herd_flights(struct call *call)
{
	struct shown *shown = alloc_get(call->server->allocator, sizeof(*shown));

	if (shown == NULL) {
		keyspace_refuse_memory(call);
		return;
	}
	shown->len = 0;
	hold_enter(call->server->hold);
	engine_flights(call->server->hold->engine, SHOWN_MAX, call->now_us, collect, shown);
	hold_leave(call->server->hold);
	resp_write_array(call->out, shown->len);
	for (uint32_t i = 0; i < shown->len; i++) {
		resp_write_map(call->out, call->resp, 8);
		text_field(call, "key", shown->list[i].key);
		number_field(call, "db", shown->list[i].db);
		text_field(call, "gate", shown->list[i].gate);
		text_field(call, "leader", shown->list[i].holder);
		number_field(call, "running_ms", shown->list[i].running_us / 1000);
		number_field(call, "lease_left_ms", shown->list[i].left_us / 1000);
		number_field(call, "waiters", shown->list[i].waiters);
		number_field(call, "overtaken", shown->list[i].overtaken);
	}
	alloc_free(call->server->allocator, shown);
}

void herd_recent(struct call *call)
{
	struct recent list[ENGINE_RECENT];
	uint32_t len;

	hold_enter(call->server->hold);
	len = engine_recent(call->server->hold->engine, list);
	hold_leave(call->server->hold);
	resp_write_array(call->out, len);
	for (uint32_t i = 0; i < len; i++) {
		resp_write_map(call->out, call->resp, 7);
		text_field(call, "key", list[i].key);
		text_field(call, "gate", list[i].gate->name);
		text_field(call, "outcome", list[i].outcome);
		number_field(call, "cost_us", list[i].took_us);
		number_field(call, "herd", list[i].herd);
		number_field(call, "leases", list[i].leases);
		number_field(call, "ended_ms_ago", sat_sub(call->now_us, list[i].ended_us) / 1000);
	}
}
