/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer walk`: traversals that memory nodes execute. */
#include "cli_walk.h"
#include "cli_walkc.h"

struct walk_args {
	struct cli_walk_args run; /* begins with what all actions have */
	struct cli_walkc_args build;
};

const struct opt cmd_walk_options[] = {
	CLI_WALKC_OPTIONS(struct walk_args, build),
	CLI_WALK_OPTIONS,
	OPT_FLAG(struct walk_args, run.common.json, "json", "print JSON"),
	OPT_END,
};

static int walk_build(void *args)
{
	const struct walk_args *a = args;
	const struct cli_action_args *common = &a->run.common;

	return cli_walkc_build(common->word[0], common->json, &a->build);
}

static int walk_show_file(void *args)
{
	const struct cli_action_args *common = args;

	return cli_walkc_show(common->word[0], common->json);
}

static int walk_check(void *args)
{
	const struct walk_args *a = args;
	const struct cli_action_args *common = &a->run.common;

	return cli_walkc_check(common->word[0], common->json, &a->build);
}

int cmd_walk(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"build", 1, 1, NULL, CLI_NEEDS_NOTHING, walk_build,
		 "make a walk from C or from clang's object file: FILE"},
		{"show", 1, 1, NULL, CLI_NEEDS_NOTHING, walk_show_file,
		 "print the instructions of a walk: FILE"},
		{"check", 1, 1, NULL, CLI_NEEDS_NOTHING, walk_check,
		 "verify a walk as nodes do, and say what it costs: FILE"},
		{"run", 3, 3, NULL, CLI_NEEDS_NOTHING, cli_walk_run,
		 "follow pointers in a region: FILE REGION START"},
		{"plan", 2, 2, NULL, CLI_NEEDS_NOTHING, cli_walk_plan,
		 "where a walk would run, and why: FILE REGION"},
		{"list", 0, 0, NULL, CLI_NEEDS_RACK, cli_walk_list,
		 "walks that nodes keep for this user"},
		{"drop", 1, 1, NULL, CLI_NEEDS_RACK, cli_walk_drop,
		 "remove a walk from all nodes: HASH"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct walk_args a = {0};

	cli_walkc_words(argc, argv);
	return cli_actions_run(self, &actions, argc, argv, &a);
}
