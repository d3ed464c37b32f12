/* Waiters: herds of real threads, deadlines, lapses, limits. Where a lapse is tested the clock is set by hand. */
#include "lib.h"

#define HERD 200

static struct asking herd[HERD];

/* Everybody asks for `key` while one load is under way; then it ends. Returns how many waited. */
static int run_herd(struct source *source, const char *key, const char *wanted)
{
	struct hg_cache *cache = source->cache;
	uint64_t waited_before = stats_of(cache).waited;
	int led = 0;

	source->gated = true;
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, key, NULL);
	wait_for(&source->inside);
	until_waiting(cache, HERD - 1);
	(void)sem_post(&source->gate);
	for (int i = 0; i < HERD; i++) {
		struct got got = ask_end(&herd[i]);

		assert_int_equal(got.err, HG_OK);
		assert_string_equal(got.text, wanted);
		led += got.answer.how == HG_LED;
		assert_true(got.answer.how == HG_LED || got.answer.how == HG_WAITED);
	}
	assert_int_equal(led, 1);
	source->gated = false;
	return (int)(stats_of(cache).waited - waited_before);
}

/* H178: never seen, expired, invalidated, flushed, evicted: one load each. */
static void test_lane__a_herd_makes_one_load_whatever_emptied_the_key(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;
	char key[16];

	source_virtual(&source, &config);
	config.policy.grace_us = 0;
	config.policy.wait_us = HG_NEVER;
	config.max_bytes = 1 << 20;
	cache = open_cache(&source, &config);
	assert_int_equal(run_herd(&source, "k", "v1"), HERD - 1);
	source.version = 2;
	pass_us(cache, 60 * S);
	assert_int_equal(run_herd(&source, "k", "v2"), HERD - 1);
	source.version = 3;
	(void)hg_cache_invalidate(cache, hg_text("k"));
	assert_int_equal(run_herd(&source, "k", "v3"), HERD - 1);
	source.version = 4;
	hg_cache_flush(cache);
	assert_int_equal(run_herd(&source, "k", "v4"), HERD - 1);
	assert_int_equal(source.loads, 4);
	for (int i = 0; i < 20000; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_int_equal(hg_cache_put(cache, hg_text(key), hg_text(key), 0, NULL), HG_OK);
	}
	assert_true(stats_of(cache).evicted > 0);
	assert_int_equal(run_herd(&source, "k", "v4"), HERD - 1);
	assert_int_equal(source.loads, 5);
	stats = stats_of(cache);
	assert_int_equal(stats.herd_max, HERD - 1);
	assert_int_equal(stats.avoided, 5 * (HERD - 1));
	assert_int_equal(stats.led, 5);
	assert_int_equal(stats.waiting, 0);
	hg_cache_close(cache);
}

/* H175: asks, loads, hits and waits add up. */
static void test_lane__counters_have_one_meaning(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	(void)run_herd(&source, "k", "v1");
	for (int i = 0; i < 100; i++)
		assert_got(get(cache, "k"), HG_FRESH, "v1");
	stats = stats_of(cache);
	assert_int_equal(stats.asks, HERD + 100);
	assert_int_equal(stats.led, 1);
	assert_int_equal(stats.loads, 1);
	assert_int_equal(stats.waited, HERD - 1);
	assert_int_equal(stats.fresh, 100);
	hg_cache_close(cache);
}

