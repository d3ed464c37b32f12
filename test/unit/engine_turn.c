/* engine_turn.c - what an ask gets: the verdicts, whole commands, and that nothing leads that cannot be sent. */
#include "engine_world.h"

#define TWO(one, two)            \
	2, (const char *const[]) \
	{                        \
		one, two         \
	}

static uint64_t sum_of_verdicts(const struct gate_counters *counters)
{
	return counters->fresh + counters->stale + counters->led + counters->waited + counters->passed +
	       counters->refused;
}

/* ---- one key -------------------------------------------------------------------------------------------------- */

static void test_turn__first_asker_leads_second_waits(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	first = get(&world, one, "k");
	second = get(&world, two, "k");
	expect_leads(first);
	expect_held(second);
	assert_int_equal(set(&world, one, "k", "v"), WRITE_STORE);
	expect_is(second, "v");
	expect_is(get(&world, two, "k"), "v");
	assert_int_equal(world.gate.counters.loads, 1);
	assert_int_equal(world.gate.counters.avoided, 1);
	assert_int_equal(world.gate.counters.herd_max, 1);
	world_close(&world);
}

static void test_turn__whoever_missed_just_before_a_fill_finds_the_fill(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k");
	(void)set(&world, one, "k", "v");
	/* It saw nothing a moment ago; under the lock the view shows the value, and no flight begins. */
	expect_is(get(&world, two, "k"), "v");
	assert_false(explain(&world, two, "k").leased);
	assert_int_equal(world.gate.counters.loads, 1);
	world_close(&world);
}

static void test_turn__a_stale_value_is_served_before_any_wait(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "k", "old", 10 * MS, 10 * SECOND);
	pass_us(&world, 10 * MS - 1);
	expect_is(get(&world, one, "k"), "old");
	assert_int_equal(world.gate.counters.fresh, 1);
	pass_us(&world, 1);
	expect_leads(get(&world, one, "k"));
	for (int i = 0; i < 10; i++)
		expect_is(get(&world, two, "k"), "old");
	assert_int_equal(world.gate.counters.stale, 10);
	assert_int_equal(world.gate.counters.avoided, 10);
	assert_int_equal(world.gate.counters.loads, 1);
	/* Its leader asks again and is not held either. */
	expect_is(get(&world, one, "k"), "old");
	world_close(&world);
}

static void test_turn__without_grace_expiry_is_absence(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.grace_us = 0;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k");
	assert_int_equal(write_by(&world, one, "k", "v", true, 30 * SECOND), WRITE_STORE);
	pass_us(&world, 30 * SECOND - 1);
	expect_is(get(&world, two, "k"), "v");
	pass_us(&world, 1);
	expect_leads(get(&world, one, "k"));
	second = get(&world, two, "k");
	expect_held(second);
	world_close(&world);
}

static void test_turn__a_set_is_soft_for_its_life_and_hard_for_the_grace_more(void **state)
{
	struct world world;
	struct client *one;
	const struct cell *cell;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.grace_us = 300 * SECOND;
	one = connect_to(&world, "a");
	(void)write_by(&world, one, "k", "v", true, 30 * SECOND);
	cell = cell_of(&world, "k");
	assert_int_equal(cell->times.fresh_until_us - world.now_us, 30 * SECOND);
	assert_int_equal(cell->times.dead_at_us - world.now_us, 330 * SECOND);
	world_close(&world);
}

static void test_turn__a_key_without_a_gate_is_answered_plainly(void **state)
{
	struct world world;
	struct client *one;
	struct command *command;
	const char *name = "k";

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	command = new_command(&world, 1, &name);
	command->asks[0].gate = NULL;
	expect_pass(send_command(&world, one, command));
	assert_false(explain(&world, one, "k").known);
	there(&world, "k", "v", SECOND, 0);
	command = new_command(&world, 1, &name);
	command->asks[0].gate = NULL;
	expect_is(send_command(&world, one, command), "v");
	world_close(&world);
}

