/* SPDX-License-Identifier: Apache-2.0 */
/* What the figures of `aquifer sim walk` are made of. */
#ifndef AQ_FIGURES_WFIG_PLAN_H
#define AQ_FIGURES_WFIG_PLAN_H

#include "figures.h"

struct wfig_figure_options {
	struct figure_options f;
	uint64_t seed;
};

/* wfig_plan.c: the points of each. */
int wfig_plan_motivation(struct figure_run *r);
int wfig_plan_crossings(struct figure_run *r);
int wfig_plan_apps(struct figure_run *r);
int wfig_plan_windows(struct figure_run *r);
int wfig_plan_ratio(struct figure_run *r);
int wfig_plan_breakdown(struct figure_run *r);
int wfig_plan_placement(struct figure_run *r);
int wfig_plan_insert(struct figure_run *r);
int wfig_plan_skew(struct figure_run *r);
int wfig_plan_cxl(struct figure_run *r);
int wfig_plan_eta(struct figure_run *r);
int wfig_plan_pipes(struct figure_run *r);

/* wfig_claims.c: what was published. */
enum {
	WFIG_CLAIMS = 64,
};

extern const struct figure_claim wfig_claims[];

void wfig_judge_overhead(struct figure_run *r);

#endif
