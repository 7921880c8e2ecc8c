/* SPDX-License-Identifier: Apache-2.0 */
/* Slots that move between blocks: who may send to whom, and what became of it.
 * The rules are in blk_ekv.h. */
#include "base/plant.h"
#include "blk.h"

static struct block_kv_end_wire end_at_scratch(const struct blk_block *b)
{
	struct block_kv_end_wire w;

	memcpy(&w, blk_ekv_scratch(b), sizeof(w));
	return w;
}

uint8_t *blk_ekv_end_place(struct blk_block *b, const struct blk_request *r,
			   struct blk_answer *a)
{
	a->status = BLOCK_BAD;
	return r->length == sizeof(struct block_kv_end_wire)
		       ? blk_ekv_scratch(b)
		       : NULL;
}

void blk_ekv_look(struct blk_block *b, const struct blk_request *r,
		  uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	const struct blk_ekv *e = &b->ekv;
	struct block_kv_look_wire w = {
		.lo = be32_put(e->lo),
		.hi = be32_put(e->hi),
		.frozen_lo = be32_put(e->out.is_frozen ? e->out.lo : 0),
		.frozen_hi = be32_put(e->out.is_frozen ? e->out.hi : 0),
		.used = be64_put(e->live),
		.room = be64_put(e->room),
		.items = be64_put(e->items),
		.decided = be64_put(e->in.batch),
		.from = {.number = be64_put(e->in.number),
			 .generation = be64_put(e->in.generation),
			 .token = be32_put(e->in.token)},
		.to = {.number = be64_put(e->out.number),
		       .generation = be64_put(e->out.generation),
		       .token = be32_put(e->out.token),
		       .is_bottom = be16_put(e->out.is_bottom),
		       .is_all = be16_put(e->out.is_all)},
	};

	if (r->inside_room < sizeof(w)) {
		a->status = BLOCK_LATER;
		return;
	}
	memcpy(blk_ekv_scratch(b), &w, sizeof(w));
	a->data = blk_ekv_scratch(b);
	a->length = sizeof(w);
	a->is_inside = true;
}

/* ---- the target ---------------------------------------------------------- */

void blk_ekv_bind(struct blk_block *b, const struct blk_request *r,
		  uint32_t session, struct blk_done *done, struct blk_answer *a)
{
	struct block_kv_end_wire from = end_at_scratch(b);
	struct blk_ekv *e = &b->ekv;

	a->status = BLOCK_BAD;
	if (!be64_get(from.generation) ||
	    be64_get(from.generation) == b->generation)
		return;
	a->status = b->flags & BLOCK_IS_SEALED ? BLOCK_CLOSED : BLOCK_REFUSED;
	if (a->status == BLOCK_CLOSED || e->in.generation || e->out.generation)
		return;
	e->in = (struct blk_ekv_in){
		.number = be64_get(from.number),
		.generation = be64_get(from.generation),
		.token = e->in.token + 1,
	};
	a->status = BLOCK_OK;
	a->value = e->in.token;
}

void blk_ekv_unbind(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
	struct blk_ekv_in *in = &b->ekv.in;

	if (!in->generation || in->token != r->arg >> 32)
		return; /* it was unbound before */
	/* More has come since the caller saw that the source is at rest. */
	if ((in->batch & (BLOCK_KV_HAS - 1)) != (uint32_t)r->arg) {
		a->status = BLOCK_REFUSED;
		return;
	}
	blk_ekv_unstage(b);
	in->generation = 0;
}

/* ---- the source ---------------------------------------------------------- */

static bool is_over(const struct blk_ekv *e)
{
	uint32_t left = e->hi - e->lo;

	return e->out.is_all ? !left : left < 2 || e->live <= e->out.goal_bytes;
}

void blk_ekv_start(struct blk_block *b, const struct blk_request *r,
		   uint32_t session, struct blk_done *done,
		   struct blk_answer *a)
{
	struct block_kv_end_wire to = end_at_scratch(b);
	uint64_t generation = be64_get(to.generation);
	uint32_t token = be32_get(to.token);
	struct blk_ekv *e = &b->ekv;
	struct blk_ekv_out *o = &e->out;

	a->status = BLOCK_BAD;
	if (!generation || generation == b->generation || !token)
		return;
	a->status = BLOCK_OK;
	if (o->generation == generation && o->token == token)
		return; /* somebody has started it */
	a->status = BLOCK_REFUSED;
	if (e->in.generation || o->generation ||
	    e->hi - e->lo < (be16_get(to.is_all) ? 1 : 2))
		return;
	o->number = be64_get(to.number);
	o->generation = generation;
	o->token = token;
	o->is_bottom = be16_get(to.is_bottom);
	o->is_all = be16_get(to.is_all);
	o->goal_bytes = e->live / 2;
	a->status = BLOCK_OK;
}

static void drop_slots(struct blk_block *b)
{
	struct blk_ekv *e = &b->ekv;
	struct blk_record *r;

	for (uint32_t s = e->out.lo; s < e->out.hi; s++)
		while ((r = blk_record_at(b, e->slot[s])))
			blk_record_kill(b, r);
	if (e->out.is_bottom)
		e->lo = e->out.hi;
	else
		e->hi = e->out.lo;
}

bool blk_ekv_is_under_way(const struct blk_block *b)
{
	struct block_kv_end_wire to = end_at_scratch(b);
	const struct blk_ekv_out *o = &b->ekv.out;

	return o->generation && o->token == be32_get(to.token) &&
	       (o->generation == be64_get(to.generation) ||
		PLANTED(kv_any_target));
}

void blk_ekv_settle(struct blk_block *b, const struct blk_request *r,
		    uint32_t session, struct blk_done *done,
		    struct blk_answer *a)
{
	struct blk_ekv *e = &b->ekv;
	struct blk_ekv_out *o = &e->out;
	uint64_t mask = BLOCK_KV_HAS - 1;

	if (!blk_ekv_is_under_way(b))
		return; /* it has ended */
	if (o->is_frozen && (o->batch & mask) == (r->arg & mask)) {
		o->is_frozen = false;
		if (r->arg & BLOCK_KV_HAS)
			drop_slots(b);
		if (!(r->arg & BLOCK_KV_HAS) || is_over(e))
			o->generation = 0;
	}
	a->value = o->generation != 0;
}
