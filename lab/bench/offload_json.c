/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON object: bench, commit, machine, rows, ratios, void. */
#include <errno.h>
#include <jansson.h>

#include "bench_commit.h"
#include "guard.h"
#include "machine_json.h"
#include "offload_report.h"

static void set(json_t *o, const char *name, double v)
{
	json_object_set_new(o, name, json_real(v));
}

static json_t *row_object(const struct offload_group *g, unsigned i)
{
	const struct conduct_track *t = &g->track[i];
	struct offload_row row;
	json_t *o;

	o = json_pack("{s:s, s:s, s:s, s:s, s:i}", "name", t->desc->name,
		      "group", g->name, "what", t->desc->what, "unit",
		      offload_unit(g->metric), "record_bytes",
		      (int)g->record_bytes);
	if (!o)
		return NULL;
	if (t->why[0]) {
		json_object_set_new(o, "error", json_string(t->why));
		return o;
	}
	offload_row_read(g, t, &row);
	set(o, "median", row.median);
	set(o, "min", row.min);
	set(o, "max", row.max);
	if (g->metric != METRIC_RATE) {
		set(o, "p50", row.p50_ns);
		set(o, "p99", row.p99_ns);
		set(o, "p99.9", row.p999_ns);
	}
	if (g->metric == METRIC_CALLER)
		set(o, "issue_ns", row.p50_ns);
	set(o, "packets_per_op", row.packets);
	set(o, "wire_bytes_per_op", row.wire_bytes);
	set(o, "memory_cpu", row.memory_cpu);
	set(o, "engine_cpu", row.engine_cpu);
	set(o, "far_share", row.far_share);
	if (g->subject[i].param.is_timed) {
		set(o, "comm_share", row.comm);
		set(o, "empty_poll_share", row.empty);
	}
	json_object_set_new(o, "rounds", json_integer(t->kept));
	json_object_set_new(o, "discarded", json_integer(t->discarded));
	set(o, "foreign_cores_worst", t->foreign_worst);
	json_object_set_new(o, "guard",
			    json_string(guard_name((enum guard_kind)t->guard)));
	return o;
}

static json_t *ratio_object(const struct offload_ratio *q,
			    const struct plan_verdict *v)
{
	json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:f, s:s}", "name", q->name,
			      "group", q->group, "what", q->meaning, "unit",
			      "ratio", "median", v->ratio, "verdict",
			      v->is_void      ? "void"
			      : !q->is_barred ? "printed"
			      : v->is_kept    ? "kept"
					      : "missed");

	if (o && q->is_barred) {
		json_object_set_new(o, "must",
				    json_string(q->at_most ? "<=" : ">="));
		set(o, "bound", q->bound);
	}
	if (o && q->paper)
		json_object_set_new(o, "paper", json_string(q->paper));
	return o;
}

int offload_report_json(const struct offload_report *r, FILE *to)
{
	json_t *rows = json_array(), *ratios = json_object();
	json_t *voids = json_object(), *top;
	struct plan_verdict v;
	int rc = 0;

	for (unsigned i = 0; i < r->plan->group_count; i++) {
		const struct offload_group *g = &r->plan->group[i];

		for (unsigned k = 0; g->is_run && k < g->subject_count; k++)
			json_array_append_new(rows, row_object(g, k));
	}
	for (unsigned i = 0; i < offload_ratio_count; i++) {
		const struct offload_ratio *q = &offload_ratios[i];

		if (!offload_ratio_wanted(r->only, q))
			continue;
		offload_judge(r->plan, q, r->opt.rounds, &v);
		json_array_append_new(rows, ratio_object(q, &v));
		if (v.is_void)
			json_object_set_new(voids, q->name, json_string(v.why));
		else
			set(ratios, q->name, v.ratio);
	}
	top = json_pack("{s:s, s:s, s:b, s:i, s:f, s:o, s:I, s:I, s:o, s:o, "
			"s:o}",
			"bench", "offload", "commit", BENCH_COMMIT, "quick",
			(int)r->quick, "rounds", (int)r->opt.rounds,
			"window_ms", (double)r->opt.window_ns / 1e6, "machine",
			machine_json(&r->machine), "probe_records",
			(json_int_t)r->plan->cfg.probe_records, "store_bytes",
			(json_int_t)r->plan->cfg.log_bytes, "rows", rows,
			"ratios", ratios, "void", voids);
	if (!top)
		return -ENOMEM;
	if (json_dumpf(top, to, JSON_INDENT(1) | JSON_REAL_PRECISION(6)) < 0 ||
	    fputc('\n', to) == EOF)
		rc = -EIO;
	json_decref(top);
	return rc;
}
