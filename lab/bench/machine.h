/* SPDX-License-Identifier: Apache-2.0 */
/* What a reader must know of the machine to judge the numbers. */
#ifndef AQ_BENCH_MACHINE_H
#define AQ_BENCH_MACHINE_H

struct machine {
	char cpu[80];
	char kernel[80];
	long cpu_count;
	double tsc_ghz;
	double tick_cost_ns; /* reading the clock; inside every time */
	long rt_runtime_us;  /* of each second for real-time work; -1: all */
};

void machine_describe(struct machine *m);

/* The helper program beside this one, or NULL. The caller frees it. */
char *machine_find_helper(const char *name);

/* The product that is measured: the program that starts every daemon. */
const char *machine_aquifer(void);

#endif
