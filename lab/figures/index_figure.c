/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the two indexes that are shipped, the version list and the ordered
 * index, from one client to as many as a rack has. With hundreds of clients
 * they stand beside the table among its figures.
 */
#include "kv_rows.h"
#include "sim/sim.h"

enum {
	PAIRS = 20000, /* loaded one after another, so not many */
};

/* One client alone does some hundred operations in it, and as many before that,
 * until it has its memory. */
#define SPAN_PS (1000 * SIM_US)
#define WARM_PS SPAN_PS

static int plan(struct figure_run *r, uint32_t read_ppm)
{
	static const enum kv_fig_store stores[] = {KV_FIG_VLIST, KV_FIG_TREE,
						   KV_FIG_TREE8};
	static const uint32_t clients[] = {1, 8, 24};
	struct kv_fig_config c = {.read_ppm = read_ppm,
				  .capacity = PAIRS,
				  .warm_ps = WARM_PS,
				  .span_ps = SPAN_PS};

	for (unsigned i = 0; i < ARRAY_LEN(stores); i++) {
		c.store = stores[i];
		kv_rows_line(r, NULL, kv_fig_store_name(c.store), &c,
			     &c.clients, 1, clients, ARRAY_LEN(clients), 2);
	}
	return 0;
}

static int plan_a(struct figure_run *r)
{
	return plan(r, READS_A);
}

static int plan_b(struct figure_run *r)
{
	return plan(r, READS_B);
}

static int plan_c(struct figure_run *r)
{
	return plan(r, READS_C);
}

static const struct figure figures[] = {
	{"ycsb-a", "YCSB-A, half of it changes", "clients", 0, "mops", plan_a,
	 NULL, NULL},
	{"ycsb-b", "YCSB-B, 5 % of it changes", "clients", 0, "mops", plan_b,
	 NULL, NULL},
	{"ycsb-c", "YCSB-C, reads alone", "clients", 0, "mops", plan_c, NULL,
	 NULL},
	{.name = NULL},
};

const struct figure_system index_figures = {
	.name = "index",
	.source = "none: Clover (ATC 2020) and Sherman (SIGMOD 2022), after "
		  "which they are made, ran on other machines",
	.summary = "The shipped indexes on the costs of hardware (aquifer sim "
		   "nic-model): the version\nlist without a switch, and the "
		   "ordered index on one memory node and on eight.",
	.figures = figures,
	.columns = kv_rows_columns,
	.options = kv_rows_options,
	.defaults = &kv_rows_defaults.f,
	.options_bytes = sizeof(kv_rows_defaults),
	.row_bytes = sizeof(struct kv_row),
	.run = figure_points_run,
	.point = kv_rows_point,
	.result_at = offsetof(struct kv_row, res),
	.result_bytes = sizeof(struct kv_fig_result),
};
