/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rack for the offload engine in one process: an application's rings, memory
 * nodes and queue pairs that execute packet by packet, in an order and at a
 * pace that a seed decides. The engine can be killed after any packet.
 */
#ifndef AQ_TEST_OFFLOAD_BED_H
#define AQ_TEST_OFFLOAD_BED_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* A fuzzer has no cmocka. */
#ifdef BED_PLAIN
#include "base/base.h"
#define assert_true(x)	       ASSERT(x)
#define assert_int_equal(a, b) ASSERT((a) == (b))
#define assert_non_null(p)     ASSERT(p)
#define fail_msg(...)	       base_assert_fail("reached", __FILE__, __LINE__)
#else
/* cmocka wants the four above. */
#include <cmocka.h>
#endif

#include "base/rng.h"
#include "client/verbs_api.h"
#include "offload/engine.h"
#include "offload/ring.h"
#include "wire/gather_wire.h"

enum {
	BED_NODES = 3,
	BED_MTU = 256,
	BED_NODE_BYTES = 1 << 16,
	BED_QUEUE = 512,
	BED_CQ = 4096,
	BED_RKEY_RING = 7,
	BED_RKEY_NODE = 100, /* and up: one per region and node */
	BED_PSN_MASK = 0xffffff,
};

struct bed;

struct bed_wr {
	uint64_t wr_id;
	uint8_t *local;
	uint64_t remote;
	uint32_t len, done, rkey;
	bool is_read, is_signaled;
	uint32_t list_bytes; /* of a gather; 0: it is none */
};

struct bed_qp {
	struct ibv_qp qp;
	struct bed *bed;
	bool is_dead; /* its peer has ended it: nothing is executed any more */
	bool is_failed;
	uint32_t psn; /* what the peer expects next */
	struct bed_wr queue[BED_QUEUE];
	unsigned head, tail;
};

struct bed {
	struct ibv_context context;
	struct ibv_cq cq;
	struct ibv_mr mr;
	struct client_clock clock;
	uint64_t now_ns;
	struct rng rng;

	uint8_t *ring_mem;
	uint64_t ring_bytes;
	struct offload_ring ring;
	uint8_t *node_mem[BED_NODES];
	uint32_t node_count;
	bool node_is_lost[BED_NODES];

	struct bed_qp *ring_qp;
	struct bed_qp *node_qp[BED_NODES][OFFLOAD_KINDS];
	struct ibv_wc wc[BED_CQ];
	unsigned wc_head, wc_tail;
	uint64_t packets;    /* ever executed */
	uint64_t bad_access; /* outside what was granted */

	struct offload_engine *engine;
	struct offload_session *session;
	struct offload_session_config config;
	uint32_t epoch;
	uint32_t conn_epoch[BED_NODES]; /* when the queue pairs were made */
	bool has_final[BED_NODES];
	uint32_t final_epoch[BED_NODES];
	uint32_t final_psn[BED_NODES];
	uint64_t counters[OFFLOAD_C_COUNT];
	uint32_t gather_bytes; /* 0: the nodes gather nothing */
	enum aqdv_walk_status gather_status;
	uint64_t places; /* ever gathered */
};

static uint64_t bed_now(void *ctx)
{
	struct bed *b = ctx;

	return b->now_ns;
}

static void bed_relax(void *ctx)
{
	struct bed *b = ctx;

	b->now_ns += 100;
}

static int bed_post(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		    struct ibv_send_wr **bad)
{
	struct bed_qp *q = (struct bed_qp *)(void *)ibqp;

	for (; wr; wr = wr->next) {
		struct bed_wr *w = &q->queue[q->tail % BED_QUEUE];

		if (q->tail - q->head == BED_QUEUE || q->is_failed) {
			*bad = wr;
			return ENOMEM;
		}
		*w = (struct bed_wr){
			.wr_id = wr->wr_id,
			.local = (uint8_t *)(uintptr_t)wr->sg_list[0].addr,
			.remote = wr->wr.rdma.remote_addr,
			.len = wr->sg_list[0].length,
			.rkey = wr->wr.rdma.rkey,
			.is_read = wr->opcode == IBV_WR_RDMA_READ,
			.is_signaled = wr->send_flags & IBV_SEND_SIGNALED,
		};
		assert_true(w->is_read || wr->opcode == IBV_WR_RDMA_WRITE);
		q->tail++;
	}
	return 0;
}

