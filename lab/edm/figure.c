/* SPDX-License-Identifier: Apache-2.0 */
/* The list of figures, those that only print what the PHY model has, and what
 * all figures share. */
#include "edm_figure.h"

#include <errno.h>
#include <stdlib.h>

#include "phy_report.h"

enum {
	PHY_MESSAGES = 2000,
	PHY_MESSAGES_FULL = 20000,
	SHORT_QUICK = 60000,
	SHORT_FULL = 1250000, /* a fifth is warm-up: a million count */
	LONG_QUICK = 4000,
	LONG_FULL = 125000,
};

static int figure_table1(const struct edm_figure_options *o)
{
	if (o->json)
		edm_table1_json(o->json);
	else
		edm_table1_print(stdout);
	return o->out ? edm_table1_chart(o->out) : 0;
}

static int figure_5(const struct edm_figure_options *o)
{
	const struct edm_lat_config c = {
		.gbps = o->base.gbps,
		.data_bytes = 64,
		.asic = o->base.asic,
	};

	int rc = o->json ? edm_figure5_json(o->json, &c)
			 : edm_figure5_print(stdout, &c);

	return !rc && o->out ? edm_figure5_chart(o->out, &c) : rc;
}

static int figure_ip(const struct edm_figure_options *o)
{
	struct edm_load_row *rows = calloc(EDM_LOAD_ROWS, sizeof(*rows));
	int rc =
		rows ? edm_load_rows(o->full ? PHY_MESSAGES_FULL : PHY_MESSAGES,
				     o->base.seed, rows, NULL, NULL)
		     : -ENOMEM;

	if (!rc && o->json)
		edm_load_json(o->json, rows, edm_block_ps(o->base.gbps));
	else if (!rc)
		edm_load_print(stdout, rows, edm_block_ps(o->base.gbps));
	free(rows);
	return rc;
}

static int figure_errors(const struct edm_figure_options *o)
{
	struct edm_error_row *rows = calloc(EDM_ERROR_ROWS, sizeof(*rows));
	int rc = rows ? edm_error_rows(o->full ? PHY_MESSAGES_FULL
					       : PHY_MESSAGES,
				       o->base.seed, rows, NULL, NULL)
		      : -ENOMEM;

	if (!rc && o->json)
		edm_error_json(o->json, rows);
	else if (!rc)
		edm_error_print(stdout, rows);
	free(rows);
	return rc;
}

const struct edm_figure edm_figures[] = {
	{"table1", figure_table1, "latency of an idle fabric, four stacks",
	 true},
	{"5", figure_5, "where a 64 B access spends its time", true},
	{"6", edm_figure_6, "requests per second of a key-value store", true},
	{"7", edm_figure_7, "latency of a key-value store", true},
	{"8a", edm_figure_8a, "64 B accesses under load, seven fabrics", true},
	{"8b", edm_figure_8b, "five applications, seven fabrics", true},
	{"golden", edm_figure_golden,
	 "8a with the published simulator's settings and rules", false},
	{"ablation", edm_figure_ablation,
	 "discipline, chunk, X, PIM iterations, policy", true},
	{"cross", edm_figure_cross, "all combinations of these, short runs",
	 false},
	{"scale", edm_figure_scale, "to 1,024 ports and 800 Gb/s", true},
	{"fault", edm_figure_fault, "lost blocks, a dead switch, link and node",
	 false},
	{"ip", figure_ip, "memory traffic beside IP frames on one link", false},
	{"frames", edm_figure_frames,
	 "frames of a capture (--pcap) through one link", false},
	{"errors", figure_errors, "bit errors with and without a check sum",
	 false},
	{NULL, NULL, NULL, false},
};

uint64_t edm_figure_messages(const struct edm_figure_options *o)
{
	if (o->messages)
		return o->messages;
	return o->full ? SHORT_FULL : SHORT_QUICK;
}

uint64_t edm_figure_long_messages(const struct edm_figure_options *o)
{
	if (o->long_messages)
		return o->long_messages;
	return o->full ? LONG_FULL : LONG_QUICK;
}

void edm_figure_jobs(const struct edm_figure_options *o, const char *title,
		     struct edm_jobs *j)
{
	*j = (struct edm_jobs){
		.threads = o->threads,
		.seeds = o->seeds,
		.progress = o->progress,
		.title = title,
	};
}

void edm_figure_emit(const struct edm_figure_options *o, struct edm_table *t)
{
	if (o->json)
		edm_table_json(t, o->json);
	else
		edm_table_print(t, stdout);
	edm_table_release(t);
}
