/* SPDX-License-Identifier: Apache-2.0 */
/* A point: its machines, switch and memory node, its threads, and what is
 * counted. */
#include "mfig.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mfig_priv.h"
#include "sim/model.h"

enum {
	PAGE = COHERENCE_PAGE_BYTES,
	ENTRIES_MAX = 1 << 20, /* of the switch's program: no bound here */
	ANSWER_MAX = 16384,
};

/* A thread that only hits sleeps for what it did so often. */
#define QUANTUM_PS (5 * SIM_US)
#define SAMPLE_PS  (500 * SIM_US)
#define LIMIT_PS   (100 * SIM_S)

const struct mfig_costs mfig_costs = {MFIG_COSTS(MODEL_VALUE)};

const char *const mfig_system_names[MFIG_SYSTEMS] = {
	[MFIG_MIND] = "MIND",	  [MFIG_PSO] = "PSO",
	[MFIG_PSO_PLUS] = "PSO+", [MFIG_AT_NODE] = "at node",
	[MFIG_GAM] = "GAM-like",  [MFIG_SWAP] = "swap",
};
const char *const mfig_work_names[MFIG_WORKS] = {
	[MFIG_TF] = "TF",	    [MFIG_GC] = "GC",
	[MFIG_MA] = "M_A",	    [MFIG_MC] = "M_C",
	[MFIG_KVS_A] = "KVS A",	    [MFIG_KVS_C] = "KVS C",
	[MFIG_UNIFORM] = "uniform",
};
const char *const mfig_transition_names[MFIG_TRANSITIONS] = {
	[MFIG_NONE] = "none",  [MFIG_I_S] = "I to S",
	[MFIG_S_S] = "S to S", [MFIG_I_M] = "I to M",
	[MFIG_S_M] = "S to M", [MFIG_M_S] = "M to S",
	[MFIG_M_M] = "M to M", [MFIG_S7_M] = "S of seven to M",
};

/* ---- pages of a cache
 * ---------------------------------------------------------- */

int mfig_fifo_init(struct mfig_fifo *q, uint32_t pages)
{
	*q = (struct mfig_fifo){.size = pages};
	q->pages = calloc(pages, sizeof(*q->pages));
	q->has = calloc(pages, sizeof(*q->has));
	return q->pages && q->has ? 0 : -ENOMEM;
}

void mfig_fifo_release(struct mfig_fifo *q)
{
	free(q->pages);
	free(q->has);
}

void mfig_fifo_push(struct mfig_fifo *q, uint32_t page)
{
	if (q->has[page])
		return;
	q->has[page] = true;
	q->pages[(q->first + q->count++) % q->size] = page;
}

bool mfig_fifo_pop(struct mfig_fifo *q, uint32_t *page)
{
	if (!q->count)
		return false;
	*page = q->pages[q->first];
	q->has[*page] = false;
	q->first = (q->first + 1) % q->size;
	q->count--;
	return true;
}

/* ---- threads
 * ------------------------------------------------------------------- */

void mfig_thread_pay(struct mfig_thread *t)
{
	uint64_t owed_ps = t->owed_ps;

	t->owed_ps = 0;
	if (owed_ps)
		sim_fiber_sleep_ps(t->f->sim, owed_ps);
}

static void step(struct mfig_thread *t, const struct mfig_step *s)
{
	switch (t->f->cfg->system) {
	case MFIG_GAM:
		mfig_gam_step(t, s);
		break;
	case MFIG_SWAP:
		mfig_swap_step(t, s);
		break;
	case MFIG_MIND:
	case MFIG_PSO:
	case MFIG_PSO_PLUS:
	case MFIG_AT_NODE:
	case MFIG_SYSTEMS:
		mfig_machine_step(t, s);
		break;
	}
	t->owed_ps += s->accesses * mfig_costs.access_ps;
	t->f->steps++;
	if (t->owed_ps > QUANTUM_PS)
		mfig_thread_pay(t);
}

static void run_units(struct mfig_thread *t, uint64_t units)
{
	while (units && !t->f->is_broken) {
		struct mfig_step s = mfig_walker_next(&t->walker);

		step(t, &s);
		units -= u64_min(units, s.units);
	}
	mfig_thread_pay(t);
}

/* All begin to be measured at one time, and the last one ends it. */
static void thread_main(void *arg)
{
	struct mfig_thread *t = arg;
	struct mfig *f = t->f;

	run_units(t, t->left);
	f->running--;
	while (!f->is_measuring)
		sim_fiber_sleep_ps(f->sim, SIM_US);
	run_units(t, t->left);
	f->running--;
	while (!f->is_over)
		sim_fiber_sleep_ps(f->sim, SIM_MS);
}

