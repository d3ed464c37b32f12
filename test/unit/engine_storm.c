/* engine_storm.c - random programs on the engine under virtual time, judged by a ledger of the test's own:
 * - every command gets exactly one reply, in its connection's order, by its deadline;
 * - a value belongs to its key, and is none from before an invalidation that came before its asker;
 * - at most one lease of a key is live, and whoever is held at the head of a connection is held for a live one;
 * - a key is not loaded more often than there were causes; a value that is there is answered at once;
 * - nothing is left at the end.
 * The engine's own invariants are walked after every step. A failure prints the seed. */
#include "engine/engine.h"

#include "base/dice.h"
#include "base/hash.h"
#include "base/sat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS 5
#define LINKS 7
#define MEMBERS 3
#define MS INT64_C(1000)

struct command {
	struct turn turn; /* first */
	struct ask asks[MEMBERS];
	int keys[MEMBERS];
	uint32_t fences[MEMBERS]; /* the source's versions that an invalidation had made known when it arrived */
	bool replied;
	struct list_node in_order;
};

struct client {
	struct link link;
	bool open;
	struct list_node order; /* struct command: replies owed */
	int64_t alone_since_us; /* since when its first command is held for no live lease; HG_NEVER: it is not */
};

struct cell {
	bool there;
	uintptr_t value; /* (key + 1) * 1000000 + the source's version */
	struct times times;
};

/* What the test itself knows of a key. */
struct ledger {
	uint32_t source, fence;               /* the source's version now, and when the key was last invalidated */
	bool leased, closed;                  /* closed: its leader's connection is, so the lease may end early */
	int64_t until_us, overtaken_until_us; /* a load of the program's goes on for those who asked before */
	struct link *leader;
	int64_t credit; /* causes for a load that have not been used up */
};

struct world {
	struct engine *engine;
	struct dice dice;
	struct gate gate;
	struct client clients[LINKS];
	struct cell cells[KEYS];
	struct token tokens[KEYS]; /* the last one given, */
	uint32_t computed[KEYS];   /* and the version that its holder has read */
	struct ledger ledgers[KEYS];
	int64_t now_us;
	uint64_t seed, replies, leads, handed_over, errors;
};

static const char *const names[KEYS] = {"a", "b", "c", "d", "e"};

static struct key key_of(int i)
{
	struct hg_bytes bytes = bytes_of(names[i]);

	return (struct key){bytes, hash_key(bytes, 0, 7), 0};
}

static void demand(struct world *world, bool truth, const char *what)
{
	if (truth)
		return;
	fail_msg("seed %llu at %lld us: %s", (unsigned long long)world->seed, (long long)world->now_us, what);
}

static bool one_in(struct world *world, uint64_t n)
{
	return dice_below(&world->dice, n) == 0;
}

static struct view view_of(struct world *world, int i)
{
	struct cell *cell = &world->cells[i];
	struct view view = {.state = ABSENT};

	if (!cell->there || world->now_us >= cell->times.dead_at_us)
		return view;
	view.state = world->now_us < cell->times.fresh_until_us ? FRESH : STALE;
	view.times = cell->times;
	view.early = view.state == FRESH && gate_early_draw(&cell->times, dice_unit(&world->dice), world->now_us);
	return view;
}

static uintptr_t value_of(int i, uint32_t version)
{
	return ((uintptr_t)i + 1) * 1000000 + version;
}

/* ---- the ledger ----------------------------------------------------------------------------------------------- */

#define ALONE_MAX (300 * MS) /* 10 ms after a close, and the retries of commands that wait for several keys */

static void leased(struct world *world, int i, struct link *leader, int64_t span_us)
{
	struct ledger *ledger = &world->ledgers[i];

	demand(world, !ledger->leased || ledger->closed, "two live leases of one key");
	demand(world, --ledger->credit >= 0, "a load without a cause");
	ledger->leased = true;
	ledger->closed = false;
	ledger->leader = leader;
	ledger->until_us = sat_add(world->now_us, span_us);
}

