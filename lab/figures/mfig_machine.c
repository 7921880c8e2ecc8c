/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of MIND in the figures: its MMU, its faults, and a cache with a
 * limit, whose pages go in the order in which they came. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mfig_priv.h"

enum {
	LANES = COH_LANES_MAX,
	REGION_PAGES = 4, /* as the cache server leaves them */
	TRIES = 8,	  /* pages that are looked at to make room for one */
};

/* ---- the MMU
 * ------------------------------------------------------------------- */

void mfig_execute(struct mfig_machine *m, uint32_t page, bool writes)
{
	struct mfig *f = m->f;

	f->res->wrong += m->word[page] != f->last[page];
	if (writes)
		m->word[page] = ++f->last[page];
}

/* Who waits for this page runs before anything else happens to it: a fault's
 * handler returns to its instruction. */
static void run_faults(struct mfig_machine *m, uint32_t page)
{
	struct mfig_fault **at = &m->waiting;

	while (*at) {
		struct mfig_fault *w = *at;

		if (w->page != page || w->right > m->mmu[page]) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		mfig_execute(m, page, w->right == COH_WRITE);
		w->is_open = false;
	}
	for (unsigned i = 0; i < m->f->cfg->threads; i++) {
		struct mfig_thread *t =
			&m->f->thread[m->number * m->f->cfg->threads + i];

		sim_wait_notify(m->f->sim, &t->wait, 0);
	}
}

static void map(void *ctx, uint32_t page, enum coh_right right,
		const uint8_t *bytes)
{
	struct mfig_machine *m = ctx;

	m->cached += m->mmu[page] == COH_NONE;
	mfig_fifo_push(&m->fifo, page);
	memcpy(&m->word[page], bytes, sizeof(m->word[page]));
	m->mmu[page] = (uint8_t)right;
	run_faults(m, page);
}

static void limit(void *ctx, uint32_t page, uint32_t count,
		  enum coh_right right)
{
	struct mfig_machine *m = ctx;

	for (uint32_t i = page; i < page + count; i++) {
		if (m->mmu[i] <= right)
			continue;
		m->mmu[i] = (uint8_t)right;
		m->cached -= right == COH_NONE;
	}
}

static void give(void *ctx, uint32_t page, uint8_t *bytes)
{
	const struct mfig_machine *m = ctx;

	memcpy(bytes, &m->word[page], sizeof(m->word[page]));
}

static void broken(struct mfig *f)
{
	f->is_broken = true;
	sim_stop(f->sim);
}

static void fail(void *ctx, uint32_t page, uint32_t count)
{
	const struct mfig_machine *m = ctx;

	broken(m->f);
}

static void wrong(void *ctx, const char *what)
{
	const struct mfig_machine *m = ctx;

	broken(m->f);
}

/* Page tables and TLBs are changed before the cache gives anything back. */
static bool step(void *ctx, enum rig_coh_step step)
{
	const struct mfig_machine *m = ctx;

	if (step == RIG_COH_INVAL)
		sim_fiber_sleep_ps(m->f->sim, mfig_costs.inval_ps);
	return true;
}

static const struct rig_coh_ops ops = {.step = step,
				       .map = map,
				       .limit = limit,
				       .give = give,
				       .fail = fail,
				       .wrong = wrong};

/* ---- the server
 * ----------------------------------------------------------------- */

static void touch_again(struct mfig_machine *m)
{
	for (struct mfig_fault *w = m->waiting; w; w = w->next)
		(void)rig_coh_touch(&m->coh, w->page, (enum coh_right)w->right);
}

/* A page that cannot go now goes later. */
static void make_room(struct mfig_machine *m)
{
	uint32_t tries = TRIES, page;

	while (m->cached > m->f->cfg->cache_pages && tries &&
	       mfig_fifo_pop(&m->fifo, &page)) {
		if (m->mmu[page] == COH_NONE)
			continue;
		tries--;
		if (!rig_coh_evict(&m->coh, page)) {
			mfig_fifo_push(&m->fifo, page);
			continue;
		}
		(void)rig_coh_leave(&m->coh, page & ~(REGION_PAGES - 1u),
				    REGION_PAGES);
	}
}

