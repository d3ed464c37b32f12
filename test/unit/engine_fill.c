/* engine_fill.c - the ends of flights from outside: writes, fills with a token, invalidations; and the fence. */
#include "engine_world.h"

#include <stdio.h>

/* ---- writes by commands ---- */

static void test_fill__any_string_from_any_connection_ends_the_flight(void **state)
{
	struct world world;
	struct client *one, *stranger;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	stranger = connect_to(&world, "b");
	(void)get(&world, one, "k");
	waiter = get(&world, connect_to(&world, "c"), "k");
	pass(&world, 70);
	/* Not in the form that the fence looks at: INCR, GETSET, in EXEC. */
	assert_int_equal(write_by(&world, stranger, "k", "1", false, HG_NEVER), WRITE_STORE);
	expect_is(waiter, "1");
	assert_int_equal(cell_of(&world, "k")->times.fresh_until_us, HG_NEVER);
	assert_int_equal(world.gate.counters.fills, 1);
	assert_int_equal(gate_slowest_us(&world.gate), 70 * MS);
	world_close(&world);
}

static void test_fill__a_set_with_no_flight_is_a_plain_write(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.early = GATE_EARLY_XFETCH;
	one = connect_to(&world, "a");
	assert_int_equal(set(&world, one, "k", "v"), WRITE_STORE);
	assert_int_equal(world.gate.fills_len, 0);
	assert_int_equal(world.gate.counters.fills, 0);
	/* Early refresh acts only on keys whose last value ended a flight. */
	assert_int_equal(cell_of(&world, "k")->times.early_us, 0);
	del(&world, one, "k");
	(void)get(&world, one, "k");
	pass(&world, 20);
	(void)set(&world, one, "k", "v");
	assert_int_equal(cell_of(&world, "k")->times.early_us, 22 * 20 * MS);
	assert_int_equal(cell_of(&world, "k")->times.cost_us, 20 * MS);
	world_close(&world);
}

static void test_fill__a_late_set_is_told_from_a_strangers_write(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "program");
	there(&world, "k", "old", 0, 3600 * SECOND);
	(void)get(&world, one, "k");
	pass(&world, 40 * 1000); /* lapsed at 3 s, nobody waited */
	(void)set(&world, connect_to(&world, "nightly job"), "k", "v");
	assert_int_equal(world.gate.fills_len, 0);
	there(&world, "j", "old", 0, 3600 * SECOND);
	(void)get(&world, one, "j");
	pass(&world, 4 * 1000);
	(void)set(&world, connect_to(&world, "program"), "j", "v"); /* its pool took another connection */
	assert_int_equal(gate_slowest_us(&world.gate), 4 * SECOND);
	world_close(&world);
}

static void test_fill__a_store_that_refuses_holds_nobody(void **state)
{
	struct world world;
	struct key key = key_of("k");
	struct client *one;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	waiter = get(&world, connect_to(&world, "b"), "k");
	assert_int_equal(engine_waiters(world.engine, &key), 1);
	engine_write_refused(world.engine, &key, world.now_us);
	carry_out(&world);
	expect_pass(waiter);
	pass_us(&world, 10 * SECOND - 1);
	expect_pass(get(&world, one, "k"));
	pass_us(&world, 1);
	expect_leads(get(&world, one, "k"));
	world_close(&world);
}

/* ---- the fence ---- */

struct fence {
	struct world world;
	struct client *old, *deleter;
};

/* `old` leads k since 100 ms when somebody deletes it. */
static void fence_open(struct fence *fence)
{
	world_open(&fence->world, GATE_CLIENT);
	fence->old = connect_to(&fence->world, "old");
	fence->deleter = connect_to(&fence->world, "deleter");
	(void)get(&fence->world, fence->old, "k");
	pass(&fence->world, 100);
	del(&fence->world, fence->deleter, "k");
}

