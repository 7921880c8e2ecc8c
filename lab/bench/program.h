/* SPDX-License-Identifier: Apache-2.0 */
/* A pair of other people's programs, server and client, each on a core of its
 * own or both on one, and the one number that the client prints. */
#ifndef AQ_BENCH_PROGRAM_H
#define AQ_BENCH_PROGRAM_H

#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

enum program_where {
	PROGRAM_TWO_CORES,
	PROGRAM_SAME_CORE,
	PROGRAM_BUSY, /* on two cores, with a busy loop on each */
	PROGRAM_WHERES,
};

struct program {
	const char *name;
	const char *what; /* for people */
	const char *unit;
	/* A program of perftest, which runs on the soft NIC, or a test of
	 * ucx_perftest. */
	const char *verbs;
	const char *ucx;
	bool is_plain_memory; /* UCX does not map it: CMA, or a message */
	uint32_t bytes;
	uint32_t iterations;
	unsigned column; /* of the number, in the last line of numbers */
};

/* Runs it once. -ENOENT: the program is not installed; -ETIMEDOUT, -EIO: it
 * did not end, or failed. */
int program_run(const struct program *p, enum program_where where,
		double *out) MUST_CHECK;

#endif
