/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in the region of a memory node: by walks that it executes, or by a
 * READ for each node of a chain; one or several under way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "place.h"
#include "ticks.h"
#include "walk/build.h"
#include "walk_bench.h"

struct slot {
	struct walk_find_pad pad;
	struct walk_query query;
	uint64_t begun; /* ticks */
};

struct state {
	struct aq_rack *rack;
	struct aq_region *region;
	struct aq_walk *walk;
	struct aq_walks *walks;
	struct rng rng;
	struct slot slot[WALK_FLOOD];
};

/* A window, so that nothing is mapped: all ways go through both NICs. At a
 * switch nothing is. */
static int open_far(struct side *s, struct state *st, uint32_t depth)
{
	const struct walk_param *p = s->param;
	int err = place_rack(&st->rack);

	if (!err)
		err = p->cross ? aq_region_open(st->rack, WALK_CROSS_REGION, 0,
						&st->region)
			       : aq_region_open(st->rack, WALK_REGION,
						AQ_REGION_REVOCABLE,
						&st->region);
	if (!err)
		err = aq_walks_open(st->rack, depth, &st->walks);
	return err ? side_fail(s, err, aq_last_error()) : 0;
}

static int setup(struct side *s)
{
	const struct walk_param *p = s->param;
	const struct aq_walk_options o = {
		.flags = (p->way == WALK_WAY_READS ? AQ_WALK_HERE
						   : AQ_WALK_THERE) |
			 p->cross,
	};
	struct state *st;

	if (s->role != SIDE_CLIENT)
		return 0;
	st = calloc(1, sizeof(*st));
	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rng_init(&st->rng, 1);
	if (open_far(s, st, p->depth))
		return -EIO;
	return aq_walk_make(st->rack, &walk_list_shape, &o, &st->walk)
		       ? side_fail(s, -EIO, aq_last_error())
		       : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	if (!st)
		return;
	aq_walks_close(st->walks);
	aq_walk_close(st->walk);
	aq_region_close(st->region);
	aq_rack_close(st->rack);
	free(st);
}

static int submit(const struct walk_param *p, struct state *st,
		  struct slot *slot)
{
	slot->query = p->cross ? walk_cross_query(rng_u64(&st->rng))
			       : walk_list_query(p->list, rng_u64(&st->rng));
	slot->pad = (struct walk_find_pad){.key = slot->query.key};
	slot->begun = bench_ticks();
	return aq_walks_submit(st->walks, st->walk, st->region,
			       slot->query.start, &slot->pad, sizeof(slot->pad),
			       slot);
}

/* The first one may find that a node has no program yet. */
static bool crossed_well(const struct walk_param *p,
			 const struct aq_walk_result *r)
{
	if (!p->cross)
		return r->iterations == WALK_CHAIN;
	return r->iterations == WALK_CROSS_NODES &&
	       r->crossings == WALK_CROSS_NODES - 1 &&
	       (p->cross == AQ_WALK_CROSS_SWITCH) == (r->carried > 0);
}

static int check(const struct walk_param *p, const struct aq_walk_result *r)
{
	const struct slot *slot = r->user;

	if (r->err)
		return r->err;
	return slot->pad.found == 1 && slot->pad.value == slot->query.value &&
			       crossed_well(p, r)
		       ? 0
		       : -EBADMSG;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	const struct walk_param *p = s->param;
	struct aq_walk_result done[WALK_DEPTH];
	struct state *st = s->state;
	uint64_t end = side_end_ticks(s, window_ns);
	unsigned under_way = 0;
	int err = 0, n;

	out->ops = 0;
	for (; !err && under_way < p->depth; under_way++)
		err = submit(p, st, &st->slot[under_way]);
	while (!err && under_way) {
		n = aq_walks_poll(st->walks, done, WALK_DEPTH);
		err = n < 0 ? n : 0;
		for (int i = 0; i < n && !err; i++) {
			struct slot *slot = done[i].user;

			err = check(p, &done[i]);
			side_sample(s, 0, bench_ticks() - slot->begun);
			out->ops++;
			if (bench_ticks() >= end)
				under_way--;
			else if (!err)
				err = submit(p, st, slot);
		}
	}
	return err ? side_fail(s, err,
			       err == -EBADMSG ? "a wrong answer"
					       : aq_last_error())
		   : 0;
}

