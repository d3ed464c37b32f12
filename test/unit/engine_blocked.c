/* engine_blocked.c - holding that blocks its own leader: it fails open, once, and remembers. */
#include "engine_world.h"

/* A pool of `len` connections that are all held for "k", which the first of them leads. */
static void blocked_pool(struct world *world, struct client *pool[], struct command *held[], unsigned len)
{
	for (unsigned i = 0; i < len; i++)
		pool[i] = connect_to(world, "pool");
	expect_leads(get(world, pool[0], "k"));
	for (unsigned i = 0; i < len; i++) {
		held[i] = get(world, pool[i], "k");
		expect_held(held[i]);
	}
}

static void test_blocked__a_pool_held_as_a_whole_is_released_after_blocked_after(void **state)
{
	struct world world;
	struct client *pool[3], *other;
	struct command *held[3], *stranger;

	(void)state;
	world_open(&world, GATE_CLIENT);
	other = connect_to(&world, "other");
	blocked_pool(&world, pool, held, 3);
	stranger = get(&world, other, "k");
	pass_us(&world, SECOND - 1);
	for (int i = 0; i < 3; i++)
		expect_held(held[i]);
	pass_us(&world, 1);
	for (int i = 0; i < 3; i++)
		expect_pass(held[i]);
	expect_held(stranger); /* another peer's is no part of it */
	assert_int_equal(world.gate.counters.released_blocked, 3);
	assert_int_equal(world.remarks[REMARK_BLOCKED_PEER], 1);
	assert_int_equal(world.last_remark.two_us, 10 * SECOND);
	/* For 10 s that peer is not held in that gate: nil where it would wait, and it leads as always. */
	assert_true(explain(&world, pool[0], "k").exempt_peer);
	expect_pass(get(&world, pool[1], "k"));
	expect_leads(get(&world, pool[1], "j"));
	expect_pass(get(&world, pool[2], "j"));
	there(&world, "s", "old", 0, 60 * SECOND);
	expect_leads(get(&world, pool[1], "s"));
	expect_is(get(&world, pool[2], "s"), "old");
	assert_int_equal(set(&world, pool[0], "k", "v"), WRITE_STORE);
	expect_is(stranger, "v");
	world_close(&world);
}

static void test_blocked__a_peers_exemption_ends_and_doubles(void **state)
{
	struct world world;
	struct client *pool[2];
	struct command *held[2];
	int64_t span = 10 * SECOND;

	(void)state;
	world_open(&world, GATE_CLIENT);
	blocked_pool(&world, pool, held, 2);
	pass(&world, 1000);
	expect_pass(held[1]);
	for (int i = 0; i < 8; i++) {
		(void)set(&world, pool[0], "k", "v"); /* on nobody's hold: proves nothing */
		world.gate.fills_len = 0;
		del(&world, NULL, "k");
		pass_us(&world, span - 1);
		assert_true(explain(&world, pool[0], "k").exempt_peer);
		pass_us(&world, 1);
		assert_false(explain(&world, pool[0], "k").exempt_peer);
		expect_leads(get(&world, pool[0], "k"));
		held[0] = get(&world, pool[0], "k");
		held[1] = get(&world, pool[1], "k");
		expect_held(held[0]);
		pass_us(&world, SECOND - 1);
		expect_held(held[1]);
		pass_us(&world, 1);
		expect_pass(held[0]);
		expect_pass(held[1]);
		span = sat_min(2 * span, 600 * SECOND);
		assert_int_equal(world.last_remark.two_us, span);
	}
	assert_int_equal(span, 600 * SECOND);
	assert_int_equal(world.remarks[REMARK_BLOCKED_PEER], 9);
	world_close(&world);
}

static void test_blocked__blocked_after_follows_the_slowest_fill(void **state)
{
	struct world world;
	struct client *pool[2];
	struct command *held[2];

	(void)state;
	world_open(&world, GATE_CLIENT);
	teach(&world, connect_to(&world, "t"), 1200 * MS);
	blocked_pool(&world, pool, held, 2);
	pass_us(&world, 1800 * MS - 1);
	expect_held(held[0]);
	pass_us(&world, 1);
	expect_pass(held[0]);
	expect_pass(held[1]);
	world_close(&world);
}

static void test_blocked__from_then_on_whenever_the_last_connection_is_held(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "pool");
	two = connect_to(&world, "pool");
	(void)get(&world, one, "k");
	first = get(&world, one, "k");
	pass(&world, 2000);
	expect_held(first); /* the other connection could bring the SET */
	second = get(&world, two, "k");
	expect_pass(first);
	expect_pass(second);
	world_close(&world);
}

