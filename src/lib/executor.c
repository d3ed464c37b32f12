/* executor.c - the threads for refreshes.
 *
 * Invariants: idle threads wait on `more`; a slot is USED while its thread may be in the executor, ENDED once a loader
 * has ended the thread, which is then still to be joined.
 */
#include "lib/executor.h"

#include "lib/lead.h"
#include "lib/refresh.h"

#include "base/alloc.h"

#include <signal.h>

enum slot_state { SLOT_FREE, SLOT_USED, SLOT_ENDED };

struct worker {
	struct executor *executor;
	pthread_t thread;
	enum slot_state state;
};

struct executor {
	const struct hg_allocator *allocator;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct list_node queue; /* struct hg_load */
	uint32_t queued, queue_max, idle, used, threads_max;
	bool stopped;
	struct worker workers[];
};

enum hg_err executor_create(const struct hg_allocator *allocator, uint32_t threads_max, uint32_t queue_max,
			    struct executor **out_executor)
{
	struct executor *executor =
		alloc_zeroed(allocator, sizeof(*executor) + threads_max * sizeof(executor->workers[0]));

	if (executor == NULL)
		return HG_ERR_MEMORY;
	executor->allocator = allocator;
	executor->queue_max = queue_max;
	executor->threads_max = threads_max;
	list_init(&executor->queue);
	for (uint32_t i = 0; i < threads_max; i++)
		executor->workers[i].executor = executor;
	(void)pthread_mutex_init(&executor->lock, NULL);
	(void)pthread_cond_init(&executor->more, NULL);
	*out_executor = executor;
	return HG_OK;
}

void executor_destroy(struct executor *executor)
{
	if (executor == NULL)
		return;
	for (uint32_t i = 0; i < executor->threads_max; i++) {
		bool begun;

		(void)pthread_mutex_lock(&executor->lock);
		begun = executor->workers[i].state != SLOT_FREE;
		(void)pthread_mutex_unlock(&executor->lock);
		if (begun)
			(void)pthread_join(executor->workers[i].thread, NULL);
	}
	(void)pthread_cond_destroy(&executor->more);
	(void)pthread_mutex_destroy(&executor->lock);
	alloc_free(executor->allocator, executor);
}

/* ---- a thread ------------------------------------------------------------------------------------------------- */

static void ended(void *arg)
{
	struct worker *worker = arg;

	(void)pthread_mutex_lock(&worker->executor->lock);
	worker->state = SLOT_ENDED;
	worker->executor->used--;
	(void)pthread_mutex_unlock(&worker->executor->lock);
}

static struct hg_load *next(struct executor *executor)
{
	struct list_node *node;

	(void)pthread_mutex_lock(&executor->lock);
	while (executor->queued == 0 && !executor->stopped) {
		executor->idle++;
		(void)pthread_cond_wait(&executor->more, &executor->lock);
		executor->idle--;
	}
	node = list_pop(&executor->queue);
	executor->queued -= node != NULL;
	(void)pthread_mutex_unlock(&executor->lock);
	return node != NULL ? LIST_ENTRY(node, struct hg_load, in_queue) : NULL;
}

static void *work(void *arg)
{
	struct worker *worker = arg;
	struct hg_load *load;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE,
				     NULL); /* the end is by executor_stop() or pthread_exit() */
	pthread_cleanup_push(ended, worker);
	while ((load = next(worker->executor)) != NULL)
		refresh_run(load);
	pthread_cleanup_pop(1);
	return NULL;
}

/* ---- the queue ------------------------------------------------------------------------------------------------ */

/* Under the lock. Signals are for the program's own threads. */
static void begin_thread(struct executor *executor)
{
	struct worker *worker = NULL;
	sigset_t all, old;

	for (uint32_t i = 0; i < executor->threads_max && worker == NULL; i++) {
		if (executor->workers[i].state != SLOT_USED)
			worker = &executor->workers[i];
	}
	if (worker == NULL)
		return;
	if (worker->state == SLOT_ENDED)
		(void)pthread_join(worker->thread, NULL);
	worker->state = SLOT_FREE;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	if (pthread_create(&worker->thread, NULL, work, worker) == 0) {
		worker->state = SLOT_USED;
		executor->used++;
	}
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

bool executor_submit(struct executor *executor, struct hg_load *load)
{
	bool accepted = false;

	(void)pthread_mutex_lock(&executor->lock);
	if (!executor->stopped && executor->queued < executor->queue_max) {
		if (executor->queued >= executor->idle && executor->used < executor->threads_max)
			begin_thread(executor);
		if (executor->used > 0) {
			list_push_back(&executor->queue, &load->in_queue);
			executor->queued++;
			(void)pthread_cond_signal(&executor->more);
			accepted = true;
		}
	}
	(void)pthread_mutex_unlock(&executor->lock);
	return accepted;
}

void executor_stop(struct executor *executor, struct list_node *out_left)
{
	(void)pthread_mutex_lock(&executor->lock);
	executor->stopped = true;
	list_splice(out_left, &executor->queue);
	executor->queued = 0;
	(void)pthread_cond_broadcast(&executor->more);
	(void)pthread_mutex_unlock(&executor->lock);
}

uint32_t executor_queued(struct executor *executor)
{
	uint32_t queued;

	(void)pthread_mutex_lock(&executor->lock);
	queued = executor->queued;
	(void)pthread_mutex_unlock(&executor->lock);
	return queued;
}
