/* engine_memory.c - every allocation of the engine fails once: an ask that cannot get memory gets an error by name or
 * the value that is there, everything else goes on, nothing leaks. */
#include "engine_world.h"

/* Only one allocation fails, so what is tried again succeeds. */
static struct client *connected(struct world *world, const char *peer)
{
	struct client *client = connect_to(world, peer);

	return client != NULL ? client : connect_to(world, peer);
}

static struct command *asked(struct world *world, struct client *client, const char *name)
{
	struct command *command = get(world, client, name);

	if (answer_of(command) != ANSWER_ERROR)
		return command;
	expect_error(command, HG_ERR_MEMORY);
	assert_true(world->memory.failed);
	return get(world, client, name);
}

static struct token leased(struct world *world, struct client *client, const char *name)
{
	struct command *command = lease(world, client, name, 0);

	if (answer_of(command) == ANSWER_ERROR) {
		expect_error(command, HG_ERR_MEMORY);
		command = lease(world, client, name, 0);
	}
	expect_leads(command);
	return command->asks[0].token;
}

static void held_and_filled(struct world *world)
{
	struct client *one = connected(world, "one"), *two = connected(world, "two");
	struct command *held;

	expect_leads(asked(world, one, "k"));
	held = asked(world, two, "k");
	expect_held(held);
	pass(world, 20);
	(void)set(world, one, "k", "v");
	expect_is(held, "v");
}

static void fenced(struct world *world)
{
	struct client *one = connected(world, "one"), *two = connected(world, "two");
	enum write_fate fate;

	expect_leads(asked(world, one, "f"));
	del(world, NULL, "f");
	expect_leads(asked(world, two, "f"));
	/* Without memory for its nil the old leader is anybody: its value lives a moment. */
	fate = set(world, one, "f", "stale");
	assert_true(fate == WRITE_FENCED || (world->memory.failed && fate == WRITE_CUT));
	fate = set(world, two, "f", "new");
	assert_true(fate == WRITE_STORE || (world->memory.failed && fate == WRITE_CUT));
	flush(world, 0);
}

static void served_stale(struct world *world)
{
	struct client *one = connected(world, "one");
	struct command *command;

	there(world, "s", "old", 0, 60 * SECOND);
	command = get(world, one, "s");
	if (answer_of(command) == ANSWER_LOOKED)
		assert_true(world->memory.failed);
	else
		expect_leads(command);
	(void)set(world, one, "s", "new");
}

static void blocked(struct world *world)
{
	struct client *one = connected(world, "pool");
	struct command *held;

	expect_leads(asked(world, one, "b"));
	held = asked(world, one, "b");
	pass(world, 1000);
	expect_pass(held);
	if (link_rename(world->engine, &one->link, bytes_of("pool named")) != HG_OK)
		assert_int_equal(link_rename(world->engine, &one->link, bytes_of("pool named")), HG_OK);
	held = asked(world, one, "b");
	close_client(world, one);
	pass(world, 20);
}

static void by_token(struct world *world)
{
	struct client *one = connected(world, "one");

	assert_true(fill(world, leased(world, one, "t1"), "t1", FILL_VALUE, "v", 0));
	assert_true(fill(world, leased(world, one, "t2"), "t2", FILL_FAIL, "no", 0));
	assert_true(fill(world, leased(world, one, "t3"), "t3", FILL_NOSTORE, "v", 0));
	assert_true(fill(world, leased(world, one, "t4"), "t4", FILL_ABSENT, NULL, 0));
}

static void many(struct world *world)
{
	static const char *const names[] = {"m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9",
					    "ma", "mb", "mc", "md", "me", "mf", "mg", "mh", "mi", "mj"};
	struct client *one = connected(world, "one");

	for (unsigned i = 0; i < 20; i++) /* the tables grow */
		(void)asked(world, one, names[i]);
	pass(world, 10 * 1000);
}

static void test_memory__every_allocation_of_clients_gates_fails_once(void **state)
{
	static void (*const scenes[])(struct world * world) = {blocked,      held_and_filled, fenced,
							       served_stale, by_token,        many};

	(void)state;
	for (long k = 0;; k++) {
		struct world world;

		if (!world_open_failing(&world, GATE_CLIENT, k))
			continue;
		for (unsigned i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			scenes[i](&world);
		world_close(&world);
		if (!world.memory.failed)
			break;
		assert_true(k < 1000);
	}
}

static void test_memory__every_allocation_of_origins_gates_fails_once(void **state)
{
	(void)state;
	for (long k = 0;; k++) {
		struct world world;
		struct client *one;
		struct command *held, *before;

		if (!world_open_failing(&world, GATE_ORIGIN, k))
			continue;
		one = connected(&world, "one");
		held = asked(&world, one, "k");
		assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", 0));
		expect_is(held, "v");
		there(&world, "s", "old", 0, SECOND);
		expect_is(get(&world, one, "s"), "old"); /* with or without a refresh */
		before = asked(&world, one, "j");
		del(&world, NULL, "j");
		(void)asked(&world, one, "j");
		pass(&world, 60 * 1000);
		assert_true(before->replied);
		world_close(&world);
		if (!world.memory.failed)
			break;
		assert_true(k < 1000);
	}
}

static void test_memory__every_allocation_of_callers_fails_once(void **state)
{
	(void)state;
	for (long k = 0;; k++) {
		struct world world;
		struct command *first, *second;

		if (!world_open_failing(&world, GATE_CALLER, k))
			continue;
		first = call(&world, "k", SECOND);
		if (answer_of(first) == ANSWER_ERROR) {
			expect_error(first, HG_ERR_MEMORY);
			first = call(&world, "k", SECOND);
		}
		second = call(&world, "k", SECOND);
		expect_leads(first);
		assert_true(fill(&world, first->asks[0].token, "k", FILL_VALUE, "v", 0));
		expect_is(second, "v");
		there(&world, "s", "old", 0, SECOND);
		expect_is(call(&world, "s", SECOND), "old");
		world_close(&world);
		if (!world.memory.failed)
			break;
		assert_true(k < 1000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__every_allocation_of_clients_gates_fails_once),
		cmocka_unit_test(test_memory__every_allocation_of_origins_gates_fails_once),
		cmocka_unit_test(test_memory__every_allocation_of_callers_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