static int bed_post_walk(struct ibv_qp *ibqp, struct aqdv_walk_wr *wr,
			 struct aqdv_walk_wr **bad)
{
	struct bed_qp *q = (struct bed_qp *)(void *)ibqp;
	struct bed_wr *w = &q->queue[q->tail % BED_QUEUE];

	if (q->tail - q->head == BED_QUEUE || q->is_failed) {
		*bad = wr;
		return ENOMEM;
	}
	assert_true(wr->program == GATHER_WIRE_PROGRAM && !wr->next &&
		    wr->send_bytes &&
		    wr->sg_list->length >=
			    wr->send_bytes + AQDV_WALK_RESULT_BYTES);
	*w = (struct bed_wr){.wr_id = wr->wr_id,
			     .local = (uint8_t *)(uintptr_t)wr->sg_list[0].addr,
			     .len = wr->sg_list[0].length,
			     .rkey = wr->rkey,
			     .is_read = true,
			     .is_signaled = wr->send_flags & IBV_SEND_SIGNALED,
			     .list_bytes = wr->send_bytes};
	q->tail++;
	return 0;
}

static int bed_poll(struct ibv_cq *cq, int max, struct ibv_wc *wc)
{
	struct bed *b = container_of(cq, struct bed, cq);
	int n = 0;

	while (n < max && b->wc_head != b->wc_tail)
		wc[n++] = b->wc[b->wc_head++ % BED_CQ];
	return n;
}

static struct ibv_mr *bed_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
				 int access)
{
	struct bed *b = (struct bed *)(void *)pd;

	return &b->mr;
}

static int bed_dereg_mr(struct ibv_mr *mr)
{
	return 0;
}

static void bed_complete(struct bed *b, struct bed_qp *q,
			 const struct bed_wr *w, enum ibv_wc_status status)
{
	if (!w->is_signaled && status == IBV_WC_SUCCESS)
		return;
	assert_true(b->wc_tail - b->wc_head < BED_CQ);
	b->wc[b->wc_tail++ % BED_CQ] = (struct ibv_wc){
		.wr_id = w->wr_id, .status = status, .qp_num = q->qp.qp_num};
}

static void bed_fail(struct bed *b, struct bed_qp *q)
{
	q->is_failed = true;
	while (q->head != q->tail)
		bed_complete(b, q, &q->queue[q->head++ % BED_QUEUE],
			     IBV_WC_RETRY_EXC_ERR);
}

/* What the key opens, or NULL. */
static uint8_t *bed_far(struct bed *b, const struct bed_wr *w)
{
	uint64_t size = BED_NODE_BYTES;
	uint8_t *base = NULL;

	if (w->rkey == BED_RKEY_RING) {
		base = b->ring_mem;
		size = b->ring_bytes;
	} else if (w->rkey - BED_RKEY_NODE <
		   BED_NODES * b->config.region_count) {
		base = b->node_mem[(w->rkey - BED_RKEY_NODE) % BED_NODES];
	}
	if (!base || w->remote > size || w->len > size - w->remote)
		return NULL;
	return base + w->remote;
}

/* All of a gather, in one packet, or an answer that says why not. */
static void bed_gather(struct bed *b, struct bed_qp *q, struct bed_wr *w)
{
	uint32_t key = w->rkey - BED_RKEY_NODE, node = key % BED_NODES;
	const struct offload_region_config *r =
		&b->config.region[key / BED_NODES];
	struct aqdv_walk_result result = {.status = (uint8_t)b->gather_status};
	le64 list[GATHER_WIRE_PLACES];
	uint8_t *pad = w->local + AQDV_WALK_RESULT_BYTES;
	uint32_t out = 0;

	memcpy(list, pad, w->list_bytes);
	for (unsigned i = 0; i < w->list_bytes / sizeof(le64); i++) {
		struct gather_place p = gather_place_get(list[i]);
		struct offload_spot spot =
			offload_region_spot(r, p.at, p.len_bytes);

		assert_true(p.at + p.len_bytes <= r->size_bytes &&
			    r->piece[spot.piece].node == node &&
			    spot.len_bytes >= p.len_bytes &&
			    out + p.len_bytes + AQDV_WALK_RESULT_BYTES <=
				    w->len);
		memcpy(pad + out, b->node_mem[node] + spot.offset, p.len_bytes);
		out += gather_place_room(p.len_bytes);
	}
	b->places += w->list_bytes / sizeof(le64);
	result.pad_bytes = (uint16_t)out;
	memcpy(w->local, &result, sizeof(result));
	q->psn = (q->psn + 1) & BED_PSN_MASK;
	b->packets++;
	q->head++;
	bed_complete(b, q, w, IBV_WC_SUCCESS);
}

