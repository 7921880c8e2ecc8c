/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures that shipped code makes on the host cost model: their rows.
 * report/figure.h says how to add one.
 */
#ifndef AQ_FIGURES_H
#define AQ_FIGURES_H

#include "base/opt.h"
#include "commands.h"
#include "fig.h"
#include "kv_fig.h"
#include "mfig.h"
#include "model_check.h"
#include "paging.h"
#include "report/figure.h"
#include "vfig.h"
#include "wfig.h"

/* Cowbird (SIGCOMM 2023). */
struct offload_row {
	struct figure_point p;
	struct fig_config cfg;
	uint32_t engines; /* as the figure names them; 0: it has none */
	const char *device;
	const char *network; /* figure 14: what is switched on */
	double of_local;     /* its rate beside local memory's */
	struct offload_table {
		const char *name, *kind; /* NULL: the row is a run */
		uint64_t entries, bits;	 /* of each */
		uint32_t stages;
		double kib;
	} table;
	struct fig_result res;
};

/* RCuckoo, by the dissertation that it is chapter 3 of. */
struct kv_row {
	struct figure_point p;
	struct kv_fig_config cfg;
	struct kv_fig_result res;
};

/* SwordBox, chapter 2 of the same. */
struct vfig_row {
	struct figure_point p;
	struct vfig_config cfg;
	const char *steering;
	uint32_t keys; /* steered ones, or all */
	double theta;
	struct vfig_result res;
	/* Per finished operation. */
	struct {
#define VFIG_PER_OP(name, help) double name;
		VLIST_STATS(VFIG_PER_OP)
#undef VFIG_PER_OP
	} work;
	double steer[VFIG_STEER_COUNTS];
};

/* ODRP (NSDI 2025). */
struct paging_row {
	struct figure_point p;
	const char *mode;
	struct paging_config cfg;
	struct paging_result res;
};

/* PULSE (ASPLOS 2025). */
struct wfig_row {
	struct figure_point p;
	const char *app, *system, *place, *dist;
	uint32_t nodes;	   /* of memory */
	double granule_mb; /* as it would be of 32 GB */
	bool is_run;	   /* on the network; else a sample of requests */
	struct wfig_config cfg;
	struct wfig_result res;
};

/* MIND (SOSP 2021). */
struct mfig_row {
	struct figure_point p;
	const char *work, *system;
	bool is_rules; /* tables only, no run */
	enum mfig_placement placement;
	struct mfig_config cfg;
	struct mfig_result res;
	struct mfig_rules rules;
};

/* The host cost model itself. */
struct model_figure_row {
	struct figure_point p;
	struct model_row row;
	double ratio;
	bool holds;
	const char *verdict;
};

/* What a model's numbers are and where they come from; j NULL: as a table. */
struct json_out;
void model_constants_print(const struct model_constant *rows, size_t count,
			   struct json_out *j);

/* Runs the points of a figure in processes of their own, because a run sets the
 * process's verbs provider: `run` of all these systems. */
int figure_points_run(struct figure_run *r) MUST_CHECK;

#endif
