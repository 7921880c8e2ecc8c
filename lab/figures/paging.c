/* SPDX-License-Identifier: Apache-2.0 */
/* Sets a point of the paging figures up, runs it, counts. */
#include "paging.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/verbs_api.h"
#include "paging_priv.h"
#include "sim/rack.h"

enum {
	PROGRAM_DEPTH = 48, /* a window and what reclaim writes */
	FLOOD_DEPTH = 32,
	PAGES_PER_MB = 256,
	SCALE = 1024,
	PIECE_BYTES = 1 << 20,
};

#define WARM_PS	   (60 * SIM_US)
#define SPAN_PS	   (400 * SIM_US)
#define KEYS_PS	   (40 * SIM_MS) /* making keys takes long */
#define PREPARE_PS (20 * SIM_S)
#define PROGRAM_PS (60 * SIM_S)
#define SETTLE_PS  (2 * SIM_MS)
#define STEP_PS	   (50 * SIM_US)

/* ---- the world ---------------------------------------------------------- */

static bool is_program(const struct paging *p)
{
	return p->cfg.work == PAGING_PROGRAM;
}

static void size_stores(struct paging *p)
{
	uint64_t scale = p->cfg.scale ? p->cfg.scale : SCALE;

	if (!is_program(p)) {
		p->pages = p->swap_pages = paging_micro_pages(&p->cfg);
		return;
	}
	p->pages = (uint64_t)p->cfg.program->set_mb * PAGES_PER_MB / scale /
		   p->cfg.program->workers;
	/* A client's swap space, or more where its programs need more. */
	p->swap_pages = u64_max(paging_costs.swap_mb * PAGES_PER_MB / scale /
					p->cfg.workers,
				p->pages);
}

static int make_pool(struct paging *p)
{
	uint32_t bytes =
		p->cfg.mode == PAGE_DYNAMIC_1M ? PIECE_BYTES : PAGE_BYTES;
	uint64_t each = align_up(p->swap_pages * PAGE_BYTES, bytes);

	if (p->cfg.mode == PAGE_STATIC)
		return 0;
	return pframe_pool_create(each * p->worker_count, bytes, &p->pool);
}

static void (*main_of(const struct paging_worker *w))(void *arg)
{
	if (w->floods)
		return paging_flood_main;
	return is_program(w->p) ? paging_program_main : paging_micro_main;
}

static int give_memory(struct paging_worker *w)
{
	size_t bytes = (size_t)w->depth * PAGE_BYTES;

	w->buf = aligned_alloc(PAGE_BYTES, bytes);
	if (!w->buf)
		return -ENOMEM;
	memset(w->buf, 0, bytes);
	if (!w->floods)
		return 0;
	w->flood_mr = ibv_reg_mr(w->host->pd, w->buf, bytes, 0);
	return w->flood_mr ? 0 : -ENOMEM;
}

static int add_worker(struct paging *p, uint32_t i)
{
	struct paging_worker *w = &p->worker[i];
	uint32_t honest = p->cfg.clients * p->cfg.workers;
	/* Each flooder is a client of its own. */
	uint32_t client =
		i < honest ? i / p->cfg.workers : p->cfg.clients + i - honest;
	int err = 0;

	*w = (struct paging_worker){
		.p = p,
		.index = i,
		.floods = i >= honest,
		.depth = is_program(p) ? PROGRAM_DEPTH : p->cfg.depth,
	};
	if (w->floods)
		w->depth = FLOOD_DEPTH;
	sim_rand_init(&w->rand, p->cfg.seed, 100 + i);
	if (!p->client[client])
		err = rig_host_add(p->stage, "client", &p->client[client]);
	if (err)
		return err;
	w->host = p->client[client];
	err = give_memory(w);
	if (!err)
		err = paging_store_open(w);
	if (!err && is_program(p) && !w->floods)
		err = paging_program_open(w);
	if (err)
		return err;
	p->running++;
	p->preparing++;
	return rig_host_spawn(w->host, "worker", main_of(w), w);
}

static int open_all(struct paging *p)
{
	struct rig_stage_config cfg = {
		.seed = p->cfg.seed, .hardware = true, .fabric = p->cfg.fabric};
	int err = rig_stage_create(&cfg, &p->stage);

	if (err)
		return err;
	p->sim = rig_stage_sim(p->stage);
	size_stores(p);
	err = make_pool(p);
	if (!err)
		err = rig_host_add(p->stage, "node", &p->node);
	if (!err)
		err = paging_cores_open(p);
	for (uint32_t i = 0; i < p->worker_count && !err; i++)
		err = add_worker(p, i);
	return err ? err : paging_cores_start(p);
}

static void close_all(struct paging *p)
{
	if (p->stage)
		sim_fiber_kill_all(p->sim);
	for (uint32_t i = 0; i < p->worker_count; i++) {
		struct paging_worker *w = &p->worker[i];

		paging_memory_close(w->memory);
		paging_store_close(w);
		if (w->flood_mr)
			(void)ibv_dereg_mr(w->flood_mr);
		free(w->buf);
	}
	paging_cores_close(p);
	if (p->stage)
		rig_stage_destroy(p->stage);
	if (p->pool)
		pframe_pool_destroy(p->pool);
	free(p->worker);
	free(p);
}

