/* The contract of origin.h, held by every implementation: SQLite, and the fake origin of the tests. The captures tell
 * what a load does: "value", "empty", "absent", "error", "brief" (2 ms), "hang" (never answers, can be
 * cut off), "deaf" (never answers, cannot be cut off until it is woken). */
#include "failing.h"

#include "base/sat.h"
#include "gear/asked.h"
#include "gear/fake_origin.h"
#include "origin/sqlite.h"

#include <sqlite3.h>
#include <stdio.h>
#include <unistd.h>

#define MS INT64_C(1000)

static const char sql[] = "SELECT CASE key"
			  " WHEN 'brief' THEN nap(2, value)"
			  " WHEN 'deaf' THEN deaf(value) WHEN 'error' THEN abs(-9223372036854775808)"
			  " WHEN 'hang' THEN (WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
			  " SELECT max(n) FROM c) ELSE value END FROM item WHERE key = :key";

/* One implementation under test. */
struct bench {
	struct origin origin;
	struct origin_query *query;
	struct fake_origin *fake; /* NULL: SQLite */
	char path[64];
	pthread_mutex_t mutex;
	pthread_cond_t wake;
	bool awake;
};

struct setting {
	uint32_t pool_max, queue_max;
	int64_t acquire_timeout_us;
};

static void nap(sqlite3_context *context, int arguments_len, sqlite3_value **arguments)
{
	(void)arguments_len;
	(void)usleep((unsigned)sqlite3_value_int(arguments[0]) * 1000);
	sqlite3_result_value(context, arguments[1]);
}

static void deaf(sqlite3_context *context, int arguments_len, sqlite3_value **arguments)
{
	struct bench *bench = sqlite3_user_data(context);

	(void)arguments_len;
	(void)pthread_mutex_lock(&bench->mutex);
	while (!bench->awake)
		(void)pthread_cond_wait(&bench->wake, &bench->mutex);
	(void)pthread_mutex_unlock(&bench->mutex);
	sqlite3_result_value(context, arguments[0]);
}

static enum hg_err connected(void *arg, void *db)
{
	return sqlite3_create_function(db, "nap", 2, SQLITE_UTF8, NULL, nap, NULL, NULL) == SQLITE_OK &&
			       sqlite3_create_function(db, "deaf", 1, SQLITE_UTF8, arg, deaf, NULL, NULL) == SQLITE_OK
		       ? HG_OK
		       : HG_ERR_MEMORY;
}

