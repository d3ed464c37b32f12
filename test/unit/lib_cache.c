/* Opening, stopping and closing; many caches and many threads; every allocation fails once. */
#include "lib.h"

#include <errno.h>
#include <math.h>
#include <sys/wait.h>

/* ---- options -------------------------------------------------------------------------------------------------- */

static void refused_by_name(const struct hg_cache_config *config, const char *name)
{
	struct hg_cache *cache = NULL;
	struct hg_fault fault = {HG_OK, 0, ""};

	assert_int_equal(hg_cache_open(config, &cache, &fault), HG_ERR_ARGUMENT);
	assert_null(cache);
	assert_int_equal(fault.err, HG_ERR_ARGUMENT);
	if (strstr(fault.text, name) == NULL)
		fail_msg("the fault does not name %s: %s", name, fault.text);
	assert_int_equal(hg_cache_open(config, &cache, NULL), HG_ERR_ARGUMENT);
}

#define REFUSED(field, value)                     \
	do {                                      \
		struct hg_cache_config config;    \
                                                  \
		hg_cache_config_init(&config);    \
		config.field = (value);           \
		refused_by_name(&config, #field); \
	} while (0)

static void test_cache__absurd_options_are_refused_by_name(void **state)
{
	REFUSED(version, 0);
	REFUSED(policy.ttl_us, 0);
	REFUSED(policy.ttl_us, INT64_MIN);
	REFUSED(policy.grace_us, -1);
	REFUSED(policy.jitter, -0.1);
	REFUSED(policy.jitter, 1.0);
	REFUSED(policy.jitter, (double)NAN);
	REFUSED(policy.early, (enum hg_early)3);
	REFUSED(policy.beta, -1);
	REFUSED(policy.beta, (double)INFINITY);
	REFUSED(policy.beta, (double)NAN);
	REFUSED(policy.early_window, 0.6);
	REFUSED(policy.absent_ttl_us, -1);
	REFUSED(policy.error_backoff_us, -1);
	REFUSED(policy.error_backoff_max_us, 1);
	REFUSED(policy.load_timeout_us, 0);
	REFUSED(policy.wait_us, -1);
	REFUSED(policy.waiters_max, 0);
	REFUSED(max_bytes, 1000);
	REFUSED(max_bytes, -1);
	REFUSED(key_bytes_max, 0);
	REFUSED(key_bytes_max, 65536);
	REFUSED(value_bytes_max, 0);
	REFUSED(flights_max, 0);
	REFUSED(refresh_threads, 0);
	REFUSED(refresh_threads, 65);
	REFUSED(refresh_queue_max, 0);
}

/* Whatever the life and the grace, nothing overflows: a value is there at once, and never for ever by accident. */
static void test_cache__lives_and_graces_of_every_length(void **state)
{
	static const int64_t spans[] = {0, 1, 1000, 60 * S, INT64_MAX / 2, INT64_MAX - 1, HG_NEVER};
	struct source source;
	struct hg_cache_config config;

	for (size_t i = 1; i < 7; i++) {
		for (size_t k = 0; k < 7; k++) {
			struct hg_cache *cache;

			source_virtual(&source, &config);
			config.policy.ttl_us = spans[i];
			config.policy.grace_us = spans[k];
			config.policy.jitter = 0.5;
			config.policy.early = HG_EARLY_XFETCH;
			config.policy.load_timeout_us = i % 2 ? spans[i] : HG_NEVER;
			cache = open_cache(&source, &config);
			assert_got(get(cache, "k"), HG_LED, "v1");
			assert_int_equal(get(cache, "k").answer.outcome, HG_VALUE);
			if (spans[i] < HG_NEVER / 4 && spans[k] < HG_NEVER / 4) {
				struct hg_ask probe = {.only_cached = true};

				pass_us(cache, spans[i] + spans[k]);
				assert_int_equal(get_with(cache, "k", &probe).answer.outcome, HG_MISS);
			}
			hg_cache_close(cache);
		}
	}
}

/* ---- threads and caches --------------------------------------------------------------------------------------- */

#define MANY 40

static struct hg_cache *many[MANY];
static pthread_barrier_t barrier;

/* Uses all caches, waits while they are closed and others opened, uses those, and ends. */
static void *use_many(void *arg)
{
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++) {
			if (get(many[i], "k").err != HG_OK)
				return arg; /* an ask has failed */
		}
		(void)pthread_barrier_wait(&barrier); /* all are used */
		(void)pthread_barrier_wait(&barrier); /* others are open */
	}
	return NULL;
}

