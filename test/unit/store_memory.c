/* store_memory.c - the memory store, seen from outside. Times are virtual. */
#include "base/alloc.h"
#include "store/memory.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#define MIB (INT64_C(1) << 20)

static const struct times forever = {HG_NEVER, HG_NEVER, 0, 0, 0};

static struct memory *open_memory(int64_t max_bytes)
{
	struct memory_config config = {NULL, max_bytes, 42, 16};
	struct memory *memory;

	assert_int_equal(memory_create(&config, &memory), HG_OK);
	return memory;
}

static void close_memory(struct memory *memory)
{
	memory_check(memory);
	memory_destroy(memory);
}

/* A value other than the times is a byte string of the caller's. Takes the lock by itself. */
static enum hg_err put_bytes(struct memory *memory, const struct key *key, struct hg_bytes value,
			     const struct times *times, int64_t now_us)
{
	struct memory_put put = {.value = value, .times = *times};
	const struct entry *entry;
	enum hg_err err;

	memory_lock(memory, memory_mask(key));
	err = memory_put(memory, key, &put, now_us, &entry);
	if (err == HG_OK)
		assert_true(bytes_equal(entry_value(entry), value));
	memory_unlock(memory, memory_mask(key));
	return err;
}

static struct key numbered(struct memory *memory, char *text, unsigned number)
{
	(void)snprintf(text, 32, "key:%u", number);
	return memory_key(memory, bytes_of(text), 0);
}

static enum hg_err put_number(struct memory *memory, unsigned number, const struct times *times, int64_t now_us)
{
	char text[32];
	struct key key = numbered(memory, text, number);

	return put_bytes(memory, &key, key.bytes, times, now_us);
}

/* Is key `number` there, with the value that put_number() gave it? */
static bool has_number(struct memory *memory, unsigned number)
{
	char text[32];
	struct key key = numbered(memory, text, number);
	const struct entry *entry;

	memory_lock(memory, memory_mask(&key));
	entry = memory_find(memory, &key);
	if (entry != NULL) {
		assert_true(bytes_equal(entry_value(entry), key.bytes));
		assert_true(bytes_equal(entry_key(entry), key.bytes));
	}
	memory_unlock(memory, memory_mask(&key));
	return entry != NULL;
}

static void remove_number(struct memory *memory, unsigned number)
{
	char text[32];
	struct key key = numbered(memory, text, number);
	const struct entry *entry;

	memory_lock(memory, memory_mask(&key));
	entry = memory_find(memory, &key);
	if (entry != NULL)
		memory_remove(memory, entry);
	memory_unlock(memory, memory_mask(&key));
}

static void test_memory__what_was_put_is_found(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct memory_stats stats;

	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	for (unsigned i = 0; i < 20000; i++)
		assert_true(has_number(memory, i));
	assert_false(has_number(memory, 20000));
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 20000);
	assert_int_equal(stats.keys[0], 20000);
	assert_int_equal(stats.expires[0], 0);
	memory_check(memory);
	for (unsigned i = 0; i < 20000; i += 2)
		remove_number(memory, i);
	memory_check(memory);
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(has_number(memory, i), i % 2);
	close_memory(memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__what_was_put_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
