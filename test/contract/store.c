/* store.c - the contract of the store interface, one suite for every implementation: the memory store, and the memory
 * store behind a decorator that delays and reorders. A new store adds a fixture at the end, and no test. */
#include "failing.h"
#include "shuffled_store.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "store/memory.h"

#include <stdio.h>
#include <string.h>

#define SEED 77

struct fixture {
	struct store store;
	struct memory *memory;
	struct shuffled_store shuffled;
	int64_t now_us;
};

/* An operation that remembers how it ended. */
struct ask {
	struct store_op op;
	char text[24], value[24];
	unsigned done;  /* how often */
	unsigned order; /* the how manieth to end; from 1 on */
	char found[24];
};

static unsigned ended;

static void note(struct store_op *op)
{
	struct ask *ask = op->owner;

	ask->done++;
	ask->order = ++ended;
	if (op->kind == STORE_LOOK && op->found.len < sizeof(ask->found)) {
		memset(ask->found, 0, sizeof(ask->found));
		if (op->found.len > 0)
			memcpy(ask->found, op->found.at, op->found.len);
	}
}

static void ask(struct fixture *fixture, struct ask *ask, enum store_kind kind, unsigned number)
{
	struct hg_bytes key;

	(void)snprintf(ask->text, sizeof(ask->text), "key %u", number);
	key = bytes_of(ask->text);
	ask->op.kind = kind;
	ask->op.key = (struct key){key, hash_key(key, ask->op.key.space, SEED), ask->op.key.space};
	ask->op.now_us = fixture->now_us;
	ask->op.done = note;
	ask->op.owner = ask;
	ask->done = 0;
	fixture->store.ops->submit(fixture->store.self, &ask->op);
}

static void put(struct fixture *fixture, struct ask *one, unsigned number, const char *value, struct times times)
{
	(void)snprintf(one->value, sizeof(one->value), "%s", value);
	one->op.value = bytes_of(one->value);
	one->op.times = times;
	ask(fixture, one, STORE_PUT, number);
}

/* Drives the store until `one` has ended. The time stands still. */
static void await(struct fixture *fixture, const struct ask *one)
{
	for (unsigned i = 0; i < 100000 && one->done == 0; i++)
		(void)fixture->store.ops->tick(fixture->store.self, fixture->now_us, 8);
	assert_int_equal(one->done, 1);
}

static const struct times forever = {HG_NEVER, HG_NEVER, 0, 0, 0};

static void put_now(struct fixture *fixture, unsigned number, const char *value, struct times times)
{
	struct ask one = {0};

	put(fixture, &one, number, value, times);
	await(fixture, &one);
	assert_int_equal(one.op.status, STORE_OK);
}

/* What is there of key `number`? */
static struct ask look_now(struct fixture *fixture, unsigned number, uint8_t space)
{
	struct ask one = {.op.key.space = space};

	ask(fixture, &one, STORE_LOOK, number);
	await(fixture, &one);
	assert_int_equal(one.op.status, STORE_OK);
	return one;
}

static bool was_there_now(struct fixture *fixture, enum store_kind kind, unsigned number)
{
	struct ask one = {0};

	ask(fixture, &one, kind, number);
	await(fixture, &one);
	assert_int_equal(one.op.status, STORE_OK);
	return one.op.was_there;
}

static void test_store__what_was_put_is_found_with_its_times(void **state)
{
	struct fixture *fixture = *state;
	struct times times = {1000, 2000, 30, 4, 5};
	struct ask found;

	assert_int_equal(look_now(fixture, 1, 0).op.state, ABSENT);
	put_now(fixture, 1, "value", times);
	found = look_now(fixture, 1, 0);
	assert_int_equal(found.op.state, FRESH);
	assert_string_equal(found.found, "value");
	assert_false(found.op.found_absence);
	assert_int_equal(found.op.found_times.fresh_until_us, 1000);
	assert_int_equal(found.op.found_times.dead_at_us, 2000);
	assert_int_equal(found.op.found_times.early_us, 30);
	assert_int_equal(found.op.found_times.scale_us, 4);
	assert_int_equal(found.op.found_times.cost_us, 5);
	put_now(fixture, 1, "", forever);
	found = look_now(fixture, 1, 0);
	assert_int_equal(found.op.state, FRESH);
	assert_int_equal(found.op.found.len, 0);
}

