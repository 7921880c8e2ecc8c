/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Grants: what one connection may do with one region. All of it with all rights
 * is the region's own key, which peers on this host may map: a mapping cannot
 * be taken back before the region ends. Anything narrower, and whatever shall
 * be revocable, is a type 2 memory window, bound to that connection's queue
 * pair: the key opens exactly what was granted, opens nothing on another
 * connection, is never mapped, and is dead as soon as the grant or the
 * connection ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "mem_priv.h"

enum {
	ALL_RIGHTS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_ATOMIC,
};

/* Waits for the one request that is posted at a time. */
static int wait_bind(struct mem_node *node, uint64_t wr_id)
{
	uint64_t deadline_ns = env_now_ns(node->env) + MEM_BIND_MS * 1000000ull;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(node->cq, 1, &wc);
		if (n < 0)
			return error_set(-EIO, "the completion queue failed");
		if (n == 0)
			env_relax(node->env);
		else if (wc.wr_id == wr_id)
			return wc.status == IBV_WC_SUCCESS
				       ? 0
				       : error_set(
						 -ESTALE,
						 "the connection is broken "
						 "(%s); connect again",
						 ibv_wc_status_str(wc.status));
	} while (env_now_ns(node->env) < deadline_ns);
	return error_set(-EIO, "binding a window took too long");
}

static int bind_window(struct mem_node *node, struct mem_conn *conn,
		       struct mem_grant *g, const struct grant_wish *wish)
{
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = g->id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = IBV_SEND_SIGNALED,
			.bind_mw =
				{.mw = g->mw,
				 .rkey = ibv_inc_rkey(g->mw->rkey),
				 .bind_info = {.mr = g->region->mr,
					       .addr = (uintptr_t)
							       g->region->addr +
						       wish->offset,
					       .length = wish->length,
					       .mw_access_flags =
						       (unsigned)wish->access}},
		};
	int err = ibv_post_send(conn->qp, &wr, &bad);

	if (err)
		return error_set(-ESTALE,
				 "the connection is broken (%s); connect again",
				 strerror(err));
	err = wait_bind(node, g->id);
	if (!err)
		g->mw->rkey = wr.bind_mw.rkey;
	return err;
}

int grant_create(struct mem_node *node, struct mem_conn *conn,
		 struct mem_region *region, const struct grant_wish *wish,
		 struct mem_grant **out)
{
	bool whole = wish->offset == 0 && wish->length == region->size_bytes;
	bool own_key = whole && wish->access == ALL_RIGHTS && !wish->revocable;
	struct mem_grant *g;
	int err = 0;

	lock_assert_mutex_held(&node->lock);
	if (conn->grant_count >= MEM_GRANT_PER_CONN)
		return error_set(-EAGAIN, "a connection has %d grants at most",
				 MEM_GRANT_PER_CONN);
	/* The switch knows one key; what another one changes it would miss. */
	if (region->declared.kind == MEM_DECLARED_ATOMICS &&
	    wish->access != IBV_ACCESS_REMOTE_READ && !own_key)
		return error_set(-EACCES,
				 "the switch replaces atomics on region %s: it "
				 "is granted whole and with all rights, or to "
				 "read",
				 region->name);
	/* Trying would break the connection. */
	if (!region->can_bind && !own_key)
		return error_set(-EOPNOTSUPP,
				 "the NIC has no windows on its own memory: "
				 "region %s is granted whole and with all "
				 "rights",
				 region->name);
	err = tenant_take(conn->tenant, MEM_LIMIT_GRANTS, 1);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g) {
		tenant_give(conn->tenant, MEM_LIMIT_GRANTS, 1);
		return error_set(-ENOMEM, "no memory for a grant");
	}
	env_random(node->env, &g->id, sizeof(g->id));
	g->region = region;
	if (!own_key) {
		g->mw = ibv_alloc_mw(conn->tenant->pd, IBV_MW_TYPE_2);
		err = g->mw ? bind_window(node, conn, g, wish)
			    : error_set(-errno, "no memory window: %s",
					strerror(errno));
	}
	if (err) {
		if (g->mw)
			(void)ibv_dealloc_mw(g->mw); /* not bound */
		free(g);
		tenant_give(conn->tenant, MEM_LIMIT_GRANTS, 1);
		return err;
	}
	list_append(&conn->grants, &g->node);
	conn->grant_count++;
	node->grant_count++;
	*out = g;
	return 0;
}

void grant_end(struct mem_node *node, struct mem_conn *conn,
	       struct mem_grant *g)
{
	int err = g->mw ? ibv_dealloc_mw(g->mw) : 0;

	ASSERT(err == 0); /* also unbinds it */
	list_remove(&g->node);
	conn->grant_count--;
	node->grant_count--;
	tenant_give(conn->tenant, MEM_LIMIT_GRANTS, 1);
	life_end(node, &g->life);
}

void grant_revoke_region(struct mem_node *node, struct mem_region *region)
{
	for (unsigned i = 0; i < MEM_CONN_MAX; i++) {
		struct list *head, *at, *next;

		if (!node->conns[i] || node->conns[i]->tenant != region->tenant)
			continue;
		head = &node->conns[i]->grants;
		for (at = head->next; at != head; at = next) {
			struct mem_grant *g =
				container_of(at, struct mem_grant, node);

			next = at->next;
			if (g->region == region)
				grant_end(node, node->conns[i], g);
		}
	}
}
