/* engine.c - the engine as a whole: its beginning and end, its clockwork, its effects. */
#include "engine/inside.h"

#include <assert.h>
#include <string.h>

enum hg_err engine_create(const struct engine_config *config, struct engine **out_engine)
{
	const struct hg_allocator *allocator = config->allocator != NULL ? config->allocator : &alloc_libc;
	struct engine *engine = alloc_zeroed(allocator, sizeof(*engine));

	if (engine == NULL)
		return HG_ERR_MEMORY;
	engine->allocator = allocator;
	engine->config = *config;
	dice_init(&engine->dice, config->seed);
	history_init(&engine->history, allocator, config->history_max > 0 ? config->history_max : 1u << 20);
	heap_init(&engine->timers);
	heap_init(&engine->asks);
	heap_init(&engine->links);
	heap_init(&engine->memories);
	heap_init(&engine->peer_memories);
	list_init(&engine->flights);
	list_init(&engine->turns_out);
	list_init(&engine->asks_out);
	list_init(&engine->loads_out);
	list_init(&engine->cancels_out);
	if (map_init(&engine->records, allocator) != HG_OK)
		goto free_engine;
	if (map_init(&engine->peers, allocator) != HG_OK)
		goto fini_records;
	*out_engine = engine;
	return HG_OK;

fini_records:
	map_fini(&engine->records);
free_engine:
	alloc_free(allocator, engine);
	return HG_ERR_MEMORY;
}

void engine_destroy(struct engine *engine)
{
	struct token token;
	struct map_cursor cursor = {0};
	struct map_node *node;

	if (engine == NULL)
		return;
	assert(engine->links_len == 0);
	LIST_EACH_SAFE (flight_node, after, &engine->flights) {
		struct flight *flight = LIST_ENTRY(flight_node, struct flight, in_engine);

		while (!list_empty(&flight->waiters))
			wait_leave(engine, LIST_ENTRY(flight->waiters.next, struct ask, in_flight));
		flight_end(engine, flight, "void", HG_NEVER);
	}
	while (engine_next_cancel(engine, &token))
		continue;
	while ((node = map_walk(&engine->records, &cursor)) != NULL)
		record_free(engine, LIST_ENTRY(node, struct record, by_key));
	cursor = (struct map_cursor){0};
	while ((node = map_walk(&engine->peers, &cursor)) != NULL)
		peer_free(engine, LIST_ENTRY(node, struct peer, by_name));
	map_fini(&engine->records);
	map_fini(&engine->peers);
	history_fini(&engine->history);
	alloc_free(engine->allocator, engine);
}

void engine_set_limits(struct engine *engine, uint32_t waiters_max, uint32_t flights_max)
{
	engine->config.waiters_max = waiters_max;
	engine->config.flights_max = flights_max;
}

/* ---- the clockwork -------------------------------------------------------------------------------------------- */

static int64_t due_of(const struct heap *heap)
{
	const struct heap_node *first = heap_first(heap);

	return first == NULL ? HG_NEVER : first->due_us;
}

int64_t engine_due_us(const struct engine *engine)
{
	int64_t due = sat_min(due_of(&engine->timers), due_of(&engine->asks));

	due = sat_min(due, due_of(&engine->links));
	due = sat_min(due, due_of(&engine->memories));
	return sat_min(due, due_of(&engine->peer_memories));
}

static void peer_forget(struct engine *engine, struct peer *peer)
{
	heap_remove(&engine->peer_memories, &peer->forget);
	if (peer->links_len == 0)
		peer_free(engine, peer);
}

/* The one thing that is due first. Ends of leases come before the deadlines of those who wait for them: at one and the
 * same instant a waiter is rather given the lease than an error. */
static void run_first(struct engine *engine, int64_t due_us, int64_t now_us)
{
	if (due_of(&engine->timers) == due_us)
		flight_due(engine, LIST_ENTRY(heap_first(&engine->timers), struct flight, timer), now_us);
	else if (due_of(&engine->asks) == due_us)
		ask_deadline(engine, LIST_ENTRY(heap_first(&engine->asks), struct ask, deadline), now_us);
	else if (due_of(&engine->links) == due_us)
		link_hol_due(engine, LIST_ENTRY(heap_first(&engine->links), struct link, hol), now_us);
	else if (due_of(&engine->memories) == due_us)
		record_free(engine, LIST_ENTRY(heap_first(&engine->memories), struct record, forget));
	else
		peer_forget(engine, LIST_ENTRY(heap_first(&engine->peer_memories), struct peer, forget));
}

void engine_tick(struct engine *engine, int64_t now_us)
{
	int64_t due;

	engine->calls++;
	while ((due = engine_due_us(engine)) <= now_us)
		run_first(engine, due, now_us);
}

/* ---- effects -------------------------------------------------------------------------------------------------- */

struct turn *engine_next_turn(struct engine *engine)
{
	struct list_node *node = list_pop(&engine->turns_out);

	return node == NULL ? NULL : LIST_ENTRY(node, struct turn, out);
}

struct ask *engine_next_ask(struct engine *engine)
{
	struct list_node *node = list_pop(&engine->asks_out);

	return node == NULL ? NULL : LIST_ENTRY(node, struct ask, out);
}

bool engine_next_load(struct engine *engine, struct load_order *out_order)
{
	struct list_node *node = list_pop(&engine->loads_out);
	const struct flight *flight;

	if (node == NULL)
		return false;
	flight = LIST_ENTRY(node, struct flight, in_orders);
	*out_order = (struct load_order){
		.key = flight->record->key,
		.gate = flight->gate,
		.token = flight->token,
		.deadline_us = flight->end_us,
	};
	return true;
}