static void test_store__times_are_exact(void **state)
{
	struct fixture *fixture = *state;
	struct times times = {1000, 2000, 0, 0, 0};

	put_now(fixture, 1, "value", times);
	fixture->now_us = 999;
	assert_int_equal(look_now(fixture, 1, 0).op.state, FRESH);
	fixture->now_us = 1000;
	assert_int_equal(look_now(fixture, 1, 0).op.state, STALE);
	fixture->now_us = 1999;
	assert_int_equal(look_now(fixture, 1, 0).op.state, STALE);
	fixture->now_us = 2000;
	assert_int_equal(look_now(fixture, 1, 0).op.state, ABSENT);
	assert_false(was_there_now(fixture, STORE_INVALIDATE, 1));
}

static void test_store__an_invalidation_removes(void **state)
{
	struct fixture *fixture = *state;

	put_now(fixture, 1, "value", forever);
	put_now(fixture, 2, "other", forever);
	assert_true(was_there_now(fixture, STORE_INVALIDATE, 1));
	assert_false(was_there_now(fixture, STORE_INVALIDATE, 1));
	assert_int_equal(look_now(fixture, 1, 0).op.state, ABSENT);
	assert_int_equal(look_now(fixture, 2, 0).op.state, FRESH);
}

static void test_store__a_purge_makes_stale(void **state)
{
	struct fixture *fixture = *state;
	struct times times = {1000, 2000, 0, 0, 9};
	struct ask found;

	assert_false(was_there_now(fixture, STORE_PURGE, 1));
	put_now(fixture, 1, "value", times);
	fixture->now_us = 500;
	assert_true(was_there_now(fixture, STORE_PURGE, 1));
	found = look_now(fixture, 1, 0);
	assert_int_equal(found.op.state, STALE);
	assert_string_equal(found.found, "value");
	assert_int_equal(found.op.found_times.dead_at_us, 2000);
	assert_int_equal(found.op.found_times.cost_us, 9);
	assert_true(was_there_now(fixture, STORE_PURGE, 1));
	fixture->now_us = 2000;
	assert_false(was_there_now(fixture, STORE_PURGE, 1));
}

static void test_store__absence_is_a_value_of_its_own(void **state)
{
	struct fixture *fixture = *state;
	struct ask one = {.op.absence = true};
	struct ask found;

	put(fixture, &one, 1, "", forever);
	await(fixture, &one);
	found = look_now(fixture, 1, 0);
	assert_int_equal(found.op.state, FRESH);
	assert_true(found.op.found_absence);
	put_now(fixture, 1, "", forever);
	found = look_now(fixture, 1, 0);
	assert_int_equal(found.op.state, FRESH);
	assert_false(found.op.found_absence);
}

static void test_store__a_flush_takes_one_space_or_all(void **state)
{
	struct fixture *fixture = *state;

	for (uint8_t space = 0; space < 3; space++) {
		struct ask one = {.op.key.space = space};

		put(fixture, &one, 1, "value", forever);
		await(fixture, &one);
	}
	for (int round = 0; round < 2; round++) {
		struct ask one = {.op.key.space = round ? STORE_SPACE_ALL : 1};

		ask(fixture, &one, STORE_FLUSH, 0);
		await(fixture, &one);
		for (uint8_t space = 0; space < 3; space++)
			assert_int_equal(look_now(fixture, 1, space).op.state, round || space == 1 ? ABSENT : FRESH);
	}
}

