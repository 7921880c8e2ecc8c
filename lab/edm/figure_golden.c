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
	SHORT_RUN = 2000,
	LONG_RUN = 20000,
};

/* As the paper names them. */
static const double label[EDM_LOADS] = {0.2, 0.4, 0.6, 0.8, 0.9};

enum {
	N_PAYLOAD,
	N_MESSAGES,
	N_MEAN_NS,
	N_OVER_80_SLOTS,
	N_GOLDEN,
	N_COUNTED,
};

const struct figure_column edm_columns_golden[] = {
	EDM_COLUMN(p.x, "load", 1),
	EDM_COLUMN(number[N_PAYLOAD], "payload", 3),
	EDM_COLUMN(number[N_MESSAGES], "messages", 0),
	EDM_COLUMN(text[0], "scheduler", 0),
	EDM_COLUMN(number[N_MEAN_NS], "mean_ns", 1),
	EDM_COLUMN(number[N_OVER_80_SLOTS], "over_80_slots", 3),
	EDM_COLUMN(number[N_GOLDEN], "golden", 2),
	EDM_COLUMN(number[N_COUNTED], "counted", 3),
	{.name = NULL},
};

static struct edm_row *golden_add(struct figure_run *r, unsigned at,
				  uint32_t messages, const char *scheduler)
{
	char series[FIGURE_SERIES_MAX];
	struct edm_row *row;

	snprintf(series, sizeof(series), "%s, %u", scheduler, messages);
	row = figure_add(r, NULL, series, label[at]);
	row->text[0] = scheduler;
	row->number[N_PAYLOAD] = edm_payload[at];
	row->number[N_MESSAGES] = messages;
	row->number[N_GOLDEN] = NAN;
	row->number[N_COUNTED] = 1;
	return row;
}

/* By the published rules; mean over the seeds. */
static int rules_add(struct figure_run *r, unsigned at, uint32_t messages)
{
	const struct edm_figure_options *o = edm_options_of(r);
	struct edm_row *row = golden_add(r, at, messages, "published");
	struct edm_golden g, sum = {0};
	uint32_t seeds = u32_max(o->seeds, 1);
	int rc = 0;

	for (uint32_t i = 0; i < seeds && !rc; i++) {
		rc = edm_golden_run(edm_payload[at], messages, o->base.seed + i,
				    &g);
		sum.slowdown += g.slowdown / seeds;
		sum.mean_slots += g.mean_slots / seeds;
		sum.counted += g.counted;
	}
	row->number[N_MEAN_NS] = sum.mean_slots * 0.64;
	row->number[N_OVER_80_SLOTS] = sum.slowdown;
	row->number[N_COUNTED] = (double)sum.counted / seeds / messages;
	if (messages == SHORT_RUN)
		row->number[N_GOLDEN] = row->p.published =
			edm_golden_write[at][EDM_PROTO_EDM];
	return rc;
}

static void matching_add(struct figure_run *r, unsigned at, uint32_t messages,
			 enum edm_md md)
{
	struct edm_config c = edm_options_of(r)->base;

	c.latency = EDM_LATENCY_HOPS;
	c.md = md;
	c.load = edm_payload[at];
	c.load_is_payload = true;
	c.write_ppm = 1000000;
	c.messages = messages;
	c.warmup_ppm = 0;
	edm_row_job(golden_add(r, at, messages,
			       md == EDM_MD_BARE ? "matching, bare"
						 : "matching, real"),
		    &c);
}

int edm_plan_golden(struct figure_run *r)
{
	int rc = 0;

	for (unsigned i = 0; i < EDM_LOADS; i++) {
		for (uint32_t n = SHORT_RUN; n <= LONG_RUN && !rc; n *= 10) {
			rc = rules_add(r, i, n);
			matching_add(r, i, n, EDM_MD_BARE);
			matching_add(r, i, n, EDM_MD_DATA);
		}
	}
	return rc;
}

void edm_judge_golden(struct figure_run *r)
{
	for (size_t i = 0; i < r->count; i++) {
		struct edm_row *row = figure_row(r, i);

		if (!row->jobs)
			continue;
		row->number[N_MEAN_NS] = row->job[0].mean.mean_ns;
		row->number[N_OVER_80_SLOTS] =
			fmax(1, row->job[0].mean.mean_ns / 51.2);
	}
}
