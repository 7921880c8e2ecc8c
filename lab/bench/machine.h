/* SPDX-License-Identifier: Apache-2.0 */
/* The machine and the programs on it that a run needs. */
#ifndef AQ_BENCH_MACHINE_H
#define AQ_BENCH_MACHINE_H

#include <jansson.h>

/*
 * What a reader must know of the machine to judge the numbers: cpu, kernel,
 * cores, tsc_ghz, clock_read_ns (inside every time), rt_runtime_us (of each
 * second for real-time work; -1: all), and which cores the sides have.
 */
json_t *machine_json(void);

/* The helper program beside this one, or NULL. The caller frees it. */
char *machine_find_helper(const char *name);

/* The product that is measured: the program that starts every daemon. */
const char *machine_aquifer(void);

#endif
