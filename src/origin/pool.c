/* pool.c - the pool's threads. One lock guards all that is shared; it is never held while the database, look_again() or
 * done() runs. Loads change hands between the queue, a worker and the keeper by one mover, move(). */
#include "origin/pool.h"

#include "base/alloc.h"
#include "base/sat.h"

#include <assert.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

struct worker {
	struct pool *pool;
	uint32_t number;
	pthread_t thread;
	pthread_cond_t wake;
	struct brake brake;
	struct list_node idle;      /* in pool->idle */
	struct heap_node give_up;   /* in pool->give_ups while the keeper may end its load */
	struct origin_load *load;   /* NULL: none, or ended by the keeper */
	struct origin_query *query; /* a reference for as long as the connection is in use; NULL: idle */
};

struct pool {
	struct pool_config config;
	pthread_mutex_t mutex;
	pthread_cond_t keeper_wake;
	pthread_t keeper;
	int64_t keeper_due_us; /* until when it sleeps */
	bool closing, keeper_ends;
	struct backlog backlog;
	struct list_node refused; /* loads on their way to the keeper's done() */
	struct list_node idle;    /* workers */
	struct heap give_ups;
	struct origin_stats stats;
	uint32_t workers_len;
	struct worker workers[];
};

static void lock(struct pool *pool)
{
	int result = pthread_mutex_lock(&pool->mutex);

	assert(result == 0);
}

static void unlock(struct pool *pool)
{
	int result = pthread_mutex_unlock(&pool->mutex);

	assert(result == 0);
}

static struct origin_load *load_of(struct backlog_item *item)
{
	return LIST_ENTRY(item, struct origin_load, place);
}

void pool_answer_fail(struct pool_answer *answer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(answer->error, sizeof(answer->error), format, arguments);
	va_end(arguments);
	answer->outcome = ORIGIN_ERROR;
}

/* ---- loads ---------------------------------------------------------------------------------------------------- */

static void move(struct origin_load *load, enum origin_state to)
{
	static const uint8_t allowed[] = {
		[ORIGIN_IDLE] = 1 << ORIGIN_WAITING | 1 << ORIGIN_ACQUIRING | 1 << ORIGIN_REFUSED,
		[ORIGIN_WAITING] = 1 << ORIGIN_ACQUIRING | 1 << ORIGIN_REFUSED,
		[ORIGIN_ACQUIRING] = 1 << ORIGIN_LOOKING | 1 << ORIGIN_REFUSED | 1 << ORIGIN_ENDED,
		[ORIGIN_LOOKING] = 1 << ORIGIN_QUERYING | 1 << ORIGIN_ENDED,
		[ORIGIN_QUERYING] = 1 << ORIGIN_REFUSED | 1 << ORIGIN_ENDED,
		[ORIGIN_REFUSED] = 1 << ORIGIN_ENDED,
		[ORIGIN_ENDED] = 0,
	};

	assert(allowed[load->state] & 1 << to);
	load->state = to;
}

static void wake_keeper(struct pool *pool)
{
	(void)pthread_cond_signal(&pool->keeper_wake);
}

/* The keeper must be awake at `due_us`. */
static void wake_keeper_at(struct pool *pool, int64_t due_us)
{
	if (due_us < pool->keeper_due_us)
		wake_keeper(pool);
}

/* Hands `load`, which is in no queue and with no worker, to the keeper. */
static void refuse(struct pool *pool, struct origin_load *load, enum origin_outcome outcome, const char *error)
{
	move(load, ORIGIN_REFUSED);
	load->outcome = outcome;
	(void)snprintf(load->error, sizeof(load->error), "%s", error);
	list_push_back(&pool->refused, &load->place.node);
	wake_keeper(pool);
}

static void refuse_late(struct pool *pool, struct origin_load *load, int64_t now_us)
{
	char text[120];

	load->queued_us = sat_sub(now_us, load->asked_us);
	if (now_us >= load->deadline_us)
		(void)snprintf(text, sizeof(text),
			       "the load's time limit passed after %lld ms of waiting for a connection",
			       (long long)(load->queued_us / 1000));
	else
		(void)snprintf(text, sizeof(text), "no connection within acquire_timeout (%lld ms)",
			       (long long)(pool->config.acquire_timeout_us / 1000));
	refuse(pool, load, ORIGIN_BUSY, text);
}