/* ---- what is counted
 * ----------------------------------------------------------- */

#define COUNTS(X)       \
	X(gets)         \
	X(invals)       \
	X(false_invals) \
	X(recalls)      \
	X(splits)       \
	X(joins)        \
	X(gives)        \
	X(waits)

static void count(struct mfig *f, bool before)
{
	uint64_t sign = before ? UINT64_MAX : 1; /* -1 */

	if (!f->tor)
		return;
#define COUNT(name) f->res->name += sign * rig_tor_count(f->tor, #name);
	COUNTS(COUNT)
#undef COUNT
}

static void sample(struct mfig *f)
{
	char answer[ANSWER_MAX];
	const char *at;
	double used;

	if (!f->tor)
		return;
	rig_tor_ask(f->tor, "coherence show", answer, sizeof(answer));
	at = strstr(answer, "\"used\":");
	used = at ? strtod(at + strlen("\"used\":"), NULL) : 0;
	if (used > f->res->entries)
		f->res->entries = used;
}

static void measure(void *arg)
{
	struct mfig *f = arg;
	uint32_t threads = f->cfg->machines * f->cfg->threads;
	uint64_t start_ps;

	while (f->running)
		sim_fiber_sleep_ps(f->sim, SIM_US);
	f->running = threads;
	f->steps = f->misses = 0;
	count(f, true);
	start_ps = mfig_now_ps(f);
	f->is_measuring = true;
	while (f->running && !f->is_broken) {
		sample(f);
		/* The end is seen within a microsecond, at the end. */
		for (uint64_t i = 0; f->running && i < SAMPLE_PS / SIM_US; i++)
			sim_fiber_sleep_ps(f->sim, SIM_US);
	}
	count(f, false);
	f->res->virtual_ms = (double)(mfig_now_ps(f) - start_ps) / SIM_MS;
	f->res->kops = (double)f->cfg->units / f->res->virtual_ms;
	f->res->miss = (double)f->misses / (double)f->steps;
	f->is_over = true;
	sim_stop(f->sim);
}

/* ---- the world
 * ----------------------------------------------------------------- */

/* Pieces lie on nodes in turns, wherever their addresses say. */
static int spread(struct mfig *f)
{
	int err = 0;

	for (uint32_t at = 0; !err && at < f->cfg->pages;
	     at += MFIG_PIECE_PAGES) {
		const struct rig_coh_node *n = mfig_node_of(f, at);

		err = rig_tor_tell(f->tor,
				   "coherence outlier va=%llu size=%u node=%u "
				   "at=%" PRIu64,
				   COHERENCE_BASE + (uint64_t)at * PAGE,
				   MFIG_PIECE_PAGES * PAGE,
				   (unsigned)(n - f->node), mfig_node_at(at));
	}
	return err;
}

static int make_switch(struct mfig *f)
{
	const struct mfig_config *cfg = f->cfg;
	bool is_free = cfg->system == MFIG_PSO_PLUS || cfg->is_static;
	char program[128];
	struct rig_tor_config tor = {
		.programs = {program},
		.program_count = 1,
		.packet_ps = cfg->system == MFIG_AT_NODE
				     ? model_connectx5.switch_core_ps
				     : 0};
	int err;

	snprintf(program, sizeof(program),
		 "coherence:entries=%u,region_pages=%u,epoch_ms=%u,"
		 "fin_ms=100000,peer_ms=100000,node_ms=100000",
		 is_free ? ENTRIES_MAX : cfg->entries, cfg->region_pages,
		 cfg->is_static ? 1000000 : cfg->epoch_ms);
	err = rig_tor_create(rig_stage_net(f->stage), &tor, &f->tor);
	if (!err)
		err = rig_tor_tell(f->tor, "coherence begin term=1");
	for (unsigned i = 0; !err && i < MFIG_NODES; i++)
		err = rig_coh_node_connect(&f->node[i], f->tor, i, 1, 1 + i,
					   IBV_MTU_4096);
	if (!err)
		err = spread(f);
	return err ? err
		   : rig_tor_tell(f->tor,
				  "coherence allow domain=1 va=%llu size=%llu "
				  "right=rw",
				  COHERENCE_BASE,
				  (unsigned long long)cfg->pages * PAGE);
}

/* A directory at a memory node is one switch farther away, both ways. */
static int make_host(struct mfig *f, struct mfig_machine *m)
{
	struct model_params params = model_connectx5;

	if (f->cfg->system == MFIG_AT_NODE)
		params.cable_ps += params.cable_ps + params.switch_ps;
	if (f->cfg->has_no_stalls)
		params.stall_every_ps = 0;
	return rig_host_add_model(f->stage, "machine", &params, &m->host);
}

