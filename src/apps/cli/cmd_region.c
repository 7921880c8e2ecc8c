/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer region`: named memory of the rack, for people. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_rack.h"
#include "cli_region.h"
#include "cli_report.h"

struct region_args {
	bool json;
	struct aq_region_options options;
	uint32_t deadline_ms;
	const char *name;
	const char *size; /* the word after the name */
	uint64_t size_bytes;
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
	OPT_U32(struct region_args, deadline_ms, "timeout", "MILLISECONDS", 1,
		3600000, "for each request"),
	OPT_FLAG(struct region_args, json, "json", "print JSON"),
	OPT_END,
};

/* argv[0] is the verb; from `least` to `most` words have to follow. */
static int parse(int argc, char **argv, int least, int most,
		 struct region_args *a)
{
	const char *word[2] = {NULL};
	int code;

	*a = (struct region_args){0};
	code = cli_parse_verb(cli_command_find(cli_commands, "region"), argc,
			      argv, least, most, a, word);
	a->name = word[0];
	a->size = word[1];
	return code;
}

static json_t *row_of(const char *name, const struct aq_region_stat *s)
{
	return json_pack("{s:s, s:I, s:i, s:I, s:i, s:I}", "name", name, "size",
			 (json_int_t)s->size_bytes, "nodes", (int)s->nodes,
			 "stripe", (json_int_t)s->stripe_bytes, "id",
			 (int)s->id, "epoch", (json_int_t)s->epoch);
}

/* Opens what is NULL, closes and shows it. */
static int show(struct aq_rack *rack, const struct region_args *a,
		struct aq_region *region)
{
	struct aq_region_stat stat;
	int err = region ? 0 : aq_region_open(rack, a->name, 0, &region);

	if (!err)
		err = aq_region_stat(region, &stat);
	if (!err)
		err = cli_report_print(row_of(a->name, &stat), a->json);
	aq_region_close(region);
	return err;
}

static int create(struct aq_rack *rack, const struct region_args *a)
{
	struct aq_region *region;
	int err = aq_region_create(rack, a->name, a->size_bytes, &a->options,
				   &region);

	return err ? err : show(rack, a, region);
}

static int stat_region(struct aq_rack *rack, const struct region_args *a)
{
	return show(rack, a, NULL);
}

static int resize(struct aq_rack *rack, const struct region_args *a)
{
	struct aq_region *region;
	int err = aq_region_open(rack, a->name, 0, &region);

	if (err)
		return err;
	err = aq_region_resize(region, a->size_bytes);
	if (!err)
		return show(rack, a, region);
	aq_region_close(region);
	return err;
}

static int delete (struct aq_rack *rack, const struct region_args *a)
{
	int err = aq_region_delete(rack, a->name);

	return err || !a->json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:b}", "name",
						    a->name, "deleted", 1),
					  true);
}

static int take_row(const char *name, const struct aq_region_stat *stat,
		    void *user)
{
	return json_array_append_new(user, row_of(name, stat)) ? -ENOMEM : 0;
}

static void print_list(const json_t *rows)
{
	const json_t *row;
	char size[16];
	size_t i;

	printf("%-40s %8s %6s\n", "REGION", "SIZE", "NODES");
	json_array_foreach(rows, i, row)
	{
		json_int_t bytes =
			json_integer_value(json_object_get(row, "size"));

		printf("%-40s %8s %6d\n",
		       json_string_value(json_object_get(row, "name")),
		       bytes ? cli_rack_size((uint64_t)bytes, size) : "?",
		       (int)json_integer_value(json_object_get(row, "nodes")));
	}
}

static int list(struct aq_rack *rack, const struct region_args *a)
{
	json_t *rows = json_array();
	int err = aq_region_each(rack, take_row, rows);

	if (!err && a->json)
		err = cli_report_print(json_pack("{s:O}", "regions", rows),
				       true);
	else if (!err)
		print_list(rows);
	json_decref(rows);
	return err;
}

/* ---- the verbs ---------------------------------------------------------- */

static int with_rack(int argc, char **argv, int words,
		     int (*fn)(struct aq_rack *rack,
			       const struct region_args *a))
{
	struct aq_rack *rack = NULL;
	struct region_args a;
	int err, code = parse(argc, argv, words, words, &a);

	if (code != CLI_GO)
		return code;
	if (a.size && cli_parse_size("SIZE", a.size, &a.size_bytes))
		return CLI_USAGE;
	err = aq_rack_open(NULL, &rack);
	if (!err && a.deadline_ms)
		err = aq_rack_set_deadline(rack, a.deadline_ms);
	if (!err)
		err = fn(rack, &a);
	if (err)
		cli_error("%s (%s)", aq_last_error(), aq_strerror(err));
	aq_rack_close(rack);
	return err ? CLI_FAILED : CLI_OK;
}

#define VERB(name, words, fn)                            \
	static int name(int argc, char **argv)           \
	{                                                \
		return with_rack(argc, argv, words, fn); \
	}

VERB(region_create, 2, create)
VERB(region_list, 0, list)
VERB(region_stat, 1, stat_region)
VERB(region_resize, 2, resize)
VERB(region_delete, 1, delete)

static int region_grants(int argc, char **argv)
{
	struct region_args a;
	int code = parse(argc, argv, 0, 1, &a);

	return code != CLI_GO
		       ? code
		       : cli_region_grants(a.name, a.deadline_ms, a.json);
}

int cmd_region(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_entry verbs[] = {
		{"create", region_create, "make a region: NAME SIZE"},
		{"list", region_list, "all regions of this user"},
		{"stat", region_stat, "one region: NAME"},
		{"grants", region_grants,
		 "who has keys, and can they be taken back: [NAME]"},
		{"resize", region_resize, "grow or cut: NAME SIZE"},
		{"delete", region_delete, "remove for everybody: NAME"},
		{NULL, NULL, NULL},
	};

	return cli_group_run(self, verbs, argc, argv);
}
