/* engine_flight.c - leases: when they end, who is given the next one, and what a key that nobody fills becomes. */
#include "engine_world.h"

/* Held waiters for `name`, each on a connection of its own of peer "crowd". */
static void crowd(struct world *world, const char *name, struct command *out_waiters[], unsigned len)
{
	for (unsigned i = 0; i < len; i++) {
		out_waiters[i] = get(world, connect_to(world, "crowd"), name);
		expect_held(out_waiters[i]);
	}
	/* One more that is idle, so that the crowd is never held as a whole. */
	(void)connect_to(world, "crowd");
}

static unsigned count_of(struct command *const commands[], unsigned len, enum answer answer)
{
	unsigned count = 0;

	for (unsigned i = 0; i < len; i++)
		count += answer_of(commands[i]) == answer;
	return count;
}

/* ---- lapse ---------------------------------------------------------------------------------------------------- */

static void test_flight__a_lapse_hands_over_to_one_waiter_and_releases_nobody_else(void **state)
{
	struct world world;
	struct command *waiters[5];

	(void)state;
	world_open(&world, GATE_CLIENT);
	(void)get(&world, connect_to(&world, "leader"), "k");
	crowd(&world, "k", waiters, 5);
	pass_us(&world, 3 * SECOND - 1);
	assert_int_equal(count_of(waiters, 5, ANSWER_LEAD), 0);
	pass_us(&world, 1);
	expect_leads(waiters[0]); /* the one that waits for longest */
	assert_int_equal(count_of(waiters, 5, ANSWER_LEAD), 1);
	for (unsigned i = 1; i < 5; i++)
		expect_held(waiters[i]);
	assert_int_equal(world.gate.counters.lapsed, 1);
	assert_int_equal(world.gate.counters.handed_over, 1);
	assert_int_equal(world.remarks[REMARK_LAPSED], 1);
	world_close(&world);
}

static void test_flight__a_lapse_doubles_the_keys_lease_up_to_the_cap(void **state)
{
	static const int64_t spans_ms[] = {3000, 6000, 10000, 10000};
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	there(&world, "k", "old", 0, 3600 * SECOND); /* nobody waits, nobody is unfilled */
	for (unsigned i = 0; i < 4; i++) {
		struct command *led = get(&world, one, "k");

		expect_leads(led);
		assert_int_equal(led->asks[0].lease_us, spans_ms[i] * MS);
		pass_us(&world, spans_ms[i] * MS - 1);
		expect_is(get(&world, one, "k"), "old");
		pass_us(&world, 1);
	}
	assert_int_equal(get(&world, one, "other")->asks[0].lease_us, 3 * SECOND);
	/* Until its next fill. */
	(void)set(&world, one, "k", "new");
	del(&world, one, "k");
	assert_int_equal(get(&world, one, "k")->asks[0].lease_us, 10 * SECOND); /* 3 x what that fill took, capped */
	world_close(&world);
}

static void test_flight__a_measured_lease_is_three_times_the_slowest_fill(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	assert_int_equal(get(&world, one, "k1")->asks[0].lease_us, 3 * SECOND);
	teach(&world, one, 50 * MS);
	assert_int_equal(get(&world, one, "k2")->asks[0].lease_us, SECOND);
	del(&world, NULL, "taught");
	teach(&world, one, 500 * MS);
	assert_int_equal(get(&world, one, "k3")->asks[0].lease_us, 1500 * MS);
	del(&world, NULL, "taught");
	teach(&world, one, 4 * SECOND);
	assert_int_equal(get(&world, one, "k4")->asks[0].lease_us, 10 * SECOND);
	world_close(&world);
}

