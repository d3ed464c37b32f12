/* Loads within loads (H78, rule 14): they work, and where they would wait for one another they end in an error. */
#include "lib.h"

/* A loader that asks for other keys: "a" for "b" and so on, by a table. */
struct plan {
	struct hg_cache *cache[26];  /* where the key is asked for, by its letter; NULL: the first */
	const char *asks[26];        /* what the loader of a letter asks for */
	sem_t inside[26], go_on[26]; /* with `stepped`: the loader of that letter says so, and waits */
	bool stepped;
	enum hg_err err[26]; /* what that ask came to */
	atomic_int loads;
};

static struct plan plan;

static enum hg_outcome load_by_plan(struct hg_load *load, void *arg)
{
	int letter = *(const char *)hg_load_key(load).at - 'a';
	const char *ask = plan.asks[letter];
	struct got got;
	char text[80];

	atomic_fetch_add(&plan.loads, 1);
	if (plan.stepped) {
		(void)sem_post(&plan.inside[letter]);
		wait_for(&plan.go_on[letter]);
	}
	if (ask == NULL)
		return hg_load_value(load, hg_text("leaf"));
	got = get(plan.cache[*ask - 'a'], ask);
	plan.err[letter] = got.err;
	(void)snprintf(text, sizeof(text), "%s>%s", ask, got.err == HG_OK ? got.text : hg_err_name(got.err));
	return hg_load_value(load, hg_text(text));
}

static struct hg_cache *open_plan(bool stepped)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_config(&source, &config);
	config.load = load_by_plan;
	cache = open_cache(&source, &config);
	memset(&plan, 0, sizeof(plan));
	plan.stepped = stepped;
	for (int i = 0; i < 26; i++) {
		plan.cache[i] = cache;
		(void)sem_init(&plan.inside[i], 0, 0);
		(void)sem_init(&plan.go_on[i], 0, 0);
	}
	return cache;
}

static void test_graph__a_loader_may_ask_for_another_key(void **state)
{
	struct hg_cache *cache = open_plan(false);

	plan.asks[0] = "b";
	plan.asks[1] = "c";
	assert_got(get(cache, "a"), HG_LED, "b>c>leaf");
	assert_got(get(cache, "b"), HG_FRESH, "c>leaf");
	assert_int_equal(plan.loads, 3);
	hg_cache_close(cache);
}

static void test_graph__its_own_key_is_refused(void **state)
{
	struct hg_cache *cache = open_plan(false);

	plan.asks[0] = "a";
	assert_got(get(cache, "a"), HG_LED, "a>HG_ERR_NESTED");
	assert_int_equal(stats_of(cache).nested, 1);
	(void)hg_cache_invalidate(cache, hg_text("a"));
	plan.asks[0] = "b";
	plan.asks[1] = "a"; /* by a detour */
	assert_got(get(cache, "a"), HG_LED, "b>a>HG_ERR_NESTED");
	assert_int_equal(plan.err[1], HG_ERR_NESTED);
	hg_cache_close(cache);
}

static void test_graph__loads_nest_only_so_deep(void **state)
{
	static const char *const letters[] = {"b", "c", "d", "e", "f", "g", "h", "i", "j", "k",
					      "l", "m", "n", "o", "p", "q", "r", "s", "t"};
	struct hg_cache *cache = open_plan(false);

	for (int i = 0; i < 19; i++)
		plan.asks[i] = letters[i];
	assert_int_equal(get(cache, "a").err, HG_OK);
	assert_int_equal(plan.err[14], HG_OK);
	assert_int_equal(plan.err[15], HG_ERR_LIMIT);
	assert_int_equal(plan.loads, 16);
	hg_cache_close(cache);
}

/* `len` threads, each in the loader of a letter that asks for the next one's; the last asks for the first. Exactly the
 * ask that would close the circle is refused. */
static void run_circle(struct hg_cache *cache, int len)
{
	static const char *const letters[] = {"a", "b", "c", "d", "e"};
	struct asking askings[5];
	int nested = 0;

	for (int i = 0; i < len; i++) {
		plan.asks[i] = letters[(i + 1) % len];
		ask_begin(&askings[i], plan.cache[i], letters[i], NULL);
	}
	for (int i = 0; i < len; i++)
		wait_for(&plan.inside[i]);
	for (int i = 0; i < len; i++)
		(void)sem_post(&plan.go_on[i]);
	for (int i = 0; i < len; i++) {
		assert_int_equal(ask_end(&askings[i]).err, HG_OK);
		nested += plan.err[i] == HG_ERR_NESTED;
	}
	assert_int_equal(nested, 1);
	assert_int_equal(plan.loads, len);
}

static void test_graph__circles_over_threads_are_cut_once(void **state)
{
	for (int len = 2; len <= 5; len++) {
		struct hg_cache *cache = open_plan(true);

		run_circle(cache, len);
		assert_int_equal(stats_of(cache).nested, 1);
		hg_cache_close(cache);
	}
}

static void test_graph__circles_over_two_caches_are_cut_too(void **state)
{
	struct hg_cache *one = open_plan(true), *two;
	struct source source;
	struct hg_cache_config config;

	source_config(&source, &config);
	config.load = load_by_plan;
	two = open_cache(&source, &config);
	plan.cache[1] = two;
	run_circle(one, 2);
	assert_int_equal(stats_of(one).nested + stats_of(two).nested, 1);
	hg_cache_close(one);
	hg_cache_close(two);
}

