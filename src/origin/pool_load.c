/* pool_load.c - the moves of a load that no worker makes: refusal, lateness, the end; and the keeper, the thread that
 * sleeps until the next of these is due. */
#include "origin/pool_inside.h"

#include "base/sat.h"

#include <stdio.h>

void pool_load_move(struct origin_load *load, enum origin_state to)
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

void pool_wake_keeper(struct pool *pool)
{
	(void)pthread_cond_signal(&pool->keeper_wake);
}

void pool_wake_keeper_at(struct pool *pool, int64_t due_us)
{
	if (due_us < pool->keeper_due_us)
		pool_wake_keeper(pool);
}

void pool_load_refuse(struct pool *pool, struct origin_load *load, enum origin_outcome outcome, const char *error)
{
	pool_load_move(load, ORIGIN_REFUSED);
	load->outcome = outcome;
	(void)snprintf(load->error, sizeof(load->error), "%s", error);
	list_push_back(&pool->refused, &load->place.node);
	pool_wake_keeper(pool);
}

void pool_load_refuse_late(struct pool *pool, struct origin_load *load, int64_t now_us)
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
	pool_load_refuse(pool, load, ORIGIN_BUSY, text);
}

void pool_refuse_all_late(struct pool *pool, int64_t now_us)
{
	struct backlog_item *item;

	while ((item = backlog_late(&pool->backlog, now_us)) != NULL)
		pool_load_refuse_late(pool, pool_load_of(item), now_us);
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

void pool_load_end(struct pool *pool, struct origin_load *load)
{
	struct origin_query *query = load->query;

	pool_load_move(load, ORIGIN_ENDED);
	count(&pool->stats, load);
	pool_unlock(pool);
	load->done(load);
	query_unref(query);
	pool_lock(pool);
}

/* Ends the loads whose connections did not answer in time. */
static void give_up_all(struct pool *pool, int64_t now_us)
{
	struct heap_node *first;

	while ((first = heap_first(&pool->give_ups)) != NULL && now_us >= first->due_us) {
		struct pool_worker *worker = LIST_ENTRY(first, struct pool_worker, give_up);
		struct origin_load *load = worker->load;
		bool canceled = atomic_load(&worker->brake.stop);

		heap_remove(&pool->give_ups, first);
		worker->load = NULL;
		brake_stop(&worker->brake);
		pool->stats.stuck++;
		pool_load_refuse(
			pool, load, canceled ? ORIGIN_CANCELED : ORIGIN_ERROR,
			canceled ? "canceled"
				 : "the database did not answer by the load's time limit, its connection is given up");
	}
}

void *pool_keeper_main(void *arg)
{
	struct pool *pool = arg;

	pool_lock(pool);
	for (;;) {
		int64_t now_us = pool->config.clock_us();
		struct heap_node *first;
		struct list_node *node;

		pool_refuse_all_late(pool, now_us);
		give_up_all(pool, now_us);
		node = list_pop(&pool->refused);
		if (node != NULL) {
			pool_load_end(pool, pool_load_of(LIST_ENTRY(node, struct backlog_item, node)));
			continue;
		}
		if (pool->keeper_ends)
			break;
		first = heap_first(&pool->give_ups);
		pool->keeper_due_us = sat_min(backlog_due_us(&pool->backlog), first == NULL ? HG_NEVER : first->due_us);
		brake_wait(&pool->keeper_wake, &pool->mutex, sat_sub(pool->keeper_due_us, now_us));
		pool->keeper_due_us = 0; /* awake */
	}
	pool_unlock(pool);
	return NULL;
}
