/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What concerns the engine in the switch alone: TCP beside it (figure 14), what
 * its program would cost a pipeline (table 5), and, not in the paper, what its
 * options do. All of that is about wires and switches under load, so callers
 * pay for their code alone and ask as much as they can.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "offload_costs.h"
#include "offload_plan.h"
#include "rig/tor_net.h"
#include "sim/net.h"
#include "sim/sim.h"
#include "switch/tor_program.h"

enum {
	BYTES = 64,
	THREADS = 16,
	TCP_BYTES = 512,
};

/* A window of TCP is 200 us: it must be over before anything is measured. */
#define TCP_WARM_PS   (500 * SIM_US)
#define TCP_SPAN_PS   (500 * SIM_US)
#define WRITE_WARM_PS (600 * SIM_US)

static void app_warm(struct fig_config *c)
{
	offload_app_store(c);
	c->is_warm = true;
}

/* ---- figure 14 ---------------------------------------------------------- */

static const struct network {
	const char *name;
	bool rdma_first, has_limit, is_fast, acks_first;
} networks[] = {
	{"first come", false, false, false, false},
	{"RDMA first", true, false, false, false},
	{"NIC limit", false, true, false, false},
	/* What the paper had. */
	{"both", true, true, false, false},
	/* A store as fast as ours, which fills the wire; and whether what TCP
	 * loses then are its acknowledgements. */
	{"RDMA first, fast", true, false, true, false},
	{"the same, ACKs too", true, false, true, true},
};

int offload_plan_14(struct figure_run *r)
{
	static const struct offload_way alone = {.name = "alone",
						 .device = FIG_LOCAL};
	static const struct offload_way *const ways[] = {
		&alone, &offload_cow_8, &offload_p4, &offload_p4_each};
	static const uint32_t threads[] = {1, 2, 4, 8};
	const struct offload_figure_options *o =
		(const struct offload_figure_options *)r->options;
	unsigned points = ARRAY_LEN(threads) * ARRAY_LEN(ways);
	uint64_t mpps = o->nic_mpps ? o->nic_mpps : offload_costs.nic_mpps;

	for (unsigned i = 0; i < ARRAY_LEN(networks) * points; i++) {
		const struct network *n = &networks[i / points];
		struct offload_row *row = offload_plan_add(
			r, TCP_BYTES,
			threads[i / ARRAY_LEN(ways) % ARRAY_LEN(threads)],
			ways[i % ARRAY_LEN(ways)], app_warm);

		row->p.panel = row->network = n->name;
		row->cfg.tcp = true;
		if (!n->is_fast)
			row->cfg.app_ps = offload_costs.store_paper_ps;
		row->cfg.rdma_first = n->rdma_first;
		row->cfg.acks_first = n->acks_first;
		row->cfg.nic_mpps = n->has_limit ? (uint32_t)mpps : 0;
		row->cfg.warm_ps = TCP_WARM_PS / (o->f.quick ? 4 : 1);
		row->cfg.span_ps = TCP_SPAN_PS / (o->f.quick ? 8 : 1);
	}
	return 0;
}

/* Percent of what TCP has alone, worst over all threads. */
static double tcp_lost(const struct figure_run *r, const char *network,
		       const char *way)
{
	double worst = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *x = figure_row(r, i), *alone;

		if (strcmp(x->network, network) != 0 ||
		    strcmp(x->p.series, way) != 0 || x->p.err)
			continue;
		alone = figure_find(r, network, "alone", x->p.x);
		if (alone)
			worst = fmax(worst,
				     100 * (1 - x->res.tcp_gbps /
							alone->res.tcp_gbps));
	}
	return worst;
}

void offload_judge_14(struct figure_run *r)
{
	static const struct {
		const char *way, *what;
		double most;
	} ways[] = {
		{"cow-8", "TCP bandwidth lost beside the spot engine, worst",
		 3},
		{"p4", "the same beside the switch", 30},
		{"p4-each", "the same beside the switch as the paper has it",
		 30},
	};

	for (unsigned i = 0; i < ARRAY_LEN(networks); i++)
		for (unsigned k = 0; k < ARRAY_LEN(ways); k++) {
			/* Both are what the paper had. */
			bool is_asked =
				networks[i].rdma_first && networks[i].has_limit;
			struct figure_claim c = {
				.what = ways[k].what,
				.published = is_asked ? ways[k].most : 0,
				.most = is_asked ? ways[k].most : 0,
				.unit = "%",
				.note = networks[i].name};

			figure_claim_add(
				r, &c,
				tcp_lost(r, networks[i].name, ways[k].way));
		}
}

/* ---- table 5 ------------------------------------------------------------ */

static void add_tables(struct figure_run *r, const struct tor *tor,
		       const char *program)
{
	struct tor_table table[TOR_TABLE_MAX];
	unsigned n = tor_program_tables(tor, program, table);

	for (unsigned i = 0; i < n; i++) {
		struct offload_row *row =
			figure_add(r, NULL, program, (double)r->count);

		row->p.x_name = table[i].name;
		row->table = (struct offload_table){
			.name = table[i].name,
			.kind = tor_table_kind(&table[i]),
			.entries = table[i].entries,
			.bits = table[i].key_bits + table[i].value_bits,
			.stages = table[i].stages,
			.kib = (double)tor_table_bits(&table[i]) / 8 / 1024};
	}
}

