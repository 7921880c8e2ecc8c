/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program `walk` of the switch is told, so that it carries walks on to
 * this node: the node, pieces of striped regions, and for each tenant the queue
 * pair that takes such walks. It is in the tenant's protection domain and may
 * read, no more, so a walk that the switch brings reaches what any connection
 * of the tenant may have.
 *
 * A region's number in the switch, its space, is a hash, which tenants can make
 * collide. It is written beside the region's key once the switch has agreed
 * that the number stands for this tenant, by its name and its token, and this
 * region; on one node no two regions have it. Without a space neither does this
 * node answer in a way that a switch carries on, nor takes its NIC such walks.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "base/piece_name.h"
#include "base/siphash.h"
#include "switch_priv.h"

enum {
	HOPS = 64, /* walks of a tenant that the switch brings, at a time */
	HOP_BYTES = HOPS * 4608, /* what they take of the node's memory */
	TOKEN_DIGITS = 32,
	LATE_PIECES = 16, /* that are tried again in one tick */
	PORT = 1,
};

/* ---- the queue pair of a tenant ------------------------------------------ */

static int start_hop(struct ibv_qp *qp, uint32_t qkey,
		     const union ibv_gid *from)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = PORT, .qkey = qkey};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_QKEY);

	if (err)
		return -err;
	err = aqdv_qp_set_hops(qp, HOPS, from);
	if (err)
		return err;
	attr.qp_state = IBV_QPS_RTR;
	err = ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	if (err)
		return -err;
	attr.qp_state = IBV_QPS_RTS;
	return -ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN);
}

static int make_hop(struct mem_node *node, struct mem_tenant *t)
{
	struct ibv_qp_init_attr init = {.send_cq = node->cq,
					.recv_cq = node->cq,
					.cap = {1, 1, 1, 1, 0},
					.qp_type = IBV_QPT_UD};
	union ibv_gid own, from;
	uint8_t index;
	int err;

	if (t->hop)
		return 0;
	err = address_first(node, &index, &own);
	if (!err)
		err = space_charge(node, t, 0, HOP_BYTES);
	if (err)
		return err;
	memcpy(from.raw, ctl_switch_ip(own.raw), sizeof(from.raw));
	env_random(node->env, &t->hop_qkey, sizeof(t->hop_qkey));
	/* Privileged ones have the top bit. */
	t->hop_qkey &= ~(1u << 31);
	t->hop = ibv_create_qp(t->pd, &init);
	err = t->hop ? start_hop(t->hop, t->hop_qkey, &from) : -errno;
	if (!err)
		return 0;
	if (t->hop)
		(void)ibv_destroy_qp(t->hop); /* made above */
	t->hop = NULL;
	space_uncharge(node, t, 0, HOP_BYTES);
	return error_set(err, "no queue pair for walks from the switch: %s",
			 strerror(-err));
}

void switch_walk_tenant_end(struct mem_node *node, struct mem_tenant *t)
{
	int err;

	if (!t->hop)
		return;
	err = ibv_destroy_qp(t->hop);
	ASSERT(err == 0); /* nothing is bound to it */
	t->hop = NULL;
	space_uncharge(node, t, 0, HOP_BYTES);
}

/* ---- pieces -------------------------------------------------------------- */

/* A name of a region in all of the rack; not 0. */
static uint32_t space_of(const char *of)
{
	static const uint8_t no_key[SIPHASH_KEY_BYTES];
	const struct siphash_key key = siphash_key(no_key);
	uint32_t space = (uint32_t)siphash(&key, NULL, 0, (const uint8_t *)of,
					   strlen(of));

	return space ? space : 1;
}

static bool is_taken(const struct mem_node *node, const struct mem_region *r,
		     uint32_t space)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++)
		if (node->regions[i] && node->regions[i] != r &&
		    node->regions[i]->space == space)
			return true;
	return false;
}

static void set_space(struct mem_region *r, uint32_t space)
{
	r->space = space;
	if (walks_place(r, r->mr))
		log_warn("memnode", "%s", error_last());
}