static void test_fill__the_old_leaders_set_is_not_stored_and_closes_the_window(void **state)
{
	struct fence fence;

	(void)state;
	fence_open(&fence);
	assert_false(explain(&fence.world, NULL, "k").leased);
	assert_true(explain(&fence.world, NULL, "k").fenced);
	assert_int_equal(set(&fence.world, fence.old, "k", "stale"), WRITE_FENCED);
	assert_int_equal(fence.world.gate.counters.fenced, 1);
	assert_false(explain(&fence.world, NULL, "k").fenced);
	assert_int_equal(set(&fence.world, fence.deleter, "k", "new"), WRITE_STORE);
	world_close(&fence.world);
}

static void test_fill__the_window_lasts_until_the_voided_leases_end(void **state)
{
	struct fence fence;

	(void)state;
	fence_open(&fence);
	pass_us(&fence.world, 2900 * MS - 1);
	assert_int_equal(set(&fence.world, connect_to(&fence.world, "x"), "k", "v"), WRITE_CUT);
	pass_us(&fence.world, 1);
	assert_int_equal(set(&fence.world, fence.old, "k", "v"), WRITE_STORE);
	world_close(&fence.world);
}

static void test_fill__the_window_of_a_nil_that_is_leaving_is_one_lease(void **state)
{
	struct world world;
	struct client *old;

	(void)state;
	world_open(&world, GATE_CLIENT);
	old = connect_to(&world, "old");
	old->deaf = true;
	(void)get(&world, old, "k");
	del(&world, connect_to(&world, "deleter"), "k");
	pass_us(&world, 3 * SECOND - 1);
	assert_true(explain(&world, NULL, "k").fenced);
	pass_us(&world, 1);
	assert_false(explain(&world, NULL, "k").fenced);
	world_close(&world);
}

static void test_fill__the_new_leaders_set_is_stored_fresh(void **state)
{
	struct fence fence;
	struct client *other;

	(void)state;
	fence_open(&fence);
	other = connect_to(&fence.world, "new");
	expect_leads(get(&fence.world, other, "k"));
	assert_int_equal(set(&fence.world, fence.old, "k", "stale"), WRITE_FENCED);
	assert_int_equal(set(&fence.world, other, "k", "new"), WRITE_STORE);
	assert_int_equal(cell_of(&fence.world, "k")->times.fresh_until_us, fence.world.now_us + 60 * SECOND);
	world_close(&fence.world);
}

static void test_fill__the_old_leaders_set_after_the_new_ones_is_fenced_too(void **state)
{
	struct fence fence;
	struct client *other;

	(void)state;
	fence_open(&fence);
	other = connect_to(&fence.world, "new");
	(void)get(&fence.world, other, "k");
	assert_int_equal(set(&fence.world, other, "k", "new"), WRITE_STORE);
	assert_int_equal(set(&fence.world, fence.old, "k", "stale"), WRITE_FENCED);
	expect_is(get(&fence.world, other, "k"), "new");
	world_close(&fence.world);
}

static void test_fill__every_leader_that_was_voided_is_fenced(void **state)
{
	struct fence fence;
	struct client *second;

	(void)state;
	fence_open(&fence);
	second = connect_to(&fence.world, "second");
	(void)get(&fence.world, second, "k");
	del(&fence.world, fence.deleter, "k");
	assert_int_equal(set(&fence.world, fence.old, "k", "stale"), WRITE_FENCED);
	assert_int_equal(set(&fence.world, second, "k", "stale"), WRITE_FENCED);
	assert_false(explain(&fence.world, NULL, "k").fenced);
	world_close(&fence.world);
}

static void test_fill__a_nil_in_multi_counts_as_one(void **state)
{
	struct fence fence;
	struct client *third;

	(void)state;
	fence_open(&fence);
	third = connect_to(&fence.world, "third");
	(void)get(&fence.world, connect_to(&fence.world, "leader"), "k");
	expect_pass(get_now(&fence.world, third, "k", true));
	assert_int_equal(set(&fence.world, third, "k", "v"), WRITE_STORE);
	world_close(&fence.world);
}

