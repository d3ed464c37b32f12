/* serve_watch.c - the registry of WATCH over a real store: what breaks a watch, and what an allocation that fails does.
 */
#include "failing.h"

#include "serve/keyspace.h"

#include <stdio.h>

#define NOW_US INT64_C(1000000)

struct bench {
	struct failing failing;
	struct hg_allocator allocator;
	struct server server;
	struct conn conns[2];
	struct call call;
};

static void begin(struct bench *bench)
{
	const struct memory_config config = {.max_bytes = 4 << 20, .seed = 7, .spaces = 2};

	memset(bench, 0, sizeof(*bench));
	bench->allocator = failing_allocator(&bench->failing, -1);
	bench->server.allocator = &bench->allocator;
	assert_int_equal(memory_create(&config, &bench->server.memory), HG_OK);
	assert_int_equal(keyspace_open(&bench->server), HG_OK);
	list_init(&bench->conns[0].watches);
	list_init(&bench->conns[1].watches);
	bench->call = (struct call){.server = &bench->server, .conn = &bench->conns[0], .now_us = NOW_US};
}

static void end(struct bench *bench)
{
	keyspace_unwatch(&bench->server, &bench->conns[0], 0);
	keyspace_unwatch(&bench->server, &bench->conns[1], 0);
	keyspace_close(&bench->server);
	memory_destroy(bench->server.memory);
	assert_int_equal(bench->failing.blocks, 0);
}

static struct key key_of(struct bench *bench, const char *name)
{
	return keyspace_key_in(&bench->call, bytes_of(name), bench->call.db);
}

static void put(struct bench *bench, const char *name, int64_t until_us)
{
	struct key key = key_of(bench, name);
	struct memory_put put = {.value = {"v", 1}, .times = {.fresh_until_us = until_us, .dead_at_us = HG_NEVER}};
	const struct entry *entry;

	memory_lock(bench->server.memory, memory_mask(&key));
	assert_int_equal(memory_put(bench->server.memory, &key, &put, bench->call.now_us, &entry), HG_OK);
	memory_unlock(bench->server.memory, memory_mask(&key));
}

static enum hg_err watch(struct bench *bench, unsigned conn, const char *name)
{
	struct key key = key_of(bench, name);
	enum hg_err err;

	bench->call.conn = &bench->conns[conn];
	memory_lock(bench->server.memory, memory_mask(&key));
	err = keyspace_watch(&bench->call, &key);
	memory_unlock(bench->server.memory, memory_mask(&key));
	return err;
}

static void change(struct bench *bench, const char *name)
{
	struct key key = key_of(bench, name);

	memory_lock(bench->server.memory, memory_mask(&key));
	keyspace_changed(&bench->server, &key);
	memory_unlock(bench->server.memory, memory_mask(&key));
}

static bool broken(struct bench *bench, unsigned conn)
{
	uint64_t mask = keyspace_watch_mask(&bench->conns[conn]);
	bool found;

	bench->call.conn = &bench->conns[conn];
	memory_lock(bench->server.memory, mask);
	found = keyspace_watch_broken(&bench->call);
	memory_unlock(bench->server.memory, mask);
	return found;
}

static void test_watch__a_change_breaks_the_watches_of_that_key_alone(void **state)
{
	struct bench bench;

	begin(&bench);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	assert_int_equal(watch(&bench, 1, "one"), HG_OK);
	assert_int_equal(watch(&bench, 1, "two"), HG_OK);
	change(&bench, "three");
	assert_false(broken(&bench, 0));
	change(&bench, "two");
	assert_false(broken(&bench, 0));
	assert_true(broken(&bench, 1));
	change(&bench, "one");
	assert_true(broken(&bench, 0));
	end(&bench);
}

static void test_watch__the_same_name_in_another_database_is_another_key(void **state)
{
	struct bench bench;

	begin(&bench);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	bench.call.db = 1;
	change(&bench, "one");
	assert_false(broken(&bench, 0));
	end(&bench);
}

static void test_watch__a_key_that_expires_breaks_it_in_its_last_microsecond(void **state)
{
	struct bench bench;

	begin(&bench);
	put(&bench, "one", NOW_US + 100);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	bench.call.now_us = NOW_US + 99;
	assert_false(broken(&bench, 0));
	bench.call.now_us = NOW_US + 100; /* stale, in the store still */
	assert_true(broken(&bench, 0));
	end(&bench);
}

static void test_watch__a_key_that_was_stale_when_watched_was_not_there(void **state)
{
	struct bench bench;

	begin(&bench);
	put(&bench, "one", NOW_US - 1);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	bench.call.now_us = NOW_US + 100;
	assert_false(broken(&bench, 0));
	end(&bench);
}

static void test_watch__a_flush_breaks_those_whose_keys_are_there(void **state)
{
	struct bench bench;

	begin(&bench);
	put(&bench, "one", HG_NEVER);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	assert_int_equal(watch(&bench, 1, "none"), HG_OK);
	memory_lock(bench.server.memory, MEMORY_MASK_ALL);
	keyspace_flushing(&bench.call, 1);
	memory_unlock(bench.server.memory, MEMORY_MASK_ALL);
	assert_false(broken(&bench, 0));
	memory_lock(bench.server.memory, MEMORY_MASK_ALL);
	keyspace_flushing(&bench.call, STORE_SPACE_ALL);
	memory_unlock(bench.server.memory, MEMORY_MASK_ALL);
	assert_true(broken(&bench, 0));
	assert_false(broken(&bench, 1));
	end(&bench);
}

static void test_watch__unwatch_forgets_and_a_key_may_be_watched_twice(void **state)
{
	struct bench bench;
	long blocks;

	begin(&bench);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	blocks = bench.failing.blocks;
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	assert_int_equal(bench.failing.blocks, blocks);
	change(&bench, "one");
	keyspace_unwatch(&bench.server, &bench.conns[0], 0);
	assert_false(bench.conns[0].watching);
	assert_int_equal(keyspace_watch_mask(&bench.conns[0]), 0);
	assert_int_equal(watch(&bench, 0, "one"), HG_OK);
	assert_false(broken(&bench, 0));
	end(&bench);
}

static void test_watch__each_allocation_may_fail(void **state)
{
	long k = 0;
	bool failed;

	do {
		struct bench bench;
		unsigned watched = 0;

		begin(&bench);
		bench.failing.left = k++;
		for (int i = 0; i < 40; i++) {
			char name[8];
			enum hg_err err;

			snprintf(name, sizeof(name), "k%d", i);
			err = watch(&bench, 0, name);
			assert_true(err == HG_OK || err == HG_ERR_MEMORY);
			watched += err == HG_OK;
		}
		failed = bench.failing.failed;
		assert_true(watched >= 39);
		change(&bench, "k0");
		change(&bench, "k1"); /* one of both is watched, whichever failed */
		assert_true(broken(&bench, 0));
		end(&bench);
	} while (failed);
	assert_true(k > 40);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watch__a_change_breaks_the_watches_of_that_key_alone),
		cmocka_unit_test(test_watch__the_same_name_in_another_database_is_another_key),
		cmocka_unit_test(test_watch__a_key_that_expires_breaks_it_in_its_last_microsecond),
		cmocka_unit_test(test_watch__a_key_that_was_stale_when_watched_was_not_there),
		cmocka_unit_test(test_watch__a_flush_breaks_those_whose_keys_are_there),
		cmocka_unit_test(test_watch__unwatch_forgets_and_a_key_may_be_watched_twice),
		cmocka_unit_test(test_watch__each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
