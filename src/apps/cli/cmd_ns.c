/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer ns`: names of elastic memory, and their leases. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli_action.h"
#include "cli_ns.h"
#include "cli_report.h"

struct ns_args {
	struct cli_action_args common; /* PATH [PATH] */
	bool parents, recursive, keep, is_back, freezes;
	uint32_t lease_ms;
	uint32_t copies;
	const char *plan, *after, *on_expiry;
	const char *events;
	uint64_t count;
	uint32_t wait_ms;
	char **command; /* after "--"; NULL: none */
};

const struct opt cmd_ns_options[] = {
	OPT_FLAG(struct ns_args, parents, "parents",
		 "mkdir: folders on the way, too, and none that exists is an "
		 "error"),
	OPT_TEXT(struct ns_args, plan, "plan", "FILE",
		 "mkdir: a job; the file has {\"TASK\": [\"PARENT\", ...], "
		 "...}, '-' is standard input"),
	OPT_TEXT(struct ns_args, after, "after", "TASK[,TASK...]",
		 "mkdir: parents of a task, beside the one in its path"),
	OPT_U32(struct ns_args, copies, "copies", "N", 1, 8,
		"mkdir of a root: copies of what is made below it, on as many "
		"nodes (default 1)"),
	OPT_U32(struct ns_args, lease_ms, "lease", "MILLISECONDS", 100,
		24 * 3600 * 1000, "mkdir: of a root (default 10000)"),
	OPT_FLAG(struct ns_args, keep, "keep",
		 "mkdir: of a root: nothing of it ends by itself"),
	OPT_TEXT(struct ns_args, on_expiry, "on-expiry", "flush|drop|keep",
		 "mkdir: of a root: what becomes of files, queues and "
		 "stores whose lease is over (default: flush, where the rack "
		 "has a vault, "
		 "else drop)"),
	OPT_FLAG(struct ns_args, recursive, "recursive",
		 "rm: with all that is below"),
	OPT_FLAG(struct ns_args, is_back, "back",
		 "load: also what is in memory: it becomes what its image is"),
	OPT_FLAG(struct ns_args, freezes, "freeze",
		 "flush: changes wait until each block is saved, so the image "
		 "is what all of it was at one moment"),
	OPT_TEXT(struct ns_args, events, "events", "KIND[,KIND...]",
		 "watch: only these: append, put, get, ack, back, set, "
		 "delete, add, seal (default: all)"),
	OPT_U64(struct ns_args, count, "count", "N", 1, INT64_MAX,
		"watch: so many events (default: without an end)"),
	OPT_U32(struct ns_args, wait_ms, "wait", "MILLISECONDS", 1, 3600000,
		"watch: at most so long for the next event (default: for "
		"ever)"),
	OPT_FLAG(struct ns_args, common.json, "json",
		 "print JSON; watch: an object per line"),
	OPT_END,
};

static const char *path_of(const struct ns_args *a)
{
	return a->common.word[0] ? a->common.word[0] : "/";
}

static int report(const struct ns_args *a, json_t *tree)
{
	return cli_report_print(tree, a->common.json) ? CLI_FAILED : CLI_OK;
}

/* ---- looking ------------------------------------------------------------ */

/* The list of an answer, or the answer itself as a list of one. */
static json_t *rows_of(json_t *reply)
{
	json_t *rows = json_object_get(reply, "entries");

	return rows ? json_incref(rows) : json_pack("[O]", reply);
}

static int ns_ls(void *args)
{
	const struct ns_args *a = args;
	json_t *reply, *rows;
	int code = cli_ns_ask("GET", "/v1/ns", path_of(a), NULL, &reply);

	if (code == CLI_OK && a->common.json) {
		code = report(a, json_incref(reply));
	} else if (code == CLI_OK) {
		rows = rows_of(reply);
		cli_ns_print_list(rows);
		json_decref(rows);
	}
	json_decref(reply);
	return code;
}

static int ns_tree(void *args)
{
	const struct ns_args *a = args;
	json_t *reply;
	int code = cli_ns_ask("GET", "/v1/tree", path_of(a), NULL, &reply);

	if (code == CLI_OK && a->common.json)
		code = report(a, json_incref(reply));
	else if (code == CLI_OK)
		cli_ns_print_tree(json_object_get(reply, "names"));
	json_decref(reply);
	return code;
}

static int ns_stat(void *args)
{
	const struct ns_args *a = args;
	json_t *reply;
	int code = cli_ns_ask("GET", "/v1/ns", path_of(a), NULL, &reply);

	if (code != CLI_OK)
		return code;
	(void)json_object_del(reply, "entries");
	return report(a, reply);
}

/* ---- making ------------------------------------------------------------- */

/* A root's options, as members of a body. */
static void add_options(const struct ns_args *a, json_t *body)
{
	if (a->copies)
		(void)json_object_set_new(body, "copies",
					  json_integer(a->copies));
	if (a->lease_ms)
		(void)json_object_set_new(body, "lease_ms",
					  json_integer(a->lease_ms));
	if (a->keep || a->on_expiry)
		(void)json_object_set_new(
			body, "on_expiry",
			json_string(a->keep ? "keep" : a->on_expiry));
}

static int read_plan(const char *file, json_t **out)
{
	json_error_t why;

	*out = strcmp(file, "-") == 0
		       ? json_loadf(stdin, JSON_REJECT_DUPLICATES, &why)
		       : json_load_file(file, JSON_REJECT_DUPLICATES, &why);
	if (*out)
		return CLI_OK;
	cli_error("%s: line %d: %s", file, why.line, why.text);
	return CLI_FAILED;
}

static int make_job(const struct ns_args *a)
{
	const char *name = a->common.word[0];
	json_t *plan, *body, *reply = NULL;
	int code;

	name += name[0] == '/';
	if (a->after || a->parents) {
		cli_error("--plan makes a job, which has no parents");
		return CLI_USAGE;
	}
	code = read_plan(a->plan, &plan);
	if (code != CLI_OK)
		return code;
	body = json_pack("{s:s, s:o}", "name", name, "plan", plan);
	add_options(a, body);
	code = cli_ns_ask("POST", "/v1/jobs", "", body, &reply);
	return code == CLI_OK ? report(a, reply) : code;
}

static json_t *after_list(const char *text)
{
	json_t *list = json_array();

	while (*text) {
		size_t len = strcspn(text, ",");

		(void)json_array_append_new(list, json_stringn(text, len));
		text += len + (text[len] == ',');
	}
	return list;
}

static int ns_mkdir(void *args)
{
	const struct ns_args *a = args;
	json_t *body, *reply = NULL;
	int code;

	if (a->plan)
		return make_job(a);
	/* "--parents": who finds it there is content. */
	if (a->parents && !a->lease_ms && !a->copies && !a->keep &&
	    !a->on_expiry) {
		char path[CLI_NS_PATH_MAX];
		struct cli_admin m;
		int err;

		code = cli_ns_path("/v1/ns", path_of(a), path);
		if (code != CLI_GO)
			return code;
		if (cli_admin_open_names(&m))
			return CLI_FAILED;
		err = cli_admin_ask(&m, 0, "GET", path, NULL, &reply);
		cli_admin_close(&m);
		if (!err && json_object_get(reply, "entries")) {
			(void)json_object_del(reply, "entries");
			return report(a, reply);
		}
		json_decref(reply);
		reply = NULL;
	}
	body = json_pack("{s:s, s:b}", "kind", "prefix", "make_parents",
			 a->parents);
	if (a->after)
		(void)json_object_set_new(body, "parents",
					  after_list(a->after));
	add_options(a, body);
	code = cli_ns_ask("POST", "/v1/ns", path_of(a), body, &reply);
	return code == CLI_OK ? report(a, reply) : code;
}

/* ---- changing ----------------------------------------------------------- */

static int ns_mv(void *args)
{
	const struct ns_args *a = args;
	json_t *reply = NULL;
	int code =
		cli_ns_ask("PATCH", "/v1/ns", path_of(a),
			   json_pack("{s:s}", "to", a->common.word[1]), &reply);

	return code == CLI_OK ? report(a, reply) : code;
}

static int ns_rm(void *args)
{
	const struct ns_args *a = args;
	json_t *reply = NULL;
	int code = cli_ns_ask("DELETE", "/v1/ns", path_of(a),
			      json_pack("{s:b}", "recursive", a->recursive),
			      &reply);

	json_decref(reply);
	return code == CLI_OK ? report(a, json_pack("{s:s, s:b}", "path",
						    path_of(a), "removed", 1))
			      : code;
}

static int ns_renew(void *args)
{
	const struct ns_args *a = args;
	json_t *reply = NULL;
	int code =
		cli_ns_ask("POST", "/v1/renew", "",
			   json_pack("{s:[s]}", "paths", path_of(a)), &reply);

	if (code == CLI_OK &&
	    json_array_size(json_object_get(reply, "unknown"))) {
		cli_error("there is no %s, or its lease is over", path_of(a));
		json_decref(reply);
		return CLI_FAILED;
	}
	return code == CLI_OK ? report(a, reply) : code;
}

static int move_images(const struct ns_args *a, bool is_load)
{
	json_t *tree = NULL;
	json_t *body = is_load ? json_pack("{s:b}", "back", a->is_back)
			       : json_pack("{s:b}", "freeze", a->freezes);
	int code = cli_ns_vault(is_load, body, path_of(a),
				a->common.json ? &tree : NULL);

	return code == CLI_OK && tree ? report(a, tree) : code;
}

static int ns_flush(void *args)
{
	return move_images(args, false);
}

static int ns_load(void *args)
{
	return move_images(args, true);
}

static int ns_watch(void *args)
{
	const struct ns_args *a = args;
	uint32_t events;
	int err = cli_ns_watch_kinds(a->events, &events);

	return err ? err
		   : cli_ns_watch(a->common.rack, path_of(a), events, a->count,
				  a->wait_ms, a->common.json);
}

static int ns_hold(void *args)
{
	const struct ns_args *a = args;

	if (a->command && a->command[0])
		return cli_ns_hold(path_of(a), a->command);
	cli_error("ns hold needs a command after '--': aquifer ns hold /job -- "
		  "make all");
	return CLI_USAGE;
}

int cmd_ns(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"mkdir", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_mkdir,
		 "make a folder, a task, or a job with its plan: PATH"},
		{"ls", 0, 1, NULL, CLI_NEEDS_NOTHING, ns_ls,
		 "what lies there: [PATH]"},
		{"tree", 0, 1, NULL, CLI_NEEDS_NOTHING, ns_tree,
		 "all that is below: [PATH]"},
		{"stat", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_stat,
		 "all that is known of one: PATH"},
		{"mv", 2, 2, NULL, CLI_NEEDS_NOTHING, ns_mv,
		 "give it another name: PATH TO"},
		{"rm", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_rm,
		 "remove it, and give its memory back: PATH"},
		{"renew", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_renew,
		 "renew its lease once: PATH"},
		{"flush", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_flush,
		 "write it, or all below it, to the vault: PATH"},
		{"load", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_load,
		 "bring it, or all below it, back from the vault: PATH"},
		{"watch", 1, 1, NULL, CLI_NEEDS_RACK, ns_watch,
		 "print what is done to a file, queue or store: PATH"},
		{"hold", 1, 1, NULL, CLI_NEEDS_NOTHING, ns_hold,
		 "renew it while the command after '--' runs: PATH"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct ns_args a = {0};

	for (int i = 1; i < argc && !a.command; i++) {
		if (strcmp(argv[i], "--") != 0)
			continue;
		a.command = &argv[i + 1];
		argv[i] = NULL;
		argc = i;
	}
	return cli_actions_run(self, &actions, argc, argv, &a);
}
