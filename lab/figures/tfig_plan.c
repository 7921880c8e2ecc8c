/* SPDX-License-Identifier: Apache-2.0 */
/* The points of the figures: which memories, which applications, on what. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tfig.h"
#include "tfig_costs.h"
#include "tier/cost.h"
#include "tier/vm.h"

enum {
	THREADS_MAX = 84, /* of the language model's backends */
	PLAY_S = 4000,	  /* a scan of half of the data takes 1000 s */
	QUICK_S = 4,
	ALONE_S = 0,	  /* tfig_pages_run plays at least a few steps */
	RENEWED_S = 1000, /* until as many pages are new as matter */
	SHORT_S = 60, /* scans take seconds where many processes are scanned */
};

#define GB 1000000000ull

/* Where pages go, and what happens to them then. */
struct setting {
	const char *name;
	struct tier_ratio ratio;
	bool is_promoted;
	double ssd_share;
};

static const struct setting all_local = {"MMEM", {0, 0}, false, 0};
static const struct setting ratios[] = {{"3:1", {3, 1}, false, 0},
					{"1:1", {1, 1}, false, 0},
					{"1:3", {1, 3}, false, 0}};
/* Half of the data fits on top. It is not interleaved: Linux promotes no pages
 * of a mapping with a policy of its own. */
static const struct setting promotion = {"promotion", {0, 0}, true, 0};

/* ---- memories ----------------------------------------------------------- */

static const struct {
	const char *name;
	double write_share;
} mixes[] = {{"read", 0}, {"2:1", 1.0 / 3}, {"1:1", 0.5}, {"write", 1}};

static void add_memory(struct figure_run *r, enum tfig_memory m, unsigned mix)
{
	struct tfig_row *q =
		figure_add(r, NULL, tfig_published[m].name, (double)mix);

	q->p.x_name = mixes[mix].name;
	q->kind = TFIG_KIND_MEMORY;
	q->memory = m;
	q->write_share = mixes[mix].write_share;
}

int tfig_plan_ladder(struct figure_run *r)
{
	for (unsigned m = 0; m < TFIG_MEMORIES; m++)
		for (unsigned i = 0; i < ARRAY_LEN(mixes); i++)
			add_memory(r, (enum tfig_memory)m, i);
	return 0;
}

int tfig_plan_knee(struct figure_run *r)
{
	for (unsigned i = 0; i < ARRAY_LEN(mixes); i++) {
		add_memory(r, TFIG_DDR, i);
		add_memory(r, TFIG_CXL, i);
	}
	return 0;
}

/* ---- applications ------------------------------------------------------- */

static uint64_t seed_of(const struct figure_run *r)
{
	return ((const struct tfig_figure_options *)r->options)->seed;
}

static struct tfig_row *add_pages(struct figure_run *r, const char *panel,
				  const struct setting *s, double x,
				  double seconds)
{
	struct tfig_row *q = figure_add(r, panel, s->name, x);

	q->kind = TFIG_KIND_PAGES;
	q->machines = 1;
	q->pages = (struct tfig_pages_config){
		.ratio = s->ratio,
		.is_promoted = s->is_promoted,
		.ssd_share = s->ssd_share,
		.processes = 1,
		/* Where nothing moves, one step is as good as many. */
		.seconds = !s->is_promoted     ? ALONE_S
			   : r->options->quick ? QUICK_S
					       : seconds,
		.seed = seed_of(r)};
	return q;
}

static void set_memories(struct tfig_row *q, double ddr_units, double cxl_units,
			 double local_cxl)
{
	q->load.place[0] =
		(struct tfig_place){.memory = TFIG_DDR, .units = ddr_units};
	q->load.place[1] = (struct tfig_place){
		.memory = TFIG_CXL, .units = cxl_units, .share = local_cxl};
	q->load.place[2] = (struct tfig_place){.memory = TFIG_CXL_REMOTE,
					       .units = cxl_units,
					       .share = 1 - local_cxl};
	/* As the probe knows it, which loads a memory with its own threads. */
	q->pages.top_peak_gbs = tfig_memory_peak(
		TFIG_DDR, &(struct tfig_users){
				  .units = ddr_units,
				  .threads = (double)tfig_costs.probe_threads,
				  .write_share = q->load.write_share});
}

