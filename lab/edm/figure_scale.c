/* SPDX-License-Identifier: Apache-2.0 */
/* More ports and faster links, each with the smallest chunk that hides one
 * matching of a 3 GHz scheduler. */
#include "edm_figure.h"

enum {
	CLOCK_MHZ = 3000,
};

static const uint32_t ports[] = {144, 512, 1024};
static const uint32_t gbps[] = {25, 100, 400, 800};

enum {
	PORTS = ARRAY_LEN(ports),
	RATES = ARRAY_LEN(gbps),
};

static int chart(const struct edm_figure_options *o, const struct edm_jobs *j)
{
	static const char *const x[RATES] = {"25", "100", "400", "800"};
	double y[2 * PORTS * RATES];
	const struct edm_chart c = {
		.title = "Scale: smallest chunk for a scheduler of 3 GHz",
		.x_label = "Gb/s",
		.y_label = "mean time over unloaded EDM",
		.x = x,
		.points = RATES,
		.series = 2 * PORTS,
		.name = {"64 B, 144 ports", "64 B, 512 ports",
			 "64 B, 1024 ports", "hadoop, 144 ports",
			 "hadoop, 512 ports", "hadoop, 1024 ports"},
		.y = y,
	};

	for (unsigned i = 0; i < PORTS * RATES; i++) {
		y[i] = j->job[2 * i].mean.common;
		y[PORTS * RATES + i] = j->job[2 * i + 1].mean.common;
	}
	return edm_chart_write(&c, o->out, "scale");
}

static void row_add(struct edm_table *t, const struct edm_job *a,
		    const struct edm_job *b)
{
	double wall = a->mean.wall_s + b->mean.wall_s;
	double events = (double)(a->mean.events + b->mean.events);

	edm_table_number(t, a->c.nodes, 0);
	edm_table_number(t, a->c.gbps, 0);
	edm_table_number(
		t, (double)edm_sched_matching_ps(a->c.nodes, CLOCK_MHZ) / 1000,
		1);
	edm_table_number(t, a->c.chunk_bytes, 0);
	edm_table_number(t, a->mean.mean_ns, 1);
	edm_table_number(t, a->mean.common, 3);
	edm_table_number(t, a->common_ci, a->seeds > 1 ? 3 : -1);
	edm_table_number(t, b->mean.mean_ns, 1);
	edm_table_number(t, b->mean.common, 3);
	edm_table_number(t, b->common_ci, b->seeds > 1 ? 3 : -1);
	edm_table_number(t, (double)a->mean.egress_blocks_max, 0);
	edm_table_number(t, events, 0);
	edm_table_number(t, events / wall, 0);
}

int edm_figure_scale(const struct edm_figure_options *o)
{
	static const char *const head[] = {
		"ports",  "gbps",      "matching_ns",  "chunk_min",  "mean_ns",
		"common", "common_ci", "app_mean_ns",  "app_common", "app_ci",
		"queue",  "events",    "events_per_s", NULL};
	struct edm_jobs j;
	struct edm_table t;
	int rc;

	edm_figure_jobs(o, "scale", &j);
	for (unsigned i = 0; i < ARRAY_LEN(ports); i++) {
		for (unsigned k = 0; k < ARRAY_LEN(gbps); k++) {
			struct edm_config c = o->base;

			c.nodes = ports[i];
			c.gbps = gbps[k];
			c.write_ppm = 500000;
			c.load = 0.8;
			c.chunk_bytes = edm_sched_chunk_min(ports[i], CLOCK_MHZ,
							    gbps[k]);
			c.messages = edm_figure_messages(o);
			(void)edm_jobs_add(&j, &c);
			c.sizes = EDM_SIZES_HADOOP;
			c.load = 0.4;
			c.policy = EDM_SRPT;
			c.discipline = EDM_RESERVE;
			c.messages = edm_figure_long_messages(o) / 2;
			(void)edm_jobs_add(&j, &c);
		}
	}
	rc = edm_jobs_run(&j);
	edm_table_init(&t, "scale",
		       "Scale: 64 B mixed at load 0.8, and hadoop at 0.4 with "
		       "reserve; smallest chunk for a scheduler of 3 GHz",
		       head);
	for (size_t i = 0; !rc && i < j.count; i += 2)
		row_add(&t, &j.job[i], &j.job[i + 1]);
	if (!rc)
		edm_figure_emit(o, &t);
	else
		edm_table_release(&t);
	if (!rc && o->out)
		rc = chart(o, &j);
	edm_jobs_release(&j);
	return rc;
}
