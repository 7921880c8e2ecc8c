/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of the ODRP paper: which points each is made of, and what the
 * paper says about them.
 */
#ifndef AQ_SCENARIO_PAGING_FIGURE_H
#define AQ_SCENARIO_PAGING_FIGURE_H

#include "paging.h"

enum {
	PAGING_POINTS_MAX = 192,
	PAGING_CLAIMS_MAX = 64,
	PAGING_SERIES_MAX = 40,
};

struct paging_point {
	const char *figure;
	const char *along; /* what x is */
	char series[PAGING_SERIES_MAX];
	uint32_t x;
	struct paging_config cfg;
	struct paging_result res;
	int err;
};

/* One number of the paper beside ours. */
struct paging_claim {
	const char *figure;
	char name[56];
	double here;
	double published;
	/* What is asked of it: at least (1), at most (-1) `bound`; 0: it is
	 * only shown. */
	int sense;
	double bound;
};

struct paging_figure {
	uint32_t count;
	uint32_t claims;
	struct paging_point point[PAGING_POINTS_MAX];
	struct paging_claim claim[PAGING_CLAIMS_MAX];
};

/* Points of one figure, or of "all"; `quick`: few and small ones. -EINVAL: no
 * such figure. */
int paging_figure_plan(struct paging_figure *f, const char *which, bool quick,
		       uint64_t seed) MUST_CHECK;
/* After the points were run. */
void paging_figure_judge(struct paging_figure *f);
bool paging_claim_holds(const struct paging_claim *c);

#endif
