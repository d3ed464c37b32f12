/* pool_worker.c - a thread with a connection: takes a load, readies the connection, looks again, queries, ends the
 * load, and only then is free for the next. */
#include "origin/pool_inside.h"

#include "base/sat.h"

#include <stdio.h>

/* The keeper may end the worker's load from `due_us` on. */
static void watch_over(struct pool_worker *worker, int64_t due_us)
{
	if (due_us == HG_NEVER)
		return;
	heap_set(&worker->pool->give_ups, &worker->give_up, due_us);
	pool_wake_keeper_at(worker->pool, due_us);
}

/* Gives `load` to a worker that has none. */
static void assign(struct pool_worker *worker, struct origin_load *load, int64_t now_us)
{
	struct pool *pool = worker->pool;

	assert(worker->load == NULL && worker->query == NULL);
	pool_load_move(load, ORIGIN_ACQUIRING);
	load->worker = worker;
	load->queued_us = sat_sub(now_us, load->asked_us);
	worker->load = load;
	worker->query = query_ref(load->query);
	brake_begin(&worker->brake, load->deadline_us);
	watch_over(worker, sat_add(load->deadline_us, POOL_SLACK_US));
	if (++pool->stats.running > pool->stats.running_max)
		pool->stats.running_max = pool->stats.running;
}

/* Puts the answer into the load. A stop that was asked for is the cause of whatever error came after it. */
static void write_answer(struct pool_worker *worker, struct origin_load *load, struct pool_answer *answer,
			 int64_t now_us)
{
	if (answer->outcome == ORIGIN_ERROR && atomic_load(&worker->brake.stop)) {
		answer->outcome = ORIGIN_CANCELED;
		(void)snprintf(answer->error, sizeof(answer->error), "canceled");
	} else if (answer->outcome == ORIGIN_ERROR && answer->cut) {
		pool_answer_fail(answer, "cut off at the load's time limit, %lld ms after it was asked for",
				 (long long)(sat_sub(now_us, load->asked_us) / 1000));
	}
	assert((answer->value != NULL) == (answer->outcome == ORIGIN_VALUE));
	load->outcome = answer->outcome;
	load->value = answer->value;
	load->ttl_us = answer->ttl_us;
	memcpy(load->error, answer->error, sizeof(load->error));
}

/* The worker's load ends with `answer`, unless the keeper has ended it: then what came too late is dropped. */
static void conclude(struct pool_worker *worker, struct pool_answer *answer)
{
	struct pool *pool = worker->pool;
	struct origin_load *load = worker->load;

	if (load == NULL) {
		pool_unlock(pool);
		blob_unref(answer->value);
		pool->config.ops->reset(pool->config.self, worker->number);
		pool_lock(pool);
		return;
	}
	heap_remove(&pool->give_ups, &worker->give_up);
	worker->load = NULL;
	write_answer(worker, load, answer, pool->config.clock_us());
	pool_load_end(pool, load);
}

/* Moves the worker's load on; false where its time is over or the keeper has taken it, with `answer` set. */
static bool advance(struct pool_worker *worker, enum origin_state to, struct pool_answer *answer)
{
	enum brake_state state = brake_state(&worker->brake);

	answer->cut = state != BRAKE_GOES_ON;
	if (worker->load == NULL || answer->cut)
		return false;
	pool_load_move(worker->load, to);
	if (to == ORIGIN_QUERYING) {
		worker->pool->stats.loads++;
		watch_over(worker, sat_add(worker->load->deadline_us, POOL_SLACK_US));
	} else {
		heap_remove(&worker->pool->give_ups, &worker->give_up);
	}
	return true;
}

