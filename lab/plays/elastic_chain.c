/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes with copies of a block: what the block server does, around shipped
 * chains. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elastic_chain_priv.h"

enum {
	TURN_NS = 1000000,
	INSIDE = 100, /* larger values are fetched */
};

uint64_t ec_now_ns(const struct ec *w, const struct ec_node *n)
{
	return n->offset_ns + (uint64_t)w->turn * TURN_NS;
}

struct ec_way *ec_way_new(struct ec *w)
{
	for (unsigned i = 0; i < EC_WAYS; i++)
		if (!w->way[i].is_used) {
			w->way[i] = (struct ec_way){.is_used = true};
			return &w->way[i];
		}
	return NULL;
}

void ec_way_end(struct ec_way *m)
{
	free(m->bytes);
	*m = (struct ec_way){0};
}

/* ---- what the chain asks for --------------------------------------------- */

static bool link_send(void *ctx, const struct blk_member *to,
		      struct blk_link_message *m)
{
	struct ec_node *n = ctx;
	struct ec *w = n->world;
	struct rng *r = &w->run->rand;
	unsigned copies = sim_rand_chance(r, 20000) ? 2 : 1;

	if (sim_rand_chance(r, 20000)) {
		w->n->lost++;
		return sim_rand_below(r, 2);
	}
	while (copies--) {
		struct ec_way *way = ec_way_new(w);

		if (!way)
			return false;
		way->bytes = malloc(sizeof(struct blk_link_wire) + m->bytes);
		way->is_link = true;
		way->node = to->node;
		way->from = n->index;
		/* Links keep the order mostly. */
		way->delay =
			sim_rand_below(r, 20) ? 2 : sim_rand_range(r, 1, 9);
		way->length = (uint32_t)blk_link_build(m, way->bytes);
	}
	return true;
}

static bool link_is_held(void *ctx)
{
	const struct ec_node *n = ctx;

	return n->fetches != NULL;
}

static void answer(struct ec *w, const struct ec_node *n, unsigned client,
		   unsigned tag, const struct blk_answer *a)
{
	struct ec_way *m = ec_way_new(w);

	if (!m || sim_rand_chance(&w->run->rand, 50000)) {
		if (m)
			ec_way_end(m);
		return;
	}
	m->is_answer = true;
	m->from = n->index;
	m->client = client;
	m->tag = tag;
	m->delay = sim_rand_range(&w->run->rand, 1, 4);
	m->result = (struct ec_op){.status = a->status, .value = a->value};
	if (!a->data)
		return;
	memcpy(&m->result.got, a->data, 4);
	if (a->length == ec_length(m->result.got)) {
		uint8_t *want = malloc(EC_VALUE_MAX);

		ec_fill(m->result.got, want);
		m->result.is_whole = !memcmp(want, a->data, a->length);
		free(want);
	}
}

static void link_done(void *ctx, const struct blk_answer *a)
{
	struct ec_node *n = ctx;

	if (n->has_job)
		answer(n->world, n, n->job_client, n->job_tag, a);
	n->has_job = false;
	n->world->n->executed++;
}

static void link_freed(void *ctx)
{
}

/* ---- life ---------------------------------------------------------------- */

int ec_node_make(struct ec *w, struct ec_node *n, uint64_t generation,
		 bool has_state)
{
	struct blk_options options = {.kind = w->kind,
				      .size_bytes = EC_BYTES,
				      .generation = generation,
				      .identity = 1,
				      .is_first = true};
	struct blk_chain_carrier carrier = {
		.ctx = n,
		.send = link_send,
		.is_held = link_is_held,
		.done = link_done,
		.freed = link_freed,
	};

	n->mem = aligned_alloc(64, EC_BYTES);
	if (!n->mem)
		return -ENOMEM;
	memset(n->mem, 0, EC_BYTES);
	if (blk_init(&n->block, &options, n->mem)) {
		free(n->mem);
		return -ENOMEM;
	}
	n->has_block = true;
	n->generation = generation;
	blk_chain_init(&n->chain, &n->block, has_state, &carrier);
	return 0;
}

void ec_node_free(struct ec_node *n)
{
	if (!n->has_block)
		return;
	blk_release(&n->block);
	free(n->mem);
	if (n->fetches)
		ec_way_end(n->fetches);
	n->fetches = NULL;
	n->has_block = n->has_job = false;
}

/* ---- messages ------------------------------------------------------------ */