static void test_turn__cached_absence_is_an_answer(void **state)
{
	struct world world;
	struct client *one;
	struct command *led;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	led = lease(&world, one, "k", 0);
	assert_true(fill(&world, led->asks[0].token, "k", FILL_ABSENT, NULL, 0));
	assert_int_equal(answer_of(get(&world, one, "k")), ANSWER_ABSENT);
	/* absent_ttl, to the microsecond, and no grace. */
	pass_us(&world, 5 * SECOND - 1);
	assert_int_equal(answer_of(get(&world, one, "k")), ANSWER_ABSENT);
	pass_us(&world, 1);
	expect_leads(get(&world, one, "k"));
	world_close(&world);
}

/* ---- early refresh -------------------------------------------------------------------------------------------- */

static void test_turn__who_is_drawn_leads_and_the_others_have_the_live_value(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "k", "v", 10 * SECOND, 0);
	expect_leads(get_early(&world, one, "k"));
	/* A second one that is drawn finds the flight. */
	expect_is(get_early(&world, two, "k"), "v");
	expect_is(get(&world, two, "k"), "v");
	assert_int_equal(world.gate.counters.early, 1);
	assert_int_equal(world.gate.counters.led, 1);
	assert_int_equal(world.gate.counters.fresh, 2);
	assert_int_equal(sum_of_verdicts(&world.gate.counters), 3);
	world_close(&world);
}

static void test_turn__behind_a_hold_an_early_refresh_is_left_to_others(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "k", "v", 10 * SECOND, 0);
	(void)get(&world, one, "held");
	expect_held(get(&world, two, "held"));
	expect_is(get_early(&world, two, "k"), "v");
	assert_false(explain(&world, two, "k").leased);
	world_close(&world);
}

/* ---- MULTI and WATCH ------------------------------------------------------------------------------------------ */

static void test_turn__in_multi_nothing_is_held(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	expect_pass(get_now(&world, one, "k", true));
	assert_false(explain(&world, one, "k").leased);
	expect_leads(get(&world, two, "k"));
	expect_pass(get_now(&world, one, "k", true));
	there(&world, "s", "old", 0, 10 * SECOND);
	expect_leads(get_now(&world, one, "s", true));
	expect_is(get_now(&world, two, "s", true), "old");
	there(&world, "f", "new", SECOND, 0);
	expect_is(get_now(&world, two, "f", true), "new");
	world_close(&world);
}

static void test_turn__in_multi_nothing_leads_behind_a_held_reply(void **state)
{
	struct world world;
	struct client *one, *two;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "s", "old", 0, 10 * SECOND);
	(void)get(&world, one, "k");
	expect_held(get(&world, two, "k"));
	expect_is(get_now(&world, two, "s", true), "old");
	assert_false(explain(&world, two, "s").leased);
	world_close(&world);
}

static void test_turn__connections_that_watch_get_plain_answers(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	there(&world, "s", "old", 0, 10 * SECOND);
	expect_pass(get_now(&world, one, "s", false));
	expect_pass(get_now(&world, one, "k", false));
	assert_false(explain(&world, one, "s").leased);
	assert_false(explain(&world, one, "k").leased);
	there(&world, "f", "new", SECOND, 0);
	expect_is(get_now(&world, one, "f", false), "new");
	world_close(&world);
}

/* ---- whole commands ------------------------------------------------------------------------------------------- */

static void test_turn__the_second_ask_of_one_command_gets_nil_too(void **state)
{
	struct world world;
	struct client *one;
	struct command *both;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	both = mget(&world, one, TWO("k", "k"));
	expect_leads(both);
	assert_int_equal(both->asks[1].answer, ANSWER_PASS);
	assert_int_equal(world.gate.counters.loads, 1);
	/* Also over a stale value: a program that keeps the last of equal keys would not compute it otherwise. */
	there(&world, "s", "old", 0, 10 * SECOND);
	both = mget(&world, one, TWO("s", "s"));
	expect_leads(both);
	assert_null(both->values[1]);
	assert_int_equal(world.gate.counters.loads, 2);
	world_close(&world);
}

