/* SPDX-License-Identifier: Apache-2.0 */
/* The verdicts on whole programs: ratios between places, counts, and their
 * bounds. */
#include "run_plan.h"

/* 1 if it misses its bound. most 0: it has none. */
static unsigned judge(json_t *verdicts, const char *name, double value,
		      double most, const char *missing)
{
	bool is_bound = most > 0, kept = !is_bound || value <= most;
	json_t *v = json_pack("{s:s, s:f}", "must", is_bound ? "<=" : "none",
			      "bound", most);

	json_object_set_new(verdicts, name, v);
	if (value == 0) {
		json_object_set_new(v, "void", json_sprintf("no %s", missing));
		return 0;
	}
	json_object_set_new(v, "value", json_real(value));
	json_object_set_new(v, "kept", json_boolean(kept));
	return !kept;
}

static const char *missing_of(const struct run_group *g)
{
	for (unsigned i = 0; i < g->cells; i++)
		if (g->cell[i].missing)
			return g->cell[i].missing;
	return "";
}

/* What is left for far memory, if anything. */
static void show_floor(const struct run_plan *p, unsigned group,
		       const char *name, json_t *verdicts)
{
	const struct run_group *fault = &p->group[RUN_GROUP_TOUCH];
	const struct run_group *floor = &p->group[group];
	const struct run_cell *zram = run_group_cell(fault, RUN_PLACE_ZRAM);

	(void)judge(verdicts, name,
		    zram->missing || floor->cell[0].missing
			    ? 0
			    : run_group_median(floor, &floor->cell[0]) /
				      run_group_median(fault, zram),
		    0, zram->missing ? zram->missing : missing_of(floor));
}

static unsigned judge_places(json_t *verdicts, const char *name,
			     const struct run_group *g, enum run_place ours,
			     enum run_place theirs, double most)
{
	return judge(verdicts, name, run_group_ratio(g, ours, theirs), most,
		     missing_of(g));
}

static unsigned judge_faults(const struct run_plan *p, json_t *verdicts)
{
	const struct run_group *fault = &p->group[RUN_GROUP_TOUCH];
	unsigned missed = judge_places(verdicts, "fault_elapsed_vs_zram", fault,
				       RUN_PLACE_CABLE, RUN_PLACE_ZRAM, 0.75);

	show_floor(p, RUN_GROUP_FLOOR, "fault_floor_vs_zram", verdicts);
	show_floor(p, RUN_GROUP_FLOOR_SIGNAL, "fault_floor_signal_vs_zram",
		   verdicts);
	(void)judge_places(verdicts, "fault_elapsed_direct_vs_zram", fault,
			   RUN_PLACE_DIRECT, RUN_PLACE_ZRAM, 0);
	return missed;
}

static unsigned judge_sort(const struct run_plan *p, json_t *verdicts)
{
	const struct run_group *sort = &p->group[RUN_GROUP_SORT];
	unsigned missed = judge_places(verdicts, "quicksort50_vs_local", sort,
				       RUN_PLACE_CABLE, RUN_PLACE_LOCAL, 1.5);

	(void)judge_places(verdicts, "quicksort50_direct_vs_local", sort,
			   RUN_PLACE_DIRECT, RUN_PLACE_LOCAL, 0);
	return missed;
}

/* All applications, or none: the worst of some is not what is asked. */
static unsigned judge_apps(const struct run_plan *p, json_t *verdicts)
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
	return judge(verdicts, "app_chain_vs_static_worst", missing ? 0 : worst,
		     1.15, missing);
}

/* Bytes that the node's NIC sent for pages / faults that waited for one x page
 * size: 1, and nothing near it. */
static unsigned judge_counts(const struct run_plan *p, json_t *verdicts)
{
	static const char *const names[RUN_COUNTS_MAX] = {
		"far_bytes_vs_faults", "far_bytes_vs_faults_chain"};
	unsigned missed = 0;

	for (unsigned i = 0; i < p->counts; i++) {
		const struct run_counted *c = &p->count[i].counted;
		bool kept = p->count[i].is_there && run_counted_is_exact(c);
		double value = c->loads ? (double)c->far_in_bytes /
						  (double)c->loads / 4096
					: 0;

		json_object_set_new(verdicts, names[i],
				    json_pack("{s:s, s:f, s:f, s:b}", "must",
					      "==", "bound", 1.0, "value",
					      value, "kept", kept));
		missed += !kept;
	}
	return missed;
}

unsigned run_judge(const struct run_plan *p, json_t *verdicts)
{
	unsigned missed = judge_faults(p, verdicts);

	missed += judge_sort(p, verdicts);
	missed += judge_apps(p, verdicts);
	return missed + judge_counts(p, verdicts);
}