static struct blk_request request_of(const struct ec_way *m, uint8_t *session)
{
	memset(session, 0, BLOCK_SESSION_BYTES);
	session[0] = (uint8_t)(m->client + 1);
	return (struct blk_request){
		.session = session,
		.acked = m->acked,
		.opcode = m->opcode,
		.sequence = m->sequence,
		.arg = m->arg,
		.length = m->length,
		.value = m->bytes && m->length <= INSIDE ? m->bytes : NULL,
		.inside_room = BLOCK_INSIDE_MAX,
		.buffer_bytes = EC_VALUE_MAX,
	};
}

static void refuse(struct ec *w, struct ec_node *n, struct ec_way *m)
{
	struct blk_answer a = {.status = BLOCK_ELSEWHERE};

	w->n->elsewhere++;
	answer(w, n, m->client, m->tag, &a);
	ec_way_end(m);
}

static bool serve_read(struct ec *w, struct ec_node *n, struct ec_way *m)
{
	uint8_t session[BLOCK_SESSION_BYTES], *place;
	struct blk_request r;
	struct blk_answer a;

	if (!blk_chain_may_read(&n->chain, ec_now_ns(w, n))) {
		refuse(w, n, m);
		return true;
	}
	if (blk_chain_is_busy(&n->chain))
		return false;
	r = request_of(m, session);
	r.acked = 0;
	place = blk_begin(&n->block, &r, &a);
	if (place) {
		memcpy(place, m->bytes, m->length);
		blk_finish(&n->block, &r, &a);
	}
	if (m->opcode == BLOCK_STAT) {
		struct block_stat_wire s = {0};

		n->block.kind->stat(&n->block, &s);
		a.value = be64_get(w->kind == BLOCK_QUEUE ? s.items : s.end);
	}
	answer(w, n, m->client, m->tag, &a);
	ec_way_end(m);
	return true;
}

static bool serve_change(struct ec *w, struct ec_node *n, struct ec_way *m)
{
	struct blk_answer a;

	if (!blk_chain_is_head(&n->chain) || m->age > BLK_CHAIN_STUCK_MS) {
		refuse(w, n, m);
		return true;
	}
	if (n->fetches || !blk_chain_is_open(&n->chain))
		return false;
	n->request = request_of(m, n->session);
	n->has_job = true;
	n->job_client = m->client;
	n->job_tag = m->tag;
	switch (blk_chain_change(&n->chain, &n->request, &a, &n->place,
				 ec_now_ns(w, n))) {
	case BLK_CHAIN_FETCH:
		n->fetches = m;
		n->fetch_left = sim_rand_range(&w->run->rand, 1, 6);
		m->delay = UINT32_MAX;
		return true;
	case BLK_CHAIN_ANSWER:
		n->has_job = false;
		answer(w, n, m->client, m->tag, &a);
		break;
	case BLK_CHAIN_TAKEN:
		break;
	}
	ec_way_end(m);
	return true;
}

bool ec_node_arrive(struct ec *w, struct ec_node *n, struct ec_way *m)
{
	struct blk_link_message in;

	if (m->is_link) {
		if (blk_link_parse(m->bytes, m->length, &in))
			play_fail(w->run, "a link message cannot be read");
		else if (n->has_block && in.to == n->generation)
			blk_chain_hear(&n->chain, &in, ec_now_ns(w, n));
		ec_way_end(m);
		return true;
	}
	if (m->is_watch) {
		ec_ear_answer(w, n, m);
		return true;
	}
	if (!n->has_block || n->generation != m->generation) {
		refuse(w, n, m);
		return true;
	}
	return m->opcode == BLOCK_STAT || m->opcode == BLOCK_KV_GET
		       ? serve_read(w, n, m)
		       : serve_change(w, n, m);
}

void ec_node_step(struct ec *w, struct ec_node *n)
{
	uint64_t now_ns = ec_now_ns(w, n);

	if (!n->has_block)
		return;
	if (n->fetches && !--n->fetch_left) {
		struct ec_way *m = n->fetches;

		n->fetches = NULL;
		/* It may not be the head any more. */
		if (blk_chain_is_open(&n->chain)) {
			memcpy(n->place, m->bytes, m->length);
			w->n->fetched++;
			blk_chain_take(&n->chain, &n->request, BLK_READY,
				       n->place, NULL, now_ns);
		} else {
			n->has_job = false;
		}
		ec_way_end(m);
	}
	blk_chain_tick(&n->chain, now_ns);
}