static void test_flight__a_late_set_counts_as_a_fill_of_that_length(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiters[2];

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	teach(&world, one, 50 * MS);
	(void)get(&world, one, "k");
	crowd(&world, "k", waiters, 2);
	pass(&world, 2000); /* lapsed at 1 s; the next leader has been at it for a second */
	expect_leads(waiters[0]);
	assert_int_equal(waiters[0]->asks[0].lease_us, 2 * SECOND);
	assert_int_equal(set(&world, one, "k", "v"), WRITE_STORE); /* a lapse alone fences nothing */
	expect_is(waiters[1], "v");
	assert_int_equal(gate_slowest_us(&world.gate), 2 * SECOND);
	assert_int_equal(get(&world, one, "k2")->asks[0].lease_us, 6 * SECOND);
	world_close(&world);
}

static void test_flight__a_slowdown_of_forty_costs_few_loads(void **state)
{
	struct world world;
	struct client *one;
	unsigned loads = 0;
	int64_t until;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.wait_us = 3600 * SECOND;
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	pass(&world, 1000);
	(void)set(&world, one, "k", "v");
	pass(&world, 3600 * 1000);
	/* Loads of 1 s take 40 s now; somebody new asks every 100 ms. */
	world.gate.counters.loads = 0;
	until = world.now_us + 40 * SECOND;
	expect_leads(get(&world, one, "k"));
	while (world.now_us < until) {
		(void)get(&world, connect_to(&world, "crowd"), "k");
		pass(&world, 100);
	}
	loads = (unsigned)world.gate.counters.loads;
	assert_in_range(loads, 2, 1 + 5 + 1); /* 1 + log2(40), then one for each lease of 10 s: 3, 9, 19, 29, 39 s */
	assert_int_equal(loads, 6);
	assert_int_equal(world.gate.counters.passed, 0);
	(void)set(&world, one, "k", "v");
	assert_int_equal(world.gate.counters.avoided, 400 - (loads - 1));
	world_close(&world);
}

static void test_flight__a_lease_begins_when_its_nil_is_written(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	one->deaf = true;
	(void)get(&world, one, "k");
	assert_true(link_unsent(&one->link));
	pass(&world, 1000);
	one->deaf = false;
	send_ready(&world, one);
	assert_false(link_unsent(&one->link));
	waiter = get(&world, two, "k");
	pass_us(&world, 3 * SECOND - 1);
	expect_held(waiter);
	pass_us(&world, 1);
	expect_leads(waiter);
	world_close(&world);
}

static void test_flight__a_lease_begins_at_latest_one_lease_after_the_grant(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.wait_us = 100 * SECOND;
	one = connect_to(&world, "a");
	one->deaf = true;
	(void)get(&world, one, "k");
	waiter = get(&world, connect_to(&world, "b"), "k");
	pass(&world, 12 * 1000);
	one->deaf = false;
	send_ready(&world, one);
	pass_us(&world, SECOND - 1); /* 10 s + 3 s after the grant */
	expect_held(waiter);
	pass_us(&world, 1);
	expect_leads(waiter);
	world_close(&world);
}

static void test_flight__a_stalled_loop_judges_in_the_order_of_the_instants(void **state)
{
	struct world world;
	struct command *waiters[2];

	(void)state;
	world_open(&world, GATE_CLIENT);
	(void)get(&world, connect_to(&world, "leader"), "k");
	crowd(&world, "k", waiters, 2);
	/* Nothing runs for 6 s: the lease was over at 3 s, the waits at 5 s. */
	world.now_us += 6 * SECOND;
	engine_tick(world.engine, world.now_us);
	carry_out(&world);
	expect_leads(waiters[0]);
	expect_error(waiters[1], HG_ERR_TIMEOUT);
	assert_int_equal(explain(&world, NULL, "k").lease_left_us, 6 * SECOND);
	world_close(&world);
}

/* ---- unfilled ------------------------------------------------------------------------------------------------- */

