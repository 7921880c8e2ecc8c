/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `bench paging`: pages by chains, by the node's processor and by
 * plain READs and WRITEs, over one port at a time. */
#ifndef AQ_BENCH_PAGING_BENCH_H
#define AQ_BENCH_PAGING_BENCH_H

#include "bench.h"

enum paging_port {
	PAGING_SHM,
	PAGING_UDP,
	PAGING_DIRECT,
	PAGING_PORT_COUNT,
};

struct paging_plan {
	unsigned rounds;
	unsigned window_ms;
	uint64_t pages;
};

const char *paging_port_name(enum paging_port port);

/*
 * Measures in a process and a rack of its own. *out is an object of medians by
 * name: rates in pages per second, latencies and processor times in ns, and
 * ratios of the two of one round, named like those of the report. 0, or -errno
 * and an object whose "error" says why, if anything.
 */
int paging_measure(const struct paging_plan *plan, enum paging_port port,
		   json_t **out) __attribute__((warn_unused_result));

#endif