/* look_again() and bind: nothing here waits for the database, so the keeper leaves the load alone meanwhile. */
static bool look_and_bind(struct pool_worker *worker, const struct pool_work *work, struct pool_answer *answer)
{
	const struct pool_config *config = &worker->pool->config;
	struct origin_load *load = worker->load;

	if (load->look_again != NULL && load->look_again(load)) {
		answer->outcome = ORIGIN_SKIPPED;
		return false;
	}
	return config->ops->bind(config->self, work, load->captures, answer);
}

static void run(struct pool_worker *worker, const struct pool_work *work, struct pool_answer *answer)
{
	struct pool *pool = worker->pool;
	int64_t began_us = pool->config.clock_us(), ran_us;

	pool_unlock(pool);
	pool->config.ops->run(pool->config.self, work, answer);
	ran_us = sat_sub(pool->config.clock_us(), began_us);
	pool_lock(pool);
	pool->stats.ran_us = sat_add(pool->stats.ran_us, ran_us);
	if (worker->load != NULL)
		worker->load->ran_us = ran_us;
}

/* One load from its connection to its end. Called and left with the lock held. */
static void serve(struct pool_worker *worker)
{
	struct pool *pool = worker->pool;
	struct pool_work work = {worker->number, &worker->brake, worker->query};
	struct pool_answer answer = {.outcome = ORIGIN_ERROR};
	bool good;

	pool_unlock(pool);
	good = pool->config.ops->ready(pool->config.self, &work, &answer);
	pool_lock(pool);
	if (good && advance(worker, ORIGIN_LOOKING, &answer)) {
		pool_unlock(pool);
		good = look_and_bind(worker, &work, &answer);
		pool_lock(pool);
		if (good && advance(worker, ORIGIN_QUERYING, &answer))
			run(worker, &work, &answer);
	}
	conclude(worker, &answer);
	pool->stats.running--;
	query_unref(worker->query);
	worker->query = NULL;
}

/* Gets the next load for a worker that is free, waiting for it if need be; false: the pool is being closed. The keeper
 * may have ended that load by the time the thread wakes, so it is the query that tells. */
static bool next_load(struct pool_worker *worker)
{
	struct pool *pool = worker->pool;
	int64_t now_us = pool->config.clock_us();
	struct backlog_item *item;

	pool_refuse_all_late(pool, now_us);
	item = backlog_take(&pool->backlog);
	if (item != NULL) {
		assign(worker, pool_load_of(item), now_us);
		return true;
	}
	list_push_front(&pool->idle, &worker->idle);
	while (worker->query == NULL && !pool->closing)
		(void)pthread_cond_wait(&worker->wake, &pool->mutex);
	list_remove(&worker->idle);
	return worker->query != NULL;
}

static void *worker_main(void *arg)
{
	struct pool_worker *worker = arg;
	struct pool *pool = worker->pool;

	pool_lock(pool);
	while (worker->query != NULL || next_load(worker))
		serve(worker);
	pool_unlock(pool);
	pool->config.ops->reset(pool->config.self, worker->number);
	return NULL;
}

bool pool_assign(struct pool *pool, struct origin_load *load, int64_t now_us)
{
	struct list_node *node = list_pop(&pool->idle);
	struct pool_worker *worker;

	if (node != NULL) {
		worker = LIST_ENTRY(node, struct pool_worker, idle);
		assign(worker, load, now_us);
		(void)pthread_cond_signal(&worker->wake);
		return true;
	}
	if (pool->workers_len == pool->config.connections_max)
		return false;
	worker = &pool->workers[pool->workers_len];
	if (!pool_spawn(&worker->thread, worker_main, worker))
		return false;
	pool->workers_len++;
	assign(worker, load, now_us);
	return true;
}

void pool_worker_stop(struct pool_worker *worker, int64_t now_us)
{
	int64_t due_us = sat_add(now_us, POOL_SLACK_US);

	brake_stop(&worker->brake);
	if (worker->load->state == ORIGIN_LOOKING)
		return;
	if (!worker->give_up.linked || due_us < worker->give_up.due_us)
		watch_over(worker, due_us);
}
