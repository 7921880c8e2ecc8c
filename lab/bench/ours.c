/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ourselves: READs through verbs from a passive server, whose application
 * sleeps while the NIC thread answers.
 */
#include "ours_conn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "aquifer/aqdv.h"
#include "ticks.h"

enum {
	POLL_BATCH = 16,
	SAMPLE_EVERY = 16, /* at depth, so that the clock costs little */
	/* Between a post and its poll when the caller's time is measured: long
	 * enough for the answer to lie ready. */
	CALLER_PAUSE_NS = 8000,
	DIRECT_TRY_NS = 100 * 1000,
};

/* Not an answer's time but a fault: a busy machine may keep the server from its
 * core for long. */
#define PATIENCE_NS 10000000000ull

/* Operations that the direct port did; 0 on a NIC that has none. */
static uint64_t direct_ops(const struct ours_state *st)
{
	uint64_t v;

	if (aqdv_get_counter(st->context, "direct_ops", &v) < 0)
		return 0;
	return v;
}

static void ours_teardown(struct side *s)
{
	struct ours_state *st = s->state;

	if (!st)
		return;
	ours_disconnect(s, st);
	free(st);
}

/* One READ of block `i` into slot `slot`. */
static inline int post_read(struct ours_state *st, const struct ours_param *p,
			    uint64_t i, uint32_t slot)
{
	struct ours_slot *sl = &st->slots[slot];
	uint64_t off = side_offset(i, p->block, side_buffer_bytes(p->block));
	struct ibv_send_wr *bad;
	uint32_t q = st->next_qp;

	st->next_qp = q + 1 < p->qp_count ? q + 1 : 0;
	sl->offset = off;
	sl->wr.wr.rdma.remote_addr = st->remote + off;
	return -ibv_post_send(st->qp[q], &sl->wr, &bad);
}

static void make_requests(struct ours_state *st, const struct ours_param *p)
{
	for (uint32_t i = 0; i < p->depth; i++) {
		struct ours_slot *sl = &st->slots[i];

		sl->sge = (struct ibv_sge){
			.addr = (uintptr_t)st->buf + (uint64_t)i * p->block,
			.length = p->block,
			.lkey = st->mr->lkey,
		};
		sl->wr = (struct ibv_send_wr){
			.wr_id = i,
			.sg_list = &sl->sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.wr.rdma = {.rkey = st->rkey},
		};
	}
}

static int check_read(struct side *s, const struct ibv_wc *wc)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = s->state;

	if (wc->status != IBV_WC_SUCCESS) {
		char text[64];

		snprintf(text, sizeof(text), "completion status %d",
			 (int)wc->status);
		return side_fail(s, -EREMOTEIO, text);
	}
	if (wc->wr_id >= p->depth ||
	    !side_block_ok(st->buf + wc->wr_id * p->block,
			   st->slots[wc->wr_id].offset))
		return side_fail(s, -EBADMSG, "data of a READ");
	return 0;
}

/* Takes completions; answers how many, or -errno. */
static int reap(struct side *s, uint32_t *free_slots, uint32_t *free_count)
{
	struct ours_state *st = s->state;
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(st->cq, POLL_BATCH, wc);

	if (n < 0)
		return side_fail(s, -EIO, "ibv_poll_cq");
	for (int i = 0; i < n; i++) {
		int rc = check_read(s, &wc[i]);
		uint32_t slot = (uint32_t)wc[i].wr_id;

		if (rc < 0)
			return rc;
		if (st->slots[slot].t0)
			side_sample(s, 0, bench_ticks() - st->slots[slot].t0);
		free_slots[(*free_count)++] = slot;
	}
	return n;
}

static int measure_rate(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = s->state;
	uint32_t free_slots[OURS_DEPTH_MAX];
	uint32_t free_count = 0;
	uint64_t posted = 0;
	uint64_t end = side_end_ticks(s, window_ns);
	int n = 0;

	for (uint32_t i = 0; i < p->depth; i++)
		free_slots[free_count++] = i;
	while (bench_ticks() < end) {
		while (free_count > 0) {
			uint32_t slot = free_slots[--free_count];
			bool sample = posted % SAMPLE_EVERY == 0;

			st->slots[slot].t0 = sample ? bench_ticks() : 0;
			n = post_read(st, p, posted++, slot);
			if (n < 0)
				return side_fail(s, n, "ibv_post_send");
		}
		n = reap(s, free_slots, &free_count);
		if (n < 0)
			return n;
	}
	out->ops = posted - (p->depth - free_count);
	while (n >= 0 && free_count < p->depth)
		n = reap(s, free_slots, &free_count);
	return n < 0 ? n : 0;
}

