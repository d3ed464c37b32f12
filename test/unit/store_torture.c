/* store_torture.c - threads that read, write, restamp, remove, flush, scan and tick one small memory store at once. A
 * reader checks every value it finds: it belongs to its key, is whole, and is no older than what it saw before. Runs a
 * fixed number of steps; also the case for ThreadSanitizer and AddressSanitizer. */
#include "failing.h"
#include "base/dice.h"
#include "store/memory.h"

#include <stdatomic.h>
#include <string.h>

enum { KEYS = 3000, WRITERS = 2, READERS = 2, WRITES = 40000 };

struct torture {
	struct memory *memory;
	atomic_int writers_left;
	atomic_uint wrong, found;
};

struct part {
	struct torture *torture;
	uint32_t number;
};

/* What a value says of itself; `fill` follows to its end. */
struct claim {
	uint32_t key, version, bytes;
	unsigned char fill;
};

static struct key key_of(struct memory *memory, const uint32_t *number)
{
	return memory_key(memory, (struct hg_bytes){number, sizeof(*number)}, (uint8_t)(*number % 3));
}

static bool is_whole(struct hg_bytes value, uint32_t number, uint32_t *version)
{
	const unsigned char *bytes = value.at;
	struct claim claim;

	if (value.len < sizeof(claim))
		return false;
	memcpy(&claim, bytes, sizeof(claim));
	if (claim.key != number || claim.bytes != value.len || claim.version < *version)
		return false;
	*version = claim.version;
	for (size_t i = sizeof(claim); i < value.len; i++)
		if (bytes[i] != claim.fill)
			return false;
	return true;
}

static void *read_all(void *arg)
{
	struct part *part = arg;
	struct torture *torture = part->torture;
	struct memory_reader *reader;
	uint32_t *versions = calloc(KEYS, sizeof(*versions)), found = 0, wrong = 0;
	struct dice dice;

	dice_init(&dice, part->number + 100);
	if (memory_reader_create(torture->memory, &reader) != HG_OK)
		abort();
	while (atomic_load_explicit(&torture->writers_left, memory_order_relaxed) > 0) {
		uint32_t number = (uint32_t)dice_below(&dice, dice_below(&dice, 2) ? KEYS : 20);
		struct key key = key_of(torture->memory, &number);
		const struct entry *entry;
		struct blob *blob = NULL;

		memory_read_begin(reader);
		entry = memory_find(torture->memory, &key);
		if (entry != NULL) {
			found++;
			blob = entry_blob(entry);
			wrong += !bytes_equal(entry_key(entry), key.bytes) || entry->space != key.space;
			if (blob != NULL)
				(void)blob_ref(blob, 1);
			else
				wrong += !is_whole(entry_value(entry), number, &versions[number]);
		}
		memory_read_end(reader);
		if (blob != NULL) { /* pinned beyond the section */
			wrong += !is_whole(blob_bytes(blob), number, &versions[number]);
			blob_unref(blob);
		}
	}
	memory_reader_destroy(reader);
	free(versions);
	(void)atomic_fetch_add(&torture->wrong, wrong);
	(void)atomic_fetch_add(&torture->found, found);
	return NULL;
}

/* A limit is an honest answer where a reader lost its processor in its section for long. */
static void check(enum hg_err err)
{
	if (err != HG_OK && err != HG_ERR_LIMIT)
		abort();
}

static void write_one(struct memory *memory, const struct key *key, uint32_t number, uint32_t version,
		      struct dice *dice)
{
	static _Thread_local unsigned char value[9000];
	struct claim claim = {number, version, 0, (unsigned char)version};
	struct memory_put put = {.times = {HG_NEVER, HG_NEVER, 0, 0, 0}};
	const struct entry *entry;

