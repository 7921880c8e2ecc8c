/* SPDX-License-Identifier: Apache-2.0 */
/* What `aquifer top` shows, as one tree: per second, from two samples. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_top.h"

enum {
	ASK_MS = 500,
};

static void set_rate(json_t *row, const char *key, uint64_t count,
		     uint64_t interval_ns)
{
	double rate =
		interval_ns ? (double)count * 1e9 / (double)interval_ns : 0;

	(void)json_object_set_new(row, key, json_real(rate));
}

static void set_number(json_t *row, const char *key, uint64_t value)
{
	(void)json_object_set_new(row, key, json_integer((json_int_t)value));
}

/* ---- clients ------------------------------------------------------------- */

static void set_line(json_t *row, const struct cli_top_line *l, uint64_t ns)
{
	char key[32];

	set_rate(row, "operations_per_s", l->operations, ns);
	for (unsigned i = 0; i < TALLY_COUNT; i++) {
		snprintf(key, sizeof(key), "%s_per_s",
			 tally_count_name((enum tally_count)i));
		set_rate(row, key, l->count[i], ns);
	}
	set_number(row, "latency_p50_ns",
		   hist_percentile(&l->latency, HIST_MEDIAN));
	set_number(row, "latency_p99_ns",
		   hist_percentile(&l->latency, HIST_P99));
}

