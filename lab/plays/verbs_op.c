/* SPDX-License-Identifier: Apache-2.0 */
/* Draws one random request: kind, size, place, flags, and sometimes a fault. */
#include <aquifer/aqdv.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"

void vs_op_put(struct vs_op *op)
{
	if (--op->refs)
		return;
	free(op->data);
	free(op->old);
	free(op);
}

/* At the end of a connection: what is owed an answer, and then a request that
 * can be wrong. */
static enum vs_kind draw_parting_kind(struct vs_ep *ep)
{
	static const enum vs_kind owed[] = {VS_READ, VS_WALK, VS_FAA,
					    VS_SHARED_FAA};
	static const enum vs_kind wrong[] = {VS_SEND, VS_WRITE, VS_READ,
					     VS_CAS};
	uint32_t i = sim_rand_below(&ep->rand, 4);

	return ep->posted == ep->spoil_at ? wrong[i] : owed[i];
}

static enum vs_kind draw_kind(struct vs_ep *ep)
{
	static const uint8_t weights[VS_KIND_COUNT] = {
		[VS_SEND] = 14,	     [VS_SEND_IMM] = 6,	  [VS_SEND_INV] = 4,
		[VS_WRITE] = 24,     [VS_WRITE_IMM] = 8,  [VS_READ] = 22,
		[VS_CAS] = 6,	     [VS_FAA] = 6,	  [VS_MASKED_CAS] = 3,
		[VS_MASKED_FAA] = 3, [VS_SHARED_FAA] = 8, [VS_BIND] = 4,
		[VS_WALK] = 14,
	};
	uint32_t at = sim_rand_below(&ep->rand, 122);
	unsigned k = 0;

	while (at >= weights[k])
		at -= weights[k++];
	return (enum vs_kind)k;
}

static uint32_t draw_len(struct vs_ep *ep, uint32_t max)
{
	static const uint32_t tops[] = {16, 300, 2048, 8192, 20000, VS_LEN_MAX};
	uint32_t c = sim_rand_below(&ep->rand, 100);
	uint32_t top;

	if (c < 30)
		top = tops[0];
	else if (c < 60)
		top = tops[1];
	else if (c < 85)
		top = tops[2];
	else
		top = tops[3 + sim_rand_below(&ep->rand, ep->s->vs->len_class)];
	return sim_rand_below(&ep->rand, u32_min(top, max) + 1);
}

static void gather(struct vs_ep *ep, struct vs_op *op)
{
	const uint8_t *source = ep->node->source.base;
	uint32_t at = 0;

	op->piece_count =
		vs_pieces(&ep->rand, op->len, ep->sge_max, op->pieces);
	for (unsigned i = 0; i < op->piece_count; i++) {
		struct vs_piece *p = &op->pieces[i];

		p->off =
			sim_rand_below(&ep->rand, VS_SOURCE_BYTES - p->len + 1);
		memcpy(op->data + at, source + p->off, p->len);
		at += p->len;
	}
}

static bool land(struct vs_ep *ep, struct vs_op *op, unsigned piece_max)
{
	op->land = vs_slot_take(ep->s->vs, &ep->land, &ep->rand, op->len,
				piece_max, op->pieces, &op->piece_count);
	return op->land >= 0;
}

static void draw_atomic(struct vs_ep *ep, struct vs_op *op)
{
	struct atomic_op *a = &op->atomic;
	struct rng *r = &ep->rand;
	uint64_t now;

	op->word = sim_rand_below(r, VS_WORDS);
	now = ep->peer->word_shadow[op->word];
	a->is_add = op->kind == VS_FAA || op->kind == VS_MASKED_FAA;
	a->swap_add = rng_u64(r);
	a->swap_add >>= sim_rand_below(r, 64);
	a->compare = sim_rand_below(r, 3) ? now : rng_u64(r);
	a->swap_mask = UINT64_MAX;
	a->compare_mask = UINT64_MAX;
	if (op->kind == VS_MASKED_CAS) {
		a->swap_mask = rng_u64(r);
		a->compare_mask = rng_u64(r) & rng_u64(r);
	} else if (op->kind == VS_MASKED_FAA) {
		a->boundary = rng_u64(r) & rng_u64(r) & rng_u64(r);
	}
}

