/* SPDX-License-Identifier: Apache-2.0 */
/* The outcome of `bench offload`, for people or as one JSON object. */
#ifndef AQ_BENCH_OFFLOAD_REPORT_H
#define AQ_BENCH_OFFLOAD_REPORT_H

#include <stdio.h>

#include "machine.h"
#include "offload_plan.h"

struct offload_report {
	struct machine machine;
	struct conduct_options opt;
	bool quick;
	const char *only; /* NULL: everything */
	const struct offload_plan *plan;
};

void offload_report_head(const struct offload_report *r, FILE *to);
void offload_report_group(const struct offload_report *r,
			  const struct offload_group *g, FILE *to);
void offload_report_tail(const struct offload_report *r, FILE *to);
/* 0 or -errno. */
int offload_report_json(const struct offload_report *r, FILE *to)
	__attribute__((warn_unused_result));

/* The numbers of one row that both print. */
struct offload_row {
	double median, min, max; /* in the group's unit */
	double p50_ns, p99_ns, p999_ns;
	double far_share;
	double packets, wire_bytes;    /* of one operation, in the whole rack */
	double memory_cpu, engine_cpu; /* cores */
	double comm, empty;
};

void offload_row_read(const struct offload_group *g,
		      const struct conduct_track *t, struct offload_row *out);
const char *offload_unit(enum offload_metric m);

#endif
