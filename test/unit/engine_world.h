/* engine_world.h - a small world around one engine for its tests: a virtual clock, clients whose replies leave in
 * order, a store of a few cells, and what the engine ordered. Every action carries the effects out and walks the
 * engine's invariants; world_close() demands that nothing is left and that all memory was given back. */
#ifndef TEST_ENGINE_WORLD_H
#define TEST_ENGINE_WORLD_H

#include "failing.h"

#include "base/hash.h"
#include "base/sat.h"
#include "engine/engine.h"

#include <string.h>

#define MS INT64_C(1000)
#define SECOND (1000 * MS)
#define MEMBERS_MAX 4
#define CELLS_MAX 64
#define ORDERS_MAX 64
#define REMARK_KINDS (REMARK_LOAD_TIMEOUT + 1)

struct client {
	struct link link; /* first */
	bool open;
	bool deaf;             /* its replies do not get out */
	struct list_node owed; /* struct command, in order */
	struct list_node in_world;
};

/* A command that asks, or (turn.link NULL) an ask of the library's. */
struct command {
	struct turn turn; /* first */
	struct ask asks[MEMBERS_MAX];
	const char *names[MEMBERS_MAX];
	const char *values[MEMBERS_MAX]; /* of the reply; NULL is nil */
	bool replied;
	int64_t replied_us;
	struct list_node in_owed, in_world;
};

struct cell {
	char name[32];
	bool there, absence;
	const char *value;
	struct times times;
};

struct ordered {
	char name[32];
	struct token token;
	int64_t deadline_us;
};

struct world {
	struct failing memory;
	struct hg_allocator allocator;
	struct engine *engine;
	struct gate gate;
	int64_t now_us;
	struct list_node clients, commands;
	struct cell cells[CELLS_MAX];
	struct ordered orders[ORDERS_MAX];
	unsigned orders_len, cancels, remarks[REMARK_KINDS];
	struct remark last_remark;
};

static inline struct key key_of(const char *name)
{
	struct hg_bytes bytes = bytes_of(name);

	return (struct key){bytes, hash_key(bytes, 0, 7), 0};
}

/* ---- the store ------------------------------------------------------------------------------------------------ */

static inline struct cell *cell_of(struct world *world, const char *name)
{
	unsigned i = 0;

	while (i < CELLS_MAX && world->cells[i].name[0] != '\0' && strcmp(world->cells[i].name, name) != 0)
		i++;
	assert_true(i < CELLS_MAX);
	strcpy(world->cells[i].name, name);
	return &world->cells[i];
}

static inline struct view view_of(struct world *world, const char *name)
{
	const struct cell *cell = cell_of(world, name);
	struct view view = {.state = ABSENT};

	if (!cell->there || world->now_us >= cell->times.dead_at_us)
		return view;
	view.state = world->now_us < cell->times.fresh_until_us ? FRESH : STALE;
	view.times = cell->times;
	view.absence = cell->absence;
	return view;
}

/* Puts a value there without the engine: it was there before the story begins. */
static inline void there(struct world *world, const char *name, const char *value, int64_t fresh_us, int64_t grace_us)
{
	struct cell *cell = cell_of(world, name);

	cell->there = true;
	cell->absence = false;
	cell->value = value;
	cell->times = (struct times){.fresh_until_us = sat_add(world->now_us, fresh_us)};
	cell->times.dead_at_us = sat_add(cell->times.fresh_until_us, grace_us);
}

/* ---- effects -------------------------------------------------------------------------------------------------- */

static inline void replied(struct world *world, struct command *command)
{
	assert_false(command->replied);
	command->replied = true;
	command->replied_us = world->now_us;
	for (uint32_t i = 0; i < command->turn.asks_len; i++) {
		const struct ask *ask = &command->asks[i];

		assert_int_equal(ask->state, ASK_ANSWERED);
		if (ask->answer == ANSWER_VALUE)
			command->values[i] = ask->value;
		else if (ask->answer == ANSWER_LOOKED)
			command->values[i] = cell_of(world, command->names[i])->value;
	}
}

static inline void send_ready(struct world *world, struct client *client)
{
	while (!client->deaf && !list_empty(&client->owed)) {
		struct command *command = LIST_ENTRY(client->owed.next, struct command, in_owed);

		if (!command->replied)
			break;
		list_remove(&command->in_owed);
	}
	if (client->open && !client->deaf)
		link_sent(world->engine, &client->link, world->now_us);
}

