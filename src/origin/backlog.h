/* backlog.h - a bounded waiting line in which everyone has a time after which waiting is no use.
 *
 * Order of arrival; whoever is late is taken out and told so, also in the middle of the line, and never served. Pure:
 * the time is a parameter, members are the caller's, nothing here allocates or fails.
 * Invariants: every member is in the line and in the heap of due times; at most `room` members.
 */
#ifndef ORIGIN_BACKLOG_H
#define ORIGIN_BACKLOG_H

#include "base/heap.h"
#include "base/list.h"

struct backlog_item {
	struct list_node node;
	struct heap_node timer;
};

struct backlog {
	struct list_node line;
	struct heap due;
	uint32_t len, len_max; /* now; the most there ever were */
	uint32_t room;
};

enum backlog_verdict {
	BACKLOG_WAITS,
	BACKLOG_FULL, /* `room` members wait already */
	BACKLOG_LATE, /* `due_us` has come already */
};

/* `room` 0: nobody may wait. */
void backlog_init(struct backlog *backlog, uint32_t room);
void backlog_item_init(struct backlog_item *item);

/* Puts `item`, which is in no backlog, at the end, to be served before `due_us` (HG_NEVER: whenever). */
enum backlog_verdict backlog_add(struct backlog *backlog, struct backlog_item *item, int64_t due_us, int64_t now_us);

/* Takes out one member whose time has come at `now_us`, the earliest first; NULL where there is none. */
struct backlog_item *backlog_late(struct backlog *backlog, int64_t now_us);

/* Takes out the member that came first. To be called after backlog_late() has returned NULL for the same time. */
struct backlog_item *backlog_take(struct backlog *backlog);

/* Takes out `item`, a member. O(log n). */
void backlog_remove(struct backlog *backlog, struct backlog_item *item);

/* When the next member is late; HG_NEVER where none will be. */
int64_t backlog_due_us(const struct backlog *backlog);

/* Asserts the invariants; for tests. */
void backlog_check(const struct backlog *backlog);

#endif
