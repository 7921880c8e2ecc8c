/* SPDX-License-Identifier: Apache-2.0 */
/* A command that is a group: finds the entry and hands the rest over. */
#include <stdio.h>
#include <string.h>

#include "base/complaint.h"
#include "cli.h"
#include "cli_report.h"

enum {
	ENTRY_MAX = 16
};

static int list_json(const struct cli_command *self,
		     const struct cli_entry *table)
{
	json_t *tree = cli_command_describe(self);
	json_t *array = json_array();

	for (; table->name; table++) {
		json_t *row = json_object();

		cli_report_set(row, "name", "%s", table->name);
		cli_report_set(row, "summary", "%s", table->summary);
		(void)json_array_append_new(array, row);
	}
	(void)json_object_set_new(tree, "entries", array);
	return cli_report_print(tree, true) ? CLI_FAILED : CLI_OK;
}

static int list_text(const struct cli_command *self,
		     const struct cli_entry *table)
{
	/* Actions of one command share its options; others have their own. */
	bool has_own = table->run != NULL;
	int code = cli_command_help(self, "aquifer");

	puts("\nnames:");
	for (; table->name; table++)
		printf("  %-12s %s\n", table->name, table->summary);
	if (has_own)
		printf("\n'aquifer %s NAME --help' explains one.\n",
		       self->name);
	return code;
}

/* The same words for a typo as for commands. */
static int explain_unknown(const struct cli_command *self,
			   const struct cli_entry *table, const char *name)
{
	struct cli_command names[ENTRY_MAX + 1] = {0};
	const struct cli_command *near;
	size_t count = 0;

	for (; table->name && count < ENTRY_MAX; table++)
		names[count++].name = table->name;
	near = cli_command_nearest(names, name);
	if (near)
		cli_error("unknown name '%s'; did you mean 'aquifer %s %s'?",
			  name, self->name, near->name);
	else
		cli_error("unknown name '%s'; 'aquifer %s --help' lists them",
			  name, self->name);
	return CLI_USAGE;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

const struct cli_entry *cli_group_find(const struct cli_command *self,
				       const struct cli_entry *table, int argc,
				       char **argv, int *code)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (!word) {
		cli_error("%s needs a name; 'aquifer %s --help' lists them",
			  self->name, self->name);
		*code = CLI_USAGE;
		return NULL;
	}
	for (const struct cli_entry *e = table; e->name; e++)
		if (strcmp(e->name, word) == 0)
			return e;
	if (strcmp(word, "--json") == 0 ||
	    (complaint_is_json() && is_help(word)))
		*code = list_json(self, table);
	else
		*code = is_help(word) ? list_text(self, table)
				      : explain_unknown(self, table, word);
	return NULL;
}

int cli_group_run(const struct cli_command *self, const struct cli_entry *table,
		  int argc, char **argv)
{
	int code;
	const struct cli_entry *e;

	complaint_set_json(cli_words_ask_json(argc, argv));
	e = cli_group_find(self, table, argc, argv, &code);

	return e ? e->run(argc - 1, argv + 1) : code;
}