const struct side_ops walk_far_ops = {
	.setup = setup,
	.measure = measure,
	.teardown = teardown,
	.is_shared = true,
};

/* ---- READs beside long walks --------------------------------------------- */

enum {
	LONG_STEPS = 1000, /* of the 1,024 that a node allows */
};

/* Follows a chain, and from its end begins again where the pad says; at each
 * node it computes for as long as it may. */
static int build_long(uint8_t *bytes, size_t *len_bytes)
{
	struct walk_build *b = walk_build_create("long", 0, 256, 8, 0);
	int end = walk_build_label(b), err;
	struct walk_image image;

	walk_build_op(b, WALK_OP_LDI, 2, 0, 0, 1);
	for (int32_t i = 0; i < LONG_STEPS / 2; i++) {
		walk_build_op(b, WALK_OP_LDN8, 1, 0, 0, i % 32 * 8);
		walk_build_op(b, WALK_OP_ADD, 2, 2, 1, 0);
	}
	walk_build_op(b, WALK_OP_LDN8, 1, 0, 0,
		      offsetof(struct walk_node, next));
	walk_build_jump_imm(b, WALK_OP_JNEI, 1, 0, end);
	walk_build_op(b, WALK_OP_LDP8, 1, 0, 0, 0);
	walk_build_place(b, end);
	walk_build_op(b, WALK_OP_NEXT, 0, 1, 0, 0);
	err = walk_build_end(b, 0, &image, NULL);
	if (!err) {
		*len_bytes = walk_image_bytes(&image);
		walk_image_write(&image, bytes);
	}
	walk_build_destroy(b);
	return err;
}

/* Each walk goes round for ever; the node ends it after as many iterations as
 * one request may have, and the library goes on. */
static int flood(struct side *s)
{
	struct aq_walk_result done[WALK_DEPTH];
	const struct walk_param *p = s->param;
	struct state *st = s->state;
	int n;

	while (!side_stopped(s)) {
		for (uint32_t i = aq_walks_pending(st->walks);
		     p->is_beside && i < WALK_FLOOD; i++) {
			uint64_t *pad = &st->slot[i].pad.key;

			*pad = walk_list_at(p->list, i * WALK_CHAIN);
			if (aq_walks_submit(st->walks, st->walk, st->region,
					    *pad, pad, sizeof(*pad), NULL))
				return side_fail(s, -EIO, aq_last_error());
		}
		n = aq_walks_poll(st->walks, done, WALK_DEPTH);
		if (n < 0)
			return side_fail(s, n, aq_last_error());
		(void)usleep(100);
	}
	return 0;
}

static int setup_beside(struct side *s)
{
	const struct aq_walk_options long_ones = {.flags = AQ_WALK_THERE,
						  .iterations = UINT32_MAX};
	uint8_t image[WALK_IMAGE_MAX];
	size_t len_bytes;
	struct state *st;

	if (s->role == SIDE_CLIENT)
		return setup(s);
	st = calloc(1, sizeof(*st));
	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	if (open_far(s, st, WALK_FLOOD))
		return -EIO;
	return build_long(image, &len_bytes) ||
			       aq_walk_load_bytes(st->rack, image, len_bytes,
						  &long_ones, &st->walk)
		       ? side_fail(s, -EIO, aq_last_error())
		       : 0;
}

const struct side_ops walk_beside_ops = {
	.setup = setup_beside,
	.serve = flood,
	.measure = measure,
	.teardown = teardown,
	.is_shared = true,
};