static void take_token(struct world *world, int i, struct token token)
{
	world->tokens[i] = token;
	world->computed[i] = world->ledgers[i].source;
}

static void unleased(struct world *world, int i)
{
	world->ledgers[i].leased = false;
	world->ledgers[i].credit++;
}

static void invalidated(struct world *world, int i)
{
	struct ledger *ledger = &world->ledgers[i];

	if (ledger->leased && ledger->leader == NULL)
		ledger->overtaken_until_us = sat_max(ledger->overtaken_until_us, ledger->until_us);
	unleased(world, i);
	ledger->fence = ++ledger->source;
	world->cells[i].there = false;
}

static void leader_closed(struct world *world, const struct link *link)
{
	for (int i = 0; i < KEYS; i++) {
		struct ledger *ledger = &world->ledgers[i];

		if (!ledger->leased || ledger->leader != link)
			continue;
		ledger->closed = true;
		ledger->leader = NULL;
		ledger->credit++;
	}
}

static void lapse_leases(struct world *world)
{
	for (int i = 0; i < KEYS; i++) {
		struct ledger *ledger = &world->ledgers[i];

		if (!ledger->leased || world->now_us < ledger->until_us)
			continue;
		ledger->leased = false;
		ledger->credit += !ledger->closed;
	}
}

/* Does anybody compute one of the keys that the command waits for? */
static bool somebody_leads(const struct world *world, const struct command *command)
{
	for (uint32_t i = 0; i < command->turn.asks_len; i++) {
		const struct ledger *ledger = &world->ledgers[command->keys[i]];

		if (command->asks[i].state == ASK_WAITING &&
		    (ledger->leased || world->now_us < ledger->overtaken_until_us))
			return true;
	}
	return false;
}

static void check_heads(struct world *world)
{
	for (int i = 0; i < LINKS; i++) {
		struct client *client = &world->clients[i];
		struct command *head;

		if (!client->open || list_empty(&client->order)) {
			client->alone_since_us = HG_NEVER;
			continue;
		}
		head = LIST_ENTRY(client->order.next, struct command, in_order);
		if (somebody_leads(world, head))
			client->alone_since_us = HG_NEVER;
		else
			client->alone_since_us = sat_min(client->alone_since_us, world->now_us);
		demand(world, client->alone_since_us == HG_NEVER || world->now_us - client->alone_since_us <= ALONE_MAX,
		       "held, and nobody computes");
	}
}

/* ---- replies -------------------------------------------------------------------------------------------------- */

static void check_value(struct world *world, const struct command *command, uint32_t i, uintptr_t value)
{
	demand(world, value / 1000000 == (uintptr_t)command->keys[i] + 1, "a value of another key");
	demand(world, value % 1000000 >= command->fences[i], "a value from before an invalidation");
}

static void reply(struct world *world, struct command *command)
{
	int64_t age = world->now_us - command->turn.arrived_us;

	demand(world, !command->replied, "two replies to one command");
	command->replied = true;
	world->replies++;
	/* Ticks of the test are at most a second apart. */
	demand(world, age <= world->gate.policy.wait_us + 1100 * MS || !list_linked(&command->in_order),
	       "a reply after its deadline");
	for (uint32_t i = 0; i < command->turn.asks_len; i++) {
		const struct ask *ask = &command->asks[i];

		demand(world, ask->state == ASK_ANSWERED, "a reply with an open member");
		if (ask->answer == ANSWER_VALUE)
			check_value(world, command, i, (uintptr_t)ask->value);
		if (ask->answer == ANSWER_LOOKED)
			check_value(world, command, i, world->cells[command->keys[i]].value);
		if (ask->answer == ANSWER_LEAD)
			leased(world, command->keys[i], command->turn.link, ask->lease_us);
		world->leads += ask->answer == ANSWER_LEAD;
		world->handed_over += ask->handed_over;
		world->errors += ask->answer == ANSWER_ERROR;
	}
}

