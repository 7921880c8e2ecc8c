/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants: a name space, a protection domain, a token and a quota each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "ruled.h"

struct mem_tenant *tenant_find(const struct mem_node *node, const char *name)
{
	for (unsigned i = 0; i < node->tenant_count; i++)
		if (strcmp(node->tenants[i]->name, name) == 0)
			return node->tenants[i];
	return NULL;
}

struct mem_tenant *tenant_of_token(const struct mem_node *node,
				   const struct ctl_token_hash *token)
{
	uint64_t now_ns = env_now_ns(node->env);
	struct mem_tenant *found = NULL;

	/* No early end: the time tells nothing about which one it was. */
	for (unsigned i = 0; i < node->tenant_count; i++) {
		struct mem_tenant *t = node->tenants[i];
		bool is_own = ctl_token_hash_equal(&t->token, token);
		bool is_ruled = ruled_has_token(t, token, now_ns);

		if (is_own || is_ruled)
			found = t;
	}
	return found;
}

struct mem_tenant *tenant_of_narrow(struct mem_node *node,
				    const struct ctl_token_hash *token,
				    struct mem_narrow **out)
{
	uint64_t now_ns = env_now_ns(node->env);
	struct mem_tenant *found = NULL;

	*out = NULL;
	for (unsigned i = 0; i < node->tenant_count; i++) {
		struct mem_narrow *n =
			narrow_find(&node->tenants[i]->narrows, token, now_ns);

		if (!n)
			continue;
		found = node->tenants[i];
		*out = n;
	}
	return found;
}

int tenant_add(struct mem_node *node, const char *name,
	       const struct ctl_token_hash *token, struct mem_tenant **out)
{
	struct mem_tenant *t;

	if (!ctl_name_is_valid(name, MEM_TENANT_NAME_MAX))
		return error_set(-EINVAL,
				 "a tenant's name has 1 to %d letters, digits, "
				 "'-', '_' and '.'",
				 MEM_TENANT_NAME_MAX);
	if (tenant_find(node, name))
		return error_set(-EEXIST, "there is a tenant %s already", name);
	if (tenant_of_token(node, token) ||
	    ctl_token_hash_equal(&node->admin, token))
		return error_set(-EEXIST, "this token is in use already");
	if (node->tenant_count == MEM_TENANT_MAX)
		return error_set(-EAGAIN, "this node has %d tenants at most",
				 MEM_TENANT_MAX);
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "no memory for a tenant");
	(void)snprintf(t->name, sizeof(t->name), "%s", name);
	t->state = MEM_TENANT_NEW;
	tenant_limit_default(node, t, strcmp(name, "default") == 0);
	t->token = *token;
	t->pd = ibv_alloc_pd(node->context);
	if (!t->pd) {
		int err = -errno;

		free(t);
		return error_set(err, "no protection domain: %s",
				 strerror(-err));
	}
	node->tenants[node->tenant_count++] = t;
	*out = t;
	return 0;
}

static bool is_empty(const struct mem_tenant *t)
{
	return !t->taken[MEM_LIMIT_REGIONS] && !t->taken[MEM_LIMIT_CONNS] &&
	       !t->space_count;
}

void tenant_remove(struct mem_node *node, struct mem_tenant *tenant)
{
	int err;

	ASSERT(is_empty(tenant));
	session_expire(node, tenant);
	walks_tenant_end(node, tenant);
	switch_walk_tenant_end(node, tenant);
	for (unsigned i = 0; i < node->tenant_count; i++) {
		if (node->tenants[i] != tenant)
			continue;
		node->tenants[i] = node->tenants[--node->tenant_count];
		node->tenants[node->tenant_count] = NULL;
		break;
	}
	err = tenant->page_pd ? ibv_dealloc_pd(tenant->page_pd) : 0;
	if (!err)
		err = ibv_dealloc_pd(tenant->pd);
	ASSERT(err == 0); /* there is nothing in them any more */
	life_end(node, &tenant->life);
}

/* Lets others come in, and says whether the tenant has ended meanwhile. */
static bool breathe(struct mem_node *node, const struct mem_tenant *t)
{
	pthread_mutex_unlock(&node->lock);
	pthread_mutex_lock(&node->lock);
	return t->life.ended;
}

void tenant_end_conns(struct mem_node *node, struct mem_tenant *t,
		      bool only_lost)
{
	uint64_t now_ns = env_now_ns(node->env);
	unsigned ends = 0;

	lock_assert_mutex_held(&node->lock);
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		if (!node->conns[i] || node->conns[i]->tenant != t ||
		    (only_lost && ruled_keeps(t, node->conns[i], now_ns)))
			continue;
		conn_end(node, node->conns[i], MEM_END_TENANT);
		if (++ends % MEM_ENDS_AT_ONCE == 0 && breathe(node, t))
			return;
	}
}

void tenant_end(struct mem_node *node, struct mem_tenant *t)
{
	ASSERT(t->state == MEM_TENANT_ENDING);
	tenant_end_conns(node, t, false);
	if (t->life.ended)
		return;
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];

		/* Somebody else gives a busy one back, or the tick does. */
		if (!r || r->tenant != t || r->busy)
			continue;
		if (region_delete(node, r))
			log_warn("memnode", "%s", error_last());
		if (t->life.ended)
			return;
	}
	space_reap(node);
	if (!t->life.ended)
		shared_tenant_end(node, t);
	if (t->life.ended || !is_empty(t))
		return;
	log_info("memnode", "tenant %s is gone", t->name);
	tenant_remove(node, t);
}

void tenant_tick(struct mem_node *node)
{
	for (unsigned i = 0; i < node->tenant_count; i++) {
		if (node->tenants[i]->state != MEM_TENANT_ENDING)
			continue;
		tenant_end(node, node->tenants[i]);
		return; /* the list may be another one now */
	}
}

void tenant_change_begin(struct mem_node *node)
{
	while (node->is_changing)
		(void)pthread_cond_wait(&node->changed, &node->lock);
	node->is_changing = true;
}

void tenant_change_end(struct mem_node *node)
{
	node->is_changing = false;
	(void)pthread_cond_signal(&node->changed);
}
