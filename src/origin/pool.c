/* pool.c - the pool as its users see it: start, cancel, close. One lock guards all that is shared; it is never held
 * while the database, look_again() or done() runs. */
#include "origin/pool_inside.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

void pool_answer_fail(struct pool_answer *answer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(answer->error, sizeof(answer->error), format, arguments);
	va_end(arguments);
	answer->outcome = ORIGIN_ERROR;
}

bool pool_spawn(pthread_t *thread, void *(*body)(void *arg), void *arg)
{
	sigset_t all, before;
	int result;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	result = pthread_create(thread, NULL, body, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (result == 0)
		(void)pthread_setname_np(*thread, "hg-origin");
	return result == 0;
}

static void enqueue(struct pool *pool, struct origin_load *load, int64_t now_us)
{
	int64_t timeout_us = pool->config.acquire_timeout_us;
	int64_t due_us = sat_min(load->deadline_us, timeout_us == 0 ? HG_NEVER : sat_add(now_us, timeout_us));
	char text[80];

	pool_refuse_all_late(pool, now_us);
	switch (backlog_add(&pool->backlog, &load->place, due_us, now_us)) {
	case BACKLOG_WAITS:
		pool_load_move(load, ORIGIN_WAITING);
		pool_wake_keeper_at(pool, due_us);
		break;
	case BACKLOG_FULL:
		(void)snprintf(text, sizeof(text), "the queue for a connection is full (queue_max %u)",
			       pool->backlog.room);
		pool_load_refuse(pool, load, ORIGIN_BUSY, text);
		break;
	case BACKLOG_LATE:
		pool_load_refuse_late(pool, load, now_us);
		break;
	}
}

void pool_start(struct pool *pool, struct origin_load *load)
{
	int64_t now_us = pool->config.clock_us();

	backlog_item_init(&load->place);
	load->value = NULL;
	load->ttl_us = 0;
	load->error[0] = '\0';
	load->queued_us = 0;
	load->ran_us = 0;
	load->asked_us = now_us;
	load->state = ORIGIN_IDLE;
	load->worker = NULL;
	(void)query_ref(load->query);
	pool_lock(pool);
	pool->stats.asked++;
	if (pool->closing)
		pool_load_refuse(pool, load, ORIGIN_CANCELED, "the origin is being closed");
	else if (now_us >= load->deadline_us)
		pool_load_refuse_late(pool, load, now_us);
	else if (!pool_assign(pool, load, now_us)) {
		if (pool->workers_len == 0)
			pool_load_refuse(pool, load, ORIGIN_ERROR, "the system gives no thread for a connection");
		else
			enqueue(pool, load, now_us);
	}
	pool_unlock(pool);
}

void pool_cancel(struct pool *pool, struct origin_load *load)
{
	pool_lock(pool);
	switch (load->state) {
	case ORIGIN_WAITING:
		backlog_remove(&pool->backlog, &load->place);
		pool_load_refuse(pool, load, ORIGIN_CANCELED, "canceled");
		break;
	case ORIGIN_ACQUIRING:
	case ORIGIN_LOOKING:
	case ORIGIN_QUERYING:
		pool_worker_stop(load->worker, pool->config.clock_us());
		break;
	case ORIGIN_IDLE:
	case ORIGIN_REFUSED:
	case ORIGIN_ENDED:
		break;
	}
	pool_unlock(pool);
}

void pool_stats(struct pool *pool, struct origin_stats *out_stats)
{
	uint32_t connections = out_stats->connections;

	pool_lock(pool);
	*out_stats = pool->stats;
	out_stats->queued = pool->backlog.len;
	out_stats->queued_max = pool->backlog.len_max;
	pool_unlock(pool);
	out_stats->connections = connections;
}

/* Undoes what build() made, `workers` of them. */
static void destroy(struct pool *pool, uint32_t workers)
{
	while (workers-- > 0) {
		(void)pthread_cond_destroy(&pool->workers[workers].wake);
		brake_fini(&pool->workers[workers].brake);
	}
	(void)pthread_cond_destroy(&pool->keeper_wake);
	(void)pthread_mutex_destroy(&pool->mutex);
	alloc_free(pool->config.allocator, pool);
}

void pool_close(struct pool *pool)
{
	int64_t now_us = pool->config.clock_us();
	struct backlog_item *item;

	pool_lock(pool);
	pool->closing = true;
	while ((item = backlog_take(&pool->backlog)) != NULL)
		pool_load_refuse(pool, pool_load_of(item), ORIGIN_CANCELED, "the origin is being closed");
	for (uint32_t i = 0; i < pool->workers_len; i++) {
		if (pool->workers[i].load != NULL)
			pool_worker_stop(&pool->workers[i], now_us);
		(void)pthread_cond_signal(&pool->workers[i].wake);
	}
	pool_unlock(pool);
	for (uint32_t i = 0; i < pool->workers_len; i++)
		(void)pthread_join(pool->workers[i].thread, NULL);
	pool_lock(pool);
	pool->keeper_ends = true;
	pool_wake_keeper(pool);
	pool_unlock(pool);
	(void)pthread_join(pool->keeper, NULL);
	destroy(pool, pool->config.connections_max);
}

static enum hg_err init_worker(struct pool *pool, uint32_t number)
{
	struct pool_worker *worker = &pool->workers[number];

	worker->pool = pool;
	worker->number = number;
	list_init(&worker->idle);
	heap_node_init(&worker->give_up);
	if (brake_init(&worker->brake, pool->config.clock_us) != HG_OK)
		return HG_ERR_IO;
	if (brake_cond_init(&worker->wake))
		return HG_OK;
	brake_fini(&worker->brake);
	return HG_ERR_IO;
}

enum hg_err pool_create(const struct pool_config *config, struct pool **out_pool)
{
	size_t size = sizeof(struct pool) + config->connections_max * sizeof(struct pool_worker);
	struct pool *pool = alloc_zeroed(config->allocator, size);
	uint32_t workers = 0;

	assert(config->connections_max > 0 && config->connections_max <= POOL_CONNECTIONS_MAX);
	if (pool == NULL)
		return HG_ERR_MEMORY;
	pool->config = *config;
	backlog_init(&pool->backlog, config->queue_max);
	list_init(&pool->refused);
	list_init(&pool->idle);
	heap_init(&pool->give_ups);
	if (pthread_mutex_init(&pool->mutex, NULL) != 0)
		goto free_pool;
	if (!brake_cond_init(&pool->keeper_wake))
		goto destroy_mutex;
	for (; workers < config->connections_max; workers++)
		if (init_worker(pool, workers) != HG_OK)
			goto destroy_workers;
	if (!pool_spawn(&pool->keeper, pool_keeper_main, pool))
		goto destroy_workers;
	*out_pool = pool;
	return HG_OK;

destroy_workers:
	destroy(pool, workers);
	return HG_ERR_IO;
destroy_mutex:
	(void)pthread_mutex_destroy(&pool->mutex);
free_pool:
	alloc_free(config->allocator, pool);
	return HG_ERR_IO;
}