/* An error is shared by those who wait, and by nobody later. */
static void test_lane__a_herd_on_a_loader_that_fails(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	config.policy.error_backoff_us = 0;
	cache = open_cache(&source, &config);
	source.gated = true;
	source.outcome = HG_FAILED;
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, "k", NULL);
	wait_for(&source.inside);
	until_waiting(cache, HERD - 1);
	(void)sem_post(&source.gate);
	for (int i = 0; i < HERD; i++) {
		struct got got = ask_end(&herd[i]);

		assert_refused(got, HG_ERR_LOAD);
		assert_string_equal(got.fault.text, "the source is down");
	}
	assert_int_equal(source.loads, 1);
	source.gated = false;
	source.outcome = 0;
	assert_got(get(cache, "k"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_lane__a_herd_on_a_row_that_does_not_exist(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	source.gated = true;
	source.outcome = HG_ABSENT;
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, "k", NULL);
	wait_for(&source.inside);
	until_waiting(cache, HERD - 1);
	(void)sem_post(&source.gate);
	for (int i = 0; i < HERD; i++)
		assert_int_equal(ask_end(&herd[i]).answer.outcome, HG_ABSENT);
	assert_int_equal(source.loads, 1);
	hg_cache_close(cache);
}

/* H62: not cacheable: those who wait share the answer, later ones run side by side, nobody queues one behind another.
 */
static void test_lane__a_herd_on_what_must_not_be_cached(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	source.outcome = HG_NOSTORE;
	cache = open_cache(&source, &config);
	(void)run_herd(&source, "k", "v1");
	assert_int_equal(source.loads, 1);
	source.gated = true;
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, "k", NULL);
	for (int i = 0; i < HERD; i++)
		wait_for(&source.inside); /* all at once */
	assert_int_equal(stats_of(cache).loading, HERD);
	for (int i = 0; i < HERD; i++)
		(void)sem_post(&source.gate);
	for (int i = 0; i < HERD; i++)
		assert_got(ask_end(&herd[i]), HG_PASSED, "v1");
	hg_cache_close(cache);
}

/* A private value is its caller's alone: the others load for themselves, side by side. */
static void test_lane__a_private_value_is_shared_with_nobody(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	int led = 0;

	source_config(&source, &config);
	source.outcome = HG_PRIVATE;
	source.gated = true;
	cache = open_cache(&source, &config);
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, "k", NULL);
	wait_for(&source.inside);
	until_waiting(cache, HERD - 1);
	(void)sem_post(&source.gate);
	for (int i = 0; i < HERD - 1; i++)
		wait_for(&source.inside);
	for (int i = 0; i < HERD - 1; i++)
		(void)sem_post(&source.gate);
	for (int i = 0; i < HERD; i++) {
		struct got got = ask_end(&herd[i]);

		assert_int_equal(got.answer.outcome, HG_PRIVATE);
		led += got.answer.how == HG_LED;
	}
	assert_int_equal(led, 1);
	assert_int_equal(source.loads, HERD);
	hg_cache_close(cache);
}

/* H16, H47: a load that hangs: at its time limit one waiter takes over, and nobody else. */
static void test_lane__a_lapse_hands_over_to_one_waiter(void **state)
{
	struct source slow, quick;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_ask ask = {.load = load_source, .arg = &quick};
	struct asking leader;
	struct hg_stats stats;
	int led = 0;

	source_virtual(&quick, &config);
	source_virtual(&slow, &config);
	config.policy.load_timeout_us = 2 * S;
	config.policy.wait_us = 100 * S;
	slow.gated = quick.gated = true;
	quick.version = 2;
	cache = open_cache(&slow, &config);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&slow.inside);
	for (int i = 0; i < HERD; i++)
		ask_begin(&herd[i], cache, "k", &ask);
	until_waiting(cache, HERD);
	pass_us(cache, 2 * S - 1);
	assert_int_equal(stats_of(cache).lapsed, 0);
	pass_us(cache, 1);
	wait_for(&quick.inside);
	stats = stats_of(cache);
	assert_int_equal(stats.lapsed, 1);
	assert_int_equal(stats.handed_over, 1);
	assert_int_equal(stats.waiting, HERD - 1);
	assert_int_equal(stats.loading, 2);
	assert_int_equal(stats.overdue, 1);
	(void)sem_post(&quick.gate);
	for (int i = 0; i < HERD; i++) {
		struct got got = ask_end(&herd[i]);

		assert_string_equal(got.text, "v2");
		led += got.answer.how == HG_LED;
	}
	assert_int_equal(led, 1);
	/* The slow one comes back: its caller has its value, the cache keeps the other. */
	(void)sem_post(&slow.gate);
	assert_got(ask_end(&leader), HG_LED, "v1");
	assert_got(get(cache, "k"), HG_FRESH, "v2");
	stats = stats_of(cache);
	assert_int_equal(stats.fenced, 1);
	assert_int_equal(stats.loads, 2);
	assert_int_equal(stats.overdue, 0);
	hg_cache_close(cache);
}