/* One packet of that queue pair's oldest request. */
static bool bed_packet(struct bed *b, struct bed_qp *q)
{
	struct bed_wr *w = &q->queue[q->head % BED_QUEUE];
	uint32_t len;
	uint8_t *far;

	if (q->head == q->tail || q->is_failed || q->is_dead)
		return false;
	if (w->list_bytes) {
		bed_gather(b, q, w);
		return true;
	}
	far = bed_far(b, w);
	if (!far) {
		b->bad_access++;
		bed_fail(b, q);
		return true;
	}
	len = u32_min(w->len - w->done, BED_MTU);
	if (w->is_read)
		memcpy(w->local + w->done, far + w->done, len);
	else
		memcpy(far + w->done, w->local + w->done, len);
	w->done += len;
	q->psn = (q->psn + 1) & BED_PSN_MASK;
	b->packets++;
	if (w->done == w->len) {
		q->head++;
		bed_complete(b, q, w, IBV_WC_SUCCESS);
	}
	return true;
}

static struct bed_qp *bed_qp_make(struct bed *b, uint32_t num)
{
	struct bed_qp *q = calloc(1, sizeof(*q));

	assert_non_null(q);
	q->qp.context = &b->context;
	q->qp.qp_num = num;
	q->bed = b;
	q->psn = (uint32_t)rng_below(&b->rng, BED_PSN_MASK + 1);
	return q;
}

static struct bed *bed_make(uint64_t seed, uint32_t nodes, uint32_t entries,
			    uint64_t data_bytes)
{
	struct bed *b = calloc(1, sizeof(*b));
	struct offload_map map;

	assert_non_null(b);
	rng_init(&b->rng, seed);
	b->node_count = nodes;
	b->context.ops.post_send = bed_post;
	b->context.ops.poll_cq = bed_poll;
	b->cq.context = &b->context;
	b->now_ns = 1;
	b->clock = (struct client_clock){
		.now_ns = bed_now, .relax = bed_relax, .ctx = b};
	assert_int_equal(
		offload_map_make(entries, data_bytes, data_bytes, &map), 0);
	b->ring_bytes = align_up(map.total_bytes, 4096);
	b->ring_mem = aligned_alloc(4096, b->ring_bytes);
	assert_non_null(b->ring_mem);
	memset(b->ring_mem, 0, b->ring_bytes);
	assert_int_equal(offload_ring_init(&b->ring, &map, b->ring_mem, "bed"),
			 0);
	for (unsigned i = 0; i < BED_NODES; i++) {
		b->node_mem[i] = calloc(1, BED_NODE_BYTES);
		assert_non_null(b->node_mem[i]);
	}
	return b;
}

/* The engine is gone, with whatever it had not sent. */
static void bed_kill(struct bed *b)
{
	const struct offload_red *red =
		&((struct offload_preamble *)(void *)b->ring_mem)->red;
	struct bed_qp *w;

	if (!b->session)
		return;
	for (unsigned i = 0; i < b->node_count; i++) {
		w = b->node_qp[i][OFFLOAD_WR];
		/* The node ends it and says how far it got, which is of use if
		 * the engine had begun to publish. */
		if (w && !b->node_is_lost[i] &&
		    red->node[OFFLOAD_NODES_MAX - 1 - i].epoch ==
			    b->conn_epoch[i]) {
			b->has_final[i] = true;
			b->final_epoch[i] = b->conn_epoch[i];
			b->final_psn[i] = w->psn;
		}
		free(w);
		free(b->node_qp[i][OFFLOAD_RD]);
		b->node_qp[i][OFFLOAD_WR] = b->node_qp[i][OFFLOAD_RD] = NULL;
	}
	free(b->ring_qp);
	b->ring_qp = NULL;
	offload_session_remove(b->session);
	b->session = NULL;
	offload_engine_destroy(b->engine);
	b->engine = NULL;
	b->wc_head = b->wc_tail;
}

static void bed_free(struct bed *b)
{
	bed_kill(b);
	offload_ring_release(&b->ring);
	for (unsigned i = 0; i < BED_NODES; i++)
		free(b->node_mem[i]);
	free(b->ring_mem);
	free(b);
}

