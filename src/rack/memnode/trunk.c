/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of blocks as the controller orders them, and the connections between
 * nodes that they need. Nodes do not call each other: an end of a connection is
 * offered in beats, with a serial number, and the controller passes it on to
 * the peer. An end is bound to one end of the peer; when the peer offers
 * another one, or the connection breaks, a new end is offered.
 */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/lock.h"
#include "base/log.h"
#include "blocks.h"
#include "pair/pair.h"

enum {
	ACK_TIMEOUT = 14, /* 67 ms, eight times */
};

struct mem_trunk {
	char peer[MEM_NODE_NAME_MAX + 1];
	struct blk_trunk *trunk; /* NULL: none is offered */
	uint64_t serial;
	uint64_t bound; /* the peer's; 0: none */
	union ibv_gid gid;
	uint8_t gid_index;
	uint32_t psn;
	uint8_t key[AQDV_AUTH_KEY_BYTES];
};

struct mem_trunks {
	struct ibv_pd *pd;
	unsigned count;
	struct mem_trunk row[BLK_TRUNKS_MAX];
};

/* ---- ends ---------------------------------------------------------------- */

static void drop(struct mem_trunk *t)
{
	if (t->trunk)
		blk_trunk_destroy(t->trunk);
	t->trunk = NULL;
	t->bound = 0;
}

static int offer(struct mem_node *node, struct mem_trunk *t)
{
	struct mem_blocks *b = node->blocks;
	int err = pair_gid(node->context, NULL, &t->gid_index, &t->gid);

	if (err)
		return error_set(err, "the NIC has no RoCEv2 address");
	env_random(node->env, &t->serial, sizeof(t->serial));
	t->serial = (t->serial >> 2) + 1; /* a number of JSON */
	env_random(node->env, &t->psn, sizeof(t->psn));
	t->psn &= PAIR_PSN_MASK;
	env_random(node->env, t->key, sizeof(t->key));
	t->bound = 0;
	return blk_trunk_create(b->server, b->trunks->pd,
				(unsigned)(t - b->trunks->row), &t->trunk);
}

struct end {
	const char *peer;
	uint64_t serial, bound, qpn, psn, mtu;
	union ibv_gid gid;
	uint8_t key[AQDV_AUTH_KEY_BYTES];
};

static int parse_end(const json_t *row, struct end *e)
{
	int err = json_is_object(row)
			  ? ctl_field_string(row, "peer", true, &e->peer)
			  : -EINVAL;

	if (!err)
		err = ctl_field_u64(row, "serial", true, 1, INT64_MAX,
				    &e->serial);
	if (!err)
		err = ctl_field_u64(row, "bound", true, 0, INT64_MAX,
				    &e->bound);
	if (!err)
		err = ctl_field_u64(row, "qpn", true, 0, PAIR_PSN_MASK,
				    &e->qpn);
	if (!err)
		err = ctl_field_u64(row, "psn", true, 0, PAIR_PSN_MASK,
				    &e->psn);
	if (!err)
		err = ctl_field_u64(row, "mtu", true, IBV_MTU_256, IBV_MTU_4096,
				    &e->mtu);
	if (!err && (!hex_read(json_string_value(json_object_get(row, "gid")),
			       e->gid.raw, sizeof(e->gid.raw)) ||
		     !hex_read(json_string_value(json_object_get(row, "key")),
			       e->key, sizeof(e->key))))
		err = error_set(-EINVAL, "an address or a key is missing");
	return err;
}

