/* store_memory.c - the memory store, seen from outside. Times are virtual. */
#include "failing.h"
#include "base/alloc.h"
#include "base/dice.h"
#include "store/memory.h"

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

static void test_memory__a_replaced_value_is_gone_and_freed(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct key key = memory_key(memory, bytes_of("k"), 0);
	struct times times = {10, 20, 1, 2, 3};
	struct memory_stats before, after;
	const struct entry *entry;

	assert_int_equal(put_bytes(memory, &key, bytes_of("one"), &forever, 0), HG_OK);
	memory_stats(memory, &before);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(put_bytes(memory, &key, bytes_of("two"), &times, 0), HG_OK);
	(void)memory_tick(memory, 0, 1000);
	memory_stats(memory, &after);
	assert_int_equal(after.bytes, before.bytes);
	assert_int_equal(after.retired, 0);
	assert_int_equal(after.entries, 1);
	assert_int_equal(after.expires[0], 1);
	entry = memory_find(memory, &key);
	assert_true(bytes_equal(entry_value(entry), bytes_of("two")));
	assert_int_equal(entry->early_us, 1);
	assert_int_equal(entry->scale_us, 2);
	assert_int_equal(entry->cost_us, 3);
	assert_int_equal(entry_state(entry, 9), FRESH);
	assert_int_equal(entry_state(entry, 10), STALE);
	assert_int_equal(entry_state(entry, 19), STALE);
	assert_int_equal(entry_state(entry, 20), ABSENT);
	close_memory(memory);
}

static void test_memory__keys_of_any_length_and_any_bytes(void **state)
{
	struct memory *memory = open_memory(256 * MIB);
	unsigned char *bytes = malloc(65536);
	size_t lens[600];
	size_t count = 0;

	for (size_t len = 0; len <= 520; len++)
		lens[count++] = len;
	for (size_t len = 1024; len <= 65536; len *= 2) {
		lens[count++] = len - 1;
		lens[count++] = len;
	}
	for (size_t i = 0; i < 65536; i++)
		bytes[i] = (unsigned char)(i + i / 256);
	for (size_t i = 0; i < count; i++) {
		struct key key = memory_key(memory, (struct hg_bytes){bytes, lens[i]}, 3);

		assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){&lens[i], sizeof(lens[i])}, &forever, 0),
				 HG_OK);
	}
	for (size_t i = 0; i < count; i++) {
		struct key key = memory_key(memory, (struct hg_bytes){bytes, lens[i]}, 3);
		const struct entry *entry = memory_find(memory, &key);

		assert_non_null(entry);
		assert_true(bytes_equal(entry_key(entry), key.bytes));
		assert_memory_equal(entry_value(entry).at, &lens[i], sizeof(lens[i]));
		if (lens[i] > 0) { /* one bit less is another key */
			bytes[lens[i] - 1] ^= 1;
			key = memory_key(memory, (struct hg_bytes){bytes, lens[i]}, 3);
			assert_null(memory_find(memory, &key));
			bytes[lens[i] - 1] ^= 1;
		}
	}
	free(bytes);
	close_memory(memory);
}

/* Equal hashes must not make equal keys: the comparison alone tells them apart. */
static void test_memory__keys_with_one_hash_stay_apart(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	char texts[40][16];
	struct key keys[40];

	for (unsigned i = 0; i < 40; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "%u", i);
		keys[i] = (struct key){bytes_of(texts[i]), UINT64_C(0x123456789abcdef0), 0};
		assert_int_equal(put_bytes(memory, &keys[i], keys[i].bytes, &forever, 0), HG_OK);
	}
	for (unsigned i = 0; i < 40; i++)
		assert_true(bytes_equal(entry_value(memory_find(memory, &keys[i])), keys[i].bytes));
	memory_check(memory);
	memory_destroy(memory);
}

