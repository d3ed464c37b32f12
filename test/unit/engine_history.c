/* engine_history.c - the set of keys once filled: bounded, and without memory merely forgetful. */
#include "failing.h"

#include "base/alloc.h"
#include "base/dice.h"
#include "engine/history.h"

static void test_history__remembers_what_was_added_and_nothing_else(void **state)
{
	struct history history;
	struct dice known, unknown;

	(void)state;
	history_init(&history, &alloc_libc, 1 << 17);
	dice_init(&known, 1);
	for (int i = 0; i < 50000; i++)
		history_add(&history, dice_u64(&known));
	dice_init(&known, 1);
	dice_init(&unknown, 2);
	for (int i = 0; i < 50000; i++) {
		assert_true(history_has(&history, dice_u64(&known)));
		assert_false(history_has(&history, dice_u64(&unknown)));
	}
	history_fini(&history);
}

static void test_history__zero_is_a_hash_like_any_other(void **state)
{
	struct history history;

	(void)state;
	history_init(&history, &alloc_libc, 0);
	assert_false(history_has(&history, 0));
	history_add(&history, 0);
	assert_true(history_has(&history, 0));
	assert_false(history_has(&history, 2));
	history_fini(&history);
}

static void test_history__is_bounded_and_keeps_the_newer_half(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct history history;
	struct dice dice;
	uint64_t hash = 0, recent[1024];

	(void)state;
	history_init(&history, &allocator, 4096);
	dice_init(&dice, 3);
	for (int i = 0; i < 100000; i++) {
		hash = dice_u64(&dice);
		recent[i % 1024] = hash;
		history_add(&history, hash);
		history_add(&history, hash); /* twice is once */
		assert_in_range(history.young.count, 0, 2048);
		assert_true(history.young.mask < 8192 && history.old.mask < 8192);
	}
	for (int i = 0; i < 1024; i++)
		assert_true(history_has(&history, recent[i]));
	assert_in_range(failing.blocks, 1, 2);
	history_fini(&history);
	assert_int_equal(failing.blocks, 0);
}

static void test_history__without_memory_it_forgets(void **state)
{
	(void)state;
	for (long k = 0;; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct history history;

		history_init(&history, &allocator, 1 << 14);
		for (uint64_t hash = 1; hash <= 5000; hash++)
			history_add(&history, hash * 0x9E3779B97F4A7C15);
		assert_true(history_has(&history, 5000 * 0x9E3779B97F4A7C15));
		history_fini(&history);
		assert_int_equal(failing.blocks, 0);
		if (!failing.failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_history__remembers_what_was_added_and_nothing_else),
		cmocka_unit_test(test_history__zero_is_a_hash_like_any_other),
		cmocka_unit_test(test_history__is_bounded_and_keeps_the_newer_half),
		cmocka_unit_test(test_history__without_memory_it_forgets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
