/* hold_ask.c - GET, MGET and HERD LEASE: answered from the store at once where that can be, else by the engine.
 *
 * The quick way takes no lock: every key is fresh, and no early refresh was drawn. Otherwise the keys are looked at
 * again under their shards' locks and the engine decides; both locks are held from the look to the decision, so a fill
 * that came just before is found. A command that is held keeps copies of its keys, and comes back through the loop's
 * inbox when it is answered or when its turn has come to be looked up again. */
#include "serve/hold_inside.h"

#include "base/alloc.h"
#include "base/sat.h"

#define VIEWS_ON_STACK 16u

/* ---- the quick way -------------------------------------------------------------------------------------------- */

enum quick { QUICK_FRESH, QUICK_ABSENCE, QUICK_CHOSEN, QUICK_NO };

static void times_of(const struct entry *entry, struct times *out)
{
	*out = (struct times){entry->fresh_until_us, entry->dead_at_us, entry->early_us, entry->scale_us,
			      entry->cost_us};
}

static bool drawn(struct loop *loop, const struct entry *entry, int64_t now_us)
{
	struct times times;

	if (entry->early_us == 0 || now_us < sat_sub(entry->fresh_until_us, entry->early_us) ||
	    !(entry->flags & ENTRY_FLIGHT))
		return false;
	times_of(entry, &times);
	return gate_early_draw(&times, dice_unit(&loop->dice), now_us);
}

static enum quick judge(struct loop *loop, const struct entry *entry, int64_t now_us)
{
	if (entry_state(entry, now_us) != FRESH)
		return QUICK_NO;
	if (drawn(loop, entry, now_us))
		return QUICK_CHOSEN;
	return entry->flags & ENTRY_ABSENCE ? QUICK_ABSENCE : QUICK_FRESH;
}

static void count_hit(struct loop *loop, const struct entry *entry)
{
	counter_add(&loop->fresh[entry->gate], 1);
	counter_add(&loop->counters.hits, 1);
}

/* The connection has a value of a key for which it may have been given nil before: the fence must know. */
static void tell_asked(struct call *call, const struct key *key)
{
	struct hold *hold = call->server->hold;

	if (atomic_load_explicit(&call->conn->hold->link.nils_len, memory_order_relaxed) == 0)
		return;
	hold_enter(hold);
	engine_asked(hold->engine, key, &call->conn->hold->link);
	hold_leave(hold);
}

static bool quick_get(struct call *call, const struct key *key, enum quick *out_quick)
{
	const struct entry *entry;

	memory_read_begin(call->loop->reader);
	entry = memory_find(call->server->memory, key);
	*out_quick = judge(call->loop, entry, call->now_us);
	if (*out_quick == QUICK_FRESH) {
		count_hit(call->loop, entry);
		call_bulk_entry(call, entry);
	} else if (*out_quick == QUICK_ABSENCE) {
		count_hit(call->loop, entry);
		resp_write_null(call->out, call->resp);
	}
	memory_read_end(call->loop->reader);
	return *out_quick <= QUICK_ABSENCE;
}

/* All members fresh? `*out_chosen`: the first that is not, and whether it was drawn for an early refresh. */
static bool all_fresh(struct call *call, uint32_t *out_first, enum quick *out_quick)
{
	for (uint32_t i = 1; i < call->args_len; i++) {
		struct key key = memory_key(call->server->memory, call->args[i], call->db);

		*out_quick = judge(call->loop, memory_find(call->server->memory, &key), call->now_us);
		if (*out_quick > QUICK_ABSENCE) {
			*out_first = i - 1;
			return false;
		}
	}
	return true;
}

static bool quick_mget(struct call *call, uint32_t *out_first, enum quick *out_quick)
{
	bool fresh;

	memory_read_begin(call->loop->reader);
	fresh = all_fresh(call, out_first, out_quick);
	if (fresh)
		resp_write_array(call->out, call->args_len - 1);
	for (uint32_t i = 1; fresh && i < call->args_len; i++) {
		struct key key = memory_key(call->server->memory, call->args[i], call->db);
		const struct entry *entry = memory_find(call->server->memory, &key);

		/* It may have been removed since: then another MGET would have seen it so, too. */
		if (entry == NULL || entry->flags & ENTRY_ABSENCE)
			resp_write_null(call->out, call->resp);
		else
			call_bulk_entry(call, entry);
		if (entry != NULL)
			count_hit(call->loop, entry);
	}
	memory_read_end(call->loop->reader);
	return fresh;
}