static void test_cache__threads_outlive_caches_and_caches_threads(void **state)
{
	static struct source sources[MANY];
	struct hg_cache_config config;
	pthread_t threads[4];
	void *result;

	assert_int_equal(pthread_barrier_init(&barrier, NULL, 5), 0);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++) {
			source_config(&sources[i], &config);
			config.max_bytes = 1 << 20;
			many[i] = open_cache(&sources[i], &config);
		}
		for (int i = 0; i < 4 && round == 0; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, use_many, many), 0);
		if (round == 1)
			(void)pthread_barrier_wait(&barrier);
		(void)pthread_barrier_wait(&barrier);
		for (int i = 0; i < MANY; i++) {
			struct hg_stats stats = stats_of(many[i]);

			assert_int_equal(stats.asks, 4);
			assert_int_equal(stats.loads, 1);
			if (round == 0 || i % 2 == 0)
				hg_cache_close(many[i]);
		}
	}
	(void)pthread_barrier_wait(&barrier);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
	/* The threads have ended: what they counted is still there. */
	for (int i = 1; i < MANY; i += 2) {
		assert_int_equal(stats_of(many[i]).asks, 4);
		hg_cache_close(many[i]);
	}
}

static void *hit_once(void *arg)
{
	return (void *)(uintptr_t)(get(arg, "k").err != HG_OK);
}

static void test_cache__threads_that_come_and_go_leave_nothing(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;
	pthread_t thread;
	int64_t bytes = 0;

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	for (int i = 0; i < 2000; i++) {
		void *bad;

		assert_int_equal(pthread_create(&thread, NULL, hit_once, cache), 0);
		assert_int_equal(pthread_join(thread, &bad), 0);
		assert_null(bad);
		if (i == 0)
			bytes = stats_of(cache).bytes;
	}
	stats = stats_of(cache);
	assert_int_equal(stats.asks, 2000);
	assert_int_equal(stats.bytes, bytes);
	assert_true(list_empty(&cache->seats));
	hg_cache_close(cache);
}

static void test_cache__stop_answers_all_who_wait(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct asking leader, waiters[20];

	source_config(&source, &config);
	config.policy.wait_us = HG_NEVER;
	source.gated = true;
	cache = open_cache(&source, &config);
	assert_int_equal(hg_cache_put(cache, hg_text("there"), hg_text("v"), 0, NULL), HG_OK);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&source.inside);
	for (int i = 0; i < 20; i++)
		ask_begin(&waiters[i], cache, "k", NULL);
	until_waiting(cache, 20);
	hg_cache_stop(cache);
	hg_cache_stop(cache);
	for (int i = 0; i < 20; i++)
		assert_refused(ask_end(&waiters[i]), HG_ERR_CLOSED);
	assert_refused(get(cache, "other"), HG_ERR_CLOSED);
	assert_got(get(cache, "there"), HG_FRESH, "v");
	(void)sem_post(&source.gate);
	assert_got(ask_end(&leader), HG_LED, "v1");
	assert_int_equal(source.loads, 1);
	hg_cache_close(cache);
	hg_cache_close(NULL);
}

static void *close_cache(void *arg)
{
	hg_cache_close(arg);
	return NULL;
}

/* A close waits for the refresh that runs, and drops those that have not begun. */
static void test_cache__close_waits_for_refreshes(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	pthread_t thread;
	char key[16];

	source_config(&source, &config);
	config.policy.ttl_us = 1;
	config.policy.grace_us = 3600 * S;
	config.refresh_threads = 1;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_got(get(cache, key), HG_LED, "v1");
	}
	source.gated = true;
	(void)usleep(10);
	for (int i = 0; i < 10; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_got(get(cache, key), HG_STALE, "v1");
	}
	wait_for(&source.inside);
	assert_int_equal(pthread_create(&thread, NULL, close_cache, cache), 0);
	(void)usleep(20000);
	assert_int_equal(pthread_tryjoin_np(thread, NULL), EBUSY);
	(void)sem_post(&source.gate);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(source.loads, 11);
}