static void test_fill__commands_of_another_form_are_not_looked_at(void **state)
{
	struct fence fence;

	(void)state;
	fence_open(&fence);
	assert_int_equal(write_by(&fence.world, fence.old, "k", "1", false, SECOND), WRITE_STORE);
	world_close(&fence.world);
}

static void test_fill__a_multiplexed_connection_cannot_be_told_apart(void **state)
{
	struct fence fence;

	(void)state;
	fence_open(&fence);
	link_multiplexed(fence.world.engine, &fence.old->link, fence.world.now_us);
	assert_int_equal(set(&fence.world, fence.old, "k", "v"), WRITE_CUT);
	world_close(&fence.world);
}

static void test_fill__who_has_asked_since_is_no_old_leader(void **state)
{
	struct fence fence;
	struct client *other;

	(void)state;
	fence_open(&fence);
	other = connect_to(&fence.world, "new");
	(void)get(&fence.world, other, "k");
	/* The old leader asks again and is held for the new one's value: its next SET is another thought. */
	expect_held(get(&fence.world, fence.old, "k"));
	(void)set(&fence.world, other, "k", "new");
	assert_int_equal(set(&fence.world, fence.old, "k", "mine"), WRITE_CUT);
	world_close(&fence.world);
}

static void test_fill__who_has_read_a_value_since_is_no_old_leader(void **state)
{
	struct fence fence;
	struct key key = key_of("k");
	struct client *other;

	(void)state;
	fence_open(&fence);
	other = connect_to(&fence.world, "new");
	(void)get(&fence.world, other, "k");
	(void)set(&fence.world, other, "k", "new");
	assert_int_equal(fence.old->link.nils_len, 1);
	engine_asked(fence.world.engine, &key, &fence.old->link); /* a hit that did not enter the engine */
	assert_int_equal(fence.old->link.nils_len, 0);
	assert_int_equal(set(&fence.world, fence.old, "k", "mine"), WRITE_CUT);
	world_close(&fence.world);
}

static void test_fill__who_invalidated_itself_is_no_old_leader(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	(void)get(&world, one, "k");
	del(&world, one, "k");
	assert_int_equal(set(&world, one, "k", "written through"), WRITE_CUT);
	assert_int_equal(world.gate.counters.cut, 1);
	world_close(&world);
}

static void test_fill__a_cut_life_is_the_median_fill_or_a_second_and_has_no_grace(void **state)
{
	struct fence fence;
	struct world *world = &fence.world;
	struct client *x;

	(void)state;
	fence_open(&fence);
	x = connect_to(world, "x");
	assert_int_equal(write_by(world, x, "k", "v", true, HG_NEVER), WRITE_CUT);
	assert_int_equal(cell_of(world, "k")->times.fresh_until_us, world->now_us + SECOND);
	assert_int_equal(cell_of(world, "k")->times.dead_at_us, world->now_us + SECOND);
	assert_int_equal(write_by(world, x, "k", "v", true, 20 * MS), WRITE_CUT); /* never lengthened */
	assert_int_equal(cell_of(world, "k")->times.fresh_until_us, world->now_us + 20 * MS);
	for (int64_t took = 10; took <= 50; took += 10) {
		teach(world, x, took * MS);
		del(world, NULL, "taught");
	}
	assert_int_equal(write_by(world, x, "k", "v", true, HG_NEVER), WRITE_CUT);
	assert_int_equal(cell_of(world, "k")->times.dead_at_us, world->now_us + 30 * MS);
	world_close(world);
}

static void test_fill__late_set_accept_and_drop(void **state)
{
	struct fence fence;
	struct client *x;

	(void)state;
	fence_open(&fence);
	x = connect_to(&fence.world, "x");
	fence.world.gate.policy.late_set = GATE_LATE_DROP;
	assert_int_equal(set(&fence.world, x, "k", "v"), WRITE_FENCED);
	assert_int_equal(fence.world.gate.counters.fenced, 1);
	fence.world.gate.policy.late_set = GATE_LATE_ACCEPT;
	assert_int_equal(set(&fence.world, x, "k", "v"), WRITE_STORE);
	assert_int_equal(set(&fence.world, fence.old, "k", "v"), WRITE_FENCED); /* known for what it is */
	world_close(&fence.world);
}

