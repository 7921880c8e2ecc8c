/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer token`: shows, replaces and takes away tokens. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "cli_action.h"
#include "cli_admin.h"
#include "cli_report.h"

enum {
	NARROW_S = 3600,
};

struct token_args {
	struct cli_action_args common; /* TENANT */
	bool admin;
	bool engine;
	bool force;
	bool write;
	uint32_t seconds;
	const char *token_file;
};

const struct opt cmd_token_options[] = {
	OPT_FLAG(struct token_args, admin, "admin",
		 "show, new: the administrator's, not the one of programs"),
	OPT_FLAG(struct token_args, engine, "engine",
		 "show, new: the one for engines"),
	OPT_FLAG(struct token_args, write, "write",
		 "narrow: for writing, too, not only for reading"),
	OPT_U32(struct token_args, seconds, "for", "SECONDS", 1, 30 * 24 * 3600,
		"narrow: until it ends (default 3600)"),
	OPT_TEXT(struct token_args, token_file, "token-file", "FILE",
		 "new, narrow, revoke: the token in that file; narrow: where "
		 "there is none, it is written there instead of being shown"),
	OPT_FLAG(struct token_args, force, "force",
		 "new: also when connections end by it"),
	OPT_FLAG(struct token_args, common.json, "json", "print JSON"),
	OPT_END,
};

/* CLI_GO, or the exit code. */
static int kind_of(const struct token_args *a, enum rack_token_kind *kind)
{
	const char *tenant = a->common.word[0];

	if (a->admin + a->engine + (tenant != NULL) > 1) {
		cli_error("only one of TENANT, --admin and --engine can be "
			  "meant");
		return CLI_USAGE;
	}
	*kind = a->admin    ? RACK_TOKEN_ADMIN
		: a->engine ? RACK_TOKEN_ENGINE
			    : RACK_TOKEN_DEFAULT;
	return CLI_GO;
}

static struct rack_token_place place_of(const struct cli_rack *rack)
{
	return (struct rack_token_place){rack->config, rack->name,
					 rack->rundir};
}

/* ---- show --------------------------------------------------------------- */

static int show(const struct token_args *a, const struct cli_rack *rack,
		enum rack_token_kind kind)
{
	const struct rack_token_place place = place_of(rack);
	char token[SECRET_TEXT], from[RACK_TOKEN_PATH_MAX];
	int err = rack_token_find(&place, kind, token, from);

	/* A rack that is down has it where it is kept. */
	if (err == -ENOENT && rack_token_kept(&place, kind, from) == 0)
		err = secret_read(from, token);
	if (err) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	if (a->common.json)
		err = cli_report_print(
			json_pack("{s:s, s:s}", "token", token, "source", from),
			true);
	else
		puts(token);
	secret_forget(token);
	return err ? CLI_FAILED : CLI_OK;
}

static int token_show(void *args)
{
	const struct token_args *a = args;
	enum rack_token_kind kind;
	struct cli_rack rack;
	int code = kind_of(a, &kind);

	if (code != CLI_GO)
		return code;
	if (cli_rack_open(&rack, NULL, false))
		return CLI_FAILED;
	code = show(a, &rack, kind);
	cli_rack_close(&rack);
	return code;
}

/* ---- new ---------------------------------------------------------------- */

static int pick(const struct token_args *a, char token[SECRET_TEXT])
{
	return a->token_file ? secret_read(a->token_file, token)
			     : secret_make(token);
}

/* Who came with the old token is shut out: not without being told. */
static int check_connections(struct cli_admin *m, const char *path, bool force)
{
	/* What nodes say, a controller says again. */
	bool is_alone = m->controllers == m->rack.node_count;
	unsigned nodes = m->rack.node_count - (is_alone ? 0 : m->controllers);
	json_int_t count = 0;

	for (unsigned i = 0; i < nodes && !force; i++) {
		json_t *answer;

		/* A node that fails is met again, and named, below. */
		if (cli_admin_ask(m, i, "GET", path, NULL, &answer) == 0)
			count += json_integer_value(
				json_object_get(answer, "connections"));
		json_decref(answer);
	}
	if (!count)
		return 0;
	cli_error("%" JSON_INTEGER_FORMAT
		  " connections were made with the old token and would end, "
		  "with the programs under 'aquifer run' that have pages "
		  "there; --force does it",
		  count);
	return CLI_FAILED;
}

/* Of a tenant that has no file: the token is shown, once. */
static int new_of_tenant(const struct token_args *a, const char *name)
{
	char path[CLIENT_ADDRESS_MAX], whole[CLIENT_ADDRESS_MAX];
	char token[SECRET_TEXT];
	json_t *body, *tree;
	struct cli_admin m;
	int code;

	if (cli_admin_path(path, name, "/token") ||
	    cli_admin_path(whole, name, ""))
		return CLI_USAGE;
	if (pick(a, token)) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	if (cli_admin_open_rack(&m))
		return CLI_FAILED;
	code = cli_admin_has_nodes(&m);
	if (!code)
		code = check_connections(&m, whole, a->force);
	if (!code) {
		body = json_pack("{s:s}", "token", token);
		tree = json_pack("{s:s}", "tenant", name);
		if (cli_admin_ask_all(&m, "PATCH", path, body) &&
		    !a->token_file)
			cli_report_set(tree, "token", "%s", token);
		json_decref(body);
		code = cli_admin_report(&m, tree, a->common.json);
	}
	secret_forget(token);
	cli_admin_close(&m);
	return code;
}

static int report_file(const struct token_args *a, const char *file)
{
	return cli_report_print(json_pack("{s:s}", "file", file),
				a->common.json)
		       ? CLI_FAILED
		       : CLI_OK;
}

/* No node has it yet, or none runs: files are all there is. */
static int new_in_files(const struct token_args *a,
			const struct rack_token_place *place,
			enum rack_token_kind kind, const char *token)
{
	char kept[RACK_TOKEN_PATH_MAX];
	int err = rack_token_kept(place, kind, kept);

	if (!err)
		err = rack_token_store(place, kind, token);
	if (err) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	return report_file(a, kept);
}

/* Nodes that run: each keeps it where its own machine does. A file that is
 * given has the new token first, because nodes compare; where no node takes it
 * the old one is put back. */
static int new_at_nodes(const struct token_args *a, struct cli_admin *m,
			enum rack_token_kind kind, const char *token)
{
	const struct rack_token_place place = place_of(&m->rack);
	const char *given = rack_token_given(&place, kind);
	bool is_admin = kind == RACK_TOKEN_ADMIN;
	char before[SECRET_TEXT] = "", kept[RACK_TOKEN_PATH_MAX];
	json_t *body;
	int code = is_admin ? 0
			    : check_connections(m, "/v1/tenants/default",
						a->force);

	if (code)
		return code;
	if (rack_token_kept(&place, kind, kept) ||
	    (given[0] &&
	     (secret_read(given, before) || secret_give(given, token)))) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	body = json_pack("{s:s}", "token", token);
	if (cli_admin_ask_all(m, "PATCH",
			      is_admin ? "/v1/admin/token"
				       : "/v1/tenants/default/token",
			      body) == 0 &&
	    given[0] && secret_give(given, before))
		cli_error("%s", error_last());
	else if (given[0] && json_array_size(m->failed))
		cli_error("on machines where rack.%s gives a file, put the new "
			  "token into it first, then: aquifer token new%s "
			  "--token-file %s",
			  rack_token_setting(kind), is_admin ? " --admin" : "",
			  given);
	json_decref(body);
	secret_forget(before);
	return cli_admin_report(m, json_pack("{s:s}", "file", kept),
				a->common.json);
}

static int new_of_rack(const struct token_args *a, struct cli_rack *rack,
		       enum rack_token_kind kind)
{
	const struct rack_token_place place = place_of(rack);
	const char *given = rack_token_given(&place, kind);
	bool is_first = given[0] && access(given, F_OK) != 0;
	char token[SECRET_TEXT];
	struct cli_admin m;
	int code;

	if (pick(a, token)) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	if (kind == RACK_TOKEN_ENGINE && rack->engine_count && !is_first) {
		cli_error("engines read their token when they start; 'aquifer "
			  "down' ends them");
		code = CLI_FAILED;
	} else if (is_first || kind == RACK_TOKEN_ENGINE ||
		   rack->node_count == 0) {
		code = new_in_files(a, &place, kind, token);
	} else if (cli_admin_open_all(&m)) {
		code = CLI_FAILED;
	} else {
		code = new_at_nodes(a, &m, kind, token);
		cli_admin_close(&m);
	}
	secret_forget(token);
	return code;
}

static int token_new(void *args)
{
	const struct token_args *a = args;
	const char *tenant = a->common.word[0];
	enum rack_token_kind kind;
	struct cli_rack rack;
	int code = kind_of(a, &kind);

	if (code != CLI_GO)
		return code;
	if (tenant && strcmp(tenant, "default") != 0)
		return new_of_tenant(a, tenant);
	if (cli_rack_open(&rack, NULL, false))
		return CLI_FAILED;
	code = new_of_rack(a, &rack, kind);
	cli_rack_close(&rack);
	return code;
}

/* ---- narrow -------------------------------------------------------------- */

/* The one in the file; a new one, which goes there, where there is none; or a
 * new one that is shown. */
static int pick_narrow(const struct token_args *a, char token[SECRET_TEXT])
{
	int err;

	if (a->token_file) {
		err = secret_read(a->token_file, token);
		if (err != -ENOENT)
			return err;
	}
	err = secret_make(token);
	return err || !a->token_file ? err
				     : secret_create(a->token_file, token);
}

static int token_narrow(void *args)
{
	const struct token_args *a = args;
	const char *regions = a->common.word[0] ? a->common.word[0] : "*";
	uint32_t seconds = a->seconds ? a->seconds : NARROW_S;
	char token[SECRET_TEXT];
	struct cli_admin m;
	json_t *body, *tree;
	int code;

	if (pick_narrow(a, token)) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	if (cli_admin_open_tenant(&m)) {
		secret_forget(token);
		return CLI_FAILED;
	}
	code = cli_admin_has_nodes(&m);
	if (!code) {
		body = json_pack("{s:s, s:s, s:s, s:I}", "token", token,
				 "regions", regions, "rights",
				 a->write ? "rw" : "r", "ms",
				 (json_int_t)seconds * 1000);
		tree = json_pack("{s:s, s:s, s:I}", "regions", regions,
				 "rights", a->write ? "rw" : "r", "seconds",
				 (json_int_t)seconds);
		if (cli_admin_ask_all(&m, "POST", "/v1/tokens", body) &&
		    !a->token_file)
			cli_report_set(tree, "token", "%s", token);
		json_decref(body);
		code = cli_admin_report(&m, tree, a->common.json);
	}
	secret_forget(token);
	cli_admin_close(&m);
	return code;
}

static int revoke_narrow(const struct token_args *a)
{
	char token[SECRET_TEXT];
	struct cli_admin m;
	json_t *body;
	int code;

	if (secret_read(a->token_file, token)) {
		cli_error("%s", error_last());
		return CLI_FAILED;
	}
	if (cli_admin_open_tenant(&m)) {
		secret_forget(token);
		return CLI_FAILED;
	}
	code = cli_admin_has_nodes(&m);
	if (!code) {
		body = json_pack("{s:s}", "token", token);
		(void)cli_admin_ask_all(&m, "DELETE", "/v1/tokens", body);
		json_decref(body);
		code = cli_admin_report(&m, json_pack("{s:b}", "revoked", 1),
					a->common.json);
	}
	secret_forget(token);
	cli_admin_close(&m);
	return code;
}

/* ---- revoke ------------------------------------------------------------- */

static int token_revoke(void *args)
{
	const struct token_args *a = args;
	const char *name = a->common.word[0];
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	int code;

	if (!name == !a->token_file) {
		cli_error("token revoke needs the name of a tenant, or "
			  "--token-file with a token of 'token narrow'");
		return CLI_USAGE;
	}
	if (a->token_file)
		return revoke_narrow(a);
	if (strcmp(name, "default") == 0) {
		cli_error("the tenant default always has a token; 'aquifer "
			  "token new' replaces it");
		return CLI_FAILED;
	}
	if (cli_admin_path(path, name, "/token"))
		return CLI_USAGE;
	if (cli_admin_open_rack(&m))
		return CLI_FAILED;
	code = cli_admin_has_nodes(&m);
	if (!code) {
		(void)cli_admin_ask_all(&m, "DELETE", path, NULL);
		code = cli_admin_report(
			&m,
			json_pack("{s:s, s:b}", "tenant", name, "revoked", 1),
			a->common.json);
	}
	cli_admin_close(&m);
	return code;
}

int cmd_token(const struct cli_command *self, int argc, char **argv)
{
	static const struct cli_action table[] = {
		{"show", 0, 0, NULL, CLI_NEEDS_NOTHING, token_show,
		 "the token that programs of this machine use"},
		{"new", 0, 1, NULL, CLI_NEEDS_NOTHING, token_new,
		 "replace it, or a tenant's, on all nodes: [TENANT]"},
		{"narrow", 0, 1, NULL, CLI_NEEDS_NOTHING, token_narrow,
		 "make one for some regions and some time: [REGION]"},
		{"revoke", 0, 1, NULL, CLI_NEEDS_NOTHING, token_revoke,
		 "shut a tenant out, or end a narrow token: [TENANT]"},
		{0},
	};
	static const struct cli_actions actions = {table, NULL, NULL};
	struct token_args a = {0};

	return cli_actions_run(self, &actions, argc, argv, &a);
}