static void open_sqlite(struct bench *bench, const struct setting *setting)
{
	struct sqlite_config config = {
		.name = "catalog",
		.path = bench->path,
		.pool_max = setting->pool_max,
		.queue_max = setting->queue_max,
		.acquire_timeout_us = setting->acquire_timeout_us,
		.busy_timeout_us = 1000 * MS,
		.value_bytes_max = 1 << 20,
		.clock_us = asked_clock_us,
		.connected = connected,
		.connected_arg = bench,
	};
	struct hg_fault fault;
	sqlite3 *db;
	int file;

	(void)snprintf(bench->path, sizeof(bench->path), "/tmp/herdgate-contract-XXXXXX");
	file = mkstemp(bench->path);
	assert_true(file >= 0);
	(void)close(file);
	assert_int_equal(sqlite3_open(bench->path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TABLE item(key TEXT PRIMARY KEY, value);"
				      "INSERT INTO item VALUES('value','v'),('empty',''),('brief','v'),"
				      "('hang','v'),('deaf','v'),('error','v')",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_int_equal(sqlite_origin_create(&config, &bench->origin, &fault), HG_OK);
}

static void open_fake(struct bench *bench, const struct setting *setting)
{
	const struct fake_config config = {.pool_max = setting->pool_max,
					   .queue_max = setting->queue_max,
					   .acquire_timeout_us = setting->acquire_timeout_us,
					   .clock_us = asked_clock_us};

	bench->fake = fake_origin_create(&config, &bench->origin);
	assert_non_null(bench->fake);
	fake_origin_script(bench->fake, "empty", &(struct fake_script){.kind = FAKE_EMPTY});
	fake_origin_script(bench->fake, "absent", &(struct fake_script){.kind = FAKE_ABSENT});
	fake_origin_script(bench->fake, "error", &(struct fake_script){.kind = FAKE_FAIL});
	fake_origin_script(bench->fake, "brief", &(struct fake_script){.delay_us = 2 * MS});
	fake_origin_script(bench->fake, "hang", &(struct fake_script){.kind = FAKE_HANG});
	fake_origin_script(bench->fake, "deaf", &(struct fake_script){.kind = FAKE_DEAF});
}

static void bench_open(struct bench *bench, bool fake, struct setting setting)
{
	static const char *const names[] = {"key"};
	struct hg_fault fault;

	memset(bench, 0, sizeof(*bench));
	(void)pthread_mutex_init(&bench->mutex, NULL);
	(void)pthread_cond_init(&bench->wake, NULL);
	if (fake)
		open_fake(bench, &setting);
	else
		open_sqlite(bench, &setting);
	assert_int_equal(bench->origin.ops->prepare(bench->origin.self, bytes_of(sql), ORIGIN_RESULT_VALUE, names, 1,
						    &bench->query, &fault),
			 HG_OK);
}

static void bench_wake(struct bench *bench)
{
	if (bench->fake != NULL)
		fake_origin_wake(bench->fake);
	(void)pthread_mutex_lock(&bench->mutex);
	bench->awake = true;
	(void)pthread_cond_broadcast(&bench->wake);
	(void)pthread_mutex_unlock(&bench->mutex);
}

static struct origin_stats bench_stats(struct bench *bench)
{
	struct origin_stats stats;

	bench->origin.ops->stats(bench->origin.self, &stats);
	return stats;
}

/* Waits until `loads` queries have begun. */
static void bench_wait_loads(struct bench *bench, uint64_t loads)
{
	for (int i = 0; i < 10000 && bench_stats(bench).loads < loads; i++)
		(void)usleep(1000);
	assert_int_equal(bench_stats(bench).loads, loads);
}

static uint64_t ends(const struct origin_stats *stats)
{
	return stats->values + stats->absent + stats->errors + stats->busy + stats->skipped + stats->canceled;
}

/* Nothing may be under way any more, and everything that was asked for has had one end. */
static void bench_close(struct bench *bench)
{
	struct origin_stats stats;

	asked_settle(&bench->origin, 0, 0);
	stats = bench_stats(bench);
	assert_int_equal(stats.asked, ends(&stats));
	bench->origin.ops->release(bench->origin.self, bench->query);
	bench->origin.ops->close(bench->origin.self);
	fake_origin_destroy(bench->fake);
	if (bench->fake == NULL)
		(void)unlink(bench->path);
	(void)pthread_cond_destroy(&bench->wake);
	(void)pthread_mutex_destroy(&bench->mutex);
}

static const struct setting usual = {.pool_max = 2, .queue_max = 100};
static const struct setting single = {.pool_max = 1, .queue_max = 100};

#define BENCH(bench, setting) \
	struct bench bench;   \
	bench_open(&bench, *state != NULL, setting)

static void ask(struct bench *bench, struct asked *asked, const char *key)
{
	asked_init(asked, &bench->origin, bench->query, key);
}

static enum origin_outcome run(struct bench *bench, const char *key)
{
	struct asked asked;

	ask(bench, &asked, key);
	(void)asked_run(&asked);
	asked_fini(&asked);
	return asked.outcome;
}

static void test_origin__gives_a_value(void **state)
{
	BENCH(bench, usual);
	struct asked asked;

	ask(&bench, &asked, "value");
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	assert_non_null(asked.value);
	assert_int_equal(((const char *)asked.value->at)[0], 'v');
	assert_int_equal(asked.value->refs, 1);
	assert_int_equal(asked.dones, 1);
	assert_int_equal(asked.looks, 1);
	assert_int_equal(asked.ttl_us, 0);
	assert_false(pthread_equal(asked.thread, pthread_self()));
	asked_fini(&asked);
	bench_close(&bench);
}

static void test_origin__empty_absent_and_error_are_three_things(void **state)
{
	BENCH(bench, usual);
	struct asked asked;
	struct origin_stats stats;

	ask(&bench, &asked, "empty");
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	assert_int_equal(asked.value->len, 0);
	asked_fini(&asked);
	ask(&bench, &asked, "absent");
	assert_int_equal(asked_run(&asked), ORIGIN_ABSENT);
	assert_null(asked.value);
	ask(&bench, &asked, "error");
	assert_int_equal(asked_run(&asked), ORIGIN_ERROR);
	assert_null(asked.value);
	assert_true(strlen(asked.error) > 0);
	assert_int_equal(run(&bench, "value"), ORIGIN_VALUE);
	asked_settle(&bench.origin, 0, 0);
	stats = bench_stats(&bench);
	assert_int_equal(stats.values, 2);
	assert_int_equal(stats.absent, 1);
	assert_int_equal(stats.errors, 1);
	assert_int_equal(stats.loads, 4);
	bench_close(&bench);
}

static void test_origin__a_look_saves_the_query(void **state)
{
	BENCH(bench, usual);
	struct asked asked;

	ask(&bench, &asked, "value");
	asked.skip = true;
	assert_int_equal(asked_run(&asked), ORIGIN_SKIPPED);
	assert_null(asked.value);
	assert_int_equal(bench_stats(&bench).loads, 0);
	assert_int_equal(bench_stats(&bench).skipped, 1);
	asked.load.look_again = NULL;
	asked.dones = 0;
	assert_int_equal(asked_run(&asked), ORIGIN_VALUE);
	asked_fini(&asked);
	bench_close(&bench);
}

static struct asked *before;
static int dones_before;

static void note_dones_before(struct asked *asked)
{
	dones_before = before->dones;
}

static void linger(struct asked *asked)
{
	(void)usleep(20000);
}

static void test_origin__fills_before_the_connection_is_free(void **state)
{
	BENCH(bench, single);
	struct asked first, second;

	ask(&bench, &first, "deaf");
	ask(&bench, &second, "value");
	first.on_done = linger;
	second.on_look = note_dones_before;
	before = &first;
	asked_start(&first, HG_NEVER);
	asked_start(&second, HG_NEVER);
	(void)usleep(10000);
	bench_wake(&bench);
	assert_int_equal(asked_wait(&second), ORIGIN_VALUE);
	assert_int_equal(dones_before, 1);
	assert_true(second.queued_us >= 10 * MS);
	asked_fini(&first);
	asked_fini(&second);
	bench_close(&bench);
}

static void test_origin__acquire_timeout_is_named(void **state)
{
	BENCH(bench, ((struct setting){.pool_max = 1, .queue_max = 100, .acquire_timeout_us = 30 * MS}));
	struct asked first, second;
	int64_t began_us;

	ask(&bench, &first, "deaf");
	ask(&bench, &second, "value");
	asked_start(&first, HG_NEVER);
	began_us = asked_clock_us();
	assert_int_equal(asked_run(&second), ORIGIN_BUSY);
	assert_non_null(strstr(second.error, "acquire_timeout (30 ms)"));
	assert_true(second.ended_us - began_us >= 30 * MS);
	assert_int_equal(second.looks, 0);
	bench_wake(&bench);
	assert_int_equal(asked_wait(&first), ORIGIN_VALUE);
	asked_fini(&first);
	bench_close(&bench);
}

static void test_origin__without_a_timeout_all_are_served_in_order(void **state)
{
	BENCH(bench, single);
	struct asked asked[6];

	for (int i = 0; i < 6; i++) {
		ask(&bench, &asked[i], i == 0 ? "deaf" : "brief");
		asked_start(&asked[i], HG_NEVER);
	}
	asked_settle(&bench.origin, 1, 5);
	bench_wake(&bench);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(asked_wait(&asked[i]), ORIGIN_VALUE);
		assert_true(i == 0 || asked[i].ended_us > asked[i - 1].ended_us);
		asked_fini(&asked[i]);
	}
	assert_int_equal(bench_stats(&bench).queued_max, 5);
	bench_close(&bench);
}

static void test_origin__a_full_queue_refuses_at_once(void **state)
{
	BENCH(bench, ((struct setting){.pool_max = 1, .queue_max = 1}));
	struct asked asked[3];

	for (int i = 0; i < 3; i++) {
		ask(&bench, &asked[i], "deaf");
		asked_start(&asked[i], HG_NEVER);
	}
	assert_int_equal(asked_wait(&asked[2]), ORIGIN_BUSY);
	assert_non_null(strstr(asked[2].error, "queue_max 1"));
	bench_wake(&bench);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(asked_wait(&asked[i]), ORIGIN_VALUE);
		asked_fini(&asked[i]);
	}
	bench_close(&bench);
}

