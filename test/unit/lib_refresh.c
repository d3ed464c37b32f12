/* Refreshes in the background: stale and early values, with an executor that runs jobs when the test says so; and once
 * with the cache's own threads. */
#include "lib.h"

#include "base/dice.h"

struct jobs {
	void (*run[64])(void *job);
	void *job[64];
	int len;
	bool refuse;
};

static bool submit(void *self, void (*run)(void *job), void *job)
{
	struct jobs *jobs = self;

	if (jobs->refuse || jobs->len == 64)
		return false;
	jobs->run[jobs->len] = run;
	jobs->job[jobs->len++] = job;
	return true;
}

static void run_jobs(struct jobs *jobs)
{
	for (int i = 0; i < jobs->len; i++)
		jobs->run[i](jobs->job[i]);
	jobs->len = 0;
}

static void refresh_config(struct source *source, struct hg_cache_config *config, struct jobs *jobs)
{
	source_virtual(source, config);
	memset(jobs, 0, sizeof(*jobs));
	config->executor = (struct hg_executor){submit, jobs};
}

static void test_refresh__stale_is_answered_at_once_and_refreshed_once(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	struct hg_stats stats;

	refresh_config(&source, &config, &jobs);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.version = 2;
	pass_us(cache, 60 * S);
	for (int i = 0; i < 1000; i++)
		assert_got(get(cache, "k"), HG_STALE, "v1");
	assert_int_equal(jobs.len, 1);
	assert_int_equal(source.loads, 1);
	run_jobs(&jobs);
	assert_got(get(cache, "k"), HG_FRESH, "v2");
	assert_int_equal(get(cache, "k").answer.fresh_us, 60 * S);
	stats = stats_of(cache);
	assert_int_equal(stats.stale, 1000);
	assert_int_equal(stats.avoided, 999);
	assert_int_equal(stats.refreshes, 1);
	assert_int_equal(stats.loads, 2);
	hg_cache_close(cache);
}

static void test_refresh__stale_covers_errors_until_the_grace_ends(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	int64_t attempts = 0;

	refresh_config(&source, &config, &jobs);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.outcome = HG_FAILED;
	pass_us(cache, 60 * S);
	for (int64_t ms = 0; ms < 60000; ms += 10) {
		assert_got(get(cache, "k"), HG_STALE, "v1");
		attempts += jobs.len;
		run_jobs(&jobs);
		pass_us(cache, 10 * MS);
	}
	assert_in_range(attempts, 9, 12); /* 250 ms, doubling to 10 s */
	assert_int_equal(source.loads, 1 + attempts);
	assert_int_equal(get(cache, "k").err, HG_ERR_BACKOFF);
	assert_int_equal(stats_of(cache).entries, 0);
	hg_cache_close(cache);
}

static void test_refresh__an_executor_that_refuses_costs_nothing_but_a_later_try(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;

	refresh_config(&source, &config, &jobs);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	pass_us(cache, 60 * S);
	jobs.refuse = true;
	assert_got(get(cache, "k"), HG_STALE, "v1");
	assert_int_equal(stats_of(cache).refreshes_dropped, 1);
	assert_int_equal(stats_of(cache).refreshes_queued, 0);
	jobs.refuse = false;
	pass_us(cache, 2 * MS);
	assert_got(get(cache, "k"), HG_STALE, "v1");
	assert_int_equal(jobs.len, 1);
	/* Past the grace nothing of the refusal is left. */
	run_jobs(&jobs);
	pass_us(cache, 121 * S);
	assert_got(get(cache, "k"), HG_LED, "v1");
	hg_cache_close(cache);
}

/* Whoever needs the value that is queued to be refreshed takes the load over, and the job finds nothing to do. */
static void test_refresh__a_queued_load_is_taken_over_once_the_grace_is_over(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;

	refresh_config(&source, &config, &jobs);
	config.policy.grace_us = 5 * S;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.version = 2;
	pass_us(cache, 60 * S);
	assert_got(get(cache, "k"), HG_STALE, "v1");
	pass_us(cache, 5 * S);
	assert_got(get(cache, "k"), HG_LED, "v2");
	assert_int_equal(source.loads, 2);
	run_jobs(&jobs);
	assert_int_equal(source.loads, 2);
	assert_got(get(cache, "k"), HG_FRESH, "v2");
	hg_cache_close(cache);
}

