/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs on a few threads, with a progress line on stderr. */
#ifndef AQ_EDM_JOBS_H
#define AQ_EDM_JOBS_H

#include "edm_run.h"

/* What a figure needs of one run; the histograms are not kept. */
struct edm_point {
	double mean_ns, p50_ns, p99_ns, p999_ns;
	double own, own_p99, common, common_p99;
	double write_own, read_own, write_common, read_common;
	double payload_load, horizon_ns, end_ns;
	uint64_t arrivals, measured, completed, nulls, events, grants;
	uint64_t egress_blocks_max, drops, marks, pauses, timeouts, duplicates;
	uint64_t in_flight_max;
	double copy_gap_ns, wall_s;
};

enum {
	EDM_SEEDS_MAX = 64,
};

struct edm_job {
	struct edm_config c;
	uint32_t seeds;	       /* runs with c.seed, c.seed + 1, ... */
	struct edm_point mean; /* over the seeds; counts are sums, maxima max */
	double own_ci, common_ci,
		mean_ns_ci;	      /* 95 %, half width; 0: one seed */
	double common[EDM_SEEDS_MAX]; /* by seed */
};

struct edm_jobs {
	struct edm_job *job;
	size_t count, size;
	uint32_t threads, seeds;
	bool progress;
	const char *title;
};

/* Adds a run and returns its number. */
size_t edm_jobs_add(struct edm_jobs *j, const struct edm_config *c);
/* 0, or the error of the first run that failed. */
int edm_jobs_run(struct edm_jobs *j) MUST_CHECK;
void edm_jobs_release(struct edm_jobs *j);

void edm_point_of(struct edm_point *p, const struct edm_result *r);
/* Half the width of the 95 % interval of the mean of these; 0 for one. */
double edm_half_width(const double *v, uint32_t n);
/* The factor of a 95 % interval over n samples (Student). */
double edm_student(uint32_t n);

#endif
