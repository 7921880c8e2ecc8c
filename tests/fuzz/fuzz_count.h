/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For targets that play a sequence of operations against state: an input is
 * worth as many executions as it has operations, so the target counts them and
 * says their number when it ends. tools/fuzz-release adds them up.
 */
#ifndef AQ_FUZZ_COUNT_H
#define AQ_FUZZ_COUNT_H

#include <inttypes.h>
#include <stdio.h>

static uint64_t fuzz_operations;

__attribute__((destructor)) static void fuzz_tell_operations(void)
{
	fprintf(stderr, "operations: %" PRIu64 "\n", fuzz_operations);
}

#endif
