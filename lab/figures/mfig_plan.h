/* SPDX-License-Identifier: Apache-2.0 */
/* The points of MIND's figures, and what was published about them. */
#ifndef AQ_FIGURES_MFIG_PLAN_H
#define AQ_FIGURES_MFIG_PLAN_H

#include "report/figure.h"

struct mfig_figure_options {
	struct figure_options f;
	uint64_t seed;
};

int mfig_plan_threads(struct figure_run *r) MUST_CHECK;
int mfig_plan_machines(struct figure_run *r) MUST_CHECK;
int mfig_plan_kvs(struct figure_run *r) MUST_CHECK;
int mfig_plan_transitions(struct figure_run *r) MUST_CHECK;
int mfig_plan_sharing(struct figure_run *r) MUST_CHECK;
int mfig_plan_directory(struct figure_run *r) MUST_CHECK;
int mfig_plan_rules(struct figure_run *r) MUST_CHECK;
int mfig_plan_splitting(struct figure_run *r) MUST_CHECK;
int mfig_plan_epochs(struct figure_run *r) MUST_CHECK;
/* As struct figure_system has them. */
int mfig_point(void *row) MUST_CHECK;
const char *mfig_wrong(const void *row);

enum {
	MFIG_CLAIMS = 60,
};

extern const struct figure_claim mfig_claims[MFIG_CLAIMS];
/* Claims that no row of the table can say. */
void mfig_judge_splitting(struct figure_run *r);

#endif
