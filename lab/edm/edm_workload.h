/* SPDX-License-Identifier: Apache-2.0 */
/* Where messages come from: a seeded Poisson process or a trace file. */
#ifndef AQ_EDM_WORKLOAD_H
#define AQ_EDM_WORKLOAD_H

#include <stdio.h>

#include "edm_config.h"

struct edm_arrival {
	uint64_t at_ps;
	uint32_t bytes;
	uint16_t src, dst; /* requester and target */
	enum edm_op op;
	/* Of a read or RMW: what its request carries; 0: an address, or what
	 * a compare-and-swap needs. */
	uint32_t request_bytes;
};

struct edm_workload;

/* A malformed trace is -EINVAL; error_last names its line. */
int edm_workload_create(const struct edm_config *c,
			struct edm_workload **out) MUST_CHECK;
void edm_workload_destroy(struct edm_workload *w);

/* The next arrival, in order of time; false at the end of a trace. A random
 * workload never ends. */
bool edm_workload_next(struct edm_workload *w, struct edm_arrival *out);
/* Arrivals of a trace; UINT64_MAX for a random workload. */
uint64_t edm_workload_count(const struct edm_workload *w);

/* Mean time between two arrivals of the whole cluster, and the payload load
 * of the busiest port that follows from it. */
double edm_workload_gap_ps(const struct edm_config *c);
double edm_workload_payload_load(const struct edm_config *c);

/* Reads a trace: id,src,dst,bytes,start_s[,R|W]. An error has the name and the
 * number of the line; -EINVAL, -E2BIG, -EIO, -ENOMEM. *out is the caller's to
 * free. */
int edm_trace_parse(FILE *f, const char *name, uint32_t nodes,
		    struct edm_arrival **out, uint64_t *count) MUST_CHECK;
int edm_trace_read(const char *path, uint32_t nodes, struct edm_arrival **out,
		   uint64_t *count) MUST_CHECK;

#endif
