/* engine_fail.c - loads that end in an error, without end, or with their leader: flight.c's other half. */
#include "engine_world.h"

static void test_fail__an_error_is_shared_and_then_backed_off_growing_and_capped(void **state)
{
	static const int64_t backoffs_ms[] = {250, 500, 1000, 2000, 4000, 8000, 10000, 10000};
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	for (unsigned i = 0; i < 8; i++) {
		struct command *first = get(&world, one, "k"), *second = get(&world, two, "k"), *refused;

		assert_int_equal(world.orders_len, i + 1);
		assert_true(fill(&world, last_order(&world)->token, "k", FILL_FAIL, "no such table", 0));
		expect_error(first, HG_ERR_LOAD);
		expect_error(second, HG_ERR_LOAD);
		pass_us(&world, backoffs_ms[i] * MS - 1);
		refused = get(&world, one, "k");
		expect_error(refused, HG_ERR_BACKOFF);
		assert_int_equal(refused->asks[0].retry_after_us, 1);
		assert_string_equal(refused->asks[0].text, "no such table");
		pass_us(&world, 1);
	}
	/* A value ends it. */
	(void)get(&world, one, "k");
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", SECOND));
	cell_of(&world, "k")->there = false;
	(void)get(&world, one, "k");
	(void)fill(&world, last_order(&world)->token, "k", FILL_FAIL, "no", 0);
	assert_int_equal(explain(&world, one, "k").backoff_left_us, 250 * MS);
	world_close(&world);
}

static void test_fail__a_back_off_of_zero_is_off(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	world.gate.policy.error_backoff_us = 0;
	one = connect_to(&world, "a");
	for (unsigned i = 0; i < 5; i++) {
		(void)get(&world, one, "k");
		assert_int_equal(world.orders_len, i + 1);
		(void)fill(&world, last_order(&world)->token, "k", FILL_FAIL, "no", 0);
	}
	world_close(&world);
}

static void test_fail__a_stale_value_hides_the_error(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	there(&world, "k", "old", 0, 60 * SECOND);
	expect_is(get(&world, one, "k"), "old");
	(void)fill(&world, last_order(&world)->token, "k", FILL_FAIL, "no", 0);
	pass_us(&world, 250 * MS - 1);
	expect_is(get(&world, one, "k"), "old");
	assert_int_equal(world.orders_len, 1);
	pass_us(&world, 1);
	expect_is(get(&world, one, "k"), "old");
	assert_int_equal(world.orders_len, 2);
	/* An invalidation: neither the value nor the back-off outlives it. */
	(void)fill(&world, last_order(&world)->token, "k", FILL_FAIL, "no", 0);
	del(&world, NULL, "k");
	expect_held(get(&world, one, "k"));
	assert_int_equal(world.orders_len, 3);
	world_close(&world);
}

static void test_fail__a_load_without_end_is_cut_off_and_shared_as_an_error(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	world.gate.policy.wait_us = 60 * SECOND;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	first = get(&world, one, "k");
	second = get(&world, two, "k");
	pass_us(&world, 30 * SECOND - 1);
	expect_held(first);
	assert_int_equal(world.cancels, 0);
	pass_us(&world, 1);
	expect_error(first, HG_ERR_LOAD);
	expect_error(second, HG_ERR_LOAD);
	assert_int_equal(world.cancels, 1);
	assert_int_equal(world.gate.counters.load_timeouts, 1);
	assert_int_equal(world.remarks[REMARK_LOAD_TIMEOUT], 1);
	assert_false(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "late", 0));
	expect_error(get(&world, one, "k"), HG_ERR_BACKOFF);
	world_close(&world);
}

static void test_fail__a_load_nobody_waits_for_is_left_to_finish(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	close_client(&world, one);
	pass(&world, 1000);
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", 0));
	expect_is(get(&world, connect_to(&world, "b"), "k"), "v");
	assert_int_equal(world.orders_len, 1);
	assert_int_equal(world.cancels, 0);
	world_close(&world);
}

static void test_fail__a_caller_that_is_too_slow_or_dies_is_replaced(void **state)
{
	struct world world;
	struct command *first, *second, *third;

	(void)state;
	world_open(&world, GATE_CALLER);
	first = call(&world, "k", 100 * SECOND);
	second = call(&world, "k", 100 * SECOND);
	third = call(&world, "k", 100 * SECOND);
	pass_us(&world, 30 * SECOND - 1);
	expect_held(second);
	pass_us(&world, 1);
	expect_leads(second);
	expect_held(third);
	assert_false(fill(&world, first->asks[0].token, "k", FILL_VALUE, "late", 0));
	assert_true(fill(&world, second->asks[0].token, "k", FILL_ABANDON, NULL, 0));
	expect_leads(third);
	assert_true(fill(&world, third->asks[0].token, "k", FILL_ABANDON, NULL, 0));
	expect_leads(call(&world, "k", 0));
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail__an_error_is_shared_and_then_backed_off_growing_and_capped),
		cmocka_unit_test(test_fail__a_back_off_of_zero_is_off),
		cmocka_unit_test(test_fail__a_stale_value_hides_the_error),
		cmocka_unit_test(test_fail__a_load_without_end_is_cut_off_and_shared_as_an_error),
		cmocka_unit_test(test_fail__a_load_nobody_waits_for_is_left_to_finish),
		cmocka_unit_test(test_fail__a_caller_that_is_too_slow_or_dies_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
