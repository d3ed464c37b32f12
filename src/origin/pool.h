/* pool.h - loads in, outcomes out: a bounded number of threads, each with a connection of its own to some database, a
 * queue before them, and a keeper that minds the time.
 *
 * A thread starts when a load finds no idle one and there are fewer than `connections_max`. Whoever finds none waits in
 * the queue (backlog.h). The keeper sleeps until something is due and then gives refusals, and ends the loads of
 * connections that do not answer (`POOL_SLACK_US` after the deadline or the cancel): the asker is free, the thread and
 * its place are lost for as long as the database keeps silent, what it brings later is dropped and its connection
 * closed.
 *
 * Invariants: done() is called once for each load, without any lock of the pool; a load waits only while every thread
 * has one; nothing that belongs to a load is read after its done(); no call into the database under the pool's lock.
 */
#ifndef ORIGIN_POOL_H
#define ORIGIN_POOL_H

#include "origin/origin.h"
#include "origin/query.h"
#include "origin/brake.h"

#define POOL_SLACK_US 100000
#define POOL_CONNECTIONS_MAX 1024u

struct pool;

/* What one thread is about. */
struct pool_work {
	uint32_t number; /* of the thread and its connection, from 0 */
	struct brake *brake;
	struct origin_query *query;
};

/* What became of it. Begins as an error without words. */
struct pool_answer {
	enum origin_outcome outcome;
	struct blob *value; /* taken over by the pool */
	int64_t ttl_us;
	bool cut; /* ORIGIN_ERROR because the brake was on */
	char error[200];
};

/* Sets an error and its words. */
void pool_answer_fail(struct pool_answer *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The database behind the pool. All are called on thread `work->number`. */
struct pool_ops {
	/* Opens the connection, if it is not open or no longer the right one, and readies the query. False: `answer`.
	 */
	bool (*ready)(void *self, const struct pool_work *work, struct pool_answer *answer);
	/* Copies the captures into the query. Does not block. False: `answer`. */
	bool (*bind)(void *self, const struct pool_work *work, const struct hg_bytes *captures,
		     struct pool_answer *answer);
	/* Runs it; looks at the brake. */
	void (*run)(void *self, const struct pool_work *work, struct pool_answer *answer);
	/* Closes the connection; the next `ready` opens it anew. */
	void (*reset)(void *self, uint32_t number);
};

struct pool_config {
	const struct hg_allocator *allocator;
	uint32_t connections_max; /* 1 to POOL_CONNECTIONS_MAX */
	uint32_t queue_max;
	int64_t acquire_timeout_us; /* 0: for ever */
	int64_t (*clock_us)(void);
	const struct pool_ops *ops;
	void *self;
};

/* HG_ERR_MEMORY; HG_ERR_IO: the system gives no thread. */
enum hg_err pool_create(const struct pool_config *config, struct pool **out_pool) HG_MUST_USE;

/* As the operations of origin.h. */
void pool_start(struct pool *pool, struct origin_load *load);
void pool_cancel(struct pool *pool, struct origin_load *load);
void pool_close(struct pool *pool);

/* `connections` is left alone. */
void pool_stats(struct pool *pool, struct origin_stats *out_stats);

#endif
