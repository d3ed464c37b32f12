/* cache.c - opening, stopping and closing; the registry of open caches; the clock. */
#include "lib/cache.h"

#include "lib/executor.h"
#include "lib/futex.h"
#include "lib/lead.h"
#include "lib/options.h"
#include "lib/refresh.h"
#include "lib/seat.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum hg_err fault_set(struct hg_fault *fault, enum hg_err err, int64_t retry_after_us, const char *format, ...)
{
	va_list arguments;

	if (fault == NULL)
		return err;
	fault->err = err;
	fault->retry_after_us = retry_after_us;
	va_start(arguments, format);
	(void)vsnprintf(fault->text, sizeof(fault->text), format, arguments);
	va_end(arguments);
	return err;
}

/* ---- the clock ------------------------------------------------------------------------------------------------ */

static int64_t system_us(clockid_t clock)
{
	struct timespec now;

	(void)clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * HG_SECOND + now.tv_nsec / 1000;
}

int64_t cache_now_us(const struct hg_cache *cache)
{
	const struct hg_clock *clock = &cache->config.clock;

	return clock->now_us != NULL ? clock->now_us(clock->self) : system_us(CLOCK_MONOTONIC);
}

int64_t cache_coarse_us(const struct hg_cache *cache)
{
	const struct hg_clock *clock = &cache->config.clock;

	return clock->now_us != NULL ? clock->now_us(clock->self) : system_us(CLOCK_MONOTONIC_COARSE);
}

#define SWEEP_BUDGET 64u

void cache_sweep(struct hg_cache *cache, int64_t now_us)
{
	int64_t due = atomic_load_explicit(&cache->sweep_due_us, memory_order_relaxed);

	if (now_us < due || !atomic_compare_exchange_strong(&cache->sweep_due_us, &due, HG_NEVER))
		return;
	atomic_store(&cache->sweep_due_us, memory_tick(cache->memory, now_us, SWEEP_BUDGET));
}

/* ---- the registry --------------------------------------------------------------------------------------------- */

static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;
static struct list_node caches = {&caches, &caches};
static uint64_t ids;

void registry_lock(void)
{
	(void)pthread_mutex_lock(&registry);
}

void registry_unlock(void)
{
	(void)pthread_mutex_unlock(&registry);
}

struct hg_cache *registry_find(uint64_t id)
{
	LIST_EACH (node, &caches) {
		struct hg_cache *cache = LIST_ENTRY(node, struct hg_cache, in_registry);

		if (cache->id == id)
			return cache;
	}
	return NULL;
}

struct hg_cache *registry_pin(uint64_t id)
{
	struct hg_cache *cache;

	registry_lock();
	cache = registry_find(id);
	if (cache != NULL)
		cache->pins++;
	registry_unlock();
	return cache;
}

void registry_unpin(struct hg_cache *cache)
{
	registry_lock();
	if (--cache->pins == 0)
		(void)pthread_cond_broadcast(&unpinned);
	registry_unlock();
}

static void enter_registry(struct hg_cache *cache)
{
	registry_lock();
	cache->id = ++ids;
	list_push_back(&caches, &cache->in_registry);
	registry_unlock();
}

