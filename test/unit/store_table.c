/* store_table.c - lines in the order of positions, at every size; words that come, go and are copied. */
#include "failing.h"
#include "base/alloc.h"
#include "base/dice.h"
#include "store/entry.h"
#include "store/table.h"

static void test_table__lines_share_the_positions_without_gap_or_overlap(void **state)
{
	const uint32_t sizes[] = {1, 2, 3, 5, 7, 12, 18, 1000, 3444, 65536, 99999, 1u << 25};
	const uint32_t end = 1u << 26;
	struct dice dice;

	dice_init(&dice, 2);
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		uint32_t lines = sizes[size];

		assert_int_equal(table_index(lines, 0), 0);
		assert_int_equal(table_index(lines, end - 1), lines - 1);
		assert_int_equal(table_end_of(lines, lines - 1), end);
		for (uint32_t i = 0; i < 2000; i++) {
			uint32_t index = i < 100 ? i : (uint32_t)dice_below(&dice, lines);

			if (index >= lines - 1)
				continue;
			assert_int_equal(table_index(lines, table_end_of(lines, index)), index + 1);
			assert_int_equal(table_index(lines, table_end_of(lines, index) - 1), index);
			/* the shard's number in the upper bits changes nothing */
			assert_int_equal(table_index(lines, table_end_of(lines, index) | 63u << 26), index + 1);
		}
	}
}

enum { KEYS = 500 };

struct fixture {
	struct table *table;
	struct entry *entries[KEYS];
	struct key keys[KEYS];
	unsigned numbers[KEYS];
};

static void fill(struct fixture *fixture, const struct hg_allocator *allocator, uint32_t lines)
{
	struct dice dice;

	dice_init(&dice, 8);
	fixture->table = table_create(allocator, lines);
	assert_non_null(fixture->table);
	for (unsigned i = 0; i < KEYS; i++) {
		struct recipe recipe = {.key = &fixture->keys[i]};
		_Atomic uint64_t *room;

		fixture->numbers[i] = i;
		fixture->keys[i] =
			(struct key){{&fixture->numbers[i], sizeof(unsigned)}, dice_u64(&dice) & ~UINT64_C(0xfffe), 0};
		fixture->entries[i] = entry_create(&alloc_libc, &recipe);
		room = table_room(allocator, fixture->table, (uint32_t)(fixture->keys[i].hash >> 32));
		assert_non_null(room);
		atomic_store(room, table_word(fixture->entries[i], fixture->keys[i].hash));
	}
}

static void spill(struct fixture *fixture, const struct hg_allocator *allocator)
{
	for (unsigned i = 0; i < KEYS; i++)
		entry_destroy(&alloc_libc, fixture->entries[i], false);
	table_destroy(allocator, fixture->table);
}

static void count_one(void *arg, struct entry *entry)
{
	(*(unsigned *)arg)++;
}

static void test_table__every_word_is_found_in_a_copy_of_any_size(void **state)
{
	const uint32_t sizes[] = {1, 2, 30, 71, 500};
	struct fixture fixture;

	fill(&fixture, &alloc_libc, 10);
	for (size_t size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++) {
		struct table *copy = table_copy(&alloc_libc, fixture.table, sizes[size]);
		unsigned count = 0;

		assert_non_null(copy);
		for (unsigned i = 0; i < KEYS; i++) {
			assert_ptr_equal(table_find(copy, &fixture.keys[i]), fixture.entries[i]);
			assert_ptr_equal(table_entry(atomic_load(table_word_of(copy, fixture.entries[i]))),
					 fixture.entries[i]);
		}
		for (uint32_t line = 0; line < copy->lines; line++)
			table_visit(copy, line, count_one, &count);
		assert_int_equal(count, KEYS);
		table_destroy(&alloc_libc, copy);
	}
	spill(&fixture, &alloc_libc);
}

static void test_table__a_copy_that_fails_leaves_nothing(void **state)
{
	struct failing failing;
	struct hg_allocator allocator = failing_allocator(&failing, -1);
	struct fixture fixture;
	struct table *copy = NULL;
	long held;

	fill(&fixture, &allocator, 10);
	held = failing.blocks;
	for (long k = 0; copy == NULL; k++) {
		failing.left = k;
		copy = table_copy(&allocator, fixture.table, 30);
		assert_true(copy != NULL || failing.blocks == held);
		assert_true(k < 1000);
	}
	assert_true(failing.blocks > held + 1); /* chains were copied too, so more than one allocation could fail */
	table_destroy(&allocator, copy);
	spill(&fixture, &allocator);
	assert_int_equal(failing.blocks, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table__lines_share_the_positions_without_gap_or_overlap),
		cmocka_unit_test(test_table__every_word_is_found_in_a_copy_of_any_size),
		cmocka_unit_test(test_table__a_copy_that_fails_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
