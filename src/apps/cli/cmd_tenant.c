/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer tenant`: who may use the rack, and how much of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "cli_report.h"
#include "cli_tenant.h"

/* KIND=N; the node knows which kinds there are. */
static int take_limit(void *args, const char *word)
{
	struct cli_tenant *a = args;
	const char *eq = strchr(word, '=');
	char kind[32], *end;
	long long n = eq ? strtoll(eq + 1, &end, 10) : -1;

	if (!eq || eq == word || eq - word >= (int)sizeof(kind) || !eq[1] ||
	    *end || n < 0)
		return error_set(-EINVAL,
				 "--limit takes KIND=N (regions=100), not "
				 "'%.60s'",
				 word);
	(void)snprintf(kind, sizeof(kind), "%.*s", (int)(eq - word), word);
	if (!a->limits)
		a->limits = json_object();
	(void)json_object_set_new(a->limits, kind, json_integer(n));
	return 0;
}

const struct opt cmd_tenant_options[] = {
	OPT_TEXT(struct cli_tenant, quota, "quota", "SIZE|none",
		 "create: bytes that the tenant may have on each node (default "
		 "none: as much as there is)"),
	OPT_CALL(take_limit, "limit", "KIND=N",
		 "create, quota: how many of device (bytes), regions, "
		 "connections, servers, grants, sessions, walks or "
		 "requests (a second); may be repeated"),
	OPT_TEXT(struct cli_tenant, token_file, "token-file", "FILE",
		 "create, token: the token in that file; where there is none, "
		 "a new token is written to it instead of being shown"),
	OPT_U32(struct cli_tenant, seconds, "for", "SECONDS", 1,
		366 * 24 * 3600, "token: until it ends (default: no end)"),
	OPT_TEXT(struct cli_tenant, path, "path", "PATH",
		 "token: only for names (aquifer-ns(1)) at that path and below "
		 "it"),
	OPT_FLAG(struct cli_tenant, read_only, "read-only",
		 "token: only for reading"),
	OPT_TEXT(struct cli_tenant, role, "role", "admin|node",
		 "token, tokens, revoke: of that role, not of a tenant"),
	OPT_FLAG(struct cli_tenant, force, "force",
		 "rm: also a tenant that has regions, with all they hold"),
	OPT_FLAG(struct cli_tenant, common.json, "json", "print JSON"),
	OPT_END,
};

/* "none" is 0. False: stderr says why. */
static bool parse_quota(const char *word, uint64_t *bytes)
{
	*bytes = 0;
	return strcmp(word, "none") == 0 ||
	       cli_parse_size("a quota", word, bytes) == 0;
}

/* For people as they write it. */
static void set_quota(json_t *tree, uint64_t quota, bool as_json)
{
	char size[16];

	if (as_json)
		(void)json_object_set_new(tree, "quota",
					  json_integer((json_int_t)quota));
	else
		cli_report_set(tree, "quota", "%s",
			       quota ? cli_rack_size(quota, size) : "none");
}

/* ---- create ------------------------------------------------------------- */

/* Whether a node's tenant has this token already. */
static bool is_same(struct cli_admin *m, unsigned node, const char *token)
{
	const struct client_caller caller = {.http = m->http, .token = token};
	json_t *reply = NULL;
	int err = client_call(&caller, &m->rack.node[node], "GET",
			      "/v1/connections", NULL, 5000, CLIENT_LIST_MAX,
			      &reply);

	json_decref(reply);
	return err == 0;
}

/* Who runs the command again does what is left. */
static int create_at(struct cli_admin *m, unsigned node, const char *name,
		     const json_t *body, const char *token)
{
	char path[CLIENT_ADDRESS_MAX];
	json_t *reply, *change;
	int err = cli_admin_ask(m, node, "POST", "/v1/tenants",
				json_deep_copy(body), &reply);

	json_decref(reply);
	if (err != -EEXIST)
		return err;
	if (!is_same(m, node, token))
		return error_set(-EEXIST,
				 "node %s: there is a tenant %s already, with "
				 "another token",
				 m->rack.node[node].name, name);
	if (cli_admin_path(path, name, ""))
		return -EINVAL;
	change = json_deep_copy(body);
	(void)json_object_del(change, "name");
	(void)json_object_del(change, "token");
	err = cli_admin_ask(m, node, "PATCH", path, change, &reply);
	json_decref(reply);
	return err;
}

int cli_tenant_find_token(const struct cli_tenant *a, char token[SECRET_TEXT],
			  bool *is_new)
{
	int err;

	*is_new = false;
	if (!a->token_file)
		return secret_make(token);
	err = secret_read(a->token_file, token);
	if (err != -ENOENT)
		return err;
	err = secret_make(token);
	if (!err)
		err = secret_create(a->token_file, token);
	*is_new = !err;
	return err;
}

static int create_all(struct cli_admin *m, const struct cli_tenant *a,
		      uint64_t quota)
{
	const char *name = a->common.word[0];
	char token[SECRET_TEXT];
	json_t *body, *tree;
	bool is_new;
	int err = cli_tenant_find_token(a, token, &is_new);

	if (err)
		return err;
	body = json_pack("{s:s, s:I, s:s, s:O*}", "name", name, "quota",
			 (json_int_t)quota, "token", token, "limits",
			 a->limits);
	for (unsigned i = 0; i < m->rack.node_count; i++)
		cli_admin_note(m, i, create_at(m, i, name, body, token));
	json_decref(body);
	tree = json_pack("{s:s}", "name", name);
	set_quota(tree, quota, a->common.json);
	if (json_array_size(m->done) == 0) {
		if (is_new)
			(void)unlink(a->token_file);
	} else if (a->token_file) {
		cli_report_set(tree, "token_file", "%s", a->token_file);
	} else {
		cli_report_set(tree, "token", "%s", token);
		if (json_array_size(m->failed))
			cli_error("to do the rest, put the token into a file "
				  "(mode 0600) and add --token-file FILE");
	}
	secret_forget(token);
	return cli_admin_report(m, tree, a->common.json);
}

static int tenant_create(void *args)
{
	const struct cli_tenant *a = args;
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	uint64_t quota = 0;
	int code;

	if (cli_admin_path(path, a->common.word[0], "") ||
	    (a->quota && !parse_quota(a->quota, &quota)))
		return CLI_USAGE;
	if (cli_admin_open_rack(&m))
		return CLI_FAILED;
	code = cli_admin_has_nodes(&m);
	if (!code)
		code = create_all(&m, a, quota);
	if (code < 0) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	}
	cli_admin_close(&m);
	return code;
}

/* ---- quota -------------------------------------------------------------- */

static int tenant_quota(void *args)
{
	const struct cli_tenant *a = args;
	const char *name = a->common.word[0];
	char path[CLIENT_ADDRESS_MAX];
	json_t *body, *tree;
	struct cli_admin m;
	uint64_t quota = 0;
	int code;

	if (cli_admin_path(path, name, "") ||
	    (a->common.word[1] && !parse_quota(a->common.word[1], &quota)))
		return CLI_USAGE;
	if (!a->common.word[1] && !a->limits) {
		cli_error("tenant quota takes TENANT and SIZE (or none), or "
			  "--limit");
		return CLI_USAGE;
	}
	if (cli_admin_open_rack(&m))
		return CLI_FAILED;
	body = json_pack("{s:O*}", "limits", a->limits);
	tree = json_pack("{s:s, s:O*}", "name", name, "limits", a->limits);
	if (a->common.word[1]) {
		(void)json_object_set_new(body, "quota",
					  json_integer((json_int_t)quota));
		set_quota(tree, quota, a->common.json);
	}
	code = cli_admin_has_nodes(&m);
	if (!code) {
		(void)cli_admin_ask_all(&m, "PATCH", path, body);
		code = cli_admin_report(&m, tree, a->common.json);
	} else {
		json_decref(tree);
	}
	json_decref(body);
	cli_admin_close(&m);
	return code;
}

static void close_args(void *args)
{
	const struct cli_tenant *a = args;

	json_decref(a->limits);
}

int cmd_tenant(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"create", 1, 1, NULL, CLI_NEEDS_NOTHING, tenant_create,
		 "on all nodes, with a token of its own: TENANT"},
		{"ls", 0, 0, NULL, CLI_NEEDS_NOTHING, cli_tenant_ls,
		 "all tenants, and what they have on all nodes"},
		{"quota", 1, 2, NULL, CLI_NEEDS_NOTHING, tenant_quota,
		 "what it may have on each node: TENANT [SIZE|none]"},
		{"token", 0, 1, NULL, CLI_NEEDS_NOTHING, cli_tenant_token,
		 "one more, in a rack with a controller: [TENANT]"},
		{"tokens", 0, 1, NULL, CLI_NEEDS_NOTHING, cli_tenant_tokens,
		 "their numbers, and when they end: [TENANT]"},
		{"revoke", 0, 2, NULL, CLI_NEEDS_NOTHING, cli_tenant_revoke,
		 "one of them, or all, with its connections: [TENANT] [ID]"},
		{"rm", 1, 1, NULL, CLI_NEEDS_NOTHING, cli_tenant_rm,
		 "with its connections: TENANT"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, close_args};
	struct cli_tenant a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
