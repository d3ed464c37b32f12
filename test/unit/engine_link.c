/* engine_link.c - connections and their peers: what is learnt of those who give up, and what outlives a connection. */
#include "engine_world.h"

#include <stdio.h>

/* A flight in which a connection of `peer` gives up after `age_us` of being held. The leader stays. */
static void give_up(struct world *world, struct client *leader, const char *peer, int64_t age_us)
{
	static unsigned number;
	static char names[64][16];
	char *name = names[number % 32];
	struct client *client = connect_to(world, peer);

	snprintf(name, sizeof(names[0]), "g%u", number++ % 32);
	expect_leads(get(world, leader, name));
	expect_held(get(world, client, name));
	pass_us(world, age_us);
	close_client(world, client);
	(void)set(world, leader, name, "v");
	del(world, NULL, name);
	pass(world, 11 * 1000);
}

/* How long a connection of `peer` is held now. */
static int64_t held_for(struct world *world, struct client *leader, const char *peer)
{
	struct command *held;
	int64_t since = world->now_us, span;

	world->gate.policy.lease_first_us = 100 * SECOND;
	world->gate.fills_len = 0;
	(void)get(world, leader, "probe");
	held = get(world, connect_to(world, peer), "probe");
	expect_held(held);
	pass(world, 8000);
	expect_error(held, HG_ERR_TIMEOUT);
	span = held->replied_us - since;
	(void)set(world, leader, "probe", "v");
	del(world, NULL, "probe");
	return span;
}

static void test_link__three_closes_at_one_age_teach_a_peers_limit(void **state)
{
	struct world world;
	struct client *leader;

	(void)state;
	world_open(&world, GATE_CLIENT);
	leader = connect_to(&world, "leader");
	give_up(&world, leader, "hasty", 2000 * MS);
	give_up(&world, leader, "hasty", 2200 * MS);
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 0);
	give_up(&world, leader, "hasty", 1800 * MS); /* all within 10 % of the first */
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 1);
	assert_int_equal(world.last_remark.kind, REMARK_GAVE_UP);
	assert_int_equal(world.last_remark.one_us, 2000 * MS);
	assert_int_equal(world.last_remark.two_us, 1600 * MS);
	assert_int_equal(world.gate.counters.gave_up, 3);
	assert_int_equal(held_for(&world, leader, "hasty"), 1600 * MS);
	assert_int_equal(held_for(&world, leader, "patient"), 5 * SECOND);
	world_close(&world);
}

static void test_link__a_limit_is_forgotten_after_ten_minutes(void **state)
{
	struct world world;
	struct client *leader;
	int64_t learnt;

	(void)state;
	world_open(&world, GATE_CLIENT);
	leader = connect_to(&world, "leader");
	for (int i = 0; i < 3; i++)
		give_up(&world, leader, "hasty", SECOND);
	learnt = world.now_us - 11 * SECOND;
	pass_until(&world, learnt + 600 * SECOND - 1);
	assert_int_equal(held_for(&world, leader, "hasty"), 800 * MS);
	assert_int_equal(held_for(&world, leader, "hasty"), 5 * SECOND);
	world_close(&world);
}

static void test_link__different_ages_teach_nothing(void **state)
{
	struct world world;
	struct client *leader;

	(void)state;
	world_open(&world, GATE_CLIENT);
	leader = connect_to(&world, "leader");
	give_up(&world, leader, "hasty", 1000 * MS);
	give_up(&world, leader, "hasty", 1090 * MS);
	give_up(&world, leader, "hasty", 1180 * MS); /* each near the one before, not all near one another */
	give_up(&world, leader, "hasty", 500 * MS);
	give_up(&world, leader, "hasty", 2000 * MS);
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 0);
	world_close(&world);
}

static void test_link__calls_cancelled_at_once_teach_nothing(void **state)
{
	struct world world;
	struct client *leader;

	(void)state;
	world_open(&world, GATE_CLIENT);
	leader = connect_to(&world, "leader");
	for (int i = 0; i < 5; i++)
		give_up(&world, leader, "hasty", 50 * MS - 1);
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 0);
	for (int i = 0; i < 3; i++)
		give_up(&world, leader, "hasty", 50 * MS);
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 1);
	world_close(&world);
}

static void test_link__many_closes_in_two_flights_teach_nothing(void **state)
{
	struct world world;
	struct client *leader, *clients[4];

	(void)state;
	world_open(&world, GATE_CLIENT);
	leader = connect_to(&world, "leader");
	(void)get(&world, leader, "x");
	(void)get(&world, leader, "y");
	for (int i = 0; i < 4; i++) {
		clients[i] = connect_to(&world, "hasty");
		(void)get(&world, clients[i], i % 2 ? "x" : "y");
	}
	pass(&world, 1000);
	for (int i = 0; i < 4; i++)
		close_client(&world, clients[i]);
	assert_int_equal(world.gate.counters.gave_up, 4);
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 0);
	world_close(&world);
}