static void refuse_all_late(struct pool *pool, int64_t now_us)
{
	struct backlog_item *item;

	while ((item = backlog_late(&pool->backlog, now_us)) != NULL)
		refuse_late(pool, load_of(item), now_us);
}

static void count(struct origin_stats *stats, const struct origin_load *load)
{
	switch (load->outcome) {
	case ORIGIN_VALUE:
		stats->values++;
		break;
	case ORIGIN_ABSENT:
		stats->absent++;
		break;
	case ORIGIN_ERROR:
		stats->errors++;
		break;
	case ORIGIN_BUSY:
		stats->busy++;
		break;
	case ORIGIN_SKIPPED:
		stats->skipped++;
		break;
	case ORIGIN_CANCELED:
		stats->canceled++;
		break;
	}
}

/* Ends `load`: the lock is given back for done(), after which the load may be gone. */
static void end_load(struct pool *pool, struct origin_load *load)
{
	struct origin_query *query = load->query;

	move(load, ORIGIN_ENDED);
	count(&pool->stats, load);
	unlock(pool);
	load->done(load);
	query_unref(query);
	lock(pool);
}

/* ---- workers -------------------------------------------------------------------------------------------------- */

/* The keeper may end the worker's load from `due_us` on. */
static void watch_over(struct worker *worker, int64_t due_us)
{
	if (due_us == HG_NEVER)
		return;
	heap_set(&worker->pool->give_ups, &worker->give_up, due_us);
	wake_keeper_at(worker->pool, due_us);
}

