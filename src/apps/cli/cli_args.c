/* SPDX-License-Identifier: Apache-2.0 */
/* How commands read their options, those that all of them have among them. */
#include <stdio.h>

#include "base/complaint.h"
#include "base/error.h"
#include "cli.h"

/* --rack is the same for all; its value is not in the struct of the command. A
 * process runs one command. */
static const char *rack_given;

static int take_rack(void *args, const char *word)
{
	(void)args;
	rack_given = word;
	return 0;
}

static const struct opt common_options[] = {
	OPT_CALL(take_rack, "rack", "NAME|FILE",
		 "the rack: its name, or its rack.ini (a slash or .ini says "
		 "that it is a file; default: as configured)"),
	OPT_END,
};

void cli_command_options(const struct cli_command *cmd,
			 struct opt out[OPT_ROWS_MAX])
{
	opt_join(out, cmd->options, cmd->options ? common_options : NULL);
}

bool cli_rack_is_given(void)
{
	return rack_given != NULL;
}

/* What --json says, when the options have been read. */
static bool wants_json(const struct opt *table, const void *args)
{
	const struct opt *o = opt_find(table, "json");

	return o && o->kind == OPT_KIND_FLAG &&
	       *(const bool *)((const char *)args + o->at);
}

int cli_parse(const struct cli_command *self, int argc, char **argv,
	      enum opt_words accept, void *args, struct cli_words *words)
{
	struct opt table[OPT_ROWS_MAX];
	int first, code = CLI_GO;

	rack_given = NULL;
	cli_command_options(self, table);
	switch (opt_parse(table, self->name, argc, argv, accept, args,
			  &first)) {
	case OPT_HELP:
		return cli_command_help(self, "aquifer");
	case OPT_WRONG:
		cli_error("%s", error_last());
		return CLI_USAGE;
	case OPT_DONE:
		break;
	}
	complaint_set_json(wants_json(table, args));
	if (rack_given)
		code = cli_rack_choose(rack_given);
	if (words)
		*words = (struct cli_words){argc - first, argv + first};
	return code;
}

int cli_parse_size(const char *what, const char *word, uint64_t *bytes)
{
	int err = opt_size(what, word, bytes);

	if (err)
		cli_error("%s", error_last());
	return err;
}
