/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of the play. Every node has a trail, which is one piece of a striped
 * region: each of its stations has the offset of the next one, a number and a
 * tally. The only program adds the numbers of the stations that it visits to
 * the pad, adds one to their tallies, and is done at the station that the pad
 * names; the last one leads to another piece. All of an answer is known when
 * the request is posted, whatever the other walks do, and the tallies say at
 * the end whether each walk was executed once.
 */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <string.h>

#include "verbs_priv.h"

enum {
	PROGRAM = 0x3a7c,
	SHIFT = 9,
	STRIPE = 1 << SHIFT,
	PIECES = 2,
	OWN_PIECE = 1,
	STATION = 32,
	PER_STRIPE = STRIPE / STATION,
	TURN_MAX = 6, /* iterations: a walk lasts for a while */
	RESULT = AQDV_WALK_RESULT_BYTES,
	ELSEWHERE = 4 * STRIPE, /* an offset of the other piece */
};

struct station {
	uint64_t next;
	uint64_t number;
	uint64_t tally;
	uint64_t unused;
};

/* The beginning of a pad. */
struct head {
	uint64_t wanted; /* number of the station where it ends */
	uint64_t sum;
};

STATIC_ASSERT(sizeof(struct station) == STATION, "a station");

/* Where station `i` of a node is in the striped region. */
static uint64_t offset_of(unsigned i)
{
	return (uint64_t)(i / PER_STRIPE * PIECES + OWN_PIECE) * STRIPE +
	       i % PER_STRIPE * STATION;
}

static struct station *station(const struct vs_node *node, unsigned i)
{
	return (struct station *)(void *)(node->trail.base + i * STATION);
}

/* ---- the walker ---------------------------------------------------------- */

static int start(void *ctx, struct aqdv_walk *walk)
{
	struct vs_walker *w = ctx;

	if (walk->program != PROGRAM)
		return -ENOENT;
	for (unsigned i = 0; i < VS_WALK_ROOM; i++) {
		if (w->at[i].walk)
			continue;
		w->at[i] = (struct vs_walking){.walk = walk, .at = walk->at};
		return 0;
	}
	return -EAGAIN;
}

static void end(struct vs_walking *at, enum aqdv_walk_status status)
{
	struct aqdv_walk *walk = at->walk;

	at->walk = NULL;
	aqdv_walk_done(walk, status, at->at, walk->iterations - at->took,
		       at->took);
}

static void iterate(struct vs_walking *at)
{
	static const enum aqdv_walk_status ends[] = {
		[AQDV_WALK_IS_ELSEWHERE] = AQDV_WALK_ELSEWHERE,
		[AQDV_WALK_IS_FAULT] = AQDV_WALK_FAULT,
		[AQDV_WALK_IS_NO_RIGHT] = AQDV_WALK_NO_RIGHT,
	};
	enum aqdv_walk_where where;
	struct station *s;
	struct head head;
	uint8_t *host;

	if (at->took == at->walk->iterations) {
		end(at, AQDV_WALK_MORE);
		return;
	}
	where = aqdv_walk_reach(at->walk, at->at, STATION, true, &host);
	if (where != AQDV_WALK_HERE) {
		end(at, ends[where]);
		return;
	}
	s = (struct station *)(void *)host;
	memcpy(&head, at->walk->pad, sizeof(head));
	at->took++;
	s->tally++;
	head.sum += s->number;
	memcpy(at->walk->pad, &head, sizeof(head));
	if (s->number == head.wanted)
		end(at, AQDV_WALK_DONE);
	else
		at->at = s->next;
}

static bool turn(void *ctx, uint32_t iterations)
{
	struct vs_walker *w = ctx;
	unsigned left = sim_rand_range(&w->rand, 1, TURN_MAX);
	bool more = false;

	left = u32_min(left, iterations);
	for (unsigned n = 0; n < VS_WALK_ROOM && left; n++) {
		struct vs_walking *at = &w->at[w->next++ % VS_WALK_ROOM];

		if (!at->walk)
			continue;
		iterate(at);
		left--;
	}
	for (unsigned i = 0; i < VS_WALK_ROOM; i++)
		more |= w->at[i].walk != NULL;
	return more;
}

static void forget(void *ctx, struct aqdv_walk *walk)
{
	struct vs_walker *w = ctx;

	for (unsigned i = 0; i < VS_WALK_ROOM; i++)
		if (w->at[i].walk == walk)
			w->at[i].walk = NULL;
}

/* ---- the trail of a node --------------------------------------------------
 */

int vs_walk_create(struct vs_node *node)
{
	struct aqdv_walker walker = {.ctx = &node->walker,
				     .start = start,
				     .turn = turn,
				     .forget = forget};
	struct aqdv_place place = {.space = node->index + 1,
				   .index = OWN_PIECE,
				   .count = PIECES,
				   .shift = SHIFT};
	int err = vs_area_add(node, VS_STATIONS * STATION, &node->trail);

	if (err)
		return err;
	for (unsigned i = 0; i < VS_STATIONS; i++)
		*station(node, i) = (struct station){
			.next = i + 1 < VS_STATIONS ? offset_of(i + 1)
						    : ELSEWHERE,
			.number = rng_u64(&node->vs->run.rand),
		};
	sim_rand_init(&node->walker.rand, node->vs->run.opt->seed,
		      500 + node->index);
	node->trail_mr =
		vs_reg(node, &node->trail,
		       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			       IBV_ACCESS_REMOTE_WRITE);
	if (!node->trail_mr)
		return -errno;
	err = aqdv_set_place(node->trail_mr, &place);
	return err ? err : aqdv_set_walker(node->ctx, &walker);
}