static void test_fill__an_invalidation_without_a_lease_opens_no_window(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	there(&world, "k", "v", SECOND, SECOND);
	del(&world, one, "k");
	assert_int_equal(set(&world, one, "k", "v"), WRITE_STORE);
	/* Nor does a lapse. */
	(void)get(&world, one, "j");
	pass(&world, 3000);
	del(&world, NULL, "j");
	assert_int_equal(set(&world, one, "j", "v"), WRITE_STORE);
	world_close(&world);
}

static void test_fill__an_invalidation_gives_the_lease_to_one_who_waits(void **state)
{
	struct world world;
	struct client *old, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	old = connect_to(&world, "old");
	two = connect_to(&world, "b");
	(void)get(&world, old, "k");
	first = get(&world, two, "k");
	second = get(&world, connect_to(&world, "c"), "k");
	del(&world, NULL, "k");
	expect_leads(first);
	expect_held(second);
	assert_int_equal(set(&world, old, "k", "stale"), WRITE_FENCED);
	expect_held(second);
	assert_int_equal(set(&world, two, "k", "new"), WRITE_STORE);
	expect_is(second, "new");
	world_close(&world);
}

static void test_fill__a_flush_voids_every_lease_of_its_space(void **state)
{
	struct world world;
	struct client *one;
	char names[20][16];

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	for (unsigned i = 0; i < 20; i++) {
		snprintf(names[i], sizeof(names[i]), "k%u", i);
		(void)get(&world, one, names[i]);
	}
	flush(&world, 1); /* another space */
	assert_true(explain(&world, NULL, names[0]).leased);
	flush(&world, 0);
	for (int i = 0; i < 20; i++)
		assert_int_equal(set(&world, one, names[i], "stale"), WRITE_FENCED);
	(void)get(&world, one, "last");
	flush(&world, 255);
	assert_int_equal(set(&world, one, "last", "stale"), WRITE_FENCED);
	world_close(&world);
}

/* ---- tokens ---- */

static void test_fill__a_token_counts_once(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	assert_false(fill(&world, (struct token){token.boot + 1, token.serial}, "k", FILL_VALUE, "x", 0));
	assert_false(fill(&world, (struct token){token.boot, token.serial + 1}, "k", FILL_VALUE, "x", 0));
	assert_false(fill(&world, (struct token){0, 0}, "k", FILL_VALUE, "x", 0));
	assert_false(fill(&world, token, "j", FILL_VALUE, "x", 0));
	assert_true(fill(&world, token, "k", FILL_VALUE, "v", 0));
	assert_int_equal(cell_of(&world, "k")->times.fresh_until_us, world.now_us + 60 * SECOND); /* the gate's ttl */
	for (int kind = FILL_VALUE; kind <= FILL_ABANDON; kind++)
		assert_false(fill(&world, token, "k", (enum fill_kind)kind, "again", 0));
	assert_int_equal(renew(&world, token, "k"), 0);
	expect_is(get(&world, one, "k"), "v");
	world_close(&world);
}

