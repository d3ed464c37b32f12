/* herd_cost() on a bare connection, where the count of those inside can be set, and inside an origin. */
#include "failing.h"

#include "gear/asked.h"
#include "origin/cost.h"
#include "origin/sqlite.h"

#include <stdio.h>
#include <unistd.h>

#define MS INT64_C(1000)

struct bench {
	sqlite3 *db;
	struct cost cost;
	struct brake brake;
	struct cost_use use;
};

static int64_t looks;

/* Each look at it is an hour later: whoever pauses has always paused long enough. */
static int64_t hasty_clock_us(void)
{
	return ++looks * 3600000 * MS;
}

static void bench_create(struct bench *bench, int64_t (*clock_us)(void))
{
	memset(bench, 0, sizeof(*bench));
	assert_int_equal(brake_init(&bench->brake, clock_us), HG_OK);
	brake_begin(&bench->brake, HG_NEVER);
	bench->use = (struct cost_use){&bench->cost, &bench->brake};
	assert_int_equal(sqlite3_open(":memory:", &bench->db), SQLITE_OK);
	assert_int_equal(cost_add(bench->db, &bench->use), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(bench->db, "CREATE TABLE t(id); INSERT INTO t VALUES (1), (2), (3)", NULL, NULL, NULL),
		SQLITE_OK);
}

static void bench_destroy(struct bench *bench)
{
	assert_int_equal(sqlite3_close(bench->db), SQLITE_OK);
	brake_fini(&bench->brake);
}

static int run(struct bench *bench, const char *sql)
{
	return sqlite3_exec(bench->db, sql, NULL, NULL, NULL);
}

static void test_cost__grows_with_those_inside(void **state)
{
	struct bench bench;
	int64_t began_us;

	bench_create(&bench, asked_clock_us);
	atomic_store(&bench.cost.running, 4);
	began_us = asked_clock_us();
	assert_int_equal(run(&bench, "SELECT herd_cost(20, 10)"), SQLITE_OK);
	assert_true(asked_clock_us() - began_us >= 70 * MS);
	assert_int_equal(atomic_load(&bench.cost.running), 4);
	bench_destroy(&bench);
}

static int64_t looks_of(struct bench *bench, const char *sql)
{
	int64_t before = looks;

	assert_int_equal(run(bench, sql), SQLITE_OK);
	return looks - before;
}

static void test_cost__is_paid_once_for_a_query(void **state)
{
	struct bench bench;
	int64_t once;

	bench_create(&bench, hasty_clock_us);
	once = looks_of(&bench, "SELECT herd_cost(1, 0)");
	assert_true(once > 0);
	assert_int_equal(looks_of(&bench, "SELECT id FROM t WHERE herd_cost(1, 0) = 0"), once);
	assert_int_equal(looks_of(&bench, "SELECT id FROM t WHERE id = 2 AND herd_cost(1, 0) = 0"), once);
	assert_int_equal(looks_of(&bench, "SELECT id FROM t WHERE id = 9 AND herd_cost(1, 0) = 0"), once);
	bench_destroy(&bench);
}

static void test_cost__ends_when_stopped(void **state)
{
	struct bench bench;

	bench_create(&bench, asked_clock_us);
	brake_stop(&bench.brake);
	assert_int_equal(run(&bench, "SELECT herd_cost(3600000, 0)"), SQLITE_INTERRUPT);
	assert_int_equal(atomic_load(&bench.cost.running), 0);
	bench_destroy(&bench);
}

static void test_cost__wants_times_that_can_be_waited(void **state)
{
	static const char *const wrong[] = {"-1, 0",      "0, -0.5",  "NULL, 0", "0, 'x'",
					    "3600001, 0", "1e999, 0", "0, x'00'"};
	struct bench bench;
	char sql[80];

	bench_create(&bench, asked_clock_us);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		(void)snprintf(sql, sizeof(sql), "SELECT herd_cost(%s)", wrong[i]);
		assert_int_equal(run(&bench, sql), SQLITE_ERROR);
		assert_non_null(strstr(sqlite3_errmsg(bench.db), "numbers from 0 to 3600000"));
	}
	assert_int_equal(run(&bench, "SELECT herd_cost(1)"), SQLITE_ERROR);
	assert_int_equal(run(&bench, "SELECT herd_cost('1', 0.5)"), SQLITE_OK);
	bench_destroy(&bench);
}

/* ---- inside an origin ----------------------------------------------------------------------------------------- */

struct slow {
	char path[64];
	struct origin origin;
	struct origin_query *query;
};

static void slow_create(struct slow *slow)
{
	struct sqlite_config config = {.name = "slow",
				       .path = slow->path,
				       .pool_max = 1,
				       .queue_max = 10,
				       .value_bytes_max = 1000,
				       .clock_us = asked_clock_us};
	static const char *const names[] = {"ms"};
	struct hg_fault fault;
	int file;

	(void)snprintf(slow->path, sizeof(slow->path), "/tmp/herdgate-cost-XXXXXX");
	file = mkstemp(slow->path);
	assert_true(file >= 0);
	(void)close(file);
	assert_int_equal(sqlite_origin_create(&config, &slow->origin, &fault), HG_OK);
	assert_int_equal(slow->origin.ops->prepare(slow->origin.self, bytes_of("SELECT herd_cost(:ms, 1)"),
						   ORIGIN_RESULT_VALUE, names, 1, &slow->query, &fault),
			 HG_OK);
}

static void slow_destroy(struct slow *slow)
{
	slow->origin.ops->release(slow->origin.self, slow->query);
	slow->origin.ops->close(slow->origin.self);
	(void)unlink(slow->path);
}

static void test_cost__is_the_time_of_the_load(void **state)
{
	struct slow slow;
	struct asked asked;

	slow_create(&slow);
	asked_init(&asked, &slow.origin, slow.query, "30");
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	assert_true(bytes_equal(blob_bytes(asked.value), bytes_of("0")));
	assert_true(asked.ran_us >= 31 * MS);
	asked_fini(&asked);
	slow_destroy(&slow);
}

static void test_cost__is_cut_at_the_deadline(void **state)
{
	struct slow slow;
	struct asked asked;

	slow_create(&slow);
	asked_init(&asked, &slow.origin, slow.query, "3600000");
	asked_start(&asked, 30 * MS);
	assert_int_equal(asked_wait(&asked), ORIGIN_ERROR);
	assert_non_null(strstr(asked.error, "time limit"));
	asked_fini(&asked);
	asked_init(&asked, &slow.origin, slow.query, "0"); /* the connection is of use again */
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	asked_fini(&asked);
	slow_destroy(&slow);
}

static void test_cost__is_cut_by_a_cancel(void **state)
{
	struct slow slow;
	struct asked asked;

	slow_create(&slow);
	asked_init(&asked, &slow.origin, slow.query, "3600000");
	asked_start(&asked, HG_NEVER);
	asked_wait_look(&asked, 1);
	slow.origin.ops->cancel(slow.origin.self, &asked.load);
	assert_int_equal(asked_wait(&asked), ORIGIN_CANCELED);
	asked_fini(&asked);
	slow_destroy(&slow);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cost__grows_with_those_inside),
		cmocka_unit_test(test_cost__is_paid_once_for_a_query),
		cmocka_unit_test(test_cost__ends_when_stopped),
		cmocka_unit_test(test_cost__wants_times_that_can_be_waited),
		cmocka_unit_test(test_cost__is_the_time_of_the_load),
		cmocka_unit_test(test_cost__is_cut_at_the_deadline),
		cmocka_unit_test(test_cost__is_cut_by_a_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
