/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants: a name space, a protection domain, a token and a quota each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "mem_priv.h"

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
	struct mem_tenant *found = NULL;

	/* No early end: the time tells nothing about which one it was. */
	for (unsigned i = 0; i < node->tenant_count; i++)
		if (ctl_token_hash_equal(&node->tenants[i]->token, token))
			found = node->tenants[i];
	return found;
}

int tenant_add(struct mem_node *node, const char *name, uint64_t quota_bytes,
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
	t->quota_bytes = quota_bytes;
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

void tenant_remove(struct mem_node *node, struct mem_tenant *tenant)
{
	int err;

	ASSERT(tenant->region_count == 0 && tenant->conn_count == 0 &&
	       tenant->space_count == 0);
	session_expire(node, tenant);
	for (unsigned i = 0; i < node->tenant_count; i++) {
		if (node->tenants[i] != tenant)
			continue;
		node->tenants[i] = node->tenants[--node->tenant_count];
		node->tenants[node->tenant_count] = NULL;
		break;
	}
	err = ibv_dealloc_pd(tenant->pd);
	ASSERT(err == 0); /* there is nothing in it any more */
	free(tenant);
}
