/* queue.h - a bounded waiting line in which everyone has a time after which waiting is no use.
 *
 * Order of arrival; whoever is late is taken out and told so, also in the middle of the line, and never served. Pure:
 * the time is a parameter, members are the caller's, nothing here allocates or fails.
 * Invariants: every member is in the line and in the heap of due times; at most `room` members.
 */
#ifndef ORIGIN_QUEUE_H
#define ORIGIN_QUEUE_H

#include "base/heap.h"
#include "base/list.h"

struct queue_item {
	struct list_node node;
	struct heap_node timer;
};

struct queue {
	struct list_node line;
	struct heap due;
	uint32_t len, len_max; /* now; the most there ever were */
	uint32_t room;
};

enum queue_verdict {
	QUEUE_WAITS,
	QUEUE_FULL, /* `room` members wait already */
	QUEUE_LATE, /* `due_us` has come already */
};

/* `room` 0: nobody may wait. */
void queue_init(struct queue *queue, uint32_t room);
void queue_item_init(struct queue_item *item);

/* Puts `item`, which is in no queue, at the end, to be served before `due_us` (HG_NEVER: whenever). */
enum queue_verdict queue_add(struct queue *queue, struct queue_item *item, int64_t due_us, int64_t now_us);

/* Takes out one member whose time has come at `now_us`, the earliest first; NULL where there is none. */
struct queue_item *queue_late(struct queue *queue, int64_t now_us);

/* Takes out the member that came first. To be called after queue_late() has returned NULL for the same time. */
struct queue_item *queue_take(struct queue *queue);

/* Takes out `item`, a member. O(log n). */
void queue_remove(struct queue *queue, struct queue_item *item);

/* When the next member is late; HG_NEVER where none will be. */
int64_t queue_due_us(const struct queue *queue);

/* Asserts the invariants; for tests. */
void queue_check(const struct queue *queue);

#endif