static int bind_end(struct mem_node *node, struct mem_trunk *t,
		    const struct end *e)
{
	/* One of both keys, the same at both ends. */
	const uint8_t *key = strcmp(node->name, e->peer) < 0 ? t->key : e->key;
	struct ibv_qp *qp = blk_trunk_qp(t->trunk);
	enum ibv_mtu mtu = node->mtu;
	struct pair_end end = {
		.gid = e->gid,
		.gid_index = t->gid_index,
		.qpn = (uint32_t)e->qpn,
		.psn = (uint32_t)e->psn,
		.own_psn = t->psn,
		.reads_in = 1,
		.reads_out = 1,
		.timeout = ACK_TIMEOUT,
		.retries = PAIR_RETRIES,
		.rnr_timer = PAIR_RNR_TIMER,
	};
	int err = pair_init(ibv_modify_qp, qp, 0);

	if (aqdv_query_path_mtu(node->context, &e->gid, &mtu))
		mtu = node->mtu;
	end.mtu = mtu < (enum ibv_mtu)e->mtu ? mtu : (enum ibv_mtu)e->mtu;
	if (!err && node->has_auth)
		err = aqdv_qp_set_auth(qp, key, sizeof(t->key));
	if (!err)
		err = pair_connect(ibv_modify_qp, qp, &end);
	if (!err)
		err = blk_trunk_arm(t->trunk);
	if (err)
		return error_set(err, "cannot connect to node %s: %s", t->peer,
				 strerror(-err));
	t->bound = e->serial;
	log_info("memnode", "chains: connected to node %s", t->peer);
	return 0;
}

static struct mem_trunk *find(struct mem_trunks *all, const char *peer)
{
	for (unsigned i = 0; i < all->count; i++)
		if (strcmp(all->row[i].peer, peer) == 0)
			return &all->row[i];
	return NULL;
}

static struct mem_trunk *want(struct mem_node *node, const char *peer)
{
	struct mem_trunks *all = node->blocks->trunks;
	struct mem_trunk *t = find(all, peer);

	if (!t && all->count < BLK_TRUNKS_MAX) {
		t = &all->row[all->count++];
		(void)snprintf(t->peer, sizeof(t->peer), "%s", peer);
	}
	if (t && !t->trunk && offer(node, t))
		log_warn("memnode", "%s", error_last());
	return t;
}

static void take_end(struct mem_node *node, const json_t *row)
{
	struct end e = {0};
	struct mem_trunk *t;

	if (parse_end(row, &e)) {
		log_warn("memnode", "an end of a connection is left out: %s",
			 error_last());
		return;
	}
	t = want(node, e.peer);
	if (!t || !t->trunk || t->bound == e.serial)
		return;
	if (t->bound) {
		/* It has begun anew, so do we. */
		drop(t);
		if (offer(node, t)) {
			log_warn("memnode", "%s", error_last());
			return;
		}
	}
	if ((!e.bound || e.bound == t->serial) && bind_end(node, t, &e)) {
		log_warn("memnode", "%s", error_last());
		drop(t);
	}
	mem_blocks_wake(node);
}

/* ---- chains -------------------------------------------------------------- */

static int parse_member(struct mem_node *node, const json_t *row,
			struct blk_member *m)
{
	const char *name = json_string_value(json_array_get(row, 0));
	const json_t *index = json_array_get(row, 1);
	const json_t *generation = json_array_get(row, 2);
	struct mem_trunk *t;

	if (!name || strlen(name) > MEM_NODE_NAME_MAX ||
	    !json_is_integer(index) || json_integer_value(index) < 0 ||
	    json_integer_value(index) >= BLK_INDEX_MAX ||
	    !json_is_integer(generation) || json_integer_value(generation) < 1)
		return error_set(-EINVAL, "a member of a chain is [node, "
					  "index, generation]");
	*m = (struct blk_member){
		.node = UINT32_MAX,
		.index = (uint32_t)json_integer_value(index),
		.generation = (uint64_t)json_integer_value(generation)};
	if (strcmp(name, node->name) == 0)
		return 0;
	t = want(node, name);
	if (t)
		m->node = (uint32_t)(t - node->blocks->trunks->row);
	return 0;
}