static void test_turn__a_member_beside_a_held_one_takes_no_lease(void **state)
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
	both = mget(&world, two, TWO("x", "y"));
	expect_held(both);
	assert_false(explain(&world, two, "y").leased);
	assert_int_equal(world.gate.counters.waited, 1); /* y is counted when it is looked up again */
	expect_leads(get(&world, three, "y"));
	(void)set(&world, one, "x", "vx");
	expect_held(both);
	assert_int_equal(world.gate.counters.waited, 2);
	(void)set(&world, three, "y", "vy");
	expect_is(both, "vx");
	assert_string_equal(both->values[1], "vy");
	world_close(&world);
}

static void test_turn__a_parked_member_leads_when_nothing_is_held_any_more(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *both;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "x");
	both = mget(&world, two, TWO("y", "x"));
	expect_held(both);
	(void)set(&world, one, "x", "vx");
	expect_leads(both);
	assert_string_equal(both->values[1], "vx");
	assert_true(explain(&world, two, "y").sent);
	world_close(&world);
}

static void test_turn__a_get_behind_a_held_reply_is_parked(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *held, *parked;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)get(&world, one, "x");
	held = get(&world, two, "x");
	parked = get(&world, two, "y");
	expect_held(parked);
	assert_false(explain(&world, two, "y").leased);
	expect_leads(get(&world, three, "y")); /* meanwhile any other connection may lead */
	(void)set(&world, three, "y", "vy");
	expect_held(parked);
	(void)set(&world, one, "x", "vx");
	expect_is(held, "vx");
	expect_is(parked, "vy");
	assert_int_equal(world.gate.counters.fresh, 1); /* the verdict is that of the second look */
	world_close(&world);
}

static void test_turn__what_is_there_is_answered_behind_a_held_reply(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *fresh, *stale;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "f", "new", 10 * SECOND, 0);
	there(&world, "s", "old", 0, 10 * SECOND);
	(void)get(&world, one, "s");
	(void)get(&world, one, "x");
	expect_held(get(&world, two, "x"));
	fresh = get(&world, two, "f");
	stale = get(&world, two, "s");
	expect_is(fresh, "new");
	expect_is(stale, "old");
	world_close(&world);
}

static void test_turn__a_turn_that_comes_after_its_wait_is_not_held_again(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *held, *parked;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.lease_first_us = 10 * SECOND;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)get(&world, one, "x");
	held = get(&world, two, "x");
	parked = get(&world, two, "y");
	(void)get(&world, three, "y");
	pass_us(&world, 5 * SECOND - 1);
	expect_held(held);
	pass_us(&world, 1);
	expect_error(held, HG_ERR_TIMEOUT);
	expect_error(parked, HG_ERR_TIMEOUT);
	assert_int_equal(world.gate.counters.timed_out, 2);
	world_close(&world);
}

static void test_turn__a_command_that_fails_gives_its_leases_back(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *both, *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.waiters_max = 1;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	assert_true(fill(&world, lease(&world, one, "bad", 0)->asks[0].token, "bad", FILL_FAIL, "broken", 0));
	both = mget(&world, two, TWO("k", "bad"));
	assert_int_equal(both->asks[1].answer, ANSWER_ERROR);
	assert_int_equal(both->asks[1].error, HG_ERR_BACKOFF);
	/* The reply is an error: nobody was told to compute k, so the next asker is. */
	assert_false(explain(&world, two, "k").leased);
	expect_leads(get(&world, three, "k"));
	waiter = get(&world, one, "k");
	expect_held(waiter);
	(void)set(&world, three, "k", "v");
	expect_is(waiter, "v");
	world_close(&world);
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

static void test_turn__a_full_flight_refuses_by_name_and_serves_what_is_stale(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *refused;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.waiters_max = 1;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)get(&world, one, "k");
	expect_held(get(&world, two, "k"));
	refused = get(&world, three, "k");
	expect_error(refused, HG_ERR_LIMIT);
	assert_non_null(strstr(refused->asks[0].text, "max_waiters"));
	assert_int_equal(world.gate.counters.refused, 1);
	there(&world, "s", "old", 0, SECOND);
	(void)get(&world, one, "s");
	expect_is(get(&world, three, "s"), "old");
	world_close(&world);
}