/* From here on no thread that ends will look for the cache; and none is looking. */
static void leave_registry(struct hg_cache *cache)
{
	registry_lock();
	list_remove(&cache->in_registry);
	while (cache->pins > 0)
		(void)pthread_cond_wait(&unpinned, &registry);
	LIST_EACH_SAFE (node, after, &cache->seats)
		seat_leave(LIST_ENTRY(node, struct seat, in_cache));
	registry_unlock();
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static enum hg_err init_lanes(struct hg_cache *cache, uint64_t boot_id)
{
	struct gate_policy policy;
	enum hg_err err = HG_OK;
	uint32_t i;

	options_policy(&cache->config.policy, &policy);
	for (i = 0; i < CACHE_LANES && err == HG_OK; i++) {
		struct engine_config config = {
			.allocator = cache->allocator,
			.seed = cache->config.seed + i,
			.boot_id = boot_id,
			.waiters_max = UINT32_MAX,
			.flights_max = cache->config.flights_max / CACHE_LANES + 1,
			.history_max = 1,
		};

		err = lane_init(&cache->lanes[i], cache, &config, &policy);
	}
	if (err == HG_OK)
		return HG_OK;
	for (i--; i-- > 0;)
		lane_fini(&cache->lanes[i]);
	return err;
}

static enum hg_err init(struct hg_cache *cache, uint64_t boot_id)
{
	struct memory_config memory = {cache->allocator, cache->config.max_bytes, cache->config.seed, 1};
	enum hg_err err = memory_create(&memory, &cache->memory);

	if (err != HG_OK)
		return err;
	err = init_lanes(cache, boot_id);
	if (err != HG_OK)
		goto destroy_memory;
	if (cache->config.executor.submit == NULL) {
		err = executor_create(cache->allocator, cache->config.refresh_threads, cache->config.refresh_queue_max,
				      &cache->executor);
		if (err != HG_OK)
			goto fini_lanes;
	}
	return HG_OK;

fini_lanes:
	for (uint32_t i = 0; i < CACHE_LANES; i++)
		lane_fini(&cache->lanes[i]);
destroy_memory:
	memory_destroy(cache->memory);
	return err;
}

enum hg_err hg_cache_open(const struct hg_cache_config *config, struct hg_cache **out_cache, struct hg_fault *out_fault)
{
	const struct hg_allocator *allocator = config->allocator != NULL ? config->allocator : &alloc_libc;
	uint64_t random[2] = {0, 0};
	struct hg_cache *cache;
	enum hg_err err = options_check(config, out_fault);

	if (err != HG_OK)
		return err;
	if (getentropy(random, sizeof(random)) != 0)
		return fault_set(out_fault, HG_ERR_IO, 0, "the system gives no random bytes");
	cache = alloc_zeroed(allocator, sizeof(*cache));
	if (cache == NULL)
		return fault_set(out_fault, HG_ERR_MEMORY, 0, "there is no memory for a cache");
	cache->config = *config;
	cache->allocator = allocator;
	list_init(&cache->seats);
	if (config->seed == 0)
		cache->config.seed = random[0];
	err = init(cache, random[1]);
	if (err != HG_OK) {
		alloc_free(allocator, cache);
		return fault_set(out_fault, err, 0, "there is no memory for a cache");
	}
	enter_registry(cache);
	*out_cache = cache;
	return HG_OK;
}

/* ---- the end -------------------------------------------------------------------------------------------------- */

void hg_cache_stop(struct hg_cache *cache)
{
	struct list_node left;

	for (uint32_t i = 0; i < CACHE_LANES; i++)
		lane_stop(cache, &cache->lanes[i]);
	if (cache->executor == NULL)
		return;
	list_init(&left);
	executor_stop(cache->executor, &left);
	for (struct list_node *node = list_pop(&left); node != NULL; node = list_pop(&left))
		refresh_drop(LIST_ENTRY(node, struct hg_load, in_queue));
}

void hg_cache_close(struct hg_cache *cache)
{
	struct thread *thread = thread_self();
	uint32_t jobs;

	if (cache == NULL)
		return;
	if (thread != NULL) {
		thread_sweep(thread);
		assert(!thread_inside_any(thread, cache));
	}
	hg_cache_stop(cache);
	while ((jobs = atomic_load(&cache->jobs)) > 0)
		futex_wait(&cache->jobs, jobs, HG_NEVER);
	executor_destroy(cache->executor);
	leave_registry(cache);
	for (uint32_t i = 0; i < CACHE_LANES; i++)
		lane_fini(&cache->lanes[i]);
	memory_destroy(cache->memory);
	alloc_free(cache->allocator, cache);
}

void hg_cache_tick(struct hg_cache *cache)
{
	int64_t now = cache_now_us(cache);

	for (uint32_t i = 0; i < CACHE_LANES; i++) {
		struct visit visit;

		visit_begin(&visit, cache, &cache->lanes[i], 0);
		visit_end(&visit);
	}
	atomic_store(&cache->sweep_due_us, memory_tick(cache->memory, now, SWEEP_BUDGET));
}
