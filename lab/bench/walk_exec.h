/* SPDX-License-Identifier: Apache-2.0 */
/* How fast one iteration of a walk is executed on data that is in the cache:
 * translated, interpreted, and the same function in C by the compiler. */
#ifndef AQ_BENCH_WALK_EXEC_H
#define AQ_BENCH_WALK_EXEC_H

#include "base/base.h"

enum {
	WALK_EXEC_KINDS = 3,
};

struct walk_exec_times {
	const char *ratio; /* "exec_hot_vs_native_hash", "_tree", "_reduce" */
	double native_ns, translated_ns, interpreted_ns; /* per iteration */
	bool is_translated; /* else translated_ns is the interpreter's, too */
};

/* Medians of rounds in turn; some 100 ms. -EINVAL, -ENOMEM; -EPROTO: the ways
 * do not agree. */
int bench_walk_exec(struct walk_exec_times times[WALK_EXEC_KINDS]) MUST_CHECK;

#endif
