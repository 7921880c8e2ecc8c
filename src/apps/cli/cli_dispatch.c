/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup in a table of commands, and the guess at what a typo meant. */
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "base/near.h"
#include "cli.h"
#include "cli_report.h"

const struct cli_command *cli_command_find(const struct cli_command *table,
					   const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

const struct cli_command *cli_command_nearest(const struct cli_command *table,
					      const char *name)
{
	const struct cli_command *best = NULL;
	unsigned least = NEAR_NOT;

	for (; table->name; table++) {
		unsigned typos = near_typos(name, table->name);

		if (typos < least) {
			least = typos;
			best = table;
		}
	}
	return best;
}

json_t *cli_command_describe(const struct cli_command *cmd)
{
	json_t *tree = json_object(), *options = json_array();
	struct opt table[OPT_ROWS_MAX];

	cli_command_options(cmd, table);
	cli_report_set(tree, "name", "%s", cmd->name);
	cli_report_set(tree, "summary", "%s", cmd->summary);
	cli_report_set(tree, "usage", "%s", cmd->usage);
	for (const struct opt *o = table; o->name; o++)
		(void)json_array_append_new(
			options, json_pack("{s:s, s:s*, s:s}", "name", o->name,
					   "value", o->value, "help", o->help));
	(void)json_object_set_new(tree, "options", options);
	return tree;
}

int cli_command_help(const struct cli_command *cmd, const char *parent)
{
	struct opt table[OPT_ROWS_MAX];

	if (complaint_is_json())
		return cli_report_print(cli_command_describe(cmd), true)
			       ? CLI_FAILED
			       : CLI_OK;
	cli_command_options(cmd, table);
	printf("%s %s: %s\n\nusage: %s %s %s\n", parent, cmd->name,
	       cmd->summary, parent, cmd->name, cmd->usage);
	opt_help(table, stdout);
	fputs(cmd->notes ? cmd->notes : "", stdout);
	return CLI_OK;
}

int cli_dispatch(const struct cli_command *table, const char *parent, int argc,
		 char **argv)
{
	const struct cli_command *cmd = cli_command_find(table, argv[0]);

	if (cmd)
		return cmd->run(cmd, argc, argv);
	cmd = cli_command_nearest(table, argv[0]);
	if (cmd)
		cli_error("unknown command '%s'; did you mean '%s %s'?",
			  argv[0], parent, cmd->name);
	else
		cli_error("unknown command '%s'; '%s --help' lists them",
			  argv[0], parent);
	return CLI_USAGE;
}