static void test_flight__a_key_that_nobody_fills_holds_nobody_any_more(void **state)
{
	struct world world;
	struct command *waiters[3], *probe;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.wait_us = 100 * SECOND;
	one = connect_to(&world, "leader");
	(void)get(&world, one, "k");
	crowd(&world, "k", waiters, 3);
	pass_us(&world, 9 * SECOND - 1); /* leases of 3 s and 6 s */
	expect_leads(waiters[0]);
	expect_held(waiters[1]);
	pass_us(&world, 1);
	expect_pass(waiters[1]);
	expect_pass(waiters[2]);
	assert_true(explain(&world, NULL, "k").unfilled);
	assert_int_equal(world.remarks[REMARK_UNFILLED], 1);
	/* For one lease time everybody gets nil; then one is a probe, and nobody is held by it. */
	pass_us(&world, 6 * SECOND - 1);
	expect_pass(get(&world, one, "k"));
	pass_us(&world, 1);
	probe = get(&world, one, "k");
	expect_leads(probe);
	assert_int_equal(probe->asks[0].lease_us, 10 * SECOND);
	expect_pass(get(&world, connect_to(&world, "b"), "k"));
	/* Its lapse doubles: 12 s. */
	pass(&world, 10 * 1000);
	pass_us(&world, 12 * SECOND - 1);
	expect_pass(get(&world, one, "k"));
	pass_us(&world, 1);
	expect_leads(get(&world, one, "k"));
	assert_int_equal(world.remarks[REMARK_UNFILLED], 1);
	/* Any SET of it ends that. */
	(void)set(&world, connect_to(&world, "c"), "k", "v");
	assert_false(explain(&world, NULL, "k").unfilled);
	del(&world, one, "k");
	expect_leads(get(&world, one, "k"));
	expect_held(get(&world, connect_to(&world, "b"), "k"));
	world_close(&world);
}

static void test_flight__unfilled_doubles_up_to_ten_minutes(void **state)
{
	struct world world;
	struct client *one;
	int64_t span = 6 * SECOND;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "leader");
	(void)get(&world, one, "k");
	pass(&world, 3000);
	(void)get(&world, one, "k");
	pass(&world, 6000);
	for (int i = 0; i < 10; i++) {
		pass_us(&world, span - 1);
		expect_pass(get(&world, one, "k"));
		pass_us(&world, 1);
		expect_leads(get(&world, one, "k"));
		pass(&world, 10 * 1000);
		span = sat_min(2 * span, 600 * SECOND);
	}
	assert_int_equal(span, 600 * SECOND);
	world_close(&world);
}

static void test_flight__a_key_filled_before_is_never_unfilled(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "leader");
	(void)set(&world, one, "k", "v");
	del(&world, one, "k");
	(void)get(&world, one, "k");
	/* One nil for each lease time; who waits gets an error at its deadline. */
	for (int i = 0; i < 10; i++) {
		waiter = get(&world, connect_to(&world, "b"), "k");
		expect_held(waiter);
		pass(&world, 5000);
		assert_true(answer_of(waiter) == ANSWER_LEAD || answer_of(waiter) == ANSWER_ERROR);
	}
	assert_int_equal(world.gate.counters.unfilled, 0);
	assert_int_equal(world.gate.counters.passed, 0);
	world_close(&world);
}

static void test_flight__an_origin_in_trouble_makes_no_key_unfilled(void **state)
{
	struct world world;
	struct client *one;
	unsigned lapses = 0;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "leader");
	teach(&world, one, 50 * MS); /* the gate was filled, but no key has been since k was first led */
	pass_us(&world, 1);
	while (lapses < 8) {
		expect_leads(get(&world, one, "k"));
		pass(&world, 10 * 1000);
		lapses++;
	}
	assert_false(explain(&world, NULL, "k").unfilled);
	/* Another key is filled: the gate works, this key is the odd one. */
	del(&world, NULL, "taught");
	teach(&world, one, 50 * MS);
	expect_leads(get(&world, one, "k"));
	pass(&world, 10 * 1000);
	assert_true(explain(&world, NULL, "k").unfilled);
	world_close(&world);
}