/* ---- looking under the locks ---------------------------------------------------------------------------------- */

struct looks {
	struct view *views;
	const struct entry **entries;
	struct view views_here[VIEWS_ON_STACK];
	const struct entry *entries_here[VIEWS_ON_STACK];
	const struct hg_allocator *allocator;
};

static bool looks_open(struct looks *looks, const struct hg_allocator *allocator, uint32_t len)
{
	looks->allocator = allocator;
	looks->views = looks->views_here;
	looks->entries = looks->entries_here;
	if (len <= VIEWS_ON_STACK)
		return true;
	looks->views = alloc_get(allocator, len * sizeof(*looks->views));
	looks->entries = alloc_get(allocator, len * sizeof(*looks->entries));
	return looks->views != NULL && looks->entries != NULL;
}

static void looks_close(struct looks *looks)
{
	if (looks->views != looks->views_here)
		alloc_free(looks->allocator, looks->views);
	if (looks->entries != looks->entries_here)
		alloc_free(looks->allocator, (void *)looks->entries);
}

static void look(struct loop *loop, const struct ask *ask, bool may_draw, int64_t now_us, struct view *out_view,
		 const struct entry **out_entry)
{
	const struct entry *entry = memory_find(loop->server->memory, &ask->key);

	*out_entry = entry;
	*out_view = (struct view){.state = entry_state(entry, now_us)};
	if (out_view->state == ABSENT)
		return;
	/* A key that nothing protects has no grace. */
	if (ask->gate == NULL && out_view->state == STALE) {
		out_view->state = ABSENT;
		return;
	}
	times_of(entry, &out_view->times);
	out_view->absence = entry->flags & ENTRY_ABSENCE;
	out_view->early = may_draw && out_view->state == FRESH && drawn(loop, entry, now_us);
}

/* ---- replies -------------------------------------------------------------------------------------------------- */

void hold_write_error(struct buffer *out, const struct ask *ask)
{
	const char *word = ask->error == HG_ERR_TIMEOUT                                ? "HERDWAIT"
			   : ask->error == HG_ERR_LIMIT || ask->error == HG_ERR_MEMORY ? "HERDFULL"
										       : "HERDFAIL";
	char line[256];
	int len = snprintf(line, sizeof(line), "%s %s", word, ask->text != NULL ? ask->text : "refused");

	if (ask->error == HG_ERR_BACKOFF && len > 0 && (size_t)len < sizeof(line))
		len += snprintf(line + len, sizeof(line) - (size_t)len, " (asked again in %lld ms)",
				(long long)(ask->retry_after_us + 999) / 1000);
	resp_write_error(out, (struct hg_bytes){line, sat_min(len, (int)sizeof(line) - 1)});
}

static void add_bulk(struct output *out, struct hg_bytes bytes, struct blob *blob)
{
	char head[24] = "$";
	size_t len;

	if (blob == NULL || bytes.len <= MEMORY_INLINE_MAX) {
		resp_write_bulk(output_tail(out), bytes);
		return;
	}
	len = 1 + resp_format_integer(head + 1, (int64_t)bytes.len);
	head[len] = '\r';
	head[len + 1] = '\n';
	buffer_add(output_tail(out), (struct hg_bytes){head, len + 2});
	output_blob(out, blob_ref(blob, 1));
	buffer_add(output_tail(out), bytes_of("\r\n"));
}

/* The value of an answered ask, or null. Returns whether it was a value. */
static bool add_answer(struct output *out, int resp, const struct ask *ask, const struct entry *entry)
{
	struct blob *blob = ask->answer == ANSWER_VALUE ? ask->value : NULL;

	if (ask->answer == ANSWER_LOOKED && entry != NULL) {
		add_bulk(out, entry_value(entry), entry_blob(entry));
		return true;
	}
	if (blob != NULL) {
		add_bulk(out, blob_bytes(blob), blob);
		return true;
	}
	resp_write_null(output_tail(out), resp);
	return false;
}

static const struct ask *failed_ask(const struct turn *turn)
{
	for (uint32_t i = 0; i < turn->asks_len; i++) {
		if (turn->asks[i].answer == ANSWER_ERROR)
			return &turn->asks[i];
	}
	return NULL;
}

void hold_write_failure(struct hold_turn *turn, struct output *out)
{
	const struct ask *failed = failed_ask(&turn->turn);

	if (failed == NULL)
		return;
	hold_write_error(output_tail(out), failed);
	turn->failed = true;
}