static void test_memory__values_of_every_size_class(void **state)
{
	struct memory *memory = open_memory(256 * MIB);
	const size_t sizes[] = {0,       1,       MEMORY_INLINE_MAX - 1, MEMORY_INLINE_MAX, MEMORY_INLINE_MAX + 1,
				1 << 20, 64 << 20};
	struct memory_stats empty, after;
	unsigned char *bytes = malloc(64 << 20);

	for (size_t i = 0; i < 64 << 20; i++)
		bytes[i] = (unsigned char)(i * 131 >> 3);
	for (unsigned i = 0; i < 1000; i++) { /* a shard that was used once keeps the directory of its queue */
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
		remove_number(memory, i);
	}
	(void)memory_tick(memory, 0, 1);
	memory_stats(memory, &empty);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct key key = memory_key(memory, bytes_of("k"), 0);
		struct hg_bytes value = {bytes, sizes[i]};
		const struct entry *entry;

		assert_int_equal(put_bytes(memory, &key, value, &forever, 0), HG_OK);
		entry = memory_find(memory, &key);
		assert_true(bytes_equal(entry_value(entry), value));
		assert_int_equal(entry_blob(entry) != NULL, sizes[i] > MEMORY_INLINE_MAX);
		memory_check(memory);
		memory_lock(memory, memory_mask(&key));
		memory_remove(memory, entry);
		memory_unlock(memory, memory_mask(&key));
		(void)memory_tick(memory, 0, 1);
		memory_stats(memory, &after);
		assert_int_equal(after.bytes, empty.bytes);
	}
	free(bytes);
	close_memory(memory);
}

static void test_memory__a_blob_is_shared_not_copied(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct key key = memory_key(memory, bytes_of("large"), 0);
	struct times later = {5, 9, 0, 0, 7};
	struct blob *blob = blob_create(&alloc_libc, 100000);
	struct memory_put put = {.blob = blob, .times = forever, .gate = 11, .flags = ENTRY_FLIGHT};
	const struct entry *entry;

	memset(blob->at, 'x', blob->len);
	memory_lock(memory, memory_mask(&key));
	assert_int_equal(memory_put(memory, &key, &put, 0, &entry), HG_OK);
	assert_ptr_equal(entry_blob(entry), blob);
	assert_int_equal(atomic_load(&blob->refs), 2);
	assert_int_equal(memory_restamp(memory, entry, &later, 0, &entry), HG_OK);
	assert_ptr_equal(entry_blob(entry), blob);
	assert_int_equal(entry->fresh_until_us, 5);
	assert_int_equal(entry->dead_at_us, 9);
	assert_int_equal(entry->gate, 11);
	assert_int_equal(entry->flags, ENTRY_FLIGHT | ENTRY_BLOB);
	memory_unlock(memory, memory_mask(&key));
	memory_check(memory);
	(void)memory_tick(memory, 0, 1);
	assert_int_equal(atomic_load(&blob->refs), 2);
	(void)memory_tick(memory, 9, 1000);
	assert_int_equal(atomic_load(&blob->refs), 1);
	blob_unref(blob);
	close_memory(memory);
}

static void test_memory__spaces_are_apart_and_flushed_apart(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct memory_stats stats;

	for (uint8_t space = 0; space < 16; space++)
		for (unsigned i = 0; i < 1000; i++) {
			char text[32];
			struct key key;

			(void)snprintf(text, sizeof(text), "%u", i);
			key = memory_key(memory, bytes_of(text), space);
			assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){&space, 1}, &forever, 0), HG_OK);
		}
	for (uint8_t space = 0; space < 16; space++) {
		struct key key = memory_key(memory, bytes_of("77"), space);

		assert_memory_equal(entry_value(memory_find(memory, &key)).at, &space, 1);
	}
	memory_lock(memory, MEMORY_MASK_ALL);
	memory_flush(memory, 5);
	memory_unlock(memory, MEMORY_MASK_ALL);
	memory_check(memory);
	memory_stats(memory, &stats);
	for (uint8_t space = 0; space < 16; space++)
		assert_int_equal(stats.keys[space], space == 5 ? 0 : 1000);
	memory_lock(memory, MEMORY_MASK_ALL);
	memory_flush(memory, STORE_SPACE_ALL);
	memory_unlock(memory, MEMORY_MASK_ALL);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 0);
	close_memory(memory);
}

