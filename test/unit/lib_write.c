/* Puts, invalidations, purges and flushes, also in the middle of loads. */
#include "lib.h"

static void test_write__put_is_read_back_at_once(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	char text[16];

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	for (int i = 0; i < 100000; i++) {
		(void)snprintf(text, sizeof(text), "%d", i);
		assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text(text), 0, NULL), HG_OK);
		assert_got(get(cache, "k"), HG_FRESH, text);
	}
	assert_int_equal(source.loads, 0);
	hg_cache_close(cache);
}

static void test_write__lives_of_every_length(void **state)
{
	static const int64_t lives[] = {1, MS, 60 * S, INT64_MAX / 2, INT64_MAX - 1, HG_NEVER};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_fault fault;

	source_virtual(&source, &config);
	config.policy.grace_us = 0;
	config.load = NULL;
	cache = open_cache(&source, &config);
	assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("v"), -1, &fault), HG_ERR_ARGUMENT);
	assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("v"), INT64_MIN, &fault), HG_ERR_ARGUMENT);
	assert_int_equal(get(cache, "k").answer.outcome, HG_MISS);
	for (size_t i = 0; i < sizeof(lives) / sizeof(lives[0]); i++) {
		atomic_store(&virtual_us, 1000 * S);
		assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("v"), lives[i], NULL), HG_OK);
		assert_got(get(cache, "k"), HG_FRESH, "v");
		if (lives[i] > INT64_MAX / 4) {
			atomic_store(&virtual_us, INT64_MAX / 4);
			assert_got(get(cache, "k"), HG_FRESH, "v");
			continue;
		}
		atomic_fetch_add(&virtual_us, lives[i] - 1);
		assert_got(get(cache, "k"), HG_FRESH, "v");
		atomic_fetch_add(&virtual_us, 1);
		assert_int_equal(get(cache, "k").answer.outcome, HG_MISS);
	}
	hg_cache_close(cache);
}

static void test_write__jitter_only_shortens(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	int64_t least = INT64_MAX, most = 0;

	source_virtual(&source, &config);
	config.policy.jitter = 0.1;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 20000; i++) {
		int64_t life;

		assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("v"), 60 * S, NULL), HG_OK);
		life = get(cache, "k").answer.fresh_us;
		least = life < least ? life : least;
		most = life > most ? life : most;
	}
	assert_in_range(least, 54 * S, 54 * S + 100 * MS);
	assert_in_range(most, 60 * S - 100 * MS, 60 * S);
	hg_cache_close(cache);
}

static void test_write__put_ends_the_load_of_those_who_wait(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct asking leader, waiter;
	struct hg_stats stats;

	source_config(&source, &config);
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&source.inside);
	ask_begin(&waiter, cache, "k", NULL);
	until_waiting(cache, 1);
	assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("put"), 0, NULL), HG_OK);
	assert_got(ask_end(&waiter), HG_WAITED, "put");
	(void)sem_post(&source.gate);
	assert_got(ask_end(&leader), HG_LED, "v1"); /* what it computed */
	assert_got(get(cache, "k"), HG_FRESH, "put");
	stats = stats_of(cache);
	assert_int_equal(stats.fenced, 1);
	assert_int_equal(stats.loads, 1);
	hg_cache_close(cache);
}

/* H28, H36: the load began before the invalidation: it answers who asked before, and stores nothing. */
static void test_write__a_load_that_an_invalidation_overtakes_stores_nothing(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct asking leader, before;

	source_config(&source, &config);
	source.gated = true;
	cache = open_cache(&source, &config);
	ask_begin(&leader, cache, "k", NULL);
	wait_for(&source.inside);
	ask_begin(&before, cache, "k", NULL);
	until_waiting(cache, 1);
	source.version = 2;
	assert_false(hg_cache_invalidate(cache, hg_text("k")));
	(void)sem_post(&source.gate);
	assert_got(ask_end(&leader), HG_LED, "v1");
	assert_got(ask_end(&before), HG_WAITED, "v1");
	(void)sem_post(&source.gate);
	assert_got(get(cache, "k"), HG_LED, "v2");
	assert_got(get(cache, "k"), HG_FRESH, "v2");
	assert_int_equal(source.loads, 2);
	hg_cache_close(cache);
}