static void test_flight__unfilled_after_can_be_raised(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.unfilled_after_us = 20 * SECOND;
	one = connect_to(&world, "leader");
	for (int i = 0; i < 4; i++) { /* 3, 6, 10, 10 */
		expect_leads(get(&world, one, "k"));
		assert_false(explain(&world, NULL, "k").unfilled);
		pass(&world, i == 0 ? 3000 : i == 1 ? 6000 : 10000);
		assert_int_equal(explain(&world, NULL, "k").unfilled, i == 3);
	}
	world_close(&world);
}

/* ---- close ---------------------------------------------------------------------------------------------------- */

static void test_flight__unmeasured_a_closed_leader_is_replaced_ten_milliseconds_later(void **state)
{
	struct world world;
	struct client *one, *brother, *other;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "program");
	brother = connect_to(&world, "program");
	other = connect_to(&world, "other");
	(void)connect_to(&world, "program");
	(void)get(&world, one, "k");
	first = get(&world, brother, "k");
	second = get(&world, other, "k");
	pass(&world, 100);
	close_client(&world, one);
	pass_us(&world, 10 * MS - 1);
	expect_held(first);
	expect_held(second);
	pass_us(&world, 1);
	expect_held(first); /* another peer's first: a process that dies closes all it has */
	expect_leads(second);
	assert_int_equal(second->asks[0].lease_us, 3 * SECOND);
	assert_int_equal(world.gate.counters.closed_leaders, 1);
	assert_int_equal(world.gate.counters.lapsed, 0);
	/* Once a flight: the next one that closes keeps its lease. */
	close_client(&world, other);
	pass_us(&world, 3 * SECOND - 10 * MS - 1);
	expect_held(first);
	pass(&world, 20);
	expect_leads(first);
	assert_int_equal(world.gate.counters.lapsed, 1);
	world_close(&world);
}

static void test_flight__who_dies_with_the_leader_is_given_nothing(void **state)
{
	struct world world;
	struct client *one, *brother, *other;
	struct command *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "program");
	brother = connect_to(&world, "program");
	other = connect_to(&world, "other");
	(void)get(&world, one, "k");
	(void)get(&world, brother, "k");
	second = get(&world, other, "k");
	close_client(&world, one);
	pass(&world, 5);
	close_client(&world, brother);
	pass(&world, 5);
	expect_leads(second);
	assert_int_equal(world.gate.counters.loads, 2);
	world_close(&world);
}

static void test_flight__measured_a_closed_leaders_time_is_one_and_a_quarter_of_the_slowest_fill(void **state)
{
	static const int64_t spans_ms[] = {125, 250, 500};
	struct world world;
	struct client *leaders[4];
	struct command *waiters[4];

	(void)state;
	world_open(&world, GATE_CLIENT);
	teach(&world, connect_to(&world, "t"), 100 * MS);
	leaders[0] = connect_to(&world, "leader");
	(void)get(&world, leaders[0], "k");
	for (unsigned i = 0; i < 4; i++) {
		struct client *client = connect_to(&world, "crowd");

		waiters[i] = get(&world, client, "k");
		if (i < 3)
			leaders[i + 1] = client;
	}
	(void)connect_to(&world, "crowd");
	for (unsigned i = 0; i < 3; i++) {
		pass_us(&world, MS);
		close_client(&world, leaders[i]);
		pass_us(&world, (spans_ms[i] + 9) * MS - 1);
		expect_held(waiters[i]);
		pass_us(&world, 1);
		expect_leads(waiters[i]); /* its time, and 10 ms */
		assert_int_equal(waiters[i]->asks[0].lease_us, SECOND);
	}
	assert_int_equal(world.gate.counters.lapsed, 0);
	/* The fourth would have 1 s: that is its lease, and its end is a lapse. */
	close_client(&world, leaders[3]);
	pass_us(&world, SECOND - 1);
	expect_held(waiters[3]);
	pass_us(&world, 1);
	expect_leads(waiters[3]);
	assert_int_equal(waiters[3]->asks[0].lease_us, 2 * SECOND);
	assert_int_equal(world.gate.counters.lapsed, 1);
	world_close(&world);
}