static void test_refresh__a_job_that_comes_too_late_is_left_out(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;

	refresh_config(&source, &config, &jobs);
	config.policy.grace_us = 3600 * S;
	config.policy.error_backoff_us = 0;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	pass_us(cache, 60 * S);
	assert_got(get(cache, "k"), HG_STALE, "v1");
	pass_us(cache, 30 * S); /* load_timeout_us: the lease in the queue is over */
	assert_got(get(cache, "k"), HG_STALE, "v1");
	assert_int_equal(jobs.len, 2);
	run_jobs(&jobs);
	assert_int_equal(source.loads, 2);
	assert_got(get(cache, "k"), HG_FRESH, "v1");
	hg_cache_close(cache);
}

static void invalidate_during(struct source *source, struct hg_load *load)
{
	assert_true(hg_load_wanted(load));
	assert_true(hg_cache_invalidate(source->cache, hg_load_key(load)));
	assert_false(hg_load_wanted(load));
}

static void test_refresh__what_an_invalidation_overtakes_is_not_stored(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;

	refresh_config(&source, &config, &jobs);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	pass_us(cache, 60 * S);
	assert_got(get(cache, "k"), HG_STALE, "v1");
	source.during = invalidate_during;
	run_jobs(&jobs);
	source.during = NULL;
	source.version = 2;
	assert_int_equal(stats_of(cache).fenced, 1);
	assert_got(get(cache, "k"), HG_LED, "v2");
	hg_cache_close(cache);
}

static void test_refresh__the_first_ask_in_the_window_is_chosen(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	struct hg_stats stats;

	refresh_config(&source, &config, &jobs);
	config.policy.early = HG_EARLY_WINDOW;
	config.policy.early_window = 0.1;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.version = 2;
	pass_us(cache, 54 * S - 1);
	assert_got(get(cache, "k"), HG_FRESH, "v1");
	assert_int_equal(jobs.len, 0);
	pass_us(cache, 1);
	for (int i = 0; i < 100; i++)
		assert_got(get(cache, "k"), HG_FRESH, "v1");
	assert_int_equal(jobs.len, 1);
	run_jobs(&jobs);
	assert_got(get(cache, "k"), HG_FRESH, "v2");
	stats = stats_of(cache);
	assert_int_equal(stats.early, 1);
	assert_int_equal(stats.led, 2);
	assert_int_equal(stats.avoided, 99);
	hg_cache_close(cache);
}

/* XFETCH at 100 asks a cost: the mean gap is cost * (ln 100 + 0.577), 5.18 costs. */
static void test_refresh__xfetch_keeps_to_its_law(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	double gaps = 0;
	int rounds = 400;

	refresh_config(&source, &config, &jobs);
	config.policy.early = HG_EARLY_XFETCH;
	source.takes_us = 100 * MS;
	cache = open_cache(&source, &config);
	for (int i = 0; i < rounds; i++) {
		struct got got;

		(void)hg_cache_invalidate(cache, hg_text("k"));
		assert_got(get(cache, "k"), HG_LED, "v1");
		atomic_fetch_add(&virtual_us, 57 * S); /* the window, 22 costs long, has not begun */
		do {
			got = get(cache, "k");
			assert_int_equal(got.answer.how, HG_FRESH);
			atomic_fetch_add(&virtual_us, 1 * MS);
		} while (jobs.len == 0);
		gaps += (double)got.answer.fresh_us / (double)source.takes_us;
		run_jobs(&jobs);
	}
	/* 5.18 and the half step; the standard error of 400 rounds is 0.064. */
	assert_true(gaps / rounds > 4.9 && gaps / rounds < 5.5);
	assert_int_equal(stats_of(cache).stale, 0);
	hg_cache_close(cache);
}

