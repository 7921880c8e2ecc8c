/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer region grants`: who has a key of what, and whether it can be taken
 * back. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "cli_rack.h"
#include "cli_region.h"
#include "cli_report.h"
#include "client/map.h"

enum {
	ASK_MS = 5000,
};

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "-";
}

/* The grants of one node; pieces get the name of their region. */
static void take_rows(const json_t *answer, const char *node, const char *name,
		      json_t *rows)
{
	const json_t *list = json_object_get(answer, "grants");
	struct piece_name id;
	json_t *row;
	size_t i;

	json_array_foreach(list, i, row)
	{
		if (piece_name_parse(text(row, "region"), &id) ||
		    (name && strcmp(id.region, name) != 0))
			continue;
		cli_report_set(row, "region", "%s", id.region);
		cli_report_set(row, "node", "%s", node);
		(void)json_array_append(rows, row);
	}
}

static int collect(const char *name, uint32_t deadline_ms, json_t *rows)
{
	struct cli_rack rack;
	int err = cli_rack_open(&rack, NULL, false);

	if (err)
		return err;
	for (unsigned i = 0; i < rack.node_count && !err; i++) {
		json_t *answer = NULL;

		err = cli_rack_list(&rack, &rack.node[i], "/v1/grants",
				    deadline_ms ? deadline_ms : ASK_MS,
				    &answer);
		if (err)
			cli_error("%s", error_last());
		else
			take_rows(answer, rack.node[i].name, name, rows);
		json_decref(answer);
	}
	cli_rack_close(&rack);
	return err;
}

static void print_rows(const json_t *rows)
{
	unsigned mapped = 0;
	const json_t *row;
	size_t i;

	printf("%-24s %-12s %-24s %-16s %s\n", "REGION", "NODE", "CLIENT",
	       "GRANT", "REVOCABLE");
	json_array_foreach(rows, i, row)
	{
		bool revocable =
			json_is_true(json_object_get(row, "revocable"));

		mapped += !revocable;
		printf("%-24s %-12s %-24s %-16s %s\n", text(row, "region"),
		       text(row, "node"), text(row, "client"),
		       text(row, "grant"), revocable ? "yes" : "no");
	}
	if (mapped)
		printf("%u not revocable: who is on the node's machine may "
		       "have "
		       "mapped the memory,\nand keeps it until the region is "
		       "deleted.\n",
		       mapped);
}

int cli_region_grants(const char *name, uint32_t deadline_ms, bool as_json)
{
	json_t *rows = json_array();
	int err = collect(name, deadline_ms, rows);

	if (!err && as_json)
		err = cli_report_print(json_pack("{s:O}", "grants", rows),
				       true);
	else if (!err)
		print_rows(rows);
	json_decref(rows);
	return err ? CLI_FAILED : CLI_OK;
}
