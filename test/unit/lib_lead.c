/* Loaders that leave by odd paths (H08, H10): waiters are not stuck, and the key loads normally afterwards. */
#include "lib.h"

static struct asking waiters[8];

/* A leader that is inside its loader, and eight who wait for it. */
static void begin_scene(struct source *source, struct hg_cache *cache, struct asking *leader, const struct hg_ask *ask)
{
	source->gated = true;
	ask_begin(leader, cache, "k", ask);
	wait_for(&source->inside);
	source->gated = false;
	for (int i = 0; i < 8; i++)
		ask_begin(&waiters[i], cache, "k", NULL);
	until_waiting(cache, 8);
}

/* One of the eight took over, and all have the value. */
static void end_scene(struct hg_cache *cache)
{
	int led = 0;

	for (int i = 0; i < 8; i++) {
		struct got got = ask_end(&waiters[i]);

		assert_int_equal(got.err, HG_OK);
		assert_string_equal(got.text, "v2");
		led += got.answer.how == HG_LED;
	}
	assert_int_equal(led, 1);
	assert_int_equal(stats_of(cache).handed_over, 1);
	assert_int_equal(stats_of(cache).loading, 0);
	assert_got(get(cache, "k"), HG_FRESH, "v2");
}

/* Set by the leader's loader alone: the taker-over runs the cache's. */
struct leaver {
	struct source *source;
	jmp_buf back;
	bool abandons, sleeps;
	sem_t gone, go_on;
};

static enum hg_outcome exit_in_load(struct hg_load *load, void *arg)
{
	struct leaver *leaver = arg;

	(void)load_source(load, leaver->source);
	leaver->source->version = 2;
	pthread_exit(NULL);
}

static void test_lead__the_thread_exits_in_the_loader(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct leaver leaver = {.source = &source};
	struct hg_ask ask = {.load = exit_in_load, .arg = &leaver};
	struct asking leader;

	source_config(&source, &config);
	cache = open_cache(&source, &config);
	begin_scene(&source, cache, &leader, &ask);
	(void)sem_post(&source.gate);
	end_scene(cache);
	assert_int_equal(pthread_join(leader.thread, NULL), 0);
	assert_int_equal(source.loads, 2);
	hg_cache_close(cache);
}

static enum hg_outcome sleep_in_load(struct hg_load *load, void *arg)
{
	struct leaver *leaver = arg;

	(void)load_source(load, leaver->source);
	leaver->source->version = 2;
	(void)sem_post(&leaver->gone);
	while (leaver->source != NULL) {
		pthread_testcancel();
		(void)sched_yield();
	}
	return HG_FAILED;
}

static void test_lead__the_thread_is_cancelled_in_the_loader(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct leaver leaver = {.source = &source};
	struct hg_ask ask = {.load = sleep_in_load, .arg = &leaver};
	struct asking leader;
	void *result;

	(void)sem_init(&leaver.gone, 0, 0);
	source_config(&source, &config);
	cache = open_cache(&source, &config);
	begin_scene(&source, cache, &leader, &ask);
	(void)sem_post(&source.gate);
	wait_for(&leaver.gone);
	assert_int_equal(pthread_cancel(leader.thread), 0);
	end_scene(cache);
	assert_int_equal(pthread_join(leader.thread, &result), 0);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	hg_cache_close(cache);
}

static enum hg_outcome jump_out(struct hg_load *load, void *arg)
{
	struct leaver *leaver = arg;

	(void)load_source(load, leaver->source);
	leaver->source->version = 2;
	if (leaver->abandons)
		hg_load_abandon(load);
	longjmp(leaver->back, 1);
}

/* Asks, comes back by longjmp, and then does what the test says. */
static void *ask_and_jump(void *arg)
{
	struct asking *asking = arg;
	struct leaver *leaver = asking->ask->arg;

	if (setjmp(leaver->back) == 0) {
		asking->got = get_with(asking->cache, asking->key, asking->ask);
		return NULL;
	}
	(void)sem_post(&leaver->gone);
	wait_for(&leaver->go_on);
	if (!leaver->sleeps) /* any other ask of the same thread finds that it has left */
		asking->got = get(asking->cache, "other");
	return NULL;
}

static void jump_scene(struct leaver *leaver, struct source *source, struct asking *leader, const struct hg_ask *ask)
{
	struct hg_cache *cache = source->cache;

	(void)sem_init(&leaver->gone, 0, 0);
	(void)sem_init(&leaver->go_on, 0, 0);
	leaver->source = source;
	source->gated = true;
	*leader = (struct asking){.cache = cache, .key = "k", .ask = ask};
	assert_int_equal(pthread_create(&leader->thread, NULL, ask_and_jump, leader), 0);
	wait_for(&source->inside);
	source->gated = false;
	for (int i = 0; i < 8; i++)
		ask_begin(&waiters[i], cache, "k", NULL);
	until_waiting(cache, 8);
	(void)sem_post(&source->gate);
	wait_for(&leaver->gone);
}

static void test_lead__longjmp_after_abandon_hands_over_at_once(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct leaver leaver = {.abandons = true};
	struct hg_ask ask = {.load = jump_out, .arg = &leaver};
	struct asking leader;

	source_config(&source, &config);
	(void)open_cache(&source, &config);
	jump_scene(&leaver, &source, &leader, &ask);
	end_scene(source.cache);
	(void)sem_post(&leaver.go_on);
	assert_got(ask_end(&leader), HG_LED, "v2");
	hg_cache_close(source.cache);
}

