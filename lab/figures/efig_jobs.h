/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of a workload on a rack with less memory than they ask for, step by
 * step: what has no room goes to a slower place, and takes longer to write and
 * to read. Who gets memory is a rule; ours is the shipped controller with its
 * blocks and leases, the others are what their papers say.
 */
#ifndef AQ_FIGURES_EFIG_JOBS_H
#define AQ_FIGURES_EFIG_JOBS_H

#include "efig_work.h"

enum efig_rule {
	EFIG_OURS,
	EFIG_ELASTICACHE, /* a share for each tenant, the rest to S3 */
	EFIG_POCKET,	  /* a job's peak while it runs, the rest to SSDs */
	EFIG_RULES,
};

struct efig_jobs_config {
	enum efig_rule rule;
	double capacity; /* of the peak of all demand: 1 is all */
	uint64_t lease_ms, block_bytes; /* EFIG_OURS */
	bool removes;			/* what nobody reads; else leases do */
	unsigned parts;			/* of the window, see efig_work_make */
	uint64_t seed;
};

struct efig_jobs_result {
	double times;	  /* as long as with memory for all, mean of jobs */
	double use;	  /* of capacity, by bytes that jobs still need */
	double allocated; /* of capacity */
	double spilled;	  /* share of the bytes that were written */
	double surplus;	  /* allocated beyond what is used, of that */
	double jobs;	  /* that came to their end */
	double requests;  /* to the controller */
};

/* -ENOMEM, -EPROTO. */
int efig_jobs_run(const struct efig_jobs_config *c,
		  struct efig_jobs_result *out) MUST_CHECK;

/* ---- efig_store.c: ours -------------------------------------------------- */

/* What jobs have in the rack. A job's stage has a task with a file for each
 * of its tasks; only the stage that runs is renewed, and with it the one that
 * it reads. */
struct efig_store;

struct efig_store_config {
	double bytes; /* of all nodes */
	uint64_t lease_ms, block_bytes;
	/* A job removes what nobody reads any more; else its lease ends. */
	bool removes;
	uint64_t seed;
};

int efig_store_open(const struct efig_work *w,
		    const struct efig_store_config *c,
		    struct efig_store **out) MUST_CHECK;
void efig_store_close(struct efig_store *s);
void efig_store_run(struct efig_store *s, double now_s);
/* False: the controller refused. */
bool efig_store_job(struct efig_store *s, unsigned job) MUST_CHECK;
bool efig_store_stage(struct efig_store *s, unsigned job,
		      unsigned stage) MUST_CHECK;
/* Bytes of the stage's output that found memory; the others are spilled. */
uint64_t efig_store_write(struct efig_store *s, unsigned job, unsigned stage,
			  uint64_t bytes);
void efig_store_end(struct efig_store *s, unsigned job);
double efig_store_allocated(const struct efig_store *s);
uint64_t efig_store_requests(const struct efig_store *s);

#endif
