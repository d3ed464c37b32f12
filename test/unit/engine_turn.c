/* engine_turn.c - what an ask gets: the verdicts, whole commands, and that nothing leads that cannot be sent. */
#include "engine_world.h"

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
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_turn__first_asker_leads_second_waits)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