static void test_blocked__a_close_or_a_subscription_can_be_what_blocks(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *first;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "pool");
	two = connect_to(&world, "pool");
	(void)get(&world, one, "k");
	first = get(&world, one, "k");
	pass(&world, 1500);
	expect_held(first);
	close_client(&world, two);
	expect_pass(first);
	/* Connections in SUBSCRIBE or MONITOR bring no SET. */
	one = connect_to(&world, "listener");
	two = connect_to(&world, "listener");
	three = connect_to(&world, "listener");
	link_set_counted(world.engine, &two->link, false, world.now_us);
	(void)get(&world, one, "j");
	first = get(&world, one, "j");
	pass(&world, 1500);
	expect_held(first);
	link_set_counted(world.engine, &three->link, false, world.now_us);
	carry_out(&world);
	expect_pass(first);
	world_close(&world);
}

static void test_blocked__a_multiplexed_leader_with_held_replies_is_released(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *held, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "node");
	two = connect_to(&world, "node"); /* not held, but that is another process's */
	(void)get(&world, two, "other");
	(void)get(&world, one, "k");
	held = get(&world, one, "other");
	second = get(&world, one, "other"); /* behind it: one connection for all callers */
	pass_us(&world, SECOND - 1);
	expect_held(held);
	pass_us(&world, 1);
	expect_pass(held);
	expect_pass(second); /* looked up again, and exempt by then */
	assert_int_equal(world.gate.counters.released_blocked, 1);
	assert_int_equal(world.remarks[REMARK_BLOCKED_LINK], 1);
	assert_int_equal(world.last_remark.two_us, 60 * SECOND);
	/* That connection for 60 s, and no other. */
	(void)get(&world, two, "third");
	pass_us(&world, 60 * SECOND - 1);
	(void)get(&world, two, "fourth");
	expect_pass(get(&world, one, "fourth"));
	assert_true(explain(&world, one, "k").exempt_link);
	assert_false(explain(&world, two, "k").exempt_link);
	pass_us(&world, 1);
	expect_held(get(&world, one, "fourth"));
	world_close(&world);
}

static void test_blocked__becoming_multiplexed_is_noticed_at_once(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "a");
	(void)connect_to(&world, "a");
	(void)get(&world, two, "other");
	(void)get(&world, one, "k");
	held = get(&world, one, "other");
	pass(&world, 1500);
	expect_held(held);
	link_multiplexed(world.engine, &one->link, world.now_us); /* a command arrives behind it */
	carry_out(&world);
	expect_pass(held);
	world_close(&world);
}

/* ---- proofs ---- */

static void test_blocked__a_fill_behind_held_replies_proves_the_connection(void **state)
{
	struct world world;
	struct client *one;
	struct command *held, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "node");
	(void)connect_to(&world, "node");
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	pass(&world, 200);
	(void)set(&world, one, "k", "v");
	expect_is(held, "v");
	/* Proved: a slow load is a slow load. */
	del(&world, NULL, "k");
	pass(&world, 4000);
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	second = get(&world, one, "k");
	pass_us(&world, 1000 * MS - 1);
	expect_held(held);
	(void)set(&world, one, "k", "v2");
	expect_is(held, "v2");
	expect_is(second, "v2");
	assert_int_equal(world.gate.counters.released_blocked, 0);
	world_close(&world);
}

static void test_blocked__a_fill_while_every_other_connection_is_held_proves_the_peer(void **state)
{
	struct world world;
	struct client *pool[3];
	struct command *held[3];

	(void)state;
	world_open(&world, GATE_CLIENT);
	for (int i = 0; i < 3; i++)
		pool[i] = connect_to(&world, "pool");
	(void)get(&world, pool[0], "k");
	held[1] = get(&world, pool[1], "k");
	held[2] = get(&world, pool[2], "k");
	pass(&world, 100);
	(void)set(&world, pool[0], "k", "v");
	expect_is(held[2], "v");
	/* Later every connection of the pool is held, beyond blocked_after: it has been seen to fill all the same. */
	del(&world, NULL, "k");
	pass(&world, 10000);
	(void)get(&world, pool[0], "j");
	held[0] = get(&world, pool[0], "j");
	held[1] = get(&world, pool[1], "j");
	held[2] = get(&world, pool[2], "j");
	pass(&world, 1000 - 1);
	expect_held(held[0]);
	assert_int_equal(world.gate.counters.released_blocked, 0);
	world_close(&world);
}

static void test_blocked__a_proof_is_per_gate(void **state)
{
	struct world world;
	struct gate another;
	struct client *one;
	struct command *held;
	const char *name = "j";

	(void)state;
	world_open(&world, GATE_CLIENT);
	gate_init(&another, "another", 2, &world.gate.policy);
	one = connect_to(&world, "node");
	(void)connect_to(&world, "node");
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	(void)set(&world, one, "k", "v");
	expect_is(held, "v");
	for (int i = 0; i < 2; i++) {
		held = new_command(&world, 1, &name);
		held->asks[0].gate = &another;
		(void)send_command(&world, one, held);
	}
	expect_held(held);
	link_multiplexed(world.engine, &one->link, world.now_us);
	pass(&world, 1000);
	expect_pass(held);
	assert_int_equal(another.counters.released_blocked, 1);
	world_close(&world);
}

