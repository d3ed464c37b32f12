/* The hash table: finds, forgets, grows, survives a growth that fails, walks while members leave. */
#include "failing.h"

#include "base/dice.h"
#include "base/map.h"

#define LEN 5000

struct member {
	struct map_node node;
	unsigned number;
	bool in, seen;
};

static uint64_t hash_of(unsigned number)
{
	return (number / 2) * UINT64_C(0x9E3779B97F4A7C15); /* in pairs: equal hashes must live side by side */
}

static struct member *find(const struct map *map, unsigned number)
{
	uint64_t hash = hash_of(number);

	for (struct map_node *node = map_chain(map, hash); node != NULL; node = node->next) {
		struct member *member = (struct member *)node;

		if (node->hash == hash && member->number == number)
			return member;
	}
	return NULL;
}

static void test_map__finds_what_is_in_and_only_that(void **state)
{
	static struct member members[LEN];
	struct map map;
	struct dice dice;
	size_t count = 0;

	dice_init(&dice, 2);
	assert_int_equal(map_init(&map, NULL), HG_OK);
	for (unsigned i = 0; i < LEN; i++)
		members[i] = (struct member){.number = i};
	for (int step = 0; step < 40000; step++) {
		struct member *member = &members[dice_below(&dice, LEN)];

		assert_ptr_equal(find(&map, member->number), member->in ? member : NULL);
		if (member->in)
			map_remove(&map, &member->node);
		else
			map_insert(&map, &member->node, hash_of(member->number));
		member->in = !member->in;
		count += member->in ? 1 : (size_t)-1;
		assert_int_equal(map.count, count);
	}
	for (unsigned i = 0; i < LEN; i++)
		assert_ptr_equal(find(&map, i), members[i].in ? &members[i] : NULL);
	map_fini(&map);
}

static size_t longest_chain(const struct map *map)
{
	size_t longest = 0;

	for (size_t i = 0; i <= map->mask; i++) {
		size_t len = 0;

		for (struct map_node *node = map->buckets[i]; node != NULL; node = node->next)
			len++;
		longest = len > longest ? len : longest;
	}
	return longest;
}

/* An owner that chose its shard by one end of the hash gives hashes that are all alike at that end. */
static void test_map__chains_stay_short_where_half_of_the_hash_is_spent(void **state)
{
	static struct map_node nodes[LEN];

	for (int half = 0; half < 2; half++) {
		struct map map;
		struct dice dice;

		dice_init(&dice, 3);
		assert_int_equal(map_init(&map, NULL), HG_OK);
		for (int i = 0; i < LEN; i++)
			map_insert(&map, &nodes[i], half ? dice_u64(&dice) << 32 : dice_u64(&dice) >> 32);
		assert_true(longest_chain(&map) < 12);
		map_fini(&map);
	}
}

static void test_map__walks_every_member_once_while_they_leave(void **state)
{
	static struct member members[LEN];
	struct map map;
	struct map_cursor cursor = {0, NULL};
	size_t seen = 0;

	assert_int_equal(map_init(&map, NULL), HG_OK);
	assert_null(map_walk(&map, &cursor));
	for (unsigned i = 0; i < LEN; i++) {
		members[i] = (struct member){.number = i};
		map_insert(&map, &members[i].node, hash_of(i));
	}
	cursor = (struct map_cursor){0, NULL};
	for (struct map_node *node; (node = map_walk(&map, &cursor)) != NULL; seen++) {
		struct member *member = (struct member *)node;

		assert_false(member->seen);
		member->seen = true;
		if (member->number % 3 != 0)
			map_remove(&map, node);
	}
	assert_int_equal(seen, LEN);
	assert_int_equal(map.count, (LEN + 2) / 3);
	assert_null(map_walk(&map, &cursor));
	map_fini(&map);
}

/* One insertion after another with an allocator that fails at the k-th call: only map_init may notice. */
static void test_map__a_growth_that_fails_loses_nothing(void **state)
{
	static struct member members[LEN];

	for (long k = 0;; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct map map;
		enum hg_err err = map_init(&map, &allocator);

		assert_int_equal(err, k == 0 ? HG_ERR_MEMORY : HG_OK);
		for (unsigned i = 0; err == HG_OK && i < LEN; i++) {
			members[i] = (struct member){.number = i};
			map_insert(&map, &members[i].node, hash_of(i));
		}
		for (unsigned i = 0; err == HG_OK && i < LEN; i++)
			assert_ptr_equal(find(&map, i), &members[i]);
		if (err == HG_OK)
			map_fini(&map);
		assert_int_equal(failing.blocks, 0);
		if (!failing.failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map__finds_what_is_in_and_only_that),
		cmocka_unit_test(test_map__chains_stay_short_where_half_of_the_hash_is_spent),
		cmocka_unit_test(test_map__walks_every_member_once_while_they_leave),
		cmocka_unit_test(test_map__a_growth_that_fails_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