static void test_memory__the_background_removes_at_the_instant_of_death(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct times times = {1000000, 5000000, 0, 0, 0}, later = {1000000, 9000000, 0, 0, 0};
	struct memory_stats stats;

	for (unsigned i = 0; i < 3000; i++)
		assert_int_equal(put_number(memory, i, i % 2 ? &times : &later, 0), HG_OK);
	assert_int_equal(put_number(memory, 3000, &forever, 0), HG_OK);
	assert_true(memory_tick(memory, 0, 100000) <= 1000000);
	assert_int_equal(memory_tick(memory, 4500000, 100000), 5000000);
	(void)memory_tick(memory, 4999999, 100000);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 3001);
	assert_int_equal(stats.expires[0], 3000);
	(void)memory_tick(memory, 5000000, 100000);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 1501);
	assert_int_equal(stats.expired, 1500);
	memory_check(memory);
	(void)memory_tick(memory, 8999999, 100000);
	memory_stats(memory, &stats);
	assert_int_equal(stats.expired, 1500);
	(void)memory_tick(memory, 9000000, 100000);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 1);
	assert_int_equal(stats.retired, 0);
	assert_true(has_number(memory, 3000));
	close_memory(memory);
}

static void test_memory__a_small_budget_reaches_everything_in_several_ticks(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct times times = {1, 100, 0, 0, 0};
	struct memory_stats stats;
	int64_t now_us = 100, next_us;
	unsigned ticks = 0;

	for (unsigned i = 0; i < 5000; i++)
		assert_int_equal(put_number(memory, i, i % 4 ? &times : &forever, 0), HG_OK);
	do {
		next_us = memory_tick(memory, now_us, 50);
		assert_true(next_us >= now_us);
		now_us = next_us;
		memory_stats(memory, &stats);
		ticks++;
	} while (stats.expired < 3750 && ticks < 1000);
	assert_true(ticks > 50);
	assert_true(ticks < 1000);
	assert_int_equal(stats.entries, 1250);
	close_memory(memory);
}

static void test_memory__bytes_stay_within_the_limit(void **state)
{
	struct memory *memory = open_memory(4 * MIB);
	static char value[20000];
	struct memory_stats stats;
	struct dice dice;

	dice_init(&dice, 1);
	for (unsigned i = 0; i < 30000; i++) {
		char text[32];
		struct key key = numbered(memory, text, (unsigned)dice_below(&dice, 20000));
		size_t len = dice_below(&dice, 50) ? dice_below(&dice, 300) : dice_below(&dice, sizeof(value));

		assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){value, len}, &forever, i), HG_OK);
		memory_stats(memory, &stats);
		assert_true(stats.bytes <= 4 * MIB);
		assert_true(stats.bytes <= 3 * MIB || i > 1000);
	}
	assert_true(stats.evicted > 1000);
	assert_true(stats.bytes > 7 * MIB / 2);
	close_memory(memory);
}

static void test_memory__one_large_value_fits_where_all_else_goes(void **state)
{
	struct memory *memory = open_memory(16 * MIB);
	char *value = calloc(1, 15 * MIB);
	struct key key = memory_key(memory, bytes_of("large"), 0);
	struct memory_stats stats, after;

	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){value, 12 * MIB}, &forever, 0), HG_OK);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 1001); /* there was room for all */
	assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){value, 13 * MIB}, &forever, 0), HG_OK);
	(void)memory_tick(memory, 0, 1);
	memory_stats(memory, &stats);
	assert_true(stats.bytes <= 16 * MIB);
	assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){value, 15 * MIB + 600000}, &forever, 0),
			 HG_ERR_LIMIT);
	memory_stats(memory, &after);
	assert_memory_equal(&stats, &after, sizeof(stats));
	assert_int_equal(entry_value(memory_find(memory, &key)).len, 13 * MIB);
	free(value);
	close_memory(memory);
}