/* Frees what is answered at the front; later ones wait for it, as on a real connection. */
static void send_ready(struct world *world, struct client *client)
{
	while (!list_empty(&client->order)) {
		struct command *command = LIST_ENTRY(client->order.next, struct command, in_order);

		if (!command->replied)
			break;
		list_remove(&command->in_order);
		free(command);
	}
	if (client->open)
		link_sent(world->engine, &client->link, world->now_us);
}

static void ask_again(struct world *world, struct command *command)
{
	struct view views[MEMBERS];

	for (uint32_t i = 0; i < command->turn.asks_len; i++)
		views[i] = view_of(world, command->keys[i]);
	if (engine_turn(world->engine, &command->turn, views, world->now_us) == TURN_DONE)
		reply(world, command);
}

static void carry_out(struct world *world)
{
	struct turn *turn;
	struct remark remark;
	struct load_order order;
	struct token token;

	lapse_leases(world);
	while ((turn = engine_next_turn(world->engine)) != NULL) {
		struct command *command = LIST_ENTRY(turn, struct command, turn);
		struct client *client = LIST_ENTRY(turn->link, struct client, link);

		if (turn->state == TURN_DUE)
			ask_again(world, command);
		else
			reply(world, command);
		send_ready(world, client);
	}
	while (engine_next_remark(world->engine, &remark))
		continue;
	while (engine_next_load(world->engine, &order)) {
		int i = ((const char *)order.key.bytes.at)[0] - 'a';

		take_token(world, i, order.token);
		leased(world, i, NULL, sat_sub(order.deadline_us, world->now_us));
	}
	while (engine_next_cancel(world->engine, &token))
		continue;
	engine_check(world->engine);
	check_heads(world);
}

/* ---- what happens --------------------------------------------------------------------------------------------- */

/* A value that is there and not invalidated is answered at once; only a nil that leads may come instead. */
static void check_at_once(struct world *world, const struct command *command, enum freshness state, bool first)
{
	enum answer answer = command->asks[0].answer;

	if (state == ABSENT || !first || command->turn.asks_len != 1 || command->asks[0].gate == NULL)
		return;
	demand(world, command->replied, "a value is there, and its asker is held");
	demand(world,
	       answer == ANSWER_LOOKED || answer == ANSWER_LEAD ||
		       (answer == ANSWER_PASS && world->gate.policy.own_lock),
	       "a value is there, and its asker gets none");
}

static void get(struct world *world, struct client *client)
{
	struct command *command = calloc(1, sizeof(*command));
	bool first = list_empty(&client->order);
	enum freshness state;

	if (!first)
		link_multiplexed(world->engine, &client->link, world->now_us);
	command->turn = (struct turn){.link = &client->link, .asks = command->asks, .arrived_us = world->now_us};
	command->turn.asks_len = one_in(world, 3) ? 1 + (uint32_t)dice_below(&world->dice, MEMBERS) : 1;
	for (uint32_t i = 0; i < command->turn.asks_len; i++) {
		command->keys[i] = (int)dice_below(&world->dice, KEYS);
		command->fences[i] = world->ledgers[command->keys[i]].fence;
		command->asks[i].key = key_of(command->keys[i]);
		command->asks[i].gate = one_in(world, 20) ? NULL : &world->gate;
	}
	list_push_back(&client->order, &command->in_order);
	state = view_of(world, command->keys[0]).state;
	ask_again(world, command);
	check_at_once(world, command, state, first);
	send_ready(world, client);
}

static void set(struct world *world, struct client *client, int i)
{
	struct key key = key_of(i);
	struct times times;
	bool flight;
	int64_t ttl = (int64_t)(1 + dice_below(&world->dice, 4000)) * MS;
	enum write_fate fate = engine_write(world->engine, &key, &world->gate, &client->link, !one_in(world, 4), ttl,
					    world->now_us, &times, &flight);

	if (fate == WRITE_FENCED)
		return;
	demand(world, times.fresh_until_us <= world->now_us + ttl, "a life longer than asked for");
	demand(world, times.fresh_until_us > world->now_us && times.dead_at_us >= times.fresh_until_us, "no life");
	world->cells[i] = (struct cell){true, value_of(i, world->ledgers[i].source), times};
	unleased(world, i);
	engine_wrote(world->engine, &key, &world->gate, &client->link, (void *)world->cells[i].value, world->now_us);
}

