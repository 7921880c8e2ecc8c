/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer help` and `aquifer version`. */
#include <stdio.h>

#include "cli.h"
#include "cli_report.h"
#include "version.h"

const char *cli_version(void)
{
	return AQ_VERSION;
}

const char *cli_commit(void)
{
	return AQ_COMMIT;
}

static int list_json(void)
{
	json_t *tree = json_object();
	json_t *array = json_array();

	for (const struct cli_command *c = cli_commands; c->name; c++) {
		json_t *row = json_object();

		cli_report_set(row, "name", "%s", c->name);
		cli_report_set(row, "summary", "%s", c->summary);
		(void)json_array_append_new(array, row);
	}
	(void)json_object_set_new(tree, "commands", array);
	return cli_report_print(tree, true);
}

static void list_text(void)
{
	puts("aquifer: memory in other machines, over RDMA\n\n"
	     "usage: aquifer [-v] [--log-json] [--config FILE] [--rack "
	     "NAME|FILE] COMMAND\n"
	     "               [OPTION...]\n\n"
	     "commands:");
	for (const struct cli_command *c = cli_commands; c->name; c++)
		printf("  %-10s %s\n", c->name, c->summary);
	puts("\nglobal options:\n"
	     "  -v, --verbose  log more; twice: everything\n"
	     "  --log-json     log JSON lines\n"
	     "  --config FILE  settings, instead of the rack.ini found\n"
	     "  --rack NAME|FILE\n"
	     "                 the rack, also after the command\n"
	     "  --version      the same as the command\n\n"
	     "Every command has --help, --json, --rack and a man page "
	     "(man aquifer-COMMAND).\n"
	     "Exit codes: 0 done, 1 failed, 2 wrong arguments.");
}

int cmd_help(const struct cli_command *self, int argc, char **argv)
{
	char *ask[4] = {NULL, (char[]){"--help"}, NULL, NULL};
	const struct cli_command *cmd;
	struct cli_args args = {0};
	struct cli_words words;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &args, &words);

	if (code != CLI_GO)
		return code;
	if (words.count == 0) {
		if (args.json)
			return list_json() ? CLI_FAILED : CLI_OK;
		list_text();
		return CLI_OK;
	}
	cmd = cli_command_find(cli_commands, words.word[0]);
	if (!cmd)
		return cli_dispatch(cli_commands, "aquifer", 1, words.word);
	/* The laboratory need not be installed. */
	if (cmd->run == cmd_lab)
		return cli_command_help(cmd, "aquifer");
	ask[0] = words.word[0];
	ask[2] = args.json ? (char[]){"--json"} : NULL;
	return cmd->run(cmd, args.json ? 3 : 2, ask);
}

int cmd_version(const struct cli_command *self, int argc, char **argv)
{
	json_t *tree;
	struct cli_args args = {0};
	int code = cli_parse(self, argc, argv, OPT_WORDS_NONE, &args, NULL);

	if (code != CLI_GO)
		return code;
	if (!args.json) {
		printf("aquifer %s (%s)\n", cli_version(), cli_commit());
		return CLI_OK;
	}
	tree = json_object();
	cli_report_set(tree, "version", "%s", cli_version());
	cli_report_set(tree, "commit", "%s", cli_commit());
	return cli_report_print(tree, true) ? CLI_FAILED : CLI_OK;
}