bool engine_next_cancel(struct engine *engine, struct token *out_token)
{
	struct list_node *node = list_pop(&engine->cancels_out);
	struct flight *flight;

	if (node == NULL)
		return false;
	flight = LIST_ENTRY(node, struct flight, in_orders);
	*out_token = flight->canceled;
	alloc_free(engine->allocator, flight);
	return true;
}

void printable(char *out, size_t room, struct hg_bytes bytes)
{
	const unsigned char *at = bytes.at;
	size_t len = bytes.len < room - 1 ? bytes.len : room - 1;

	for (size_t i = 0; i < len; i++)
		out[i] = at[i] < 0x20 || at[i] >= 0x7f ? '?' : at[i] == '"' ? '\'' : (char)at[i];
	out[len] = '\0';
}

unsigned log2_bucket(int64_t us)
{
	unsigned bucket = us > 1 ? 63u - (unsigned)__builtin_clzll((uint64_t)us) : 0;

	return bucket < 36 ? bucket : 35;
}

void engine_remark(struct engine *engine, enum remark_kind kind, const struct gate *gate, const struct key *key,
		   const struct peer *peer, int64_t one_us, int64_t two_us)
{
	struct remark *remark;

	if (engine->remarks_len >= REMARKS_MAX) {
		engine->remarks_lost++;
		return;
	}
	remark = &engine->remarks[engine->remarks_len++];
	memset(remark, 0, sizeof(*remark));
	remark->kind = kind;
	remark->gate = gate;
	remark->one_us = one_us;
	remark->two_us = two_us;
	printable(remark->key, sizeof(remark->key), key->bytes);
	if (peer != NULL)
		printable(remark->peer, sizeof(remark->peer), peer->name);
}

bool engine_next_remark(struct engine *engine, struct remark *out_remark)
{
	if (engine->remarks_len == 0)
		return false;
	*out_remark = engine->remarks[0];
	engine->remarks_len--;
	memmove(&engine->remarks[0], &engine->remarks[1], engine->remarks_len * sizeof(engine->remarks[0]));
	return true;
}

void engine_ended(struct engine *engine, const struct flight *flight, const char *outcome, int64_t now_us)
{
	struct recent *recent = &engine->recent[engine->recent_next];

	if (flight->observed)
		return;
	engine->recent_next = (engine->recent_next + 1) % ENGINE_RECENT;
	if (engine->recent_len < ENGINE_RECENT)
		engine->recent_len++;
	*recent = (struct recent){
		.gate = flight->gate,
		.ended_us = now_us,
		.took_us = sat_sub(now_us, flight->began_us),
		.herd = flight->herd,
		.leases = flight->leases,
		.outcome = outcome,
	};
	printable(recent->key, sizeof(recent->key), flight->record->key.bytes);
}

/* ---- invariants ----------------------------------------------------------------------------------------------- */

static void check_ask(const struct ask *ask, const struct flight *flight)
{
	assert(ask->state == ASK_WAITING && ask->flight == flight);
	assert(ask->deadline.linked);
	if (ask->turn != NULL)
		assert(ask->turn->waiting > 0 && ask->turn->state == TURN_HELD && list_linked(&ask->turn->in_link));
}

static void check_flight(const struct flight *flight)
{
	uint32_t waiters = 0;

	LIST_EACH (node, &flight->waiters) {
		check_ask(LIST_ENTRY(node, struct ask, in_flight), flight);
		waiters++;
	}
	assert(waiters == flight->waiters_len);
	if (flight->void_)
		assert(list_linked(&flight->in_voids) && flight->record->flight != flight);
	else
		assert(flight->record->flight == flight);
	/* Nobody waits for nobody: there is a lease, or an instant at which it is given anew. */
	if (flight->holder == HOLDER_NONE)
		assert(waiters > 0 && flight->handover_us != HG_NEVER && flight->timer.linked);
	else
		assert(flight->token.serial != 0 && (flight->end_us == HG_NEVER || flight->timer.linked));
	assert((flight->leader != NULL) == list_linked(&flight->in_link));
	assert(flight->overdue == list_linked(&flight->in_overdue));
}

static void check_peer(const struct peer *peer)
{
	uint32_t links = 0, counted = 0, held = 0;

	LIST_EACH (node, &peer->links) {
		const struct link *link = LIST_ENTRY(node, struct link, in_peer);

		links++;
		counted += link->counted;
		held += link->counted && link->held;
		assert(link->held == !list_empty(&link->turns));
	}
	assert(links == peer->links_len && counted == peer->counted && held == peer->counted_held);
}

void engine_check(const struct engine *engine)
{
	uint32_t flights = 0, waiters = 0, leases = 0;
	struct map_cursor cursor = {0};
	struct map_node *node;

	LIST_EACH (flight_node, &engine->flights) {
		const struct flight *flight = LIST_ENTRY(flight_node, struct flight, in_engine);

		check_flight(flight);
		flights++;
		waiters += flight->waiters_len;
		leases += flight->holder != HOLDER_NONE;
	}
	assert(flights == engine->flights_len && waiters == engine->waiters_len && leases == engine->leases_len);
	while ((node = map_walk(&engine->peers, &cursor)) != NULL)
		check_peer(LIST_ENTRY(node, struct peer, by_name));
	cursor = (struct map_cursor){0};
	while ((node = map_walk(&engine->records, &cursor)) != NULL) {
		const struct record *record = LIST_ENTRY(node, struct record, by_key);

		/* A record without a flight is remembered for a while, never for ever. */
		if (record->flight == NULL && list_empty(&record->voids))
			assert(record->forget.linked);
	}
}
