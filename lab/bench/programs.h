/* SPDX-License-Identifier: Apache-2.0 */
/* Programs of perftest and UCX, as users run them: the group `programs` of
 * `bench verbs`. */
#ifndef AQ_BENCH_PROGRAMS_H
#define AQ_BENCH_PROGRAMS_H

#include "bench.h"
#include "program.h"

/* Measures them and adds rows and ratios. 0, or -errno after bench_fail. */
int programs_run(struct bench *b) MUST_CHECK;

#endif