static void test_fill__a_token_is_fenced_by_its_end_and_by_an_invalidation(void **state)
{
	struct world world;
	struct client *one;
	struct token first, second, third;
	struct command *waiter;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	first = lease(&world, one, "k", 0)->asks[0].token;
	pass_us(&world, 10 * SECOND - 1);
	assert_int_equal(renew(&world, first, "j"), 0);
	waiter = lease(&world, connect_to(&world, "b"), "k", SECOND);
	pass_us(&world, 1);
	assert_false(fill(&world, first, "k", FILL_VALUE, "late", 0));
	expect_leads(waiter);
	second = waiter->asks[0].token;
	assert_int_not_equal(second.serial, first.serial);
	assert_false(fill(&world, first, "k", FILL_FAIL, "late", 0)); /* H58: the second's lease survives */
	del(&world, NULL, "k");
	assert_false(fill(&world, second, "k", FILL_VALUE, "stale", 0));
	assert_false(cell_of(&world, "k")->there);
	third = lease(&world, one, "k", 0)->asks[0].token;
	assert_int_not_equal(third.serial, second.serial);
	assert_true(fill(&world, third, "k", FILL_VALUE, "v", 5 * SECOND));
	assert_int_equal(cell_of(&world, "k")->times.fresh_until_us, world.now_us + 5 * SECOND);
	world_close(&world);
}

static void test_fill__a_lease_that_is_over_is_over_though_no_timer_has_run(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	world.now_us += 3600 * SECOND; /* the machine slept */
	assert_int_equal(renew(&world, token, "k"), 0);
	assert_false(fill(&world, token, "k", FILL_VALUE, "late", 0));
	assert_false(cell_of(&world, "k")->there);
	world_close(&world);
}

static void test_fill__a_renewed_token_lives_up_to_load_timeout(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	pass(&world, 9000);
	assert_int_equal(renew(&world, token, "k"), 10 * SECOND);
	pass(&world, 9000);
	assert_int_equal(renew(&world, token, "k"), 10 * SECOND);
	pass(&world, 9000); /* 27 s */
	assert_int_equal(renew(&world, token, "k"), 3 * SECOND);
	pass_us(&world, 3 * SECOND - 1);
	assert_int_equal(renew(&world, token, "k"), 1);
	pass_us(&world, 1);
	assert_int_equal(renew(&world, token, "k"), 0);
	assert_false(fill(&world, token, "k", FILL_VALUE, "late", 0));
	world_close(&world);
}

static void test_fill__a_set_takes_the_flight_from_a_token(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	(void)set(&world, one, "k", "v");
	assert_false(fill(&world, token, "k", FILL_VALUE, "late", 0));
	expect_is(get(&world, one, "k"), "v");
	world_close(&world);
}

static void test_fill__six_results_stay_different(void **state)
{
	struct world world;
	struct client *one;
	struct command *waiter;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "empty", 0)->asks[0].token;
	assert_true(fill(&world, token, "empty", FILL_VALUE, "", 0));
	expect_is(get(&world, one, "empty"), "");

	token = lease(&world, one, "absent", 0)->asks[0].token;
	waiter = get(&world, connect_to(&world, "b"), "absent");
	assert_true(fill(&world, token, "absent", FILL_ABSENT, NULL, SECOND));
	assert_int_equal(answer_of(waiter), ANSWER_ABSENT);
	assert_int_equal(cell_of(&world, "absent")->times.dead_at_us, world.now_us + SECOND);

	token = lease(&world, one, "shared", 0)->asks[0].token;
	waiter = get(&world, connect_to(&world, "c"), "shared");
	assert_true(fill(&world, token, "shared", FILL_NOSTORE, "once", 0));
	expect_is(waiter, "once");
	assert_false(cell_of(&world, "shared")->there);

	token = lease(&world, one, "private", 0)->asks[0].token;
	waiter = get(&world, connect_to(&world, "d"), "private");
	assert_true(fill(&world, token, "private", FILL_PRIVATE, "mine", 0));
	expect_pass(waiter);
	assert_false(cell_of(&world, "private")->there);
	assert_int_equal(world.gate.counters.absences, 1);
	assert_int_equal(world.gate.counters.nostores, 2);
	world_close(&world);
}

static void test_fill__what_is_not_to_be_cached_queues_nobody(void **state)
{
	struct world world;
	struct command *first, *waiters[5];

	(void)state;
	world_open(&world, GATE_CALLER);
	first = call(&world, "k", SECOND);
	for (int i = 0; i < 5; i++)
		waiters[i] = call(&world, "k", SECOND);
	assert_true(fill(&world, first->asks[0].token, "k", FILL_NOSTORE, NULL, 0));
	for (int i = 0; i < 5; i++)
		expect_pass(waiters[i]);
	pass_us(&world, 10 * SECOND - 1);
	expect_pass(call(&world, "k", SECOND));
	pass_us(&world, 1);
	expect_leads(call(&world, "k", SECOND));
	world_close(&world);
}