static void count_answer(struct loop *loop, bool value)
{
	counter_add(value ? &loop->counters.hits : &loop->counters.misses, 1);
}

/* [verdict, value or nil, token or nil, milliseconds] */
static void write_lease(struct hold_turn *turn, struct output *out, const struct entry *entry, enum freshness state)
{
	const struct ask *ask = &turn->asks[0];
	int resp = turn->resp;
	enum verdict verdict = ask->answer == ANSWER_LEAD    ? VERDICT_LEAD
			       : ask->answer == ANSWER_VALUE ? VERDICT_FRESH
			       : ask->answer == ANSWER_WAIT  ? VERDICT_WAIT
			       : ask->answer == ANSWER_PASS  ? VERDICT_PASS
							     : ask->verdict;
	char token[64];
	int len;

	resp_write_array(output_tail(out), 4);
	resp_write_bulk(output_tail(out), bytes_of(verdict_name(verdict)));
	if (ask->answer == ANSWER_LEAD && state != ABSENT && entry != NULL)
		add_bulk(out, entry_value(entry), entry_blob(entry));
	else
		(void)add_answer(out, resp, ask, entry);
	if (ask->answer == ANSWER_LEAD) {
		len = snprintf(token, sizeof(token), "%016llx-%llx", (unsigned long long)ask->token.boot,
			       (unsigned long long)ask->token.serial);
		resp_write_bulk(output_tail(out), (struct hg_bytes){token, (size_t)len});
	} else {
		resp_write_null(output_tail(out), resp);
	}
	resp_write_integer(output_tail(out), ask->lease_us / 1000);
}

/* Every member is answered: the reply. `looks` NULL: nothing was looked at again. */
static void write_reply(struct hold_turn *turn, struct output *out, const struct looks *looks)
{
	struct loop *loop = turn->conn->loop;

	if (turn->failed) {
		loop_count_error(loop, bytes_of("HERD"));
		return;
	}
	if (turn->asks[0].kind == ASK_LEASE) {
		write_lease(turn, out, looks != NULL ? looks->entries[0] : NULL,
			    looks != NULL ? looks->views[0].state : ABSENT);
		return;
	}
	if (turn->array)
		resp_write_array(output_tail(out), turn->turn.asks_len);
	for (uint32_t i = 0; i < turn->turn.asks_len; i++) {
		const struct ask *ask = &turn->asks[i];

		count_answer(loop, add_answer(out, turn->resp, ask, looks != NULL ? looks->entries[i] : NULL));
		turn->gave_lease |= ask->answer == ANSWER_LEAD;
	}
}

/* ---- the engine ----------------------------------------------------------------------------------------------- */

static struct gate *gate_that_holds(const struct server *server, struct hg_bytes name)
{
	struct hold_gate *gate = hold_gate_of(server, name);

	return gate != NULL && hold_mode(gate) == GATE_HOLD ? gate->gate : NULL;
}

/* Under the engine's lock: no ask begins or joins anything under a gate that has ceased to be its key's since it was
 * made, or while it was parked. Nobody would end that. */
static void refresh_gates(struct hold_turn *turn)
{
	const struct server *server = turn->conn->loop->server;
	uint32_t now = atomic_load_explicit(&server->hold->gates_turn, memory_order_relaxed);

	if (turn->gates_turn == now)
		return;
	turn->gates_turn = now;
	for (uint32_t i = 0; i < turn->turn.asks_len; i++) {
		struct ask *ask = &turn->asks[i];

		if (ask->state == ASK_NEW || ask->state == ASK_PARKED)
			ask->gate = gate_that_holds(server, ask->key.bytes);
	}
}

static uint64_t mask_of(const struct hold_turn *turn)
{
	uint64_t mask = 0;

	for (uint32_t i = 0; i < turn->turn.asks_len; i++)
		mask |= memory_mask(&turn->asks[i].key);
	return mask;
}

/* Looks and decides; where all is answered the reply goes to `out`. `undrawn`: the members before this one were judged
 * already, and `first` is how that one was. */
