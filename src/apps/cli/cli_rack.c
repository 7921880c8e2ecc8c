/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the rack and asks its nodes. */
#include "cli_rack.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/size.h"
#include "cli.h"

enum {
	ONE_OF_MANY_MS = 1500,
};

int cli_rack_open(struct cli_rack *rack, const char *file, bool make)
{
	int err;

	memset(rack, 0, sizeof(*rack));
	if (file && cli_rack_choose_file(file) != CLI_GO)
		return -EINVAL;
	err = config_open(NULL, &rack->config);
	if (!err) {
		rack->name = config_string(rack->config, "rack", "name");
		err = make ? rundir_make(rack->name, rack->rundir)
			   : rundir_path(rack->name, rack->rundir);
	}
	if (err) {
		cli_error_last(err);
		cli_rack_close(rack);
		return err;
	}
	cli_rack_scan(rack);
	return 0;
}

int cli_rack_parse(const struct cli_command *self, int argc, char **argv,
		   bool make, bool *as_json, struct cli_rack *rack)
{
	struct cli_args args = {0};
	struct cli_words words;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &args, &words);

	if (code != CLI_GO)
		return code;
	if (words.count + cli_rack_is_given() > 1) {
		cli_error("%s takes one rack, by its file or by --rack; see "
			  "'aquifer help %s'",
			  self->name, self->name);
		return CLI_USAGE;
	}
	*as_json = args.json;
	return cli_rack_open(rack, words.count ? words.word[0] : NULL, make)
		       ? CLI_FAILED
		       : CLI_GO;
}

void cli_rack_close(struct cli_rack *rack)
{
	config_destroy(rack->config);
	rack->config = NULL;
}

/* What only the controller knows: nodes of other machines. */
static void add_controlled(struct cli_rack *rack)
{
	char token[CLIENT_TOKEN_MAX] = "";

	if (!rack->control_count)
		return;
	if (client_token_read(rack->config, rack->rundir, RACK_TOKEN_DEFAULT,
			      token))
		token[0] = '\0'; /* on this machine none is needed */
	if (client_control_nodes(rack->config, rack->rundir, token, "memory",
				 rack->node, &rack->node_count) ||
	    client_control_nodes(rack->config, rack->rundir, token, "engine",
				 rack->engine, &rack->engine_count))
		error_clear(); /* status says what is the matter with it */
}

void cli_rack_scan(struct cli_rack *rack)
{
	rack->node_count =
		client_nodes_find(rack->config, rack->rundir, rack->node);
	rack->engine_count =
		client_engines_find(rack->config, rack->rundir, rack->engine);
	rack->control_count = client_controllers_find(
		rack->config, rack->rundir, rack->control);
	add_controlled(rack);
}

static int ask(const struct client_node *node, const char *path, char *token,
	       size_t max_bytes, uint32_t timeout_ms, json_t **out)
{
	struct client_caller caller = {.token = token};
	int err = client_http_create(&caller.http);

	if (err)
		return err;
	err = client_call(&caller, node, "GET", path, NULL, timeout_ms,
			  max_bytes, out);
	client_http_destroy(caller.http);
	if (!err && !json_is_object(*out)) {
		json_decref(*out);
		err = error_set(-EPROTO, "node %s: the answer is no object",
				node->name);
	}
	return err;
}

int cli_rack_ask(const struct cli_rack *rack, const struct client_node *node,
		 uint32_t timeout_ms, json_t **status)
{
	char token[CLIENT_TOKEN_MAX] = "";
	bool is_node =
		node >= rack->node && node < rack->node + CLIENT_NODE_MAX;

	if (is_node && strncmp(node->address, "unix:", 5) != 0 &&
	    client_token_read(rack->config, rack->rundir, RACK_TOKEN_DEFAULT,
			      token))
		token[0] = '\0'; /* it is asked as a stranger */
	return ask(node, "/v1/status", token, CLIENT_REPLY_MAX, timeout_ms,
		   status);
}

/* Asks one controller, and keeps what it says if nothing better is there. */
static int ask_control(const struct client_node *at, uint32_t timeout_ms,
		       struct client_node *control, json_t **status,
		       bool *leads)
{
	json_t *answer;
	int err = ask(at, "/v1/status", NULL, CLIENT_REPLY_MAX, timeout_ms,
		      &answer);

	if (err)
		return err;
	*leads = json_is_true(json_object_get(answer, "leads"));
	if (*status && !*leads) {
		json_decref(answer);
		return 0;
	}
	json_decref(*status);
	*status = answer;
	*control = *at;
	return 0;
}

int cli_rack_control(const struct cli_rack *rack, uint32_t timeout_ms,
		     struct client_node *control, json_t **status)
{
	int err = error_set(-ENOENT, "rack.control names no controller");
	struct client_node other;
	bool leads = false;

	/* One that is stopped must not hide the others. */
	if (rack->control_count > 1 && timeout_ms > ONE_OF_MANY_MS)
		timeout_ms = ONE_OF_MANY_MS;
	*status = NULL;
	for (unsigned i = 0; i < rack->control_count && !leads; i++) {
		int one = ask_control(&rack->control[i], timeout_ms, control,
				      status, &leads);

		err = *status ? 0 : one;
	}
	if (err || leads)
		return err;
	other = *control;
	if (client_leader_of(control, *status, other.address) &&
	    ask_control(&other, timeout_ms, control, status, &leads))
		error_clear(); /* then it is as the first one says */
	return 0;
}

int cli_rack_list(const struct cli_rack *rack, const struct client_node *node,
		  const char *path, uint32_t timeout_ms, json_t **out)
{
	char token[CLIENT_TOKEN_MAX] = "";
	int err = client_token_read(rack->config, rack->rundir,
				    RACK_TOKEN_DEFAULT, token);

	return err ? err
		   : ask(node, path, token, CLIENT_LIST_MAX, timeout_ms, out);
}

const char *cli_rack_size(uint64_t bytes, char out[16])
{
	(void)snprintf(out, 16, "%s", SIZE_TEXT(bytes));
	return out;
}