static void test_memory__a_lowered_limit_is_followed_by_ticks(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct memory_stats stats;
	int64_t now_us = 0;

	for (unsigned i = 0; i < 50000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	memory_set_max_bytes(memory, 2 * MIB);
	for (int i = 0; i < 1000; i++)
		now_us = memory_tick(memory, now_us, 256);
	memory_stats(memory, &stats);
	assert_true(stats.bytes <= 2 * MIB);
	assert_true(stats.bytes > MIB);
	assert_true(stats.entries > 1000);
	memory_set_max_bytes(memory, 64 * MIB);
	for (unsigned i = 0; i < 20000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	for (unsigned i = 0; i < 20000; i++)
		assert_true(has_number(memory, i));
	close_memory(memory);
}

/* Fills about a tenth of the keys that are asked by Zipf's law; returns the share of asks that hit. */
static double zipf_hits(struct memory *memory, const double *shares, unsigned keys, unsigned asks)
{
	struct dice dice;
	unsigned hits = 0;

	dice_init(&dice, 5);
	for (unsigned i = 0; i < asks; i++) {
		double at = dice_unit(&dice) * shares[keys - 1];
		unsigned low = 0, high = keys - 1;

		while (low < high) {
			unsigned middle = (low + high) / 2;

			if (shares[middle] < at)
				low = middle + 1;
			else
				high = middle;
		}
		if (memory == NULL) {
			hits += low < keys / 10; /* the best that any choice could do */
		} else if (has_number(memory, low)) {
			hits++;
		} else {
			assert_int_equal(put_number(memory, low, &forever, i), HG_OK);
		}
	}
	return (double)hits / asks;
}

static void test_memory__eviction_keeps_what_is_asked_for(void **state)
{
	enum { KEYS = 100000, ASKS = 400000 };
	struct memory *memory = open_memory(MIB + MIB / 5);
	double *shares = malloc(KEYS * sizeof(*shares)), sum = 0, hits, best;
	struct memory_stats stats;

	for (unsigned i = 0; i < KEYS; i++)
		shares[i] = sum += 1.0 / (i + 1);
	hits = zipf_hits(memory, shares, KEYS, ASKS);
	best = zipf_hits(NULL, shares, KEYS, ASKS);
	memory_stats(memory, &stats);
	assert_true(stats.entries < KEYS / 8);
	assert_true(hits > 0.70); /* FIFO of this size: 0.62; see doc/decisions */
	assert_true(hits < best);
	for (unsigned i = 0; i < 20; i++)
		assert_true(has_number(memory, i));
	free(shares);
	close_memory(memory);
}

static void test_memory__a_reader_keeps_what_it_found(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct memory_reader *reader, *idle;
	char text[32];
	struct key key = numbered(memory, text, 1);
	const struct entry *entry;
	struct memory_stats stats;
	struct blob *held;
	static char large[50000];

	assert_int_equal(memory_reader_create(memory, &reader), HG_OK);
	assert_int_equal(memory_reader_create(memory, &idle), HG_OK);
	assert_int_equal(put_bytes(memory, &key, (struct hg_bytes){large, sizeof(large)}, &forever, 0), HG_OK);
	memory_read_begin(reader);
	entry = memory_find(memory, &key);
	for (unsigned i = 0; i < 1000; i++)
		remove_number(memory, i);
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	(void)memory_tick(memory, 0, 1000);
	memory_stats(memory, &stats);
	assert_true(stats.retired >= 1);
	assert_true(stats.retired_bytes > 50000);
	assert_int_equal(entry_value(entry).len, sizeof(large));
	held = blob_ref(entry_blob(entry), 1);
	memory_read_end(reader);
	assert_true(memory_tick(memory, 1, 1000) > 1); /* the other reader idles outside a section */
	memory_stats(memory, &stats);
	assert_int_equal(stats.retired, 0);
	assert_int_equal(stats.retired_bytes, 0);
	assert_int_equal(atomic_load(&held->refs), 1);
	blob_unref(held);
	memory_reader_destroy(reader);
	memory_reader_destroy(idle);
	close_memory(memory);
}

static void test_memory__a_reader_that_stays_bounds_the_garbage(void **state)
{
	struct memory *memory = open_memory(4 * MIB);
	struct memory_reader *reader;
	static char value[4000];
	struct memory_stats stats;
	enum hg_err err = HG_OK;
	unsigned i;

	assert_int_equal(memory_reader_create(memory, &reader), HG_OK);
	memory_read_begin(reader);
	for (i = 0; i < 20000 && err == HG_OK; i++) {
		char text[32];
		struct key key = numbered(memory, text, i % 100);

		err = put_bytes(memory, &key, (struct hg_bytes){value, sizeof(value)}, &forever, i);
		memory_stats(memory, &stats);
		assert_true(stats.bytes <= (4 + 32) * MIB + 10000);
	}
	assert_int_equal(err, HG_ERR_LIMIT);
	assert_true(i > 500);
	memory_read_end(reader);
	assert_int_equal(put_number(memory, 1, &forever, i), HG_OK);
	memory_reader_destroy(reader);
	close_memory(memory);
}

static void test_memory__what_was_found_under_a_lock_can_be_read_until_it_is_given_back(void **state)
{
	struct memory *memory = open_memory(MIB);
	struct key from = memory_key(memory, bytes_of("from"), 0);
	static char value[100000];
	struct memory_put put = {.value = {value, sizeof(value)}, .times = forever};
	const struct entry *found, *entry;

	for (int i = 0; i < 200; i++) {
		char text[32];
		struct key to = numbered(memory, text, (unsigned)i);

		assert_int_equal(put_bytes(memory, &from, bytes_of("precious"), &forever, 0), HG_OK);
		memory_lock(memory, MEMORY_MASK_ALL);
		found = memory_find(memory, &from);
		assert_int_equal(memory_put(memory, &to, &put, 0, &entry), HG_OK); /* may evict what was found */
		assert_true(bytes_equal(entry_value(found), bytes_of("precious")));
		memory_remove(memory, found);
		assert_null(memory_find(memory, &from));
		memory_unlock(memory, MEMORY_MASK_ALL);
	}
	close_memory(memory);
}

struct seen {
	unsigned char *times;
	unsigned visits;
};

static void see(void *arg, const struct entry *entry)
{
	struct seen *seen = arg;
	char text[32] = {0};

	seen->visits++;
	assert_true(entry->key_bytes < sizeof(text));
	memcpy(text, entry_key(entry).at, entry->key_bytes);
	seen->times[atoi(text + 4)]++;
}

static void test_memory__a_scan_misses_nothing_while_tables_grow_and_shrink(void **state)
{
	enum { STAY = 3000, COME = 60000 };
	struct memory *memory = open_memory(256 * MIB);

	for (uint32_t count = 1; count <= 1000; count *= 10) {
		struct seen seen = {calloc(1, STAY + COME), 0};
		uint64_t cursor = 0;
		unsigned come = STAY, gone = STAY, steps = 0;

		for (unsigned i = 0; i < STAY; i++)
			assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
		do {
			cursor = memory_scan(memory, cursor, 0, count, see, &seen);
			for (unsigned i = 0; i < 40 * count && come < STAY + COME; i++)
				assert_int_equal(put_number(memory, come++, &forever, 0), HG_OK);
			for (unsigned i = 0; i < 60 * count && come == STAY + COME && gone < STAY + COME; i++)
				remove_number(memory, gone++);
			(void)memory_tick(memory, 0, 100);
			assert_true(cursor < UINT64_C(1) << 32);
			assert_true(++steps < 100000);
		} while (cursor != 0);
		for (unsigned i = 0; i < STAY; i++)
			assert_true(seen.times[i] >= 1);
		for (; gone < come; gone++)
			remove_number(memory, gone);
		memory_check(memory);
		free(seen.times);
	}
	memory_destroy(memory);
}

static void remove_it(void *arg, const struct entry *entry)
{
	memory_remove(arg, entry);
}

static void test_memory__a_scan_under_locks_may_remove(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct seen seen = {calloc(1, 10000), 0};
	struct memory_stats stats;
	uint64_t cursor = 0;

	for (unsigned i = 0; i < 10000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	memory_lock(memory, MEMORY_MASK_ALL);
	do
		cursor = memory_scan(memory, cursor, MEMORY_MASK_ALL, 10, see, &seen);
	while (cursor != 0);
	assert_int_equal(seen.visits, 10000);
	memory_unlock(memory, MEMORY_MASK_ALL);
	do
		cursor = memory_scan(memory, cursor, 0, 1000, remove_it, memory);
	while (cursor != 0);
	memory_stats(memory, &stats);
	assert_int_equal(stats.entries, 0);
	free(seen.times);
	close_memory(memory);
}

static void test_memory__a_random_entry_is_any_entry(void **state)
{
	struct memory *memory = open_memory(64 * MIB);
	struct seen seen = {calloc(1, 1000), 0};
	struct dice dice;
	unsigned never = 0;

	dice_init(&dice, 3);
	memory_random(memory, dice_u64(&dice), 0, see, &seen);
	assert_int_equal(seen.visits, 0);
	assert_int_equal(put_number(memory, 7, &forever, 0), HG_OK);
	for (int i = 0; i < 20; i++)
		memory_random(memory, dice_u64(&dice), 0, see, &seen);
	assert_int_equal(seen.times[7], 20);
	seen.times[7] = 0;
	for (unsigned i = 0; i < 1000; i++)
		assert_int_equal(put_number(memory, i, &forever, 0), HG_OK);
	for (int i = 0; i < 20000; i++)
		memory_random(memory, dice_u64(&dice), 0, see, &seen);
	for (unsigned i = 0; i < 1000; i++) {
		never += seen.times[i] == 0;
		assert_true(seen.times[i] < 60); /* 20 on average */
	}
	assert_int_equal(never, 0);
	free(seen.times);
	close_memory(memory);
}

/* A life with everything in it that allocates. Every step that fails must have changed nothing. */
static void live(struct memory *memory, struct failing *failing)
{
	static char large[MEMORY_INLINE_MAX + 1];
	struct times times = {50, 60, 0, 0, 0};
	struct memory_stats before, after;

	for (unsigned i = 0; i < 400; i++) {
		char text[32];
		struct key key = numbered(memory, text, i);
		struct hg_bytes value = i % 40 ? key.bytes : (struct hg_bytes){large, sizeof(large)};
		const struct entry *entry = memory_find(memory, &key);
		enum hg_err err;

		assert_null(entry);
		memory_stats(memory, &before);
		err = put_bytes(memory, &key, value, &forever, 0);
		assert_true(err == HG_OK || (err == HG_ERR_MEMORY && failing->failed));
		if (err != HG_OK) {
			assert_null(memory_find(memory, &key));
			memory_stats(memory, &after);
			assert_int_equal(after.entries, before.entries);
			memory_check(memory);
			assert_int_equal(put_bytes(memory, &key, value, &forever, 0), HG_OK);
		}
		if (i % 3 == 0) {
			memory_lock(memory, memory_mask(&key));
			entry = memory_find(memory, &key);
			err = memory_restamp(memory, entry, &times, 0, &entry);
			assert_true(err == HG_OK || (err == HG_ERR_MEMORY && failing->failed));
			assert_true(bytes_equal(entry_value(memory_find(memory, &key)), value));
			memory_unlock(memory, memory_mask(&key));
		}
	}
	for (unsigned i = 0; i < 400; i++) {
		char text[32];
		struct key key = numbered(memory, text, i);

		assert_non_null(memory_find(memory, &key));
	}
	memory_check(memory);
	(void)memory_tick(memory, 60, 10000);
	memory_lock(memory, MEMORY_MASK_ALL);
	memory_flush(memory, STORE_SPACE_ALL);
	memory_unlock(memory, MEMORY_MASK_ALL);
	memory_check(memory);
}

static void test_memory__every_allocation_may_fail_once(void **state)
{
	bool failed = true;

	for (long k = 0; failed; k++) {
		struct failing failing;
		struct hg_allocator allocator = failing_allocator(&failing, k);
		struct memory_config config = {&allocator, 64 * MIB, 42, 16};
		struct memory_reader *reader;
		struct memory *memory = NULL;

		if (memory_create(&config, &memory) != HG_OK) {
			assert_true(failing.failed);
			assert_null(memory);
			assert_int_equal(failing.blocks, 0);
			continue;
		}
		if (memory_reader_create(memory, &reader) == HG_OK)
			memory_reader_destroy(reader);
		else
			assert_true(failing.failed);
		live(memory, &failing);
		memory_destroy(memory);
		assert_int_equal(failing.blocks, 0);
		failed = failing.failed;
		assert_true(k < 5000);
	}
}

static void test_memory__nonsense_is_refused(void **state)
{
	struct memory_config config = {NULL, MIB - 1, 42, 16};
	struct memory *memory = NULL;

	assert_int_equal(memory_create(&config, &memory), HG_ERR_ARGUMENT);
	config = (struct memory_config){NULL, MIB, 42, 0};
	assert_int_equal(memory_create(&config, &memory), HG_ERR_ARGUMENT);
	config.spaces = 17;
	assert_int_equal(memory_create(&config, &memory), HG_ERR_ARGUMENT);
	assert_null(memory);
	memory_destroy(NULL);
	memory_reader_destroy(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__what_was_put_is_found),
		cmocka_unit_test(test_memory__a_replaced_value_is_gone_and_freed),
		cmocka_unit_test(test_memory__keys_of_any_length_and_any_bytes),
		cmocka_unit_test(test_memory__keys_with_one_hash_stay_apart),
		cmocka_unit_test(test_memory__values_of_every_size_class),
		cmocka_unit_test(test_memory__a_blob_is_shared_not_copied),
		cmocka_unit_test(test_memory__spaces_are_apart_and_flushed_apart),
		cmocka_unit_test(test_memory__the_background_removes_at_the_instant_of_death),
		cmocka_unit_test(test_memory__a_small_budget_reaches_everything_in_several_ticks),
		cmocka_unit_test(test_memory__bytes_stay_within_the_limit),
		cmocka_unit_test(test_memory__one_large_value_fits_where_all_else_goes),
		cmocka_unit_test(test_memory__a_lowered_limit_is_followed_by_ticks),
		cmocka_unit_test(test_memory__eviction_keeps_what_is_asked_for),
		cmocka_unit_test(test_memory__a_reader_keeps_what_it_found),
		cmocka_unit_test(test_memory__a_reader_that_stays_bounds_the_garbage),
		cmocka_unit_test(test_memory__what_was_found_under_a_lock_can_be_read_until_it_is_given_back),
		cmocka_unit_test(test_memory__a_scan_misses_nothing_while_tables_grow_and_shrink),
		cmocka_unit_test(test_memory__a_scan_under_locks_may_remove),
		cmocka_unit_test(test_memory__a_random_entry_is_any_entry),
		cmocka_unit_test(test_memory__every_allocation_may_fail_once),
		cmocka_unit_test(test_memory__nonsense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
