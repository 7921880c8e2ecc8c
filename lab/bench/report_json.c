/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON object: bench, commit, machine, rows, ratios, void, bounds. In a
 * row, "median" is in the row's unit over the rounds; "p99" and "p99.9" are
 * always times of one operation in nanoseconds.
 */
#include <errno.h>
#include <jansson.h>

#include "bench_commit.h"
#include "guard.h"
#include "machine_json.h"
#include "report.h"

static json_t *row_object(const struct conduct_track *t, const char *suffix,
			  unsigned series, const struct plan_group *g,
			  enum plan_unit unit)
{
	bool rate = unit == PLAN_RATE;
	struct conduct_summary sum;
	json_t *row;

	row = json_pack("{s:s++, s:s, s:s, s:s}", "name", t->desc->name, suffix,
			"", "group", g->name, "what", t->desc->what, "unit",
			rate ? "op/s" : "ns");
	if (!row)
		return NULL;
	if (t->why[0]) {
		json_object_set_new(row, "error", json_string(t->why));
		return row;
	}
	conduct_summarize(t, series, &sum);
	json_object_set_new(row, "n", json_integer((json_int_t)sum.op_count));
	json_object_set_new(row, "samples",
			    json_integer((json_int_t)sum.sample_count));
	json_object_set_new(row, "median",
			    json_real(rate ? sum.rate : sum.p50_ns));
	json_object_set_new(row, "min",
			    json_real(rate ? sum.rate_min : sum.p50_min_ns));
	json_object_set_new(row, "max",
			    json_real(rate ? sum.rate_max : sum.p50_max_ns));
	json_object_set_new(row, "p50", json_real(sum.p50_ns));
	json_object_set_new(row, "p99", json_real(sum.p99_ns));
	json_object_set_new(row, "p99.9", json_real(sum.p999_ns));
	json_object_set_new(row, "rounds", json_integer(t->kept));
	json_object_set_new(row, "discarded", json_integer(t->discarded));
	json_object_set_new(row, "foreign_cores_worst",
			    json_real(t->foreign_worst));
	json_object_set_new(row, "guard",
			    json_string(guard_name((enum guard_kind)t->guard)));
	return row;
}

static json_t *ratio_row(const struct report_group *g)
{
	const struct plan_verdict *v = &g->verdict;

	return json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:f, s:s}", "name",
			 g->plan->name, "group", g->plan->name, "what",
			 g->plan->meaning, "unit", "ratio", "median", v->ratio,
			 "must", g->plan->at_most ? "<=" : ">=", "bound",
			 g->plan->bound, "verdict",
			 v->is_void   ? "void"
			 : v->is_kept ? "kept"
				      : "missed");
}

static void add_group(const struct report_group *g, json_t *rows,
		      json_t *ratios, json_t *voids)
{
	for (unsigned i = 0; i < g->plan->subject_count; i++) {
		const struct conduct_track *t = &g->track[i];
		bool caller = conduct_has_series(t, 1);

		json_array_append_new(rows,
				      row_object(t, caller ? "_post" : "", 0,
						 g->plan, g->plan->unit));
		if (caller)
			json_array_append_new(
				rows,
				row_object(t, "_poll", 1, g->plan, PLAN_NS));
	}
	if (!g->plan->is_ratio)
		return;
	json_array_append_new(rows, ratio_row(g));
	if (g->verdict.is_void)
		json_object_set_new(voids, g->plan->name,
				    json_string(g->verdict.why));
	else
		json_object_set_new(ratios, g->plan->name,
				    json_real(g->verdict.ratio));
}

int report_json(const struct report *r, FILE *to)
{
	json_t *rows = json_array();
	json_t *ratios = json_object();
	json_t *voids = json_object();
	json_t *top;
	int rc = 0;

	for (unsigned i = 0; i < r->group_count; i++)
		add_group(&r->group[i], rows, ratios, voids);
	top = json_pack("{s:s, s:s, s:b, s:i, s:f, s:o, s:o, s:o, s:o}",
			"bench", "verbs", "commit", BENCH_COMMIT, "quick",
			(int)r->quick, "rounds", (int)r->opt.rounds,
			"window_ms", (double)r->opt.window_ns / 1e6, "machine",
			machine_json(&r->machine), "rows", rows, "ratios",
			ratios, "void", voids);
	if (!top)
		return -ENOMEM;
	if (json_dumpf(top, to, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0 ||
	    fputc('\n', to) == EOF)
		rc = -EIO;
	json_decref(top);
	return rc;
}