static void test_fill__absent_ttl_of_zero_is_off(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.absent_ttl_us = 0;
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	assert_true(fill(&world, token, "k", FILL_ABSENT, NULL, 0));
	assert_false(cell_of(&world, "k")->there);
	expect_leads(get(&world, one, "k"));
	world_close(&world);
}

static void test_fill__a_token_fill_teaches_no_lease_of_clients(void **state)
{
	struct world world;
	struct client *one;
	struct token token;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	token = lease(&world, one, "k", 0)->asks[0].token;
	pass(&world, 50);
	(void)fill(&world, token, "k", FILL_VALUE, "v", 0);
	assert_int_equal(world.gate.counters.fills, 1);
	assert_int_equal(get(&world, one, "j")->asks[0].lease_us, 3 * SECOND);
	world_close(&world);
}

/* ---- loads that an invalidation overtakes ---- */

static void test_fill__an_overtaken_load_answers_those_before_and_stores_nothing(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *before, *after, *third;
	struct token old;
	struct key key = key_of("k");

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	before = get(&world, one, "k");
	old = last_order(&world)->token;
	assert_true(engine_load_wanted(world.engine, &key, old));
	pass(&world, 20);
	del(&world, two, "k");
	after = get(&world, two, "k");
	assert_int_equal(world.orders_len, 2);
	assert_true(engine_load_wanted(world.engine, &key, old)); /* somebody still waits for it */
	assert_true(fill(&world, old, "k", FILL_VALUE, "v1", 0));
	expect_is(before, "v1");
	expect_held(after);
	assert_false(cell_of(&world, "k")->there);
	third = get(&world, three, "k"); /* joins the second flight, begins no third */
	assert_int_equal(world.orders_len, 2);
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v2", 0));
	expect_is(after, "v2");
	expect_is(third, "v2");
	expect_is(get(&world, one, "k"), "v2");
	world_close(&world);
}

static void test_fill__an_overtaken_load_that_ends_last_changes_nothing(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *before;
	struct token old;
	struct key key = key_of("k");

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	before = get(&world, one, "k");
	old = last_order(&world)->token;
	del(&world, NULL, "k");
	(void)get(&world, two, "k");
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v2", 0));
	expect_held(before);
	assert_true(fill(&world, old, "k", FILL_FAIL, "broken", 0));
	expect_error(before, HG_ERR_LOAD);
	expect_is(get(&world, one, "k"), "v2");
	assert_int_equal(explain(&world, one, "k").backoff_left_us, 0);
	assert_false(engine_load_wanted(world.engine, &key, old));
	world_close(&world);
}

static void test_fill__an_overtaken_load_without_end_fails_those_who_wait(void **state)
{
	struct world world;
	struct client *one;
	struct command *before;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	world.gate.policy.wait_us = 60 * SECOND;
	one = connect_to(&world, "a");
	before = get(&world, one, "k");
	del(&world, NULL, "k");
	pass_us(&world, 30 * SECOND - 1);
	expect_held(before);
	pass_us(&world, 1);
	expect_error(before, HG_ERR_LOAD);
	assert_int_equal(world.cancels, 1);
	world_close(&world);
}

static void test_fill__an_overtaken_caller_that_gives_up_fails_those_who_wait(void **state)
{
	struct world world;
	struct command *first, *second, *third;

	(void)state;
	world_open(&world, GATE_CALLER);
	first = call(&world, "k", SECOND);
	second = call(&world, "k", SECOND);
	del(&world, NULL, "k");
	third = call(&world, "k", SECOND);
	expect_leads(third);
	assert_true(fill(&world, first->asks[0].token, "k", FILL_ABANDON, NULL, 0));
	expect_error(second, HG_ERR_LOAD);
	assert_true(fill(&world, third->asks[0].token, "k", FILL_VALUE, "v", 0));
	world_close(&world);
}