/* By whoever was last given a token: of the version that was there when it was. */
static void fill(struct world *world, int i)
{
	static const enum fill_kind kinds[] = {FILL_VALUE,   FILL_VALUE,   FILL_ABSENT,
					       FILL_NOSTORE, FILL_PRIVATE, FILL_FAIL};
	struct ledger *ledger = &world->ledgers[i];
	struct key key = key_of(i);
	struct fill fill = {.kind = kinds[dice_below(&world->dice, 6)], .text = "no"};

	fill.value = fill.kind == FILL_VALUE ? (void *)value_of(i, world->computed[i]) : NULL;
	if (!engine_fill(world->engine, &key, world->tokens[i], &fill, world->now_us))
		return;
	demand(world, ledger->leased || !fill.store, "a fill without a live lease is stored");
	if (fill.store || world->computed[i] >= ledger->fence)
		unleased(world, i);
	if (!fill.store)
		return;
	demand(world, world->computed[i] >= ledger->fence, "what an invalidation has overtaken is stored");
	if (fill.kind == FILL_VALUE)
		world->cells[i] = (struct cell){true, (uintptr_t)fill.value, fill.times};
}

static void del(struct world *world, struct client *client, int i)
{
	struct key key = key_of(i);

	invalidated(world, i);
	engine_invalidate(world->engine, &key, &client->link, world->now_us);
}

static void flush(struct world *world, struct client *client)
{
	for (int i = 0; i < KEYS; i++)
		invalidated(world, i);
	engine_flush(world->engine, 255, &client->link, world->now_us);
}

static void close_client(struct world *world, struct client *client)
{
	struct list_node *node;

	leader_closed(world, &client->link);
	link_close(world->engine, &client->link, world->now_us);
	client->open = false;
	while ((node = list_pop(&client->order)) != NULL)
		free(LIST_ENTRY(node, struct command, in_order));
}

static void open_client(struct world *world, struct client *client)
{
	static const char *const peers[] = {"one", "two"};

	assert_int_equal(link_open(world->engine, &client->link, bytes_of(peers[dice_below(&world->dice, 2)])), HG_OK);
	list_init(&client->order);
	client->open = true;
	client->alone_since_us = HG_NEVER;
}

static void lease(struct world *world, struct client *client, int i)
{
	struct ask ask = {.key = key_of(i), .gate = &world->gate, .kind = ASK_LEASE};
	struct view view = view_of(world, i);

	if (engine_ask(world->engine, &ask, &client->link, &view, world->now_us) != ASK_ANSWERED)
		demand(world, false, "an ask that may not wait was held");
	if (ask.answer != ANSWER_LEAD)
		return;
	take_token(world, i, ask.token);
	leased(world, i, &client->link, ask.lease_us);
}

static void step(struct world *world)
{
	struct client *client = &world->clients[dice_below(&world->dice, LINKS)];
	int i = (int)dice_below(&world->dice, KEYS);

	if (!client->open) {
		open_client(world, client);
		return;
	}
	switch (dice_below(&world->dice, 16)) {
	case 0:
	case 1:
		set(world, client, i);
		break;
	case 2:
		del(world, client, i);
		break;
	case 3:
		close_client(world, client);
		break;
	case 4:
		fill(world, i);
		break;
	case 5:
		lease(world, client, i);
		break;
	case 6:
		if (one_in(world, 10))
			flush(world, client);
		break;
	case 7:
		link_behind(world->engine, &client->link, world->now_us);
		break;
	case 8:
		if (one_in(world, 4))
			link_release(world->engine, &client->link, world->now_us);
		break;
	case 9:
		link_set_counted(world->engine, &client->link, one_in(world, 2), world->now_us);
		break;
	default:
		get(world, client);
		break;
	}
}