/* A program that ends closes its leader's connection too, before or after the others'. */
static void test_link__a_program_that_ends_is_no_time_out(void **state)
{
	struct world world;

	(void)state;
	world_open(&world, GATE_CLIENT);
	for (int i = 0; i < 8; i++) {
		struct client *leader = connect_to(&world, "killed"), *waiter = connect_to(&world, "killed");
		static const char *const names[] = {"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"};

		expect_leads(get(&world, leader, names[i]));
		(void)connect_to(&world, "killed");
		expect_held(get(&world, waiter, names[i]));
		pass(&world, 500);
		close_client(&world, i % 2 ? leader : waiter);
		pass(&world, 10); /* read in another loop's round */
		close_client(&world, i % 2 ? waiter : leader);
	}
	assert_int_equal(held_for(&world, connect_to(&world, "leader"), "killed"), 5 * SECOND);
	world_close(&world);
}

static void test_link__a_leader_that_closed_long_before_hides_no_time_out(void **state)
{
	static const char *const names[] = {"k0", "k1", "k2"};
	struct world world;

	(void)state;
	world_open(&world, GATE_CLIENT);
	teach(&world, connect_to(&world, "t"), 4 * SECOND); /* a lease outlives its leader's connection */
	for (int i = 0; i < 3; i++) {
		struct client *leader = connect_to(&world, "per command"), *waiter = connect_to(&world, "per command");

		(void)get(&world, leader, names[i]);
		close_client(&world, leader);
		expect_held(get(&world, waiter, names[i]));
		pass(&world, 2000);
		close_client(&world, waiter);
	}
	assert_int_equal(world.remarks[REMARK_GAVE_UP], 1);
	world_close(&world);
}

static void test_link__a_renamed_connection_belongs_to_its_new_peer(void **state)
{
	struct world world;
	struct client *one, *two;
	struct command *held;
	struct engine_stats stats;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "1.2.3.4");
	two = connect_to(&world, "1.2.3.4");
	(void)get(&world, one, "k");
	held = get(&world, one, "k");
	assert_int_equal(link_rename(world.engine, &one->link, bytes_of("1.2.3.4 app")), HG_OK);
	engine_check(world.engine);
	engine_stats(world.engine, &stats);
	assert_int_equal(stats.peers, 2);
	assert_int_equal(link_rename(world.engine, &one->link, bytes_of("1.2.3.4 app")), HG_OK);
	/* It is its peer's only connection now, and all of that peer is held. */
	pass(&world, 1000);
	expect_pass(held);
	assert_false(explain(&world, two, "k").exempt_peer);
	assert_true(explain(&world, one, "k").exempt_peer);
	world_close(&world);
}

static void test_link__a_peer_is_remembered_between_its_connections(void **state)
{
	struct world world;
	struct client *one;
	struct engine_stats stats;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "pool");
	(void)get(&world, one, "k");
	(void)get(&world, one, "k");
	one->link.multiplexed = false;
	pass(&world, 1000);
	assert_true(explain(&world, one, "k").exempt_peer);
	close_client(&world, one);
	one = connect_to(&world, "pool");
	assert_true(explain(&world, one, "k").exempt_peer);
	close_client(&world, one);
	/* As long as an exemption tells how long the next one is, then not. */
	pass_us(&world, 20 * SECOND - 1);
	engine_stats(world.engine, &stats);
	assert_int_equal(stats.peers, 1);
	pass_us(&world, 1);
	engine_stats(world.engine, &stats);
	assert_int_equal(stats.peers, 0);
	world_close(&world);
}

static void test_link__whatever_a_closing_connection_waits_for_goes_on_without_it(void **state)
{
	struct world world;
	struct client *one, *two, *three;
	struct command *held;

	(void)state;
	world_open(&world, GATE_CLIENT);
	one = connect_to(&world, "a");
	two = connect_to(&world, "b");
	three = connect_to(&world, "c");
	(void)get(&world, one, "x");
	(void)mget(&world, two, 2, (const char *const[]){"x", "y"});
	(void)get(&world, two, "z"); /* parked */
	held = get(&world, three, "x");
	close_client(&world, two);
	(void)set(&world, one, "x", "v");
	expect_is(held, "v");
	expect_leads(get(&world, three, "y"));
	expect_leads(get(&world, three, "z"));
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_link__three_closes_at_one_age_teach_a_peers_limit),
		cmocka_unit_test(test_link__a_limit_is_forgotten_after_ten_minutes),
		cmocka_unit_test(test_link__different_ages_teach_nothing),
		cmocka_unit_test(test_link__calls_cancelled_at_once_teach_nothing),
		cmocka_unit_test(test_link__many_closes_in_two_flights_teach_nothing),
		cmocka_unit_test(test_link__a_program_that_ends_is_no_time_out),
		cmocka_unit_test(test_link__a_leader_that_closed_long_before_hides_no_time_out),
		cmocka_unit_test(test_link__a_renamed_connection_belongs_to_its_new_peer),
		cmocka_unit_test(test_link__a_peer_is_remembered_between_its_connections),
		cmocka_unit_test(test_link__whatever_a_closing_connection_waits_for_goes_on_without_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
