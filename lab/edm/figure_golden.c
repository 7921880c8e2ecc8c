/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the published numbers of figure 8a come from: 64 B writes of EDM with
 * the published simulator's settings, first by its own rules (golden.c), then
 * with this simulation's scheduler. Cables of 10 ns and nothing else, 2,000
 * messages from an empty network on, payload load, and a denominator of 80
 * slots of 0.64 ns. Then ten times as many messages.
 */
#include <math.h>

#include "edm_figure.h"
#include "edm_golden.h"

enum {
	LOADS = 5,
	SHORT_RUN = 2000,
	LONG_RUN = 20000,
};

static const char *const label[LOADS] = {"0.2", "0.4", "0.6", "0.8", "0.9"};
static const double payload[LOADS] = {0.128, 0.299, 0.512, 0.811, 0.896};
static const double published[LOADS] = {1.01, 1.05, 1.17, 1.35, 1.38};

/* Mean over the seeds. */
static int rules_row(const struct edm_figure_options *o, struct edm_table *t,
		     unsigned at, uint32_t messages)
{
	struct edm_golden g, sum = {0};
	uint32_t seeds = u32_max(o->seeds, 1);
	int rc = 0;

	for (uint32_t i = 0; i < seeds && !rc; i++) {
		rc = edm_golden_run(payload[at], messages, o->base.seed + i,
				    &g);
		sum.slowdown += g.slowdown / seeds;
		sum.mean_slots += g.mean_slots / seeds;
		sum.counted += g.counted;
	}
	if (rc)
		return rc;
	edm_table_text(t, "%s", label[at]);
	edm_table_number(t, payload[at], 3);
	edm_table_number(t, messages, 0);
	edm_table_text(t, "published");
	edm_table_number(t, sum.mean_slots * 0.64, 1);
	edm_table_number(t, sum.slowdown, 3);
	edm_table_number(t, messages == SHORT_RUN ? published[at] : NAN,
			 messages == SHORT_RUN ? 2 : -1);
	edm_table_number(t, (double)sum.counted / seeds / messages, 3);
	return 0;
}

static void job_row(struct edm_table *t, unsigned at, const struct edm_job *job)
{
	edm_table_text(t, "%s", label[at]);
	edm_table_number(t, job->c.load, 3);
	edm_table_number(t, (double)job->c.messages, 0);
	edm_table_text(t, job->c.md == EDM_MD_BARE ? "matching, bare"
						   : "matching, real");
	edm_table_number(t, job->mean.mean_ns, 1);
	edm_table_number(t, fmax(1, job->mean.mean_ns / 51.2), 3);
	edm_table_number(t, NAN, -1);
	edm_table_number(t, 1, 3);
}

static void job_add(const struct edm_figure_options *o, struct edm_jobs *j,
		    unsigned at, uint32_t messages, enum edm_md md)
{
	struct edm_config c = o->base;

	c.latency = EDM_LATENCY_HOPS;
	c.md = md;
	c.load = payload[at];
	c.load_is_payload = true;
	c.write_ppm = 1000000;
	c.messages = messages;
	c.warmup_ppm = 0;
	(void)edm_jobs_add(j, &c);
}

int edm_figure_golden(const struct edm_figure_options *o)
{
	static const char *const head[] = {
		"load",		 "payload", "messages", "scheduler", "mean_ns",
		"over_80_slots", "golden",  "counted",	NULL};
	static const uint32_t length[] = {SHORT_RUN, LONG_RUN};
	struct edm_table t;
	struct edm_jobs j;
	size_t at = 0;
	int rc;

	edm_figure_jobs(o, "golden", &j);
	for (unsigned i = 0; i < LOADS; i++) {
		for (unsigned k = 0; k < ARRAY_LEN(length); k++) {
			job_add(o, &j, i, length[k], EDM_MD_BARE);
			job_add(o, &j, i, length[k], EDM_MD_DATA);
		}
	}
	edm_table_init(&t, "golden",
		       "EDM, 64 B writes, settings and denominator of the "
		       "published simulator; its own scheduler, and matching "
		       "with bare payload and with real blocks",
		       head);
	rc = edm_jobs_run(&j);
	for (unsigned i = 0; i < LOADS && !rc; i++) {
		for (unsigned k = 0; k < ARRAY_LEN(length) && !rc; k++) {
			rc = rules_row(o, &t, i, length[k]);
			job_row(&t, i, &j.job[at++]);
			job_row(&t, i, &j.job[at++]);
		}
	}
	edm_jobs_release(&j);
	if (rc) {
		edm_table_release(&t);
		return rc;
	}
	edm_figure_emit(o, &t);
	return 0;
}
