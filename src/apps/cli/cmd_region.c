/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer region`: named memory of the rack, for people. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
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
};

static int parse_number(const char *option, const char *word, uint32_t max,
			uint32_t *out)
{
	char *end;
	unsigned long v = strtoul(word, &end, 10);

	if (*word < '0' || *word > '9' || *end || v == 0 || v > max) {
		cli_error("%s: a number from 1 to %u, not '%s'", option, max,
			  word);
		return -EINVAL;
	}
	*out = (uint32_t)v;
	return 0;
}

static int take_option(int opt, char **argv, struct region_args *a)
{
	switch (opt) {
	case 'j':
		a->json = true;
		return 0;
	case 'n':
		if (strcmp(optarg, "all") == 0) {
			a->options.nodes = AQ_REGION_NODES_ALL;
			return 0;
		}
		return parse_number("--nodes", optarg, CLIENT_NODE_MAX,
				    &a->options.nodes);
	case 'o':
		a->options.node = optarg;
		return 0;
	case 'w':
		a->options.flags |= AQ_REGION_SWITCH_ATOMICS;
		return 0;
	case 's':
		return cli_rack_parse_size("--stripe", optarg,
					   &a->options.stripe_bytes);
	case 't':
		return parse_number("--timeout", optarg, 3600000,
				    &a->deadline_ms);
	case ':':
		cli_error("%s needs a value", argv[optind - 1]);
		return -EINVAL;
	default:
		cli_error("region has no option '%s'; see 'aquifer help "
			  "region'",
			  argv[optind - 1]);
		return -EINVAL;
	}
}

/* argv[0] is the verb; `words` is how many have to follow, with `may_lack` the
 * last one need not. */
static int parse_some(int argc, char **argv, int words, bool may_lack,
		      struct region_args *a)
{
	static const struct option longopts[] = {
		{"json", no_argument, NULL, 'j'},
		{"nodes", required_argument, NULL, 'n'},
		{"node", required_argument, NULL, 'o'},
		{"stripe", required_argument, NULL, 's'},
		{"switch-atomics", no_argument, NULL, 'w'},
		{"timeout", required_argument, NULL, 't'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	memset(a, 0, sizeof(*a));
	optind = 0;
	/* Options may stand behind the name. */
	while ((opt = getopt_long(argc, argv, ":h", longopts, NULL)) != -1) {
		if (opt == 'h') {
			cli_command_help(
				cli_command_find(cli_commands, "region"),
				"aquifer");
			return CLI_OK;
		}
		if (take_option(opt, argv, a))
			return CLI_USAGE;
	}
	if (may_lack && argc - optind == words - 1)
		words--;
	if (argc - optind != words) {
		cli_error("region %s takes %s; see 'aquifer help region'",
			  argv[0],
			  words == 0   ? "no name"
			  : words == 1 ? "a name"
				       : "a name and a size");
		return CLI_USAGE;
	}
	a->name = words > 0 ? argv[optind] : NULL;
	a->size = words > 1 ? argv[optind + 1] : NULL;
	return CLI_GO;
}

static int parse(int argc, char **argv, int words, struct region_args *a)
{
	return parse_some(argc, argv, words, false, a);
}

static int open_rack(const struct region_args *a, struct aq_rack **rack)
{
	int err = aq_rack_open(NULL, rack);

	if (!err && a->deadline_ms)
		err = aq_rack_set_deadline(*rack, a->deadline_ms);
	return err;
}

static json_t *row_of(const char *name, const struct aq_region_stat *s)
{
	return json_pack("{s:s, s:I, s:i, s:I, s:i, s:I}", "name", name, "size",
			 (json_int_t)s->size_bytes, "nodes", (int)s->nodes,
			 "stripe", (json_int_t)s->stripe_bytes, "id",
			 (int)s->id, "epoch", (json_int_t)s->epoch);
}

static int finish(struct aq_rack *rack, int err)
{
	if (err)
		cli_error("%s (%s)", aq_last_error(), aq_strerror(err));
	aq_rack_close(rack);
	return err ? CLI_FAILED : CLI_OK;
}

static int show(const char *name, struct aq_region *region, bool as_json)
{
	struct aq_region_stat stat;
	int err = aq_region_stat(region, &stat);

	if (!err)
		err = cli_report_print(row_of(name, &stat), as_json);
	return err;
}

static int region_create(int argc, char **argv)
{
	struct aq_region *region = NULL;
	struct aq_rack *rack = NULL;
	struct region_args a;
	uint64_t size;
	int err, code = parse(argc, argv, 2, &a);

	if (code != CLI_GO)
		return code;
	if (cli_rack_parse_size("SIZE", a.size, &size))
		return CLI_USAGE;
	err = open_rack(&a, &rack);
	if (!err)
		err = aq_region_create(rack, a.name, size, &a.options, &region);
	if (!err)
		err = show(a.name, region, a.json);
	aq_region_close(region);
	return finish(rack, err);
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

static int region_list(int argc, char **argv)
{
	struct aq_rack *rack = NULL;
	json_t *rows = NULL;
	struct region_args a;
	int err, code = parse(argc, argv, 0, &a);

	if (code != CLI_GO)
		return code;
	rows = json_array();
	err = open_rack(&a, &rack);
	if (!err)
		err = aq_region_each(rack, take_row, rows);
	if (!err && a.json)
		err = cli_report_print(json_pack("{s:O}", "regions", rows),
				       true);
	else if (!err)
		print_list(rows);
	json_decref(rows);
	return finish(rack, err);
}

static int region_stat(int argc, char **argv)
{
	struct aq_region *region = NULL;
	struct aq_rack *rack = NULL;
	struct region_args a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = open_rack(&a, &rack);
	if (!err)
		err = aq_region_open(rack, a.name, 0, &region);
	if (!err)
		err = show(a.name, region, a.json);
	aq_region_close(region);
	return finish(rack, err);
}

static int region_grants(int argc, char **argv)
{
	struct region_args a;
	int code = parse_some(argc, argv, 1, true, &a);

	return code != CLI_GO
		       ? code
		       : cli_region_grants(a.name, a.deadline_ms, a.json);
}

static int region_resize(int argc, char **argv)
{
	struct aq_region *region = NULL;
	struct aq_rack *rack = NULL;
	struct region_args a;
	uint64_t size;
	int err, code = parse(argc, argv, 2, &a);

	if (code != CLI_GO)
		return code;
	if (cli_rack_parse_size("SIZE", a.size, &size))
		return CLI_USAGE;
	err = open_rack(&a, &rack);
	if (!err)
		err = aq_region_open(rack, a.name, 0, &region);
	if (!err)
		err = aq_region_resize(region, size);
	if (!err)
		err = show(a.name, region, a.json);
	aq_region_close(region);
	return finish(rack, err);
}

static int region_delete(int argc, char **argv)
{
	struct aq_rack *rack = NULL;
	struct region_args a;
	int err, code = parse(argc, argv, 1, &a);

	if (code != CLI_GO)
		return code;
	err = open_rack(&a, &rack);
	if (!err)
		err = aq_region_delete(rack, a.name);
	if (!err && a.json)
		err = cli_report_print(
			json_pack("{s:s, s:b}", "name", a.name, "deleted", 1),
			true);
	return finish(rack, err);
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