static void test_turn__a_lease_that_would_not_wait_is_not_refused_by_a_full_flight(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *told;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.waiters_max = 1;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k");
	(void)get(&world, two, "k");
	pass(&world, 100);
	told = lease(&world, connect_to(&world, "c"), "k", 0);
	assert_int_equal(answer_of(told), ANSWER_WAIT);
	assert_int_equal(told->asks[0].lease_us, 2900 * MS);
	/* It never waited, so nothing timed out. */
	assert_int_equal(world.gate.counters.timed_out, 0);
	world_close(&world);
}

static void test_turn__limits_in_all_are_named(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *refused;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world_limit(&world, 1, 2);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k1");
	expect_held(get(&world, two, "k1"));
	refused = get(&world, connect_to(&world, "c"), "k1");
	expect_error(refused, HG_ERR_LIMIT);
	assert_non_null(strstr(refused->asks[0].text, "waiters"));
	(void)get(&world, one, "k2");
	refused = get(&world, one, "k3");
	expect_error(refused, HG_ERR_LIMIT);
	assert_non_null(strstr(refused->asks[0].text, "flights"));
	there(&world, "k4", "old", 0, SECOND);
	expect_is(get(&world, one, "k4"), "old");
	there(&world, "k5", "new", SECOND, 0);
	expect_is(get_early(&world, one, "k5"), "new");
	world_close(&world);
}

/* ---- own_lock ------------------------------------------------------------------------------------------------- */

static void test_turn__with_own_lock_a_peer_is_not_held_by_itself(void **state)
{
	struct world world;
	struct client *one, *two, *other;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.own_lock = true;
	one = connect_to(&world, "program");
	two = connect_to(&world, "program");
	other = connect_to(&world, "other");
	expect_leads(get(&world, one, "k"));
	expect_pass(get(&world, one, "k"));
	expect_pass(get(&world, two, "k"));
	held = get(&world, other, "k");
	expect_held(held);
	(void)set(&world, two, "k", "v");
	expect_is(held, "v");
	there(&world, "s", "old", 0, SECOND);
	expect_leads(get(&world, one, "s"));
	expect_pass(get(&world, two, "s"));
	expect_is(get(&world, other, "s"), "old");
	/* A fresh value is a fresh value. */
	there(&world, "f", "new", SECOND, 0);
	expect_leads(get_early(&world, one, "f"));
	expect_is(get_early(&world, two, "f"), "new");
	world_close(&world);
}

/* ---- the program loads ---------------------------------------------------------------------------------------- */

static void test_turn__an_origins_askers_all_wait_for_one_load(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	first = get(&world, one, "k");
	second = get(&world, two, "k");
	expect_held(first);
	expect_held(second);
	assert_int_equal(world.orders_len, 1);
	assert_string_equal(last_order(&world)->name, "k");
	assert_int_equal(last_order(&world)->deadline_us, world.now_us + 30 * SECOND);
	pass(&world, 50);
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", 0));
	expect_is(first, "v");
	expect_is(second, "v");
	assert_int_equal(world.gate.counters.led, 1);
	assert_int_equal(world.gate.counters.waited, 1);
	world_close(&world);
}

static void test_turn__an_origins_stale_value_is_served_while_it_loads(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	there(&world, "k", "old", 0, 10 * SECOND);
	expect_is(get(&world, one, "k"), "old");
	expect_is(get(&world, one, "k"), "old");
	assert_int_equal(world.orders_len, 1);
	assert_int_equal(world.gate.counters.stale, 2);
	assert_int_equal(world.gate.counters.avoided, 1);
	there(&world, "f", "new", SECOND, 0);
	expect_is(get_early(&world, one, "f"), "new");
	assert_int_equal(world.orders_len, 2);
	assert_int_equal(world.gate.counters.early, 1);
	world_close(&world);
}