static inline void ask_again(struct world *world, struct command *command)
{
	struct view views[MEMBERS_MAX];

	for (uint32_t i = 0; i < command->turn.asks_len; i++)
		views[i] = view_of(world, command->names[i]);
	if (engine_turn(world->engine, &command->turn, views, world->now_us) == TURN_DONE)
		replied(world, command);
}

static inline void take_turns(struct world *world)
{
	struct turn *turn;
	struct ask *ask;

	while ((turn = engine_next_turn(world->engine)) != NULL) {
		struct command *command = LIST_ENTRY(turn, struct command, turn);

		if (turn->state == TURN_DUE)
			ask_again(world, command);
		else
			replied(world, command);
		send_ready(world, LIST_ENTRY(turn->link, struct client, link));
	}
	while ((ask = engine_next_ask(world->engine)) != NULL)
		replied(world, LIST_ENTRY(ask, struct command, asks[0]));
}

static inline void carry_out(struct world *world)
{
	struct load_order order;
	struct token token;
	struct remark remark;

	take_turns(world);
	while (engine_next_load(world->engine, &order)) {
		struct ordered *ordered = &world->orders[world->orders_len++ % ORDERS_MAX];

		*ordered = (struct ordered){.token = order.token, .deadline_us = order.deadline_us};
		memcpy(ordered->name, order.key.bytes.at, order.key.bytes.len);
	}
	while (engine_next_cancel(world->engine, &token))
		world->cancels++;
	while (engine_next_remark(world->engine, &remark)) {
		world->remarks[remark.kind]++;
		world->last_remark = remark;
	}
	engine_check(world->engine);
}

/* ---- the world's beginning, time and end ---------------------------------------------------------------------- */

/* With memory for `allocations` allocations before one fails (negative: none does). Returns whether there was enough
 * for an engine. */
static inline bool world_open_failing(struct world *world, enum gate_leader leader, long allocations)
{
	struct gate_policy policy;
	struct engine_config config = {.seed = 1, .boot_id = 77, .waiters_max = 100000, .flights_max = 100000};

	memset(world, 0, sizeof(*world));
	world->allocator = failing_allocator(&world->memory, allocations);
	world->now_us = 1000 * SECOND;
	list_init(&world->clients);
	list_init(&world->commands);
	gate_policy_default(&policy, leader);
	policy.jitter_ppm = 0;
	policy.early = GATE_EARLY_OFF;
	gate_init(&world->gate, "*", 1, &policy);
	config.allocator = &world->allocator;
	if (engine_create(&config, &world->engine) == HG_OK)
		return true;
	assert_int_equal(world->memory.blocks, 0);
	return false;
}

static inline void world_open(struct world *world, enum gate_leader leader)
{
	assert_true(world_open_failing(world, leader, -1));
}

/* Another engine with other limits instead of the one just made. */
static inline void world_limit(struct world *world, uint32_t waiters_max, uint32_t flights_max)
{
	struct engine_config config = {
		.allocator = &world->allocator,
		.seed = 1,
		.boot_id = 77,
		.waiters_max = waiters_max,
		.flights_max = flights_max,
	};

	engine_destroy(world->engine);
	assert_int_equal(engine_create(&config, &world->engine), HG_OK);
}

/* Time goes on to `until_us`, with a tick at every instant at which something is due. */
static inline void pass_until(struct world *world, int64_t until_us)
{
	int64_t due;

	while ((due = engine_due_us(world->engine)) <= until_us) {
		world->now_us = sat_max(due, world->now_us);
		engine_tick(world->engine, world->now_us);
		carry_out(world);
	}
	world->now_us = until_us;
	engine_tick(world->engine, world->now_us);
	carry_out(world);
}

static inline void pass_us(struct world *world, int64_t span_us)
{
	pass_until(world, world->now_us + span_us);
}

static inline void pass(struct world *world, int64_t span_ms)
{
	pass_us(world, span_ms * MS);
}

static inline void close_client(struct world *world, struct client *client)
{
	link_close(world->engine, &client->link, world->now_us);
	client->open = false;
	while (list_pop(&client->owed) != NULL)
		continue;
	carry_out(world);
}