/* A row for each line, with what its clients have in common. */
static json_t *rows_of(const struct cli_top_sample *d, cli_top_same_fn is_same)
{
	bool by_client = is_same == cli_top_same_client;
	bool by_object = by_client || is_same == cli_top_same_object;
	json_t *rows = json_array();
	struct cli_top_line l;
	unsigned cursor = 0;

	while (cli_top_line_next(d, is_same, &cursor, &l)) {
		json_t *row = json_object();

		if (by_client) {
			set_number(row, "pid", l.first->pid);
			cli_report_set(row, "name", "%s", l.first->process);
		} else {
			set_number(row, "clients", l.clients);
		}
		if (by_object || is_same == cli_top_same_kind)
			cli_report_set(row, "kind", "%s",
				       tally_kind_name(l.first->kind));
		if (by_object)
			cli_report_set(row, "object", "%s", l.first->object);
		if (by_object || is_same == cli_top_same_tenant)
			cli_report_set(row, "tenant", "%s", l.first->tenant);
		set_line(row, &l, d->at_ns);
		(void)json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *total_of(const struct cli_top_sample *d)
{
	struct cli_top_line l = {0};
	json_t *row = json_object();
	unsigned cursor = 0;

	(void)cli_top_line_next(d, cli_top_same_all, &cursor, &l);
	set_line(row, &l, d->at_ns);
	return row;
}

json_t *cli_top_clients(const char *rundir)
{
	struct cli_top_sample *s = calloc(1, sizeof(*s));
	json_t *rows = json_array();
	struct cli_top_line l;
	unsigned cursor = 0;

	if (!s)
		return rows;
	cli_top_take(rundir, s);
	while (cli_top_line_next(s, cli_top_same_client, &cursor, &l)) {
		/* Threads of one process are one client. */
		json_t *row = json_object();

		set_number(row, "pid", l.first->pid);
		cli_report_set(row, "name", "%s", l.first->process);
		cli_report_set(row, "kind", "%s",
			       tally_kind_name(l.first->kind));
		cli_report_set(row, "object", "%s", l.first->object);
		cli_report_set(row, "tenant", "%s", l.first->tenant);
		(void)json_array_append_new(rows, row);
	}
	cli_top_release(s);
	free(s);
	return rows;
}

/* ---- switches, engines, nodes -------------------------------------------- */

static json_t *switch_row(const struct cli_top_process *p, uint64_t ns)
{
	json_t *row = json_object();

	set_number(row, "pid", p->pid);
	cli_report_set(row, "name", "%s", p->name);
	set_rate(row, "frames_per_s", p->frames, ns);
	set_rate(row, "forwarded_per_s", p->forwarded, ns);
	set_rate(row, "program_drops_per_s", p->program_drops, ns);
	set_rate(row, "program_frames_per_s", p->program_frames, ns);
	return row;
}

static json_t *engine_row(const struct cli_top_process *p, uint64_t ns)
{
	json_t *row = json_object();

	set_number(row, "pid", p->pid);
	cli_report_set(row, "name", "%s", p->name);
	set_number(row, "sessions", p->sessions);
	set_rate(row, "reads_per_s", p->reads, ns);
	set_rate(row, "writes_per_s", p->writes, ns);
	set_rate(row, "errors_per_s", p->errors, ns);
	set_rate(row, "read_bytes_per_s", p->read_bytes, ns);
	set_rate(row, "write_bytes_per_s", p->write_bytes, ns);
	set_rate(row, "probes_per_s", p->probes, ns);
	set_rate(row, "publications_per_s", p->publications, ns);
	return row;
}

static json_t *node_row(const struct cli_rack *rack,
			const struct client_node *node,
			const struct cli_top_sample *d)
{
	json_t *row = json_object(), *status = NULL;
	struct cli_proc proc = {0};
	bool is_up = cli_rack_ask(rack, node, ASK_MS, &status) == 0;
	unsigned i;

	cli_report_set(row, "name", "%s", node->name);
	cli_report_set(row, "state", "%s", is_up ? "up" : "down");
	if (is_up) {
		(void)json_object_update(row, json_object_get(status, "pool"));
		(void)json_object_set(row, "connections",
				      json_object_get(status, "connections"));
		(void)json_object_set(row, "regions",
				      json_object_get(status, "regions"));
		json_decref(status);
	}
	if (cli_proc_find(rack->rundir, node->name, &proc))
		return row;
	(void)json_object_set_new(row, "pid", json_integer(proc.pid));
	for (i = 0; i < d->process_count; i++) {
		const struct cli_top_process *p = &d->process[i];

		if (p->pid != (uint64_t)proc.pid)
			continue;
		set_rate(row, "rx_bytes_per_s", p->rx_bytes, d->at_ns);
		set_rate(row, "tx_bytes_per_s", p->tx_bytes, d->at_ns);
		set_rate(row, "rx_frames_per_s", p->rx_frames, d->at_ns);
	}
	return row;
}

json_t *cli_top_describe(struct cli_rack *rack, const struct cli_top_sample *d)
{
	json_t *tree = json_object(), *nodes = json_array();
	json_t *switches = json_array(), *engines = json_array();
	unsigned i;

	cli_rack_scan(rack);
	for (i = 0; i < rack->node_count; i++)
		(void)json_array_append_new(nodes,
					    node_row(rack, &rack->node[i], d));
	for (i = 0; i < d->process_count; i++) {
		const struct cli_top_process *p = &d->process[i];

		if (p->is_switch)
			(void)json_array_append_new(switches,
						    switch_row(p, d->at_ns));
		if (p->is_engine)
			(void)json_array_append_new(engines,
						    engine_row(p, d->at_ns));
	}
	cli_report_set(tree, "rack", "%s", rack->name);
	(void)json_object_set_new(tree, "interval_s",
				  json_real((double)d->at_ns / 1e9));
	(void)json_object_set_new(tree, "total", total_of(d));
	(void)json_object_set_new(tree, "nodes", nodes);
	(void)json_object_set_new(tree, "switches", switches);
	(void)json_object_set_new(tree, "engines", engines);
	(void)json_object_set_new(tree, "caches", cli_top_caches(d, &d->at_ns));
	(void)json_object_set_new(tree, "kinds", rows_of(d, cli_top_same_kind));
	(void)json_object_set_new(tree, "objects",
				  rows_of(d, cli_top_same_object));
	(void)json_object_set_new(tree, "tenants",
				  rows_of(d, cli_top_same_tenant));
	(void)json_object_set_new(tree, "clients",
				  rows_of(d, cli_top_same_client));
	return tree;
}
