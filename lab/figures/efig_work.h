/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of many tenants as Snowset is said to have them: the data set is not to
 * be had here, so they are generated, and what came out is printed beside what
 * was published. */
#ifndef AQ_FIGURES_EFIG_WORK_H
#define AQ_FIGURES_EFIG_WORK_H

#include "base/base.h"

enum {
	EFIG_STAGES_MAX = 8,
	EFIG_TENANTS_MAX = 128,
};

struct efig_stage {
	double work_s;	/* beside its data */
	uint64_t bytes; /* of its output, which the next one reads */
};

/* Stages run one after the other; the last one's output leaves the rack. */
struct efig_job {
	double start_s;
	unsigned tenant;
	unsigned stages, tasks;
	struct efig_stage stage[EFIG_STAGES_MAX];
};

struct efig_work {
	struct efig_job *job; /* by start_s */
	unsigned jobs, tenants;
	double window_s;
	/* With memory for all: bytes. */
	double peak, mean;		      /* of all together */
	double tenant_peak[EFIG_TENANTS_MAX]; /* of each alone */
	double tenant_mean[EFIG_TENANTS_MAX];
};

/* `parts`: a window shorter by that, with as many fewer jobs. -ENOMEM. */
int efig_work_make(struct efig_work *w, unsigned parts,
		   uint64_t seed) MUST_CHECK;
void efig_work_free(struct efig_work *w);
/* Adds what the job has in memory to each second's sum. */
void efig_work_demand(const struct efig_job *j, double *sum, unsigned seconds);
/* Seconds of a stage's work beside moving its data. */
double efig_stage_s(const struct efig_job *j, unsigned stage);
/* How long the job takes with memory for all. */
double efig_job_s(const struct efig_job *j);
/* The most that lies in memory at once. */
uint64_t efig_job_peak(const struct efig_job *j);

#endif
