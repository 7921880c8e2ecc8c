/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elastic memory at the scale of the paper on Jiffy: the shipped controller's
 * core, leases, placement, blocks, chains and watches on virtual time.
 *
 *	jobs	a generated workload on less memory than it asks for, by our
 *		rule and by two others (efig_jobs.c)
 *	life	one file, queue or store that grows and shrinks: what it has,
 *		and what is in it (efig_life.c)
 *	path	messages between machines: growing, moving slots, chains,
 *		subscribers (efig_path.c)
 */
#ifndef AQ_FIGURES_EFIG_H
#define AQ_FIGURES_EFIG_H

#include "efig_jobs.h"
#include "efig_life.h"
#include "efig_path.h"
#include "report/figure.h"

enum efig_kind {
	EFIG_KIND_WORKLOAD,
	EFIG_KIND_JOBS,
	EFIG_KIND_LIFE,
	EFIG_KIND_GROW,
	EFIG_KIND_SPLIT,
	EFIG_KIND_CHAIN,
	EFIG_KIND_TELL,
};

struct efig_result {
	/* The workload. */
	double jobs, mean_gb, peak_gb;
	double of_peak;	 /* mean, of the peak of all together */
	double of_peaks; /* ... of the sum of tenants' peaks */
	double peaky;	 /* tenants whose peak is 10 to 100 times their mean */
	/* Jobs. */
	double times, slowdown, use, allocated, spilled, requests;
	/* An object. */
	double used_mb, allocated_mb, surplus, moves;
	/* Messages. */
	double ms; /* of a repartition */
	double moved_mb, messages;
	double p50_us, p99_us; /* of gets, before it */
	double p50_during_us, p99_during_us;
	double write_us, read_us; /* of a chain */
	double mean_us, last_us;  /* of subscribers */
};

struct efig_row {
	struct figure_point p;
	enum efig_kind kind;
	struct efig_jobs_config jobs;
	struct efig_life_config life;
	enum efig_link link;
	unsigned count; /* of a chain, of subscribers */
	struct efig_result res;
};

struct efig_figure_options {
	struct figure_options f;
	uint64_t seed;
};

int efig_plan_workload(struct figure_run *r);
int efig_plan_jobs(struct figure_run *r);
int efig_plan_life(struct figure_run *r);
int efig_plan_sweep(struct figure_run *r);
int efig_plan_repartition(struct figure_run *r);
int efig_plan_chain(struct figure_run *r);
int efig_plan_subscribers(struct figure_run *r);
/* A point's result, as its kind asks for. */
int efig_point(void *row);

void efig_judge_jobs(struct figure_run *r);
void efig_judge_sweep(struct figure_run *r);
void efig_judge_split(struct figure_run *r);

enum {
	EFIG_CLAIMS = 57,
};

extern const struct figure_claim efig_claims[];

#endif