/* ---- a run --------------------------------------------------------------- */

static void run_while(struct paging *p, const uint32_t *count, uint64_t max_ps)
{
	uint64_t end_ps = sim_now_ps(p->sim) + max_ps;

	while (*count && !p->err && sim_now_ps(p->sim) < end_ps)
		(void)sim_run_until(p->sim, sim_now_ps(p->sim) + STEP_PS);
	if (*count && !p->err)
		p->err = -ETIMEDOUT;
}

static double busy_cores(const struct paging *p, uint64_t span_ps)
{
	uint64_t busy = 0;

	for (uint32_t i = 0; i < PAGING_CORES_MAX; i++)
		busy += p->core[i].busy_ps;
	return (double)busy / (double)span_ps;
}

static uint64_t span_of(const struct paging_config *c)
{
	if (c->span_ps)
		return c->span_ps;
	return c->work == PAGING_ALLOCATE ? KEYS_PS : SPAN_PS;
}

static void run_micro(struct paging *p)
{
	struct paging_result *r = p->res;
	uint64_t span_ps = span_of(&p->cfg), begin_ps;

	run_while(p, &p->preparing, PREPARE_PS);
	(void)sim_run_until(p->sim, sim_now_ps(p->sim) + WARM_PS);
	p->is_measuring = true;
	begin_ps = sim_now_ps(p->sim);
	while (!p->is_stopping && sim_now_ps(p->sim) < begin_ps + span_ps)
		(void)sim_run_until(p->sim, sim_now_ps(p->sim) + SIM_US);
	p->is_measuring = false;
	span_ps = sim_now_ps(p->sim) - begin_ps;
	p->is_stopping = true;
	run_while(p, &p->running, PREPARE_PS);
	r->mops = (double)r->ops / (double)span_ps * 1e6;
	r->cores = busy_cores(p, span_ps);
}

static void run_program(struct paging *p)
{
	struct paging_result *r = p->res;
	uint64_t begin_ps, span_ps, sum_ps = 0;

	run_while(p, &p->preparing, PREPARE_PS);
	*r = (struct paging_result){.failed = r->failed};
	p->is_measuring = true;
	begin_ps = sim_now_ps(p->sim);
	run_while(p, &p->running, PROGRAM_PS);
	p->is_stopping = true;
	span_ps = 1;
	for (uint32_t i = 0; i < p->worker_count; i++) {
		sum_ps += p->worker[i].ended_ps - p->worker[i].begun_ps;
		span_ps = u64_max(span_ps, p->worker[i].ended_ps - begin_ps);
	}
	r->elapsed_ms = (double)sum_ps / 1e9 / p->worker_count;
	r->mops = (double)r->ops / (double)span_ps * 1e6;
	r->cores = busy_cores(p, span_ps);
	r->utilisation = p->allocated_pages ? (double)p->used_pages /
						      (double)p->allocated_pages
					    : 0;
}

/* What is under way comes to its end; what has not ended by itself is made
 * anew, as after a client's death, so that nothing is in a chain's hands. */
static void end_flood(struct paging *p)
{
	(void)sim_run_until(p->sim, sim_now_ps(p->sim) + SETTLE_PS);
	for (uint32_t i = 0; i < p->worker_count && !p->err; i++)
		for (unsigned k = 0; k < PAGE_CHAIN_COUNT && !p->err; k++)
			p->err = paging_backend_renew(&p->worker[i].backend, k);
	(void)pframe_pool_mend(p->pool);
	if (!p->err)
		paging_flood_check(p);
}

static int check(const struct paging_config *c)
{
	if (!c->clients || c->clients > PAGING_CLIENTS_MAX || !c->workers ||
	    c->workers > PAGING_WORKERS_MAX || c->depth > PAGE_DEPTH ||
	    (unsigned)c->mode > PAGE_CHAIN ||
	    c->flooders > PAGING_FLOODERS_MAX ||
	    (c->flooders &&
	     (c->mode != PAGE_CHAIN || c->work == PAGING_PROGRAM)) ||
	    (c->work == PAGING_PROGRAM) != (c->program != NULL))
		return -EINVAL;
	return 0;
}

int paging_run(const struct paging_config *cfg, struct paging_result *res)
{
	struct paging *p;
	int err = check(cfg);

	memset(res, 0, sizeof(*res));
	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->cfg = *cfg;
	p->cfg.depth = u32_max(cfg->depth, 1);
	p->res = res;
	p->worker_count = cfg->clients * cfg->workers + cfg->flooders;
	p->worker = calloc(p->worker_count, sizeof(*p->worker));
	hist_init(&p->latency_ns);
	err = p->worker ? open_all(p) : -ENOMEM;
	if (!err) {
		if (is_program(p))
			run_program(p);
		else
			run_micro(p);
		if (cfg->flooders)
			end_flood(p);
		err = p->err;
		res->mean_us = (double)p->latency_sum_ns / 1e3 /
			       (double)u64_max(res->ops, 1);
		res->p99_us =
			(double)hist_percentile(&p->latency_ns, HIST_P99) / 1e3;
		res->steps =
			sim_host_counter(p->node->sim_host, NIC_C_chain_steps);
	}
	close_all(p);
	return err;
}
