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

#include "kv_fig_rival.h"

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
};

struct fusee {
	uint64_t slots;
	uint64_t pair_bytes;
	uint64_t pairs_at;
	struct scenario_region *region;
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
	err = scenario_region_create(f->node[0], bytes, false, &u->region);
	if (err)
		return err;
	slot = (uint64_t *)(void *)u->region->mem;
	for (i = 0; i < f->records; i++)
		slot[i] = u->pairs_at +
			  i % ((uint64_t)f->cfg.clients * AREA_PAIRS) *
				  u->pair_bytes;
	return 0;
}

static int open_one(struct kvf_client *c)
{
	struct fusee *u = c->f->rival;

	return rival_open(c, &u->region, 1, (struct rival **)&c->rival);
}

/* Its own, and the other that the key could be in. */
static void add_buckets(const struct fusee *u, struct rival *v, uint64_t record)
{
	uint64_t bytes = (u->slots - 16) * SLOT_BYTES;
	uint64_t other = record * 0x9e3779b97f4a7c15u % bytes;

	rival_read(v, u->region,
		   record % u->slots * SLOT_BYTES / BUCKET_BYTES * BUCKET_BYTES,
		   BUF_BUCKETS, BUCKET_BYTES);
	rival_read(v, u->region, other / BUCKET_BYTES * BUCKET_BYTES,
		   BUF_BUCKETS + BUCKET_BYTES, BUCKET_BYTES);
}

static uint64_t slot_of(const struct fusee *u, uint64_t record)
{
	return record % (u->slots - 16);
}

static uint64_t found(const struct fusee *u, struct rival *v, uint64_t record)
{
	return *rival_word(
		v, (uint32_t)(slot_of(u, record) * SLOT_BYTES % BUCKET_BYTES));
}

static int read_one(struct kvf_client *c, uint64_t record)
{
	struct fusee *u = c->f->rival;
	struct rival *v = c->rival;
	int err;

	record = slot_of(u, record);
	add_buckets(u, v, record);
	err = rival_go(c, v, 0);
	if (err)
		return err;
	rival_read(v, u->region, found(u, v, record), BUF_PAIR,
		   (uint32_t)u->pair_bytes);
	return rival_go(c, v, 0);
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
	rival_write(v, u->region, at, BUF_PAIR, (uint32_t)u->pair_bytes);
	add_buckets(u, v, record);
	err = rival_go(c, v, 0);
	if (err)
		return err;
	if (!c->f->cfg.inserts) {
		rival_read(v, u->region, found(u, v, record), BUF_OLD,
			   (uint32_t)u->pair_bytes);
		err = rival_go(c, v, 0);
		if (err)
			return err;
	}
	rival_cas(v, u->region, record * SLOT_BYTES, BUF_PAIR + BUF_ANSWER,
		  found(u, v, record), at);
	err = rival_go(c, v, 0);
	if (err || !c->f->cfg.inserts)
		return err;
	add_buckets(u, v, record);
	return rival_go(c, v, 0);
}

static void close_one(struct kvf_client *c)
{
	rival_close(c->rival);
	c->rival = NULL;
}

static void release(struct kvf *f)
{
	free(f->rival);
}

const struct kvf_ops kvf_fusee_ops = {
	.name = "fusee-like",
	.prepare = prepare,
	.open = open_one,
	.read = read_one,
	.change = change_one,
	.close = close_one,
	.release = release,
};
