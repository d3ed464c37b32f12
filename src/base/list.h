/* list.h - an intrusive, circular, doubly linked list. Moving a member between lists cannot fail.
 *
 * A head that is empty points at itself; a node that is in no list points at itself too, so removing twice is safe.
 */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct list_node {
	struct list_node *prev, *next;
};

/* The struct of type `type` whose member `member` is `node`. */
#define LIST_ENTRY(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

#define LIST_EACH(node, head) for (struct list_node *node = (head)->next; node != (head); node = node->next)

/* As LIST_EACH, but the body may remove `node`. */
#define LIST_EACH_SAFE(node, after, head)                                                \
	for (struct list_node *node = (head)->next, *after = node->next; node != (head); \
	     node = after, after = node->next)

static inline void list_init(struct list_node *head)
{
	head->prev = head;
	head->next = head;
}

static inline bool list_empty(const struct list_node *head)
{
	return head->next == head;
}

/* The same test said of a member: is it in any list? */
static inline bool list_linked(const struct list_node *node)
{
	return node->next != node;
}

static inline void list_insert_before(struct list_node *place, struct list_node *node)
{
	node->prev = place->prev;
	node->next = place;
	place->prev->next = node;
	place->prev = node;
}

static inline void list_push_back(struct list_node *head, struct list_node *node)
{
	list_insert_before(head, node);
}

static inline void list_push_front(struct list_node *head, struct list_node *node)
{
	list_insert_before(head->next, node);
}

static inline void list_remove(struct list_node *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Removes and returns the first node, NULL where the list is empty. */
static inline struct list_node *list_pop(struct list_node *head)
{
	struct list_node *node = head->next;

	if (node == head)
		return NULL;
	list_remove(node);
	return node;
}

/* Moves all members of `from` to the end of `to`, in order. */
static inline void list_splice(struct list_node *to, struct list_node *from)
{
	if (list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	list_init(from);
}

#endif
