/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer status`: the nodes of the rack, their pools and regions, and the
 * engines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "cli_list.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"
#include "cli_status.h"
#include "cli_top.h"

enum {
	ASK_MS = 2000,
};

static uint64_t number(const json_t *object, const char *key)
{
	json_int_t n = json_integer_value(json_object_get(object, key));

	return n < 0 ? 0 : (uint64_t)n;
}

/* What is known about one node or engine; the answer's members are taken
 * over. */
static json_t *describe_node(const struct cli_rack *rack,
			     const struct client_node *node)
{
	static const char *const members[] = {
		"version",	"uptime_s",    "pool",	     "regions",
		"connections",	"tenants",     "proto",	     "sessions",
		"counters",	"incarnation", "direct_ops", "switch",
		"sessions_max", "shared",      "spill"};
	json_t *row = json_object(), *status = NULL;
	struct cli_proc proc;
	int err = cli_rack_ask(rack, node, ASK_MS, &status);
	size_t i;

	cli_report_set(row, "name", "%s", node->name);
	cli_report_set(row, "state", "%s", err ? "down" : "up");
	cli_report_set(row, "address", "%s", node->address);
	if (cli_proc_find(rack->rundir, node->name, &proc) == 0)
		(void)json_object_set_new(row, "pid", json_integer(proc.pid));
	if (err) {
		cli_report_set(row, "error", "%s", error_last());
		return row;
	}
	for (i = 0; i < ARRAY_LEN(members); i++) {
		json_t *v = json_object_get(status, members[i]);

		if (v)
			(void)json_object_set(row, members[i], v);
	}
	json_decref(status);
	return row;
}

static int add_region(const char *name, const struct aq_region_stat *stat,
		      void *user)
{
	char owner[CLI_LIST_OWNER_BYTES];
	json_t *row;

	if (cli_list_owner(name, owner)) /* which is listed instead */
		return 0;
	row = json_pack("{s:s, s:I, s:i, s:I}", "name", name, "size",
			(json_int_t)stat->size_bytes, "nodes", (int)stat->nodes,
			"stripe", (json_int_t)stat->stripe_bytes);
	if (stat->nodes_missing)
		(void)json_object_set_new(row, "nodes_missing",
					  json_integer(stat->nodes_missing));
	return json_array_append_new(user, row) ? -ENOMEM : 0;
}

/* How many clients of this machine there are of each kind; several things that
 * one process uses are several clients. */
static json_t *count_kinds(const char *rundir)
{
	json_t *clients = cli_top_clients(rundir), *kinds = json_object();
	const json_t *row;
	size_t i;

	json_array_foreach(clients, i, row)
	{
		const char *kind =
			json_string_value(json_object_get(row, "kind"));
		json_int_t n = json_integer_value(json_object_get(kinds, kind));

		(void)json_object_set_new(kinds, kind, json_integer(n + 1));
	}
	json_decref(clients);
	return kinds;
}

/* Regions, and what regions are parts of. Without a token, or without a node,
 * there is nothing to list. */
static void add_regions(json_t *tree)
{
	json_t *rows = json_array(), *tables = NULL, *indexes = NULL;
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (!err) {
		err = aq_rack_set_deadline(rack, ASK_MS);
		if (!err)
			err = aq_region_each(rack, add_region, rows);
		if (!err)
			err = cli_list_tables(rack, &tables);
		if (!err)
			err = cli_list_indexes(rack, &indexes);
		aq_rack_close(rack);
	}
	if (err)
		cli_report_set(tree, "regions_error", "%s", aq_last_error());
	(void)json_object_set_new(tree, "regions", rows);
	(void)json_object_set_new(tree, "tables",
				  tables ? tables : json_array());
	(void)json_object_set_new(tree, "indexes",
				  indexes ? indexes : json_array());
}

/* Switches and gateways, which only a controller knows of: nodes and engines
 * are asked themselves. */
static void add_others(const struct cli_rack *rack,
		       const struct client_node *control, json_t *tree)
{
	json_t *answer = NULL, *rows = json_array(), *row;
	int err = cli_rack_list(rack, control, "/v1/nodes", ASK_MS, &answer);
	size_t i;

	json_array_foreach(json_object_get(answer, "nodes"), i, row)
	{
		const char *kind =
			json_string_value(json_object_get(row, "kind"));

		if (kind && strcmp(kind, "memory") != 0 &&
		    strcmp(kind, "engine") != 0)
			(void)json_array_append(rows, row);
	}
	if (err)
		cli_report_set(tree, "others_error", "%s", error_last());
	(void)json_object_set_new(tree, "others", rows);
	if (!err)
		json_decref(answer);
}

/* The controller, where rack.control names one. False: it does not answer, or
 * none of them leads. */
static bool add_control(const struct cli_rack *rack, json_t *tree)
{
	struct client_node control;
	json_t *status = NULL;
	bool leads;
	int err;

	if (!rack->control_count)
		return true;
	err = cli_rack_control(rack, ASK_MS, &control, &status);
	if (err) {
		(void)json_object_set_new(tree, "controller",
					  json_pack("{s:s, s:s}", "state",
						    "down", "error",
						    error_last()));
		return false;
	}
	leads = json_is_true(json_object_get(status, "leads"));
	(void)json_object_set_new(status, "state", json_string("up"));
	(void)json_object_set_new(status, "address",
				  json_string(control.address));
	(void)json_object_set_new(tree, "controller", status);
	add_others(rack, &control, tree);
	return leads;
}

static json_t *collect(const struct cli_rack *rack, bool *all_up)
{
	json_t *tree = json_object(), *rows = json_array();
	json_t *engines = json_array();
	json_int_t size = 0, used = 0;
	unsigned i, up = 0, engines_up = 0;
	bool controlled = add_control(rack, tree);

	for (i = 0; i < rack->node_count; i++) {
		json_t *row = describe_node(rack, &rack->node[i]);
		json_t *pool = json_object_get(row, "pool");

		up += json_object_get(row, "error") == NULL;
		size += (json_int_t)number(pool, "size");
		used += (json_int_t)number(pool, "used");
		(void)json_array_append_new(rows, row);
	}
	for (i = 0; i < rack->engine_count; i++) {
		json_t *row = describe_node(rack, &rack->engine[i]);

		engines_up += json_object_get(row, "error") == NULL;
		(void)json_array_append_new(engines, row);
	}
	if (rack->node_count == 0 &&
	    client_nodes_none(rack->name, rack->rundir))
		cli_report_set(tree, "error", "%s", error_last());
	cli_report_set(tree, "rack", "%s", rack->name);
	cli_report_set(tree, "runtime_directory", "%s", rack->rundir);
	(void)json_object_set_new(tree, "nodes", rows);
	(void)json_object_set_new(tree, "engines", engines);
	(void)json_object_set_new(tree, "pool",
				  json_pack("{s:I, s:I, s:I}", "size", size,
					    "used", used, "free", size - used));
	/* Before this process is one itself. */
	(void)json_object_set_new(tree, "clients", count_kinds(rack->rundir));
	(void)json_object_set_new(tree, "caches",
				  cli_top_caches_of(rack->rundir));
	if (up)
		add_regions(tree);
	else
		(void)json_object_set_new(tree, "regions", json_array());
	*all_up = up > 0 && up == rack->node_count &&
		  engines_up == rack->engine_count && controlled;
	return tree;
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "-";
}

enum {
	CELL = 24,
};

/* A number of a row, or "-" where the node did not say it. */
static const char *cell(const json_t *row, const char *key, const char *unit,
			char out[CELL])
{
	if (!json_object_get(row, key))
		return "-";
	snprintf(out, CELL, "%" PRIu64 "%s", number(row, key), unit);
	return out;
}

static void print_nodes(const json_t *rows)
{
	char used[16], size[16];
	const json_t *row;
	size_t i;

	printf("%-16s %-6s %8s %8s %8s %12s %9s %8s\n", "NODE", "STATE", "USED",
	       "SIZE", "REGIONS", "CONNECTIONS", "UPTIME", "PID");
	json_array_foreach(rows, i, row)
	{
		const json_t *pool = json_object_get(row, "pool");
		char a[CELL], b[CELL], c[CELL], d[CELL];

		printf("%-16s %-6s %8s %8s %8s %12s %9s %8s\n",
		       text(row, "name"), text(row, "state"),
		       pool ? cli_rack_size(number(pool, "used"), used) : "-",
		       pool ? cli_rack_size(number(pool, "size"), size) : "-",
		       cell(row, "regions", "", a),
		       cell(row, "connections", "", b),
		       cell(row, "uptime_s", "s", c), cell(row, "pid", "", d));
	}
}

/* What lies on disk for want of memory, and whether that fails. */
static void print_spill(const json_t *rows)
{
	char used[16], size[16];
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		const json_t *spill = json_object_get(row, "spill");

		if (!spill)
			continue;
		printf("spill tier of %s: %s of %s", text(row, "name"),
		       cli_rack_size(number(spill, "used"), used),
		       cli_rack_size(number(spill, "size"), size));
		if (number(spill, "errors"))
			printf("; its disk has failed %" PRIu64 " times",
			       number(spill, "errors"));
		printf("\n");
	}
}

/* The alarm: data waits in memory because the vault does not take it. */
static void print_vault(const json_t *vault)
{
	if (number(vault, "failing"))
		printf("the vault does not take %" PRIu64
		       " files or queues, whose memory stays: %s\n",
		       number(vault, "failing"), text(vault, "why"));
}

static void print_control(const json_t *c)
{
	if (!c)
		return;
	print_vault(json_object_get(c, "vault"));
	if (json_object_get(c, "error"))
		printf("controller down: %s\n\n", text(c, "error"));
	else if (json_is_true(json_object_get(c, "leads")))
		printf("controller %s leads (term %" PRIu64 "): %" PRIu64
		       " of %" PRIu64 " up\n\n",
		       text(c, "controller"), number(c, "term"),
		       number(c, "nodes_up"), number(c, "nodes"));
	else
		printf("controller %s does not lead: %s\n\n",
		       text(c, "controller"), text(c, "why"));
}

static void print_engines(const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (json_array_size(rows))
		printf("\n%-16s %-6s %8s %12s %12s %9s %8s\n", "ENGINE",
		       "STATE", "SESSIONS", "READS", "WRITES", "UPTIME", "PID");
	json_array_foreach(rows, i, row)
	{
		const json_t *c = json_object_get(row, "counters");
		char a[CELL], b[CELL], d[CELL], e[CELL], f[CELL];

		printf("%-16s %-6s %8s %12s %12s %9s %8s\n", text(row, "name"),
		       text(row, "state"), cell(row, "sessions", "", a),
		       cell(c, "reads", "", b), cell(c, "writes", "", d),
		       cell(row, "uptime_s", "s", e), cell(row, "pid", "", f));
	}
}

static void print_others(const json_t *rows)
{
	const json_t *row;
	size_t i;

	if (json_array_size(rows))
		printf("\n%-32s %-8s %-8s %s\n", "ALSO JOINED", "KIND", "STATE",
		       "ADDRESS");
	json_array_foreach(rows, i, row) printf(
		"%-32s %-8s %-8s %s\n", text(row, "name"), text(row, "kind"),
		text(row, "state"), text(row, "address"));
}

static void print_clients(const json_t *kinds)
{
	const char *kind, *before = "\nclients of this machine: ";
	json_t *count;

	/* jansson's macro wants a pointer that is not const. */
	json_object_foreach((json_t *)(uintptr_t)kinds, kind, count)
	{
		printf("%s%lld %s", before,
		       (long long)json_integer_value(count), kind);
		before = ", ";
	}
	if (json_object_size(kinds))
		putchar('\n');
}

static void print_regions(const json_t *rows)
{
	char size[16], stripe[16];
	const json_t *row;
	size_t i;

	if (json_array_size(rows))
		printf("\n%-40s %8s %6s %8s\n", "REGION", "SIZE", "NODES",
		       "STRIPE");
	json_array_foreach(rows, i, row)
	{
		printf("%-40s %8s %6" PRIu64 " %8s", text(row, "name"),
		       cli_rack_size(number(row, "size"), size),
		       number(row, "nodes"),
		       number(row, "stripe")
			       ? cli_rack_size(number(row, "stripe"), stripe)
			       : "-");
		if (json_object_get(row, "nodes_missing"))
			printf("  %" PRIu64 " of its nodes down",
			       number(row, "nodes_missing"));
		putchar('\n');
	}
}

static void print_lists(const json_t *tree)
{
	const json_t *tables = json_object_get(tree, "tables");
	const json_t *indexes = json_object_get(tree, "indexes");

	if (json_array_size(tables)) {
		putchar('\n');
		cli_list_print_tables(tables);
	}
	if (json_array_size(indexes)) {
		putchar('\n');
		cli_list_print_indexes(indexes);
	}
}

int cmd_status(const struct cli_command *self, int argc, char **argv)
{
	struct cli_rack rack;
	bool as_json;
	bool all_up;
	json_t *tree;
	int code = cli_rack_parse(self, argc, argv, false, &as_json, &rack);

	if (code != CLI_GO)
		return code;
	tree = collect(&rack, &all_up);
	if (as_json) {
		if (cli_report_print(tree, true) != 0)
			all_up = false;
	} else {
		print_control(json_object_get(tree, "controller"));
		if (rack.node_count == 0 &&
		    client_nodes_none(rack.name, rack.rundir))
			printf("%s\n", error_last());
		else
			print_nodes(json_object_get(tree, "nodes"));
		print_spill(json_object_get(tree, "nodes"));
		print_engines(json_object_get(tree, "engines"));
		print_others(json_object_get(tree, "others"));
		print_clients(json_object_get(tree, "clients"));
		cli_status_print_shared(json_object_get(tree, "nodes"));
		cli_top_print_caches(json_object_get(tree, "caches"), false);
		print_regions(json_object_get(tree, "regions"));
		print_lists(tree);
		json_decref(tree);
	}
	cli_rack_close(&rack);
	return all_up ? CLI_OK : CLI_FAILED;
}
