/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many seeds of a play in several processes: a run sets the process's verbs
 * provider, so concurrent runs need processes of their own. A run that crashes
 * ends only its process, and the seed is known.
 */
#ifndef AQ_SIM_BATCH_H
#define AQ_SIM_BATCH_H

#include "base/base.h"

enum {
	SIM_BATCH_JOBS_MAX = 64,
	SIM_BATCH_FIRST_MAX = 512,
};

struct sim_batch {
	uint64_t from;
	uint64_t to; /* included */
	unsigned jobs;
	const char *unit; /* what the numbers are: "seed" */
	bool one;	  /* seed, in this process, where a debugger sees it */
	bool stop_at_first; /* a violation ends the other runs, too */
	void *ctx;
	/* Runs one seed, in a process of its own. Its return value, 0 or
	 * -errno, and the bytes of result are passed to `add`. */
	size_t result_bytes;
	int (*run)(void *ctx, uint64_t seed, void *result);
	/* Called in the caller's process, in any order; returns the words of a
	 * violation, NULL when there was none. */
	const char *(*add)(void *ctx, uint64_t seed, const void *result);
};

struct sim_batch_sum {
	uint64_t runs;
	uint64_t violated;		 /* runs with a violation */
	uint64_t first_seed;		 /* the smallest violated seed */
	char first[SIM_BATCH_FIRST_MAX]; /* and what it found */
};

/* -EINVAL, or -errno when a process could not be started. Runs that failed and
 * processes that died count as violations. */
int sim_batch_run(const struct sim_batch *b,
		  struct sim_batch_sum *sum) MUST_CHECK;

/* Processors, at least 1 and at most SIM_BATCH_JOBS_MAX. */
unsigned sim_batch_jobs(void);

/* "100" or "5..9"; false: neither. */
bool sim_batch_parse_range(const char *text, uint64_t *from, uint64_t *to);
bool sim_batch_parse_u64(const char *text, uint64_t *out);

#endif