/* Decision 005: one lapse may be a load that has become slow; two in a row take the proof back. */
static void test_blocked__two_lapses_in_a_row_take_a_proof_back(void **state)
{
	struct world world;
	struct client *one;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.wait_us = 100 * SECOND;
	one = connect_to(&world, "node");
	(void)connect_to(&world, "node");
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	(void)get(&world, one, "k");
	pass(&world, 50);
	(void)set(&world, one, "k", "v");
	expect_is(held, "v");
	del(&world, NULL, "k");
	pass(&world, 4000);
	/* Proved, with a lease of 1 s: it lapses, and its next holder is the first that was held. */
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	(void)get(&world, one, "k");
	(void)get(&world, one, "k");
	pass(&world, 1000);
	expect_leads(held);
	assert_int_equal(world.gate.counters.released_blocked, 0);
	pass_us(&world, 2 * SECOND - 1); /* the second lease: still proved at 1 s of it */
	assert_int_equal(world.gate.counters.released_blocked, 0);
	assert_int_equal(world.gate.counters.lapsed, 1);
	pass_us(&world, 1); /* its lapse takes the proof back */
	assert_int_equal(world.gate.counters.lapsed, 2);
	assert_int_equal(world.gate.counters.released_blocked, 0);
	pass_us(&world, SECOND - 1);
	assert_int_equal(world.gate.counters.released_blocked, 0);
	pass_us(&world, 1);
	assert_int_equal(world.gate.counters.released_blocked, 1);
	world_close(&world);
}

/* ---- leases that have not begun, origins, limits of a hold ---- */

static void test_blocked__a_nil_that_is_never_read_counts_from_when_its_lease_must_begin(void **state)
{
	struct world world;
	struct client *one;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.wait_us = 100 * SECOND;
	one = connect_to(&world, "node");
	(void)connect_to(&world, "node");
	one->deaf = true;
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	pass_us(&world, 11 * SECOND - 1); /* lease, then blocked_after */
	expect_held(held);
	pass_us(&world, 1);
	expect_pass(held);
	one->deaf = false;
	world_close(&world);
}

static void test_blocked__an_origins_load_is_left_to_end(void **state)
{
	struct world world;
	struct gate origin;
	struct gate_policy policy;
	struct client *one;
	struct command *loads, *held;
	const char *name = "row";

	(void)state;
	world_open(&world, GATE_CLIENT);
	gate_policy_default(&policy, GATE_ORIGIN);
	gate_init(&origin, "origin", 2, &policy);
	one = connect_to(&world, "node");
	(void)get(&world, one, "k");
	loads = new_command(&world, 1, &name);
	loads->asks[0].gate = &origin;
	(void)send_command(&world, one, loads);
	held = get(&world, one, "k");
	pass(&world, 2000);
	expect_held(loads); /* nil would say that the row does not exist */
	assert_true(fill(&world, last_order(&world)->token, "row", FILL_VALUE, "r", 0));
	expect_is(loads, "r");
	expect_pass(held);
	world_close(&world);
}

static void test_blocked__hol_max_ends_a_hold_that_keeps_ready_replies_back(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.hol_max_us = 300 * MS;
	there(&world, "f", "new", 60 * SECOND, 0);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, two, "x");
	(void)get(&world, two, "y");
	first = get(&world, one, "x");
	second = get(&world, one, "y"); /* parked behind it */
	pass(&world, 200);
	expect_held(first); /* no ready reply waits: no limit */
	link_behind(world.engine, &one->link, world.now_us);
	pass_us(&world, 300 * MS - 1);
	expect_held(first);
	pass_us(&world, 1);
	expect_pass(first);
	assert_int_equal(world.gate.counters.released_hol, 2); /* the reply waits behind the second hold, too */
	expect_pass(second);
	world_close(&world);
}

static void test_blocked__hol_max_counts_only_what_waits_behind_this_hold(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.hol_max_us = 300 * MS;
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, two, "x");
	(void)get(&world, two, "y");
	first = get(&world, one, "x");
	link_behind(world.engine, &one->link, world.now_us);
	pass(&world, 100);
	second = get(&world, one, "y");
	pass(&world, 100);
	(void)set(&world, two, "x", "vx"); /* the ready reply leaves with this one */
	expect_is(first, "vx");
	expect_held(second);
	pass(&world, 700);
	expect_held(second); /* it keeps nothing back */
	link_behind(world.engine, &one->link, world.now_us);
	pass_us(&world, 300 * MS - 1);
	expect_held(second);
	pass_us(&world, 1);
	expect_pass(second);
	world_close(&world);
}