/* ---- a key-value store -------------------------------------------------- */

static const struct {
	const char *name;
	enum tfig_stream stream;
	double writes; /* of all requests */
	double made;   /* records that are new, of all requests */
} ycsb[] = {{"A", TFIG_ZIPFIAN, 0.5, 0},
	    {"B", TFIG_ZIPFIAN, 0.05, 0},
	    {"C", TFIG_ZIPFIAN, 0, 0},
	    {"D", TFIG_LATEST, 0.05, 0.05}};

static void set_keydb(struct tfig_row *q, unsigned w, bool is_quick)
{
	double lines = (double)tfig_costs.keydb_value_bytes / 64;
	double misses = (double)tfig_costs.keydb_milli_misses / 1e3;

	q->p.x_name = ycsb[w].name;
	q->load =
		(struct tfig_load){.threads = (double)tfig_costs.keydb_threads,
				   .misses = misses,
				   .lines = lines,
				   .under_way = (double)tfig_costs.fill_buffers,
				   .write_share = ycsb[w].writes / 2,
				   .ssd_reads = 1};
	q->load.compute_ns =
		(double)tfig_costs.keydb_op_ps / 1e3 -
		(misses + lines / (double)tfig_costs.fill_buffers) *
			tfig_published[TFIG_DDR].idle_ns;
	q->pages.stream = ycsb[w].stream;
	if (q->pages.stream == TFIG_LATEST && q->pages.seconds == ALONE_S)
		q->pages.seconds = is_quick ? QUICK_S : RENEWED_S;
	q->pages.bytes = tfig_costs.keydb_gb * GB;
	q->pages.visits = 1;
	q->pages.made = ycsb[w].made * (double)tfig_costs.keydb_value_bytes /
			(double)tfig_costs.page_bytes;
	set_memories(q, (double)tfig_costs.server_ddr_units / 2,
		     (double)tfig_costs.server_cxl_units, 1);
}

int tfig_plan_keydb(struct figure_run *r)
{
	static const struct setting ssd[] = {{"SSD 0.2", {0, 0}, false, 0.2},
					     {"SSD 0.4", {0, 0}, false, 0.4}};
	bool is_quick = r->options->quick;

	for (unsigned w = 0; w < ARRAY_LEN(ycsb); w++) {
		struct tfig_row *q = add_pages(r, NULL, &all_local, w, 0);

		set_keydb(q, w, is_quick);
		q = add_pages(r, NULL, &promotion, w, PLAY_S);
		set_keydb(q, w, is_quick);
		q->pages.top_bytes = q->pages.bytes / 2;
		for (unsigned i = 0; i < ARRAY_LEN(ratios); i++)
			set_keydb(add_pages(r, NULL, &ratios[i], w, 0), w,
				  is_quick);
		for (unsigned i = 0; i < ARRAY_LEN(ssd); i++)
			set_keydb(add_pages(r, NULL, &ssd[i], w, 0), w,
				  is_quick);
	}
	return 0;
}

int tfig_plan_keydb_cxl(struct figure_run *r)
{
	static const struct setting cxl = {"CXL", {0, 1}, false, 0};

	set_keydb(add_pages(r, NULL, &all_local, 2, 0), 2, false);
	set_keydb(add_pages(r, NULL, &cxl, 2, 0), 2, false);
	return 0;
}

/* ---- shuffles ----------------------------------------------------------- */

static void set_spark(struct tfig_row *q, uint64_t servers, double spilled)
{
	double block = (double)tfig_costs.spark_block_bytes;
	double executors = (double)tfig_costs.spark_executors / (double)servers;

	q->machines = (double)servers;
	q->load = (struct tfig_load){
		.threads = executors,
		.compute_ns = (double)tfig_costs.spark_block_ps / 1e3,
		.lines = 2 * block / 64,
		/* Records of one block go to many places. */
		.under_way = (double)tfig_costs.fill_buffers,
		.write_share = 0.5,
		.ssd_bytes = 2 * block * spilled,
		.ssd_gbs =
			(double)(tfig_costs.server_ssds * tfig_costs.ssd_mb_s) /
			1e3};
	q->pages.stream = TFIG_EVEN;
	q->pages.bytes =
		(uint64_t)executors * tfig_costs.spark_executor_gb * GB;
	q->pages.processes = (uint32_t)executors;
	/* A page is written and read; its lines come one after the other. */
	q->pages.visits = 2 * block / (double)tfig_costs.page_bytes;
	/* Both CXL devices are at one socket, executors at both. */
	set_memories(q, (double)tfig_costs.server_ddr_units,
		     (double)tfig_costs.server_cxl_units, 0.5);
}