static inline void world_close(struct world *world)
{
	struct engine_stats stats;
	struct list_node *node;

	LIST_EACH (place, &world->clients) {
		struct client *client = LIST_ENTRY(place, struct client, in_world);

		if (client->open)
			close_client(world, client);
	}
	for (int i = 0; i < 10000 && engine_due_us(world->engine) != HG_NEVER; i++)
		pass_until(world, sat_max(engine_due_us(world->engine), world->now_us));
	engine_stats(world->engine, &stats);
	assert_int_equal(stats.waiters, 0);
	assert_int_equal(stats.leases, 0);
	assert_int_equal(stats.flights, 0);
	assert_int_equal(stats.records, 0);
	assert_int_equal(stats.peers, 0);
	engine_destroy(world->engine);
	assert_int_equal(world->memory.blocks, 0);
	while ((node = list_pop(&world->commands)) != NULL)
		free(LIST_ENTRY(node, struct command, in_world));
	while ((node = list_pop(&world->clients)) != NULL)
		free(LIST_ENTRY(node, struct client, in_world));
}

/* ---- clients -------------------------------------------------------------------------------------------------- */

/* NULL without memory. */
static inline struct client *connect_to(struct world *world, const char *peer)
{
	struct client *client = calloc(1, sizeof(*client));

	list_init(&client->owed);
	list_push_back(&world->clients, &client->in_world);
	client->open = link_open(world->engine, &client->link, bytes_of(peer)) == HG_OK;
	return client->open ? client : NULL;
}

static inline struct command *new_command(struct world *world, unsigned len, const char *const names[])
{
	struct command *command = calloc(1, sizeof(*command));

	list_init(&command->in_owed);
	list_push_back(&world->commands, &command->in_world);
	command->turn = (struct turn){.asks = command->asks, .asks_len = len, .arrived_us = world->now_us};
	for (unsigned i = 0; i < len; i++) {
		command->names[i] = names[i];
		command->asks[i].key = key_of(names[i]);
		command->asks[i].gate = &world->gate;
	}
	return command;
}

static inline struct command *send_command(struct world *world, struct client *client, struct command *command)
{
	if (!list_empty(&client->owed))
		link_multiplexed(world->engine, &client->link, world->now_us);
	command->turn.link = &client->link;
	list_push_back(&client->owed, &command->in_owed);
	ask_again(world, command);
	send_ready(world, client);
	carry_out(world);
	return command;
}

static inline struct command *mget(struct world *world, struct client *client, unsigned len, const char *const names[])
{
	return send_command(world, client, new_command(world, len, names));
}

static inline struct command *get(struct world *world, struct client *client, const char *name)
{
	return mget(world, client, 1, &name);
}

/* One that the reader has drawn for an early refresh. */
static inline struct command *get_early(struct world *world, struct client *client, const char *name)
{
	struct command *command = new_command(world, 1, &name);
	struct view view = view_of(world, name);

	view.early = true;
	command->turn.link = &client->link;
	if (engine_turn(world->engine, &command->turn, &view, world->now_us) == TURN_DONE)
		replied(world, command);
	send_ready(world, client);
	carry_out(world);
	return command;
}

/* HERD LEASE on a connection. */
static inline struct command *lease(struct world *world, struct client *client, const char *name, int64_t wait_us)
{
	struct command *command = new_command(world, 1, &name);

	command->asks[0].kind = ASK_LEASE;
	command->asks[0].wait_us = wait_us;
	return send_command(world, client, command);
}

/* A thread of the library's asks. */
static inline struct command *call(struct world *world, const char *name, int64_t wait_us)
{
	struct command *command = new_command(world, 1, &name);
	struct view view = view_of(world, name);

	command->asks[0].kind = ASK_LOAD;
	command->asks[0].wait_us = wait_us;
	command->asks[0].holder = command;
	if (engine_ask(world->engine, &command->asks[0], NULL, &view, world->now_us) == ASK_ANSWERED)
		replied(world, command);
	carry_out(world);
	return command;
}

/* A GET in MULTI (`transaction`) or on a connection that WATCHes. */
static inline struct command *get_now(struct world *world, struct client *client, const char *name, bool transaction)
{
	struct command *command = new_command(world, 1, &name);
	struct view view = view_of(world, name);

	engine_ask_now(world->engine, &command->asks[0], &client->link, transaction, &view, world->now_us);
	replied(world, command);
	send_ready(world, client);
	carry_out(world);
	return command;
}

static inline void cancel(struct world *world, struct command *command)
{
	engine_cancel(world->engine, &command->asks[0]);
	carry_out(world);
}

/* ---- writes, fills, invalidations ----------------------------------------------------------------------------- */