static void test_origin__a_deadline_ends_the_wait(void **state)
{
	BENCH(bench, single);
	struct asked first, second, third;

	ask(&bench, &first, "deaf");
	ask(&bench, &second, "value");
	ask(&bench, &third, "value");
	asked_start(&first, HG_NEVER);
	asked_start(&second, 20 * MS);
	asked_start(&third, -1);
	assert_int_equal(asked_wait(&third), ORIGIN_BUSY);
	assert_int_equal(asked_wait(&second), ORIGIN_BUSY);
	assert_non_null(strstr(second.error, "time limit"));
	assert_int_equal(second.looks + third.looks, 0);
	bench_wake(&bench);
	assert_int_equal(asked_wait(&first), ORIGIN_VALUE);
	asked_fini(&first);
	bench_close(&bench);
}

static void test_origin__a_deadline_cuts_the_query_off(void **state)
{
	BENCH(bench, single);
	struct asked asked;
	int64_t began_us = asked_clock_us();

	ask(&bench, &asked, "hang");
	asked_start(&asked, 30 * MS);
	assert_int_equal(asked_wait(&asked), ORIGIN_ERROR);
	assert_non_null(strstr(asked.error, "time limit"));
	assert_true(asked.ended_us - began_us >= 30 * MS);
	assert_int_equal(run(&bench, "value"), ORIGIN_VALUE);
	bench_close(&bench);
}

