/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of a run, as a table for people or as one JSON object. */
#ifndef AQ_BENCH_REPORT_H
#define AQ_BENCH_REPORT_H

#include <stdio.h>

#include "machine.h"
#include "plan.h"

/* What one group gave. */
struct report_group {
	const struct plan_group *plan;
	struct conduct_track track[CONDUCT_GROUP_MAX];
	struct plan_verdict verdict; /* of a ratio */
};

struct report {
	struct machine machine;
	struct conduct_options opt;
	bool quick;
	struct report_group *group;
	unsigned group_count;
};

/* Opens the table: the machine and the columns. */
void report_head(const struct report *r, FILE *to);
/* One group, as soon as it was measured. */
void report_group(const struct report *r, const struct report_group *g,
		  FILE *to);
/* Closes the table: the ratios. */
void report_tail(const struct report *r, FILE *to);

/* 0 or -errno. */
int report_json(const struct report *r, FILE *to)
	__attribute__((warn_unused_result));

#endif