void vs_walk_final(struct vs_node *node)
{
	for (unsigned i = 0; i < VS_STATIONS; i++) {
		uint64_t have = station(node, i)->tally;

		if (have >= node->visits_acked[i] &&
		    have <= (uint64_t)node->visits_acked[i] +
				    node->visits_unknown[i])
			continue;
		vs_fail(node->vs,
			"node %u: station %u was visited %lu times, but walks "
			"with an answer visited it %u times and %u are unknown",
			node->index, i, have, node->visits_acked[i],
			node->visits_unknown[i]);
	}
}

void vs_walk_count(struct vs_ep *ep, const struct vs_op *op, bool acked)
{
	struct vs_node *node = ep->peer->node;
	uint32_t *by = acked ? node->visits_acked : node->visits_unknown;

	for (unsigned i = 0; i < op->visits; i++)
		by[op->word + i]++;
}

/* ---- requests ------------------------------------------------------------ */

/* What the answer will be, from the pad that is sent. */
static void foresee(struct vs_ep *ep, struct vs_op *op, unsigned last,
		    const struct head *sent)
{
	struct aqdv_walk_result r = {
		.program = PROGRAM,
		.space = ep->peer->node->index + 1,
		.pad_bytes = (uint16_t)(op->len - RESULT),
	};
	struct head head = *sent;
	unsigned i = op->word;

	while (r.took < op->iterations && i < VS_STATIONS) {
		r.took++;
		head.sum += station(ep->peer->node, i)->number;
		if (i++ == last)
			break;
	}
	op->visits = r.took;
	r.left = op->iterations - r.took;
	r.at = i < VS_STATIONS ? offset_of(i) : ELSEWHERE;
	if (r.took && i - 1 == last) {
		r.status = AQDV_WALK_DONE;
		r.at = offset_of(last);
	} else {
		r.status = r.left ? AQDV_WALK_ELSEWHERE : AQDV_WALK_MORE;
	}
	memcpy(op->data, &r, sizeof(r));
	memcpy(op->data + RESULT, &head, sizeof(head));
}

void vs_walk_draw(struct vs_ep *ep, struct vs_op *op)
{
	struct rng *r = &ep->rand;
	unsigned last = sim_rand_below(r, VS_STATIONS);
	uint32_t pad = op->len - RESULT;
	struct head head;

	op->word = sim_rand_below(r, VS_STATIONS);
	op->iterations = sim_rand_below(r, 2 * VS_STATIONS);
	op->send_bytes = sim_rand_range(r, sizeof(head), pad);
	op->target_iova = offset_of(op->word);
	op->target_key = ep->peer->node->trail_mr->rkey;
	/* Zero beyond what the request brings. */
	memset(op->data, 0, op->len);
	rng_fill(r, op->data + RESULT, op->send_bytes);
	head.wanted = station(ep->peer->node, last)->number;
	head.sum = rng_u64(r);
	/* What is sent stands where the answer will be. */
	memcpy(op->data + RESULT, &head, sizeof(head));
	memcpy(op->old, op->data + RESULT, op->send_bytes);
	foresee(ep, op, last, &head);
}

/* The bytes of the request, behind the place of the result. */
static void place_pad(struct vs_ep *ep, const struct vs_op *op)
{
	uint32_t at = 0;

	for (unsigned p = 0; p < op->piece_count; p++) {
		uint8_t *to = ep->land.area.base + op->pieces[p].off;

		for (uint32_t i = 0; i < op->pieces[p].len; i++, at++)
			if (at >= RESULT && at - RESULT < op->send_bytes)
				to[i] = op->old[at - RESULT];
	}
}

int vs_walk_post(struct vs_ep *ep, struct vs_op *op)
{
	struct ibv_sge sge[VS_SGE_MAX];
	struct aqdv_walk_wr wr = {
		.wr_id = op->id,
		.sg_list = sge,
		.num_sge = (int)op->piece_count,
		.at = op->target_iova,
		.program = PROGRAM,
		.rkey = op->target_key,
		.iterations = op->iterations,
		.send_bytes = op->send_bytes,
	};
	struct aqdv_walk_wr *bad;

	for (unsigned i = 0; i < op->piece_count; i++)
		sge[i] = (struct ibv_sge){.addr = ep->land.area.iova +
						  op->pieces[i].off,
					  .length = op->pieces[i].len,
					  .lkey = ep->land.mr->lkey};
	place_pad(ep, op);
	if (op->signaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (op->fence)
		wr.send_flags |= IBV_SEND_FENCE;
	return aqdv_post_walk(ep->qp, &wr, &bad);
}