static void test_origin__a_cancel_ends_one_load_and_no_other(void **state)
{
	BENCH(bench, single);
	struct asked running, waiting, other;

	ask(&bench, &running, "hang");
	ask(&bench, &waiting, "value");
	ask(&bench, &other, "value");
	asked_start(&running, HG_NEVER);
	asked_wait_look(&running, 1);
	asked_start(&waiting, HG_NEVER);
	asked_start(&other, HG_NEVER);
	bench.origin.ops->cancel(bench.origin.self, &waiting.load);
	assert_int_equal(asked_wait(&waiting), ORIGIN_CANCELED);
	assert_int_equal(waiting.looks, 0);
	bench.origin.ops->cancel(bench.origin.self, &running.load);
	assert_int_equal(asked_wait(&running), ORIGIN_CANCELED);
	assert_int_equal(asked_wait(&other), ORIGIN_VALUE);
	bench.origin.ops->cancel(bench.origin.self, &other.load); /* ended: nothing happens */
	assert_int_equal(other.dones + running.dones + waiting.dones, 3);
	asked_fini(&other);
	bench_close(&bench);
}

static void cancel_itself(struct asked *asked)
{
	asked->origin->ops->cancel(asked->origin->self, &asked->load);
}

static void test_origin__a_cancel_while_it_looks_leaves_the_query_out(void **state)
{
	BENCH(bench, single);
	struct asked asked;

	ask(&bench, &asked, "value");
	asked.on_look = cancel_itself;
	assert_int_equal(asked_run(&asked), ORIGIN_CANCELED);
	assert_int_equal(bench_stats(&bench).loads, 0);
	bench_close(&bench);
}