static void test_blocked__hol_max_counts_a_load_that_is_ready_behind_a_hold(void **state)
{
	struct world world;
	struct gate origin;
	struct gate_policy policy;
	struct client *one, *two;
	struct command *first, *loads;
	const char *name = "row";

	(void)state;
	world_open(&world, GATE_CLIENT);
	world.gate.policy.hol_max_us = 300 * MS;
	gate_policy_default(&policy, GATE_ORIGIN);
	gate_init(&origin, "origin", 2, &policy);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, two, "x");
	first = get(&world, one, "x");
	loads = new_command(&world, 1, &name);
	loads->asks[0].gate = &origin;
	(void)send_command(&world, one, loads);
	pass(&world, 100);
	assert_true(fill(&world, last_order(&world)->token, "row", FILL_VALUE, "r", 0));
	expect_is(loads, "r");
	pass_us(&world, 300 * MS - 1);
	expect_held(first);
	pass_us(&world, 1);
	expect_pass(first);
	world_close(&world);
}

static void test_blocked__held_bytes_end_the_first_hold(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *first, *second;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	(void)get(&world, two, "x");
	(void)get(&world, two, "y");
	first = get(&world, one, "x");
	second = get(&world, one, "y");
	link_release(world.engine, &one->link, world.now_us);
	carry_out(&world);
	expect_pass(first);
	expect_held(second);
	assert_int_equal(world.gate.counters.released_bytes, 1);
	world_close(&world);
}

static void test_blocked__an_origins_hold_ends_with_an_error_not_with_nil(void **state)
{
	struct world world;
	struct client *one;
	struct command *held;

	(void)state;
	world_open(&world, GATE_ORIGIN);
	one = connect_to(&world, "a");
	held = get(&world, one, "k");
	link_release(world.engine, &one->link, world.now_us);
	carry_out(&world);
	expect_error(held, HG_ERR_LIMIT);
	assert_non_null(strstr(held->asks[0].text, "held_bytes_max"));
	assert_true(fill(&world, last_order(&world)->token, "k", FILL_VALUE, "v", 0)); /* the load went on */
	world_close(&world);
}

/* ---- a lock of its own ---- */

static void test_blocked__who_waits_for_itself_is_told_of_own_lock(void **state)
{
	struct world world;
	struct client *one;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "program");
	(void)connect_to(&world, "program"); /* its pool has more, so this is no blocked peer */
	for (int i = 0; i < 3; i++) {
		(void)get(&world, one, "k");
		(void)get(&world, one, "k");
		one->link.multiplexed = false; /* it sent its second GET after the first reply */
		pass(&world, 3000);
		(void)set(&world, one, "k", "v");
		del(&world, one, "k");
		world.gate.fills_len = 0; /* the lease stays 3 s */
	}
	assert_int_equal(world.gate.looked_again, 3);
	assert_int_equal(world.remarks[REMARK_OWN_LOCK], 1); /* at most every ten minutes */
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blocked__a_pool_held_as_a_whole_is_released_after_blocked_after),
		cmocka_unit_test(test_blocked__a_peers_exemption_ends_and_doubles),
		cmocka_unit_test(test_blocked__blocked_after_follows_the_slowest_fill),
		cmocka_unit_test(test_blocked__from_then_on_whenever_the_last_connection_is_held),
		cmocka_unit_test(test_blocked__a_close_or_a_subscription_can_be_what_blocks),
		cmocka_unit_test(test_blocked__a_multiplexed_leader_with_held_replies_is_released),
		cmocka_unit_test(test_blocked__becoming_multiplexed_is_noticed_at_once),
		cmocka_unit_test(test_blocked__a_fill_behind_held_replies_proves_the_connection),
		cmocka_unit_test(test_blocked__a_fill_while_every_other_connection_is_held_proves_the_peer),
		cmocka_unit_test(test_blocked__a_proof_is_per_gate),
		cmocka_unit_test(test_blocked__two_lapses_in_a_row_take_a_proof_back),
		cmocka_unit_test(test_blocked__a_nil_that_is_never_read_counts_from_when_its_lease_must_begin),
		cmocka_unit_test(test_blocked__an_origins_load_is_left_to_end),
		cmocka_unit_test(test_blocked__hol_max_ends_a_hold_that_keeps_ready_replies_back),
		cmocka_unit_test(test_blocked__hol_max_counts_only_what_waits_behind_this_hold),
		cmocka_unit_test(test_blocked__hol_max_counts_a_load_that_is_ready_behind_a_hold),
		cmocka_unit_test(test_blocked__held_bytes_end_the_first_hold),
		cmocka_unit_test(test_blocked__an_origins_hold_ends_with_an_error_not_with_nil),
		cmocka_unit_test(test_blocked__who_waits_for_itself_is_told_of_own_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
