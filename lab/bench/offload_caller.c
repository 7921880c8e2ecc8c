/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The caller's own time for one read: to issue it, and to take its result when
 * that lies ready. Measured over a batch as the paper's probe has it, because
 * both are shorter than a look at the clock costs, which is taken off.
 *
 * Reads are issued one by one, and so are READs where `is_each`, with a
 * doorbell for each as in the paper's figure 2; otherwise READs are posted as
 * one list. All are made beforehand but for their addresses, and all
 * completions are taken with one call.
 *
 * A window ends when all its stores have left the core: what a way leaves to be
 * done behind it is its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "offload_bench.h"
#include "probe.h"
#include "ticks.h"

enum {
	BURST = OFFLOAD_BATCH,
	SEED = 7,
	/* For the results to arrive. A poll that comes too early makes it
	 * longer, and all others a little shorter, until one in some twenty is
	 * early: who waits for longer than that finds sleepers at the other
	 * ends, and the next post pays for waking them. */
	PAUSE_NS = 20 * 1000,
	PAUSE_MAX_NS = 2 * 1000 * 1000,
	PAUSE_GROWS = 16, /* by this part of it */
	PAUSE_SHRINKS = 320,
	CQ_DEPTH = 2 * BURST,
};

struct state {
	struct offload_far far;
	struct rng rng;
	uint64_t record_count;
	uint64_t pause_ns;
	uint8_t *buf;
	/* By verbs ... */
	struct client_link *link;
	struct ibv_mr *mr;
	struct ibv_send_wr wr[BURST];
	struct ibv_sge sge[BURST];
	/* ... or by local stores. */
	struct aq_async *async;
	struct aq_poll *poll;
	uint32_t region;
};

static int setup_verbs(struct side *s, struct state *st)
{
	const struct offload_param *p = s->param;
	struct client_link_options lo = {.send_depth = CQ_DEPTH,
					 .cq_depth = CQ_DEPTH,
					 .rd_atomic = 128,
					 .rights = CLIENT_LINK_READ};
	int rc = client_link_open(st->far.rack, st->far.region_name, &lo,
				  &st->link);

	if (rc < 0)
		return side_fail(s, rc, aq_last_error());
	st->mr = st->link->verbs->reg_mr(st->link->pd, st->buf,
					 (size_t)BURST * p->record_bytes,
					 IBV_ACCESS_LOCAL_WRITE);
	if (!st->mr)
		return side_fail(s, -ENOMEM, "memory region");
	for (unsigned i = 0; i < BURST; i++) {
		st->sge[i] = (struct ibv_sge){.addr = (uintptr_t)st->buf +
						      i * p->record_bytes,
					      .length = p->record_bytes,
					      .lkey = st->mr->lkey};
		st->wr[i] = (struct ibv_send_wr){
			.wr_id = i,
			.next = p->is_each || i + 1 == BURST ? NULL
							     : &st->wr[i + 1],
			.sg_list = &st->sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma.rkey = st->link->rkey};
	}
	return 0;
}

static int setup_cow(struct side *s, struct state *st)
{
	const struct offload_param *p = s->param;
	struct aq_async_options opt = offload_async_options(p->way);
	int rc = aq_async_open(st->far.rack, &opt, &st->async);

	if (rc == 0) {
		rc = aq_async_add(st->async, st->far.region);
		st->region = (uint32_t)rc;
	}
	if (rc >= 0)
		rc = aq_poll_create(st->async, &st->poll);
	return rc < 0 ? side_fail(s, rc, aq_last_error()) : 0;
}

static int caller_setup(struct side *s)
{
	const struct offload_param *p = s->param;
	struct state *st = calloc(1, sizeof(*st));
	uint64_t bytes =
		probe_far_bytes(p->cfg->probe_records, p->record_bytes);
	char region[OFFLOAD_NAME_MAX];
	int rc;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	if (s->role == SIDE_SERVER)
		return 0;
	rng_init(&st->rng, SEED);
	st->record_count = bytes / p->record_bytes;
	st->pause_ns = PAUSE_NS;
	st->buf = aligned_alloc(
		4096, align_up((uint64_t)BURST * p->record_bytes, 4096));
	if (!st->buf)
		return side_fail(s, -ENOMEM, "buffer");
	offload_probe_region(region, p->record_bytes);
	/* Opens the device, too, which is not used. */
	rc = offload_far_open(s, &st->far, region, bytes, p->record_bytes);
	if (rc < 0)
		return rc;
	return offload_way_has_rings(p->way) ? setup_cow(s, st)
					     : setup_verbs(s, st);
}