/* A database that neither answers nor hears: the asker is free soon after the deadline or the cancel, the place in the
 * pool is lost until the database comes back, and what it then brings harms nobody. */
static void test_origin__a_deaf_database_is_given_up(void **state)
{
	BENCH(bench, usual);
	struct asked late, canceled, queued;

	ask(&bench, &late, "deaf");
	ask(&bench, &canceled, "deaf");
	ask(&bench, &queued, "value");
	asked_start(&late, 1000 * MS);
	asked_start(&canceled, HG_NEVER);
	bench_wait_loads(&bench, 2);
	bench.origin.ops->cancel(bench.origin.self, &canceled.load);
	assert_int_equal(asked_wait(&late), ORIGIN_ERROR);
	assert_non_null(strstr(late.error, "did not answer"));
	assert_int_equal(asked_wait(&canceled), ORIGIN_CANCELED);
	assert_int_equal(bench_stats(&bench).stuck, 2);
	assert_int_equal(bench_stats(&bench).running, 2);
	asked_start(&queued, 20 * MS);
	assert_int_equal(asked_wait(&queued), ORIGIN_BUSY);
	bench_wake(&bench);
	asked_settle(&bench.origin, 0, 0);
	assert_int_equal(late.dones + canceled.dones, 2);
	assert_int_equal(run(&bench, "value"), ORIGIN_VALUE);
	assert_int_equal(run(&bench, "deaf"), ORIGIN_VALUE);
	bench_close(&bench);
}

static void test_origin__close_ends_everything_once(void **state)
{
	BENCH(bench, usual);
	struct asked asked[10];

	for (int i = 0; i < 10; i++) {
		ask(&bench, &asked[i], "hang");
		asked_start(&asked[i], HG_NEVER);
	}
	bench.origin.ops->release(bench.origin.self, bench.query);
	bench.origin.ops->close(bench.origin.self);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(asked[i].dones, 1);
		assert_int_equal(asked[i].outcome, ORIGIN_CANCELED);
	}
	fake_origin_destroy(bench.fake);
	if (bench.fake == NULL)
		(void)unlink(bench.path);
}

/* Everybody at once: peaks are exact, and whoever may wait for ever is served. */
static void test_origin__a_herd_is_counted_exactly(void **state)
{
	enum { HERD = 2000, POOL = 10 };
	BENCH(bench, ((struct setting){.pool_max = POOL, .queue_max = HERD}));
	struct asked *asked = calloc(HERD, sizeof(*asked));
	struct origin_stats stats;

	assert_non_null(asked);
	for (int i = 0; i < HERD; i++) {
		ask(&bench, &asked[i], i < POOL ? "deaf" : "value");
		asked_start(&asked[i], HG_NEVER);
	}
	asked_settle(&bench.origin, POOL, HERD - POOL);
	bench_wake(&bench);
	for (int i = 0; i < HERD; i++) {
		assert_int_equal(asked_wait(&asked[i]), ORIGIN_VALUE);
		asked_fini(&asked[i]);
	}
	asked_settle(&bench.origin, 0, 0);
	stats = bench_stats(&bench);
	assert_int_equal(stats.running_max, POOL);
	assert_int_equal(stats.queued_max, HERD - POOL);
	assert_int_equal(stats.loads, HERD);
	assert_int_equal(stats.values, HERD);
	free(asked);
	bench_close(&bench);
}

