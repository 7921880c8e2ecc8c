/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One-sided verbs, by the price list that the engine has, too: requests are
 * posted in lists, each with one doorbell and one completion, on as many queue
 * pairs to the memory node as an engine's session has.
 */
#include <errno.h>
#include <stdlib.h>

#include "client/verbs_api.h"
#include "fig_priv.h"
#include "sim/model.h"

enum {
	BATCH = 100, /* as in the paper */
	CQES = 32,   /* taken at one go */
};

/* One queue pair. */
struct rail {
	struct client_link *link;
	/* Places of requests, oldest first: first those that are posted. */
	uint32_t place[FIG_DEPTH_MAX];
	uint32_t head, tail; /* free-running */
	uint32_t unsent;
	struct ibv_send_wr wr[BATCH];
	struct ibv_sge sge[BATCH];
};

struct fig_verbs {
	struct ibv_mr *mr;
	uint32_t under_way; /* on the wire */
	uint32_t unsent;
	struct rail rail[FIG_RAILS];
};

int fig_verbs_open(struct fig_thread *t)
{
	struct client_link_options o = {.send_depth = t->depth};
	struct rig *rig = &t->fig->rig;
	int err = 0;

	t->verbs = calloc(1, sizeof(*t->verbs));
	if (!t->verbs)
		return -ENOMEM;
	t->verbs->mr = ibv_reg_mr(t->fig->host->pd, t->buf,
				  (size_t)t->depth * t->fig->cfg.bytes,
				  IBV_ACCESS_LOCAL_WRITE);
	if (!t->verbs->mr)
		return -ENOMEM;
	for (uint32_t i = 0; i < rig->node_count && !err; i++)
		err = rig_link_open(t->fig->host, rig->node[i].region, &o,
				    &t->verbs->rail[i].link);
	return err;
}

void fig_verbs_close(struct fig_thread *t)
{
	if (t->verbs && t->verbs->mr)
		(void)ibv_dereg_mr(t->verbs->mr);
	free(t->verbs);
}

static void post(struct fig_thread *t, struct rail *r)
{
	struct ibv_send_wr *last = &r->wr[r->unsent - 1], *bad;

	last->next = NULL;
	last->send_flags = IBV_SEND_SIGNALED;
	last->wr_id = r->tail;
	fig_settle(t);
	ASSERT(ibv_post_send(r->link->qp, r->wr, &bad) == 0);
	/* Each request of the list was paid for when it was added. */
	fig_issue_cost(t, model_connectx5.cpu_post_ps - offload_costs.wqe_ps);
	t->verbs->under_way += r->unsent;
	t->verbs->unsent -= r->unsent;
	r->unsent = 0;
}

static void post_all(struct fig_thread *t)
{
	for (uint32_t i = 0; i < FIG_RAILS && t->verbs->unsent; i++)
		if (t->verbs->rail[i].unsent)
			post(t, &t->verbs->rail[i]);
}

static void add(struct fig_thread *t, uint32_t place)
{
	struct rig *rig = &t->fig->rig;
	uint64_t at = t->flight[place].record * t->fig->cfg.bytes;
	uint32_t node = rig_node_of(rig, at);
	struct rail *r = &t->verbs->rail[node];
	uint64_t offset =
		(uint64_t)(rig_byte(rig, at) - rig->node[node].region->mem);
	uint32_t i = r->unsent++;

	r->sge[i] = (struct ibv_sge){(uintptr_t)fig_buf(t, place),
				     t->fig->cfg.bytes, t->verbs->mr->lkey};
	r->wr[i] = (struct ibv_send_wr){
		.next = &r->wr[i] + 1,
		.sg_list = &r->sge[i],
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.wr.rdma = {.remote_addr = r->link->addr + offset,
			    .rkey = r->link->rkey}};
	r->place[r->tail++ % FIG_DEPTH_MAX] = place;
	t->verbs->unsent++;
	fig_issue_cost(t, offload_costs.wqe_ps);
}

void fig_async_issue(struct fig_thread *t, uint32_t place)
{
	uint32_t batch = t->fig->cfg.batch ? t->fig->cfg.batch : BATCH;

	add(t, place);
	if (t->verbs->unsent >= u32_min(batch, BATCH))
		post_all(t);
}

static void take(struct fig_thread *t, struct rail *r)
{
	struct ibv_wc wc[CQES];
	int n = ibv_poll_cq(r->link->cq, CQES, wc);

	for (int i = 0; i < n; i++) {
		ASSERT(wc[i].status == IBV_WC_SUCCESS);
		/* A waiting poller has paid for its first look already. */
		fig_comm(t, model_connectx5.cpu_poll_ps);
		while (r->head != (uint32_t)wc[i].wr_id) {
			uint32_t place = r->place[r->head++ % FIG_DEPTH_MAX];

			t->verbs->under_way--;
			fig_complete(t, place, fig_buf(t, place));
		}
	}
}

void fig_verbs_look(struct fig_thread *t)
{
	/* A batch waits until it is full, while another is under way. */
	if (!t->verbs->under_way)
		post_all(t);
	fig_settle(t);
	for (uint32_t i = 0; i < t->fig->rig.node_count; i++)
		take(t, &t->verbs->rail[i]);
}

/* The same, one at a time. */
void fig_sync_issue(struct fig_thread *t, uint32_t place)
{
	add(t, place);
	post_all(t);
	while (t->flight[place].issued_ps) {
		fig_wait(t);
		fig_verbs_look(t);
	}
}
