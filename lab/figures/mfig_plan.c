/* SPDX-License-Identifier: Apache-2.0 */
/* The points of MIND's figures. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "figures.h"
#include "mfig_costs.h"
#include "mfig_plan.h"

static const enum mfig_work apps[] = {MFIG_TF, MFIG_GC, MFIG_MA, MFIG_MC};

/* Work of a point: enough for some epochs and for tens of thousands of gets. */
static uint64_t units_of(enum mfig_work work)
{
	switch (work) {
	case MFIG_TF: /* tenths of images by pages: two batches both ways */
		return 2 * 2 * mfig_costs.batch * 10 *
		       (mfig_costs.weights_bytes / mfig_costs.scale / 4096);
	case MFIG_GC:
		return 400000;
	case MFIG_MA:
	case MFIG_MC:
		return 12000;
	case MFIG_KVS_A:
	case MFIG_KVS_C:
		return 40000;
	case MFIG_UNIFORM:
	case MFIG_WORKS:
		break;
	}
	return 12000;
}

static struct mfig_row *add(struct figure_run *r, const char *panel,
			    const char *series, double x, enum mfig_work work)
{
	struct mfig_row *row = figure_add(r, panel, series, x);

	mfig_config_init(&row->cfg, work);
	row->cfg.seed = ((const struct mfig_figure_options *)r->options)->seed;
	row->cfg.units = units_of(work) / (r->options->quick ? 20 : 1);
	row->work = mfig_work_names[work];
	return row;
}

static struct mfig_row *add_system(struct figure_run *r, double x,
				   enum mfig_work work, enum mfig_system system,
				   uint32_t machines, uint32_t threads)
{
	char series[FIGURE_SERIES_MAX];
	struct mfig_row *row;

	snprintf(series, sizeof(series), "%s %s", mfig_work_names[work],
		 mfig_system_names[system]);
	row = add(r, mfig_work_names[work], series, x, work);
	row->cfg.system = system;
	row->cfg.machines = machines;
	row->cfg.threads = threads;
	row->system = mfig_system_names[system];
	return row;
}

/* 6 left. */
int mfig_plan_threads(struct figure_run *r)
{
	static const enum mfig_system systems[] = {MFIG_MIND, MFIG_SWAP,
						   MFIG_GAM};
	static const uint32_t threads[] = {1, 2, 4, 10};

	for (size_t w = 0; w < ARRAY_LEN(apps); w++)
		for (size_t s = 0; s < ARRAY_LEN(systems); s++)
			for (size_t i = 0; i < ARRAY_LEN(threads); i++)
				(void)add_system(r, threads[i], apps[w],
						 systems[s], 1, threads[i]);
	return 0;
}

/* 6 centre. */
int mfig_plan_machines(struct figure_run *r)
{
	static const enum mfig_system systems[] = {
		MFIG_MIND, MFIG_PSO, MFIG_PSO_PLUS, MFIG_GAM, MFIG_AT_NODE};
	static const uint32_t machines[] = {1, 2, 4, 8};

	for (size_t w = 0; w < ARRAY_LEN(apps); w++)
		for (size_t s = 0; s < ARRAY_LEN(systems); s++)
			for (size_t i = 0; i < ARRAY_LEN(machines); i++)
				(void)add_system(r, machines[i], apps[w],
						 systems[s], machines[i], 10);
	return 0;
}

/* 6 right. */
int mfig_plan_kvs(struct figure_run *r)
{
	static const uint32_t machines[] = {1, 2, 4, 8};

	for (unsigned w = MFIG_KVS_A; w <= MFIG_KVS_C; w++)
		for (size_t i = 0; i < ARRAY_LEN(machines); i++)
			(void)add_system(r, 10 * machines[i], (enum mfig_work)w,
					 MFIG_MIND, machines[i], 10);
	return 0;
}

/* 7 left: two machines, and for sharers eight. An idle NIC of the cost model
 * stalls at its first access, and who waits for seven waits for the longest. */
static void add_transition(struct figure_run *r, const char *series,
			   enum mfig_transition transition, uint32_t machines)
{
	struct mfig_row *row = add(r, NULL, series, transition, MFIG_UNIFORM);

	row->p.x_name = mfig_transition_names[transition];
	row->cfg.transition = transition;
	row->cfg.threads = 1;
	row->cfg.machines = machines;
	row->cfg.has_no_stalls = !strcmp(series, "no stalls");
	if (!strcmp(series, mfig_system_names[MFIG_AT_NODE]))
		row->cfg.system = MFIG_AT_NODE;
}

