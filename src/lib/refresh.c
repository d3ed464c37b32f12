/* refresh.c - loads in the background. */
#include "lib/refresh.h"

#include "lib/executor.h"
#include "lib/futex.h"
#include "lib/lead.h"
#include "lib/thread.h"

void refresh_drop(struct hg_load *load)
{
	struct hg_cache *cache = load->cache;
	struct visit visit;
	struct fill fill = {.kind = FILL_ABANDON};

	visit_begin(&visit, cache, cache_lane(cache, &load->key), 0);
	if (load->state == LEAD_QUEUED) {
		(void)engine_fill(visit.lane->engine, &load->key, load->token, &fill, visit.now_us);
		lead_unregister(visit.lane, load, LEAD_OVER);
		atomic_fetch_add_explicit(&cache->tallies.refreshes_dropped, 1, memory_order_relaxed);
	}
	visit_end(&visit);
	lead_destroy(load);
}

/* Begins it on this thread. False: it was stolen, or its time is over, or the cache has stopped. */
static bool begin(struct hg_load *load, struct thread *thread)
{
	struct hg_cache *cache = load->cache;
	struct visit visit;
	bool wanted;

	visit_begin(&visit, cache, cache_lane(cache, &load->key), 0);
	wanted = load->state == LEAD_QUEUED && !visit.lane->stopped &&
		 engine_token_live(visit.lane->engine, &load->key, load->token, visit.now_us);
	if (wanted) {
		lead_move(load, LEAD_RUNNING);
		atomic_store(&load->thread, thread);
	}
	visit_end(&visit);
	return wanted;
}

void refresh_run(struct hg_load *load)
{
	struct hg_cache *cache = load->cache;
	struct thread *thread = thread_self();
	enum hg_outcome outcome;

	if (thread != NULL)
		thread_sweep(thread);
	if (thread == NULL || thread_deep(thread) || !begin(load, thread)) {
		refresh_drop(load);
		return;
	}
	atomic_fetch_add_explicit(&cache->tallies.refreshes, 1, memory_order_relaxed);
	outcome = lead_run(load);
	lead_finish(load, outcome);
	lead_destroy(load);
}

/* A job of the user's executor. The last thing that it does with the cache is to count itself out. */
static void job_over(void *arg)
{
	struct hg_cache *cache = arg;

	if (atomic_fetch_sub(&cache->jobs, 1) == 1)
		futex_wake(&cache->jobs);
}

static void run_job(void *job)
{
	struct hg_load *load = job;

	pthread_cleanup_push(job_over, load->cache);
	refresh_run(load);
	pthread_cleanup_pop(1);
}

void refresh_submit(struct hg_load *load, const struct hg_ask *ask)
{
	struct hg_cache *cache = load->cache;
	const struct hg_executor *executor = &cache->config.executor;

	if (ask != NULL && ask->load != NULL) {
		void *kept = ask->keep(ask->arg);

		if (kept == NULL) {
			refresh_drop(load);
			return;
		}
		load->arg = kept;
		load->drop = ask->drop;
	}
	if (executor->submit == NULL) {
		if (!executor_submit(cache->executor, load))
			refresh_drop(load);
		return;
	}
	atomic_fetch_add(&cache->jobs, 1);
	if (!executor->submit(executor->self, run_job, load)) {
		refresh_drop(load);
		job_over(cache);
	}
}