/* After fork() the child opens a cache of its own. */
static void test_cache__a_forked_child_opens_its_own(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	int status;
	pid_t child;

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	child = fork();
	if (child == 0) {
		struct hg_cache *own;

		if (hg_cache_open(&config, &own, NULL) != HG_OK || get(own, "k").answer.how != HG_LED ||
		    get(own, "k").answer.how != HG_FRESH)
			_exit(1);
		hg_cache_close(own);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_got(get(cache, "k"), HG_FRESH, "v1");
	hg_cache_close(cache);
}

static void test_cache__names(void **state)
{
	assert_string_equal(hg_err_name(HG_ERR_BACKOFF), "HG_ERR_BACKOFF");
	assert_string_equal(hg_err_name((enum hg_err)99), "?");
	assert_string_equal(hg_outcome_name(HG_ABSENT), "absent");
	assert_string_equal(hg_outcome_name((enum hg_outcome)0), "?");
	assert_string_equal(hg_how_name(HG_WAITED), "waited");
	assert_string_equal(hg_version(), HERDGATE_VERSION);
}

/* ---- memory --------------------------------------------------------------------------------------------------- */

static void (*run_later)(void *job);
static void *job_later;

static bool submit_one(void *self, void (*run)(void *job), void *job)
{
	if (job_later != NULL)
		return false;
	run_later = run;
	job_later = job;
	return true;
}

/* The value, or an error that says that something was short. (The engine names a record that it has no memory for as a
 * limit; a load whose value found no memory is backed off like any that failed.) */
static void spend(struct got got)
{
	if (got.err == HG_OK)
		assert_string_equal(got.text, "v1");
	else
		assert_true(got.err == HG_ERR_MEMORY || got.err == HG_ERR_LIMIT || got.err == HG_ERR_BACKOFF);
	hg_value_release(got.answer.given);
}

/* Everything that a program does with a cache. Returns false where it could not be opened. */
static bool live_a_life(const struct hg_allocator *allocator)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_ask probe = {.only_cached = true};
	struct hg_cache *cache;
	char long_key[300] = {0};
	struct hg_answer given = {0};

	source_virtual(&source, &config);
	config.allocator = allocator;
	config.executor.submit = submit_one;
	if (hg_cache_open(&config, &cache, NULL) != HG_OK)
		return false;
	for (int i = 0; i < 3; i++)
		spend(get(cache, "k"));
	memset(long_key, 'x', sizeof(long_key) - 1);
	spend(get(cache, long_key));
	if (hg_cache_get(cache, hg_text("k"), NULL, &given, NULL) == HG_OK)
		hg_value_release(given.given);
	if (hg_cache_put(cache, hg_text("p"), (struct hg_bytes){long_key, 300}, 0, NULL) != HG_OK)
		assert_int_equal(get_with(cache, "p", &probe).answer.outcome == HG_VALUE, 0);
	pass_us(cache, 60 * S); /* stale: a refresh */
	spend(get(cache, "k"));
	if (job_later != NULL) {
		void *job = job_later;

		job_later = NULL;
		run_later(job);
	}
	spend(get(cache, "k"));
	(void)hg_cache_purge(cache, hg_text("k"));
	source.outcome = HG_FAILED;
	(void)get(cache, "failing");
	source.outcome = HG_ABSENT;
	(void)get(cache, "absent");
	source.outcome = 0;
	(void)hg_cache_invalidate(cache, hg_text("k"));
	spend(get(cache, "k"));
	hg_cache_flush(cache);
	spend(get(cache, "k"));
	/* Whatever has failed before: it works now. */
	source.outcome = 0;
	assert_int_equal(stats_of(cache).waiting, 0);
	assert_int_equal(stats_of(cache).loading, 0);
	if (job_later != NULL) {
		void *job = job_later;

		job_later = NULL;
		run_later(job);
	}
	hg_cache_close(cache);
	return true;
}

static void test_cache__every_allocation_fails_once(void **state)
{
	struct failing failing;
	long k = 0;

	do {
		struct hg_allocator allocator = failing_allocator(&failing, k++);

		(void)live_a_life(&allocator);
		assert_int_equal(failing.blocks, 0);
	} while (failing.failed);
	assert_true(k > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cache__absurd_options_are_refused_by_name),
		cmocka_unit_test(test_cache__lives_and_graces_of_every_length),
		cmocka_unit_test(test_cache__threads_outlive_caches_and_caches_threads),
		cmocka_unit_test(test_cache__threads_that_come_and_go_leave_nothing),
		cmocka_unit_test(test_cache__stop_answers_all_who_wait),
		cmocka_unit_test(test_cache__close_waits_for_refreshes),
		cmocka_unit_test(test_cache__a_forked_child_opens_its_own),
		cmocka_unit_test(test_cache__names),
		cmocka_unit_test(test_cache__every_allocation_fails_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