static const struct client_verbs bed_verbs = {.reg_mr = bed_reg_mr,
					      .dereg_mr = bed_dereg_mr};

/* A region on the first `pieces` nodes. */
static void bed_region(struct bed *b, uint32_t pieces, uint32_t stripe_shift,
		       uint64_t size_bytes)
{
	uint32_t key = BED_RKEY_NODE + BED_NODES * b->config.region_count;
	struct offload_region_config *r =
		&b->config.region[b->config.region_count++];

	*r = (struct offload_region_config){.size_bytes = size_bytes,
					    .piece_count = pieces,
					    .stripe_shift = stripe_shift};
	for (uint32_t i = 0; i < pieces; i++)
		r->piece[i] = (struct offload_piece_config){
			.node = i,
			.read_rkey = key + i,
			.write_rkey = key + i,
			.size_bytes = BED_NODE_BYTES};
	assert_true(offload_ring_add(&b->ring, size_bytes, false) >= 0);
}

static void bed_start(struct bed *b)
{
	struct offload_engine_config config = {.clock = &b->clock,
					       .verbs = &bed_verbs,
					       .pd = (void *)b,
					       .cq = &b->cq,
					       .cq_depth = BED_CQ,
					       .post_walk = bed_post_walk,
					       .counters = b->counters};

	bed_kill(b);
	b->epoch++;
	assert_int_equal(offload_engine_create(&config, &b->engine), 0);
	b->ring_qp = bed_qp_make(b, 1);
	b->config.ring_qp = &b->ring_qp->qp;
	b->config.ring_bytes = b->ring_bytes;
	b->config.ring_rkey = BED_RKEY_RING;
	b->config.epoch = b->epoch;
	b->config.node_count = b->node_count;
	for (uint32_t i = 0; i < b->node_count; i++) {
		struct offload_node_config *n = &b->config.node[i];

		*n = (struct offload_node_config){.final = {b->has_final[i],
							    b->final_epoch[i],
							    b->final_psn[i]}};
		if (b->node_is_lost[i]) {
			n->err = -EHOSTDOWN;
			continue;
		}
		b->node_qp[i][OFFLOAD_RD] = bed_qp_make(b, 10 + 2 * i);
		b->node_qp[i][OFFLOAD_WR] = bed_qp_make(b, 11 + 2 * i);
		b->conn_epoch[i] = b->epoch;
		n->read_qp = &b->node_qp[i][OFFLOAD_RD]->qp;
		n->write_qp = &b->node_qp[i][OFFLOAD_WR]->qp;
		n->write_psn = b->node_qp[i][OFFLOAD_WR]->psn;
		n->mtu_bytes = BED_MTU;
		n->gather_bytes = b->gather_bytes;
	}
	assert_int_equal(
		offload_session_add(b->engine, &b->config, &b->session), 0);
}

/* Whatever can happen next, once. */
static void bed_step(struct bed *b)
{
	unsigned which = (unsigned)rng_below(&b->rng, 2 * b->node_count + 2);

	b->now_ns += rng_below(&b->rng, 2000);
	if (which == 0)
		(void)offload_engine_step(b->engine);
	else if (which == 1)
		(void)bed_packet(b, b->ring_qp);
	else if (b->node_qp[(which - 2) / 2][which % 2])
		(void)bed_packet(b, b->node_qp[(which - 2) / 2][which % 2]);
}

/* Until nothing is under way; the steps are bounded. */
static inline void bed_settle(struct bed *b)
{
	for (unsigned i = 0; i < 200000; i++) {
		bed_step(b);
		assert_int_equal(offload_ring_look(&b->ring), 0);
		if (offload_ring_pending(&b->ring) == 0)
			return;
	}
	fail_msg("requests are left over");
}

/* One byte of a region, where it really is. */
static inline uint8_t *bed_at(struct bed *b, uint32_t region, uint64_t offset)
{
	const struct offload_region_config *r = &b->config.region[region];
	uint64_t stripe;

	if (r->piece_count == 1)
		return &b->node_mem[0][offset];
	stripe = offset >> r->stripe_shift;
	return &b->node_mem[stripe % r->piece_count]
			   [(stripe / r->piece_count << r->stripe_shift) +
			    (offset & ((1u << r->stripe_shift) - 1))];
}

#endif
