/* SPDX-License-Identifier: Apache-2.0 */
/* More ports and faster links, each with the smallest chunk that hides one
 * matching of a 3 GHz scheduler. */
#include "edm_figure.h"

enum {
	CLOCK_MHZ = 3000,
};

int edm_figure_scale(const struct edm_figure_options *o)
{
	static const uint32_t ports[] = {144, 512, 1024};
	static const uint32_t gbps[] = {25, 100, 400, 800};
	static const char *const head[] = {
		"ports",   "gbps",   "matching_ns",  "chunk_min",
		"mean_ns", "common", "app_mean_ns",  "app_common",
		"queue",   "events", "events_per_s", NULL};
	struct edm_jobs j;
	struct edm_table t;
	size_t at = 0;
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
	for (unsigned i = 0; !rc && i < ARRAY_LEN(ports); i++) {
		for (unsigned k = 0; k < ARRAY_LEN(gbps); k++) {
			const struct edm_job *a = &j.job[at++];
			const struct edm_job *b = &j.job[at++];
			double wall = a->mean.wall_s + b->mean.wall_s;
			double events =
				(double)(a->mean.events + b->mean.events);

			edm_table_number(&t, ports[i], 0);
			edm_table_number(&t, gbps[k], 0);
			edm_table_number(&t,
					 (double)edm_sched_matching_ps(
						 ports[i], CLOCK_MHZ) /
						 1000,
					 1);
			edm_table_number(&t, a->c.chunk_bytes, 0);
			edm_table_number(&t, a->mean.mean_ns, 1);
			edm_table_number(&t, a->mean.common, 3);
			edm_table_number(&t, b->mean.mean_ns, 1);
			edm_table_number(&t, b->mean.common, 3);
			edm_table_number(&t, (double)a->mean.egress_blocks_max,
					 0);
			edm_table_number(&t, events, 0);
			edm_table_number(&t, events / wall, 0);
		}
	}
	if (!rc)
		edm_figure_emit(o, &t);
	else
		edm_table_release(&t);
	edm_jobs_release(&j);
	return rc;
}
