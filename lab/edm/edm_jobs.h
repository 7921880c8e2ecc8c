/* SPDX-License-Identifier: Apache-2.0 */
/* Many runs on a few threads, with a progress line on stderr. */
#ifndef AQ_EDM_JOBS_H
#define AQ_EDM_JOBS_H

#include "edm_run.h"

#define EDM_PART_OWN(i) edm_tally_mean(&r->part[i], r->part[i].sum_own)

/*
 * What a figure needs from one run; the histograms are not kept. X(type, name,
 * how several runs become one, what it is of a result r).
 */
#define EDM_POINT(X)                                                         \
	X(double, mean_ns, MEAN, edm_tally_mean(&r->all, r->all.sum_ns))     \
	X(double, p50_ns, MEAN, edm_percentile(&r->latency, HIST_MEDIAN))    \
	X(double, p99_ns, MEAN, edm_percentile(&r->latency, HIST_P99))       \
	X(double, p999_ns, MEAN, edm_percentile(&r->latency, HIST_P999))     \
	X(double, own, MEAN, edm_tally_mean(&r->all, r->all.sum_own))        \
	X(double, own_p99, MEAN, edm_percentile(&r->slowdown_own, HIST_P99)) \
	X(double, common, MEAN, edm_tally_mean(&r->all, r->all.sum_common))  \
	X(double, common_p99, MEAN,                                          \
	  edm_percentile(&r->slowdown_common, HIST_P99))                     \
	X(double, write_own, MEAN,                                           \
	  edm_tally_mean(&r->write, r->write.sum_own))                       \
	X(double, read_own, MEAN, edm_tally_mean(&r->read, r->read.sum_own)) \
	X(double, write_common, MEAN,                                        \
	  edm_tally_mean(&r->write, r->write.sum_common))                    \
	X(double, read_common, MEAN,                                         \
	  edm_tally_mean(&r->read, r->read.sum_common))                      \
	X(double, payload_load, FIRST, r->payload_load)                      \
	X(double, horizon_ns, MEAN, r->horizon_ns)                           \
	X(double, end_ns, MEAN, r->end_ns)                                   \
	X(double, copy_gap_ns, MEAN, r->copy_gap_ns)                         \
	X(double, part0, MEAN, EDM_PART_OWN(0))                              \
	X(double, part1, MEAN, EDM_PART_OWN(1))                              \
	X(double, part2, MEAN, EDM_PART_OWN(2))                              \
	X(double, part3, MEAN, EDM_PART_OWN(3))                              \
	X(double, part4, MEAN, EDM_PART_OWN(4))                              \
	X(double, part5, MEAN, EDM_PART_OWN(5))                              \
	X(double, part6, MEAN, EDM_PART_OWN(6))                              \
	X(double, part7, MEAN, EDM_PART_OWN(7))                              \
	X(double, ip_share, MEAN, r->ip_share)                               \
	X(double, wall_s, SUM, r->wall_s)                                    \
	X(uint64_t, arrivals, SUM, r->arrivals)                              \
	X(uint64_t, measured, SUM, r->measured)                              \
	X(uint64_t, completed, SUM, r->completed)                            \
	X(uint64_t, nulls, SUM, r->nulls)                                    \
	X(uint64_t, events, SUM, r->events)                                  \
	X(uint64_t, grants, SUM, r->grants)                                  \
	X(uint64_t, drops, SUM, r->drops)                                    \
	X(uint64_t, marks, SUM, r->marks)                                    \
	X(uint64_t, pauses, SUM, r->pauses)                                  \
	X(uint64_t, timeouts, SUM, r->timeouts)                              \
	X(uint64_t, duplicates, SUM, r->duplicates)                          \
	X(uint64_t, egress_blocks_max, MAX, r->egress_blocks_max)            \
	X(uint64_t, in_flight_max, MAX, r->in_flight_max)

struct edm_point {
#define EDM_POINT_FIELD(type, name, how, value) type name;
	EDM_POINT(EDM_POINT_FIELD)
#undef EDM_POINT_FIELD
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
	double growth;		      /* edm_growth() */
	const char *trend;	      /* "overload", "unsettled", or NULL */
	double common[EDM_SEEDS_MAX]; /* by seed */
};

struct edm_jobs {
	struct edm_job *job;
	size_t count, size;
	uint32_t threads, seeds;
	bool progress;
	const char *title;
};

/*
 * Times in the second half of a run over those of the first. *trend says what
 * that means: "overload" if times grow with the run, which is when a line
 * through the means of its parts rises by more than 5 %, as it would by chance
 * in one of 200 runs; "unsettled" if halves differ by a tenth, but by chance
 * they might. NULL: neither.
 */
double edm_growth(const struct edm_point *p, const char **trend);

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
