/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of FUSEE (Shen et al., FAST 2023) with one memory node: an index of
 * eight-byte pointers in two-choice buckets, changed by CAS, and pairs beside
 * it, each in a block of 256 bytes with its log entry, written and read whole.
 * Reads: both buckets, then the pair. Updates: the pair written together with
 * reading the buckets, then the old pair, because a pointer has eight bits of
 * the key only, then the CAS; who loses it has been overwritten and is done.
 * Inserts have no old pair, and look at the buckets once more. With one memory
 * node there are neither replicas nor log writes of their own. Requests and
 * sizes are those of its public code; memory comes for free.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "kv_fig_priv.h"

enum {
	BUCKET_BYTES = 128, /* with the overflow bucket beside it */
	SLOT_BYTES = 8,
	AREA_PAIRS = 1024, /* of a client, used in turns */
	PAIR_HEAD = 24,
	PAIR_UNIT = 256, /* its smallest block */
	BUF_BUCKETS = 0,
	BUF_PAIR = 512,
	BUF_OLD = 4096,
	BUF_ANSWER = 8,
	BUF_BYTES = 8192,
	REQUESTS_MAX = 4,
};

/* One client's memory, connection and requests, posted together. */
struct rival {
	struct client_link *link;
	struct ibv_mr *mr;
	uint8_t *buf;
	unsigned count;
	struct ibv_send_wr wr[REQUESTS_MAX];
	struct ibv_sge sge[REQUESTS_MAX];
};

struct fusee {
	uint64_t slots;
	uint64_t pair_bytes;
	uint64_t pairs_at;
	struct rig_region *region;
};

static int prepare(struct kvf *f)
{
	struct fusee *u = calloc(1, sizeof(*u));
	uint64_t bytes, i, *slot;
	int err;

	if (!u)
		return -ENOMEM;
	f->rival = u;
	u->slots = align_up(f->cfg.capacity, 16) + BUCKET_BYTES;
	u->pair_bytes = align_up(PAIR_HEAD + f->cfg.value_bytes, PAIR_UNIT);
	u->pairs_at = align_up(u->slots * SLOT_BYTES, 4096);
	bytes = u->pairs_at +
		((uint64_t)f->cfg.clients * AREA_PAIRS + 1) * u->pair_bytes;
	err = rig_region_create(f->node[0], bytes, false, &u->region);
	if (err)
		return err;
	slot = (uint64_t *)(void *)u->region->mem;
	for (i = 0; i < f->records; i++)
		slot[i] = u->pairs_at +
			  i % ((uint64_t)f->cfg.clients * AREA_PAIRS) *
				  u->pair_bytes;
	return 0;
}

/* ---- requests ----------------------------------------------------------- */

static void close_one(struct kvf_client *c)
{
	struct rival *v = c->rival;

	c->rival = NULL;
	if (!v)
		return;
	if (v->link)
		rig_link_close(v->link);
	if (v->mr)
		(void)ibv_dereg_mr(v->mr);
	free(v->buf);
	free(v);
}

static int open_one(struct kvf_client *c)
{
	struct client_link_options o = {.send_depth = 16,
					.rights = CLIENT_LINK_ALL};
	struct fusee *u = c->f->rival;
	struct rival *v = calloc(1, sizeof(*v));

	c->rival = v;
	if (!v)
		return -ENOMEM;
	v->buf = calloc(1, BUF_BYTES);
	if (v->buf)
		v->mr = ibv_reg_mr(c->host->pd, v->buf, BUF_BYTES,
				   IBV_ACCESS_LOCAL_WRITE);
	return v->mr ? rig_link_open(c->host, u->region, &o, &v->link)
		     : -ENOMEM;
}

static struct ibv_send_wr *add(struct rival *v, enum ibv_wr_opcode opcode,
			       uint32_t buf_at, uint32_t len_bytes)
{
	unsigned i = v->count++;

	ASSERT(i < REQUESTS_MAX);
	v->sge[i] = (struct ibv_sge){.addr = (uintptr_t)v->buf + buf_at,
				     .length = len_bytes,
				     .lkey = v->mr->lkey};
	v->wr[i] = (struct ibv_send_wr){
		.opcode = opcode, .sg_list = &v->sge[i], .num_sge = 1};
	if (i)
		v->wr[i - 1].next = &v->wr[i];
	return &v->wr[i];
}

