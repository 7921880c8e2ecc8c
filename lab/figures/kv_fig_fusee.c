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

#include "kv_fig_priv.h"
#include "rig/trip.h"

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

static void close_one(struct kvf_client *c)
{
	struct rig_trip *v = c->rival;
	struct client_link *link = v ? v->link : NULL;

	c->rival = NULL;
	if (v)
		rig_trip_close(v);
	if (link)
		rig_link_close(link);
	free(v);
}

static int open_one(struct kvf_client *c)
{
	struct client_link_options o = {.send_depth = 16,
					.rights = CLIENT_LINK_ALL};
	struct fusee *u = c->f->rival;
	struct rig_trip *v = calloc(1, sizeof(*v));
	struct client_link *link;
	int err = v ? rig_link_open(c->host, u->region, &o, &link) : -ENOMEM;

	c->rival = v;
	return err ? err : rig_trip_open(v, link, u->region, BUF_BYTES);
}

static void add_read(struct rig_trip *v, uint64_t at, uint32_t buf_at,
		     uint64_t len_bytes)
{
	rig_trip_add(v, IBV_WR_RDMA_READ, at, buf_at, (uint32_t)len_bytes);
}

/* ---- operations --------------------------------------------------------- */

/* Its own, and the other that the key could be in. */
static void add_buckets(const struct fusee *u, struct rig_trip *v,
			uint64_t record)
{
	uint64_t bytes = (u->slots - 16) * SLOT_BYTES;
	uint64_t other = record * 0x9e3779b97f4a7c15u % bytes;

	add_read(v,
		 record % u->slots * SLOT_BYTES / BUCKET_BYTES * BUCKET_BYTES,
		 BUF_BUCKETS, BUCKET_BYTES);
	add_read(v, other / BUCKET_BYTES * BUCKET_BYTES,
		 BUF_BUCKETS + BUCKET_BYTES, BUCKET_BYTES);
}

static uint64_t slot_of(const struct fusee *u, uint64_t record)
{
	return record % (u->slots - 16);
}

static uint64_t found(const struct fusee *u, struct rig_trip *v,
		      uint64_t record)
{
	uint64_t word;

	memcpy(&word, v->buf + slot_of(u, record) * SLOT_BYTES % BUCKET_BYTES,
	       sizeof(word));
	return word;
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct fusee *u = c->f->rival;
	struct rig_trip *v = c->rival;
	int err;

	record = slot_of(u, record);
	add_buckets(u, v, record);
	err = rig_trip_go(v);
	if (err)
		return err;
	add_read(v, found(u, v, record), BUF_PAIR, u->pair_bytes);
	return rig_trip_go(v);
}

static int change_one(struct kvf_client *c, uint64_t record)
{
	struct fusee *u = c->f->rival;
	struct rig_trip *v = c->rival;
	uint64_t at = u->pairs_at + ((uint64_t)c->index * AREA_PAIRS +
				     c->inserted++ % AREA_PAIRS) *
					    u->pair_bytes;
	int err;

	record = slot_of(u, record);
	rig_trip_add(v, IBV_WR_RDMA_WRITE, at, BUF_PAIR,
		     (uint32_t)u->pair_bytes);
	add_buckets(u, v, record);
	err = rig_trip_go(v);
	if (err)
		return err;
	if (!c->f->cfg.inserts) {
		add_read(v, found(u, v, record), BUF_OLD, u->pair_bytes);
		err = rig_trip_go(v);
		if (err)
			return err;
	}
	rig_trip_add_cas(v, record * SLOT_BYTES, BUF_PAIR + BUF_ANSWER,
			 found(u, v, record), at);
	err = rig_trip_go(v);
	if (err || !c->f->cfg.inserts)
		return err;
	add_buckets(u, v, record);
	return rig_trip_go(v);
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
