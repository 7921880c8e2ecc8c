/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer shared`: memory that machines share coherently. */
#include "cli_shared.h"

static int take_offset(void *args, const char *word)
{
	struct cli_shared_args *a = args;

	a->has_offset = true;
	return opt_size("--offset", word, &a->offset);
}

static int take_length(void *args, const char *word)
{
	struct cli_shared_args *a = args;

	a->has_length = true;
	return opt_size("--length", word, &a->length);
}

const struct opt cmd_shared_options[] = {
	OPT_CALL(take_offset, "offset", "SIZE",
		 "allow: where the part begins (default 0)"),
	OPT_CALL(take_length, "length", "SIZE",
		 "allow: how long it is (default: to the end)"),
	OPT_U32(struct cli_shared_args, copies, "copies", "N", 1, 2,
		"create: memory nodes that have all of it (default 1)"),
	OPT_TEXT(struct cli_shared_args, on_loss, "on-loss", "error|last",
		 "create: what counts when a machine dies with the only copy "
		 "of stores (default error)"),
	OPT_SIZE(struct cli_shared_args, cache_bytes, "cache", "SIZE", 1 << 20,
		 1ull << 40, "serve: memory for cached pages (default 512M)"),
	OPT_U32(struct cli_shared_args, idle_ms, "idle", "MS", 1, 86400000,
		"serve: end when no program has used it for so long"),
	OPT_TEXT(struct cli_shared_args, name, "name", "NAME",
		 "serve: this machine's name among the members (default: the "
		 "host's)"),
	OPT_TEXT(struct cli_shared_args, user, "user", "NAME",
		 "serve, as root: become this user first"),
	OPT_FLAG(struct cli_shared_args, is_unconfined, "no-confine",
		 "serve: keep privileges, files and system calls (debugging)"),
	OPT_FLAG(struct cli_shared_args, common.json, "json", "print JSON"),
	OPT_END,
};

int cmd_shared(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 2, 2, "SIZE", CLI_NEEDS_NOTHING, cli_shared_create,
		 "make a segment: SEGMENT SIZE"},
		{"list", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_shared_list,
		 "all segments that this user may use"},
		{"stat", 1, 1, NULL, CLI_NEEDS_NOTHING, cli_shared_stat,
		 "one segment, also of another tenant: SEGMENT"},
		{"allow", 3, 3, NULL, CLI_NEEDS_NOTHING, cli_shared_allow,
		 "let another tenant use it: SEGMENT TENANT none|r|rw"},
		{"repair", 1, 1, NULL, CLI_NEEDS_NOTHING, cli_shared_repair,
		 "go on with what memory has, where something is lost: "
		 "SEGMENT"},
		{"move", 2, 2, NULL, CLI_NEEDS_NOTHING, cli_shared_move,
		 "take it to another memory node while it is used: SEGMENT "
		 "NODE"},
		{"check", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_shared_check,
		 "whether switch, memory nodes and this machine's cache agree"},
		{"delete", 1, 1, NULL, CLI_NEEDS_NOTHING, cli_shared_delete,
		 "remove for everybody: SEGMENT"},
		{"machines", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_shared_machines,
		 "this user's machines that share memory"},
		{"serve", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_shared_serve,
		 "this machine's cache, until a signal ends it"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct cli_shared_args a = {.copies = 1, .on_loss = "error"};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
