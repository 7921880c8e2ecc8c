/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer bench run`: programs on far memory beside the same programs with
 * local memory, and beside the kernel's swapping to compressed memory. */
#ifndef AQ_BENCH_RUN_H
#define AQ_BENCH_RUN_H

#include "base.h"

enum run_work_kind {
	RUN_WORK_TOUCH, /* random touches of incompressible pages */
	RUN_WORK_SORT,	/* quicksort of random numbers */
};

struct run_work {
	enum run_work_kind kind;
	uint64_t bytes;
	uint64_t touches;
	uint64_t seed;
};

/* Does it here and prints the nanoseconds of the measured part; an exit code.
 */
int run_work_main(const struct run_work *w);

/* Where the work's memory is. */
enum run_place {
	RUN_PLACE_LOCAL, /* all of it here */
	RUN_PLACE_FAR,	 /* `aquifer run` */
	RUN_PLACE_ZRAM,	 /* a memory cgroup, and swap on zram */
};

/* Runs it in a process of its own with at most local_bytes here. 0 or -errno;
 * -EOPNOTSUPP: not on this machine. */
int run_work_spawn(const struct run_work *w, enum run_place place,
		   uint64_t local_bytes, uint64_t *ns) MUST_CHECK;

/* Swap on zram0, page-cluster 0, and a cgroup; undone by close. `why` says
 * what is missing. */
struct run_zram {
	char cgroup[128];
	char page_cluster[16];
	bool is_v2;
};
int run_zram_open(struct run_zram *z, uint64_t limit_bytes, uint64_t swap_bytes,
		  const char **why) MUST_CHECK;
void run_zram_close(struct run_zram *z);
/* The calling process is in the cgroup from now on. */
int run_zram_enter(const struct run_zram *z) MUST_CHECK;

#endif