static void serve(struct mfig_machine *m, struct ibv_cq *cq)
{
	while (!m->f->is_over) {
		if (rig_coh_poll(&m->coh, cq) > 0) {
			make_room(m);
			touch_again(m);
		} else {
			client_clock_relax(&m->host->clock);
		}
	}
}

static void serve_talk(void *arg)
{
	struct mfig_machine *m = arg;

	serve(m, m->coh.cq);
}

static void serve_lanes(void *arg)
{
	struct mfig_machine *m = arg;

	serve(m, m->coh.lane_cq);
}

/* ---- threads
 * ------------------------------------------------------------------- */

static void begin(struct mfig_machine *m, struct mfig_fault *w,
		  const struct mfig_step *s)
{
	*w = (struct mfig_fault){.next = m->waiting,
				 .page = s->page,
				 .right = s->writes ? COH_WRITE : COH_READ,
				 .is_open = true};
	m->waiting = w;
	(void)rig_coh_touch(&m->coh, w->page, (enum coh_right)w->right);
}

static void wait_for(struct mfig_thread *t, const struct mfig_fault *w)
{
	while (w->is_open)
		(void)sim_wait_for(t->f->sim, &t->wait, UINT64_MAX, false,
				   "a page");
}

static bool is_here(const struct mfig_machine *m, const struct mfig_step *s)
{
	return m->mmu[s->page] >= (s->writes ? COH_WRITE : COH_READ);
}

/* A store of PSO goes on its way, and the thread goes on; it waits when too
 * many are. A store to a page that one is on its way to joins it. */
static void store_later(struct mfig_thread *t, const struct mfig_step *s)
{
	struct mfig_fault *free_one = NULL;

	for (;;) {
		for (unsigned i = 0; i < mfig_costs.store_buffer; i++) {
			struct mfig_fault *w = &t->store[i];

			if (w->is_open && w->page == s->page)
				return;
			if (!w->is_open)
				free_one = w;
		}
		if (free_one)
			break;
		(void)sim_wait_for(t->f->sim, &t->wait, UINT64_MAX, false,
				   "room for a store");
	}
	begin(t->m, free_one, s);
}

void mfig_machine_step(struct mfig_thread *t, const struct mfig_step *s)
{
	struct mfig_machine *m = t->m;
	enum mfig_system system = t->f->cfg->system;

	if (is_here(m, s)) {
		mfig_execute(m, s->page, s->writes);
		return;
	}
	t->f->misses++;
	mfig_thread_pay(t);
	if (s->writes && (system == MFIG_PSO || system == MFIG_PSO_PLUS)) {
		store_later(t, s);
		return;
	}
	sim_fiber_sleep_ps(t->f->sim, mfig_costs.fault_ps);
	if (is_here(m, s)) { /* another thread's fault brought it */
		mfig_execute(m, s->page, s->writes);
		return;
	}
	begin(m, &t->fault, s);
	wait_for(t, &t->fault);
}

/* ---- life
 * ---------------------------------------------------------------------- */

int mfig_machine_start(struct mfig_machine *m)
{
	struct rig_coh_config cfg = {.host = m->host,
				     .ops = &ops,
				     .ctx = m,
				     .rand = &m->rand,
				     .number = (uint8_t)m->number,
				     .lanes = LANES,
				     .page_count = m->f->cfg->pages,
				     .mtu = IBV_MTU_4096,
				     .has_lane_cq = true};
	int err;

	rng_init_stream(&m->rand, m->f->cfg->seed, 500 + m->number);
	m->mmu = calloc(cfg.page_count, sizeof(*m->mmu));
	m->word = calloc(cfg.page_count, sizeof(*m->word));
	err = m->mmu && m->word ? mfig_fifo_init(&m->fifo, cfg.page_count)
				: -ENOMEM;
	if (!err)
		err = rig_coh_init(&m->coh, &cfg);
	if (!err)
		err = rig_coh_connect(&m->coh, m->f->tor, 1, false);
	if (!err)
		err = rig_host_spawn(m->host, "talk", serve_talk, m);
	return err ? err : rig_host_spawn(m->host, "lanes", serve_lanes, m);
}

void mfig_machine_stop(struct mfig_machine *m)
{
	rig_coh_release(&m->coh);
}
