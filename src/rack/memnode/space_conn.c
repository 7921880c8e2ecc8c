/* SPDX-License-Identifier: Apache-2.0 */
/* Connections that work on pages: by chains, or by the node's processor. */
#include <errno.h>

#include "base/error.h"
#include "base/log.h"
#include "mem_priv.h"

const char *space_role_name(unsigned role)
{
	if (role >= MEM_ROLE_CHAIN)
		return pframe_chain_name(role - MEM_ROLE_CHAIN);
	return role == MEM_ROLE_SERVER ? "server" : "";
}

/* In one domain for all tenants, one of them would have the turns of all. */
static int open_domain(struct mem_node *node, struct mem_tenant *t)
{
	struct ibv_pd *pd;
	int err;

	if (t->page_pd)
		return 0;
	pd = ibv_alloc_pd(node->context);
	if (!pd)
		return error_set(-errno, "no protection domain is left");
	err = aqdv_share_turns(pd, t->pd);
	if (err) {
		(void)ibv_dealloc_pd(pd);
		return error_set(err, "no turns for chains");
	}
	t->page_pd = pd;
	return 0;
}

static int charge_chain(struct mem_node *node, struct mem_conn *c)
{
	struct mem_space *s = c->space;
	uint64_t used = s->chain_used + c->page_bytes;
	int err = 0;

	if (used > s->chain_bytes) {
		err = space_charge(node, c->tenant, 0, used - s->chain_bytes);
		if (!err)
			s->chain_bytes = used;
	}
	if (!err)
		s->chain_used = used;
	return err;
}

static int open_chain(struct mem_node *node, struct mem_conn *c)
{
	int err = open_domain(node, c->tenant);

	if (!err)
		err = pframe_chain_create(c->space->space, c->tenant->page_pd,
					  c->role - MEM_ROLE_CHAIN, c->without,
					  &c->chain);
	if (err)
		return err;
	c->page_bytes = pframe_chain_bytes(c->chain);
	err = charge_chain(node, c);
	if (err) {
		pframe_chain_destroy(c->chain);
		c->chain = NULL;
		return err;
	}
	c->qp = pframe_chain_qp(c->chain);
	return 0;
}

int space_conn_open(struct mem_node *node, struct mem_conn *c)
{
	int err;

	if (c->role >= MEM_ROLE_CHAIN)
		return open_chain(node, c);
	err = page_thread_start(node);
	if (err)
		return err;
	c->page_bytes = pframe_guest_bytes(c->space->space);
	err = space_charge(node, c->tenant, 0, c->page_bytes);
	if (err)
		return err;
	err = pframe_guest_create(node->server, c->space->space, &c->guest);
	if (err)
		space_uncharge(node, c->tenant, 0, c->page_bytes);
	else
		c->qp = pframe_guest_qp(c->guest);
	return err;
}

int space_conn_start(struct mem_conn *c)
{
	return c->chain ? pframe_chain_start(c->chain)
			: pframe_guest_arm(c->guest);
}

void space_conn_close(struct mem_conn *c)
{
	int why = c->chain ? pframe_chain_why(c->chain) : 0;

	if (why)
		log_info("memnode", "the %s chain of tenant %s stopped: %s",
			 space_role_name(c->role), c->tenant->name,
			 pframe_why_text(why));
	if (c->chain) {
		pframe_chain_destroy(c->chain);
		c->space->chain_used -= c->page_bytes;
	} else {
		pframe_guest_destroy(c->guest);
		space_uncharge(c->space->of, c->tenant, 0, c->page_bytes);
	}
	c->qp = NULL;
}

bool space_conn_is_broken(struct mem_conn *c)
{
	return c->chain && pframe_chain_is_broken(c->chain);
}