/* Two who wait for a third are no circle, however they are nested. */
static void test_graph__waiting_without_a_circle_is_no_error(void **state)
{
	struct hg_cache *cache = open_plan(true);
	struct asking askings[3];

	plan.asks[0] = "c";
	plan.asks[1] = "c";
	ask_begin(&askings[2], cache, "c", NULL);
	wait_for(&plan.inside[2]);
	ask_begin(&askings[0], cache, "a", NULL);
	ask_begin(&askings[1], cache, "b", NULL);
	wait_for(&plan.inside[0]);
	wait_for(&plan.inside[1]);
	(void)sem_post(&plan.go_on[0]);
	(void)sem_post(&plan.go_on[1]);
	until_waiting(cache, 2);
	(void)sem_post(&plan.go_on[2]);
	assert_got(ask_end(&askings[0]), HG_LED, "c>leaf");
	assert_got(ask_end(&askings[1]), HG_LED, "c>leaf");
	assert_got(ask_end(&askings[2]), HG_LED, "leaf");
	assert_int_equal(stats_of(cache).nested, 0);
	hg_cache_close(cache);
}

static enum hg_outcome exit_when_told(struct hg_load *load, void *arg)
{
	(void)sem_post(&plan.inside[2]);
	wait_for(&plan.go_on[2]);
	pthread_exit(NULL);
}

/* c's leader goes, and a waiter from outside takes c over; its loader then asks for a, whose loader waits for c. */
static void test_graph__a_hand_over_moves_the_edges(void **state)
{
	struct hg_cache *cache = open_plan(true);
	struct hg_ask leaver = {.load = exit_when_told}, patient = {.wait_us = HG_NEVER};
	struct asking first, taker, nested;

	plan.asks[0] = "c";
	plan.asks[2] = "a";
	ask_begin(&first, cache, "c", &leaver);
	wait_for(&plan.inside[2]);
	ask_begin(&taker, cache, "c", &patient);
	until_waiting(cache, 1);
	ask_begin(&nested, cache, "a", NULL);
	wait_for(&plan.inside[0]);
	(void)sem_post(&plan.go_on[0]);
	until_waiting(cache, 2);
	(void)sem_post(&plan.go_on[2]); /* first exits */
	wait_for(&plan.inside[2]);      /* taker is in the loader of c */
	(void)sem_post(&plan.go_on[2]);
	assert_got(ask_end(&taker), HG_LED, "a>HG_ERR_NESTED");
	assert_got(ask_end(&nested), HG_LED, "c>a>HG_ERR_NESTED");
	assert_int_equal(pthread_join(first.thread, NULL), 0);
	assert_int_equal(stats_of(cache).nested, 1);
	hg_cache_close(cache);
}

/* Random loaders that ask for random keys from many threads: whatever happens, nobody is stuck. */
static enum hg_outcome load_at_random(struct hg_load *load, void *arg)
{
	static _Atomic unsigned seeds = 1;
	unsigned seed = atomic_fetch_add(&seeds, 1);
	char key[2] = "a";
	struct got got;

	for (int i = 0; i < 2; i++) {
		key[0] = (char)('a' + rand_r(&seed) % 6);
		got = get(plan.cache[0], key);
		if (got.err != HG_OK && got.err != HG_ERR_NESTED)
			return hg_load_error(load, hg_err_name(got.err));
	}
	return hg_load_value(load, hg_load_key(load));
}

static void *ask_at_random(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)&seed;
	char key[2] = "a";
	long bad = 0;

	for (int i = 0; i < 2000; i++) {
		key[0] = (char)('a' + rand_r(&seed) % 6);
		bad += get(plan.cache[0], key).err != HG_OK;
		if (i % 5 == 0)
			(void)hg_cache_invalidate(plan.cache[0], hg_text(key));
	}
	return (void *)bad;
}

static void test_graph__random_nesting_is_never_stuck(void **state)
{
	struct source source;
	struct hg_cache_config config;
	pthread_t threads[6];
	void *bad;

	source_config(&source, &config);
	config.load = load_at_random;
	config.policy.ttl_us = 200;
	config.policy.grace_us = 0;
	config.policy.wait_us = HG_NEVER; /* a circle that is not found hangs the test */
	plan.cache[0] = open_cache(&source, &config);
	for (int i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_at_random, NULL), 0);
	for (int i = 0; i < 6; i++) {
		assert_int_equal(pthread_join(threads[i], &bad), 0);
		assert_null(bad);
	}
	assert_true(stats_of(plan.cache[0]).nested > 0);
	hg_cache_close(plan.cache[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_graph__a_loader_may_ask_for_another_key),
		cmocka_unit_test(test_graph__its_own_key_is_refused),
		cmocka_unit_test(test_graph__loads_nest_only_so_deep),
		cmocka_unit_test(test_graph__circles_over_threads_are_cut_once),
		cmocka_unit_test(test_graph__circles_over_two_caches_are_cut_too),
		cmocka_unit_test(test_graph__waiting_without_a_circle_is_no_error),
		cmocka_unit_test(test_graph__a_hand_over_moves_the_edges),
		cmocka_unit_test(test_graph__random_nesting_is_never_stuck),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
