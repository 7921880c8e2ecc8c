/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench verbs` measures: the subjects, and the ratios between them. */
#ifndef AQ_BENCH_PLAN_H
#define AQ_BENCH_PLAN_H

#include "conduct.h"
#include "floor_figures.h"

enum plan_unit {
	PLAN_NS,   /* time of one operation, p50 */
	PLAN_RATE, /* operations per second */
};

/* A group of subjects that take turns. A ratio's group is {ours, peer}. */
struct plan_group {
	const char *name; /* the ratio's, or "caller_time" */
	const char *meaning;
	enum plan_unit unit;
	const struct subject_desc *subject[CONDUCT_GROUP_MAX];
	unsigned subject_count;
	/* For a ratio, ours / peer: */
	bool is_ratio;
	bool at_most; /* the bound is an upper one */
	double bound;
	const struct floor_figure *figure; /* of the peer; NULL: ourselves */
};

extern const struct plan_group plan_groups[];
extern const unsigned plan_group_count;

/* The verdict on one ratio. */
struct plan_verdict {
	double ratio; /* as measured; 0: nothing to compare */
	bool is_void;
	bool is_kept; /* within its bound; only when not void */
	char why[CONDUCT_WHY_BYTES + 64]; /* of a void one */
};

void plan_judge(const struct plan_group *g, const struct conduct_track *tracks,
		unsigned rounds, struct plan_verdict *out);

#endif