/* A string command that is not in `plain` form is one that the fence does not look at (INCR, EXEC). */
static inline enum write_fate write_by(struct world *world, struct client *client, const char *name, const char *value,
				       bool plain, int64_t ttl_us)
{
	struct key key = key_of(name);
	struct link *link = client != NULL ? &client->link : NULL;
	struct cell *cell = cell_of(world, name);
	enum write_fate fate;
	struct times times;
	bool flight;

	if (client != NULL && !list_empty(&client->owed))
		link_multiplexed(world->engine, link, world->now_us);
	fate = engine_write(world->engine, &key, &world->gate, link, plain, ttl_us, world->now_us, &times, &flight);
	if (fate != WRITE_FENCED) {
		cell->there = true;
		cell->absence = false;
		cell->value = value;
		cell->times = times;
		engine_wrote(world->engine, &key, &world->gate, link, (char *)(uintptr_t)value, world->now_us);
	}
	carry_out(world);
	return fate;
}

static inline enum write_fate set(struct world *world, struct client *client, const char *name, const char *value)
{
	return write_by(world, client, name, value, true, 60 * SECOND);
}

static inline bool fill(struct world *world, struct token token, const char *name, enum fill_kind kind,
			const char *value, int64_t ttl_us)
{
	struct key key = key_of(name);
	struct fill fill = {.kind = kind, .ttl_us = ttl_us, .value = (char *)(uintptr_t)value, .text = value};
	struct cell *cell = cell_of(world, name);
	bool taken = engine_fill(world->engine, &key, token, &fill, world->now_us);

	if (taken && fill.store) {
		cell->there = true;
		cell->absence = kind == FILL_ABSENT;
		cell->value = kind == FILL_ABSENT ? NULL : value;
		cell->times = fill.times;
	}
	carry_out(world);
	return taken;
}

static inline int64_t renew(struct world *world, struct token token, const char *name)
{
	struct key key = key_of(name);
	int64_t left = engine_renew(world->engine, &key, token, world->now_us);

	carry_out(world);
	return left;
}

/* DEL by `client`, or with NULL by somebody unknown. */
static inline void del(struct world *world, struct client *client, const char *name)
{
	struct key key = key_of(name);

	engine_invalidate(world->engine, &key, client != NULL ? &client->link : NULL, world->now_us);
	cell_of(world, name)->there = false;
	carry_out(world);
}

static inline void flush(struct world *world, uint8_t space)
{
	engine_flush(world->engine, space, NULL, world->now_us);
	for (unsigned i = 0; i < CELLS_MAX; i++)
		world->cells[i].there = false;
	carry_out(world);
}

static inline struct gate *only_gate(void *arg, const struct key *key)
{
	(void)key;
	return &((struct world *)arg)->gate;
}

/* The gate has been given another mode. */
static inline void gates_changed(struct world *world)
{
	engine_gates_changed(world->engine, only_gate, world, world->now_us);
	carry_out(world);
}

/* ---- looking -------------------------------------------------------------------------------------------------- */

static inline struct explain explain(struct world *world, struct client *client, const char *name)
{
	struct key key = key_of(name);
	struct explain out;

	engine_explain(world->engine, &key, &world->gate, client != NULL ? &client->link : NULL, world->now_us, &out);
	return out;
}

static inline struct ordered *last_order(struct world *world)
{
	assert_true(world->orders_len > 0);
	return &world->orders[(world->orders_len - 1) % ORDERS_MAX];
}

/* The gate has seen one fill that took `span_us`: a key of its own is led, and filled that much later. */
static inline void teach(struct world *world, struct client *client, int64_t span_us)
{
	(void)get(world, client, "taught");
	pass_us(world, span_us);
	(void)set(world, client, "taught", "t");
}

static inline enum answer answer_of(const struct command *command)
{
	return command->replied ? command->asks[0].answer : ANSWER_NONE;
}

static inline void expect_error_at(const struct command *command, enum hg_err error, const char *file, int line)
{
	_assert_int_equal(answer_of(command), ANSWER_ERROR, file, line);
	_assert_int_equal(command->asks[0].error, error, file, line);
}

static inline void expect_is_at(const struct command *command, const char *value, const char *file, int line)
{
	_assert_true(command->replied, "replied", file, line);
	_assert_string_equal(command->values[0] != NULL ? command->values[0] : "(nil)", value, file, line);
}

#define expect_answer(command, answer) _assert_int_equal(answer_of(command), answer, __FILE__, __LINE__)
#define expect_held(command) _assert_true(!(command)->replied, "held", __FILE__, __LINE__)
#define expect_leads(command) expect_answer(command, ANSWER_LEAD)
#define expect_pass(command) expect_answer(command, ANSWER_PASS)
#define expect_error(command, which) expect_error_at(command, which, __FILE__, __LINE__)
/* A value, whether it was looked up or waited for. */
#define expect_is(command, value) expect_is_at(command, value, __FILE__, __LINE__)

#endif
