/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer doctor`: what this machine lacks and the command that fixes it. */
#include <stdio.h>

#include "base/error.h"
#include "cli.h"
#include "cli_check.h"
#include "cli_report.h"
#include "client/reach.h"

static const char *const state_names[] = {
	[CLI_CHECK_OK] = "ok",
	[CLI_CHECK_WARN] = "warn",
	[CLI_CHECK_MISSING] = "missing",
};

struct tally {
	unsigned by_state[ARRAY_LEN(state_names)];
	unsigned essential_missing;
};

static void print_text(const struct cli_check *check,
		       const struct cli_check_result *res)
{
	printf("%-8s %-23s %s\n", state_names[res->state], check->name,
	       res->found);
	if (res->state == CLI_CHECK_OK)
		return;
	printf("%9swhy: %s%s\n", "", check->why,
	       check->essential ? "" : " (not essential)");
	if (res->fix[0])
		printf("%9sfix: %s\n", "", res->fix);
}

static void add_json(json_t *array, const struct cli_check *check,
		     const struct cli_check_result *res)
{
	json_t *row = json_object();

	cli_report_set(row, "name", "%s", check->name);
	cli_report_set(row, "state", "%s", state_names[res->state]);
	(void)json_object_set_new(row, "essential",
				  json_boolean(check->essential));
	cli_report_set(row, "found", "%s", res->found);
	cli_report_set(row, "why", "%s", check->why);
	cli_report_set(row, "fix", "%s", res->fix);
	(void)json_array_append_new(array, row);
}

static int print_json(json_t *array, const struct tally *tally)
{
	json_t *tree = json_object();

	cli_report_set(tree, "version", "%s", cli_version());
	(void)json_object_set_new(tree, "healthy",
				  json_boolean(!tally->essential_missing));
	(void)json_object_set_new(tree, "checks", array);
	return cli_report_print(tree, true);
}

/* A check was made: print it or keep it. */
static void take(const struct cli_check *check,
		 const struct cli_check_result *res, json_t *array, bool json,
		 struct tally *tally)
{
	tally->by_state[res->state]++;
	tally->essential_missing +=
		check->essential && res->state == CLI_CHECK_MISSING;
	if (json)
		add_json(array, check, res);
	else
		print_text(check, res);
}

/* The rows about one address; who asked for it needs it. */
static void check_peer(struct client_reach *peer, const char *address,
		       json_t *array, bool json, struct tally *tally)
{
	static const struct cli_check rows[CLIENT_REACH_ROWS] = {
		{"route", true, "packets must find their way there", NULL},
		{"port", true, "RoCEv2 arrives there on UDP 4791", NULL},
		{"mtu", false, "packets that do not fit are lost", NULL},
	};

	for (unsigned i = 0; i < CLIENT_REACH_ROWS; i++) {
		struct cli_check_result res = {0};
		struct cli_check row = rows[i];
		char name[80];

		(void)snprintf(name, sizeof(name), "%s:%s", row.name, address);
		row.name = name;
		cli_check_peer_run(peer, i, &res);
		take(&row, &res, array, json, tally);
	}
}

/* False: one of the words is no host. */
static bool check_peers(const struct cli_words *words, bool as_json,
			json_t *array, struct tally *tally)
{
	for (int i = 0; i < words->count; i++) {
		struct client_reach *peer;

		if (cli_check_peer_create(words->word[i], &peer)) {
			cli_error("%s", error_last());
			return false;
		}
		check_peer(peer, words->word[i], array, as_json, tally);
		client_reach_destroy(peer);
	}
	return true;
}

int cmd_doctor(const struct cli_command *self, int argc, char **argv)
{
	struct tally tally = {{0}, 0};
	json_t *array = json_array();
	struct cli_args args = {0};
	struct cli_words words;
	int code = cli_parse(self, argc, argv, OPT_WORDS_ANY, &args, &words);
	int err = 0;

	if (code != CLI_GO) {
		json_decref(array);
		return code;
	}
	for (const struct cli_check *c = cli_checks; c->name; c++) {
		struct cli_check_result res = {0};

		c->run(&res);
		take(c, &res, array, args.json, &tally);
	}
	if (!check_peers(&words, args.json, array, &tally)) {
		json_decref(array);
		return CLI_USAGE;
	}
	if (args.json) {
		err = print_json(array, &tally);
	} else {
		json_decref(array);
		printf("\n%u ok, %u warnings, %u missing: %s\n",
		       tally.by_state[CLI_CHECK_OK],
		       tally.by_state[CLI_CHECK_WARN],
		       tally.by_state[CLI_CHECK_MISSING],
		       tally.essential_missing
			       ? "something essential is missing"
			       : "Aquifer can run here");
	}
	return err || tally.essential_missing ? CLI_FAILED : CLI_OK;
}