static void caller_teardown(struct side *s)
{
	struct state *st = s->state;

	if (st->link) {
		const struct client_verbs *v = st->link->verbs;

		client_link_close(st->link);
		if (st->mr)
			(void)v->dereg_mr(st->mr);
	}
	aq_poll_destroy(st->poll);
	aq_async_close(st->async);
	offload_far_close(&st->far);
	free(st->buf);
	free(st);
}

static void pause_ns(const struct side *s, uint64_t ns)
{
	uint64_t end = side_end_ticks(s, ns);

	while (bench_ticks() < end)
		;
}

/* Where the reads of a burst go; outside what is timed. */
static void draw(const struct side *s, uint64_t offset[BURST])
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;

	for (unsigned i = 0; i < BURST; i++)
		offset[i] =
			rng_below(&st->rng, st->record_count) * p->record_bytes;
}

static int post_burst(struct side *s, const uint64_t offset[BURST])
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	struct ibv_send_wr *bad;

	for (unsigned i = 0; i < BURST; i++) {
		int rc;

		st->wr[i].wr.rdma.remote_addr = st->link->addr + offset[i];
		if (!p->is_each)
			continue;
		rc = -ibv_post_send(st->link->qp, &st->wr[i], &bad);
		if (rc < 0)
			return rc;
	}
	return p->is_each ? 0 : -ibv_post_send(st->link->qp, st->wr, &bad);
}

static int poll_burst(struct side *s, unsigned left)
{
	struct state *st = s->state;
	struct ibv_wc wc[BURST];
	int n = ibv_poll_cq(st->link->cq, (int)left, wc);

	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			return -EREMOTEIO;
	return n < 0 ? -EIO : n;
}

static int issue_burst(struct side *s, const uint64_t offset[BURST])
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;

	for (unsigned i = 0; i < BURST; i++) {
		int64_t id = aq_async_read(st->async, st->region, offset[i],
					   st->buf + i * p->record_bytes,
					   p->record_bytes);
		int rc = id < 0 ? (int)id : aq_poll_add(st->poll, id);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static int wait_burst(struct side *s, unsigned left)
{
	struct state *st = s->state;
	struct aq_response r[BURST];
	int n = aq_poll_wait(st->poll, r, left, 0);

	for (int i = 0; i < n; i++)
		if (r[i].err < 0)
			return r[i].err;
	return n;
}

static uint64_t each(const struct side *s, uint64_t from, uint64_t to)
{
	uint64_t spent = to - from, clock = (uint64_t)s->tick_step;

	return spent > clock ? (spent - clock) / BURST : 0;
}

static int caller_measure(struct side *s, uint64_t window_ns,
			  struct side_result *out)
{
	const struct offload_param *p = s->param;
	struct state *st = s->state;
	bool cow = offload_way_has_rings(p->way);
	uint64_t end = side_end_ticks(s, window_ns);
	uint64_t offset[BURST], t0, t1, t2, t3;

	out->ops = 0;
	do {
		unsigned left = BURST, polls = 0;
		int n;

		draw(s, offset);
		t0 = bench_ticks();
		n = cow ? issue_burst(s, offset) : post_burst(s, offset);
		t1 = bench_ticks_drained();
		if (n < 0)
			return side_fail(s, n, "issue");
		pause_ns(s, st->pause_ns);
		do {
			t2 = bench_ticks();
			n = cow ? wait_burst(s, left) : poll_burst(s, left);
			t3 = bench_ticks_drained();
			if (n < 0)
				return side_fail(s, n, "poll");
			left -= (unsigned)n;
			polls++;
		} while (left);
		side_sample(s, 0, each(s, t0, t1));
		/* A poll that came too early would measure waiting. */
		if (polls == 1) {
			side_sample(s, 1, each(s, t2, t3));
			st->pause_ns -= st->pause_ns / PAUSE_SHRINKS;
		} else if (st->pause_ns < PAUSE_MAX_NS) {
			st->pause_ns += st->pause_ns / PAUSE_GROWS;
		}
		out->ops += BURST;
	} while (t3 < end);
	return 0;
}

const struct side_ops offload_caller_ops = {
	.setup = caller_setup,
	.measure = caller_measure,
	.teardown = caller_teardown,
	.is_shared = true,
};
