/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer status`: the nodes of the rack, their pools and regions, and the
 * engines. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "cli_proc.h"
#include "cli_rack.h"
#include "cli_report.h"

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
		"uptime_s",    "pool",	    "regions",	"connections",
		"tenants",     "proto",	    "sessions", "counters",
		"incarnation", "direct_ops"};
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
	json_t *row = json_pack("{s:s, s:I, s:i, s:I}", "name", name, "size",
				(json_int_t)stat->size_bytes, "nodes",
				(int)stat->nodes, "stripe",
				(json_int_t)stat->stripe_bytes);

	return json_array_append_new(user, row) ? -ENOMEM : 0;
}

/* Without a token, or without a node, there is nothing to list. */
static void add_regions(json_t *tree)
{
	json_t *rows = json_array();
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (!err) {
		err = aq_region_each(rack, add_region, rows);
		aq_rack_close(rack);
	}
	if (err)
		cli_report_set(tree, "regions_error", "%s", aq_last_error());
	(void)json_object_set_new(tree, "regions", rows);
}

static json_t *collect(const struct cli_rack *rack, bool *all_up)
{
	json_t *tree = json_object(), *rows = json_array();
	json_t *engines = json_array();
	json_int_t size = 0, used = 0;
	unsigned i, up = 0, engines_up = 0;

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
	cli_report_set(tree, "rack", "%s", rack->name);
	cli_report_set(tree, "runtime_directory", "%s", rack->rundir);
	(void)json_object_set_new(tree, "nodes", rows);
	(void)json_object_set_new(tree, "engines", engines);
	(void)json_object_set_new(tree, "pool",
				  json_pack("{s:I, s:I, s:I}", "size", size,
					    "used", used, "free", size - used));
	if (up)
		add_regions(tree);
	else
		(void)json_object_set_new(tree, "regions", json_array());
	*all_up = up > 0 && up == rack->node_count &&
		  engines_up == rack->engine_count;
	return tree;
}

static const char *text(const json_t *object, const char *key)
{
	const char *s = json_string_value(json_object_get(object, key));

	return s ? s : "-";
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

		printf("%-16s %-6s %8s %8s %8" PRIu64 " %12" PRIu64 " %8" PRIu64
		       "s %8" PRIu64 "\n",
		       text(row, "name"), text(row, "state"),
		       cli_rack_size(number(pool, "used"), used),
		       cli_rack_size(number(pool, "size"), size),
		       number(row, "regions"), number(row, "connections"),
		       number(row, "uptime_s"), number(row, "pid"));
	}
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

		printf("%-16s %-6s %8" PRIu64 " %12" PRIu64 " %12" PRIu64
		       " %8" PRIu64 "s %8" PRIu64 "\n",
		       text(row, "name"), text(row, "state"),
		       number(row, "sessions"), number(c, "reads"),
		       number(c, "writes"), number(row, "uptime_s"),
		       number(row, "pid"));
	}
}

static void print_regions(const json_t *rows)
{
	char size[16], stripe[16];
	const json_t *row;
	size_t i;

	if (json_array_size(rows))
		printf("\n%-40s %8s %6s %8s\n", "REGION", "SIZE", "NODES",
		       "STRIPE");
	json_array_foreach(rows, i, row) printf(
		"%-40s %8s %6" PRIu64 " %8s\n", text(row, "name"),
		cli_rack_size(number(row, "size"), size), number(row, "nodes"),
		number(row, "stripe")
			? cli_rack_size(number(row, "stripe"), stripe)
			: "-");
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
		if (rack.node_count == 0)
			printf("rack %s has no nodes; 'aquifer up' starts "
			       "one\n",
			       rack.name);
		else
			print_nodes(json_object_get(tree, "nodes"));
		print_engines(json_object_get(tree, "engines"));
		print_regions(json_object_get(tree, "regions"));
		json_decref(tree);
	}
	cli_rack_close(&rack);
	return all_up ? CLI_OK : CLI_FAILED;
}
