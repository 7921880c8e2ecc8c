/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures and tables of the EDM paper, made again, and some more. A row is
 * one simulation, or two, or the result of a model; report/figure.h says how to
 * add a figure.
 */
#ifndef AQ_EDM_FIGURE_H
#define AQ_EDM_FIGURE_H

#include "base/opt.h"
#include "edm_jobs.h"
#include "latency.h"
#include "phy_errors.h"
#include "phy_frames.h"
#include "phy_load.h"
#include "report/figure.h"

struct edm_figure_options {
	struct figure_options f; /* first */
	struct edm_config base;	 /* cluster, latency, framing, seed */
	bool full;		/* lengths at which the averages have settled */
	uint64_t messages;	/* of 64 B runs; 0: by full */
	uint64_t long_messages; /* of application runs; 0: by full */
	uint32_t seeds;
	bool quiet;	  /* no progress on stderr */
	const char *pcap; /* a capture, for the figure of frames */
};

enum {
	EDM_LOADS = 5, /* of figure 8a */
	EDM_ROW_TEXTS = 4,
	EDM_ROW_NUMBERS = 12,
};

struct edm_row {
	struct figure_point p;
	const char *text[EDM_ROW_TEXTS]; /* labels, by figure */
	char name[40];
	double number[EDM_ROW_NUMBERS]; /* by figure */
	unsigned jobs;			/* of `job`, to be run */
	uint64_t unfinished;		/* messages of the first */
	bool agrees;
	struct edm_timed_cells {
		double own, common;
		const char *trend;
	} timed; /* what the second job found, if it is timed */
	union {
		struct edm_job job[2];
		struct {
			struct edm_load_config config;
			struct edm_load_result result;
		} load;
		struct {
			struct edm_errors_config config;
			struct edm_errors_result result;
		} error;
		struct edm_lat_stage stage;
		struct edm_frames_result frames;
	};
};

#define EDM_COLUMN(member, name, decimals) \
	FIGURE_COLUMN(struct edm_row, member, name, decimals)

extern const struct opt edm_options[];
/* One of them by name, for a run. -EINVAL with words that name it. The text
 * must stay valid as long as the configuration. */
int edm_option_set(struct edm_config *c, const char *name,
		   const char *value) MUST_CHECK;

extern const struct figure edm_figure_list[];
extern const struct figure_system edm_figures;

/* Runs all simulations of all rows. */
int edm_figures_run(struct figure_run *r) MUST_CHECK;

static inline const struct edm_figure_options *edm_options_of(
	const struct figure_run *r)
{
	return (const struct edm_figure_options *)r->options;
}

/* Lengths of 64 B runs, and of runs of applications. */
uint64_t edm_figure_messages(const struct figure_run *r);
uint64_t edm_figure_long_messages(const struct figure_run *r);
/* At least 48,000 count, unless another number is asked for: what the tail of
 * applications needs. */
uint64_t edm_figure_settled(const struct figure_run *r, uint64_t asked);
/* Fills in `timed` of all rows: NaN where nothing was timed. */
void edm_rows_timed(struct figure_run *r);
/* Adds a simulation to a row. */
void edm_row_job(struct edm_row *row, const struct edm_config *c);
/* "64 B", or the name of the application. */
const char *edm_row_sizes(const struct edm_config *c);

/* The points of the figures, and what follows from them. */
int edm_plan_table1(struct figure_run *r) MUST_CHECK;
int edm_plan_5(struct figure_run *r) MUST_CHECK;
int edm_plan_6(struct figure_run *r) MUST_CHECK;
void edm_judge_6(struct figure_run *r);
int edm_plan_7(struct figure_run *r) MUST_CHECK;
void edm_judge_7(struct figure_run *r);
int edm_plan_8a(struct figure_run *r) MUST_CHECK;
void edm_judge_8a(struct figure_run *r);
int edm_plan_8a_payload(struct figure_run *r) MUST_CHECK;
int edm_plan_8b(struct figure_run *r) MUST_CHECK;
void edm_judge_8b(struct figure_run *r);
int edm_plan_golden(struct figure_run *r) MUST_CHECK;
void edm_judge_golden(struct figure_run *r);
int edm_plan_ablation(struct figure_run *r) MUST_CHECK;
void edm_judge_ablation(struct figure_run *r);
int edm_plan_cross(struct figure_run *r) MUST_CHECK;
void edm_judge_cross(struct figure_run *r);
int edm_plan_scale(struct figure_run *r) MUST_CHECK;
void edm_judge_scale(struct figure_run *r);
int edm_plan_fault(struct figure_run *r) MUST_CHECK;
int edm_plan_ip(struct figure_run *r) MUST_CHECK;
void edm_judge_ip(struct figure_run *r);
int edm_plan_frames(struct figure_run *r) MUST_CHECK;
int edm_plan_errors(struct figure_run *r) MUST_CHECK;

/* Their columns. */
extern const struct figure_column edm_columns_table1[], edm_columns_5[],
	edm_columns_6[], edm_columns_7[], edm_columns_8[], edm_columns_golden[],
	edm_columns_ablation[], edm_columns_cross[], edm_columns_scale[],
	edm_columns_fault[], edm_columns_ip[], edm_columns_frames[],
	edm_columns_errors[];

/* The payload loads of figure 8a, and what was published there for writes by
 * enum edm_proto. */
extern const double edm_payload[EDM_LOADS];
extern const double edm_golden_write[EDM_LOADS][EDM_PROTO_COUNT];

/* Prints how Table 1's sums are made up; nothing for other figures. */
void edm_table1_print(const struct figure_run *r, FILE *f);

/* Figure 7: the largest ratio of EDM's mean time to CXL's. */
int edm_figure_7_worst(uint32_t requests, uint64_t seed,
		       double *worst) MUST_CHECK;

#endif
