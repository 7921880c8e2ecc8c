/* SPDX-License-Identifier: Apache-2.0 */
/* Points of Cowbird's figures: applications, and ways to read that several
 * figures have. */
#ifndef AQ_FIGURES_OFFLOAD_PLAN_H
#define AQ_FIGURES_OFFLOAD_PLAN_H

#include "figures.h"

struct offload_figure_options {
	struct figure_options f;
	uint64_t client_ns;
	uint64_t nic_mpps; /* 0: that of offload_costs.h */
	uint64_t seed;
};

struct offload_way {
	const char *name;
	enum fig_device device;
	uint32_t engines, depth, batch; /* 0: the default */
	bool is_warm;			/* the caller pays for code alone */
	struct fig_program program;
};

/* Spot engines with eight processors, the switch's program, and the same as
 * the paper has it: each request is fetched, and told, by itself. */
extern const struct offload_way offload_cow_8, offload_p4, offload_p4_each;

/* ---- offload_app.c ------------------------------------------------------ */

enum {
	OFFLOAD_PROBE_FAR_PPM = 950000,
};

/* Hash probes. */
void offload_app_probe(struct fig_config *c);
/* The hybrid-log store, YCSB-C, and with keys that are all as likely. */
void offload_app_store(struct fig_config *c);
void offload_app_store_uniform(struct fig_config *c);
/* Nothing but requests, in bursts. */
void offload_app_none(struct fig_config *c);
/* Reads of small objects, without pause. */
void offload_app_objects(struct fig_config *c);

/* ---- points ------------------------------------------------------------- */

/* Adds a point; x is the threads', unless the caller sets another. */
struct offload_row *offload_plan_add(struct figure_run *r, uint32_t bytes,
				     uint32_t threads,
				     const struct offload_way *w,
				     void (*app)(struct fig_config *c));

/* offload_claims.c: judges the figures that are not about the switch alone. */
void offload_judge(struct figure_run *r);

/* offload_switch.c: about the engine in the switch alone. */
int offload_plan_14(struct figure_run *r) MUST_CHECK;
int offload_plan_options(struct figure_run *r) MUST_CHECK;
int offload_plan_table5(struct figure_run *r) MUST_CHECK;
void offload_judge_14(struct figure_run *r);
void offload_judge_table5(struct figure_run *r);
extern const struct figure_column offload_table5_columns[],
	offload_option_columns[], offload_tcp_columns[];

#endif