/* A herd with a time-out: what the pool cannot reach in time is refused when its time comes, all of it. */
static void test_origin__a_herd_is_refused_in_time(void **state)
{
	enum { HERD = 2000, POOL = 10 };
	BENCH(bench, ((struct setting){.pool_max = POOL, .queue_max = HERD, .acquire_timeout_us = 50 * MS}));
	struct asked *asked = calloc(HERD, sizeof(*asked));
	struct origin_stats stats;

	assert_non_null(asked);
	for (int i = 0; i < HERD; i++) {
		ask(&bench, &asked[i], i < POOL ? "deaf" : "value");
		asked_start(&asked[i], HG_NEVER);
	}
	for (int i = POOL; i < HERD; i++) {
		assert_int_equal(asked_wait(&asked[i]), ORIGIN_BUSY);
		assert_true(asked[i].queued_us >= 50 * MS);
	}
	bench_wake(&bench);
	for (int i = 0; i < POOL; i++) {
		assert_int_equal(asked_wait(&asked[i]), ORIGIN_VALUE);
		asked_fini(&asked[i]);
	}
	asked_settle(&bench.origin, 0, 0);
	stats = bench_stats(&bench);
	assert_int_equal(stats.busy, HERD - POOL);
	assert_int_equal(stats.loads, POOL);
	free(asked);
	bench_close(&bench);
}

/* Time-outs tuned to the usual wait: a connection that comes just when its asker gives up is not lost. */
static void test_origin__no_connection_is_lost_to_a_timeout(void **state)
{
	enum { ROUNDS = 60, HERD = 20 };
	BENCH(bench, ((struct setting){.pool_max = 3, .queue_max = HERD, .acquire_timeout_us = 4 * MS}));
	struct asked asked[HERD];
	struct origin_stats stats;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < HERD; i++) {
			ask(&bench, &asked[i], "brief");
			asked_start(&asked[i], i % 2 == 0 ? HG_NEVER : (i % 7) * MS);
		}
		for (int i = 0; i < HERD; i++) {
			(void)asked_wait(&asked[i]);
			asked_fini(&asked[i]);
		}
	}
	asked_settle(&bench.origin, 0, 0);
	stats = bench_stats(&bench);
	assert_int_equal(stats.asked, ROUNDS * HERD);
	assert_true(stats.values >= ROUNDS && stats.running_max <= 3);
	assert_int_equal(run(&bench, "value"), ORIGIN_VALUE);
	bench_close(&bench);
}

static void cancel_from_another_thread(struct bench *bench, struct asked *asked, int count)
{
	for (int i = 0; i < count; i++)
		bench->origin.ops->cancel(bench->origin.self, &asked[i].load);
}

struct storm {
	struct bench *bench;
	unsigned seed;
	int dones;
};

static void *storm_main(void *arg)
{
	enum { ROUNDS = 40, HERD = 8 };
	static const char *const keys[] = {"value", "brief", "absent", "hang", "error"};
	struct storm *storm = arg;
	struct asked asked[HERD];

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < HERD; i++) {
			ask(storm->bench, &asked[i], keys[rand_r(&storm->seed) % 5]);
			asked_start(&asked[i], (rand_r(&storm->seed) % 8) * MS);
		}
		cancel_from_another_thread(storm->bench, asked, rand_r(&storm->seed) % HERD);
		for (int i = 0; i < HERD; i++) {
			(void)asked_wait(&asked[i]);
			storm->dones += asked[i].dones;
			asked_fini(&asked[i]);
		}
	}
	return storm->dones == ROUNDS * HERD ? storm : NULL;
}

static void test_origin__survives_a_storm_of_deadlines_and_cancels(void **state)
{
	enum { THREADS = 4 };
	BENCH(bench, ((struct setting){.pool_max = 4, .queue_max = 12, .acquire_timeout_us = 3 * MS}));
	struct storm storms[THREADS];
	pthread_t threads[THREADS];

	for (unsigned i = 0; i < THREADS; i++) {
		storms[i] = (struct storm){&bench, i + 1, 0};
		assert_int_equal(pthread_create(&threads[i], NULL, storm_main, &storms[i]), 0);
	}
	for (int i = 0; i < THREADS; i++) {
		void *result;

		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_ptr_equal(result, &storms[i]);
	}
	asked_settle(&bench.origin, 0, 0);
	assert_int_equal(run(&bench, "value"), ORIGIN_VALUE);
	bench_close(&bench);
}

static struct asked *next;

static void start_next(struct asked *asked)
{
	asked_start(next, HG_NEVER);
}

