/* hg_cache_get(): a single caller under a clock set by hand. */
#include "lib.h"

static void test_get__loads_once_then_hits(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_got(get(cache, "hot"), HG_LED, "v1");
	for (int i = 0; i < 100; i++)
		assert_got(get(cache, "hot"), HG_FRESH, "v1");
	assert_int_equal(source.loads, 1);
	stats = stats_of(cache);
	assert_int_equal(stats.asks, 101);
	assert_int_equal(stats.led, 1);
	assert_int_equal(stats.fresh, 100);
	assert_int_equal(stats.entries, 1);
	hg_cache_close(cache);
}

static void test_get__without_grace_expiry_is_absence(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.policy.grace_us = 0;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	source.version = 2;
	pass_us(cache, 60 * S - 1);
	assert_got(get(cache, "k"), HG_FRESH, "v1");
	pass_us(cache, 1);
	assert_got(get(cache, "k"), HG_LED, "v2");
	hg_cache_close(cache);
}

static void test_get__six_results_stay_different(void **state)
{
	static const enum hg_outcome outcomes[] = {HG_VALUE, HG_EMPTY, HG_ABSENT, HG_NOSTORE, HG_PRIVATE};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	source.outcome = 0;
	assert_int_equal(get(cache, "value").answer.outcome, HG_VALUE);
	for (int i = 1; i < 5; i++) {
		struct got got;

		source.outcome = outcomes[i];
		got = get(cache, hg_outcome_name(outcomes[i]));
		assert_int_equal(got.err, HG_OK);
		assert_int_equal(got.answer.outcome, outcomes[i]);
		assert_int_equal(got.answer.value.len, i < 3 ? 0 : 2);
	}
	source.outcome = HG_FAILED;
	assert_refused(get(cache, "failed"), HG_ERR_LOAD);
	/* And again: three are cached, two are not, the error is remembered. */
	source.loads = 0;
	source.outcome = HG_NOSTORE;
	assert_int_equal(get(cache, "value").answer.outcome, HG_VALUE);
	assert_int_equal(get(cache, "empty").answer.outcome, HG_EMPTY);
	assert_int_equal(get(cache, "absent").answer.outcome, HG_ABSENT);
	assert_int_equal(get(cache, "absent").answer.how, HG_FRESH);
	assert_refused(get(cache, "failed"), HG_ERR_BACKOFF);
	assert_int_equal(source.loads, 0);
	assert_got(get(cache, "nostore"), HG_PASSED, "v1");
	assert_got(get(cache, "private"), HG_PASSED, "v1");
	assert_int_equal(source.loads, 2);
	stats = stats_of(cache);
	assert_int_equal(stats.nostores, 2);
	assert_int_equal(stats.passed, 2);
	assert_int_equal(stats.absences, 1);
	hg_cache_close(cache);
}

