/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a leaf that are in a range, in their order. */
#include "ready_priv.h"

struct part {
	struct ready *c;
	const struct ready_range *to;
	int all;			 /* every key was looked at */
	int first[READY_FANOUT_MAX];	 /* key i is not too small */
	int too_large[READY_FANOUT_MAX]; /* key i is */
	int full[READY_FANOUT_MAX];	 /* there is no room for key i */
};

static void load_key(const struct part *p, uint32_t i)
{
	const struct aq_walk_shape *s = p->c->s;

	walk_build_jump_imm(p->c->b, WALK_OP_JLEI, R_COUNT, (int16_t)i,
			    p->to->next);
	ready_load(p->c, R_ORDER, s->key_at + i * s->key_stride, s->key_bytes);
}

/* All keys of most leaves are in the range. */
static void take_whole(const struct part *p)
{
	const struct ready *c = p->c;
	const int other = walk_build_label(c->b);

	walk_build_jump_imm(c->b, WALK_OP_JGTI, R_OFFSET, (int16_t)p->to->room,
			    other);
	for (uint32_t i = 0; i < c->s->fanout; i++) {
		load_key(p, i);
		if (i == 0) {
			walk_build_jump(c->b, WALK_OP_JLT, R_ORDER, R_KEY,
					other);
			walk_build_op(c->b, WALK_OP_BND, 0, R_OFFSET, 0,
				      (int32_t)p->to->room);
		}
		walk_build_jump(c->b, WALK_OP_JLT, R_HIGH, R_ORDER,
				p->too_large[i]);
		p->to->take_whole(p->c, i);
	}
	walk_build_jump_always(c->b, p->all);
	walk_build_place(c->b, other);
}

/* Those that are too small are taken from the count of those found, which gets
 * all of them in the end. */
static void skip_small(const struct part *p)
{
	for (uint32_t i = 0; i < p->c->s->fanout; i++) {
		load_key(p, i);
		walk_build_jump(p->c->b, WALK_OP_JLE, R_KEY, R_ORDER,
				p->first[i]);
		walk_build_op(p->c->b, WALK_OP_SUBI, R_FOUND, R_FOUND, 0, 1);
	}
	walk_build_jump_always(p->c->b, p->all);
}

static void take(const struct part *p)
{
	for (uint32_t i = 0; i < p->c->s->fanout; i++) {
		/* Whoever comes from above has the key. */
		if (i > 0)
			load_key(p, i);
		walk_build_place(p->c->b, p->first[i]);
		walk_build_jump(p->c->b, WALK_OP_JLT, R_HIGH, R_ORDER,
				p->too_large[i]);
		p->to->take(p->c, i, p->full[i]);
	}
}

/* Number i is how many keys were looked at before it. */
static void leave(const struct part *p, const int *label, int to)
{
	for (uint32_t i = 0; i < p->c->s->fanout; i++) {
		walk_build_place(p->c->b, label[i]);
		walk_build_op(p->c->b, WALK_OP_ADDI, R_FOUND, R_FOUND, 0,
			      (int32_t)i);
		walk_build_jump_always(p->c->b, to);
	}
}

void ready_range(struct ready *c, const struct ready_range *to)
{
	struct part p = {.c = c, .to = to, .all = walk_build_label(c->b)};

	for (uint32_t i = 0; i < c->s->fanout; i++) {
		p.first[i] = walk_build_label(c->b);
		p.too_large[i] = walk_build_label(c->b);
		p.full[i] = to->full >= 0 ? walk_build_label(c->b) : -1;
	}
	if (to->take_whole)
		take_whole(&p);
	skip_small(&p);
	take(&p);
	walk_build_place(c->b, p.all);
	/* What counts more than there is room for has no more than that. */
	walk_build_const(c->b, R_COUNT, c->s->fanout);
	walk_build_jump_always(c->b, to->next);
	leave(&p, p.too_large, to->end);
	if (to->full >= 0)
		leave(&p, p.full, to->full);
	walk_build_place(c->b, to->next);
	walk_build_op(c->b, WALK_OP_ADD, R_FOUND, R_FOUND, R_COUNT, 0);
}