static void test_lead__longjmp_is_found_at_the_next_ask(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct leaver leaver = {.abandons = false};
	struct hg_ask ask = {.load = jump_out, .arg = &leaver};
	struct asking leader;

	source_config(&source, &config);
	config.policy.wait_us = HG_NEVER;
	(void)open_cache(&source, &config);
	jump_scene(&leaver, &source, &leader, &ask);
	assert_int_equal(stats_of(source.cache).waiting, 8);
	(void)sem_post(&leaver.go_on);
	end_scene(source.cache);
	assert_got(ask_end(&leader), HG_LED, "v2");
	hg_cache_close(source.cache);
}

static void test_lead__longjmp_is_found_at_the_threads_end(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct leaver leaver = {.sleeps = true};
	struct hg_ask ask = {.load = jump_out, .arg = &leaver};
	struct asking leader;

	source_config(&source, &config);
	config.policy.wait_us = HG_NEVER;
	(void)open_cache(&source, &config);
	jump_scene(&leaver, &source, &leader, &ask);
	(void)sem_post(&leaver.go_on);
	end_scene(source.cache);
	(void)ask_end(&leader);
	hg_cache_close(source.cache);
}

static atomic_long blocks;

static void *count_blocks(void *self, void *at, size_t size)
{
	if (size > 0) {
		atomic_fetch_add(&blocks, at == NULL);
		return realloc(at, size);
	}
	atomic_fetch_sub(&blocks, at != NULL);
	free(at);
	return NULL;
}

/* Its thread neither asks again nor ends: the time limit of the load is what is left. And the close frees all of it. */
static void test_lead__longjmp_that_nobody_finds_lapses(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct leaver leaver = {.sleeps = true};
	struct hg_ask ask = {.load = jump_out, .arg = &leaver};
	struct asking leader;
	struct hg_allocator allocator = {count_blocks, NULL};

	source_virtual(&source, &config);
	config.allocator = &allocator;
	config.policy.wait_us = HG_NEVER;
	(void)open_cache(&source, &config);
	jump_scene(&leaver, &source, &leader, &ask);
	pass_us(source.cache, 30 * S);
	for (int i = 0; i < 8; i++)
		assert_int_equal(ask_end(&waiters[i]).err, HG_OK);
	hg_cache_close(source.cache);
	assert_int_equal(blocks, 0);
	(void)sem_post(&leaver.go_on);
	(void)ask_end(&leader);
}

static void abandon_and_return(struct source *source, struct hg_load *load)
{
	hg_load_abandon(load);
	hg_load_abandon(load);
	assert_false(hg_load_wanted(load));
}

static void test_lead__returning_after_abandon_is_an_error(void **state)
{
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	source_virtual(&source, &config);
	source.during = abandon_and_return;
	cache = open_cache(&source, &config);
	assert_refused(get(cache, "k"), HG_ERR_LOAD);
	source.during = NULL;
	assert_got(get(cache, "k"), HG_LED, "v1"); /* no back-off: nothing is known of the source */
	hg_cache_close(cache);
}

static void test_lead__outcomes_that_a_loader_cannot_have_are_errors(void **state)
{
	static const int outcomes[] = {HG_MISS, 77, -1};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;

	for (size_t i = 0; i < 3; i++) {
		source_virtual(&source, &config);
		source.outcome = (enum hg_outcome)outcomes[i];
		cache = open_cache(&source, &config);
		assert_refused(get(cache, "k"), HG_ERR_LOAD);
		hg_cache_close(cache);
	}
}

static enum hg_outcome write_in_room(struct hg_load *load, void *arg)
{
	char *room = hg_load_room(load, 3);

	assert_int_equal(hg_load_left_us(load), 30 * S);
	memcpy(room, "abc", 3);
	assert_int_equal(hg_load_key(load).len, 1);
	assert_null(hg_load_room(load, SIZE_MAX));
	return HG_VALUE;
}

static enum hg_outcome say_much(struct hg_load *load, void *arg)
{
	char text[1000];

	memset(text, 'e', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	return hg_load_error(load, text);
}

static void test_lead__what_a_loader_writes(void **state)
{
	struct hg_ask room = {.load = write_in_room}, much = {.load = say_much};
	struct source source;
	struct hg_cache_config config;
	struct hg_cache *cache;
	struct got got;

	source_virtual(&source, &config);
	cache = open_cache(&source, &config);
	assert_got(get_with(cache, "k", &room), HG_LED, "abc");
	got = get_with(cache, "m", &much);
	assert_refused(got, HG_ERR_LOAD);
	assert_int_equal(strlen(got.fault.text), 200);
	hg_cache_close(cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lead__the_thread_exits_in_the_loader),
		cmocka_unit_test(test_lead__the_thread_is_cancelled_in_the_loader),
		cmocka_unit_test(test_lead__longjmp_after_abandon_hands_over_at_once),
		cmocka_unit_test(test_lead__longjmp_is_found_at_the_next_ask),
		cmocka_unit_test(test_lead__longjmp_is_found_at_the_threads_end),
		cmocka_unit_test(test_lead__longjmp_that_nobody_finds_lapses),
		cmocka_unit_test(test_lead__returning_after_abandon_is_an_error),
		cmocka_unit_test(test_lead__outcomes_that_a_loader_cannot_have_are_errors),
		cmocka_unit_test(test_lead__what_a_loader_writes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