static int measure_latency(struct side *s, uint64_t window_ns,
			   struct side_result *out)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = s->state;
	uint64_t end = side_end_ticks(s, window_ns);
	struct ibv_wc wc;
	uint64_t t0, t1;
	int n;

	out->ops = 0;
	do {
		t0 = bench_ticks();
		n = post_read(st, p, out->ops, 0);
		if (n < 0)
			return side_fail(s, n, "ibv_post_send");
		do {
			n = ibv_poll_cq(st->cq, 1, &wc);
		} while (n == 0);
		t1 = bench_ticks();
		if (n < 0)
			return side_fail(s, -EIO, "ibv_poll_cq");
		side_sample(s, 0, t1 - t0);
		n = check_read(s, &wc);
		if (n < 0)
			return n;
		out->ops++;
	} while (t1 < end);
	return 0;
}

/*
 * What a READ costs its caller: one call that posts, and one that finds the
 * completion. The pause between them keeps the time on the way out, as in the
 * breakdown that the report compares with. A poll that comes too early is not
 * counted: it would measure waiting.
 */
static int measure_caller(struct side *s, uint64_t window_ns,
			  struct side_result *out)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = s->state;
	uint64_t pause = (uint64_t)(CALLER_PAUSE_NS * s->ticks_per_ns);
	uint64_t patience = (uint64_t)(PATIENCE_NS * s->ticks_per_ns);
	uint64_t end = side_end_ticks(s, window_ns);
	struct ibv_wc wc;
	uint64_t t0, t1, t2, t3;
	int n;

	out->ops = 0;
	do {
		bool early = false;

		t0 = bench_ticks();
		n = post_read(st, p, out->ops, 0);
		t1 = bench_ticks();
		if (n < 0)
			return side_fail(s, n, "ibv_post_send");
		while (bench_ticks() - t1 < pause)
			;
		do {
			t2 = bench_ticks();
			n = ibv_poll_cq(st->cq, 1, &wc);
			t3 = bench_ticks();
			early |= n == 0;
		} while (n == 0 && t3 - t1 < patience);
		if (n <= 0)
			return side_fail(s, -ETIMEDOUT, "ibv_poll_cq");
		side_sample(s, 0, t1 - t0);
		if (!early)
			side_sample(s, 1, t3 - t2);
		n = check_read(s, &wc);
		if (n < 0)
			return n;
		out->ops++;
	} while (t3 < end);
	return 0;
}

/* The first READs of a key may go by the cable while the mapping is made. */
static int await_direct(struct side *s)
{
	uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
	struct ours_state *st = s->state;
	struct side_result r;
	int rc;

	do {
		rc = measure_latency(s, DIRECT_TRY_NS, &r);
		if (rc < 0)
			return rc;
		if (direct_ops(st) > 0)
			return 0;
	} while (bench_now_ns() < end_ns);
	return side_fail(s, -EOPNOTSUPP, "no direct mapping was made");
}

static int ours_setup(struct side *s)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = calloc(1, sizeof(*st));
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	rc = ours_connect(s, st);
	if (rc == 0)
		make_requests(st, p);
	if (rc == 0 && p->direct && s->role == SIDE_CLIENT)
		rc = await_direct(s);
	return rc;
}

static int measure_kind(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	const struct ours_param *p = s->param;

	if (p->caller_time)
		return measure_caller(s, window_ns, out);
	if (p->depth == 1)
		return measure_latency(s, window_ns, out);
	return measure_rate(s, window_ns, out);
}

/* A number counts only for the port it is said to be about. */
static int ours_measure(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	const struct ours_param *p = s->param;
	struct ours_state *st = s->state;
	uint64_t before = direct_ops(st);
	int rc = measure_kind(s, window_ns, out);
	uint64_t direct = direct_ops(st) - before;

	if (rc < 0)
		return rc;
	if (direct < (p->direct ? out->ops : 0) || (!p->direct && direct > 0))
		return side_fail(s, -EPROTO, "READs took the other port");
	return 0;
}

/* No serve: the server's application sleeps. */
const struct side_ops ours_ops = {
	.setup = ours_setup,
	.measure = ours_measure,
	.teardown = ours_teardown,
};
