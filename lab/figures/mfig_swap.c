/* SPDX-License-Identifier: Apache-2.0 */
/* A rival like FastSwap: one machine whose pages come by READ and go by WRITE,
 * over shipped NICs. It shares nothing with anybody. */
#include <errno.h>
#include <stdlib.h>

#include "mfig_priv.h"

enum {
	ABSENT,
	COMING,
	CLEAN,
	DIRTY,
	PAGE = COHERENCE_PAGE_BYTES,
	DEPTH = 64,
};

static int open_thread(struct mfig *f, struct mfig_thread *t)
{
	struct rig_host *host = f->machine[0].host;
	struct rig_pair_options o = {.send_depth = DEPTH};
	int err = 0;

	t->cq = o.cq = rig_cq_create(host, 2 * DEPTH);
	t->buf = calloc(2, PAGE);
	if (!t->cq || !t->buf)
		return -ENOMEM;
	for (unsigned i = 0; !err && i < MFIG_NODES; i++)
		err = rig_pair_open(host, f->node[i].host, &o, &t->pair[i]);
	if (err)
		return err;
	t->mr = ibv_reg_mr(host->pd, t->buf, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE);
	return t->mr ? 0 : -ENOMEM;
}

int mfig_swap_start(struct mfig *f)
{
	struct mfig_machine *m = &f->machine[0];
	int err;

	m->mmu = calloc(f->cfg->pages, sizeof(*m->mmu));
	err = m->mmu ? mfig_fifo_init(&m->fifo, f->cfg->pages) : -ENOMEM;
	for (unsigned i = 0; !err && i < f->cfg->threads; i++)
		err = open_thread(f, &f->thread[i]);
	return err;
}

void mfig_swap_stop(struct mfig *f)
{
	for (unsigned i = 0; i < f->cfg->threads; i++) {
		struct mfig_thread *t = &f->thread[i];

		if (t->mr)
			(void)ibv_dereg_mr(t->mr);
		for (unsigned k = 0; k < MFIG_NODES; k++)
			if (t->pair[k].near_qp)
				rig_pair_close(&t->pair[k]);
		if (t->cq)
			(void)ibv_destroy_cq(t->cq);
		free(t->buf);
	}
}

static void post(struct mfig_thread *t, uint32_t page, bool writes)
{
	struct rig_coh_node *n = mfig_node_of(t->f, page);
	const struct rig_region *arena = n->arena;
	struct ibv_sge sge = {(uintptr_t)t->buf + (writes ? PAGE : 0), PAGE,
			      t->mr->lkey};
	struct ibv_send_wr wr = {
		.wr_id = writes,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = writes ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {arena->addr + mfig_node_at(page), arena->rkey}};
	struct ibv_send_wr *bad;

	if (ibv_post_send(t->pair[n - t->f->node].near_qp, &wr, &bad))
		t->f->is_broken = true;
}

/* Until the READ is complete; WRITEs complete some time. */
static void wait_read(struct mfig_thread *t)
{
	struct ibv_wc wc;

	for (;;) {
		int n = ibv_poll_cq(t->cq, 1, &wc);

		if (n > 0 && wc.status != IBV_WC_SUCCESS)
			t->f->is_broken = true;
		if (t->f->is_broken || (n > 0 && !wc.wr_id))
			return;
		if (n <= 0)
			client_clock_relax(&t->m->host->clock);
	}
}

void mfig_swap_step(struct mfig_thread *t, const struct mfig_step *s)
{
	struct mfig_machine *m = t->m;
	uint8_t *state = &m->mmu[s->page];
	uint32_t victim;

	if (*state == ABSENT) {
		t->f->misses++;
		*state = COMING;
		mfig_thread_pay(t);
		sim_fiber_sleep_ps(t->f->sim, mfig_costs.swap_fault_ps);
		while (m->fifo.count >= t->f->cfg->cache_pages &&
		       mfig_fifo_pop(&m->fifo, &victim)) {
			if (m->mmu[victim] == DIRTY)
				post(t, victim, true);
			m->mmu[victim] = ABSENT;
		}
		post(t, s->page, false);
		wait_read(t);
		*state = CLEAN;
		mfig_fifo_push(&m->fifo, s->page);
	}
	while (*state == COMING) { /* another thread waits for it */
		mfig_thread_pay(t);
		sim_fiber_sleep_ps(t->f->sim, mfig_costs.swap_fault_ps / 4);
	}
	if (s->writes && *state == CLEAN)
		*state = DIRTY;
}
