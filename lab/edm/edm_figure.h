/* SPDX-License-Identifier: Apache-2.0 */
/* The figures and tables of the paper, made again, and some more. */
#ifndef AQ_EDM_FIGURE_H
#define AQ_EDM_FIGURE_H

#include "edm_jobs.h"
#include "edm_table.h"

struct edm_figure_options {
	struct edm_config base; /* cluster, latency, framing, seed */
	bool full;		/* lengths at which the averages have settled */
	uint64_t messages;	/* of 64 B runs; 0: by full */
	uint64_t long_messages; /* of application runs; 0: by full */
	uint32_t threads, seeds;
	bool progress;
	const char *pcap;      /* a capture, for the figure of frames */
	const char *out;       /* directory for SVG files; NULL: none */
	struct json_out *json; /* NULL: tables to stdout */
};

struct edm_figure {
	const char *name;
	int (*make)(const struct edm_figure_options *o);
	const char *what;
	bool charts; /* writes some with --out */
};

/* Ends with a row whose name is NULL. */
extern const struct edm_figure edm_figures[];

int edm_figure_6(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_7(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_8a(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_8b(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_golden(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_ablation(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_cross(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_scale(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_frames(const struct edm_figure_options *o) MUST_CHECK;
int edm_figure_fault(const struct edm_figure_options *o) MUST_CHECK;

/* What the figures share. */
uint64_t edm_figure_messages(const struct edm_figure_options *o);
uint64_t edm_figure_long_messages(const struct edm_figure_options *o);
void edm_figure_jobs(const struct edm_figure_options *o, const char *title,
		     struct edm_jobs *j);
/* Prints the table or adds it to the JSON object, and releases it. */
void edm_figure_emit(const struct edm_figure_options *o, struct edm_table *t);

/* Figure 7 by the constants of the paper's own model. */
double edm_figure_7_worst(void);

#endif
