/* executor.h - a few threads that run refreshes, and the bounded queue before them.
 *
 * Threads begin when a refresh finds none idle, up to the limit. One that a loader ends (pthread_exit) is replaced when
 * the next refresh comes.
 */
#ifndef LIB_EXECUTOR_H
#define LIB_EXECUTOR_H

#include "lib/cache.h"

enum hg_err executor_create(const struct hg_allocator *allocator, uint32_t threads_max, uint32_t queue_max,
			    struct executor **out_executor) HG_MUST_USE;
/* Stopped before. Joins the threads: waits for loaders that run. Accepts NULL. */
void executor_destroy(struct executor *executor);

/* False: the queue is full, or stopped, or no thread could be begun. */
bool executor_submit(struct executor *executor, struct hg_load *load);

/* Nothing is accepted or begun any more. Gives what had not begun, linked by in_queue. */
void executor_stop(struct executor *executor, struct list_node *out_left);

uint32_t executor_queued(struct executor *executor);

#endif
