/* pool_inside.h - what the files of the pool share: the pool itself, its lock, the moves of a load and of a worker. All
 * of these are called with the lock held, but for those that say otherwise. Private to pool*.c.
 */
#ifndef ORIGIN_POOL_INSIDE_H
#define ORIGIN_POOL_INSIDE_H

#include "origin/pool.h"

#include <assert.h>

struct pool_worker {
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
	struct pool_worker workers[];
};

static inline void pool_lock(struct pool *pool)
{
	int result = pthread_mutex_lock(&pool->mutex);

	assert(result == 0);
}

static inline void pool_unlock(struct pool *pool)
{
	int result = pthread_mutex_unlock(&pool->mutex);

	assert(result == 0);
}

static inline struct origin_load *pool_load_of(struct backlog_item *item)
{
	return LIST_ENTRY(item, struct origin_load, place);
}

/* Moves a load from one state to another; asserts that the drawing in origin.h has that arrow. */
void pool_load_move(struct origin_load *load, enum origin_state to);

/* Hands `load`, which is in no queue and with no worker, to the keeper, which calls its done(). */
void pool_load_refuse(struct pool *pool, struct origin_load *load, enum origin_outcome outcome, const char *error);

/* As pool_load_refuse, with the words for a time that has passed: the load's own, or acquire_timeout. */
void pool_load_refuse_late(struct pool *pool, struct origin_load *load, int64_t now_us);
void pool_refuse_all_late(struct pool *pool, int64_t now_us);

/* Ends `load`: the lock is given back for done(), after which the load may be gone. */
void pool_load_end(struct pool *pool, struct origin_load *load);

/* The keeper must be awake now, or at `due_us`. */
void pool_wake_keeper(struct pool *pool);
void pool_wake_keeper_at(struct pool *pool, int64_t due_us);

/* Body of the keeper's thread. Takes the lock itself. */
void *pool_keeper_main(void *arg);

/* Starts a thread that gets no signals, which are for the program's own; false where the system gives none. */
bool pool_spawn(pthread_t *thread, void *(*body)(void *arg), void *arg);

/* Gives `load` to an idle worker, or to a new one; false where there is neither. */
bool pool_assign(struct pool *pool, struct origin_load *load, int64_t now_us);

/* Asks a worker that has a load to end what it does. The keeper will see to it. */
void pool_worker_stop(struct pool_worker *worker, int64_t now_us);

#endif
