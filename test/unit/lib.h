/* lib.h - for the tests of the library: a cache with a clock that is set by hand, and a source that counts. */
#ifndef TEST_UNIT_LIB_H
#define TEST_UNIT_LIB_H

#include "failing.h"

#include "lib/cache.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MS HG_MILLISECOND
#define S HG_SECOND

/* A clock that stands until it is moved. */
static _Atomic int64_t virtual_us;

static inline int64_t virtual_now(void *self)
{
	return atomic_load(&virtual_us);
}

/* Where values come from. Each loader run is counted; what it does is set by the test. */
struct source {
	atomic_int loads, running, running_max;
	atomic_int version;      /* in the value: "v1", "v2" … */
	int64_t takes_us;        /* virtual: the clock is moved on by it */
	enum hg_outcome outcome; /* 0: a value */
	const char *error;
	int64_t ttl_us;
	bool gated; /* waits for `gate` before it returns, having posted `inside` */
	sem_t inside, gate;
	void (*_Atomic during)(struct source *source, struct hg_load *load);
	struct hg_cache *cache;
};

static inline void wait_for(sem_t *semaphore)
{
	while (sem_wait(semaphore) != 0)
		continue;
}

static inline enum hg_outcome load_source(struct hg_load *load, void *arg)
{
	struct source *source = arg;
	int running = atomic_fetch_add(&source->running, 1) + 1;
	int most = atomic_load(&source->running_max);
	void (*during)(struct source *, struct hg_load *);
	enum hg_outcome outcome;
	char text[32];

	while (running > most && !atomic_compare_exchange_weak(&source->running_max, &most, running))
		continue;
	atomic_fetch_add(&source->loads, 1);
	(void)snprintf(text, sizeof(text), "v%d", atomic_load(&source->version));
	if (source->gated) {
		(void)sem_post(&source->inside);
		wait_for(&source->gate);
	}
	during = atomic_load(&source->during);
	if (during != NULL)
		during(source, load);
	atomic_fetch_add(&virtual_us, source->takes_us);
	if (source->ttl_us != 0)
		hg_load_ttl(load, source->ttl_us);
	outcome = source->outcome;
	if (outcome == HG_FAILED)
		(void)hg_load_error(load, source->error != NULL ? source->error : "the source is down");
	else if (outcome == 0)
		outcome = hg_load_value(load, hg_text(text));
	else if (outcome == HG_NOSTORE || outcome == HG_PRIVATE)
		(void)hg_load_value(load, hg_text(text));
	atomic_fetch_sub(&source->running, 1);
	return outcome;
}

/* A policy without chance: no jitter, nothing early. */
static inline void source_config(struct source *source, struct hg_cache_config *config)
{
	memset(source, 0, sizeof(*source));
	(void)sem_init(&source->inside, 0, 0);
	(void)sem_init(&source->gate, 0, 0);
	atomic_store(&source->version, 1);
	hg_cache_config_init(config);
	config->policy.jitter = 0;
	config->policy.early = HG_EARLY_OFF;
	config->policy.ttl_us = 60 * S;
	config->policy.wait_us = HG_NEVER; /* a loaded machine is no failure */
	config->max_bytes = 4 << 20;
	config->load = load_source;
	config->arg = source;
	config->seed = 1;
}

/* The same, under the clock that is set by hand. */
static inline void source_virtual(struct source *source, struct hg_cache_config *config)
{
	source_config(source, config);
	config->clock.now_us = virtual_now;
	atomic_store(&virtual_us, 1000 * S);
}

static inline struct hg_cache *open_cache(struct source *source, const struct hg_cache_config *config)
{
	struct hg_fault fault;

	if (hg_cache_open(config, &source->cache, &fault) != HG_OK)
		fail_msg("%s", fault.text);
	return source->cache;
}

/* Moves the clock and lets the cache do what is due. */
static inline void pass_us(struct hg_cache *cache, int64_t span_us)
{
	atomic_fetch_add(&virtual_us, span_us);
	hg_cache_tick(cache);
}

/* What an ask came to. */
struct got {
	enum hg_err err;
	struct hg_fault fault;
	struct hg_answer answer;
	char text[64]; /* the value, terminated */
};

static inline struct got get_with(struct hg_cache *cache, const char *key, const struct hg_ask *ask)
{
	struct got got;

	memset(&got, 0, sizeof(got));
	got.answer.room = got.text;
	got.answer.room_bytes = sizeof(got.text) - 1;
	got.err = hg_cache_get(cache, hg_text(key), ask, &got.answer, &got.fault);
	got.answer.room = NULL;
	return got;
}

static inline struct got get(struct hg_cache *cache, const char *key)
{
	return get_with(cache, key, NULL);
}

#define assert_got(call, wanted_how, wanted_text)                                           \
	do {                                                                                \
		struct got got_ = (call);                                                   \
                                                                                            \
		assert_string_equal(hg_err_name(got_.err), "HG_OK");                        \
		assert_string_equal(hg_how_name(got_.answer.how), hg_how_name(wanted_how)); \
		assert_string_equal(got_.text, wanted_text);                                \
	} while (0)

#define assert_refused(call, wanted_err)                                             \
	do {                                                                         \
		struct got got_ = (call);                                            \
                                                                                     \
		assert_string_equal(hg_err_name(got_.err), hg_err_name(wanted_err)); \
		assert_int_equal(got_.fault.err, wanted_err);                        \
		assert_true(got_.fault.text[0] != '\0');                             \
	} while (0)

static inline struct hg_stats stats_of(struct hg_cache *cache)
{
	struct hg_stats stats;

	hg_cache_stats(cache, &stats);
	assert_int_equal(stats.asks,
			 stats.fresh + stats.stale + stats.led + stats.waited + stats.passed + stats.refused);
	return stats;
}

/* Waits, in real time, until `count` asks wait in the cache. */
static inline void until_waiting(struct hg_cache *cache, uint32_t count)
{
	while (stats_of(cache).waiting < count)
		(void)usleep(200);
}

/* A thread that asks once. */
struct asking {
	pthread_t thread;
	struct hg_cache *cache;
	const char *key;
	const struct hg_ask *ask;
	struct got got;
};

static inline void *ask_once(void *arg)
{
	struct asking *asking = arg;

	asking->got = get_with(asking->cache, asking->key, asking->ask);
	return NULL;
}

static inline void ask_begin(struct asking *asking, struct hg_cache *cache, const char *key, const struct hg_ask *ask)
{
	*asking = (struct asking){.cache = cache, .key = key, .ask = ask};
	assert_int_equal(pthread_create(&asking->thread, NULL, ask_once, asking), 0);
}

static inline struct got ask_end(struct asking *asking)
{
	assert_int_equal(pthread_join(asking->thread, NULL), 0);
	return asking->got;
}

#endif