static void test_turn__an_origins_loads_of_one_command_run_side_by_side(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *both, *behind;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	there(&world, "f", "new", 10 * SECOND, 0);
	both = mget(&world, one, 4, (const char *const[]){"x", "f", "y", "x"});
	expect_held(both);
	assert_int_equal(world.orders_len, 2);
	behind = get(&world, one, "z"); /* behind a hold too: the program needs no reply to begin */
	expect_held(behind);
	assert_int_equal(world.orders_len, 3);
	(void)fill(&world, world.orders[0].token, "x", FILL_VALUE, "vx", 0);
	(void)fill(&world, world.orders[2].token, "z", FILL_VALUE, "vz", 0);
	expect_held(both);
	(void)fill(&world, world.orders[1].token, "y", FILL_ABSENT, NULL, 0);
	expect_is(both, "vx");
	assert_string_equal(both->values[1], "new");
	assert_null(both->values[2]);
	assert_string_equal(both->values[3], "vx");
	expect_is(behind, "vz");
	assert_int_equal(answer_of(get(&world, two, "y")), ANSWER_ABSENT);
	world_close(&world);
}

static void test_turn__a_caller_leads_itself_and_refreshes_go_to_the_executor(void **state)
{
	struct world world;
	struct command *first, *second, *hasty;

	(void)state;
	world_open(&world, GATE_CALLER);
	first = call(&world, "k", SECOND);
	second = call(&world, "k", SECOND);
	expect_leads(first);
	expect_held(second);
	hasty = call(&world, "k", 0);
	expect_error(hasty, HG_ERR_TIMEOUT);
	assert_true(fill(&world, first->asks[0].token, "k", FILL_VALUE, "v", 0));
	expect_is(second, "v");
	there(&world, "s", "old", 0, SECOND);
	expect_is(call(&world, "s", SECOND), "old");
	expect_is(call(&world, "s", SECOND), "old");
	assert_int_equal(world.orders_len, 1);
	assert_true(fill(&world, last_order(&world)->token, "s", FILL_VALUE, "new", 0));
	expect_is(call(&world, "s", SECOND), "new");
	world_close(&world);
}

static void test_turn__a_waiter_that_cancels_harms_nobody(void **state)
{
	struct world world;
	struct command *first, *second, *third;

	(void)state;
	world_open(&world, GATE_CALLER);
	first = call(&world, "k", SECOND);
	second = call(&world, "k", SECOND);
	third = call(&world, "k", SECOND);
	cancel(&world, second);
	assert_true(fill(&world, first->asks[0].token, "k", FILL_VALUE, "v", 0));
	expect_is(third, "v");
	assert_false(second->replied);
	world_close(&world);
}

/* ---- observing gates ------------------------------------------------------------------------------------------ */

static void test_turn__an_observing_gate_counts_what_holding_would_have_saved(void **state)
{
	struct world world;
	struct key key = key_of("p:k");
	struct prefix prefixes[ENGINE_PREFIXES];

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.mode = GATE_OBSERVE;
	for (int i = 0; i < 5; i++)
		engine_observe(world.engine, &key, &world.gate, ABSENT, world.now_us);
	engine_observe(world.engine, &key, &world.gate, FRESH, world.now_us);
	assert_int_equal(world.gate.counters.led, 1);
	assert_int_equal(world.gate.counters.would_wait, 4);
	assert_int_equal(world.gate.counters.loads, 0); /* it gave no lease */
	assert_int_equal(engine_prefixes(world.engine, prefixes), 1);
	assert_string_equal(prefixes[0].text, "p:");
	assert_int_equal(prefixes[0].misses, 5);
	assert_int_equal(prefixes[0].saved, 4);
	expect_pass(get(&world, connect_to(&world, "a"), "p:k"));
	world_close(&world);
}

static void test_turn__what_one_gate_observes_holds_nobody_of_another(void **state)
{
	struct world world;
	struct gate observing;
	struct client *one, *two;
	struct key key = key_of("k");
	struct gate_policy policy;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	gate_policy_default(&policy, GATE_CLIENT);
	policy.mode = GATE_OBSERVE;
	gate_init(&observing, "*", 2, &policy);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	engine_observe(world.engine, &key, &observing, ABSENT, world.now_us);
	/* A reload: the key is another gate's now. */
	expect_leads(get(&world, one, "k"));
	held = get(&world, two, "k");
	expect_held(held);
	pass(&world, 20);
	(void)set(&world, one, "k", "v");
	expect_is(held, "v");
	engine_observe(world.engine, &key, &observing, ABSENT, world.now_us);
	pass(&world, 20 * 1000);
	world_close(&world);
}