static void test_get__no_such_row_is_remembered_for_its_own_time(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	source.outcome = HG_ABSENT;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(get(cache, "row").answer.outcome, HG_ABSENT);
	assert_int_equal(source.loads, 1);
	source.outcome = 0; /* the row is inserted */
	pass_us(cache, 5 * S - 1);
	assert_int_equal(get(cache, "row").answer.outcome, HG_ABSENT);
	pass_us(cache, 1);
	assert_got(get(cache, "row"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_get__zero_turns_off_what_it_names(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.policy.absent_ttl_us = 0;
	config.policy.error_backoff_us = 0;
	config.policy.grace_us = 0;
	cache = open_cache(&source, &config);
	source.outcome = HG_ABSENT;
	for (int i = 0; i < 10; i++)
		assert_int_equal(get(cache, "row").answer.outcome, HG_ABSENT);
	assert_int_equal(source.loads, 10);
	source.outcome = HG_FAILED;
	for (int i = 0; i < 1000; i++) /* every ask after a failure makes its own attempt */
		assert_refused(get(cache, "bad"), HG_ERR_LOAD);
	assert_int_equal(source.loads, 1010);
	source.outcome = 0;
	assert_got(get(cache, "bad"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_get__errors_are_backed_off_longer_each_time(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	int64_t span = 250 * MS;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	source.outcome = HG_FAILED;
	source.error = "no route to the source";
	for (int i = 0; i < 8; i++) {
		struct got got = get(cache, "k");

		assert_refused(got, HG_ERR_LOAD);
		assert_string_equal(got.fault.text, "no route to the source");
		got = get(cache, "k");
		assert_refused(got, HG_ERR_BACKOFF);
		assert_int_equal(got.fault.retry_after_us, span);
		pass_us(cache, span - 1);
		assert_refused(get(cache, "k"), HG_ERR_BACKOFF);
		assert_int_equal(source.loads, i + 1);
		pass_us(cache, 1);
		span = span * 2 < 10 * S ? span * 2 : 10 * S;
	}
	source.outcome = 0;
	assert_got(get(cache, "k"), HG_LED, "v1");
	hg_cache_close(cache);
}

static void test_get__only_cached_neither_loads_nor_lies(void **state)
{
	struct hg_ask probe = {.only_cached = true};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_int_equal(get_with(cache, "k", &probe).answer.outcome, HG_MISS);
	assert_int_equal(source.loads, 0);
	assert_got(get(cache, "k"), HG_LED, "v1");
	assert_got(get_with(cache, "k", &probe), HG_FRESH, "v1");
	pass_us(cache, 61 * S);
	assert_got(get_with(cache, "k", &probe), HG_STALE, "v1");
	assert_int_equal(source.loads, 1);
	source.outcome = HG_ABSENT;
	assert_int_equal(get(cache, "row").answer.outcome, HG_ABSENT);
	assert_int_equal(get_with(cache, "row", &probe).answer.outcome, HG_ABSENT);
	stats = stats_of(cache);
	assert_int_equal(stats.probes, 4);
	assert_int_equal(stats.asks, 2);
	hg_cache_close(cache);
}

static void test_get__without_a_loader_a_miss_is_a_miss(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.load = NULL;
	cache = open_cache(&source, &config);
	assert_int_equal(get(cache, "k").answer.outcome, HG_MISS);
	assert_int_equal(hg_cache_put(cache, hg_text("k"), hg_text("put"), 0, NULL), HG_OK);
	assert_got(get(cache, "k"), HG_FRESH, "put");
	hg_cache_close(cache);
}

/* Sizes around every limit, any bytes; into the caller's room where it fits, else given. */
static void test_get__values_of_any_size_and_bytes_come_back_whole(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 15, 16, 4095, 4096, 4097, 65535, 65536, 300000};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	unsigned char *bytes = malloc(300000), *room = malloc(65536);

	for (size_t i = 0; i < 300000; i++)
		bytes[i] = (unsigned char)(i * 131 >> 3);
	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct hg_bytes key = {bytes + i, i * 11}, value = {bytes, sizes[i]};

		assert_int_equal(hg_cache_put(cache, key, value, HG_NEVER, NULL), HG_OK);
		for (size_t room_bytes = 0; room_bytes <= 65536; room_bytes += 32768) {
			struct hg_answer answer = {.room = room_bytes > 0 ? room : NULL, .room_bytes = room_bytes};

			assert_int_equal(hg_cache_get(cache, key, NULL, &answer, NULL), HG_OK);
			assert_int_equal(answer.outcome, sizes[i] > 0 ? HG_VALUE : HG_EMPTY);
			assert_int_equal(answer.value.len, sizes[i]);
			assert_true(sizes[i] == 0 || memcmp(answer.value.at, bytes, sizes[i]) == 0);
			assert_true((answer.given == NULL) == (sizes[i] == 0 || sizes[i] <= room_bytes));
			if (answer.given != NULL)
				assert_ptr_equal(hg_value_bytes(answer.given).at, answer.value.at);
			hg_value_release(answer.given);
		}
	}
	hg_cache_close(cache);
	free(bytes);
	free(room);
}

static void test_get__a_given_value_outlives_its_cache(void **state)
{
	struct hg_answer answer = {0};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_int_equal(hg_cache_get(cache, hg_text("k"), NULL, &answer, NULL), HG_OK);
	assert_non_null(answer.given);
	hg_cache_close(cache);
	assert_memory_equal(answer.value.at, "v1", 2);
	hg_value_release(answer.given);
	hg_value_release(NULL);
}

static void test_get__a_key_too_long_is_refused_by_name(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_answer answer = {0};
	struct hg_fault fault;
	char *key = calloc(1, 65536);

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_int_equal(hg_cache_get(cache, (struct hg_bytes){key, 65536}, NULL, &answer, &fault), HG_ERR_ARGUMENT);
	assert_non_null(strstr(fault.text, "key_bytes_max"));
	assert_int_equal(hg_cache_get(cache, (struct hg_bytes){key, 65535}, NULL, &answer, NULL), HG_OK);
	hg_value_release(answer.given);
	assert_int_equal(hg_cache_put(cache, (struct hg_bytes){key, 65536}, hg_text("v"), 0, &fault), HG_ERR_ARGUMENT);
	hg_cache_close(cache);
	free(key);
}

/* A value over the limit is answered; what is stored is what fits. */
static void test_get__a_value_too_large_is_answered_not_stored(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.value_bytes_max = 1;
	cache = open_cache(&source, &config);
	assert_got(get(cache, "k"), HG_LED, "v1");
	assert_got(get(cache, "k"), HG_LED, "v1");
	assert_int_equal(stats_of(cache).not_stored, 2);
	assert_int_equal(stats_of(cache).entries, 0);
	hg_cache_close(cache);
}

static void test_get__a_fast_load_is_no_hit(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct hg_stats stats;
	char key[16];

	source_virtual(&source, &config);
	config.max_bytes = 16 << 20;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(key, sizeof(key), "k%d", i);
		assert_got(get(cache, key), HG_LED, "v1");
	}
	stats = stats_of(cache);
	assert_int_equal(stats.fresh, 0);
	assert_int_equal(stats.led, 10000);
	assert_int_equal(stats.loads, 10000);
	hg_cache_close(cache);
}

/* H109: failing keys push nothing out. */
static void test_get__failed_loads_leave_nothing_in_the_store(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	char key[16];

	source_virtual(&source, &config);
	config.max_bytes = 1 << 20;
	cache = open_cache(&source, &config);
	for (int i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof(key), "warm%d", i);
		assert_got(get(cache, key), HG_LED, "v1");
	}
	source.outcome = HG_FAILED;
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(key, sizeof(key), "bad%d", i);
		assert_refused(get(cache, key), HG_ERR_LOAD);
	}
	for (int i = 0; i < 100; i++) {
		(void)snprintf(key, sizeof(key), "warm%d", i);
		assert_got(get(cache, key), HG_FRESH, "v1");
	}
	hg_cache_close(cache);
}

static void test_get__a_life_of_its_own_per_ask_and_per_load(void **state)
{
	struct hg_ask ask = {.ttl_us = 10 * S};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	config.policy.grace_us = 0;
	cache = open_cache(&source, &config);
	assert_int_equal(get_with(cache, "a", &ask).answer.fresh_us, 10 * S);
	source.ttl_us = 3 * S;
	assert_int_equal(get_with(cache, "b", &ask).answer.fresh_us, 3 * S);
	source.ttl_us = HG_NEVER;
	(void)get_with(cache, "c", &ask);
	source.ttl_us = -5;
	assert_int_equal(get(cache, "d").answer.fresh_us, 60 * S);
	pass_us(cache, 3 * S);
	source.ttl_us = 0;
	assert_int_equal(get(cache, "a").answer.fresh_us, 7 * S);
	assert_int_equal(get(cache, "b").answer.how, HG_LED);
	pass_us(cache, INT64_C(100) * 365 * 86400 * S);
	assert_int_equal(get(cache, "c").answer.how, HG_FRESH);
	assert_int_equal(get(cache, "d").answer.how, HG_LED);
	hg_cache_close(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_get__loads_once_then_hits),
		cmocka_unit_test(test_get__without_grace_expiry_is_absence),
		cmocka_unit_test(test_get__six_results_stay_different),
		cmocka_unit_test(test_get__no_such_row_is_remembered_for_its_own_time),
		cmocka_unit_test(test_get__zero_turns_off_what_it_names),
		cmocka_unit_test(test_get__errors_are_backed_off_longer_each_time),
		cmocka_unit_test(test_get__only_cached_neither_loads_nor_lies),
		cmocka_unit_test(test_get__without_a_loader_a_miss_is_a_miss),
		cmocka_unit_test(test_get__values_of_any_size_and_bytes_come_back_whole),
		cmocka_unit_test(test_get__a_given_value_outlives_its_cache),
		cmocka_unit_test(test_get__a_key_too_long_is_refused_by_name),
		cmocka_unit_test(test_get__a_value_too_large_is_answered_not_stored),
		cmocka_unit_test(test_get__a_fast_load_is_no_hit),
		cmocka_unit_test(test_get__failed_loads_leave_nothing_in_the_store),
		cmocka_unit_test(test_get__a_life_of_its_own_per_ask_and_per_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
