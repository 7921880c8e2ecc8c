/* SPDX-License-Identifier: Apache-2.0 */
/* Asks all nodes of a rack, and remembers which of them did it. */
#include "cli_admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cli.h"
#include "cli_report.h"

enum {
	ASK_MS = 10000,
};

static int open_as(struct cli_admin *a, enum rack_token_kind kind)
{
	int err;

	memset(a, 0, sizeof(*a));
	err = cli_rack_open(&a->rack, NULL, false);
	if (err)
		return err;
	a->done = json_array();
	a->failed = json_array();
	err = client_token_read(a->rack.config, a->rack.rundir, kind, a->token);
	if (!err)
		err = client_http_create(&a->http);
	if (err) {
		cli_error("%s", error_last());
		if (err == -ENOENT && kind == RACK_TOKEN_ADMIN)
			cli_error("the administrator's token is needed; "
				  "'aquifer up' makes one, "
				  "rack.admin_token_file gives one");
		cli_admin_close(a);
	}
	return err;
}

int cli_admin_open(struct cli_admin *a)
{
	return open_as(a, RACK_TOKEN_ADMIN);
}

int cli_admin_open_tenant(struct cli_admin *a)
{
	return open_as(a, RACK_TOKEN_DEFAULT);
}

/* The controller that leads, behind so many nodes. */
static int add_control(struct cli_admin *a, unsigned behind)
{
	struct client_node control;
	json_t *status;
	int err;

	if (!a->rack.control_count)
		return 0;
	err = cli_rack_control(&a->rack, ASK_MS, &control, &status);
	json_decref(status);
	if (err) {
		cli_error("%s", error_last());
		cli_error("the tenants of this rack are the controller's "
			  "(rack.control), and it does not answer");
		cli_admin_close(a);
		return err;
	}
	if (behind == CLIENT_NODE_MAX)
		behind--;
	a->rack.node[behind] = control;
	a->rack.node_count = behind + 1;
	a->controllers = 1;
	return 0;
}

int cli_admin_open_rack(struct cli_admin *a)
{
	int err = cli_admin_open(a);

	return err ? err : add_control(a, 0);
}

int cli_admin_open_control(struct cli_admin *a, enum rack_token_kind kind)
{
	int err = open_as(a, kind);

	if (!err)
		err = add_control(a, 0);
	if (err || a->controllers)
		return err;
	cli_error("this rack has no controller; 'control = c0' in the section "
		  "[rack] of rack.ini names one, and 'aquifer up' starts it");
	cli_admin_close(a);
	return -ENOENT;
}

int cli_admin_open_all(struct cli_admin *a)
{
	int err = cli_admin_open(a);

	return err ? err : add_control(a, a->rack.node_count);
}

/* A rack without a controller may have no token either; that is not what is
 * missing. */
static int has_control(void)
{
	struct cli_rack rack;
	int err = cli_rack_open(&rack, NULL, false);

	if (err)
		return err;
	if (!rack.control_count) {
		cli_error("names need a controller; 'control = c0' in the "
			  "section [rack] of rack.ini names one, and 'aquifer "
			  "up' starts it");
		err = -ENOENT;
	}
	cli_rack_close(&rack);
	return err;
}

int cli_admin_open_names(struct cli_admin *a)
{
	int err = has_control();

	if (!err)
		err = cli_admin_open_tenant(a);
	return err ? err : add_control(a, 0);
}

int cli_admin_find_leader(struct cli_admin *a)
{
	json_t *status = NULL;
	int err = cli_rack_control(&a->rack, ASK_MS, &a->rack.node[0], &status);

	json_decref(status);
	return err;
}

void cli_admin_close(struct cli_admin *a)
{
	secret_forget(a->token);
	client_http_destroy(a->http);
	json_decref(a->done);
	json_decref(a->failed);
	cli_rack_close(&a->rack);
}

int cli_admin_ask(struct cli_admin *a, unsigned node, const char *method,
		  const char *path, json_t *body, json_t **reply)
{
	const struct client_caller caller = {.http = a->http,
					     .token = a->token};

	*reply = NULL;
	return client_call(&caller, &a->rack.node[node], method, path, body,
			   ASK_MS, CLIENT_LIST_MAX, reply);
}

void cli_admin_note(struct cli_admin *a, unsigned node, int err)
{
	const char *name = a->rack.node[node].name;

	if (!err) {
		(void)json_array_append_new(a->done, json_string(name));
		return;
	}
	cli_error("%s", error_last());
	(void)json_array_append_new(
		a->failed,
		json_pack("{s:s, s:s}", "node", name, "error", error_last()));
}

unsigned cli_admin_ask_all(struct cli_admin *a, const char *method,
			   const char *path, const json_t *body)
{
	unsigned done = 0;

	for (unsigned i = 0; i < a->rack.node_count; i++) {
		json_t *reply;
		int err = cli_admin_ask(a, i, method, path,
					body ? json_deep_copy(body) : NULL,
					&reply);

		json_decref(reply);
		cli_admin_note(a, i, err);
		done += !err;
	}
	return done;
}

int cli_admin_has_nodes(const struct cli_admin *a)
{
	if (a->rack.node_count)
		return 0;
	(void)client_nodes_none(a->rack.name, a->rack.rundir); /* the words */
	cli_error("%s", error_last());
	return CLI_FAILED;
}

int cli_admin_report(struct cli_admin *a, json_t *tree, bool as_json)
{
	size_t failed = json_array_size(a->failed);

	(void)json_object_set(tree, "nodes", a->done);
	if (failed || as_json)
		(void)json_object_set(tree, "failed", a->failed);
	if (failed && json_array_size(a->done))
		cli_error("%zu of %u nodes failed: the rack is not the same "
			  "everywhere; the same command again does what is "
			  "left",
			  failed, a->rack.node_count);
	return cli_report_print(tree, as_json) || failed ? CLI_FAILED : CLI_OK;
}

int cli_admin_path(char path[CLIENT_ADDRESS_MAX], const char *name,
		   const char *rest)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				  "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_.");

	if (len == 0 || len > CLI_TENANT_NAME_MAX || name[len]) {
		cli_error("a tenant's name has letters, digits, '-', '_' and "
			  "'.', not '%.40s'",
			  name);
		return -EINVAL;
	}
	(void)snprintf(path, CLIENT_ADDRESS_MAX, "/v1/tenants/%s%s", name,
		       rest);
	return 0;
}
