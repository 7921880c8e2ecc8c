/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paper's figures as grids of points: record sizes by thread counts by ways
 * to read, with the paper's claims beside what came out.
 */
#ifndef AQ_SCENARIO_OFFLOAD_FIGURE_H
#define AQ_SCENARIO_OFFLOAD_FIGURE_H

#include "fig.h"

enum {
	FIGURE_SIZES_MAX = 6,
	FIGURE_THREADS_MAX = 6,
	FIGURE_COLUMNS_MAX = 8,
	FIGURE_CLAIMS_MAX = 8,
};

enum figure_kind {
	FIGURE_MOPS,
	FIGURE_LATENCY, /* median and p99 */
	FIGURE_TCP,	/* what the TCP flows get, beside Mops */
};

struct figure_column {
	const char *name;
	enum fig_device device;
	uint32_t engines;
	uint32_t depth; /* 0: the default */
	uint32_t batch; /* the engine's; 0: the default */
	bool is_idle;	/* TCP alone */
};

struct figure;
struct figure_grid;

struct figure_claim {
	char what[96];
	double paper;
	double ours;
	const char *unit;
	bool at_most; /* the paper says at most, else at least */
	char note[96];
};

struct figure {
	const char *name;
	const char *what;
	enum figure_kind kind;
	uint32_t bytes[FIGURE_SIZES_MAX];		 /* ends with 0 */
	uint32_t threads[FIGURE_THREADS_MAX];		 /* ends with 0 */
	struct figure_column column[FIGURE_COLUMNS_MAX]; /* name NULL: end */
	/* The application: what it does per request, and how often far away. */
	void (*app)(uint32_t bytes, struct fig_config *cfg);
	unsigned (*claims)(const struct figure_grid *g,
			   struct figure_claim *claim);
};

extern const struct figure offload_figures[]; /* ends with name NULL */

struct figure_grid {
	const struct figure *figure;
	uint64_t client_ps; /* as in struct fig_config */
	unsigned sizes, threads, columns;
	struct fig_result point[FIGURE_SIZES_MAX * FIGURE_THREADS_MAX *
				FIGURE_COLUMNS_MAX];
	unsigned claim_count;
	struct figure_claim claim[FIGURE_CLAIMS_MAX];
};

static inline const struct fig_result *figure_point(const struct figure_grid *g,
						    unsigned size,
						    unsigned thread,
						    unsigned column)
{
	return &g->point[(size * g->threads + thread) * g->columns + column];
}

/* NULL: there is none of that name. */
const struct figure *offload_figure_find(const char *name);
/* All its points, in `jobs` processes; error_last() has words. client_ps: the
 * caller's cost of an issue and a poll if it is to be more than measured. */
int offload_figure_run(const struct figure *f, unsigned jobs,
		       uint64_t client_ps, struct figure_grid *out) MUST_CHECK;

/* ---- offload_table.c ---------------------------------------------------- */

void offload_figure_print(const struct figure_grid *g);
int offload_figure_json(const struct figure_grid *g) MUST_CHECK;
/* The constants of offload_costs.h and their sources. */
void offload_costs_print(void);

#endif