static void test_turn__a_switched_gate_ends_what_it_holds(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k");
	held = get(&world, two, "k");
	world.gate.policy.mode = GATE_OFF;
	gates_changed(&world);
	carry_out(&world);
	expect_pass(held);
	assert_false(explain(&world, one, "k").leased);
	expect_pass(get(&world, two, "k"));
	world.gate.policy.mode = GATE_HOLD;
	gates_changed(&world);
	expect_leads(get(&world, two, "k"));
	world_close(&world);
}

static void test_turn__every_ask_is_counted_once(void **state)
{
	struct world world;
	struct client *one, *two;
	unsigned asks = 0;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, one, "k"), asks++;
	(void)get(&world, two, "k"), asks++;
	(void)mget(&world, two, TWO("k", "j")), asks += 2;
	pass(&world, 4000); /* the lease lapses, the wait is over for nobody */
	(void)set(&world, one, "k", "v");
	pass(&world, 20000);
	(void)get(&world, one, "k"), asks++;
	assert_int_equal(sum_of_verdicts(&world.gate.counters), asks);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_turn__first_asker_leads_second_waits),
		cmocka_unit_test(test_turn__whoever_missed_just_before_a_fill_finds_the_fill),
		cmocka_unit_test(test_turn__a_stale_value_is_served_before_any_wait),
		cmocka_unit_test(test_turn__without_grace_expiry_is_absence),
		cmocka_unit_test(test_turn__a_set_is_soft_for_its_life_and_hard_for_the_grace_more),
		cmocka_unit_test(test_turn__a_key_without_a_gate_is_answered_plainly),
		cmocka_unit_test(test_turn__cached_absence_is_an_answer),
		cmocka_unit_test(test_turn__who_is_drawn_leads_and_the_others_have_the_live_value),
		cmocka_unit_test(test_turn__behind_a_hold_an_early_refresh_is_left_to_others),
		cmocka_unit_test(test_turn__in_multi_nothing_is_held),
		cmocka_unit_test(test_turn__in_multi_nothing_leads_behind_a_held_reply),
		cmocka_unit_test(test_turn__connections_that_watch_get_plain_answers),
		cmocka_unit_test(test_turn__the_second_ask_of_one_command_gets_nil_too),
		cmocka_unit_test(test_turn__a_member_beside_a_held_one_takes_no_lease),
		cmocka_unit_test(test_turn__a_parked_member_leads_when_nothing_is_held_any_more),
		cmocka_unit_test(test_turn__a_get_behind_a_held_reply_is_parked),
		cmocka_unit_test(test_turn__what_is_there_is_answered_behind_a_held_reply),
		cmocka_unit_test(test_turn__a_turn_that_comes_after_its_wait_is_not_held_again),
		cmocka_unit_test(test_turn__a_command_that_fails_gives_its_leases_back),
		cmocka_unit_test(test_turn__a_full_flight_refuses_by_name_and_serves_what_is_stale),
		cmocka_unit_test(test_turn__a_lease_that_would_not_wait_is_not_refused_by_a_full_flight),
		cmocka_unit_test(test_turn__limits_in_all_are_named),
		cmocka_unit_test(test_turn__with_own_lock_a_peer_is_not_held_by_itself),
		cmocka_unit_test(test_turn__an_origins_askers_all_wait_for_one_load),
		cmocka_unit_test(test_turn__an_origins_stale_value_is_served_while_it_loads),
		cmocka_unit_test(test_turn__an_origins_loads_of_one_command_run_side_by_side),
		cmocka_unit_test(test_turn__a_caller_leads_itself_and_refreshes_go_to_the_executor),
		cmocka_unit_test(test_turn__a_waiter_that_cancels_harms_nobody),
		cmocka_unit_test(test_turn__an_observing_gate_counts_what_holding_would_have_saved),
		cmocka_unit_test(test_turn__what_one_gate_observes_holds_nobody_of_another),
		cmocka_unit_test(test_turn__a_switched_gate_ends_what_it_holds),
		cmocka_unit_test(test_turn__every_ask_is_counted_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
