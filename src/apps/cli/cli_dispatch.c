/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup in a table of commands, and the guess at what a typo meant. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

const struct cli_command *cli_command_find(const struct cli_command *table,
					   const char *name)
{
	for (; table->name; table++)
		if (strcmp(table->name, name) == 0)
			return table;
	return NULL;
}

enum {
	NAME_MAX_CHARS = 32
};

/* Edits (insert, delete, replace) between two short names. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned row[NAME_MAX_CHARS + 1];
	size_t blen = strlen(b);

	if (blen > NAME_MAX_CHARS)
		return NAME_MAX_CHARS;
	for (unsigned j = 0; j <= blen; j++)
		row[j] = j;
	for (unsigned i = 1; *a; a++, i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (unsigned j = 1; j <= blen; j++) {
			unsigned replace = diagonal + (*a != b[j - 1]);

			diagonal = row[j];
			row[j] = u32_min(u32_min(row[j], row[j - 1]) + 1,
					 replace);
		}
	}
	return row[blen];
}

const struct cli_command *cli_command_nearest(const struct cli_command *table,
					      const char *name)
{
	const struct cli_command *best = NULL;
	unsigned best_edits = 0;

	for (; table->name; table++) {
		size_t len = strlen(table->name);
		unsigned edits = edit_distance(name, table->name);

		/* An unfinished word counts as near. */
		if (*name && strncmp(table->name, name, strlen(name)) == 0)
			edits = 0;
		/* More than half the letters wrong is not a typo. */
		if (edits > 3 || edits * 2 > len)
			continue;
		if (!best || edits < best_edits) {
			best = table;
			best_edits = edits;
		}
	}
	return best;
}

void cli_command_help(const struct cli_command *cmd, const char *parent)
{
	printf("%s %s: %s\n\nusage: %s %s %s\n", parent, cmd->name,
	       cmd->summary, parent, cmd->name, cmd->usage);
	if (cmd->options)
		opt_help(cmd->options, stdout);
	fputs(cmd->notes ? cmd->notes : "", stdout);
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