static void pass_time(struct world *world)
{
	static const int64_t spans_ms[] = {0, 1, 10, 100, 1000};
	int64_t until = world->now_us + spans_ms[dice_below(&world->dice, 5)] * MS;

	/* In steps of at most a second, as a real clock would. */
	while (world->now_us < until || engine_due_us(world->engine) <= world->now_us) {
		int64_t due = engine_due_us(world->engine);

		world->now_us = due < until ? sat_max(due, world->now_us) : sat_max(until, world->now_us);
		engine_tick(world->engine, world->now_us);
		carry_out(world);
	}
}

static void draw_policy(struct world *world, struct gate_policy *policy)
{
	gate_policy_default(policy, one_in(world, 4) ? GATE_ORIGIN : GATE_CLIENT);
	policy->grace_us = one_in(world, 2) ? 0 : 2000 * MS;
	policy->early = one_in(world, 2) ? GATE_EARLY_XFETCH : GATE_EARLY_OFF;
	policy->own_lock = one_in(world, 4);
	policy->on_timeout = one_in(world, 2) ? GATE_TIMEOUT_PASS : GATE_TIMEOUT_ERROR;
	policy->late_set = (enum gate_late_set)dice_below(&world->dice, 3);
	policy->hol_max_us = one_in(world, 3) ? 500 * MS : HG_NEVER;
	policy->waiters_max = one_in(world, 4) ? 2 : 1000;
	policy->load_timeout_us = 4000 * MS;
	policy->jitter_ppm = one_in(world, 2) ? 100000 : 0;
}

/* All quiet: everybody is answered, and in the end nothing is known any more. */
static void settle(struct world *world)
{
	struct engine_stats stats;

	for (int i = 0; i < 20; i++) {
		world->now_us += 1000 * MS;
		engine_tick(world->engine, world->now_us);
		carry_out(world);
	}
	for (int i = 0; i < LINKS; i++) {
		if (!world->clients[i].open)
			continue;
		demand(world, list_empty(&world->clients[i].order), "a command was never answered");
		close_client(world, &world->clients[i]);
		carry_out(world);
	}
	for (int i = 0; i < 100 && engine_due_us(world->engine) != HG_NEVER; i++) {
		world->now_us = engine_due_us(world->engine);
		engine_tick(world->engine, world->now_us);
		carry_out(world);
	}
	engine_stats(world->engine, &stats);
	demand(world, stats.waiters == 0 && stats.leases == 0 && stats.flights == 0, "flights are left at the end");
	demand(world, stats.records == 0 && stats.peers == 0 && stats.links == 0,
	       "records or peers are left at the end");
}

static void run_seed(uint64_t seed, uint64_t *out_leads, uint64_t *out_handed_over)
{
	struct engine_config config = {.seed = seed, .boot_id = 1, .waiters_max = 1000, .flights_max = 1000};
	struct world world = {.seed = seed, .now_us = 1000000};
	struct gate_policy policy;

	dice_init(&world.dice, seed);
	draw_policy(&world, &policy);
	for (int i = 0; i < KEYS; i++)
		world.ledgers[i].credit = 1;
	gate_init(&world.gate, "*", 1, &policy);
	assert_int_equal(engine_create(&config, &world.engine), HG_OK);
	for (int i = 0; i < 400; i++) {
		step(&world);
		carry_out(&world);
		if (one_in(&world, 3))
			pass_time(&world);
	}
	settle(&world);
	engine_destroy(world.engine);
	*out_leads += world.leads;
	*out_handed_over += world.handed_over;
}

static void test_engine__random_programs_keep_every_promise(void **state)
{
	const char *only = getenv("SEED");
	uint64_t first = only != NULL ? strtoull(only, NULL, 10) : 1;
	uint64_t last = only != NULL ? first : 3000, leads = 0, handed_over = 0;

	(void)state;
	for (uint64_t seed = first; seed <= last; seed++)
		run_seed(seed, &leads, &handed_over);
	/* The programs must get into the states that matter. */
	assert_true(leads > 0);
	if (only == NULL)
		assert_true(handed_over > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_engine__random_programs_keep_every_promise)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