static void test_store__what_does_not_fit_changes_nothing(void **state)
{
	struct fixture *fixture = *state;
	char *large = calloc(1, 4 << 20);
	struct ask one = {.op.value = {large, 4 << 20}, .op.times = forever};

	put_now(fixture, 1, "value", forever);
	ask(fixture, &one, STORE_PUT, 1);
	await(fixture, &one);
	assert_int_equal(one.op.status, STORE_FULL);
	assert_string_equal(look_now(fixture, 1, 0).found, "value");
	free(large);
}

/* Many operations at once: those on one key end in the order of their submission and see what came before them. */
static void test_store__operations_on_one_key_keep_their_order(void **state)
{
	enum { KEYS = 20, STEPS = 40 };
	struct fixture *fixture = *state;
	struct ask *puts = calloc(KEYS * STEPS, sizeof(*puts)), *looks = calloc(KEYS * STEPS, sizeof(*looks));

	for (unsigned step = 0; step < STEPS; step++)
		for (unsigned key = 0; key < KEYS; key++) {
			unsigned i = step * KEYS + key;
			char value[24];

			(void)snprintf(value, sizeof(value), "%u of %u", step, key);
			put(fixture, &puts[i], key, value, forever);
			ask(fixture, &looks[i], STORE_LOOK, key);
		}
	for (unsigned i = 0; i < KEYS * STEPS; i++) {
		await(fixture, &puts[i]);
		await(fixture, &looks[i]);
		assert_true(puts[i].order < looks[i].order);
		assert_string_equal(looks[i].found, puts[i].value);
		if (i >= KEYS)
			assert_true(looks[i - KEYS].order < puts[i].order);
	}
	free(puts);
	free(looks);
}

static void test_store__closing_ends_every_operation_once(void **state)
{
	struct fixture *fixture = *state;
	struct ask asks[50] = {0};

	for (unsigned i = 0; i < 50; i++)
		put(fixture, &asks[i], i, "value", forever);
	fixture->store.ops->close(fixture->store.self);
	for (unsigned i = 0; i < 50; i++) {
		assert_int_equal(asks[i].done, 1);
		assert_true(asks[i].op.status == STORE_OK || asks[i].op.status == STORE_CANCELED);
	}
}

static int open_memory(void **state)
{
	struct memory_config config = {NULL, 3 << 20, SEED, 16};
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	if (fixture == NULL || memory_create(&config, &fixture->memory) != HG_OK)
		return -1;
	fixture->store = memory_store(fixture->memory);
	*state = fixture;
	return 0;
}

static int open_shuffled(void **state)
{
	static uint64_t seed;
	struct fixture *fixture;

	if (open_memory(state) != 0)
		return -1;
	fixture = *state;
	fixture->store = shuffled_store(&fixture->shuffled, fixture->store, seed++);
	return 0;
}

static int close_fixture(void **state)
{
	struct fixture *fixture = *state;

	memory_check(fixture->memory);
	memory_destroy(fixture->memory);
	free(fixture);
	return 0;
}

/* clang-format off */
#define SUITE(open) \
	cmocka_unit_test_setup_teardown(test_store__what_was_put_is_found_with_its_times, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__times_are_exact, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__an_invalidation_removes, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__a_purge_makes_stale, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__absence_is_a_value_of_its_own, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__a_flush_takes_one_space_or_all, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__what_does_not_fit_changes_nothing, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__operations_on_one_key_keep_their_order, open, close_fixture), \
	cmocka_unit_test_setup_teardown(test_store__closing_ends_every_operation_once, open, close_fixture)
/* clang-format on */

int main(void)
{
	const struct CMUnitTest memory[] = {SUITE(open_memory)};
	const struct CMUnitTest shuffled[] = {SUITE(open_shuffled)};

	return cmocka_run_group_tests_name("memory", memory, NULL, NULL) +
	       cmocka_run_group_tests_name("memory, delayed and reordered", shuffled, NULL, NULL);
}
