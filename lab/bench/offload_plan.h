/* SPDX-License-Identifier: Apache-2.0 */
/* The groups of `bench offload`, their subjects, and the ratios between them.
 */
#ifndef AQ_BENCH_OFFLOAD_PLAN_H
#define AQ_BENCH_OFFLOAD_PLAN_H

#include "conduct.h"
#include "offload_bench.h"
#include "plan.h"

enum {
	OFFLOAD_GROUP_MAX = 16,
	OFFLOAD_TEXT_MAX = 96,
};

/* What is compared. */
enum offload_metric {
	METRIC_RATE,   /* operations per second */
	METRIC_CALLER, /* ns to issue and to poll */
	METRIC_P50,    /* ns of one operation */
	METRIC_P99,
	METRIC_COMM,	  /* share of the time inside the library */
	METRIC_COMM_BUSY, /* the same without waiting, on either side */
};

struct offload_subject {
	struct subject_desc desc;
	struct offload_param param;
	char what[OFFLOAD_TEXT_MAX];
};

struct offload_group {
	const char *name;
	const struct side_ops *ops;
	enum offload_metric metric; /* of its rows */
	uint32_t record_bytes;
	unsigned subject_count;
	struct offload_subject subject[CONDUCT_GROUP_MAX];
	struct conduct_track track[CONDUCT_GROUP_MAX];
	bool is_run;
};

struct offload_plan {
	struct offload_config cfg;
	unsigned group_count;
	struct offload_group group[OFFLOAD_GROUP_MAX];
};

/* A ratio between two subjects of a group, or one subject's number. */
struct offload_ratio {
	const char *name;
	const char *meaning;
	const char *group;
	const char *ours;
	const char *peer; /* NULL: the number itself */
	enum offload_metric metric;
	bool is_barred;
	bool at_most;
	double bound;
	const char *paper; /* what the paper says, or NULL */
};

extern const struct offload_ratio offload_ratios[];
extern const unsigned offload_ratio_count;

void offload_plan_init(struct offload_plan *plan);
/* Only groups and ratios whose name contains `only`, or all. */
bool offload_plan_wants(const char *only, const struct offload_group *g);
bool offload_ratio_wanted(const char *only, const struct offload_ratio *r);

void offload_judge(const struct offload_plan *plan,
		   const struct offload_ratio *r, unsigned rounds,
		   struct plan_verdict *out);
double offload_metric_of(const struct side_result *r, enum offload_metric m);
/* Median over the clean rounds. */
double offload_median(const struct conduct_track *t, enum offload_metric m);
double offload_median_more(const struct conduct_track *t, unsigned more);

#endif
