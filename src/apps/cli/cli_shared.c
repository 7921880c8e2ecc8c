/* SPDX-License-Identifier: Apache-2.0 */
/* Segments of shared memory, and the machines that share it: requests to the
 * memory node that leads. */
#include "cli_shared.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/config.h"
#include "base/error.h"
#include "cli_admin.h"
#include "cli_report.h"
#include "client/shared.h"

enum {
	REPAIR_PAUSE_NS = 100 * 1000 * 1000,
	REPAIR_TRIES = 200,
};

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s && *s ? s : "-";
}

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

/* ---- the node that leads --------------------------------------------------
 */

/* Its place among the nodes. A node that does not answer may be the one. */
static int find_lead(struct cli_admin *m, unsigned *lead)
{
	int silent = 0;

	for (unsigned i = 0; i < m->rack.node_count; i++) {
		json_t *status = NULL;
		int err =
			cli_admin_ask(m, i, "GET", "/v1/status", NULL, &status);
		bool leads = !err && client_shared_size(status);

		json_decref(status);
		*lead = i;
		if (leads)
			return 0;
		if (err)
			silent = err;
	}
	if (silent)
		return silent;
	return error_set(-EOPNOTSUPP,
			 "no memory node of this rack has shared memory; "
			 "'shared = 1G' in its section [memory NAME] of "
			 "rack.ini, 'programs = coherence' in [switch NAME] "
			 "and 'port = switch:NAME' in [nic] give it some");
}

/* One request; the answer, if wanted, is the caller's. -errno with words. */
int cli_shared_ask(const char *method, const char *path, json_t *body,
		   json_t **answer)
{
	struct cli_admin m;
	json_t *reply = NULL;
	unsigned lead = 0;
	int err;

	/* It has said what is wrong. */
	if (cli_admin_open_tenant(&m)) {
		json_decref(body);
		return CLI_FAILED;
	}
	err = cli_admin_has_nodes(&m);
	if (!err)
		err = find_lead(&m, &lead);
	if (err)
		json_decref(body);
	else
		err = cli_admin_ask(&m, lead, method, path, body, &reply);
	cli_admin_close(&m);
	if (!err && answer && !json_is_object(reply))
		err = error_set(-EPROTO, "the answer is no object");
	if (err || !answer)
		json_decref(reply);
	else
		*answer = reply;
	return err;
}

int cli_shared_rack(char name[CLI_SHARED_RACK_MAX])
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	(void)snprintf(name, CLI_SHARED_RACK_MAX, "%s",
		       config_string(config, "rack", "name"));
	config_destroy(config);
	return 0;
}

static bool is_word(const char *text, size_t len)
{
	return len && len < 64 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyz"
			    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") >= len &&
	       *text != '.' && *text != '-';
}

/* The segment's path and what follows. With `any`, TENANT/NAME is what another
 * tenant has. 0, or the exit code when stderr says what is wrong. */
static int path_of(const char *name, bool any, const char *rest,
		   char path[CLIENT_ADDRESS_MAX])
{
	size_t len = strcspn(name, "/");
	bool is_good = is_word(name, len);

	if (is_good && name[len])
		is_good =
			any && is_word(name + len + 1, strlen(name + len + 1));
	if (!is_good) {
		cli_error("'%.60s' is no name of a segment; letters, digits, "
			  "'-', '_' and '.' are allowed, and up to 63 of them",
			  name);
		return CLI_USAGE;
	}
	(void)snprintf(path, CLIENT_ADDRESS_MAX, "/v1/shared/segments/%s%s",
		       name, rest);
	return 0;
}

/* ---- segments -------------------------------------------------------------
 */

/* Addresses are numbers for programs, and hexadecimal for people. */
static int print_segment(json_t *row, bool as_json)
{
	if (!as_json)
		cli_report_set(row, "va", "0x%" PRIx64, number(row, "va"));
	return cli_report_print(row, as_json);
}

int cli_shared_create(void *args)
{
	const struct cli_shared_args *a = args;
	json_t *answer;
	int err = cli_shared_ask(
		"POST", "/v1/shared/segments",
		json_pack("{s:s, s:I, s:I, s:s}", "name", a->common.word[0],
			  "size", (json_int_t)a->common.size, "copies",
			  (json_int_t)a->copies, "on_loss", a->on_loss),
		&answer);

	return err ? err : print_segment(answer, a->common.json);
}

static void print_rows(const json_t *rows)
{
	char size[16], lost[16];
	const json_t *row;
	size_t i;

	printf("%-32s %-16s %8s %-5s %-16s %-8s %s\n", "SEGMENT", "TENANT",
	       "SIZE", "RIGHT", "ADDRESS", "NODE", "LOST");
	json_array_foreach(rows, i, row)
	{
		printf("%-32s %-16s %8s %-5s 0x%-14" PRIx64 " %-8s %s\n",
		       text(row, "name"), text(row, "tenant"),
		       cli_rack_size(number(row, "size"), size),
		       text(row, "right"), number(row, "va"), text(row, "node"),
		       number(row, "lost")
			       ? cli_rack_size(number(row, "lost"), lost)
		       : json_is_true(json_object_get(row, "away"))
			       ? "its node is away"
			       : "-");
	}
}

int cli_shared_list(void *args)
{
	const struct cli_shared_args *a = args;
	json_t *answer;
	int err = cli_shared_ask("GET", "/v1/shared/segments", NULL, &answer);

	if (err)
		return err;
	if (a->common.json)
		return cli_report_print(answer, true);
	print_rows(json_object_get(answer, "segments"));
	json_decref(answer);
	return 0;
}