int mfig_plan_transitions(struct figure_run *r)
{
	static const char *const series[] = {"MIND", "no stalls", "at node"};

	for (size_t s = 0; s < ARRAY_LEN(series); s++)
		for (unsigned i = MFIG_I_S; i < MFIG_TRANSITIONS; i++)
			add_transition(r, series[s], (enum mfig_transition)i,
				       i == MFIG_S7_M ? MFIG_MACHINES_MAX : 2);
	return 0;
}

/* 7 right: 400,000 pages, of which a cache has a third. */
int mfig_plan_sharing(struct figure_run *r)
{
	for (uint32_t read = 0; read <= 100; read += 25)
		for (uint32_t share = 0; share <= 100; share += 25) {
			char series[FIGURE_SERIES_MAX];
			struct mfig_row *row;
			uint32_t part;

			snprintf(series, sizeof(series), "%u %% reads", read);
			row = add(r, NULL, series, share, MFIG_UNIFORM);
			/* Whole megabytes, as they lie on memory nodes. */
			part = (uint32_t)(mfig_costs.uniform_pages /
					  mfig_costs.scale / 256) *
			       256;
			row->cfg.pages = part * (MFIG_MACHINES_MAX + 1);
			row->cfg.threads = 1;
			row->cfg.share_percent = share;
			row->cfg.read_percent = read;
			row->system = mfig_system_names[MFIG_MIND];
		}
	return 0;
}

/* 8 left. */
int mfig_plan_directory(struct figure_run *r)
{
	for (size_t w = 0; w < ARRAY_LEN(apps); w++)
		(void)add_system(r, 8, apps[w], MFIG_MIND, 8, 10);
	return 0;
}

/* 8 centre and right. */
int mfig_plan_rules(struct figure_run *r)
{
	static const enum mfig_work works[] = {MFIG_TF, MFIG_GC, MFIG_MA};

	for (size_t w = 0; w < ARRAY_LEN(works); w++)
		for (unsigned p = 0; p < MFIG_PLACEMENTS; p++)
			for (uint32_t threads = 10; threads <= 80;
			     threads *= 2) {
				char series[FIGURE_SERIES_MAX];
				struct mfig_row *row;

				snprintf(series, sizeof(series), "%s %s",
					 works[w] == MFIG_MA
						 ? "M"
						 : mfig_work_names[works[w]],
					 mfig_placement_names[p]);
				row = add(r, NULL, series, threads, works[w]);
				row->is_rules = true;
				row->placement = (enum mfig_placement)p;
				row->system = mfig_placement_names[p];
			}
	return 0;
}

/* 9 left: one size, or splitting from that size on. */
static void add_splitting(struct figure_run *r, enum mfig_work work,
			  uint32_t pages, bool is_static)
{
	char series[FIGURE_SERIES_MAX];
	struct mfig_row *row;

	snprintf(series, sizeof(series), "%s %s", mfig_work_names[work],
		 is_static ? "static" : "dynamic");
	row = add(r, mfig_work_names[work], series, pages * 4, work);
	row->cfg.region_pages = pages;
	row->cfg.is_static = is_static;
	row->system = is_static ? "static" : "dynamic";
}

int mfig_plan_splitting(struct figure_run *r)
{
	static const uint32_t pages[] = {4, 16, 64, 256, 512};

	for (size_t w = 0; w < 2; w++) {
		for (size_t i = 0; i < ARRAY_LEN(pages); i++)
			add_splitting(r, apps[w], pages[i], true);
		add_splitting(r, apps[w], 4, false);
		add_splitting(r, apps[w], 512, false);
	}
	return 0;
}

/* 9 right. */
int mfig_plan_epochs(struct figure_run *r)
{
	static const uint32_t epochs[] = {1, 3, 10, 30};

	for (size_t w = 0; w < 2; w++)
		for (size_t i = 0; i < ARRAY_LEN(epochs); i++) {
			struct mfig_row *row = add(r, mfig_work_names[apps[w]],
						   mfig_work_names[apps[w]],
						   epochs[i], apps[w]);

			row->cfg.epoch_ms = epochs[i];
			row->system = "dynamic";
		}
	return 0;
}

int mfig_point(void *row)
{
	struct mfig_row *x = row;

	if (!x->is_rules)
		return mfig_run(&x->cfg, &x->res);
	return mfig_rules_run(x->cfg.work, x->placement, (uint32_t)x->p.x,
			      x->cfg.seed, &x->rules);
}

const char *mfig_wrong(const void *row)
{
	const struct mfig_row *x = row;

	return x->res.wrong ? "a load did not see the last store" : NULL;
}