static struct tfig_row *add_spark(struct figure_run *r, const char *panel,
				  const struct setting *s)
{
	struct tfig_row *q = add_pages(r, panel, s, 0, SHORT_S);

	q->p.x_name = "shuffle";
	set_spark(q,
		  s == &all_local ? tfig_costs.spark_servers
				  : tfig_costs.spark_cxl_servers,
		  0);
	if (s->is_promoted)
		q->pages.top_bytes = q->pages.bytes / 2;
	return q;
}

/* What was spilled of 1.2 TB, published as 320 and 500 GB. */
int tfig_plan_spark(struct figure_run *r)
{
	static const struct {
		struct setting s;
		double gb;
	} spills[] = {{{"spill 320 GB", {0, 0}, false, 0}, 320},
		      {{"spill 500 GB", {0, 0}, false, 0}, 500}};
	double all_gb = (double)(tfig_costs.spark_executors *
				 tfig_costs.spark_executor_gb);

	(void)add_spark(r, NULL, &all_local);
	for (unsigned i = 0; i < ARRAY_LEN(ratios); i++)
		(void)add_spark(r, NULL, &ratios[i]);
	(void)add_spark(r, NULL, &promotion);
	for (unsigned i = 0; i < ARRAY_LEN(spills); i++)
		set_spark(add_spark(r, NULL, &spills[i].s),
			  tfig_costs.spark_cxl_servers, spills[i].gb / all_gb);
	return 0;
}

/* ---- a language model --------------------------------------------------- */

/* Weights are only read; what long prompts add to them is passes over products
 * of queries and keys, of which some write. */
static double llm_writes(void)
{
	double added = 1 - (double)tfig_costs.llm_weights_mb_s /
				   (double)tfig_costs.llm_serving_mb_s;

	return added * (double)tfig_costs.llm_passes_written /
	       (double)tfig_costs.llm_passes;
}

static struct tfig_row *add_llm(struct figure_run *r, const char *panel,
				const struct setting *s, unsigned threads)
{
	struct tfig_row *q = add_pages(r, panel, s, threads, SHORT_S);
	uint64_t backends = threads / tfig_costs.llm_backend_threads;

	q->load = (struct tfig_load){
		.threads = threads,
		.compute_ns = (double)tfig_costs.llm_kv_line_ps / 1e3,
		.lines = 1,
		.under_way = (double)tfig_costs.prefetched,
		.write_share = llm_writes()};
	q->pages.stream = TFIG_EVEN;
	q->pages.bytes = backends * tfig_costs.llm_model_mb * 1000000;
	q->pages.processes = (uint32_t)backends;
	q->pages.visits = 64 / (double)tfig_costs.page_bytes;
	set_memories(q, 1, 1, 1);
	return q;
}

int tfig_plan_llm(struct figure_run *r)
{
	static const struct setting weights = {
		"weights only", {0, 0}, false, 0};
	unsigned by = (unsigned)tfig_costs.llm_backend_threads;
	struct tfig_load *only = &add_llm(r, NULL, &weights, 2 * by)->load;

	only->compute_ns = (double)tfig_costs.llm_line_ps / 1e3;
	only->write_share = 0;
	for (unsigned n = by; n <= THREADS_MAX; n += by) {
		(void)add_llm(r, NULL, &all_local, n);
		for (unsigned i = 0; i < ARRAY_LEN(ratios); i++)
			(void)add_llm(r, NULL, &ratios[i], n);
	}
	return 0;
}

/* ---- money -------------------------------------------------------------- */

int tfig_plan_vm(struct figure_run *r)
{
	for (unsigned percent = 0; percent <= 50; percent += 10) {
		struct tfig_row *q =
			figure_add(r, NULL, "CXL at a discount", percent);

		q->kind = TFIG_KIND_VM;
	}
	return 0;
}