/* H19: the end of the first load does not take the second one's record away. H34: in either order of their ends. */
static void test_write__later_askers_join_the_newer_load(void **state)
{
	for (int first_ends_first = 0; first_ends_first < 2; first_ends_first++) {
		struct source one, two;
		struct hg_cache_config config;
		struct hg_cache *cache;
		struct asking first, second, third;
		struct hg_ask ask = {.load = load_source, .arg = &two};

		source_config(&two, &config);
		source_config(&one, &config);
		one.gated = two.gated = true;
		two.version = 2;
		cache = open_cache(&one, &config);
		ask_begin(&first, cache, "k", NULL);
		wait_for(&one.inside);
		(void)hg_cache_invalidate(cache, hg_text("k"));
		ask_begin(&second, cache, "k", &ask);
		wait_for(&two.inside);
		if (first_ends_first) {
			(void)sem_post(&one.gate);
			assert_got(ask_end(&first), HG_LED, "v1");
			ask_begin(&third, cache, "k", &ask);
			until_waiting(cache, 1);
			(void)sem_post(&two.gate);
			assert_got(ask_end(&second), HG_LED, "v2");
			assert_got(ask_end(&third), HG_WAITED, "v2");
		} else {
			(void)sem_post(&two.gate);
			assert_got(ask_end(&second), HG_LED, "v2");
			(void)sem_post(&one.gate);
			assert_got(ask_end(&first), HG_LED, "v1");
		}
		assert_got(get(cache, "k"), HG_FRESH, "v2");
		assert_int_equal(one.loads + two.loads, 2);
		assert_int_equal(stats_of(cache).fenced, 1);
		hg_cache_close(cache);
	}
}

/* H30: a flush while many keys load. */
static void test_write__a_flush_overtakes_every_load(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	static struct asking askings[200];
	static char keys[200][16];

	source_config(&source, &config);
	source.gated = true;
	cache = open_cache(&source, &config);
	assert_int_equal(hg_cache_put(cache, hg_text("other"), hg_text("old"), 0, NULL), HG_OK);
	for (int i = 0; i < 200; i++) {
		(void)snprintf(keys[i], sizeof(keys[i]), "k%d", i);
		ask_begin(&askings[i], cache, keys[i], NULL);
	}
	for (int i = 0; i < 200; i++)
		wait_for(&source.inside);
	source.version = 2;
	hg_cache_flush(cache);
	for (int i = 0; i < 200; i++)
		(void)sem_post(&source.gate);
	for (int i = 0; i < 200; i++)
		assert_got(ask_end(&askings[i]), HG_LED, "v1");
	source.gated = false;
	assert_int_equal(stats_of(cache).entries, 0);
	for (int i = 0; i < 200; i++)
		assert_got(get(cache, keys[i]), HG_LED, "v2");
	assert_got(get(cache, "other"), HG_LED, "v2");
	hg_cache_close(cache);
}

/* Mid-flush, on another thread, the value of one key is made out of that of another, which has not been flushed yet. */
static struct derived {
	struct hg_cache *cache;
	char outer[24], inner[24]; /* in the first lane, in the last one */
	atomic_int countdown;      /* looks at the clock until then */
	char made_of[8];
} derived;

static enum hg_outcome load_derived(struct hg_load *load, void *arg)
{
	struct hg_answer answer = {0};
	enum hg_outcome outcome;

	if (hg_cache_get(derived.cache, hg_text(derived.inner), NULL, &answer, NULL) != HG_OK)
		return HG_FAILED;
	(void)snprintf(derived.made_of, sizeof(derived.made_of), "%.*s", (int)answer.value.len,
		       (const char *)answer.value.at);
	outcome = hg_load_value(load, answer.value);
	hg_value_release(answer.given);
	return outcome;
}

static void *ask_derived(void *arg)
{
	struct hg_ask ask = {.load = load_derived};
	struct hg_answer answer = {0};
	enum hg_err err = hg_cache_get(derived.cache, hg_text(derived.outer), &ask, &answer, NULL);

	hg_value_release(answer.given);
	return err == HG_OK ? arg : NULL;
}

