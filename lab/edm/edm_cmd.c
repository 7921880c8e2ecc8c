/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer sim edm`: a figure, or one run with everything that was measured. */
#include "edm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "base/error.h"
#include "base/json_out.h"
#include "edm_figure.h"

static const struct figure_column run_columns[] = {
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 2),
	EDM_COLUMN(job[0].mean_ns_ci, "mean_ns_ci", 2),
	EDM_COLUMN(job[0].mean.p50_ns, "p50_ns", 1),
	EDM_COLUMN(job[0].mean.p99_ns, "p99_ns", 1),
	EDM_COLUMN(job[0].mean.p999_ns, "p99.9_ns", 1),
	EDM_COLUMN(job[0].mean.own, "own", 4),
	EDM_COLUMN(job[0].own_ci, "own_ci", 4),
	EDM_COLUMN(job[0].mean.common, "common", 4),
	EDM_COLUMN(job[0].common_ci, "common_ci", 4),
	EDM_COLUMN(job[0].mean.write_own, "write_own", 4),
	EDM_COLUMN(job[0].mean.read_own, "read_own", 4),
	EDM_COLUMN(job[0].mean.payload_load, "payload_load", 3),
	EDM_COLUMN(job[0].mean.ip_share, "ip_share", 3),
	EDM_COLUMN(job[0].growth, "growth", 3),
	EDM_COLUMN(job[0].trend, "trend", 0),
	EDM_COLUMN(job[0].mean.measured, "measured", 0),
	EDM_COLUMN(unfinished, "undelivered", 0),
	EDM_COLUMN(job[0].mean.nulls, "null_reads", 0),
	EDM_COLUMN(job[0].mean.horizon_ns, "horizon_ns", 0),
	EDM_COLUMN(job[0].mean.in_flight_max, "in_flight_max", 0),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue_max_blocks", 0),
	EDM_COLUMN(job[0].mean.grants, "grants", 0),
	EDM_COLUMN(job[0].mean.drops, "drops", 0),
	EDM_COLUMN(job[0].mean.marks, "marks", 0),
	EDM_COLUMN(job[0].mean.pauses, "pauses", 0),
	EDM_COLUMN(job[0].mean.timeouts, "timeouts", 0),
	EDM_COLUMN(job[0].mean.duplicates, "copies", 0),
	EDM_COLUMN(job[0].mean.events, "events", 0),
	EDM_COLUMN(number[0], "events_per_s", 0),
	{.name = NULL},
};

static int print_run(const struct edm_row *row, bool is_json)
{
	struct json_out j;
	char cell[64];

	if (!is_json) {
		for (const struct figure_column *c = run_columns; c->name; c++)
			printf("%16s  %14s\n", c->name,
			       figure_cell(c, row, cell, sizeof(cell)));
		return 0;
	}
	json_out_init(&j, stdout);
	json_out_object(&j, NULL);
	json_out_string(&j, "sim", "edm");
	json_out_array(&j, "run");
	for (const struct figure_column *c = run_columns; c->name; c++) {
		json_out_object(&j, NULL);
		json_out_string(&j, "measure", c->name);
		figure_cell_json(&j, "value", c, row);
		json_out_close(&j);
	}
	json_out_close(&j);
	json_out_close(&j);
	return json_out_end(&j);
}

/* One run with everything that was measured. */
static int single(const struct edm_figure_options *o)
{
	struct edm_jobs j = {.threads = o->f.jobs,
			     .seeds = o->seeds,
			     .progress = !o->quiet,
			     .title = "run"};
	struct edm_row row = {.jobs = 1};
	int rc;

	(void)edm_jobs_add(&j, &o->base);
	rc = edm_jobs_run(&j);
	if (!rc) {
		const struct edm_point *p = &j.job[0].mean;

		row.job[0] = j.job[0];
		row.unfinished = p->measured - p->completed;
		row.number[0] = (double)p->events / p->wall_s;
		rc = print_run(&row, o->f.json);
	}
	edm_jobs_release(&j);
	return rc;
}

#define OF_ALL "seed seeds quiet "
/* What changes the fabrics of a figure, but not what it is about. */
#define OF_CLUSTER                                                          \
	OF_ALL "nodes gbps latency framing asic memory-ns md chunk "        \
	       "active pim-iterations pim-ns pattern rmw warmup published " \
	       "cxl-credits cxl-fifo fastpass-free "

static const struct figure_takes takes[] = {
	{"table1", "quiet"},
	{"5", "quiet gbps asic"},
	{"6", OF_ALL "full"},
	{"7", OF_ALL "full messages"},
	{"8a", OF_CLUSTER "full messages"},
	{"8a-payload", OF_CLUSTER "full messages"},
	{"8b", OF_CLUSTER "full long-messages"},
	{"golden", OF_ALL},
	{"ablation", OF_ALL "full nodes gbps latency warmup messages "
			    "long-messages"},
	{"cross", OF_ALL "full nodes gbps latency warmup messages "
			 "long-messages"},
	{"scale", OF_ALL "full latency warmup messages long-messages"},
	{"fault", OF_ALL "nodes gbps messages"},
	{"ip", "seed quiet full messages gbps"},
	{"frames", "seed quiet full messages gbps pcap"},
	{"errors", "seed quiet full messages"},
	/* Without a figure: one run. */
	{NULL, OF_CLUSTER "fabric load payload-load messages sizes size writes "
			  "trace discipline policy channels batch nest timed "
			  "age-cap-ns ip-load ip-policy loss timer-ns retries "
			  "mirror mirror-skew-ns fail-switch-ns fail-link-ns "
			  "fail-node-ns fail-port cxl-voq constants"},
	{NULL, NULL},
};

const struct figure_system edm_figures = {
	.name = "edm",
	.source = "EDM, ASPLOS 2025, and its authors' simulator",
	.summary = "The EDM memory fabric and its rivals: a figure of the "
		   "paper, or without --figure one\nrun with everything that "
		   "is measured.",
	.figures = edm_figure_list,
	.options = edm_options,
	.takes = takes,
	.row_bytes = sizeof(struct edm_row),
	.run = edm_figures_run,
	.more = edm_table1_print,
};

int sim_edm_cmd(int argc, char **argv)
{
	struct edm_figure_options o = {.seeds = 1};
	int rc;

	edm_config_init(&o.base);
	rc = figure_parse(&edm_figures, &o.f, argc, argv);
	if (rc >= 0)
		return rc;
	if (o.messages)
		o.base.messages = o.messages;
	rc = edm_config_check(&o.base);
	if (!rc && o.f.out && !o.f.figure)
		rc = error_set(-EINVAL,
			       "--out: there is no picture of one run");
	if (!rc && o.f.figure)
		return figure_go(&edm_figures, &o.f);
	if (rc) {
		complain(0, "sim edm: %s", error_last());
		return FIGURE_USAGE;
	}
	rc = single(&o);
	if (rc)
		complain(rc, "sim edm: %s",
			 *error_last() ? error_last() : error_text(rc));
	return rc ? FIGURE_BROKEN : FIGURE_RAN;
}
