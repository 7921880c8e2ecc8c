/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of a tenant or of a role in a rack with a controller: more of them,
 * with an end or without, and back again, until the nodes have heard it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_report.h"
#include "cli_tenant.h"

enum {
	HEARD_MS = 3000,
	HEARD_LOOK_MS = 5,
	UNTIL_TEXT = 32,
};

/* Whose: a tenant, or a role. CLI_GO with the path before "/tokens". */
static int owner_path(const struct cli_tenant *a, unsigned words_max,
		      char path[CLIENT_ADDRESS_MAX])
{
	if (a->role && a->common.word[words_max - 1]) {
		cli_error("either TENANT or --role can be meant");
		return CLI_USAGE;
	}
	if (!a->role && !a->common.word[0]) {
		cli_error("whose token? TENANT, or --role admin or node");
		return CLI_USAGE;
	}
	if (!a->role)
		return cli_admin_path(path, a->common.word[0], "") ? CLI_USAGE
								   : CLI_GO;
	if (strcmp(a->role, "admin") != 0 && strcmp(a->role, "node") != 0) {
		cli_error("--role is admin or node, not '%.40s'", a->role);
		return CLI_USAGE;
	}
	(void)snprintf(path, CLIENT_ADDRESS_MAX, "/v1/roles/%s", a->role);
	return CLI_GO;
}

/* CLI_GO: there is a controller, and it is the only one that is asked. */
static int open_control(struct cli_admin *m)
{
	if (cli_admin_open_rack(m))
		return CLI_FAILED;
	if (m->controllers)
		return CLI_GO;
	cli_error("no controller: nodes that run alone keep one token of each "
		  "tenant, which 'aquifer token' replaces and takes back");
	cli_admin_close(m);
	return CLI_FAILED;
}

static int append(char path[CLIENT_ADDRESS_MAX], const char *rest,
		  const char *id)
{
	size_t len = strlen(path);

	if (id && (!*id || strspn(id, "0123456789") != strlen(id) ||
		   strlen(id) > 9)) {
		cli_error("ID is a number that 'aquifer tenant tokens' shows, "
			  "not '%.40s'",
			  id);
		return -EINVAL;
	}
	(void)snprintf(path + len, CLIENT_ADDRESS_MAX - len, "%s%s", rest,
		       id ? id : "");
	return 0;
}

static const char *until_text(const json_t *row, char out[UNTIL_TEXT])
{
	time_t at = (time_t)json_integer_value(json_object_get(row, "until"));
	struct tm tm;

	if (!at || !gmtime_r(&at, &tm) ||
	    !strftime(out, UNTIL_TEXT, "%Y-%m-%dT%H:%M:%SZ", &tm))
		(void)snprintf(out, UNTIL_TEXT, "none");
	return out;
}

static void set_owner(const struct cli_tenant *a, json_t *tree)
{
	if (a->role)
		cli_report_set(tree, "role", "%s", a->role);
	else
		cli_report_set(tree, "tenant", "%s", a->common.word[0]);
}

/* ---- nodes that have heard it ------------------------------------------- */

/* Which nodes have made the list of tenants their own that the controller has
 * now: by then the connections have ended there. True: all that are not down.
 */
static bool sort_nodes(const json_t *answer, json_t *heard, json_t *unheard)
{
	const char *list =
		json_string_value(json_object_get(answer, "tenants"));
	const json_t *rows = json_object_get(answer, "nodes"), *row;
	bool all = true;
	size_t i;

	(void)json_array_clear(heard);
	(void)json_array_clear(unheard);
	json_array_foreach(rows, i, row)
	{
		const char *has =
			json_string_value(json_object_get(row, "tenants"));
		const char *state =
			json_string_value(json_object_get(row, "state"));

		if (!has || !list || !state)
			continue;
		if (strcmp(has, list) == 0) {
			(void)json_array_append(heard,
						json_object_get(row, "name"));
			continue;
		}
		(void)json_array_append(unheard, json_object_get(row, "name"));
		all &= strcmp(state, "down") == 0;
	}
	return all;
}

int cli_tenant_await(struct cli_admin *m, const char *done, json_t *tree)
{
	const struct timespec pause = {.tv_nsec = HEARD_LOOK_MS * 1000000};
	uint64_t end_ms = clock_mono_ms() + HEARD_MS;
	json_t *heard = json_array(), *unheard = json_array(), *answer;
	bool all = false;
	int err = 0;

	while (!err && !all && clock_mono_ms() < end_ms) {
		err = cli_admin_ask(m, 0, "GET", "/v1/nodes", NULL, &answer);
		all = !err && sort_nodes(answer, heard, unheard);
		json_decref(answer);
		if (!err && !all)
			(void)nanosleep(&pause, NULL);
	}
	(void)json_object_set_new(tree, "heard", heard);
	(void)json_object_set_new(tree, "unheard", unheard);
	if (all)
		return CLI_OK;
	cli_error("%s; %s", done,
		  err ? error_last()
		      : "some nodes are silent and have not heard so");
	return CLI_FAILED;
}

/* ---- token -------------------------------------------------------------- */