/* Gives `load` to a worker that has none. */
static void assign(struct worker *worker, struct origin_load *load, int64_t now_us)
{
	struct pool *pool = worker->pool;

	assert(worker->load == NULL && worker->query == NULL);
	move(load, ORIGIN_ACQUIRING);
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
static void write_answer(struct worker *worker, struct origin_load *load, struct pool_answer *answer, int64_t now_us)
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
static void conclude(struct worker *worker, struct pool_answer *answer)
{
	struct pool *pool = worker->pool;
	struct origin_load *load = worker->load;

	if (load == NULL) {
		unlock(pool);
		blob_unref(answer->value);
		pool->config.ops->reset(pool->config.self, worker->number);
		lock(pool);
		return;
	}
	heap_remove(&pool->give_ups, &worker->give_up);
	worker->load = NULL;
	write_answer(worker, load, answer, pool->config.clock_us());
	end_load(pool, load);
}

/* Moves the worker's load on; false where its time is over or the keeper has taken it, with `answer` set. */
static bool advance(struct worker *worker, enum origin_state to, struct pool_answer *answer)
{
	enum brake_state state = brake_state(&worker->brake);

	answer->cut = state != BRAKE_GOES_ON;
	if (worker->load == NULL || answer->cut)
		return false;
	move(worker->load, to);
	if (to == ORIGIN_QUERYING) {
		worker->pool->stats.loads++;
		watch_over(worker, sat_add(worker->load->deadline_us, POOL_SLACK_US));
	} else {
		heap_remove(&worker->pool->give_ups, &worker->give_up);
	}
	return true;
}

/* look_again() and bind: nothing here waits for the database, so the keeper leaves the load alone meanwhile. */
static bool look_and_bind(struct worker *worker, const struct pool_work *work, struct pool_answer *answer)
{
	const struct pool_config *config = &worker->pool->config;
	struct origin_load *load = worker->load;

	if (load->look_again != NULL && load->look_again(load)) {
		answer->outcome = ORIGIN_SKIPPED;
		return false;
	}
	return config->ops->bind(config->self, work, load->captures, answer);
}

static void run(struct worker *worker, const struct pool_work *work, struct pool_answer *answer)
{
	struct pool *pool = worker->pool;
	int64_t began_us = pool->config.clock_us(), ran_us;

	unlock(pool);
	pool->config.ops->run(pool->config.self, work, answer);
	ran_us = sat_sub(pool->config.clock_us(), began_us);
	lock(pool);
	pool->stats.ran_us = sat_add(pool->stats.ran_us, ran_us);
	if (worker->load != NULL)
		worker->load->ran_us = ran_us;
}

/* One load from its connection to its end. Called and left with the lock held. */
static void serve(struct worker *worker)
{
	struct pool *pool = worker->pool;
	struct pool_work work = {worker->number, &worker->brake, worker->query};
	struct pool_answer answer = {.outcome = ORIGIN_ERROR};
	bool good;

	unlock(pool);
	good = pool->config.ops->ready(pool->config.self, &work, &answer);
	lock(pool);
	if (good && advance(worker, ORIGIN_LOOKING, &answer)) {
		unlock(pool);
		good = look_and_bind(worker, &work, &answer);
		lock(pool);
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
static bool next_load(struct worker *worker)
{
	struct pool *pool = worker->pool;
	int64_t now_us = pool->config.clock_us();
	struct backlog_item *item;

	refuse_all_late(pool, now_us);
	item = backlog_take(&pool->backlog);
	if (item != NULL) {
		assign(worker, load_of(item), now_us);
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
	struct worker *worker = arg;
	struct pool *pool = worker->pool;

	lock(pool);
	while (worker->query != NULL || next_load(worker))
		serve(worker);
	unlock(pool);
	pool->config.ops->reset(pool->config.self, worker->number);
	return NULL;
}

/* A thread that gets no signals: they are for the program's own. */
static bool spawn(pthread_t *thread, void *(*body)(void *arg), void *arg)
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

/* Gives `load` to an idle worker, or to a new one; false where there is neither. */
static bool assign_any(struct pool *pool, struct origin_load *load, int64_t now_us)
{
	struct list_node *node = list_pop(&pool->idle);
	struct worker *worker;

	if (node != NULL) {
		worker = LIST_ENTRY(node, struct worker, idle);
		assign(worker, load, now_us);
		(void)pthread_cond_signal(&worker->wake);
		return true;
	}
	if (pool->workers_len == pool->config.connections_max)
		return false;
	worker = &pool->workers[pool->workers_len];
	if (!spawn(&worker->thread, worker_main, worker))
		return false;
	pool->workers_len++;
	assign(worker, load, now_us);
	return true;
}

/* ---- the keeper ------------------------------------------------------------------------------------------------ */

/* Ends the loads whose connections did not answer in time. */
static void give_up_all(struct pool *pool, int64_t now_us)
{
	struct heap_node *first;

	while ((first = heap_first(&pool->give_ups)) != NULL && now_us >= first->due_us) {
		struct worker *worker = LIST_ENTRY(first, struct worker, give_up);
		struct origin_load *load = worker->load;
		bool canceled = atomic_load(&worker->brake.stop);

		heap_remove(&pool->give_ups, first);
		worker->load = NULL;
		brake_stop(&worker->brake);
		pool->stats.stuck++;
		refuse(pool, load, canceled ? ORIGIN_CANCELED : ORIGIN_ERROR,
		       canceled ? "canceled"
				: "the database did not answer by the load's time limit, its connection is given up");
	}
}

static void *keeper_main(void *arg)
{
	struct pool *pool = arg;

	lock(pool);
	for (;;) {
		int64_t now_us = pool->config.clock_us();
		struct heap_node *first;
		struct list_node *node;

		refuse_all_late(pool, now_us);
		give_up_all(pool, now_us);
		node = list_pop(&pool->refused);
		if (node != NULL) {
			end_load(pool, load_of(LIST_ENTRY(node, struct backlog_item, node)));
			continue;
		}
		if (pool->keeper_ends)
			break;
		first = heap_first(&pool->give_ups);
		pool->keeper_due_us = sat_min(backlog_due_us(&pool->backlog), first == NULL ? HG_NEVER : first->due_us);
		brake_wait(&pool->keeper_wake, &pool->mutex, sat_sub(pool->keeper_due_us, now_us));
		pool->keeper_due_us = 0; /* awake */
	}
	unlock(pool);
	return NULL;
}

/* ---- the interface --------------------------------------------------------------------------------------------- */

static void enqueue(struct pool *pool, struct origin_load *load, int64_t now_us)
{
	int64_t timeout_us = pool->config.acquire_timeout_us;
	int64_t due_us = sat_min(load->deadline_us, timeout_us == 0 ? HG_NEVER : sat_add(now_us, timeout_us));
	char text[80];

	refuse_all_late(pool, now_us);
	switch (backlog_add(&pool->backlog, &load->place, due_us, now_us)) {
	case BACKLOG_WAITS:
		move(load, ORIGIN_WAITING);
		wake_keeper_at(pool, due_us);
		break;
	case BACKLOG_FULL:
		(void)snprintf(text, sizeof(text), "the queue for a connection is full (queue_max %u)",
			       pool->backlog.room);
		refuse(pool, load, ORIGIN_BUSY, text);
		break;
	case BACKLOG_LATE:
		refuse_late(pool, load, now_us);
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
	lock(pool);
	pool->stats.asked++;
	if (pool->closing)
		refuse(pool, load, ORIGIN_CANCELED, "the origin is being closed");
	else if (now_us >= load->deadline_us)
		refuse_late(pool, load, now_us);
	else if (!assign_any(pool, load, now_us)) {
		if (pool->workers_len == 0)
			refuse(pool, load, ORIGIN_ERROR, "the system gives no thread for a connection");
		else
			enqueue(pool, load, now_us);
	}
	unlock(pool);
}

/* Asks a worker to end what it does. The keeper will see to it. */
static void stop_worker(struct worker *worker, int64_t now_us)
{
	int64_t due_us = sat_add(now_us, POOL_SLACK_US);

	brake_stop(&worker->brake);
	if (worker->load->state == ORIGIN_LOOKING)
		return;
	if (!worker->give_up.linked || due_us < worker->give_up.due_us)
		watch_over(worker, due_us);
}

void pool_cancel(struct pool *pool, struct origin_load *load)
{
	lock(pool);
	switch (load->state) {
	case ORIGIN_WAITING:
		backlog_remove(&pool->backlog, &load->place);
		refuse(pool, load, ORIGIN_CANCELED, "canceled");
		break;
	case ORIGIN_ACQUIRING:
	case ORIGIN_LOOKING:
	case ORIGIN_QUERYING:
		stop_worker(load->worker, pool->config.clock_us());
		break;
	case ORIGIN_IDLE:
	case ORIGIN_REFUSED:
	case ORIGIN_ENDED:
		break;
	}
	unlock(pool);
}

void pool_stats(struct pool *pool, struct origin_stats *out_stats)
{
	uint32_t connections = out_stats->connections;

	lock(pool);
	*out_stats = pool->stats;
	out_stats->queued = pool->backlog.len;
	out_stats->queued_max = pool->backlog.len_max;
	unlock(pool);
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

	lock(pool);
	pool->closing = true;
	while ((item = backlog_take(&pool->backlog)) != NULL)
		refuse(pool, load_of(item), ORIGIN_CANCELED, "the origin is being closed");
	for (uint32_t i = 0; i < pool->workers_len; i++) {
		if (pool->workers[i].load != NULL)
			stop_worker(&pool->workers[i], now_us);
		(void)pthread_cond_signal(&pool->workers[i].wake);
	}
	unlock(pool);
	for (uint32_t i = 0; i < pool->workers_len; i++)
		(void)pthread_join(pool->workers[i].thread, NULL);
	lock(pool);
	pool->keeper_ends = true;
	wake_keeper(pool);
	unlock(pool);
	(void)pthread_join(pool->keeper, NULL);
	destroy(pool, pool->config.connections_max);
}

static enum hg_err init_worker(struct pool *pool, uint32_t number)
{
	struct worker *worker = &pool->workers[number];

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
	size_t size = sizeof(struct pool) + config->connections_max * sizeof(struct worker);
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
	if (!spawn(&pool->keeper, keeper_main, pool))
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