int offload_plan_table5(struct figure_run *r)
{
	struct rig_tor_config cfg = {.programs = {"cowbird"},
				     .program_count = 1};
	struct rig_tor *tor = NULL;
	struct sim_net *net = NULL;
	struct sim *sim = NULL;
	int err = sim_create(1, &sim);

	if (!err)
		err = sim_net_create(sim, &net);
	if (!err)
		err = rig_tor_create(net, &cfg, &tor);
	if (!err) {
		add_tables(r, rig_tor_get(tor), "forward");
		add_tables(r, rig_tor_get(tor), "cowbird");
	}
	rig_tor_destroy(tor);
	sim_net_destroy(net);
	sim_destroy(sim);
	/* For the recirculations. */
	if (!err) {
		offload_plan_add(r, BYTES, THREADS, &offload_p4, app_warm);
		offload_plan_add(r, BYTES, THREADS, &offload_p4_each, app_warm);
	}
	return err;
}

/* What a compiler would have to say (PHV, instructions, stateful ALUs) is no
 * claim, nor is TCAM, of which programs with exact matches have none. */
void offload_judge_table5(struct figure_run *r)
{
	static const struct figure_claim sram = {
		.what = "SRAM",
		.published = 1424,
		.most = 1424,
		.unit = "KiB",
		.note = "64 sessions, 15 nodes, 1,024 requests each"};
	static const struct figure_claim stages = {
		.what = "stages",
		.published = 12,
		.most = 12,
		.unit = "",
		.note = "ours: lookups one behind the other"};
	/* The paper has none; a hundredth stands for it. */
	static const struct figure_claim rounds = {
		.what = "recirculations per request",
		.most = 0.01,
		.unit = "",
		.note = "the paper: none"};
	static const struct figure_claim rounds_each = {
		.what = "recirculations per request, fetch=1 tell=1",
		.most = 0.01,
		.unit = "",
		.note = "the paper: none"};
	double kib = 0, lookups = 0;

	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *x = figure_row(r, i);

		kib += x->table.kib;
		lookups += x->table.stages;
	}
	figure_claim_add(r, &sram, kib);
	figure_claim_add(r, &stages, lookups);
	for (size_t i = 0; i < r->count; i++) {
		const struct offload_row *x = figure_row(r, i);

		if (!x->table.name && !x->p.err)
			figure_claim_add(r,
					 x->cfg.program.fetch ? &rounds_each
							      : &rounds,
					 x->res.recirculated);
	}
}

#define C(member, name, decimals) \
	FIGURE_COLUMN(struct offload_row, member, name, decimals)

const struct figure_column offload_table5_columns[] = {
	C(p.series, "program", 0),
	C(table.name, "table", 0),
	C(table.kind, "kind", 0),
	C(table.entries, "entries", 0),
	C(table.bits, "bits", 0),
	C(table.stages, "stages", 0),
	C(table.kib, "kib", 1),
	C(res.recirculated, "recirculated", 2),
	C(res.program_packets, "program_packets", 2),
	{.name = NULL},
};

/* ---- options ------------------------------------------------------------ */

static void app_mixed(struct fig_config *c)
{
	app_warm(c);
	c->warm_ps += WRITE_WARM_PS;
}

static void add_option(struct figure_run *r, const char *panel, double x,
		       const struct fig_program *program)
{
	struct offload_row *row =
		offload_plan_add(r, BYTES, THREADS, &offload_p4, app_warm);

	row->p.panel = row->network = panel;
	row->p.x = x;
	row->cfg.program = *program;
}

static void add_mixed(struct figure_run *r, const char *series,
		      const struct offload_way *w, uint32_t percent,
		      bool no_filter)
{
	struct offload_row *row =
		offload_plan_add(r, BYTES, THREADS, w, app_mixed);

	snprintf(row->p.series, sizeof(row->p.series), "%s", series);
	row->p.panel = row->network = "writes, %";
	row->p.x = percent;
	row->cfg.write_ppm = 10000 * percent;
	row->cfg.program.no_filter = no_filter;
}

int offload_plan_options(struct figure_run *r)
{
	static const uint32_t tell[] = {1, 4, 32}, fetch[] = {1, 8, 42},
			      probe[] = {1, 2, 10, 100}, writes[] = {5, 50};

	for (unsigned i = 0; i < ARRAY_LEN(tell); i++)
		add_option(r, "tell", tell[i],
			   &(struct fig_program){.tell = tell[i]});
	for (unsigned i = 0; i < ARRAY_LEN(fetch); i++)
		add_option(r, "fetch", fetch[i],
			   &(struct fig_program){.fetch = fetch[i]});
	for (unsigned i = 0; i < ARRAY_LEN(probe); i++)
		add_option(r, "probe_us", probe[i],
			   &(struct fig_program){.probe_us = probe[i]});
	for (unsigned i = 0; i < ARRAY_LEN(writes); i++) {
		add_mixed(r, "filter=off", &offload_p4, writes[i], true);
		add_mixed(r, "filter=on", &offload_p4, writes[i], false);
		add_mixed(r, "cow-8", &offload_cow_8, writes[i], false);
	}
	return 0;
}

const struct figure_column offload_option_columns[] = {
	C(network, "option", 0),
	C(p.x, "value", 0),
	C(p.series, "way", 0),
	C(res.mops, "mops", 2),
	C(res.p50_us, "p50_us", 2),
	C(res.p99_us, "p99_us", 2),
	C(res.nic_packets, "nic_packets", 2),
	C(res.program_packets, "program_packets", 2),
	C(res.told, "told", 2),
	C(res.recirculated, "recirculated", 2),
	C(res.probes_per_us, "probes_per_us", 2),
	{.name = NULL},
};

const struct figure_column offload_tcp_columns[] = {
	C(network, "network", 0),
	C(cfg.threads, "threads", 0),
	C(p.series, "way", 0),
	C(res.tcp_gbps, "tcp_gbps", 2),
	C(res.mops, "mops", 2),
	C(res.p50_us, "p50_us", 2),
	C(res.nic_packets, "nic_packets", 2),
	{.name = NULL},
};