/* H01, H05: who gives up harms nobody, and the load is finished for the next one. */
static void test_lane__a_deadline_is_its_waiters_own(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_ask brief = {.wait_us = 1 * S}, patient = {.wait_us = HG_NEVER}, none = {.wait_us = HG_NO_WAIT};
	struct asking leader, one, two;
	struct got got;

	source_virtual(&source, &config);
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&source.inside);
	ask_begin(&one, cache, "k", &brief);
	ask_begin(&two, cache, "k", &patient);
	until_waiting(cache, 2);
	assert_refused(get_with(cache, "k", &none), HG_ERR_TIMEOUT);
	pass_us(cache, 1 * S);
	got = ask_end(&one);
	assert_refused(got, HG_ERR_TIMEOUT);
	pass_us(cache, 20 * S);
	assert_int_equal(stats_of(cache).waiting, 1);
	(void)sem_post(&source.gate);
	assert_got(ask_end(&two), HG_WAITED, "v1");
	assert_got(ask_end(&leader), HG_LED, "v1");
	assert_int_equal(source.loads, 1);
	assert_int_equal(stats_of(cache).timed_out, 1); /* the other one never waited */
	hg_cache_close(cache);
}

/* The same in real time: the waiters themselves keep the time, also after the one that kept it has gone. */
static void test_lane__waiters_keep_the_time_by_themselves(void **state)
{
	struct source source, quick;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_ask asks[8];
	struct asking leader;
	int led = 0, timed_out = 0;

	source_config(&quick, &config);
	source_config(&source, &config);
	config.policy.load_timeout_us = 1 * S;
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&source.inside);
	for (int i = 0; i < 8; i++) {
		asks[i] =
			(struct hg_ask){.load = load_source, .arg = &quick, .wait_us = i < 4 ? (10 + i) * MS : 30 * S};
		ask_begin(&herd[i], cache, "k", &asks[i]);
		while (stats_of(cache).waited < (uint64_t)i + 1)
			(void)usleep(200);
	}
	for (int i = 0; i < 8; i++) {
		struct got got = ask_end(&herd[i]);

		timed_out += got.err == HG_ERR_TIMEOUT;
		led += got.err == HG_OK && got.answer.how == HG_LED;
	}
	assert_int_equal(timed_out, 4);
	assert_int_equal(led, 1);
	assert_int_equal(stats_of(cache).lapsed, 1);
	(void)sem_post(&source.gate);
	assert_got(ask_end(&leader), HG_LED, "v1");
	hg_cache_close(cache);
}

static void *ask_in_a_loop(void *arg)
{
	struct asking *asking = arg;

	for (int i = 0; i < 200 && asking->got.err == HG_OK; i++)
		asking->got = get_with(asking->cache, asking->key, asking->ask);
	return NULL;
}

static void sleep_a_little(struct source *source, struct hg_load *load)
{
	(void)usleep(300);
}

/* H03: overlapping loads, half of the callers with deadlines too short: the others never see a deadline. */
static void test_lane__who_has_no_deadline_sees_none(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_ask brief = {.wait_us = 100}, patient = {.wait_us = HG_NEVER};

	source_config(&source, &config);
	config.policy.ttl_us = 100;
	config.policy.grace_us = 0;
	source.during = sleep_a_little;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 16; i++) {
		herd[i] = (struct asking){.cache = cache, .key = "k", .ask = i % 2 ? &brief : &patient};
		assert_int_equal(pthread_create(&herd[i].thread, NULL, ask_in_a_loop, &herd[i]), 0);
	}
	for (int i = 0; i < 16; i++) {
		struct got got = ask_end(&herd[i]);

		assert_true(got.err == HG_OK || (i % 2 == 1 && got.err == HG_ERR_TIMEOUT));
	}
	assert_int_equal(source.running_max, 1);
	hg_cache_close(cache);
}