static int make_machines(struct mfig *f)
{
	enum mfig_system system = f->cfg->system;
	int err = 0;

	for (unsigned i = 0; !err && i < f->cfg->machines; i++) {
		struct mfig_machine *m = &f->machine[i];

		m->f = f;
		m->number = i;
		err = make_host(f, m);
	}
	if (!err && system == MFIG_GAM)
		return mfig_gam_start(f);
	if (!err && system == MFIG_SWAP)
		return mfig_swap_start(f);
	if (!err)
		err = make_switch(f);
	for (unsigned i = 0; !err && i < f->cfg->machines; i++)
		err = mfig_machine_start(&f->machine[i]);
	return err;
}

static int start_threads(struct mfig *f)
{
	uint32_t threads = f->cfg->machines * f->cfg->threads;
	int err = 0;

	for (uint32_t i = 0; i < threads; i++) {
		struct mfig_thread *t = &f->thread[i];

		t->f = f;
		t->m = &f->machine[i / f->cfg->threads];
		t->left = f->cfg->units / threads;
		mfig_walker_init(&t->walker, &f->program, i);
	}
	if (f->cfg->transition)
		return sim_fiber_spawn(f->sim, "transitions",
				       mfig_transition_main, f);
	f->running = threads;
	for (uint32_t i = 0; !err && i < threads; i++)
		err = rig_host_spawn(f->thread[i].m->host, "thread",
				     thread_main, &f->thread[i]);
	return err ? err : sim_fiber_spawn(f->sim, "measure", measure, f);
}

static void close_world(struct mfig *f)
{
	if (f->stage)
		sim_fiber_kill_all(f->sim);
	for (unsigned i = 0; i < f->cfg->machines; i++) {
		struct mfig_machine *m = &f->machine[i];

		mfig_machine_stop(m);
		free(m->mmu);
		free(m->word);
		mfig_fifo_release(&m->fifo);
	}
	mfig_gam_stop(f);
	if (f->cfg->system == MFIG_SWAP)
		mfig_swap_stop(f);
	for (unsigned i = 0; i < MFIG_NODES; i++)
		rig_coh_node_release(&f->node[i]);
	rig_tor_destroy(f->tor);
	rig_stage_destroy(f->stage);
	free(f->last);
	free(f);
}

void mfig_config_init(struct mfig_config *cfg, enum mfig_work work)
{
	uint64_t scale = mfig_costs.scale;

	*cfg = (struct mfig_config){
		.work = work,
		.machines = MFIG_MACHINES_MAX,
		.threads = MFIG_THREADS_MAX,
		.pages = (uint32_t)(mfig_costs.footprint_bytes / scale / PAGE),
		.cache_pages =
			(uint32_t)(mfig_costs.cache_bytes / scale / PAGE),
		.entries = (uint32_t)(mfig_costs.entries / scale),
		.region_pages = (uint32_t)mfig_costs.region_pages,
		.epoch_ms = (uint32_t)mfig_costs.epoch_ms,
		.seed = 1};
}

int mfig_run(const struct mfig_config *cfg, struct mfig_result *res)
{
	struct rig_stage_config sc = {.seed = cfg->seed, .hardware = true};
	struct mfig *f = calloc(1, sizeof(*f));
	int err;

	ASSERT(mfig_costs.nodes == MFIG_NODES &&
	       mfig_costs.store_buffer <= MFIG_STORES_MAX);
	memset(res, 0, sizeof(*res));
	if (!f)
		return -ENOMEM;
	f->cfg = cfg;
	f->res = res;
	f->last = calloc(cfg->pages, sizeof(*f->last));
	err = f->last ? mfig_program_init(&f->program, cfg) : -ENOMEM;
	if (!err)
		err = rig_stage_create(&sc, &f->stage);
	if (!err)
		f->sim = rig_stage_sim(f->stage);
	for (unsigned i = 0; !err && i < MFIG_NODES; i++)
		err = rig_coh_node_init(&f->node[i], f->stage,
					mfig_node_at(cfg->pages) +
						MFIG_PIECE_PAGES * PAGE);
	if (!err)
		err = make_machines(f);
	if (!err)
		err = start_threads(f);
	if (!err && (sim_run_until(f->sim, LIMIT_PS) != SIM_END_STOPPED ||
		     f->is_broken))
		err = -EIO;
	res->use = res->entries / cfg->entries;
	close_world(f);
	return err;
}
