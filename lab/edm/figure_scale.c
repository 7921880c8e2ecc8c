/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale: more ports and faster links, each with the smallest chunk that hides
 * one matching of a 3 GHz scheduler. Faults: what they cost; every row says how
 * many messages were not delivered.
 */
#include "edm_figure.h"

enum {
	FAULT_MESSAGES = 100000,
	N_MATCHING_NS = 0,
	N_EVENTS,
	N_EVENTS_PER_S,
};

const struct figure_column edm_columns_scale[] = {
	EDM_COLUMN(job[0].c.nodes, "ports", 0),
	EDM_COLUMN(job[0].c.gbps, "gbps", 0),
	EDM_COLUMN(number[N_MATCHING_NS], "matching_ns", 1),
	EDM_COLUMN(job[0].c.chunk_bytes, "chunk_min", 0),
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 1),
	EDM_COLUMN(job[0].mean.common, "common", 3),
	EDM_COLUMN(job[0].common_ci, "common_ci", 3),
	EDM_COLUMN(job[1].mean.mean_ns, "app_mean_ns", 1),
	EDM_COLUMN(job[1].mean.common, "app_common", 3),
	EDM_COLUMN(job[1].common_ci, "app_ci", 3),
	EDM_COLUMN(job[0].mean.egress_blocks_max, "queue", 0),
	EDM_COLUMN(number[N_EVENTS], "events", 0),
	EDM_COLUMN(number[N_EVENTS_PER_S], "events_per_s", 0),
	{.name = NULL},
};

static void scale_add(struct figure_run *r, const char *panel, uint32_t ports,
		      uint32_t gbps)
{
	struct edm_row *row = figure_add(r, panel, panel, gbps);
	struct edm_config c = edm_options_of(r)->base;

	row->number[N_MATCHING_NS] =
		(double)edm_sched_matching_ps(ports, EDM_SCHED_MHZ) / 1000;
	c.nodes = ports;
	c.gbps = gbps;
	c.write_ppm = 500000;
	c.load = 0.8;
	c.chunk_bytes = edm_sched_chunk_min(ports, EDM_SCHED_MHZ, gbps);
	c.messages = edm_figure_messages(r);
	edm_row_job(row, &c);
	c.sizes = EDM_SIZES_HADOOP;
	c.load = 0.4;
	c.policy = EDM_SRPT;
	c.discipline = EDM_RESERVE;
	c.messages = edm_figure_settled(r, edm_options_of(r)->long_messages);
	edm_row_job(row, &c);
}

int edm_plan_scale(struct figure_run *r)
{
	static const uint32_t ports[] = {144, 512, 1024};
	static const char *const panel[] = {"144 ports", "512 ports",
					    "1024 ports"};
	static const uint32_t gbps[] = {25, 100, 400, 800};

	for (unsigned i = 0; i < ARRAY_LEN(ports); i++)
		for (unsigned k = 0; k < ARRAY_LEN(gbps); k++)
			scale_add(r, panel[i], ports[i], gbps[k]);
	return 0;
}

void edm_judge_scale(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct edm_row *row = figure_row(r, i);
		const struct edm_point *a = &row->job[0].mean,
				       *b = &row->job[1].mean;

		row->number[N_EVENTS] = (double)(a->events + b->events);
		row->number[N_EVENTS_PER_S] =
			row->number[N_EVENTS] / (a->wall_s + b->wall_s);
	}
}

/* ---- faults -------------------------------------------------------------- */

const struct figure_column edm_columns_fault[] = {
	EDM_COLUMN(p.x_name, "fault", 0),
	EDM_COLUMN(job[0].mean.measured, "measured", 0),
	EDM_COLUMN(unfinished, "undelivered", 0),
	EDM_COLUMN(job[0].mean.nulls, "null_reads", 0),
	EDM_COLUMN(job[0].mean.mean_ns, "mean_ns", 1),
	EDM_COLUMN(job[0].mean.p999_ns, "p99.9_ns", 1),
	EDM_COLUMN(job[0].mean.timeouts, "retries", 0),
	EDM_COLUMN(job[0].mean.duplicates, "copies", 0),
	EDM_COLUMN(job[0].mean.copy_gap_ns, "copy_gap_ns", 2),
	{.name = NULL},
};

enum when {
	NEVER,
	SWITCH,
	LINK,
	NODE,
};

static const struct fault {
	const char *what;
	uint32_t loss_ppm;
	bool mirror;
	uint32_t skew_ps;
	enum when dies; /* in the middle of the run */
} faults[] = {
	{"none", 0, false, 0, NEVER},
	{"1 of 1,000 control blocks lost", 1000, false, 0, NEVER},
	{"mirror", 0, true, 0, NEVER},
	{"mirror, cables differ by 1 ns", 0, true, 1000, NEVER},
	{"mirror, first switch dies", 0, true, 1000, SWITCH},
	{"no mirror, switch dies", 0, false, 0, SWITCH},
	{"mirror, a link is disabled", 0, true, 1000, LINK},
	{"a memory node dies", 0, false, 0, NODE},
};

/* A dead node also loses what it was sending and what was written to it. */
int edm_plan_fault(struct figure_run *r)
{
	const struct edm_figure_options *o = edm_options_of(r);

	for (unsigned i = 0; i < ARRAY_LEN(faults); i++) {
		const struct fault *f = &faults[i];
		struct edm_row *row = figure_add(r, NULL, "EDM", i);
		struct edm_config c = o->base;
		uint64_t middle_ps;

		row->p.x_name = f->what;
		c.write_ppm = 500000;
		c.load = 0.6;
		c.messages = o->messages ? o->messages : FAULT_MESSAGES;
		c.warmup_ppm = 0;
		c.loss_ppm = f->loss_ppm;
		c.mirror = f->mirror;
		c.mirror_skew_ps = f->skew_ps;
		if (f->loss_ppm || f->dies == NODE)
			c.timer_ps = 5 * EDM_US;
		if (f->dies == LINK || f->dies == NODE)
			c.fail_port = 7;
		middle_ps = (uint64_t)(edm_workload_gap_ps(&c) *
				       (double)c.messages / 2);
		c.fail_switch_ps = f->dies == SWITCH ? middle_ps : 0;
		c.fail_link_ps = f->dies == LINK ? middle_ps : 0;
		c.fail_node_ps = f->dies == NODE ? middle_ps : 0;
		edm_row_job(row, &c);
	}
	return 0;
}
