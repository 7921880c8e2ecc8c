/* SPDX-License-Identifier: Apache-2.0 */
/* Who is inside a node, and the one place where things that have ended are
 * freed: the rule is at the head of mem_priv.h. */
#include <stddef.h>
#include <stdlib.h>

#include "base/lock.h"
#include "mem_priv.h"

#define FIRST(type) \
	STATIC_ASSERT(offsetof(struct type, life) == 0, "freed by its life")

FIRST(mem_tenant);
FIRST(mem_region);
FIRST(mem_grant);
FIRST(mem_session);
FIRST(mem_space);
FIRST(mem_conn);

void node_enter(struct mem_node *node, struct mem_visit *v)
{
	pthread_mutex_lock(&node->lock);
	v->number = ++node->visits;
	list_append(&node->inside, &v->node);
}

/* Whether everybody who is inside came after this ended. */
static bool is_forgotten(const struct mem_node *node,
			 const struct mem_life *life)
{
	return list_is_empty(&node->inside) ||
	       container_of(node->inside.next, struct mem_visit, node)->number >
		       life->ended_at;
}

void node_leave(struct mem_node *node, struct mem_visit *v)
{
	struct list dead;

	list_init(&dead);
	list_remove(&v->node);
	while (!list_is_empty(&node->ended)) {
		struct list *first = node->ended.next;

		if (!is_forgotten(node,
				  container_of(first, struct mem_life, node)))
			break;
		list_remove(first);
		list_append(&dead, first);
	}
	pthread_mutex_unlock(&node->lock);
	while (!list_is_empty(&dead)) {
		struct list *first = dead.next;

		list_remove(first);
		free(container_of(first, struct mem_life, node));
	}
}

void life_end(struct mem_node *node, struct mem_life *life)
{
	ASSERT(!life->ended);
	life->ended = true;
	life_bury(node, life);
}

void life_bury(struct mem_node *node, struct mem_life *life)
{
	lock_assert_mutex_held(&node->lock);
	ASSERT(life->ended);
	life->ended_at = node->visits;
	list_append(&node->ended, &life->node);
}
