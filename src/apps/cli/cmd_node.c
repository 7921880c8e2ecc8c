/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer node`: what has joined the controller. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli_action.h"
#include "cli_admin.h"
#include "cli_drain.h"
#include "cli_report.h"

struct node_args {
	struct cli_action_args common; /* NODE */
};

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s && *s ? s : "-";
}

static void print_nodes(const json_t *rows)
{
	char used[16], size[16];
	const json_t *row;
	size_t i;

	printf("%-16s %-8s %-9s %8s %8s %8s %-10s %s\n", "NODE", "KIND",
	       "STATE", "USED", "SIZE", "REGIONS", "ZONE", "ADDRESS");
	json_array_foreach(rows, i, row)
	{
		const json_t *n = json_object_get(row, "size");
		char regions[24] = "-";

		if (n)
			(void)snprintf(regions, sizeof(regions),
				       "%" JSON_INTEGER_FORMAT,
				       json_integer_value(json_object_get(
					       row, "regions")));
		printf("%-16s %-8s %-9s %8s %8s %8s %-10s %s\n",
		       text(row, "name"), text(row, "kind"), text(row, "state"),
		       n ? cli_rack_size((uint64_t)json_integer_value(
						 json_object_get(row, "used")),
					 used)
			 : "-",
		       n ? cli_rack_size((uint64_t)json_integer_value(n), size)
			 : "-",
		       regions, text(row, "zone"), text(row, "address"));
	}
}

/* Tenants that a node has under another token than the rack. */
static void print_conflicts(const json_t *rows)
{
	const json_t *row, *name;
	size_t i, k;

	json_array_foreach(rows, i, row)
	{
		const json_t *names = json_object_get(row, "conflicts");

		json_array_foreach(names, k, name)
			printf("node %s keeps its own tenant %s, which has "
			       "another token there\n",
			       text(row, "name"), json_string_value(name));
	}
}

static int node_ls(void *args)
{
	const struct node_args *a = args;
	struct cli_admin m;
	json_t *answer;
	int err, code = CLI_OK;

	if (cli_admin_open_control(&m, RACK_TOKEN_ADMIN))
		return CLI_FAILED;
	err = cli_admin_ask(&m, 0, "GET", "/v1/nodes", NULL, &answer);
	if (err) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	} else if (a->common.json) {
		code = cli_report_print(json_incref(answer), true) ? CLI_FAILED
								   : CLI_OK;
	} else {
		print_nodes(json_object_get(answer, "nodes"));
		print_conflicts(json_object_get(answer, "nodes"));
	}
	json_decref(answer);
	cli_admin_close(&m);
	return code;
}

static int path_of(const char *name, const char *rest,
		   char path[CLIENT_ADDRESS_MAX])
{
	if (!client_node_name_is_valid(name)) {
		cli_error("a node's name has 1 to 32 of a-z, 0-9 and '-', not "
			  "'%.40s'",
			  name);
		return -EINVAL;
	}
	(void)snprintf(path, CLIENT_ADDRESS_MAX, "/v1/nodes/%s%s", name, rest);
	return 0;
}

static int drain(const struct node_args *a, bool wish)
{
	const char *name = a->common.word[0];
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	json_t *answer;
	int code = CLI_OK;

	if (path_of(name, "/drain", path))
		return CLI_USAGE;
	if (cli_admin_open_control(&m, RACK_TOKEN_ADMIN))
		return CLI_FAILED;
	if (cli_admin_ask(&m, 0, "POST", path,
			  json_pack("{s:b}", "drain", wish), &answer)) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	} else {
		if (!a->common.json)
			printf("node %s %s\n", name,
			       wish ? "takes nothing new"
				    : "takes memory again");
		if (wish)
			code = cli_drain_run(&m, name, a->common.json);
		else if (a->common.json &&
			 cli_report_print(json_incref(answer), true))
			code = CLI_FAILED;
	}
	json_decref(answer);
	cli_admin_close(&m);
	return code;
}

static int node_drain(void *args)
{
	return drain(args, true);
}

static int node_undrain(void *args)
{
	return drain(args, false);
}

static int node_forget(void *args)
{
	const struct node_args *a = args;
	const char *name = a->common.word[0];
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	json_t *answer = NULL;
	int code = CLI_FAILED;

	if (path_of(name, "", path))
		return CLI_USAGE;
	if (cli_admin_open_control(&m, RACK_TOKEN_ADMIN))
		return CLI_FAILED;
	if (cli_admin_ask(&m, 0, "DELETE", path, NULL, &answer))
		cli_error("%s", error_last());
	else
		code = cli_report_print(json_pack("{s:s, s:b}", "node", name,
						  "forgotten", 1),
					a->common.json)
			       ? CLI_FAILED
			       : CLI_OK;
	json_decref(answer);
	cli_admin_close(&m);
	return code;
}

int cmd_node(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"ls", 0, 0, NULL, CLI_NEEDS_NOTHING, node_ls,
		 "all that has joined, and how it is"},
		{"drain", 1, 1, NULL, CLI_NEEDS_NOTHING, node_drain,
		 "nothing new on this one; move what can be moved: NODE"},
		{"undrain", 1, 1, NULL, CLI_NEEDS_NOTHING, node_undrain,
		 "take it into use again: NODE"},
		{"forget", 1, 1, NULL, CLI_NEEDS_NOTHING, node_forget,
		 "one that is down for good; its memory counts no more: NODE"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct node_args a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