static bool decide(struct hold_turn *turn, struct output *out, uint32_t undrawn, enum quick first, int64_t now_us)
{
	struct loop *loop = turn->conn->loop;
	struct server *server = loop->server;
	uint64_t mask = mask_of(turn);
	struct looks looks;
	bool done;

	if (!looks_open(&looks, server->allocator, turn->turn.asks_len)) {
		looks_close(&looks);
		conn_close(turn->conn, true);
		return true;
	}
	memory_lock(server->memory, mask);
	for (uint32_t i = 0; i < turn->turn.asks_len; i++) {
		look(loop, &turn->asks[i], i > undrawn, now_us, &looks.views[i], &looks.entries[i]);
		if (i == undrawn && first == QUICK_CHOSEN)
			looks.views[i].early = looks.views[i].state == FRESH;
	}
	hold_enter(server->hold);
	refresh_gates(turn);
	done = engine_turn(server->hold->engine, &turn->turn, looks.views, now_us) == TURN_DONE;
	if (done)
		hold_write_failure(turn, out);
	hold_leave(server->hold);
	if (done)
		write_reply(turn, out, &looks);
	memory_unlock(server->memory, mask);
	looks_close(&looks);
	return done;
}

void hold_turn_due(struct loop *loop, struct hold_turn *turn)
{
	if (turn->turn.state == TURN_DUE) {
		if (!decide(turn, &turn->reply, 0, QUICK_NO, server_now_us()))
			return;
	} else {
		write_reply(turn, &turn->reply, NULL);
	}
	(void)loop;
	hold_turn_ready(turn);
}

/* ---- what asks are made of ------------------------------------------------------------------------------------ */

/* A turn for the keys in `names`, which are copied. NULL without memory. */
static struct hold_turn *make_turn(struct call *call, const struct hg_bytes *names, uint32_t len)
{
	const struct hg_allocator *allocator = call->server->allocator;
	struct hold_turn *turn;
	unsigned char *bytes;
	size_t size = sizeof(*turn) + len * sizeof(turn->asks[0]);

	for (uint32_t i = 0; i < len; i++)
		size += names[i].len;
	turn = alloc_zeroed(allocator, size);
	if (turn == NULL)
		return NULL;
	turn->gates_turn = atomic_load_explicit(&call->server->hold->gates_turn, memory_order_acquire);
	bytes = (unsigned char *)&turn->asks[len];
	for (uint32_t i = 0; i < len; i++) {
		struct ask *ask = &turn->asks[i];

		if (names[i].len > 0)
			memcpy(bytes, names[i].at, names[i].len);
		ask->key = memory_key(call->server->memory, (struct hg_bytes){bytes, names[i].len}, call->db);
		ask->gate = gate_that_holds(call->server, names[i]);
		ask->kind = ASK_READ;
		bytes += names[i].len;
	}
	turn->turn = (struct turn){
		.link = &call->conn->hold->link, .asks = turn->asks, .asks_len = len, .arrived_us = call->now_us};
	turn->conn = call->conn;
	turn->db = call->db;
	turn->resp = (uint8_t)call->resp;
	list_init(&turn->in_queue);
	list_init(&turn->in_inbox);
	output_init(&turn->reply, allocator);
	output_init(&turn->behind, allocator);
	return turn;
}

/* Runs the turn for the first time: the reply at once, or it joins the queue. */
static void begin(struct call *call, struct hold_turn *turn, uint32_t undrawn, enum quick first)
{
	if (decide(turn, call->output, undrawn, first, call->now_us)) {
		call->out = output_tail(call->output);
		call->conn->hold->unsent |= turn->gave_lease;
		hold_turn_free(turn);
		return;
	}
	hold_enqueue(call->conn, turn);
}

/* The one verdict that the engine does not give: there is no room for the command as a whole. */
static void refuse(struct call *call, const struct hg_bytes *names, uint32_t len, const char *text)
{
	hold_enter(call->server->hold);
	for (uint32_t i = 0; i < len; i++) {
		const struct hold_gate *gate = hold_gate_of(call->server, names[i]);

		if (gate != NULL && hold_mode(gate) == GATE_HOLD)
			gate->gate->counters.refused++;
	}
	hold_leave(call->server->hold);
	resp_write_error(call->out, bytes_of(text));
}

/* A turn for the keys, where there is room for one; else they are refused. */
static struct hold_turn *open_turn(struct call *call, const struct hg_bytes *names, uint32_t len)
{
	struct hold_turn *turn = NULL;

	if (call->conn->hold->queue_len >= hold_gates(call->server)->waiters_per_client) {
		refuse(call, names, len,
		       "HERDFULL too many asks of one connection are held (limits: waiters_per_client)");
		return NULL;
	}
	turn = make_turn(call, names, len);
	if (turn == NULL)
		refuse(call, names, len, "HERDFULL out of memory");
	return turn;
}

/* ---- keys that nothing holds ---------------------------------------------------------------------------------- */

