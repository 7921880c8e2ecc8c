/* SPDX-License-Identifier: Apache-2.0 */
/* The points of the figures of elastic memory, and how each is made. */
#include "efig.h"

#include <string.h>

#include "efig_costs.h"

enum {
	QUICK_PARTS = 100, /* of the window, with --quick */
	LIFE_S = 600,	   /* of the window that an object is played */
};

static const char *const rules[EFIG_RULES] = {
	[EFIG_OURS] = "ours",
	[EFIG_ELASTICACHE] = "ElastiCache-like",
	[EFIG_POCKET] = "Pocket-like",
};

static const struct efig_figure_options *options(const struct figure_run *r)
{
	return (const struct efig_figure_options *)r->options;
}

static unsigned parts_of(const struct figure_run *r)
{
	return r->options->quick ? QUICK_PARTS : 1;
}

int efig_plan_workload(struct figure_run *r)
{
	struct efig_row *row = figure_add(r, NULL, "generated", 0);

	row->kind = EFIG_KIND_WORKLOAD;
	row->jobs.parts = parts_of(r);
	row->jobs.seed = options(r)->seed;
	return 0;
}

int efig_plan_jobs(struct figure_run *r)
{
	static const double shares[] = {100, 80, 60, 40, 20};
	static const double published[EFIG_RULES][ARRAY_LEN(shares)] = {
		[EFIG_OURS] = {1, 1.09, 1.32, 1.75, 2.53},
		[EFIG_ELASTICACHE] = {1, 1.48, 4.69, 17.2, 34},
		[EFIG_POCKET] = {1, 2.07, 3.25, 3.07, 4.13},
	};

	for (unsigned rule = 0; rule < EFIG_RULES; rule++)
		for (unsigned i = 0; i < ARRAY_LEN(shares); i++) {
			struct efig_row *row;

			if (r->options->quick && i % 4)
				continue;
			row = figure_add(r, NULL, rules[rule], shares[i]);
			row->p.published = published[rule][i];
			row->kind = EFIG_KIND_JOBS;
			row->jobs = (struct efig_jobs_config){
				.rule = rule,
				.capacity = shares[i] / 100,
				.lease_ms = efig_costs.lease_ms,
				.block_bytes = efig_costs.block_mib << 20,
				.removes = true,
				.parts = parts_of(r),
				.seed = options(r)->seed,
			};
		}
	return 0;
}

/* ---- one object ---------------------------------------------------------- */

static const char *const structures[EFIG_STRUCTURES] = {
	[EFIG_FILE] = "file", [EFIG_QUEUE] = "queue", [EFIG_EKV] = "store"};

static struct efig_row *add_life(struct figure_run *r, const char *panel,
				 enum efig_structure structure, double x)
{
	struct efig_row *row = figure_add(r, panel, structures[structure], x);

	row->kind = EFIG_KIND_LIFE;
	row->life = (struct efig_life_config){
		.structure = structure,
		.block_bytes = efig_costs.life_block_mib << 20,
		.lease_ms = efig_costs.paper_lease_ms,
		.high = 950,
		.seconds = r->options->quick ? 20 : LIFE_S,
		.seed = options(r)->seed,
	};
	return row;
}

int efig_plan_life(struct figure_run *r)
{
	for (unsigned k = 0; k < EFIG_STRUCTURES; k++)
		for (unsigned s = LIFE_S / 12; s <= LIFE_S; s += LIFE_S / 12) {
			struct efig_row *row;

			if (r->options->quick && s < LIFE_S)
				continue;
			row = add_life(r, structures[k], k, s);
			if (!r->options->quick)
				row->life.seconds = s;
		}
	return 0;
}

int efig_plan_sweep(struct figure_run *r)
{
	static const unsigned blocks[] = {4, 8, 16, 32, 64};
	static const unsigned leases[] = {250, 1000, 4000, 16000, 64000};
	static const unsigned marks[] = {990, 950, 900, 800};

	for (unsigned i = 0; i < ARRAY_LEN(blocks); i++)
		add_life(r, "block", EFIG_FILE, blocks[i])->life.block_bytes =
			(uint64_t)blocks[i] << 20;
	for (unsigned i = 0; i < ARRAY_LEN(leases); i++)
		add_life(r, "lease", EFIG_FILE, leases[i] / 1e3)
			->life.lease_ms = leases[i];
	for (unsigned i = 0; i < ARRAY_LEN(marks); i++)
		add_life(r, "high mark", EFIG_EKV, marks[i] / 10.0)->life.high =
			marks[i];
	return 0;
}

/* ---- messages ------------------------------------------------------------ */

