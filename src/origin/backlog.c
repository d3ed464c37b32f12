/* backlog.c - the waiting line: a list in order of arrival and a heap of due times over the same members. */
#include "origin/backlog.h"

#include "herdgate.h"

#include <assert.h>

static struct backlog_item *item_of(struct list_node *node)
{
	return LIST_ENTRY(node, struct backlog_item, node);
}

void backlog_init(struct backlog *backlog, uint32_t room)
{
	list_init(&backlog->line);
	heap_init(&backlog->due);
	backlog->len = 0;
	backlog->len_max = 0;
	backlog->room = room;
}

void backlog_item_init(struct backlog_item *item)
{
	list_init(&item->node);
	heap_node_init(&item->timer);
}

enum backlog_verdict backlog_add(struct backlog *backlog, struct backlog_item *item, int64_t due_us, int64_t now_us)
{
	assert(!list_linked(&item->node));
	if (now_us >= due_us)
		return BACKLOG_LATE;
	if (backlog->len >= backlog->room)
		return BACKLOG_FULL;
	list_push_back(&backlog->line, &item->node);
	heap_set(&backlog->due, &item->timer, due_us);
	backlog->len++;
	if (backlog->len > backlog->len_max)
		backlog->len_max = backlog->len;
	return BACKLOG_WAITS;
}

void backlog_remove(struct backlog *backlog, struct backlog_item *item)
{
	assert(backlog->len > 0 && list_linked(&item->node));
	list_remove(&item->node);
	heap_remove(&backlog->due, &item->timer);
	backlog->len--;
}

struct backlog_item *backlog_late(struct backlog *backlog, int64_t now_us)
{
	struct heap_node *first = heap_first(&backlog->due);
	struct backlog_item *item;

	if (first == NULL || now_us < first->due_us)
		return NULL;
	item = LIST_ENTRY(first, struct backlog_item, timer);
	backlog_remove(backlog, item);
	return item;
}

struct backlog_item *backlog_take(struct backlog *backlog)
{
	struct backlog_item *item;

	if (list_empty(&backlog->line))
		return NULL;
	item = item_of(backlog->line.next);
	backlog_remove(backlog, item);
	return item;
}

int64_t backlog_due_us(const struct backlog *backlog)
{
	struct heap_node *first = heap_first(&backlog->due);

	return first == NULL ? HG_NEVER : first->due_us;
}

void backlog_check(const struct backlog *backlog)
{
	uint32_t len = 0;

	LIST_EACH (node, &backlog->line) {
		assert(item_of(node)->timer.linked);
		assert(item_of(node)->timer.due_us >= backlog_due_us(backlog));
		len++;
	}
	assert(len == backlog->len && len <= backlog->len_max);
	assert(backlog->len_max <= backlog->room);
	assert((len == 0) == (heap_first(&backlog->due) == NULL));
}