static void test_lane__waiters_have_a_limit_with_a_name(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	config.policy.waiters_max = 10;
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&herd[0], cache, "k", NULL);
	wait_for(&source.inside);
	for (int i = 1; i <= 10; i++)
		ask_begin(&herd[i], cache, "k", NULL);
	until_waiting(cache, 10);
	assert_refused(get(cache, "k"), HG_ERR_LIMIT);
	(void)sem_post(&source.gate);
	for (int i = 0; i <= 10; i++)
		assert_int_equal(ask_end(&herd[i]).err, HG_OK);
	assert_int_equal(stats_of(cache).refused, 1);
	hg_cache_close(cache);
}

/* H75: one key that hangs keeps no other waiting, be it in the same lane. */
static void test_lane__a_load_that_hangs_holds_up_no_other_key(void **state)
{
	struct source source, quick;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_ask ask = {.load = load_source, .arg = &quick};
	char key[16];

	source_config(&quick, &config);
	source_config(&source, &config);
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&herd[0], cache, "hangs", NULL);
	wait_for(&source.inside);
	ask_begin(&herd[1], cache, "hangs", NULL);
	until_waiting(cache, 1);
	for (int i = 0; i < 1000; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_got(get_with(cache, key, &ask), HG_LED, "v1");
		assert_got(get_with(cache, key, &ask), HG_FRESH, "v1");
	}
	(void)sem_post(&source.gate);
	assert_got(ask_end(&herd[0]), HG_LED, "v1");
	assert_got(ask_end(&herd[1]), HG_WAITED, "v1");
	hg_cache_close(cache);
}

struct many {
	struct hg_cache *cache;
	atomic_int bad;
};

static enum hg_outcome load_key(struct hg_load *load, void *arg)
{
	static atomic_int inside[64];
	struct hg_bytes key = hg_load_key(load);
	int number = atoi((const char *)key.at + 1);

	if (atomic_fetch_add(&inside[number], 1) != 0)
		return hg_load_error(load, "not alone");
	(void)sched_yield();
	atomic_fetch_sub(&inside[number], 1);
	return hg_load_value(load, key);
}

static void *ask_for_many(void *arg)
{
	struct many *many = arg;
	unsigned seed = (unsigned)(uintptr_t)&seed;
	char key[16];

	for (int i = 0; i < 5000; i++) {
		struct got got;

		(void)snprintf(key, sizeof(key), "k%d", rand_r(&seed) % 64);
		got = get(many->cache, key);
		if (got.err != HG_OK ? got.err != HG_ERR_LIMIT : strcmp(got.text, key) != 0)
			atomic_fetch_add(&many->bad, 1);
	}
	return NULL;
}

/* H23, H73: short loads, many threads, a tiny table of flights: each key its own value, and each load alone. */
static void test_lane__each_key_its_own_value_and_one_load(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct many many = {.bad = 0};
	pthread_t threads[8];

	source_config(&source, &config);
	config.load = load_key;
	config.policy.ttl_us = 50;
	config.policy.grace_us = 0;
	config.flights_max = 32;
	many.cache = open_cache(&source, &config);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_for_many, &many), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	hg_cache_close(many.cache);
	assert_int_equal(many.bad, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lane__a_herd_makes_one_load_whatever_emptied_the_key),
		cmocka_unit_test(test_lane__counters_have_one_meaning),
		cmocka_unit_test(test_lane__a_herd_on_a_loader_that_fails),
		cmocka_unit_test(test_lane__a_herd_on_a_row_that_does_not_exist),
		cmocka_unit_test(test_lane__a_herd_on_what_must_not_be_cached),
		cmocka_unit_test(test_lane__a_private_value_is_shared_with_nobody),
		cmocka_unit_test(test_lane__a_lapse_hands_over_to_one_waiter),
		cmocka_unit_test(test_lane__a_deadline_is_its_waiters_own),
		cmocka_unit_test(test_lane__waiters_keep_the_time_by_themselves),
		cmocka_unit_test(test_lane__who_has_no_deadline_sees_none),
		cmocka_unit_test(test_lane__waiters_have_a_limit_with_a_name),
		cmocka_unit_test(test_lane__a_load_that_hangs_holds_up_no_other_key),
		cmocka_unit_test(test_lane__each_key_its_own_value_and_one_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
