/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections: one queue pair towards a client, in its tenant's protection
 * domain. The node never sends on it except to bind windows, so it has no retry
 * timer; that also makes the NIC remember when the client's process is gone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "blocks.h"
#include "pair/pair.h"

enum {
	SEND_DEPTH = 4,
	ACK_TIMEOUT = 16, /* 268 ms, eight times, for who asks for no more */
	ACK_TIMEOUT_MAX = 31,
};

const char *conn_end_name(enum mem_end why)
{
	static const char *const names[] = {
		[MEM_END_CLOSED] = "closed", [MEM_END_SILENT] = "silent",
		[MEM_END_GONE] = "gone",     [MEM_END_BROKEN] = "broken",
		[MEM_END_TENANT] = "tenant", [MEM_END_STOP] = "stop",
		[MEM_END_FENCED] = "fenced", [MEM_END_BUDGET] = "budget",
	};

	return names[why];
}

int conn_find(const struct mem_node *node, const struct mem_tenant *tenant,
	      const char *id, struct mem_conn **out)
{
	struct mem_conn *c;
	uint64_t nonce;
	uint32_t slot;
	int err = ctl_bond_parse("a connection", id, &nonce, &slot);

	if (err)
		return err;
	c = slot < MEM_CONN_MAX ? node->conns[slot] : NULL;
	/* Somebody else's connection is none at all. */
	if (!c || c->tenant != tenant || c->nonce != nonce)
		return error_set(-ESTALE,
				 "there is no connection %s, or no longer; "
				 "connect again",
				 id);
	*out = c;
	return 0;
}

static unsigned access_of(const struct conn_peer *peer)
{
	if (peer->role == MEM_ROLE_BLOCKS)
		return IBV_ACCESS_REMOTE_READ; /* of files */
	if (peer->role != MEM_ROLE_PLAIN)
		return 0; /* messages only */
	return peer->read_only
		       ? IBV_ACCESS_REMOTE_READ
		       : IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
				 IBV_ACCESS_REMOTE_ATOMIC;
}

/* The eight tries of a queue pair shall last as long as the peer may be silent.
 */
static uint8_t ack_timeout(uint32_t patience_ms)
{
	const uint64_t patience_ns = patience_ms * 1000000ull;
	uint8_t code = ACK_TIMEOUT;

	while (code < ACK_TIMEOUT_MAX &&
	       (4096ull << code) * (PAIR_RETRIES + 1) < patience_ns)
		code++;
	return code;
}

/* What both ports can and the way has room for. */
static enum ibv_mtu path_mtu(const struct mem_node *node,
			     const struct conn_peer *peer)
{
	enum ibv_mtu mtu;

	if (aqdv_query_path_mtu(node->context, &peer->gid, &mtu))
		mtu = node->mtu; /* an adapter, which does not know */
	return peer->mtu < mtu ? peer->mtu : mtu;
}

static int to_rts(struct ibv_qp *qp, const struct conn_peer *peer,
		  const struct conn_answer *answer, uint8_t gid_index)
{
	struct pair_end end = {
		.gid = peer->gid,
		.gid_index = gid_index,
		.qpn = peer->qpn,
		.psn = peer->psn,
		.own_psn = answer->psn,
		.mtu = answer->mtu,
		.reads_in = answer->rd_atomic,
		.reads_out = 1,
		.rnr_timer = PAIR_RNR_TIMER,
	};

	if (peer->role != MEM_ROLE_PLAIN) { /* pages are sent back here */
		end.timeout = answer->ack_timeout;
		end.retries = PAIR_RETRIES;
	}
	return pair_connect(ibv_modify_qp, qp, &end);
}