static bool draw_shared(struct vs_ep *ep, struct vs_op *op)
{
	struct vs_node *node = ep->peer->node;

	op->word = sim_rand_below(&ep->rand, VS_SHARED);
	op->atomic = (struct atomic_op){.is_add = true, .swap_add = 1};
	op->target_iova = node->shared.iova + 8 * op->word;
	op->target_key = node->shared_mr->rkey;
	return node->shared_acked[op->word] + node->shared_unknown[op->word] <
	       VS_SHARED_MAX / 2;
}

/* Where a request goes in the peer's window, and with which key. */
static void draw_target(struct vs_ep *ep, struct vs_op *op)
{
	struct vs_ep *to = ep->peer;
	uint32_t room = VS_WINDOW_BYTES - op->len;

	/* Often close to each other, so that requests overlap. */
	if (sim_rand_below(&ep->rand, 3) == 0)
		room = u32_min(room, 4096);
	op->off = sim_rand_below(&ep->rand, room + 1);
	op->target_iova = to->window.iova + op->off;
	op->target_key = to->window_mr->rkey;
	if (to->mw_key && sim_rand_below(&ep->rand, 2))
		op->target_key = to->mw_key;
}

static bool draw_bind(struct vs_ep *ep, struct vs_op *op)
{
	if (!ep->mw || ep->mw_busy)
		return false;
	ep->mw_busy = true;
	op->inv_key = ibv_inc_rkey(ep->mw->rkey);
	op->len = 0;
	return true;
}

static bool draw_inv(struct vs_ep *ep, struct vs_op *op)
{
	if (!ep->peer->mw_key)
		return false;
	op->inv_key = ep->peer->mw_key;
	ep->peer->mw_key = 0;
	/* A READ through the window that had to be repeated behind the
	 * invalidation would fail: the request has to wait for it. */
	op->fence = true;
	return true;
}

static bool masked_available(struct vs_ep *ep)
{
	struct aqdv_device_attr attr = {0};
	uint32_t both = AQDV_CAP_MASKED_CAS | AQDV_CAP_MASKED_FAA;

	return aqdv_query_device(ep->node->ctx, &attr) == 0 &&
	       (attr.caps & both) == both;
}

/* Fills in what the kind needs; false: not possible now. */
static bool draw_details(struct vs_ep *ep, struct vs_op *op)
{
	switch (op->kind) {
	case VS_SEND_INV:
		if (!draw_inv(ep, op))
			return false;
		gather(ep, op);
		return true;
	case VS_SEND:
	case VS_SEND_IMM:
		gather(ep, op);
		return true;
	case VS_WRITE:
	case VS_WRITE_IMM:
		gather(ep, op);
		draw_target(ep, op);
		return true;
	case VS_READ:
		draw_target(ep, op);
		return land(ep, op, ep->sge_max);
	case VS_MASKED_CAS:
	case VS_MASKED_FAA:
		if (!masked_available(ep))
			return false;
		/* fall through */
	case VS_CAS:
	case VS_FAA:
		draw_atomic(ep, op);
		op->target_iova = ep->peer->words.iova + 8 * op->word;
		op->target_key = ep->peer->words_mr->rkey;
		return land(ep, op, 1);
	case VS_SHARED_FAA:
		return draw_shared(ep, op) && land(ep, op, 1);
	case VS_WALK:
		vs_walk_draw(ep, op);
		return land(ep, op, ep->sge_max);
	case VS_BIND:
		return draw_bind(ep, op);
	case VS_KIND_COUNT:
		break;
	}
	return false;
}