static void test_fill__a_write_beats_a_load(void **state)
{
	struct world world;
	struct client *one;
	struct command *held;
	struct key key = key_of("k");

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	held = get(&world, one, "k");
	(void)set(&world, connect_to(&world, "b"), "k", "written");
	expect_is(held, "written");
	assert_false(engine_load_wanted(world.engine, &key, last_order(&world)->token));
	assert_false(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "loaded", 0));
	expect_is(get(&world, one, "k"), "written");
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fill__any_string_from_any_connection_ends_the_flight),
		cmocka_unit_test(test_fill__a_set_with_no_flight_is_a_plain_write),
		cmocka_unit_test(test_fill__a_late_set_is_told_from_a_strangers_write),
		cmocka_unit_test(test_fill__a_store_that_refuses_holds_nobody),
		cmocka_unit_test(test_fill__the_old_leaders_set_is_not_stored_and_closes_the_window),
		cmocka_unit_test(test_fill__the_window_lasts_until_the_voided_leases_end),
		cmocka_unit_test(test_fill__the_window_of_a_nil_that_is_leaving_is_one_lease),
		cmocka_unit_test(test_fill__the_new_leaders_set_is_stored_fresh),
		cmocka_unit_test(test_fill__the_old_leaders_set_after_the_new_ones_is_fenced_too),
		cmocka_unit_test(test_fill__every_leader_that_was_voided_is_fenced),
		cmocka_unit_test(test_fill__a_nil_in_multi_counts_as_one),
		cmocka_unit_test(test_fill__commands_of_another_form_are_not_looked_at),
		cmocka_unit_test(test_fill__a_multiplexed_connection_cannot_be_told_apart),
		cmocka_unit_test(test_fill__who_has_asked_since_is_no_old_leader),
		cmocka_unit_test(test_fill__who_has_read_a_value_since_is_no_old_leader),
		cmocka_unit_test(test_fill__who_invalidated_itself_is_no_old_leader),
		cmocka_unit_test(test_fill__a_cut_life_is_the_median_fill_or_a_second_and_has_no_grace),
		cmocka_unit_test(test_fill__late_set_accept_and_drop),
		cmocka_unit_test(test_fill__an_invalidation_without_a_lease_opens_no_window),
		cmocka_unit_test(test_fill__an_invalidation_gives_the_lease_to_one_who_waits),
		cmocka_unit_test(test_fill__a_flush_voids_every_lease_of_its_space),
		cmocka_unit_test(test_fill__a_token_counts_once),
		cmocka_unit_test(test_fill__a_token_is_fenced_by_its_end_and_by_an_invalidation),
		cmocka_unit_test(test_fill__a_lease_that_is_over_is_over_though_no_timer_has_run),
		cmocka_unit_test(test_fill__a_renewed_token_lives_up_to_load_timeout),
		cmocka_unit_test(test_fill__a_set_takes_the_flight_from_a_token),
		cmocka_unit_test(test_fill__six_results_stay_different),
		cmocka_unit_test(test_fill__what_is_not_to_be_cached_queues_nobody),
		cmocka_unit_test(test_fill__absent_ttl_of_zero_is_off),
		cmocka_unit_test(test_fill__a_token_fill_teaches_no_lease_of_clients),
		cmocka_unit_test(test_fill__an_overtaken_load_answers_those_before_and_stores_nothing),
		cmocka_unit_test(test_fill__an_overtaken_load_that_ends_last_changes_nothing),
		cmocka_unit_test(test_fill__an_overtaken_load_without_end_fails_those_who_wait),
		cmocka_unit_test(test_fill__an_overtaken_caller_that_gives_up_fails_those_who_wait),
		cmocka_unit_test(test_fill__a_write_beats_a_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