static int open_qp(struct mem_node *node, struct mem_conn *c,
		   const struct conn_peer *peer)
{
	struct ibv_qp_init_attr init = {
		.send_cq = node->cq,
		.recv_cq = node->cq,
		.cap = {.max_send_wr = SEND_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	if (c->role == MEM_ROLE_BLOCKS)
		return block_conn_open(node, c, peer->block_session);
	if (c->role != MEM_ROLE_PLAIN)
		return space_conn_open(node, c);
	c->qp = ibv_create_qp(c->tenant->pd, &init);
	return c->qp ? 0
		     : error_set(-errno, "no queue pair: %s", strerror(errno));
}

/* `is_gone`: its process is. */
static void close_qp(struct mem_node *node, struct mem_conn *c, bool is_gone)
{
	int err = 0;

	if (c->role == MEM_ROLE_BLOCKS)
		block_conn_close(node, c, is_gone);
	else if (c->role != MEM_ROLE_PLAIN)
		space_conn_close(c);
	else
		err = ibv_destroy_qp(c->qp);
	ASSERT(err == 0); /* nothing refers to it */
}

static int make_qp(struct mem_node *node, struct mem_conn *c,
		   const struct conn_peer *peer, struct conn_answer *answer)
{
	uint8_t gid_index = 0;
	uint32_t psn;
	int err = pair_gid(node->context, &peer->gid, &gid_index, &answer->gid);

	if (err)
		return error_set(err, "the NIC has no RoCEv2 address");
	env_random(node->env, &psn, sizeof(psn));
	answer->psn = psn & PAIR_PSN_MASK;
	answer->mtu = path_mtu(node, peer);
	answer->rd_atomic = (uint8_t)u32_min(
		peer->walk_depth ? peer->walk_depth : peer->rd_atomic,
		u32_min(255, (uint32_t)node->device.max_qp_rd_atom));
	err = open_qp(node, c, peer);
	if (err)
		return err;
	err = pair_init(ibv_modify_qp, c->qp, access_of(peer));
	if (!err && c->walk_bytes)
		err = aqdv_qp_set_walk_pad(c->qp, peer->walk_bytes);
	if (!err && node->has_auth) {
		env_random(node->env, answer->auth_key,
			   sizeof(answer->auth_key));
		err = aqdv_qp_set_auth(c->qp, answer->auth_key,
				       sizeof(answer->auth_key));
	}
	if (!err)
		err = to_rts(c->qp, peer, answer, gid_index);
	if (!err && c->role != MEM_ROLE_PLAIN)
		err = c->visitor ? blk_guest_arm(c->visitor)
				 : space_conn_start(c);
	if (err) {
		close_qp(node, c, false);
		return error_set(err,
				 "cannot connect to the client's queue pair "
				 "%u: %s",
				 peer->qpn, strerror(-err));
	}
	return 0;
}

/* A program's name may hold anything; the log and the lists get what prints. */
static void copy_name(char out[MEM_CLIENT_NAME_MAX + 1], const char *name)
{
	size_t i;

	for (i = 0; i < MEM_CLIENT_NAME_MAX && name[i]; i++)
		out[i] = (char)(name[i] >= ' ' && name[i] <= '~' ? name[i]
								 : '?');
	out[i] = 0;
}

/* The answers of walks are kept until the client has them. */
static int charge_walks(struct mem_node *node, struct mem_conn *c,
			const struct conn_peer *peer)
{
	uint64_t bytes = region_pages((uint64_t)peer->walk_depth *
				      align_up(peer->walk_bytes, 64));
	int err;

	if (!peer->walk_depth)
		return 0;
	if (!node->walks || c->role != MEM_ROLE_PLAIN)
		return error_set(-EOPNOTSUPP,
				 "this connection cannot carry walks");
	err = space_charge(node, c->tenant, 0, bytes);
	if (!err)
		c->walk_bytes = bytes;
	return err;
}

static bool is_served(const struct mem_conn *c)
{
	return c->role == MEM_ROLE_SERVER || c->role == MEM_ROLE_BLOCKS;
}

/* Among what its tenant may have. */
static int count(const struct mem_conn *c)
{
	int err = tenant_take(c->tenant, MEM_LIMIT_CONNS, 1);

	if (!err && is_served(c)) {
		err = tenant_take(c->tenant, MEM_LIMIT_SERVERS, 1);
		if (err)
			tenant_give(c->tenant, MEM_LIMIT_CONNS, 1);
	}
	return err;
}

static void uncount(const struct mem_conn *c)
{
	tenant_give(c->tenant, MEM_LIMIT_CONNS, 1);
	if (is_served(c))
		tenant_give(c->tenant, MEM_LIMIT_SERVERS, 1);
}

int conn_create(struct mem_node *node, struct mem_tenant *tenant,
		const struct conn_peer *peer, struct conn_answer *answer,
		struct mem_conn **out)
{
	struct mem_conn *c;
	uint32_t slot = 0;
	int err;

	lock_assert_mutex_held(&node->lock);
	while (slot < MEM_CONN_MAX && node->conns[slot])
		slot++;
	if (slot == MEM_CONN_MAX)
		return error_set(-EAGAIN,
				 "this node has %d connections at most",
				 MEM_CONN_MAX);
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(-ENOMEM, "no memory for a connection");
	c->tenant = tenant;
	c->slot = slot;
	c->read_only = peer->read_only;
	c->narrow_id = peer->narrow_id;
	c->token = peer->token;
	c->role = peer->role;
	c->space = peer->owner ? peer->owner->space : NULL;
	c->without = peer->without;
	c->patience_ms = u32_max(peer->patience_ms,
				 MEM_HEARTBEAT_MS * MEM_HEARTBEAT_MISSES);
	answer->ack_timeout = ack_timeout(peer->patience_ms);
	c->seen_ns = env_now_ns(node->env);
	env_random(node->env, &c->nonce, sizeof(c->nonce));
	list_init(&c->grants);
	copy_name(c->client, peer->client);
	err = count(c);
	if (err) {
		free(c);
		return err;
	}
	err = charge_walks(node, c, peer);
	if (!err)
		err = make_qp(node, c, peer, answer);
	if (!err) {
		c->own_gid = answer->gid;
		c->client_gid = peer->gid;
		c->client_qpn = peer->qpn;
		c->client_psn = peer->psn;
		err = declare_conn(node, c);
		if (err)
			close_qp(node, c, false);
	}
	if (err) {
		space_uncharge(node, tenant, 0, c->walk_bytes);
		uncount(c);
		free(c);
		return err;
	}
	node->conns[slot] = c;
	node->conn_count++;
	node->conns_started++;
	*out = c;
	return 0;
}

void conn_end(struct mem_node *node, struct mem_conn *c, enum mem_end why)
{
	char id[CTL_BOND_TEXT];

	lock_assert_mutex_held(&node->lock);
	ctl_bond_format(c->nonce, c->slot, id);
	log_info("memnode", "connection %s of tenant %s (%s) ends: %s", id,
		 c->tenant->name, *c->client ? c->client : "no name",
		 conn_end_name(why));
	session_note_end(node, c);
	while (!list_is_empty(&c->grants))
		grant_end(node, c,
			  container_of(c->grants.next, struct mem_grant, node));
	declare_conn_end(node, c);
	close_qp(node, c, why == MEM_END_GONE);
	node->conns[c->slot] = NULL;
	node->conn_count--;
	node->conns_ended[why]++;
	space_uncharge(node, c->tenant, 0, c->walk_bytes);
	uncount(c);
	if (c->owns_space)
		space_end(node, c);
	life_end(node, &c->life);
}