/* H118: whatever the kind of load, the value has its full life. */
static void test_refresh__every_kind_of_load_gives_the_full_life(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;

	refresh_config(&source, &config, &jobs);
	config.policy.early = HG_EARLY_WINDOW;
	config.policy.error_backoff_us = 0;
	cache = open_cache(&source, &config);
	assert_int_equal(get(cache, "k").answer.fresh_us, 60 * S); /* cold */
	pass_us(cache, 59 * S);
	assert_int_equal(get(cache, "k").answer.fresh_us, 1 * S);
	run_jobs(&jobs); /* early */
	assert_int_equal(get(cache, "k").answer.fresh_us, 60 * S);
	pass_us(cache, 100 * S);
	assert_int_equal(get(cache, "k").answer.fresh_us, 0);
	source.outcome = HG_FAILED;
	run_jobs(&jobs);
	pass_us(cache, 2 * MS);
	source.outcome = 0;
	assert_int_equal(get(cache, "k").answer.how, HG_STALE);
	run_jobs(&jobs); /* stale, after an error */
	assert_int_equal(get(cache, "k").answer.fresh_us, 60 * S);
	hg_cache_close(cache);
}

/* ---- loaders of one call -------------------------------------------------------------------------------------- */

struct context {
	struct source *source;
	int keeps, drops;
	bool refuse;
};

static enum hg_outcome load_context(struct hg_load *load, void *arg)
{
	return load_source(load, ((struct context *)arg)->source);
}

static struct context *original;

static void *keep_context(void *arg)
{
	struct context *context = arg, *kept;

	if (context->refuse)
		return NULL;
	context->keeps++;
	kept = malloc(sizeof(*kept));
	*kept = *context;
	return kept;
}

static void drop_context(void *kept)
{
	original->drops++;
	free(kept);
}

static void test_refresh__without_keep_the_chosen_caller_computes(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	struct context context = {.source = &source};
	struct hg_ask ask = {.load = load_context, .arg = &context};

	refresh_config(&source, &config, &jobs);
	config.load = NULL;
	cache = open_cache(&source, &config);
	assert_got(get_with(cache, "k", &ask), HG_LED, "v1");
	source.version = 2;
	pass_us(cache, 60 * S);
	assert_got(get_with(cache, "k", &ask), HG_LED, "v2");
	assert_int_equal(jobs.len, 0);
	/* An error is not its caller's to see while there is a stale value. */
	source.outcome = HG_FAILED;
	pass_us(cache, 60 * S);
	assert_got(get_with(cache, "k", &ask), HG_STALE, "v2");
	assert_int_equal(source.loads, 3);
	hg_cache_close(cache);
}

static void test_refresh__keep_and_drop_are_paired(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct jobs jobs;
	struct hg_cache *cache;
	struct context context = {.source = &source};
	struct hg_ask ask = {.load = load_context, .arg = &context, .keep = keep_context, .drop = drop_context};

	refresh_config(&source, &config, &jobs);
	config.load = NULL;
	config.policy.grace_us = 5 * S;
	config.policy.ttl_us = 10 * S;
	original = &context;
	cache = open_cache(&source, &config);
	assert_got(get_with(cache, "k", &ask), HG_LED, "v1");
	assert_int_equal(context.keeps, 0);
	for (int round = 0; round < 5; round++) {
		pass_us(cache, 10 * S);
		context.refuse = round == 1;
		jobs.refuse = round == 2;
		assert_int_equal(get_with(cache, "k", &ask).answer.how, HG_STALE);
		context.refuse = jobs.refuse = false;
		if (round == 3) { /* taken over */
			pass_us(cache, 5 * S);
			assert_int_equal(get_with(cache, "k", &ask).answer.how, HG_LED);
		}
		run_jobs(&jobs);
		if (round == 1 || round == 2) {
			pass_us(cache, 2 * MS);
			assert_int_equal(get_with(cache, "k", &ask).answer.how, HG_STALE);
			run_jobs(&jobs);
		}
		assert_int_equal(get_with(cache, "k", &ask).answer.how, HG_FRESH);
		assert_int_equal(context.keeps, context.drops);
	}
	pass_us(cache, 10 * S);
	assert_int_equal(get_with(cache, "k", &ask).answer.how, HG_STALE);
	hg_cache_stop(cache);
	run_jobs(&jobs); /* an executor that runs what it had accepted, late */
	hg_cache_close(cache);
	assert_int_equal(context.keeps, 7);
	assert_int_equal(context.drops, 7);
}

