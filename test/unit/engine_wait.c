/* engine_wait.c - asks that wait: each has a deadline of its own, and gets what the gate says when that is over. */
#include "engine_world.h"

static void test_wait__runs_from_the_arrival_to_the_microsecond(void **state)
{
	struct world world;
	struct client *one;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.lease_first_us = 60 * SECOND;
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	first = get(&world, connect_to(&world, "b"), "k");
	pass(&world, 1000);
	second = get(&world, connect_to(&world, "c"), "k");
	pass_us(&world, 4 * SECOND - 1);
	expect_held(first);
	pass_us(&world, 1);
	expect_error(first, HG_ERR_TIMEOUT);
	expect_held(second);
	pass_us(&world, SECOND - 1);
	expect_held(second);
	pass_us(&world, 1);
	expect_error(second, HG_ERR_TIMEOUT);
	assert_int_equal(world.gate.counters.timed_out, 2);
	assert_int_equal(world.gate.counters.waited, 2);
	/* The load goes on: its value is wanted next time. */
	(void)set(&world, one, "k", "v");
	expect_is(get(&world, one, "k"), "v");
	world_close(&world);
}

static void test_wait__pass_gives_nil_to_the_first_and_errors_to_the_rest(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiters[4];

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.lease_first_us = 60 * SECOND;
	world.gate.policy.on_timeout = GATE_TIMEOUT_PASS;
	world.gate.policy.pass_max = 2;
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	for (int i = 0; i < 4; i++)
		waiters[i] = get(&world, connect_to(&world, "crowd"), "k");
	(void)connect_to(&world, "crowd");
	pass(&world, 5000);
	expect_pass(waiters[0]);
	expect_pass(waiters[1]);
	expect_error(waiters[2], HG_ERR_TIMEOUT);
	expect_error(waiters[3], HG_ERR_TIMEOUT);
	world_close(&world);
}

static void test_wait__each_lease_time_allows_its_passes_anew(void **state)
{
	struct world world;
	struct command *first, *second, *third, *fourth;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.on_timeout = GATE_TIMEOUT_PASS;
	world.gate.policy.wait_us = 2 * SECOND;
	(void)set(&world, connect_to(&world, "a"), "k", "v");
	del(&world, NULL, "k");
	(void)get(&world, connect_to(&world, "a"), "k");
	first = get(&world, connect_to(&world, "b"), "k");
	second = get(&world, connect_to(&world, "c"), "k");
	pass(&world, 1500);
	third = get(&world, connect_to(&world, "d"), "k");
	pass(&world, 500);
	expect_pass(first);
	expect_error(second, HG_ERR_TIMEOUT);
	pass(&world, 1000);
	expect_leads(third); /* a lease time later */
	fourth = get(&world, connect_to(&world, "e"), "k");
	pass(&world, 2000);
	expect_pass(fourth);
	world_close(&world);
}

static void test_wait__an_origins_waiter_never_gets_nil_for_a_row_that_may_exist(void **state)
{
	struct world world;
	struct command *held;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	world.gate.policy.on_timeout = GATE_TIMEOUT_PASS;
	held = get(&world, connect_to(&world, "a"), "k");
	pass(&world, 5000);
	expect_error(held, HG_ERR_TIMEOUT);
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", 0));
	world_close(&world);
}

static void test_wait__a_lease_that_waits_is_told_who_leads_when_its_time_is_over(void **state)
{
	struct world world;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	(void)get(&world, connect_to(&world, "a"), "k");
	waiter = lease(&world, connect_to(&world, "b"), "k", 400 * MS);
	pass_us(&world, 400 * MS - 1);
	expect_held(waiter);
	pass_us(&world, 1);
	assert_int_equal(answer_of(waiter), ANSWER_WAIT);
	assert_int_equal(waiter->asks[0].lease_us, 2600 * MS);
	world_close(&world);
}

static void test_wait__one_member_out_of_time_answers_its_command(void **state)
{
	struct world world;
	struct client *one;
	struct command *both;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.lease_first_us = 60 * SECOND;
	one = connect_to(&world, "a");
	(void)get(&world, one, "x");
	(void)get(&world, one, "y");
	both = mget(&world, connect_to(&world, "b"), 3, (const char *const[]){"x", "y", "z"});
	pass_us(&world, 5 * SECOND - 1);
	expect_held(both);
	pass_us(&world, 1);
	expect_error(both, HG_ERR_TIMEOUT);
	assert_int_equal(both->asks[1].answer, ANSWER_NONE);
	assert_int_equal(both->asks[2].answer, ANSWER_NONE);
	world_close(&world);
}

static void test_wait__two_thousand_are_answered_by_one_fill(void **state)
{
	static struct command *waiters[2000];
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	for (unsigned i = 0; i < 2000; i++)
		waiters[i] = get(&world, connect_to(&world, "crowd"), "k");
	pass(&world, 60);
	(void)set(&world, one, "k", "v");
	for (unsigned i = 0; i < 2000; i++) {
		expect_is(waiters[i], "v");
		assert_int_equal(waiters[i]->replied_us, world.now_us);
	}
	assert_int_equal(world.gate.counters.loads, 1);
	assert_int_equal(world.gate.counters.herd_max, 2000);
	assert_int_equal(world.gate.counters.avoided, 2000);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wait__runs_from_the_arrival_to_the_microsecond),
		cmocka_unit_test(test_wait__pass_gives_nil_to_the_first_and_errors_to_the_rest),
		cmocka_unit_test(test_wait__each_lease_time_allows_its_passes_anew),
		cmocka_unit_test(test_wait__an_origins_waiter_never_gets_nil_for_a_row_that_may_exist),
		cmocka_unit_test(test_wait__a_lease_that_waits_is_told_who_leads_when_its_time_is_over),
		cmocka_unit_test(test_wait__one_member_out_of_time_answers_its_command),
		cmocka_unit_test(test_wait__two_thousand_are_answered_by_one_fill),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
