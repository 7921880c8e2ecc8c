/* SPDX-License-Identifier: Apache-2.0 */
/* What the rows of programs are made of: which works run in which places, how
 * long that took, and what was counted. */
#ifndef AQ_BENCH_RUN_PLAN_H
#define AQ_BENCH_RUN_PLAN_H

#include "run_bench.h"

enum {
	RUN_ROUNDS_MAX = 21,
	RUN_GROUP_MAX = 16,
	RUN_COUNTS_MAX = 2,
};

/* ---- groups (run_group.c) ----------------------------------------------- */

/* One work in one place. */
struct run_cell {
	enum run_place place;
	unsigned part; /* of the count: slow places do less; 0: all */
	double ns[RUN_ROUNDS_MAX];
	unsigned count;
	const char *missing;
};

/* One work in some places, in turns. */
struct run_group {
	struct run_work work;
	uint64_t local_bytes;
	struct run_cell cell[RUN_PLACE_COUNT];
	unsigned cells;
	unsigned rounds_max;   /* 0: as many as asked for ... */
	unsigned rounds_times; /* ... so many times */
};

void run_group_add(struct run_group *g, enum run_place place, unsigned part);
void run_group_run(struct run_group *g, unsigned rounds);
/* NULL: not in that place. */
const struct run_cell *run_group_cell(const struct run_group *g,
				      enum run_place place);
/* Whether times are per fault, or of the whole work. */
bool run_group_is_per_fault(const struct run_group *g);
/* Median of one of its cells, in microseconds of one fault, or seconds of all
 * of it. */
double run_group_median(const struct run_group *g, const struct run_cell *c);
/* Our time divided by theirs; 0: one of them was not measured. */
double run_group_ratio(const struct run_group *g, enum run_place ours,
		       enum run_place theirs);

/* ---- the plan (run_plan.c) ---------------------------------------------- */

/* The order of the groups on the cable. */
enum {
	RUN_GROUP_TOUCH,
	RUN_GROUP_FLOOR,
	RUN_GROUP_FLOOR_SIGNAL,
	RUN_GROUP_SORT,
	RUN_GROUP_APPS, /* and all after it */
};

/* Runs of touches in which far bytes are counted. */
struct run_plan_count {
	enum run_place place;
	bool is_there;
	struct run_counted counted;
};

struct run_plan {
	bool is_udp; /* on a rack of its own: the port is the rack's */
	bool quick;
	struct run_group group[RUN_GROUP_MAX];
	unsigned groups;
	struct run_plan_count count[RUN_COUNTS_MAX];
	unsigned counts; /* of the first group; none with UDP */
};

void run_plan_init(struct run_plan *p, bool is_udp, bool quick);
/* Touches and what they are compared with, no programs. */
void run_plan_keep_touches(struct run_plan *p);
int run_plan_run(struct bench *b, struct run_plan *p,
		 unsigned rounds) MUST_CHECK;

/* ---- verdicts (run_judge.c) --------------------------------------------- */

/* The ratios of a plan on the cable that has run. */
void run_judge(struct bench *b, const struct run_plan *p);

#endif
