/* SPDX-License-Identifier: Apache-2.0 */
/* Intrusive doubly linked lists with a sentinel; a node that is on no list
 * points to itself. */
#ifndef AQ_LIST_H
#define AQ_LIST_H

#include "base.h"

struct list {
	struct list *next;
	struct list *prev;
};

static inline void list_init(struct list *l)
{
	l->next = l;
	l->prev = l;
}

static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}

static inline void list_append(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}

/* Safe on a node that is on no list. */
static inline void list_remove(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

/* Moves everything from one list to an empty one. */
static inline void list_take(struct list *from, struct list *to)
{
	list_init(to);
	if (list_is_empty(from))
		return;
	*to = *from;
	to->next->prev = to;
	to->prev->next = to;
	list_init(from);
}

/* Moves everything from one list to the front of another. */
static inline void list_prepend_all(struct list *head, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->prev->next = head->next;
	head->next->prev = from->prev;
	from->next->prev = head;
	head->next = from->next;
	list_init(from);
}

#endif