static int make(const struct cli_tenant *a, struct cli_admin *m,
		const char *path, const char *token)
{
	json_t *body = json_pack("{s:s}", "token", token), *answer, *tree;
	char until[UNTIL_TEXT];
	int err;

	if (a->seconds)
		(void)json_object_set_new(body, "ttl_s",
					  json_integer(a->seconds));
	if (a->path)
		(void)json_object_set_new(body, "path", json_string(a->path));
	if (a->read_only)
		(void)json_object_set_new(body, "rights", json_string("r"));
	err = cli_admin_ask(m, 0, "POST", path, body, &answer);
	if (err) {
		cli_error("%s", error_last());
		json_decref(answer);
		return CLI_FAILED;
	}
	tree = json_object();
	set_owner(a, tree);
	(void)json_object_set(tree, "id", json_object_get(answer, "id"));
	cli_report_set(tree, "until", "%s", until_text(answer, until));
	if (a->path)
		cli_report_set(tree, "path", "%s", a->path);
	if (a->read_only)
		cli_report_set(tree, "rights", "r");
	if (a->token_file)
		cli_report_set(tree, "token_file", "%s", a->token_file);
	else
		cli_report_set(tree, "token", "%s", token);
	json_decref(answer);
	/* It counts, at whichever nodes there are. */
	if (!a->role)
		(void)cli_tenant_await(m, "the token is made", tree);
	return cli_report_print(tree, a->common.json) ? CLI_FAILED : CLI_OK;
}

int cli_tenant_token(void *args)
{
	const struct cli_tenant *a = args;
	char path[CLIENT_ADDRESS_MAX], token[SECRET_TEXT];
	struct cli_admin m;
	bool is_new;
	int code = owner_path(a, 1, path);

	if (code == CLI_GO && a->role && (a->path || a->read_only)) {
		cli_error("--path and --read-only are for tokens of a tenant");
		code = CLI_USAGE;
	}
	if (code == CLI_GO && append(path, "/tokens", NULL))
		code = CLI_USAGE;
	if (code == CLI_GO)
		code = open_control(&m);
	if (code != CLI_GO)
		return code;
	code = CLI_FAILED;
	if (cli_tenant_find_token(a, token, &is_new))
		cli_error("%s", error_last());
	else
		code = make(a, &m, path, token);
	if (code != CLI_OK && is_new)
		(void)unlink(a->token_file); /* nobody knows what is in it */
	secret_forget(token);
	cli_admin_close(&m);
	return code;
}

/* ---- tokens ------------------------------------------------------------- */

static const char *text_of(const json_t *row, const char *key,
			   const char *otherwise)
{
	const char *text = json_string_value(json_object_get(row, key));

	return text ? text : otherwise;
}

int cli_tenant_tokens(void *args)
{
	const struct cli_tenant *a = args;
	char path[CLIENT_ADDRESS_MAX], until[UNTIL_TEXT];
	struct cli_admin m;
	json_t *answer, *row;
	size_t i;
	int code = owner_path(a, 1, path);

	if (code == CLI_GO && append(path, "/tokens", NULL))
		code = CLI_USAGE;
	if (code == CLI_GO)
		code = open_control(&m);
	if (code != CLI_GO)
		return code;
	code = CLI_OK;
	if (cli_admin_ask(&m, 0, "GET", path, NULL, &answer)) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	} else if (a->common.json) {
		code = cli_report_print(json_incref(answer), true) ? CLI_FAILED
								   : CLI_OK;
	} else {
		printf("%-4s %-20s %-6s %s\n", "ID", "UNTIL", "RIGHTS", "PATH");
		json_array_foreach(json_object_get(answer, "tokens"), i, row)
			printf("%-4" JSON_INTEGER_FORMAT " %-20s %-6s %s\n",
			       json_integer_value(json_object_get(row, "id")),
			       until_text(row, until),
			       text_of(row, "rights", "rw"),
			       text_of(row, "path", "all"));
	}
	json_decref(answer);
	cli_admin_close(&m);
	return code;
}

/* ---- revoke ------------------------------------------------------------- */

static int revoke_at_control(const struct cli_tenant *a, struct cli_admin *m,
			     const char *path)
{
	uint64_t start_ns = clock_mono_ns();
	json_t *answer, *tree;
	int code = CLI_OK;

	if (cli_admin_ask(m, 0, "DELETE", path, NULL, &answer)) {
		cli_error("%s", error_last());
		json_decref(answer);
		return CLI_FAILED;
	}
	json_decref(answer);
	tree = json_object();
	set_owner(a, tree);
	(void)json_object_set_new(tree, "revoked", json_true());
	if (!a->role)
		code = cli_tenant_await(m, "it is taken back", tree);
	(void)json_object_set_new(
		tree, "ms",
		json_real((double)((clock_mono_ns() - start_ns) / 1000) /
			  1000));
	if (cli_report_print(tree, a->common.json))
		code = CLI_FAILED;
	return code;
}

int cli_tenant_revoke(void *args)
{
	const struct cli_tenant *a = args;
	const char *id = a->common.word[a->role ? 0 : 1];
	char path[CLIENT_ADDRESS_MAX];
	struct cli_admin m;
	int code = owner_path(a, 2, path);

	if (code == CLI_GO && a->role && !id) {
		cli_error("tenant revoke --role ROLE needs an ID");
		code = CLI_USAGE;
	}
	if (code == CLI_GO &&
	    append(path, id ? "/tokens/" : "/token", id ? id : NULL))
		code = CLI_USAGE;
	if (code == CLI_GO)
		code = open_control(&m);
	if (code != CLI_GO)
		return code;
	code = revoke_at_control(a, &m, path);
	cli_admin_close(&m);
	return code;
}