int tfig_plan_cost(struct figure_run *r)
{
	for (unsigned rc = 2; rc <= 10; rc++) {
		struct tfig_row *q =
			figure_add(r, NULL, "Rd 10, C 2, Rt 1.1", rc);

		q->kind = TFIG_KIND_COST;
	}
	return 0;
}

/* ---- the guard ---------------------------------------------------------- */

int tfig_plan_guard(struct figure_run *r)
{
	/* Of one start, 1:1, from which promotion goes one way. */
	static const struct setting free_of_it = {"promotion", {1, 1}, true, 0};
	static const struct setting guarded = {
		"promotion, guarded", {1, 1}, true, 0};
	static const struct setting *const all[] = {&all_local, &ratios[1],
						    &free_of_it, &guarded};
	unsigned by = (unsigned)tfig_costs.llm_backend_threads;

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		add_spark(r, "spark", all[i])->pages.is_guarded =
			all[i] == &guarded;
		for (unsigned n = 4 * by; n <= THREADS_MAX; n += by)
			add_llm(r, "llm", all[i], n)->pages.is_guarded =
				all[i] == &guarded;
	}
	return 0;
}

/* ---- results ------------------------------------------------------------ */

/* As MLC does: loads one at a time, and threads that stream. */
static void run_memory(struct tfig_row *q)
{
	struct tfig_load l = {
		.threads = 1,
		.misses = 1,
		.under_way = (double)tfig_costs.prefetched,
		.write_share = q->write_share,
		.place = {{.memory = q->memory, .units = 1, .share = 1}}};
	struct tfig_rate rate;
	double idle_ns, ns = 0, gbs;

	tfig_load_solve(&l, &rate);
	idle_ns = rate.ns[0];
	q->res.idle_ns = q->write_share == 0 ? idle_ns : NAN;
	l.threads = (double)tfig_costs.probe_threads;
	l.misses = 0;
	l.lines = 1;
	tfig_load_solve(&l, &rate);
	q->res.peak_gbs = rate.gbs[0];
	for (gbs = 0; gbs < q->res.peak_gbs; gbs += q->res.peak_gbs / 1000) {
		ns = tfig_memory_ns(
			q->memory,
			&(struct tfig_users){1, l.threads, q->write_share},
			gbs);
		if (ns > TIER_KNEE_FACTOR * idle_ns)
			break;
	}
	q->res.knee = tfig_published[q->memory].curve[0].count
			      ? gbs / q->res.peak_gbs
			      : NAN;
}

static int run_pages(struct tfig_row *q)
{
	struct tfig_pages_result p;
	int err = tfig_pages_run(&q->pages, &q->load, &p);

	if (err)
		return err;
	q->res.kops = p.rate.ops_s * q->machines / 1e3;
	q->res.latency_us = p.rate.op_ns / 1e3;
	q->res.top_gbs = p.rate.gbs[0];
	q->res.slow_gbs = p.rate.gbs[1];
	q->res.remote_gbs = p.rate.gbs[2];
	q->res.gbs = p.rate.gbs[0] + p.rate.gbs[1] + p.rate.gbs[2];
	q->res.top_ns = p.rate.ns[0];
	q->res.slow_ns = p.rate.ns[1];
	q->res.top_share = p.top_share;
	q->res.promoted_mbs = p.promoted_mbs;
	q->res.overhead = p.overhead;
	q->res.threshold_ms = q->pages.is_promoted ? p.threshold_ms : NAN;
	q->res.guarded = q->pages.is_guarded ? p.guarded : NAN;
	return 0;
}

int tfig_point(void *row)
{
	struct tfig_row *q = row;
	struct tier_saving saving;
	struct tier_revenue revenue;
	int err = 0;

	switch (q->kind) {
	case TFIG_KIND_MEMORY:
		run_memory(q);
		break;
	case TFIG_KIND_PAGES:
		err = run_pages(q);
		break;
	case TFIG_KIND_COST:
		err = tier_cost_save(&(struct tier_cost){10, q->p.x, 2, 1.1},
				     &saving);
		q->res.servers = saving.servers;
		q->res.saving = saving.saving;
		break;
	case TFIG_KIND_VM:
		err = tier_vm_earn(&(struct tier_vm){3, 4, q->p.x / 100},
				   &revenue);
		q->res.revenue = revenue.gain;
		break;
	}
	return err;
}