static int tell_piece(struct mem_node *node, const struct mem_region *r,
		      const struct piece_name *piece, const char *of,
		      uint32_t space)
{
	char token[CTL_TOKEN_TEXT], server[ADDRESS_TEXT];
	int err = address_server(node, server);

	if (err)
		return err;
	ctl_token_hash_format(&r->tenant->token, token);
	return ctl_switch_tell(
		&node->at_switch.ctl,
		"tell walk piece server=%s qpn=%u qkey=%u rkey=%u space=%u "
		"index=%u count=%u shift=%u of=%s token=%.*s",
		server, r->tenant->hop->qp_num, r->tenant->hop_qkey,
		r->mr->rkey, space, piece->index, piece->count, piece->shift,
		of, TOKEN_DIGITS, token);
}

/* Regions that find no room there, or are no pieces, are left to their clients;
 * so are those whose number another one has. */
int switch_walk_piece(struct mem_node *node, struct mem_region *r)
{
	char of[MEM_TENANT_NAME_MAX + PIECE_REGION_MAX + 2];
	struct piece_name piece;
	uint32_t space;
	int err;

	lock_assert_mutex_held(&node->lock);
	if (!node->at_switch.has_walk || r->busy ||
	    r->move.stage != MEM_STAGE_HOME ||
	    piece_name_parse(r->name, &piece) || piece.count < 2)
		return 0;
	snprintf(of, sizeof(of), "%s/%s", r->tenant->name, piece.region);
	space = space_of(of);
	err = is_taken(node, r, space)
		      ? error_set(-EEXIST, "another region has its number")
		      : make_hop(node, r->tenant);
	if (!err)
		err = tell_piece(node, r, &piece, of, space);
	if (!err && r->space != space)
		set_space(r, space);
	else if (err && r->space)
		set_space(r, 0);
	return err;
}

void switch_walk_gone(struct mem_node *node, const struct mem_region *r)
{
	char line[MEM_LATE_BYTES], server[ADDRESS_TEXT];

	if (!r->space || !node->at_switch.has_walk || !r->tenant->hop ||
	    address_server(node, server))
		return;
	snprintf(line, sizeof(line), "tell walk gone server=%s qpn=%u space=%u",
		 server, r->tenant->hop->qp_num, r->space);
	if (switch_tell_end(node, line))
		return;
	pthread_mutex_lock(&node->lock);
	switch_tell_later(node, line);
	pthread_mutex_unlock(&node->lock);
}

void switch_walk_tenant_changed(struct mem_node *node,
				const struct mem_tenant *t)
{
	for (unsigned i = 0; i < MEM_REGION_MAX; i++) {
		struct mem_region *r = node->regions[i];

		/* What is made or given back has no clients. */
		if (!r || r->tenant != t || !r->space || r->busy ||
		    r->move.stage != MEM_STAGE_HOME)
			continue;
		set_space(r, 0);
		node->at_switch.run[0] = '\0'; /* all is told anew */
	}
}

/* From where the last tick ended: what the switch refuses again and again does
 * not keep the others waiting. */
void switch_walk_late(struct mem_node *node)
{
	struct mem_switch *w = &node->at_switch;
	unsigned tries = 0;

	for (unsigned i = 0;
	     w->has_walk && i < MEM_REGION_MAX && tries < LATE_PIECES; i++) {
		struct mem_region *r = node->regions[w->late_region];

		w->late_region = (w->late_region + 1) % MEM_REGION_MAX;
		if (r && !r->busy && !r->space && strchr(r->name, '.')) {
			(void)!switch_walk_piece(node, r); /* or next time */
			tries++;
		}
	}
}

/* ---- the node ------------------------------------------------------------ */

int switch_walk_open(struct mem_node *node)
{
	struct mem_tenant *t = tenant_find(node, "default");
	char server[ADDRESS_TEXT], own[ADDRESS_TEXT];
	union ibv_gid gid;
	uint8_t index;
	int err = address_first(node, &index, &gid);

	if (!err)
		err = make_hop(node, t);
	if (err)
		return err;
	return ctl_switch_tell(
		&node->at_switch.ctl,
		"tell walk node name=%s server=%s qpn=%u own_ip=%s mtu=%u",
		node->name, address_text(gid.raw, server), t->hop->qp_num,
		address_text(ctl_switch_ip(gid.raw), own), 128u << node->mtu);
}

void switch_walk_close(struct mem_node *node)
{
	struct mem_tenant *t = tenant_find(node, "default");
	char server[ADDRESS_TEXT];

	if (t && t->hop && node->at_switch.has_walk &&
	    address_server(node, server) == 0)
		(void)!ctl_switch_tell(&node->at_switch.ctl,
				       "tell walk gone server=%s qpn=%u",
				       server, t->hop->qp_num);
}