static void observe(struct call *call, const struct key *key, const struct hold_gate *gate, enum freshness state)
{
	struct hold *hold = call->server->hold;

	if (gate == NULL || hold_mode(gate) != GATE_OBSERVE)
		return;
	hold_enter(hold);
	engine_observe(hold->engine, key, gate->gate, state, call->now_us);
	hold_leave(hold);
}

/* Under the key's lock: as plain Redis answers. */
static void plain_member(struct call *call, struct hg_bytes name)
{
	struct key key = memory_key(call->server->memory, name, call->db);
	const struct entry *entry = keyspace_look(call, &key);

	count_answer(call->loop, entry != NULL);
	if (entry != NULL) {
		counter_add(&call->loop->fresh[entry->gate], 1);
		call_bulk_entry(call, entry);
	} else {
		observe(call, &key, hold_gate_of(call->server, name), ABSENT);
		resp_write_null(call->out, call->resp);
	}
	tell_asked(call, &key);
}

static bool any_holds(struct call *call)
{
	for (uint32_t i = 1; i < call->args_len; i++) {
		const struct hold_gate *gate = hold_gate_of(call->server, call->args[i]);

		if (gate != NULL && hold_mode(gate) == GATE_HOLD)
			return true;
	}
	return false;
}

static void plain(struct call *call)
{
	bool array = call->command->arity < 0;
	uint64_t mask = call->held != 0 ? 0 : command_mask(call);

	memory_lock(call->server->memory, mask);
	if (array)
		resp_write_array(call->out, call->args_len - 1);
	for (uint32_t i = 1; i < call->args_len; i++)
		plain_member(call, call->args[i]);
	memory_unlock(call->server->memory, mask);
}

/* ---- entry points --------------------------------------------------------------------------------------------- */

void hold_ask(struct call *call)
{
	bool array = call->command->arity < 0;
	struct key key = memory_key(call->server->memory, call->args[1], call->db);
	enum quick quick = QUICK_NO;
	struct hold_turn *turn;
	uint32_t first = 0;

	if (array ? quick_mget(call, &first, &quick) : quick_get(call, &key, &quick)) {
		for (uint32_t i = 1; i < call->args_len; i++) {
			key = memory_key(call->server->memory, call->args[i], call->db);
			tell_asked(call, &key);
		}
		return;
	}
	if (!any_holds(call)) {
		plain(call);
		return;
	}
	turn = open_turn(call, call->args + 1, call->args_len - 1);
	if (turn == NULL)
		return;
	turn->array = array;
	begin(call, turn, first, quick);
}

/* One member in EXEC, or on a connection that watches. */
static void member_now(struct call *call, struct hg_bytes name, const struct hold_gate *gate)
{
	struct hold *hold = call->server->hold;
	struct ask ask = {
		.key = memory_key(call->server->memory, name, call->db), .gate = gate->gate, .kind = ASK_READ};
	const struct entry *entry;
	struct view view;

	look(call->loop, &ask, false, call->now_us, &view, &entry);
	hold_enter(hold);
	engine_ask_now(hold->engine, &ask, &call->conn->hold->link, call->in_exec, &view, call->now_us);
	hold_leave(hold);
	count_answer(call->loop, add_answer(call->output, call->resp, &ask, entry));
	call->out = output_tail(call->output);
	call->conn->hold->unsent |= ask.answer == ANSWER_LEAD;
}

void hold_ask_in_exec(struct call *call)
{
	if (!any_holds(call)) {
		plain(call);
		return;
	}
	if (call->command->arity < 0)
		resp_write_array(call->out, call->args_len - 1);
	for (uint32_t i = 1; i < call->args_len; i++) {
		const struct hold_gate *gate = hold_gate_of(call->server, call->args[i]);

		if (gate != NULL && hold_mode(gate) == GATE_HOLD)
			member_now(call, call->args[i], gate);
		else
			plain_member(call, call->args[i]);
	}
}

void hold_ask_lease(struct call *call, struct hg_bytes name, int64_t wait_us)
{
	struct hold_turn *turn = open_turn(call, &name, 1);

	if (turn == NULL)
		return;
	if (turn->asks[0].gate == NULL) {
		resp_write_error(call->out, bytes_of("ERR no gate holds this key (HERD GATES lists the gates)"));
		hold_turn_free(turn);
		return;
	}
	turn->asks[0].kind = ASK_LEASE;
	turn->asks[0].wait_us = wait_us;
	begin(call, turn, 0, QUICK_NO);
}