static void test_flight__a_leader_that_closes_after_its_time_ends_at_once(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiters[1];

	(void)state;
	world_open(&world, GATE_CLIENT);
	teach(&world, connect_to(&world, "t"), 100 * MS);
	one = connect_to(&world, "leader");
	(void)get(&world, one, "k");
	crowd(&world, "k", waiters, 1);
	pass(&world, 500);
	close_client(&world, one);
	pass_us(&world, 10 * MS - 1);
	expect_held(waiters[0]);
	pass_us(&world, 1);
	expect_leads(waiters[0]);
	world_close(&world);
}

static void test_flight__connection_per_command_costs_two_loads_first_and_one_later(void **state)
{
	struct world world;
	struct client *setter;
	struct command *waiters[20];
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	/* Cold: each asker connects, gets its nil and closes; the value is set 50 ms later on a new connection. */
	one = connect_to(&world, "program");
	(void)get(&world, one, "k");
	close_client(&world, one); /* kept, though nobody waits: the next ask leads, and that is its once */
	one = connect_to(&world, "program");
	expect_leads(get(&world, one, "k"));
	close_client(&world, one);
	for (unsigned i = 0; i < 20; i++) {
		waiters[i] = get(&world, connect_to(&world, "program"), "k");
		expect_held(waiters[i]);
	}
	pass(&world, 50);
	setter = connect_to(&world, "program");
	(void)set(&world, setter, "k", "v");
	for (unsigned i = 0; i < 20; i++)
		expect_is(waiters[i], "v");
	assert_int_equal(world.gate.counters.loads, 2);
	assert_int_equal(gate_slowest_us(&world.gate), 50 * MS);
	/* Later: one. */
	del(&world, NULL, "k");
	one = connect_to(&world, "program");
	expect_leads(get(&world, one, "k"));
	close_client(&world, one);
	waiters[0] = get(&world, connect_to(&world, "program"), "k");
	pass(&world, 50);
	(void)set(&world, setter, "k", "v");
	expect_is(waiters[0], "v");
	assert_int_equal(world.gate.counters.loads, 3);
	world_close(&world);
}

static void test_flight__connection_per_command_finds_out_that_nobody_fills(void **state)
{
	struct world world;
	struct client *clients[300];
	struct command *asked[300];
	unsigned len = 0;

	(void)state;
	world_open(&world, GATE_CLIENT);
	/* Leases that run their full time are lapses, closed connection or not. */
	while (len < 300 && !explain(&world, NULL, "k").unfilled) {
		clients[len] = connect_to(&world, "program");
		asked[len] = get(&world, clients[len], "k");
		len++;
		for (unsigned i = 0; i < len; i++) {
			if (clients[i]->open && asked[i]->replied)
				close_client(&world, clients[i]);
		}
		pass(&world, 50);
	}
	assert_true(explain(&world, NULL, "k").unfilled);
	assert_int_equal(world.gate.counters.lapsed, 2);
	world_close(&world);
}

static void test_flight__a_nil_that_never_left_uses_nothing_up(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *waiters[1];

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	one->deaf = true;
	(void)get(&world, one, "k");
	close_client(&world, one);
	two = connect_to(&world, "b");
	expect_leads(get(&world, two, "k"));
	crowd(&world, "k", waiters, 1);
	close_client(&world, two);
	pass(&world, 10);
	expect_leads(waiters[0]);
	world_close(&world);
}

static void test_flight__a_token_ends_with_its_connection(void **state)
{
	struct world world;
	struct client *one;
	struct command *led, *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	teach(&world, connect_to(&world, "t"), 100 * MS);
	one = connect_to(&world, "a");
	led = lease(&world, one, "k", 0);
	expect_leads(led);
	assert_int_equal(led->asks[0].lease_us, 10 * SECOND); /* not the learnt one */
	waiter = lease(&world, connect_to(&world, "b"), "k", 60 * SECOND);
	expect_held(waiter);
	close_client(&world, one);
	pass(&world, 10);
	expect_leads(waiter);
	assert_true(waiter->asks[0].handed_over);
	assert_false(fill(&world, led->asks[0].token, "k", FILL_VALUE, "late", 0));
	assert_true(fill(&world, waiter->asks[0].token, "k", FILL_VALUE, "v", 0));
	world_close(&world);
}