/* Keys that do not fit are counted by the target, and too many block us. */
static bool may_use_bad_key(struct vs_ep *ep)
{
	unsigned *n = &ep->peer->node->bad_keys[ep->node->index];

	return *n < VS_BAD_KEYS && ++*n;
}

/* A key that does not exist, or that of a region that is gone. */
static void spoil_key(struct vs_ep *ep, struct vs_op *op)
{
	if (ep->peer->stale_key && sim_rand_below(&ep->rand, 2))
		op->target_key = ep->peer->stale_key;
	else
		op->target_key ^= 0x5a; /* the right index, the wrong tag */
}

static void spoil_remote(struct vs_ep *ep, struct vs_op *op)
{
	struct vs_ep *to = ep->peer;
	uint32_t how = sim_rand_below(&ep->rand, 4);

	op->expect = VS_REMOTE_ACCESS;
	if (how < 2 && may_use_bad_key(ep)) {
		spoil_key(ep, op);
	} else if (how == 2) {
		/* The last byte is one too far. */
		op->target_iova =
			to->window.iova + VS_WINDOW_BYTES + 1 - op->len;
		op->target_key = to->window_mr->rkey;
	} else if (op->kind == VS_READ) {
		/* Beyond what we may do: words take atomics only. */
		op->target_iova = to->words.iova;
		op->target_key = to->words_mr->rkey;
	} else {
		op->target_iova = to->node->source.iova;
		op->target_key = to->node->source_mr->rkey;
	}
}

/* A key that is none, or one that does not let walks read. */
static void spoil_walk(struct vs_ep *ep, struct vs_op *op)
{
	op->expect = VS_REMOTE_ACCESS;
	op->visits = 0;
	if (may_use_bad_key(ep))
		op->target_key ^= 0x5a;
	else
		op->target_key = ep->peer->words_mr->rkey;
}

/* Longer than any receive. */
static void spoil_length(struct vs_ep *ep, struct vs_op *op)
{
	op->len = VS_MSG_MAX + sim_rand_range(&ep->rand, 1, VS_MSG_MAX);
	free(op->data);
	op->data = malloc(op->len);
	ASSERT(op->data);
	gather(ep, op);
	op->expect = VS_REMOTE_INVALID;
}

/* Makes a request wrong in a way that has exactly one right outcome. */
static void spoil(struct vs_ep *ep, struct vs_op *op)
{
	if (vs_op_is_masked(op) || op->kind == VS_BIND || op->len == 0 ||
	    op->kind == VS_SHARED_FAA || op->kind == VS_SEND_INV)
		return;
	if (op->land < 0 && !ep->s->parting &&
	    sim_rand_below(&ep->rand, 4) == 0) {
		if (op->pieces[op->piece_count - 1].len)
			op->expect = VS_LOCAL_PROTECTION;
	} else if (op->kind == VS_CAS || op->kind == VS_FAA) {
		op->target_iova += 4;
		op->expect = VS_REMOTE_INVALID;
	} else if (op->kind == VS_WRITE || op->kind == VS_READ) {
		spoil_remote(ep, op);
	} else if (op->kind == VS_WALK) {
		spoil_walk(ep, op);
	} else if (op->kind == VS_SEND || op->kind == VS_SEND_IMM) {
		spoil_length(ep, op);
	}
	if (op->expect == VS_OK)
		return;
	ep->s->vs->n->bad_ops++;
	if (op->expect != VS_LOCAL_PROTECTION)
		ep->bad_posted = true;
}

