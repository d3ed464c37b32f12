/* queue.c - the waiting line: a list in order of arrival and a heap of due times over the same members. */
#include "origin/queue.h"

#include "herdgate.h"

#include <assert.h>

static struct queue_item *item_of(struct list_node *node)
{
	return LIST_ENTRY(node, struct queue_item, node);
}

void queue_init(struct queue *queue, uint32_t room)
{
	list_init(&queue->line);
	heap_init(&queue->due);
	queue->len = 0;
	queue->len_max = 0;
	queue->room = room;
}

void queue_item_init(struct queue_item *item)
{
	list_init(&item->node);
	heap_node_init(&item->timer);
}

enum queue_verdict queue_add(struct queue *queue, struct queue_item *item, int64_t due_us, int64_t now_us)
{
	assert(!list_linked(&item->node));
	if (now_us >= due_us)
		return QUEUE_LATE;
	if (queue->len >= queue->room)
		return QUEUE_FULL;
	list_push_back(&queue->line, &item->node);
	heap_set(&queue->due, &item->timer, due_us);
	queue->len++;
	if (queue->len > queue->len_max)
		queue->len_max = queue->len;
	return QUEUE_WAITS;
}

void queue_remove(struct queue *queue, struct queue_item *item)
{
	assert(queue->len > 0 && list_linked(&item->node));
	list_remove(&item->node);
	heap_remove(&queue->due, &item->timer);
	queue->len--;
}

struct queue_item *queue_late(struct queue *queue, int64_t now_us)
{
	struct heap_node *first = heap_first(&queue->due);
	struct queue_item *item;

	if (first == NULL || now_us < first->due_us)
		return NULL;
	item = LIST_ENTRY(first, struct queue_item, timer);
	queue_remove(queue, item);
	return item;
}

struct queue_item *queue_take(struct queue *queue)
{
	struct queue_item *item;

	if (list_empty(&queue->line))
		return NULL;
	item = item_of(queue->line.next);
	queue_remove(queue, item);
	return item;
}

int64_t queue_due_us(const struct queue *queue)
{
	struct heap_node *first = heap_first(&queue->due);

	return first == NULL ? HG_NEVER : first->due_us;
}

void queue_check(const struct queue *queue)
{
	uint32_t len = 0;

	LIST_EACH (node, &queue->line) {
		assert(item_of(node)->timer.linked);
		assert(item_of(node)->timer.due_us >= queue_due_us(queue));
		len++;
	}
	assert(len == queue->len && len <= queue->len_max);
	assert(queue->len_max <= queue->room);
	assert((len == 0) == (heap_first(&queue->due) == NULL));
}
