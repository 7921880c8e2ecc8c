/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts on whole programs: ratios between places, counts, and their
 * bounds. */
#include "run_plan.h"

/* Void unless both took place. */
static void judge(struct bench *b, const char *name, double value,
		  const char *missing)
{
	if (value > 0)
		bench_ratio_add(b, name, value);
	else
		bench_void(b, name, "needs %s", missing);
}

static const char *missing_of(const struct run_group *g)
{
	for (unsigned i = 0; i < g->cells; i++)
		if (g->cell[i].missing)
			return g->cell[i].missing;
	return "";
}

/* What is left for far memory, if anything. */
static void judge_floor(struct bench *b, const struct run_plan *p,
			unsigned group, const char *name)
{
	const struct run_group *fault = &p->group[RUN_GROUP_TOUCH];
	const struct run_group *floor = &p->group[group];
	const struct run_cell *zram = run_group_cell(fault, RUN_PLACE_ZRAM);

	judge(b, name,
	      zram->missing || floor->cell[0].missing
		      ? 0
		      : run_group_median(floor, &floor->cell[0]) /
				run_group_median(fault, zram),
	      zram->missing ? zram->missing : missing_of(floor));
}

/* How much more than the least ours costs, in this place. */
static void judge_above_floor(struct bench *b, const struct run_plan *p,
			      enum run_place place, const char *name)
{
	const struct run_group *fault = &p->group[RUN_GROUP_TOUCH];
	const struct run_group *floor = &p->group[RUN_GROUP_FLOOR];
	const struct run_cell *ours = run_group_cell(fault, place);

	judge(b, name,
	      ours->missing || floor->cell[0].missing
		      ? 0
		      : run_group_median(fault, ours) /
				run_group_median(floor, &floor->cell[0]),
	      ours->missing ? ours->missing : missing_of(floor));
}

/* All applications, or none: the worst of some is not what is asked. */
static void judge_apps(struct bench *b, const struct run_plan *p)
{
	const char *missing = NULL;
	double worst = 0;

	for (unsigned i = RUN_GROUP_APPS; i < p->groups; i++) {
		double r = run_group_ratio(&p->group[i], RUN_PLACE_CHAIN,
					   RUN_PLACE_CABLE);

		if (r == 0)
			missing = run_work_name(p->group[i].work.kind);
		worst = r > worst ? r : worst;
	}
	if (missing)
		bench_void(b, "app_chain_vs_static_worst", "%s did not run",
			   missing);
	else
		bench_ratio_add(b, "app_chain_vs_static_worst", worst);
}

/* Bytes that the node's NIC sent for pages / faults that waited for one x page
 * size; if that is 1, bytes that it received / pages stored x page size. Both
 * must be 1. */
static void judge_counts(struct bench *b, const struct run_plan *p)
{
	static const char *const names[RUN_COUNTS_MAX] = {
		"far_bytes_vs_faults", "far_bytes_vs_faults_chain"};

	for (unsigned i = 0; i < p->counts; i++) {
		const struct run_counted *c = &p->count[i].counted;
		double in = (double)c->far_in_bytes / (double)c->loads / 4096;
		double out = c->stored ? (double)c->far_out_bytes /
						 (double)c->stored / 4096
				       : (double)!c->far_out_bytes;

		if (!p->count[i].is_there || !c->loads || c->prefetched)
			bench_void(b, names[i], "the counted run failed");
		else
			bench_ratio_add(b, names[i], in != 1 ? in : out);
	}
}

static void judge_faults(struct bench *b, const struct run_plan *p)
{
	static const struct {
		const char *name;
		enum run_place ours;
	} places[] = {
		{"fault_elapsed_vs_zram", RUN_PLACE_CHAIN},
		{"fault_elapsed_direct_vs_zram", RUN_PLACE_DIRECT},
	};
	const struct run_group *g = &p->group[RUN_GROUP_TOUCH];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		judge(b, places[i].name,
		      run_group_ratio(g, places[i].ours, RUN_PLACE_ZRAM),
		      missing_of(g));
	judge_floor(b, p, RUN_GROUP_FLOOR, "fault_floor_vs_zram");
	judge_floor(b, p, RUN_GROUP_FLOOR_SIGNAL, "fault_floor_signal_vs_zram");
	judge_above_floor(b, p, RUN_PLACE_CHAIN, "fault_vs_floor");
	judge_above_floor(b, p, RUN_PLACE_DIRECT, "fault_direct_vs_floor");
}

static void judge_programs(struct bench *b, const struct run_plan *p)
{
	static const struct {
		const char *name;
		enum run_place ours;
	} places[] = {
		{"quicksort50_vs_local", RUN_PLACE_CHAIN},
		{"quicksort50_direct_vs_local", RUN_PLACE_DIRECT},
	};
	const struct run_group *g = &p->group[RUN_GROUP_SORT];

	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		judge(b, places[i].name,
		      run_group_ratio(g, places[i].ours, RUN_PLACE_LOCAL),
		      missing_of(g));
	judge_apps(b, p);
	judge_counts(b, p);
}

void run_judge(struct bench *b, const struct run_plan *p)
{
	judge_faults(b, p);
	if (p->groups > RUN_GROUP_SORT)
		judge_programs(b, p);
}
