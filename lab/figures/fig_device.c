/* SPDX-License-Identifier: Apache-2.0 */
/* Local memory, one-sided verbs with one and with many under way, and rings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "fig_priv.h"
#include "sim/model.h"

enum {
	CQES = 32, /* taken at one go */
	RING_ENTRIES = 1024,
	RING_WRITE_BYTES = 4096, /* nothing is written */
	RING_READ_BYTES = 256 << 10,
};

/* ---- nothing far -------------------------------------------------------- */

static int local_open(struct fig_thread *t)
{
	return 0;
}

static void local_issue(struct fig_thread *t, uint32_t place)
{
	fig_complete(t, place, NULL);
}

static void local_look(struct fig_thread *t)
{
}

/* ---- one-sided verbs ---------------------------------------------------- */

static int verbs_open(struct fig_thread *t)
{
	struct client_link_options o = {.send_depth = t->depth};

	t->mr = ibv_reg_mr(t->fig->host->pd, t->buf,
			   (size_t)t->depth * t->fig->cfg.bytes,
			   IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr)
		return -ENOMEM;
	return rig_link_open(t->fig->host, t->fig->rig.node[0].region, &o,
			     &t->link);
}

static void verbs_issue(struct fig_thread *t, uint32_t place)
{
	struct ibv_sge sge = {(uintptr_t)fig_buf(t, place), t->fig->cfg.bytes,
			      t->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = place,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr =
				    t->link->addr +
				    t->flight[place].record * t->fig->cfg.bytes,
			    .rkey = t->link->rkey}};
	struct ibv_send_wr *bad;

	fig_settle(t);
	ASSERT(ibv_post_send(t->link->qp, &wr, &bad) == 0);
	fig_comm(t, model_connectx5.cpu_post_ps);
}

static void verbs_look(struct fig_thread *t)
{
	struct ibv_wc wc[CQES];
	int n;

	fig_settle(t);
	n = ibv_poll_cq(t->link->cq, CQES, wc);
	for (int i = 0; i < n; i++) {
		ASSERT(wc[i].status == IBV_WC_SUCCESS);
		/* A waiting poller has paid for its first look already. */
		fig_comm(t, model_connectx5.cpu_poll_ps);
		fig_complete(t, (uint32_t)wc[i].wr_id,
			     fig_buf(t, (uint32_t)wc[i].wr_id));
	}
}

/* The same, one at a time. */
static void sync_issue(struct fig_thread *t, uint32_t place)
{
	verbs_issue(t, place);
	while (t->flight[place].issued_ps) {
		fig_wait(t);
		verbs_look(t);
	}
}

/* ---- rings -------------------------------------------------------------- */

static int cow_open(struct fig_thread *t)
{
	struct rig *rig = &t->fig->rig;
	int err = rig_app_open(rig, t->fig->host, RING_ENTRIES,
			       RING_WRITE_BYTES, RING_READ_BYTES, &t->app);

	if (err)
		return err;
	return t->fig->cfg.device == FIG_P4
		       ? fig_p4_open(t)
		       : rig_attach(rig->engine[t->index % rig->engine_count],
				    t->app);
}

/* Beyond the measured costs, for who wants to see others. */
static uint64_t more_ps(const struct fig_thread *t)
{
	uint64_t known_ps =
		offload_costs.ring_issue_ps + offload_costs.ring_take_ps +
		offload_costs.ring_copy_ps_per_byte * t->fig->cfg.bytes;
	uint64_t want_ps = t->fig->cfg.client_ps;

	return want_ps > known_ps ? want_ps - known_ps : 0;
}

static void cow_issue(struct fig_thread *t, uint32_t place)
{
	uint32_t bytes = t->fig->cfg.bytes;
	int64_t id;

	fig_settle(t);
	id = offload_ring_read(&t->app->ring, 0,
			       t->flight[place].record * bytes,
			       fig_buf(t, place), bytes);
	ASSERT(id > 0); /* the rings hold more than a window */
	t->flight[place].id = id;
	fig_comm(t, offload_costs.ring_issue_ps + more_ps(t));
}

/* Reads complete in the order of their sequences. */
static void cow_look(struct fig_thread *t)
{
	struct offload_ring *r = &t->app->ring;
	uint64_t before = r->done[OFFLOAD_RD];
	uint32_t bytes = t->fig->cfg.bytes;

	fig_settle(t);
	ASSERT(offload_ring_look(r) == 0);
	fig_comm(t, offload_costs.ring_look_ps);
	if (r->done[OFFLOAD_RD] == before)
		return;
	fig_comm(t, offload_costs.dma_news_ps);
	for (uint32_t i = 0; i < t->depth; i++) {
		struct fig_flight *f = &t->flight[i];

		if (!f->issued_ps || !f->id ||
		    offload_ring_result(r, f->id) != 1)
			continue;
		f->id = 0;
		fig_comm(t,
			 offload_costs.ring_take_ps +
				 offload_costs.ring_copy_ps_per_byte * bytes);
		fig_complete(t, i, fig_buf(t, i));
	}
}

const struct fig_ops fig_ops[FIG_DEVICES] = {
	[FIG_LOCAL] = {"local", local_open, local_issue, local_look},
	[FIG_COW] = {"cowbird", cow_open, cow_issue, cow_look},
	[FIG_ASYNC] = {"async", verbs_open, verbs_issue, verbs_look},
	[FIG_SYNC] = {"sync", verbs_open, sync_issue, local_look},
	[FIG_TWO_SIDED] = {"two-sided", fig_ask_open, fig_ask_issue,
			   local_look},
	[FIG_REDY] = {"redy", fig_redy_open, fig_redy_issue, fig_redy_look},
	[FIG_P4] = {"cowbird-p4", cow_open, cow_issue, cow_look},
	[FIG_BLOCKING] = {"blocking", fig_ask_open, fig_ask_issue, local_look},
};

const char *fig_device_name(enum fig_device device)
{
	return fig_ops[device].name;
}