int cli_shared_stat(void *args)
{
	const struct cli_shared_args *a = args;
	char path[CLIENT_ADDRESS_MAX];
	json_t *answer;
	int err;

	err = path_of(a->common.word[0], true, "", path);
	if (!err)
		err = cli_shared_ask("GET", path, NULL, &answer);
	return err ? err : print_segment(answer, a->common.json);
}

int cli_shared_allow(void *args)
{
	const struct cli_shared_args *a = args;
	const char *const *word = a->common.word;
	json_t *body =
		json_pack("{s:s, s:s}", "tenant", word[1], "right", word[2]);
	char path[CLIENT_ADDRESS_MAX];
	int err = path_of(word[0], false, "/allow", path);

	if (err) {
		json_decref(body);
		return err;
	}
	if (a->has_offset)
		(void)json_object_set_new(body, "offset",
					  json_integer((json_int_t)a->offset));
	if (a->has_length)
		(void)json_object_set_new(body, "length",
					  json_integer((json_int_t)a->length));
	err = cli_shared_ask("POST", path, body, NULL);
	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:s, s:s}", "name",
						    word[0], "tenant", word[1],
						    "right", word[2]),
					  true);
}

/* Machines have their lease to give back what they had, or to be gone. */
int cli_shared_repair(void *args)
{
	const struct timespec pause = {.tv_nsec = REPAIR_PAUSE_NS};
	const struct cli_shared_args *a = args;
	char path[CLIENT_ADDRESS_MAX];
	unsigned tries = 0;
	json_t *answer;
	int err;

	err = path_of(a->common.word[0], false, "/repair", path);
	while (!err) {
		err = cli_shared_ask("POST", path, NULL, &answer);
		if (err != -EBUSY || ++tries == REPAIR_TRIES)
			break;
		(void)nanosleep(&pause, NULL);
		err = 0;
	}
	return err ? err : print_segment(answer, a->common.json);
}

/* The node that leads goes on with it if this is killed. */
int cli_shared_move(void *args)
{
	const struct timespec pause = {.tv_nsec = REPAIR_PAUSE_NS};
	const struct cli_shared_args *a = args;
	const char *const *word = a->common.word;
	char path[CLIENT_ADDRESS_MAX];
	json_t *answer = NULL;
	int err = path_of(word[0], false, "/move", path);

	if (!err)
		err = cli_shared_ask("POST", path,
				     json_pack("{s:s}", "node", word[1]),
				     &answer);
	if (!err)
		err = path_of(word[0], false, "", path);
	while (!err && json_object_get(answer, "moving")) {
		json_decref(answer);
		answer = NULL;
		(void)nanosleep(&pause, NULL);
		err = cli_shared_ask("GET", path, NULL, &answer);
	}
	if (!err && strcmp(text(answer, "node"), word[1]) != 0) {
		err = error_set(-EAGAIN,
				"segment %s is at node %s as before: the "
				"switch or a memory node did not answer",
				word[0], text(answer, "node"));
		json_decref(answer);
	}
	return err ? err : print_segment(answer, a->common.json);
}

int cli_shared_delete(void *args)
{
	const struct cli_shared_args *a = args;
	char path[CLIENT_ADDRESS_MAX];
	int err;

	err = path_of(a->common.word[0], false, "", path);
	if (!err)
		err = cli_shared_ask("DELETE", path, NULL, NULL);
	return err || !a->common.json
		       ? err
		       : cli_report_print(json_pack("{s:s, s:b}", "name",
						    a->common.word[0],
						    "deleted", 1),
					  true);
}

int cli_shared_check(void *args)
{
	const struct cli_shared_args *a = args;
	uint64_t cached_bytes = 0;
	json_t *wrong, *row;
	json_t *answer;
	size_t i, count;
	int err = cli_shared_ask("GET", "/v1/shared/check", NULL, &answer);

	if (err)
		return err;
	wrong = json_object_get(answer, "wrong");
	err = cli_shared_check_cache(wrong, &cached_bytes);
	if (err) {
		json_decref(answer);
		return err;
	}
	count = json_array_size(wrong);
	if (a->common.json) {
		(void)json_object_set_new(
			answer, "cached",
			json_integer((json_int_t)cached_bytes));
		err = cli_report_print(json_incref(answer), true);
	} else {
		json_array_foreach(wrong, i, row)
			printf("%s\n", json_string_value(row));
		if (!count)
			printf("sound\n");
	}
	json_decref(answer);
	return err || !count ? err : CLI_FAILED;
}

/* ---- machines -------------------------------------------------------------
 */

int cli_shared_machines(void *args)
{
	const struct cli_shared_args *a = args;
	const json_t *row;
	json_t *answer;
	size_t i;
	int err = cli_shared_ask("GET", "/v1/shared/members", NULL, &answer);

	if (err)
		return err;
	if (a->common.json)
		return cli_report_print(answer, true);
	printf("%-32s %6s %6s %-8s %s\n", "MACHINE", "NUMBER", "LANES", "STATE",
	       "SILENT");
	json_array_foreach(json_object_get(answer, "members"), i, row) printf(
		"%-32s %6" PRIu64 " %6" PRIu64 " %-8s %" PRIu64 " ms\n",
		text(row, "name"), number(row, "number"), number(row, "lanes"),
		text(row, "state"), number(row, "silent_ms"));
	json_decref(answer);
	return 0;
}