/* ---- nobody can lead ------------------------------------------------------------------------------------------ */

static void test_flight__commands_that_wait_for_each_others_keys_are_not_left_alone(void **state)
{
	static const char *const names[] = {"x", "y"};
	struct world world;
	struct client *one, *two, *three;
	struct command *second, *third;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)mget(&world, one, 2, names);
	second = mget(&world, two, 2, names);
	third = mget(&world, three, 2, names);
	close_client(&world, one);
	pass(&world, 10);
	/* Neither could lead x while it waited for y: the first is looked up again and leads both. */
	expect_leads(second);
	assert_int_equal(second->asks[1].answer, ANSWER_LEAD);
	expect_held(third);
	(void)set(&world, two, "x", "vx");
	(void)set(&world, two, "y", "vy");
	expect_is(third, "vx");
	assert_int_equal(world.gate.counters.timed_out, 0);
	world_close(&world);
}

static void test_flight__a_vacant_lease_goes_to_whoever_asks(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *both;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)get(&world, one, "x");
	(void)get(&world, two, "y");
	both = mget(&world, three, 2, (const char *const[]){"x", "y"});
	(void)mget(&world, connect_to(&world, "d"), 2, (const char *const[]){"x", "y"});
	close_client(&world, one);
	pass(&world, 10);
	expect_held(both); /* y is still led */
	expect_leads(get(&world, connect_to(&world, "e"), "x"));
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_flight__a_lapse_hands_over_to_one_waiter_and_releases_nobody_else),
		cmocka_unit_test(test_flight__a_lapse_doubles_the_keys_lease_up_to_the_cap),
		cmocka_unit_test(test_flight__a_measured_lease_is_three_times_the_slowest_fill),
		cmocka_unit_test(test_flight__a_late_set_counts_as_a_fill_of_that_length),
		cmocka_unit_test(test_flight__a_slowdown_of_forty_costs_few_loads),
		cmocka_unit_test(test_flight__a_lease_begins_when_its_nil_is_written),
		cmocka_unit_test(test_flight__a_lease_begins_at_latest_one_lease_after_the_grant),
		cmocka_unit_test(test_flight__a_stalled_loop_judges_in_the_order_of_the_instants),
		cmocka_unit_test(test_flight__a_key_that_nobody_fills_holds_nobody_any_more),
		cmocka_unit_test(test_flight__unfilled_doubles_up_to_ten_minutes),
		cmocka_unit_test(test_flight__a_key_filled_before_is_never_unfilled),
		cmocka_unit_test(test_flight__an_origin_in_trouble_makes_no_key_unfilled),
		cmocka_unit_test(test_flight__unfilled_after_can_be_raised),
		cmocka_unit_test(test_flight__unmeasured_a_closed_leader_is_replaced_ten_milliseconds_later),
		cmocka_unit_test(test_flight__who_dies_with_the_leader_is_given_nothing),
		cmocka_unit_test(test_flight__measured_a_closed_leaders_time_is_one_and_a_quarter_of_the_slowest_fill),
		cmocka_unit_test(test_flight__a_leader_that_closes_after_its_time_ends_at_once),
		cmocka_unit_test(test_flight__connection_per_command_costs_two_loads_first_and_one_later),
		cmocka_unit_test(test_flight__connection_per_command_finds_out_that_nobody_fills),
		cmocka_unit_test(test_flight__a_nil_that_never_left_uses_nothing_up),
		cmocka_unit_test(test_flight__a_token_ends_with_its_connection),
		cmocka_unit_test(test_flight__commands_that_wait_for_each_others_keys_are_not_left_alone),
		cmocka_unit_test(test_flight__a_vacant_lease_goes_to_whoever_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