/* ---- the cache's own threads ---------------------------------------------------------------------------------- */

/* H86, H88: a source that hangs or fails, and many asks: threads and queue stay bounded, attempts keep to the back-off.
 */
static void test_refresh__a_source_that_hangs_holds_up_nobody(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	char key[16];

	source_config(&source, &config);
	config.policy.ttl_us = 1;
	config.policy.grace_us = 3600 * S;
	config.refresh_queue_max = 8;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 50; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_got(get(cache, key), HG_LED, "v1");
	}
	source.gated = true;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 50; i++) {
			(void)snprintf(key, sizeof(key), "k%d", i);
			assert_got(get(cache, key), HG_STALE, "v1");
		}
	}
	wait_for(&source.inside);
	wait_for(&source.inside);
	assert_int_equal(source.running, 2);
	assert_in_range(stats_of(cache).refreshes_queued, 1, 8);
	assert_true(stats_of(cache).refreshes_dropped > 0);
	source.gated = false;
	for (int i = 0; i < 12; i++)
		(void)sem_post(&source.gate);
	hg_cache_close(cache);
	assert_in_range(source.running_max, 2, 2);
	assert_int_equal(source.running, 0);
}

/* H91, H93: values keep advancing where the load takes about as long as the life. */
static void test_refresh__values_keep_advancing(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	int last = 0;

	source_config(&source, &config);
	config.policy.ttl_us = 100;
	config.policy.grace_us = 3600 * S;
	cache = open_cache(&source, &config);
	while (last < 200) {
		struct got got = get(cache, "k");
		int version = 0;

		assert_int_equal(got.err, HG_OK);
		assert_int_equal(sscanf(got.text, "v%d", &version), 1);
		assert_true(version >= last);
		last = version;
		atomic_fetch_add(&source.version, 1);
		if (got.answer.how == HG_FRESH)
			(void)usleep(100);
	}
	hg_cache_close(cache);
	assert_int_equal(source.running_max, 1);
}

static void exit_thread(struct source *source, struct hg_load *load)
{
	atomic_fetch_sub(&source->running, 1);
	pthread_exit(NULL);
}

/* A loader that ends the executor's thread: the key and the executor live on. */
static void test_refresh__a_thread_that_ends_in_a_refresh_is_replaced(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	config.policy.ttl_us = 1;
	config.policy.grace_us = 3600 * S;
	config.refresh_threads = 1;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.during = exit_thread;
	while (source.loads < 10) {
		assert_got(get(cache, "k"), HG_STALE, "v1");
		(void)usleep(300);
	}
	source.during = NULL;
	source.version = 2;
	while (strcmp(get(cache, "k").text, "v2") != 0)
		(void)usleep(300);
	hg_cache_close(cache);
	assert_int_equal(source.running_max, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refresh__stale_is_answered_at_once_and_refreshed_once),
		cmocka_unit_test(test_refresh__stale_covers_errors_until_the_grace_ends),
		cmocka_unit_test(test_refresh__an_executor_that_refuses_costs_nothing_but_a_later_try),
		cmocka_unit_test(test_refresh__a_queued_load_is_taken_over_once_the_grace_is_over),
		cmocka_unit_test(test_refresh__a_job_that_comes_too_late_is_left_out),
		cmocka_unit_test(test_refresh__what_an_invalidation_overtakes_is_not_stored),
		cmocka_unit_test(test_refresh__the_first_ask_in_the_window_is_chosen),
		cmocka_unit_test(test_refresh__xfetch_keeps_to_its_law),
		cmocka_unit_test(test_refresh__every_kind_of_load_gives_the_full_life),
		cmocka_unit_test(test_refresh__without_keep_the_chosen_caller_computes),
		cmocka_unit_test(test_refresh__keep_and_drop_are_paired),
		cmocka_unit_test(test_refresh__a_source_that_hangs_holds_up_nobody),
		cmocka_unit_test(test_refresh__values_keep_advancing),
		cmocka_unit_test(test_refresh__a_thread_that_ends_in_a_refresh_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