static int64_t now_and_derive(void *self)
{
	pthread_t thread;

	if (atomic_fetch_sub(&derived.countdown, 1) == 1) {
		assert_int_equal(pthread_create(&thread, NULL, ask_derived, NULL), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
	return virtual_now(self);
}

static void name_in_lane(char *out, struct hg_cache *cache, const struct lane *lane)
{
	struct key key;

	for (int i = 0; i < 10000; i++) {
		(void)snprintf(out, sizeof(derived.outer), "k%d", i);
		key = memory_key(cache->memory, hg_text(out), 0);
		if (cache_lane(cache, &key) == lane)
			return;
	}
	fail();
}

static void test_write__a_value_made_of_old_ones_during_a_flush_goes_too(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.clock.now_us = now_and_derive;
	atomic_store(&derived.countdown, 0);
	cache = derived.cache = open_cache(&source, &config);
	name_in_lane(derived.outer, cache, &cache->lanes[0]);
	name_in_lane(derived.inner, cache, &cache->lanes[CACHE_LANES - 1]);
	assert_got(get(cache, derived.inner), HG_LED, "v1");
	source.version = 2;
	atomic_store(&derived.countdown, CACHE_LANES / 2);
	hg_cache_flush(cache);
	assert_string_equal(derived.made_of, "v1");
	assert_got(get(cache, derived.inner), HG_LED, "v2");
	assert_got(get(cache, derived.outer), HG_LED, "v2");
	hg_cache_close(cache);
}

/* H40: what was flushed is no fall-back for an error. */
static void test_write__what_was_taken_away_is_not_served_instead_of_an_error(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "a"), HG_LED, "v1");
	assert_got(get(cache, "b"), HG_LED, "v1");
	pass_us(cache, 61 * S);
	hg_cache_flush(cache);
	source.outcome = HG_FAILED;
	assert_refused(get(cache, "a"), HG_ERR_LOAD);
	/* An invalidation says that the source has changed: it is asked again in spite of the back-off. */
	(void)hg_cache_invalidate(cache, hg_text("a"));
	source.outcome = 0;
	assert_got(get(cache, "a"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_write__purge_leaves_the_value_to_be_served_while_one_refresh_runs(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	config.policy.grace_us = 60 * S;
	cache = open_cache(&source, &config);
	assert_false(hg_cache_purge(cache, hg_text("k")));
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.version = 2;
	source.gated = true;
	assert_true(hg_cache_purge(cache, hg_text("k")));
	for (int i = 0; i < 100; i++)
		assert_got(get(cache, "k"), HG_STALE, "v1");
	wait_for(&source.inside);
	/* Purged again in mid-load: what that load brings may be as old. */
	source.version = 3;
	assert_true(hg_cache_purge(cache, hg_text("k")));
	while (source.loads < 3) /* another refresh, beside the overtaken one */
		assert_got(get(cache, "k"), HG_STALE, "v1");
	(void)sem_post(&source.gate);
	(void)sem_post(&source.gate);
	while (strcmp(get(cache, "k").text, "v3") != 0)
		(void)usleep(100);
	assert_got(get(cache, "k"), HG_FRESH, "v3");
	assert_int_equal(source.loads, 3);
	hg_cache_close(cache);
}

static void test_write__purge_without_grace_takes_away(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.policy.grace_us = 0;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	assert_true(hg_cache_purge(cache, hg_text("k")));
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.outcome = HG_ABSENT;
	assert_int_equal(get(cache, "row").answer.outcome, HG_ABSENT);
	assert_true(hg_cache_purge(cache, hg_text("row")));
	source.outcome = 0;
	assert_got(get(cache, "row"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_write__a_put_that_fails_leaves_no_older_value(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_fault fault;
	char *large = calloc(1, 8 << 20);

	source_virtual(&source, &config);
	config.value_bytes_max = 7 << 20;
	config.load = NULL;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 2; i++) {
		struct hg_bytes value = {large, (size_t)(i == 0 ? 8 : 6) << 20};

		assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("old"), 0, NULL), HG_OK);
		assert_int_equal(hg_cache_put(cache, hg_text("k"), value, 0, &fault), HG_ERR_LIMIT);
		assert_non_null(strstr(fault.text, i == 0 ? "value_bytes_max" : "max_bytes"));
		assert_int_equal(get(cache, "k").answer.outcome, HG_MISS);
	}
	hg_cache_close(cache);
	free(large);
}

/* H44: a version read after an acknowledged invalidation is never older than it. */
struct race {
	struct hg_cache *cache;
	struct source *source;
	atomic_int acknowledged;
	atomic_bool over;
	atomic_int bad;
};

static void *read_versions(void *arg)
{
	struct race *race = arg;

	while (!race->over) {
		int least = race->acknowledged, version = 0;
		struct got got = get(race->cache, "k");

		if (got.err == HG_OK && sscanf(got.text, "v%d", &version) == 1 && version < least)
			atomic_fetch_add(&race->bad, 1);
	}
	return NULL;
}

static void test_write__no_read_after_an_invalidation_is_older(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct race race = {.source = &source};
	pthread_t threads[4];

	source_config(&source, &config);
	config.policy.early = HG_EARLY_XFETCH;
	race.cache = open_cache(&source, &config);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, read_versions, &race), 0);
	for (int version = 2; version < 5000; version++) {
		atomic_store(&source.version, version);
		if (version % 7 == 0)
			hg_cache_flush(race.cache);
		else
			(void)hg_cache_invalidate(race.cache, hg_text("k"));
		atomic_store(&race.acknowledged, version);
	}
	race.over = true;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(race.bad, 0);
	hg_cache_close(race.cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_write__put_is_read_back_at_once),
		cmocka_unit_test(test_write__lives_of_every_length),
		cmocka_unit_test(test_write__jitter_only_shortens),
		cmocka_unit_test(test_write__put_ends_the_load_of_those_who_wait),
		cmocka_unit_test(test_write__a_load_that_an_invalidation_overtakes_stores_nothing),
		cmocka_unit_test(test_write__later_askers_join_the_newer_load),
		cmocka_unit_test(test_write__a_flush_overtakes_every_load),
		cmocka_unit_test(test_write__a_value_made_of_old_ones_during_a_flush_goes_too),
		cmocka_unit_test(test_write__what_was_taken_away_is_not_served_instead_of_an_error),
		cmocka_unit_test(test_write__purge_leaves_the_value_to_be_served_while_one_refresh_runs),
		cmocka_unit_test(test_write__purge_without_grace_takes_away),
		cmocka_unit_test(test_write__a_put_that_fails_leaves_no_older_value),
		cmocka_unit_test(test_write__no_read_after_an_invalidation_is_older),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