static int take_chain(struct mem_node *node, const json_t *row)
{
	const json_t *members = json_object_get(row, "members");
	uint64_t index = 0, generation = 0, full = 0;
	struct blk_chain_config c = {0};
	int err =
		ctl_field_u64(row, "index", true, 0, BLK_INDEX_MAX - 1, &index);

	c.count = (unsigned)json_array_size(members);
	c.at = UINT32_MAX;
	c.is_fresh = json_is_true(json_object_get(row, "fresh"));
	if (!err)
		err = ctl_field_u64(row, "generation", true, 1, INT64_MAX,
				    &generation);
	if (!err)
		err = ctl_field_u64(row, "epoch", true, 1, INT64_MAX, &c.epoch);
	if (!err && (!c.count || c.count > BLK_CHAIN_MAX))
		err = error_set(-EINVAL, "a chain has 1 to %d members",
				BLK_CHAIN_MAX);
	if (!err)
		err = ctl_field_u64(row, "full", true, 1, c.count, &full);
	c.full = (unsigned)full;
	for (unsigned i = 0; i < c.count && !err; i++) {
		err = parse_member(node, json_array_get(members, i),
				   &c.member[i]);
		if (!err && c.member[i].generation == generation)
			c.at = i;
	}
	if (!err && c.at == UINT32_MAX)
		err = error_set(-EINVAL, "a chain without the block itself");
	if (err)
		return err;
	/* It may not be made yet; the order comes again. */
	if (!blk_server_configure(node->blocks->server, (uint32_t)index,
				  generation, &c))
		mem_blocks_wake(node);
	return 0;
}

/* ---- beats --------------------------------------------------------------- */

void mem_trunks_hear(struct mem_node *node, const json_t *answer)
{
	const json_t *row;
	size_t i;

	lock_assert_mutex_held(&node->lock);
	if (!node->blocks)
		return;
	json_array_foreach(json_object_get(answer, "chains"), i, row)
	{
		if (take_chain(node, row))
			log_warn("memnode", "a chain is left out: %s",
				 error_last());
	}
	json_array_foreach(json_object_get(answer, "links"), i, row)
		take_end(node, row);
}

void mem_trunks_say(struct mem_node *node, json_t *beat)
{
	const struct mem_trunks *all = node->blocks->trunks;
	json_t *rows = json_array();

	for (unsigned i = 0; i < all->count; i++) {
		const struct mem_trunk *t = &all->row[i];
		char gid[2 * sizeof(t->gid.raw) + 1];
		char key[2 * sizeof(t->key) + 1];

		if (!t->trunk)
			continue;
		hex_write(gid, t->gid.raw, sizeof(t->gid.raw));
		hex_write(key, t->key, sizeof(t->key));
		(void)json_array_append_new(
			rows,
			json_pack("{s:s, s:I, s:I, s:s, s:I, s:I, s:i, s:s}",
				  "peer", t->peer, "serial",
				  (json_int_t)t->serial, "bound",
				  (json_int_t)t->bound, "gid", gid, "qpn",
				  (json_int_t)blk_trunk_qp(t->trunk)->qp_num,
				  "psn", (json_int_t)t->psn, "mtu",
				  (int)node->mtu, "key", key));
	}
	(void)json_object_set_new(beat, "links", rows);
}

void mem_trunks_tick(struct mem_node *node)
{
	struct mem_trunks *all = node->blocks->trunks;

	for (unsigned i = 0; i < all->count; i++) {
		struct mem_trunk *t = &all->row[i];

		if (!t->trunk || !blk_trunk_is_broken(t->trunk))
			continue;
		log_info("memnode", "chains: the connection to node %s broke",
			 t->peer);
		drop(t);
		if (offer(node, t))
			log_warn("memnode", "%s", error_last());
		mem_blocks_wake(node);
	}
}

/* ---- life ---------------------------------------------------------------- */

int mem_trunks_create(struct mem_node *node, struct mem_trunks **out)
{
	struct mem_trunks *all = calloc(1, sizeof(*all));

	if (all)
		all->pd = ibv_alloc_pd(node->context);
	if (!all || !all->pd) {
		free(all);
		return error_set(-ENOMEM, "no memory for chains");
	}
	*out = all;
	return 0;
}

void mem_trunks_destroy(struct mem_trunks *all)
{
	for (unsigned i = 0; i < all->count; i++)
		drop(&all->row[i]);
	(void)ibv_dealloc_pd(all->pd);
	free(all);
}