static void count(struct verbs_play_counts *c, enum vs_kind kind)
{
	uint64_t *const by_kind[VS_KIND_COUNT] = {
		[VS_SEND] = &c->sends,
		[VS_SEND_IMM] = &c->sends_imm,
		[VS_SEND_INV] = &c->sends_inv,
		[VS_WRITE] = &c->writes,
		[VS_WRITE_IMM] = &c->writes_imm,
		[VS_READ] = &c->reads,
		[VS_CAS] = &c->cas,
		[VS_FAA] = &c->faa,
		[VS_MASKED_CAS] = &c->masked,
		[VS_MASKED_FAA] = &c->masked,
		[VS_SHARED_FAA] = &c->shared_faa,
		[VS_BIND] = &c->binds,
		[VS_WALK] = &c->walks,
	};

	(*by_kind[kind])++;
}

/* Is the next request to be wrong? */
static bool wants_wrong(struct vs_ep *ep)
{
	const struct vs *vs = ep->s->vs;

	if (ep->s->parting)
		return ep->posted == ep->spoil_at;
	return vs->phase == VS_CHAOS && sim_rand_chance(&ep->rand, vs->bad_ppm);
}

struct vs_op *vs_op_make(struct vs_ep *ep)
{
	struct vs *vs = ep->s->vs;
	struct vs_op *op = calloc(1, sizeof(*op));
	uint32_t max = VS_LEN_MAX;

	ASSERT(op);
	op->refs = 1;
	op->land = -1;
	op->kind = ep->s->parting ? draw_parting_kind(ep) : draw_kind(ep);
	if (vs_op_is_message(op))
		max = VS_MSG_MAX;
	op->len = vs_op_is_atomic(op) ? 8 : draw_len(ep, max);
	if (op->kind == VS_WALK)
		op->len = AQDV_WALK_RESULT_BYTES +
			  sim_rand_range(&ep->rand, 16, VS_WALK_PAD);
	if (ep->s->parting && op->len == 0)
		op->len = 1;
	op->data = malloc(op->len + 8);
	op->old = malloc(op->len + 8);
	ASSERT(op->data && op->old);
	op->imm = (uint32_t)rng_u64(&ep->rand);
	op->solicited = sim_rand_below(&ep->rand, 4) == 0;
	op->fence = sim_rand_below(&ep->rand, 5) == 0;
	op->strict = ep->s->final;
	op->signaled = ep->sig_all || sim_rand_below(&ep->rand, 3) ||
		       ep->unsignaled >= ep->sq_max / 2 ||
		       ep->posted + 1 >= ep->quota || op->kind == VS_BIND;
	if (!draw_details(ep, op)) {
		if (op->land >= 0)
			vs_slot_drop(&ep->land, (unsigned)op->land);
		vs_op_put(op);
		return NULL;
	}
	op->id = ++ep->op_id;
	if (wants_wrong(ep))
		spoil(ep, op);
	ep->unsignaled = op->signaled ? 0 : ep->unsignaled + 1;
	count(vs->n, op->kind);
	return op;
}

int vs_masked_post(struct vs_ep *ep, struct vs_op *op)
{
	struct ibv_sge sge = {.addr = ep->land.area.iova + op->pieces[0].off,
			      .length = 8,
			      .lkey = ep->land.mr->lkey};
	struct aqdv_masked_wr wr = {.wr_id = op->id,
				    .sg_list = &sge,
				    .num_sge = 1,
				    .remote_addr = op->target_iova,
				    .rkey = op->target_key};
	struct aqdv_masked_wr *bad;

	if (op->signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (op->fence)
		wr.send_flags |= IBV_SEND_FENCE;
	if (op->kind == VS_MASKED_FAA) {
		wr.faa.add = op->atomic.swap_add;
		wr.faa.boundary = op->atomic.boundary;
		return aqdv_post_masked_faa(ep->qp, &wr, &bad);
	}
	wr.cas.compare = op->atomic.compare;
	wr.cas.compare_mask = op->atomic.compare_mask;
	wr.cas.swap = op->atomic.swap_add;
	wr.cas.swap_mask = op->atomic.swap_mask;
	return aqdv_post_masked_cas(ep->qp, &wr, &bad);
}