static void add_rdma(const struct fusee *u, struct rival *v,
		     enum ibv_wr_opcode opcode, uint64_t at, uint32_t buf_at,
		     uint32_t len_bytes)
{
	struct ibv_send_wr *wr = add(v, opcode, buf_at, len_bytes);

	wr->wr.rdma.remote_addr = u->region->addr + at;
	wr->wr.rdma.rkey = u->region->rkey;
}

static void add_read(const struct fusee *u, struct rival *v, uint64_t at,
		     uint32_t buf_at, uint32_t len_bytes)
{
	add_rdma(u, v, IBV_WR_RDMA_READ, at, buf_at, len_bytes);
}

static void add_cas(const struct fusee *u, struct rival *v, uint64_t at,
		    uint32_t buf_at, uint64_t compare, uint64_t swap)
{
	struct ibv_send_wr *wr = add(v, IBV_WR_ATOMIC_CMP_AND_SWP, buf_at, 8);

	wr->wr.atomic.remote_addr = u->region->addr + at;
	wr->wr.atomic.rkey = u->region->rkey;
	wr->wr.atomic.compare_add = compare;
	wr->wr.atomic.swap = swap;
}

/* One round trip: posts what was added, and waits. */
static int go(struct kvf_client *c)
{
	struct rival *v = c->rival;
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	v->wr[v->count - 1].send_flags = IBV_SEND_SIGNALED;
	v->count = 0;
	if (ibv_post_send(v->link->qp, v->wr, &bad))
		return -EIO;
	while ((n = ibv_poll_cq(v->link->cq, 1, &wc)) == 0)
		client_clock_relax(&c->host->clock);
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

/* ---- operations --------------------------------------------------------- */

/* Its own, and the other that the key could be in. */
static void add_buckets(const struct fusee *u, struct rival *v, uint64_t record)
{
	uint64_t bytes = (u->slots - 16) * SLOT_BYTES;
	uint64_t other = record * 0x9e3779b97f4a7c15u % bytes;

	add_read(u, v,
		 record % u->slots * SLOT_BYTES / BUCKET_BYTES * BUCKET_BYTES,
		 BUF_BUCKETS, BUCKET_BYTES);
	add_read(u, v, other / BUCKET_BYTES * BUCKET_BYTES,
		 BUF_BUCKETS + BUCKET_BYTES, BUCKET_BYTES);
}

static uint64_t slot_of(const struct fusee *u, uint64_t record)
{
	return record % (u->slots - 16);
}

static uint64_t found(const struct fusee *u, struct rival *v, uint64_t record)
{
	uint64_t word;

	memcpy(&word, v->buf + slot_of(u, record) * SLOT_BYTES % BUCKET_BYTES,
	       sizeof(word));
	return word;
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct fusee *u = c->f->rival;
	struct rival *v = c->rival;
	int err;

	record = slot_of(u, record);
	add_buckets(u, v, record);
	err = go(c);
	if (err)
		return err;
	add_read(u, v, found(u, v, record), BUF_PAIR, (uint32_t)u->pair_bytes);
	return go(c);
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct fusee *u = c->f->rival;
	struct rival *v = c->rival;
	uint64_t at = u->pairs_at + ((uint64_t)c->index * AREA_PAIRS +
				     c->inserted++ % AREA_PAIRS) *
					    u->pair_bytes;
	int err;

	record = slot_of(u, record);
	add_rdma(u, v, IBV_WR_RDMA_WRITE, at, BUF_PAIR,
		 (uint32_t)u->pair_bytes);
	add_buckets(u, v, record);
	err = go(c);
	if (err)
		return err;
	if (!c->f->cfg.inserts) {
		add_read(u, v, found(u, v, record), BUF_OLD,
			 (uint32_t)u->pair_bytes);
		err = go(c);
		if (err)
			return err;
	}
	add_cas(u, v, record * SLOT_BYTES, BUF_PAIR + BUF_ANSWER,
		found(u, v, record), at);
	err = go(c);
	if (err || !c->f->cfg.inserts)
		return err;
	add_buckets(u, v, record);
	return go(c);
}

static void release(struct kvf *f)
{
	free(f->rival);
}

const struct kvf_ops kvf_fusee_ops = {
	.name = "fusee-like (model)",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