	claim.bytes = (uint32_t)(sizeof(claim) + dice_below(dice, dice_below(dice, 30) ? 300 : 8000));
	memset(value, claim.fill, claim.bytes);
	memcpy(value, &claim, sizeof(claim));
	put.value = (struct hg_bytes){value, claim.bytes};
	if (dice_below(dice, 4) == 0)
		put.times.dead_at_us = (int64_t)dice_below(dice, WRITES);
	check(memory_put(memory, key, &put, version, &entry));
}

static void *write_all(void *arg)
{
	struct part *part = arg;
	struct torture *torture = part->torture;
	struct memory *memory = torture->memory;
	struct dice dice;

	dice_init(&dice, part->number);
	for (uint32_t version = 1; version <= WRITES; version++) {
		uint32_t number = (uint32_t)dice_below(&dice, KEYS / WRITERS) * WRITERS + part->number;
		struct key key = key_of(memory, &number);
		uint64_t what = dice_below(&dice, 10), mask = memory_mask(&key);
		const struct entry *entry;

		memory_lock(memory, mask);
		entry = memory_find(memory, &key);
		if (entry != NULL && what == 0)
			memory_remove(memory, entry);
		else if (entry != NULL && what == 1) {
			struct times times = {5, HG_NEVER, 0, 0, version};

			check(memory_restamp(memory, entry, &times, version, &entry));
		} else
			write_one(memory, &key, number, version, &dice);
		memory_unlock(memory, mask);
	}
	(void)atomic_fetch_sub(&torture->writers_left, 1);
	return NULL;
}

static void look(void *arg, const struct entry *entry)
{
	struct torture *torture = arg;
	uint32_t number, version = 0;

	memcpy(&number, entry_key(entry).at, sizeof(number));
	if (!is_whole(entry_value(entry), number, &version))
		(void)atomic_fetch_add(&torture->wrong, 1);
}

static void *housekeep(void *arg)
{
	struct torture *torture = arg;
	struct memory *memory = torture->memory;
	uint64_t cursor = 0;

	for (int64_t now_us = 0; atomic_load(&torture->writers_left) > 0; now_us += 50) {
		cursor = memory_scan(memory, cursor, 0, 100, look, torture);
		memory_random(memory, (uint64_t)now_us * UINT64_C(0x9E3779B97F4A7C15), 0, look, torture);
		(void)memory_tick(memory, now_us, 200);
		if (now_us % 5000 == 0) {
			memory_check(memory);
			memory_lock(memory, MEMORY_MASK_ALL);
			memory_flush(memory, now_us % 10000 ? STORE_SPACE_ALL : 1);
			memory_unlock(memory, MEMORY_MASK_ALL);
		}
		if (now_us % 3000 == 0)
			memory_set_max_bytes(memory, now_us % 6000 ? 1 << 20 : 4 << 20);
	}
	return NULL;
}

static void test_memory__nothing_is_wrong_under_torture(void **state)
{
	struct memory_config config = {NULL, 4 << 20, 99, 3};
	struct torture torture = {.writers_left = WRITERS};
	struct part parts[WRITERS + READERS];
	pthread_t threads[WRITERS + READERS + 1];
	struct memory_stats stats;

	assert_int_equal(memory_create(&config, &torture.memory), HG_OK);
	for (uint32_t i = 0; i < WRITERS + READERS; i++) {
		parts[i] = (struct part){&torture, i};
		assert_int_equal(pthread_create(&threads[i], NULL, i < WRITERS ? write_all : read_all, &parts[i]), 0);
	}
	assert_int_equal(pthread_create(&threads[WRITERS + READERS], NULL, housekeep, &torture), 0);
	for (uint32_t i = 0; i < WRITERS + READERS + 1; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(atomic_load(&torture.wrong), 0);
	assert_true(atomic_load(&torture.found) > 0);
	memory_check(torture.memory);
	(void)memory_tick(torture.memory, 0, 1);
	memory_stats(torture.memory, &stats);
	assert_int_equal(stats.retired, 0); /* nobody is left in a section */
	memory_destroy(torture.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory__nothing_is_wrong_under_torture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
