/* engine_record.c - what is remembered of a key between flights, for how long, and what makes room for others. */
#include "engine_world.h"

#include <stdio.h>

static uint32_t records(struct world *world)
{
	struct engine_stats stats;

	engine_stats(world->engine, &stats);
	return stats.records;
}

static void test_record__nothing_is_remembered_of_a_key_that_was_filled(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	assert_int_equal(records(&world), 1);
	(void)set(&world, one, "k", "v");
	assert_int_equal(records(&world), 0);
	assert_int_equal(engine_due_us(world.engine), HG_NEVER);
	world_close(&world);
}

static void test_record__a_lapse_is_remembered_for_a_minute(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	pass(&world, 3000);
	pass_us(&world, 60 * SECOND - 1);
	assert_int_equal(explain(&world, one, "k").lapses, 1);
	pass_us(&world, 1);
	assert_int_equal(records(&world), 0);
	assert_int_equal(get(&world, one, "k")->asks[0].lease_us, 3 * SECOND);
	world_close(&world);
}

static void test_record__a_fence_is_remembered_until_its_end(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	del(&world, NULL, "k");
	pass_us(&world, 3 * SECOND - 1);
	assert_int_equal(explain(&world, one, "k").fence_left_us, 1);
	pass_us(&world, 1);
	assert_int_equal(records(&world), 0);
	assert_int_equal(one->link.nils_len, 0);
	world_close(&world);
}

static void test_record__thousands_of_failing_keys_leave_nothing(void **state)
{
	struct world world;
	struct client *one;
	char name[32];

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	for (unsigned i = 0; i < 2000; i++) {
		struct token token;
		struct key key;
		struct fill fill = {.kind = FILL_FAIL, .text = "no"};
		struct ask ask = {.gate = &world.gate, .kind = ASK_LEASE};
		struct view view = {.state = ABSENT};

		snprintf(name, sizeof(name), "key:%u", i);
		key = key_of(name);
		ask.key = key;
		assert_int_equal(engine_ask(world.engine, &ask, &one->link, &view, world.now_us), ASK_ANSWERED);
		token = ask.token;
		assert_true(engine_fill(world.engine, &key, token, &fill, world.now_us));
	}
	assert_int_equal(records(&world), 2000);
	pass(&world, 60 * 1000);
	assert_int_equal(records(&world), 0);
	world_close(&world);
}

static void test_record__a_full_table_forgets_what_would_end_first(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world_limit(&world, 100, 3);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k1");
	pass(&world, 3000);
	(void)get(&world, one, "k2");
	pass(&world, 3000);
	(void)get(&world, one, "k3");
	(void)get(&world, one, "k4"); /* a flight always finds room where a memory can go */
	assert_false(explain(&world, one, "k1").known);
	assert_true(explain(&world, one, "k2").known);
	(void)get(&world, one, "k5");
	assert_false(explain(&world, one, "k2").known);
	expect_error(get(&world, one, "k6"), HG_ERR_LIMIT); /* what flies is not forgotten */
	assert_true(explain(&world, one, "k3").leased);
	world_close(&world);
}

static void test_record__keys_of_different_spaces_are_different(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;
	const char *name = "k";

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	first = get(&world, one, name);
	second = new_command(&world, 1, &name);
	second->asks[0].key.space = 1; /* also with the same hash */
	(void)send_command(&world, two, second);
	expect_leads(first);
	expect_leads(second);
	(void)set(&world, one, "k", "v");
	assert_int_equal(records(&world), 1);
	world_close(&world);
}

static void test_record__tokens_never_repeat_and_carry_the_boot(void **state)
{
	struct world world;
	struct client *one;
	uint64_t last = 0;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	for (int i = 0; i < 1000; i++) {
		struct token token = lease(&world, one, "k", 0)->asks[0].token;

		assert_int_equal(token.boot, 77);
		assert_true(token.serial > last);
		last = token.serial;
		assert_true(fill(&world, token, "k", FILL_ABANDON, NULL, 0));
	}
	world_close(&world);
}

static void test_record__nils_are_bounded_and_end_with_their_links(void **state)
{
	struct world world;
	struct client *clients[100];

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.own_lock = true;
	for (unsigned i = 0; i < 100; i++) {
		clients[i] = connect_to(&world, "program");
		(void)get(&world, clients[i], "k");
	}
	assert_int_equal(clients[0]->link.nils_len, 0); /* the oldest were forgotten: theirs counts as anybody's SET */
	assert_int_equal(clients[99]->link.nils_len, 1);
	del(&world, NULL, "k");
	assert_int_equal(set(&world, clients[0], "k", "v"), WRITE_CUT);
	close_client(&world, clients[98]);
	assert_int_equal(set(&world, clients[99], "k", "v"), WRITE_FENCED);
	world_close(&world);
}

/* ---- looking in ---- */

static unsigned visited;

static void visit(void *arg, const struct flight_view *view)
{
	assert_ptr_equal(arg, &visited);
	assert_string_equal(view->holder, "client");
	assert_int_equal(view->waiters, 1);
	visited++;
}

static void test_record__operators_see_what_is_there(void **state)
{
	struct world world;
	struct client *one, *two;
	struct explain seen;
	struct recent recent[ENGINE_RECENT];

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	assert_false(explain(&world, one, "k\n").known);
	(void)get(&world, one, "k\n");
	(void)get(&world, two, "k\n");
	pass(&world, 250);
	seen = explain(&world, one, "k\n");
	assert_string_equal(seen.holder, "client");
	assert_int_equal(seen.leader_link, one->link.id);
	assert_int_equal(seen.lease_left_us, 2750 * MS);
	assert_int_equal(seen.running_us, 250 * MS);
	assert_int_equal(seen.waiters, 1);
	assert_false(seen.filled_before);
	engine_flights(world.engine, 10, world.now_us, visit, &visited);
	assert_int_equal(visited, 1);
	(void)set(&world, one, "k\n", "v");
	assert_true(explain(&world, one, "k\n").filled_before);
	assert_int_equal(engine_recent(world.engine, recent), 1);
	assert_string_equal(recent[0].key, "k?");
	assert_string_equal(recent[0].outcome, "fill");
	assert_int_equal(recent[0].took_us, 250 * MS);
	assert_int_equal(recent[0].herd, 1);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_record__nothing_is_remembered_of_a_key_that_was_filled),
		cmocka_unit_test(test_record__a_lapse_is_remembered_for_a_minute),
		cmocka_unit_test(test_record__a_fence_is_remembered_until_its_end),
		cmocka_unit_test(test_record__thousands_of_failing_keys_leave_nothing),
		cmocka_unit_test(test_record__a_full_table_forgets_what_would_end_first),
		cmocka_unit_test(test_record__keys_of_different_spaces_are_different),
		cmocka_unit_test(test_record__tokens_never_repeat_and_carry_the_boot),
		cmocka_unit_test(test_record__nils_are_bounded_and_end_with_their_links),
		cmocka_unit_test(test_record__operators_see_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
