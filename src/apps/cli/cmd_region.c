/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer region`: named memory of the rack, for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli_action.h"
#include "cli_list.h"
#include "cli_rack.h"
#include "cli_region.h"
#include "cli_report.h"

struct region_args {
	struct cli_action_args common; /* NAME, SIZE */
	struct aq_region_options options;
	bool force;
};

static int take_nodes(void *args, const char *word)
{
	struct region_args *a = args;

	return opt_count_or_all("--nodes", word, CLIENT_NODE_MAX,
				AQ_REGION_NODES_ALL, &a->options.nodes);
}

const struct opt cmd_region_options[] = {
	OPT_CALL(take_nodes, "nodes", "N|all",
		 "create: spread over so many memory nodes (default 1)"),
	OPT_SIZE(struct region_args, options.stripe_bytes, "stripe", "SIZE", 0,
		 1ull << 48,
		 "create: bytes that stay together on a node (default 64K)"),
	OPT_TEXT(struct region_args, options.node, "node", "NAME",
		 "create: on this node, not on the one with the most free "
		 "memory"),
	OPT_BITS(struct region_args, options.flags, AQ_REGION_SWITCH_ATOMICS,
		 "switch-atomics",
		 "create: the rack's switch replaces atomics on it"),
	OPT_FLAG(struct region_args, force, "force",
		 "resize, delete: also a part of a table or an index, which is "
		 "damaged by that"),
	CLI_OPT_TIMEOUT(struct region_args),
	OPT_FLAG(struct region_args, common.json, "json", "print JSON"),
	OPT_END,
};

static json_t *row_of(const char *name, const struct aq_region_stat *s)
{
	json_t *row =
		json_pack("{s:s, s:I, s:i, s:I, s:i, s:I}", "name", name,
			  "size", (json_int_t)s->size_bytes, "nodes",
			  (int)s->nodes, "stripe", (json_int_t)s->stripe_bytes,
			  "id", (int)s->id, "epoch", (json_int_t)s->epoch);

	if (s->nodes_missing)
		(void)json_object_set_new(row, "nodes_missing",
					  json_integer(s->nodes_missing));
	return row;
}

/* Shows a region and closes it. */
static int show(const struct region_args *a, struct aq_region *region)
{
	struct aq_region_stat stat;
	int err = aq_region_stat(region, &stat);

	if (!err)
		err = cli_report_print(row_of(a->common.word[0], &stat),
				       a->common.json);
	aq_region_close(region);
	return err;
}

static int region_create(void *args)
{
	const struct region_args *a = args;
	struct aq_region *region;
	int err = aq_region_create(a->common.rack, a->common.word[0],
				   a->common.size, &a->options, &region);

	return err ? err : show(a, region);
}

static int region_stat(void *args)
{
	const struct region_args *a = args;
	struct aq_region *region;
	int err = aq_region_open(a->common.rack, a->common.word[0], 0, &region);

	return err ? err : show(a, region);
}

/* Nodes refuse to change a part of something by itself. Parts that were made
 * before nodes knew of them are known by their names. */
static int check_part(const struct region_args *a)
{
	const char *name = a->common.word[0];
	char owner[CLI_LIST_OWNER_BYTES];

	if (a->force || !cli_list_owner(name, owner))
		return 0;
	cli_error("region %s is a part of %s; 'aquifer %.*s drop%s' removes "
		  "it%s, and --force changes this region alone",
		  name, owner, (int)strcspn(owner, " "), owner,
		  strchr(owner, ' '),
		  strncmp(owner, "kv ", 3) == 0
			  ? ", 'aquifer kv resize' gives it another size"
			  : "");
	return CLI_FAILED;
}

static int region_resize(void *args)
{
	const struct region_args *a = args;
	struct aq_region *region;
	int err = aq_region_open(a->common.rack, a->common.word[0], 0, &region);

	if (err)
		return err;
	err = check_part(a);
	if (!err)
		err = a->force ? aq_region_resize_forced(region, a->common.size)
			       : aq_region_resize(region, a->common.size);
	if (!err)
		return show(a, region);
	aq_region_close(region);
	return err;
}

static int region_delete(void *args)
{
	const struct region_args *a = args;
	const char *name = a->common.word[0];
	int err = check_part(a);

	if (!err)
		err = a->force ? aq_region_delete_forced(a->common.rack, name)
			       : aq_region_delete(a->common.rack, name);

	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:b}", "name", name,
						    "deleted", 1),
					  true);
}

static int take_row(const char *name, const struct aq_region_stat *stat,
		    void *user)
{
	char owner[CLI_LIST_OWNER_BYTES];
	json_t *row = row_of(name, stat);

	if (cli_list_owner(name, owner))
		cli_report_set(row, "part_of", "%s", owner);
	return json_array_append_new(user, row) ? -ENOMEM : 0;
}

static void print_list(const json_t *rows)
{
	const json_t *row;
	char size[16];
	size_t i;

	printf("%-40s %8s %6s  %s\n", "REGION", "SIZE", "NODES", "PART OF");
	json_array_foreach(rows, i, row)
	{
		json_int_t bytes =
			json_integer_value(json_object_get(row, "size"));
		const char *owner =
			json_string_value(json_object_get(row, "part_of"));
		int missing = (int)json_integer_value(
			json_object_get(row, "nodes_missing"));

		printf("%-40s %8s %6d  %s",
		       json_string_value(json_object_get(row, "name")),
		       cli_rack_size((uint64_t)bytes, size),
		       (int)json_integer_value(json_object_get(row, "nodes")),
		       owner ? owner : "-");
		if (missing)
			printf("  %d of its nodes down", missing);
		putchar('\n');
	}
}

static int region_list(void *args)
{
	const struct region_args *a = args;
	json_t *rows = json_array();
	int err = aq_region_each(a->common.rack, take_row, rows);

	if (!err && a->common.json)
		err = cli_report_print(json_pack("{s:O}", "regions", rows),
				       true);
	else if (!err)
		print_list(rows);
	json_decref(rows);
	return err;
}

static int region_grants(void *args)
{
	const struct region_args *a = args;

	return cli_region_grants(a->common.word[0], a->common.deadline_ms,
				 a->common.json);
}

int cmd_region(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 2, 2, "SIZE", CLI_NEEDS_OPEN, region_create,
		 "make a region: NAME SIZE"},
		{"list", 0, 0, NULL, CLI_NEEDS_OPEN, region_list,
		 "all regions of this user"},
		{"stat", 1, 1, NULL, CLI_NEEDS_OPEN, region_stat,
		 "one region: NAME"},
		{"grants", 0, 1, NULL, CLI_NEEDS_NOTHING, region_grants,
		 "who has keys, and can they be taken back: [NAME]"},
		{"resize", 2, 2, "SIZE", CLI_NEEDS_OPEN, region_resize,
		 "grow or cut: NAME SIZE"},
		{"delete", 1, 1, NULL, CLI_NEEDS_OPEN, region_delete,
		 "remove for everybody: NAME"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct region_args a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
