/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's processor: fibers that run the shipped page server, one per core,
 * and pay for what they do. A core is busy before its answers leave; the key of
 * a piece that it gives out was made in advance, as in the paper, so the core
 * pays for the next one after the answer.
 */
#include <errno.h>

#include "client/verbs_api.h"
#include "paging_priv.h"

const struct paging_costs paging_costs = {PAGING_COSTS(MODEL_VALUE)};

static void work(struct paging_core *core, uint64_t ps)
{
	if (!ps)
		return;
	if (core->p->is_measuring)
		core->busy_ps += ps;
	sim_fiber_sleep_ps(core->p->sim, ps);
}

/* The server polls; its queues are the only ones of the node's process that
 * anybody polls. */
static int poll_cq(struct ibv_cq *cq, int entries, struct ibv_wc *wc)
{
	struct paging_core *core = cq->cq_context;
	uint64_t requests = 0;
	int n;

	/* One without guests is polled only to let the NIC have its turn. */
	if (!core)
		return 0;
	n = core->p->node->poll_cq(cq, entries, wc);

	for (int i = 0; i < n; i++)
		requests += wc[i].status == IBV_WC_SUCCESS &&
			    wc[i].opcode & IBV_WC_RECV;
	work(core, requests * paging_costs.serve_ps);
	return n;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct paging_core *core = qp->send_cq->cq_context;
	bool gives_piece = wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	int err = core->p->node->post_send(qp, wr, bad);

	if (gives_piece && core->p->cfg.mode == PAGE_DYNAMIC_1M)
		core->debt_ps += paging_costs.register_1m_ps;
	if (gives_piece && core->p->cfg.mode == PAGE_DYNAMIC_4K)
		core->debt_ps += paging_costs.register_4k_ps;
	return err;
}

static bool needs_cores(const struct paging *p)
{
	return p->cfg.mode == PAGE_TWO_SIDED ||
	       p->cfg.mode == PAGE_DYNAMIC_1M || p->cfg.mode == PAGE_DYNAMIC_4K;
}

int paging_cores_open(struct paging *p)
{
	int err = 0;

	if (!needs_cores(p))
		return 0;
	if (!p->cfg.cores || p->cfg.cores > PAGING_CORES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < p->cfg.cores && !err; i++) {
		p->core[i].p = p;
		err = pframe_server_create(p->node->context,
					   &p->core[i].server);
	}
	return err;
}

struct paging_core *paging_core_of(struct paging_worker *w)
{
	return &w->p->core[w->index % w->p->cfg.cores];
}

void paging_core_take(struct paging_core *core, struct ibv_qp *qp)
{
	qp->recv_cq->cq_context = core;
	core->guests++;
}

static void core_main(void *arg)
{
	struct paging_core *core = arg;

	while (!core->p->is_stopping) {
		uint64_t debt_ps;

		if (!pframe_server_step(core->server))
			client_clock_relax(&core->p->node->clock);
		debt_ps = core->debt_ps;
		core->debt_ps = 0;
		work(core, debt_ps);
	}
}

int paging_cores_start(struct paging *p)
{
	int err = 0;

	if (!needs_cores(p))
		return 0;
	p->node->context->ops.poll_cq = poll_cq;
	p->node->context->ops.post_send = post_send;
	for (uint32_t i = 0; i < p->cfg.cores && !err; i++)
		if (p->core[i].guests)
			err = rig_host_spawn(p->node, "core", core_main,
					     &p->core[i]);
	return err;
}

void paging_cores_close(struct paging *p)
{
	for (uint32_t i = 0; i < PAGING_CORES_MAX; i++)
		if (p->core[i].server)
			pframe_server_destroy(p->core[i].server);
}