int efig_plan_repartition(struct figure_run *r)
{
	static const struct {
		const char *series;
		enum efig_kind kind;
		enum efig_link link;
		double published;
	} points[] = {
		{"file, queue, 10 Gb/s", EFIG_KIND_GROW, EFIG_LINK_10G, 1.85},
		{"file, queue, 100 Gb/s", EFIG_KIND_GROW, EFIG_LINK_100G, 0},
		{"store, 10 Gb/s", EFIG_KIND_SPLIT, EFIG_LINK_10G, 290},
		{"store, 100 Gb/s", EFIG_KIND_SPLIT, EFIG_LINK_100G, 0},
	};

	for (unsigned i = 0; i < ARRAY_LEN(points); i++) {
		struct efig_row *row = figure_add(r, NULL, points[i].series, 0);

		row->kind = points[i].kind;
		row->link = points[i].link;
		row->p.published = points[i].published;
		row->life.seed = options(r)->seed;
	}
	return 0;
}

int efig_plan_chain(struct figure_run *r)
{
	static const double published[] = {109, 238, 386, 610, 741};

	for (unsigned i = 0; i < ARRAY_LEN(published); i++) {
		struct efig_row *row = figure_add(r, NULL, "ours", i + 1);

		row->kind = EFIG_KIND_CHAIN;
		row->link = EFIG_LINK_100G;
		row->count = i + 1;
		row->p.published = published[i];
	}
	return 0;
}

int efig_plan_subscribers(struct figure_run *r)
{
	static const double published[] = {320, 310,  310,  420,  490,
					   820, 1350, 1940, 3400, 4800};

	for (unsigned i = 0; i < ARRAY_LEN(published); i++) {
		struct efig_row *row = figure_add(r, NULL, "ours", 1u << i);

		row->kind = EFIG_KIND_TELL;
		row->link = EFIG_LINK_10G;
		row->count = 1u << i;
		row->p.published = published[i];
	}
	return 0;
}

/* ---- results ------------------------------------------------------------- */

static int run_workload(struct efig_row *row)
{
	struct efig_work w;
	double sum = 0;
	int err = efig_work_make(&w, row->jobs.parts, row->jobs.seed);

	if (err)
		return err;
	for (unsigned t = 0; t < w.tenants; t++) {
		double times = w.tenant_mean[t] > 0
				       ? w.tenant_peak[t] / w.tenant_mean[t]
				       : 0;

		sum += w.tenant_peak[t];
		row->res.peaky += times >= 10 && times <= 100;
	}
	row->res.jobs = w.jobs;
	row->res.mean_gb = w.mean / 1e9;
	row->res.peak_gb = w.peak / 1e9;
	row->res.of_peak = w.mean / w.peak;
	row->res.of_peaks = w.mean / sum;
	efig_work_free(&w);
	return 0;
}

static int run_jobs(struct efig_row *row)
{
	struct efig_jobs_result res;
	int err = efig_jobs_run(&row->jobs, &res);

	if (err)
		return err;
	row->res.jobs = res.jobs;
	row->res.times = res.times;
	row->res.use = res.use;
	row->res.allocated = res.allocated;
	row->res.spilled = res.spilled;
	row->res.requests = res.requests;
	return 0;
}

static int run_life(struct efig_row *row)
{
	struct efig_life_result res;
	int err = efig_life_run(&row->life, &res);

	if (err)
		return err;
	row->res.used_mb = res.used_mb;
	row->res.allocated_mb = res.allocated_mb;
	row->res.surplus = res.surplus;
	row->res.moves = res.moves;
	return 0;
}

static int run_split(struct efig_row *row)
{
	struct efig_move_result res;
	int err = efig_move_run(row->link, row->life.seed, &res);

	if (err)
		return err;
	row->res.ms = res.split_ms;
	row->res.moved_mb = res.moved_mb;
	row->res.messages = res.messages;
	row->res.p50_us = res.before_p50_us;
	row->res.p99_us = res.before_p99_us;
	row->res.p50_during_us = res.during_p50_us;
	row->res.p99_during_us = res.during_p99_us;
	return 0;
}

static int run_chain(struct efig_row *row)
{
	struct efig_chain_result res;
	int err = efig_chain_run(row->count, row->link, &res);

	row->res.write_us = res.write_us;
	row->res.read_us = res.read_us;
	return err;
}

static int run_tell(struct efig_row *row)
{
	struct efig_tell_result res = {0};
	int err = efig_tell_run(row->count, row->link, &res);

	row->res.mean_us = res.mean_us;
	row->res.last_us = res.last_us;
	return err;
}

int efig_point(void *p)
{
	struct efig_row *row = p;

	memset(&row->res, 0, sizeof(row->res));
	switch (row->kind) {
	case EFIG_KIND_WORKLOAD:
		return run_workload(row);
	case EFIG_KIND_LIFE:
		return run_life(row);
	case EFIG_KIND_GROW:
		row->res.ms = efig_grow_us(row->link) / 1e3;
		return 0;
	case EFIG_KIND_SPLIT:
		return run_split(row);
	case EFIG_KIND_CHAIN:
		return run_chain(row);
	case EFIG_KIND_TELL:
		return run_tell(row);
	case EFIG_KIND_JOBS:
	default:
		return run_jobs(row);
	}
}
