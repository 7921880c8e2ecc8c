/* SPDX-License-Identifier: Apache-2.0 */
/* The figures about key-value stores as lists of points, and what was published
 * about them beside what comes out here. */
#ifndef AQ_SCENARIO_KV_FIGURE_H
#define AQ_SCENARIO_KV_FIGURE_H

#include "kv_fig.h"

enum {
	KV_FIGURE_POINTS_MAX = 320,
	KV_FIGURE_CLAIMS_MAX = 24,
};

struct kv_figure_point {
	const char *figure; /* "3.9" */
	const char *series; /* a line of it */
	const char *along;  /* what x is */
	uint64_t x;
	struct kv_fig_config cfg;
	int err;
	struct kv_fig_result res;
};

struct kv_figure_claim {
	const char *name;
	const char *figure;
	const char *published; /* in words */
	double value;	       /* what it is here */
	double least, most;    /* what bears it out; 0: no such bound */
};

struct kv_figure {
	uint32_t count;
	struct kv_figure_point point[KV_FIGURE_POINTS_MAX];
	uint32_t claims;
	struct kv_figure_claim claim[KV_FIGURE_CLAIMS_MAX];
};

/* The points of one figure, or with "all" of all. Quick: few and small ones,
 * which prove nothing. -EINVAL: there is no such figure. */
int kv_figure_plan(struct kv_figure *k, const char *which,
		   bool quick) MUST_CHECK;
/* What the points say; those that are not there say nothing. */
void kv_figure_judge(struct kv_figure *k);
bool kv_figure_holds(const struct kv_figure_claim *c);

/* `aquifer sim kv --figure`; jobs: processes beside each other. */
int kv_figure_cmd(const char *which, bool quick, bool json, unsigned jobs);

#endif