static void test_origin__done_may_start_another_load(void **state)
{
	BENCH(bench, single);
	struct asked first, second;

	ask(&bench, &first, "value");
	ask(&bench, &second, "value");
	first.on_done = start_next;
	next = &second;
	assert_int_equal(asked_run(&first), ORIGIN_VALUE);
	assert_int_equal(asked_wait(&second), ORIGIN_VALUE);
	asked_fini(&first);
	asked_fini(&second);
	bench_close(&bench);
}

static void test_origin__a_query_lives_as_long_as_its_loads(void **state)
{
	static const char *const names[] = {"key"};
	BENCH(bench, single);
	struct origin_query *query;
	struct hg_fault fault;
	struct asked running, waiting;

	assert_int_equal(bench.origin.ops->prepare(bench.origin.self, bytes_of(sql), ORIGIN_RESULT_VALUE, names, 1,
						   &query, &fault),
			 HG_OK);
	asked_init(&running, &bench.origin, query, "brief");
	asked_init(&waiting, &bench.origin, query, "value");
	asked_start(&running, HG_NEVER);
	asked_start(&waiting, HG_NEVER);
	bench.origin.ops->release(bench.origin.self, query);
	assert_int_equal(asked_wait(&running), ORIGIN_VALUE);
	assert_true(running.ran_us >= 2 * MS);
	assert_int_equal(asked_wait(&waiting), ORIGIN_VALUE);
	asked_fini(&running);
	asked_fini(&waiting);
	bench_close(&bench);
}

static void test_origin__refuses_queries_that_can_never_work(void **state)
{
	static const char *const names[] = {"key"};
	static const char *const wrong[] = {"", "SELECT value FROM item WHERE key = :other",
					    "SELECT value FROM item WHERE key = ?", "SELECT 1; SELECT 2",
					    "DELETE FROM item WHERE key = :key"};
	BENCH(bench, single);

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct origin_query *query = NULL;
		struct hg_fault fault = {0};

		assert_int_equal(bench.origin.ops->prepare(bench.origin.self, bytes_of(wrong[i]), ORIGIN_RESULT_VALUE,
							   names, 1, &query, &fault),
				 HG_ERR_CONFIG);
		assert_null(query);
		assert_int_equal(fault.err, HG_ERR_CONFIG);
		assert_true(strlen(fault.text) > 0);
	}
	assert_int_equal(bench.origin.ops->probe(bench.origin.self, &(struct hg_fault){0}), HG_OK);
	bench_close(&bench);
}

#define BOTH(test)                                         \
	{"sqlite " #test, test, NULL, NULL, NULL},         \
	{                                                  \
		"fake " #test, test, NULL, NULL, (void *)1 \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(test_origin__gives_a_value),
		BOTH(test_origin__empty_absent_and_error_are_three_things),
		BOTH(test_origin__a_look_saves_the_query),
		BOTH(test_origin__fills_before_the_connection_is_free),
		BOTH(test_origin__acquire_timeout_is_named),
		BOTH(test_origin__without_a_timeout_all_are_served_in_order),
		BOTH(test_origin__a_full_queue_refuses_at_once),
		BOTH(test_origin__a_deadline_ends_the_wait),
		BOTH(test_origin__a_deadline_cuts_the_query_off),
		BOTH(test_origin__a_cancel_ends_one_load_and_no_other),
		BOTH(test_origin__a_cancel_while_it_looks_leaves_the_query_out),
		BOTH(test_origin__a_deaf_database_is_given_up),
		BOTH(test_origin__close_ends_everything_once),
		BOTH(test_origin__a_herd_is_counted_exactly),
		BOTH(test_origin__a_herd_is_refused_in_time),
		BOTH(test_origin__no_connection_is_lost_to_a_timeout),
		BOTH(test_origin__survives_a_storm_of_deadlines_and_cancels),
		BOTH(test_origin__done_may_start_another_load),
		BOTH(test_origin__a_query_lives_as_long_as_its_loads),
		BOTH(test_origin__refuses_queries_that_can_never_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
