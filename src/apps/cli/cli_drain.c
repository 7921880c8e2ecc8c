/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on a drained node: tables move (cli_drain_table.c), and nothing else
 * does. Programs write to regions by keys, without asking
 * anybody, so no copy of a region is known to be the last state of it; an index
 * has no generations; blocks of files and queues have one place.
 */
#include "cli_drain.h"

#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_action.h"
#include "cli_list.h"
#include "cli_report.h"

enum {
	HEARD_MS = 10000,
	SETTLE_MS = 10000, /* until the controller knows what is gone */
	LOOK_MS = 50,
};

struct drain {
	struct cli_admin *m;
	const char *node;
	bool as_json;
	json_t *moved;	/* [{"tenant", "table"}] */
	json_t *failed; /* "TENANT/TABLE": why */
	json_t *stays;	/* [{"tenant", "name", "kind", "size", "why"}] */
};

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

static uint64_t number(const json_t *row, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(row, key));
}

static void pause_briefly(void)
{
	const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};

	(void)nanosleep(&pause, NULL);
}

/* What the controller knows of the node now. */
static int ask_node(const struct drain *d, json_t **out)
{
	char path[CLIENT_ADDRESS_MAX];

	(void)snprintf(path, sizeof(path), "/v1/nodes/%s", d->node);
	return cli_admin_ask(d->m, 0, "GET", path, NULL, out);
}

/* ---- tables ---------------------------------------------------------------
 */

static void move_table(struct drain *d, const char *tenant, const char *table,
		       const char *key)
{
	int err;

	if (!d->as_json) {
		printf("table %s of tenant %s: ", table, tenant);
		(void)fflush(stdout);
	}
	err = cli_drain_table(d->m, tenant, table);
	if (err)
		(void)json_object_set_new(d->failed, key,
					  json_string(error_last()));
	else
		(void)json_array_append_new(d->moved,
					    json_pack("{s:s, s:s}", "tenant",
						      tenant, "table", table));
	if (!d->as_json)
		printf("%s%s\n", err ? "stays: " : "moved",
		       err ? error_last() : "");
}

/* "TENANT/TABLE" of a region that is a part of one. */
static bool table_of(const json_t *row, char table[AQ_KV_NAME_MAX + 1],
		     char key[CLI_TENANT_NAME_MAX + AQ_KV_NAME_MAX + 2])
{
	if (!aq_kv_owns_region(text(row, "name"), table))
		return false;
	(void)snprintf(key, CLI_TENANT_NAME_MAX + AQ_KV_NAME_MAX + 2, "%s/%s",
		       text(row, "tenant"), table);
	return true;
}

static bool is_moved(const struct drain *d, const json_t *row,
		     const char *table)
{
	const json_t *one;
	size_t i;

	json_array_foreach(d->moved, i, one)
	{
		if (strcmp(text(one, "tenant"), text(row, "tenant")) == 0 &&
		    strcmp(text(one, "table"), table) == 0)
			return true;
	}
	return false;
}

/* Each table that the answer names and that was not tried yet. */
static unsigned move_tables(struct drain *d, const json_t *answer)
{
	char table[AQ_KV_NAME_MAX + 1];
	char key[CLI_TENANT_NAME_MAX + AQ_KV_NAME_MAX + 2];
	const json_t *rows = json_object_get(answer, "left"), *row;
	unsigned tried = 0;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (!table_of(row, table, key) || is_moved(d, row, table) ||
		    json_object_get(d->failed, key))
			continue;
		move_table(d, text(row, "tenant"), table, key);
		tried++;
	}
	return tried;
}

/* Whether parts of tables that were moved are still said to be there. */
static bool is_behind(const struct drain *d, const json_t *answer)
{
	char table[AQ_KV_NAME_MAX + 1];
	char key[CLI_TENANT_NAME_MAX + AQ_KV_NAME_MAX + 2];
	const json_t *rows = json_object_get(answer, "left"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		if (table_of(row, table, key) && is_moved(d, row, table))
			return true;
	}
	return false;
}

/* ---- the rest ------------------------------------------------------------ */

static void add_stay(struct drain *d, const json_t *row, const char *name,
		     const char *kind, uint64_t bytes, const char *why)
{
	(void)json_array_append_new(
		d->stays,
		json_pack("{s:s, s:s, s:s, s:I, s:s}", "tenant",
			  text(row, "tenant"), "name", name, "kind", kind,
			  "size", (json_int_t)bytes, "why", why));
}

static void add_region(struct drain *d, const json_t *row)
{
	char table[AQ_KV_NAME_MAX + 1], owner[CLI_LIST_OWNER_BYTES];
	char key[CLI_TENANT_NAME_MAX + AQ_KV_NAME_MAX + 2];
	const char *why;

	if (table_of(row, table, key)) {
		why = json_string_value(json_object_get(d->failed, key));
		add_stay(d, row, text(row, "name"), "table",
			 number(row, "size"),
			 why ? why : "it was made meanwhile; drain again");
	} else if (cli_list_owner(text(row, "name"), owner)) {
		add_stay(d, row, text(row, "name"), "index",
			 number(row, "size"),
			 "an index cannot be copied while it is used");
	} else {
		add_stay(d, row, text(row, "name"), "region",
			 number(row, "size"),
			 "programs change a region without asking anybody, so "
			 "only its owner can copy and delete it");
	}
}

static void list_rest(struct drain *d, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "left"), *row;
	uint64_t named = 0, used = number(answer, "used");
	size_t i;

	json_array_foreach(rows, i, row)
	{
		named += number(row, "size");
		add_region(d, row);
	}
	rows = json_object_get(answer, "blocks");
	json_array_foreach(rows, i, row)
	{
		named += number(row, "bytes");
		add_stay(d, row, text(row, "path"), text(row, "kind"),
			 number(row, "bytes"),
			 "blocks do not move; they go when it is removed, read "
			 "out of a queue, or not renewed");
	}
	if (!json_array_size(d->stays) && used > named)
		(void)json_array_append_new(
			d->stays,
			json_pack("{s:s, s:I, s:s}", "kind", "other", "size",
				  (json_int_t)(used - named), "why",
				  "pages of programs that run go with them"));
}

static void print_rest(const struct drain *d, const json_t *answer)
{
	const json_t *row;
	char size[16];
	size_t i;

	json_array_foreach(d->stays, i, row)
	{
		(void)cli_rack_size(number(row, "size"), size);
		if (*text(row, "name"))
			printf("  %s of tenant %s (%s) stays: %s\n",
			       text(row, "name"), text(row, "tenant"), size,
			       text(row, "why"));
		else
			printf("  %s (%s) stays: %s\n", text(row, "kind"), size,
			       text(row, "why"));
	}
	if (!json_is_true(json_object_get(answer, "left_complete")))
		printf("There is more than the controller knows by name.\n");
	if (!json_array_size(d->stays))
		printf("nothing is left on it\n");
}

/* ---- all of it ----------------------------------------------------------- */

/* Until the node has heard it: what it has then is all that it will have. */
static int await_node(const struct drain *d)
{
	uint64_t end_ms = clock_mono_ms() + HEARD_MS;

	for (;;) {
		json_t *answer = NULL;
		int err = ask_node(d, &answer);
		bool is_last =
			json_is_true(json_object_get(answer, "left_last"));

		if (!err && !is_last && clock_mono_ms() >= end_ms)
			err = error_set(-EHOSTDOWN,
					"node %s is %s and has not heard yet "
					"that it is drained, so nothing was "
					"moved; drain it again when it is back",
					d->node, text(answer, "state"));
		json_decref(answer);
		if (err || is_last)
			return err;
		pause_briefly();
	}
}

/* The controller hears of what is gone with the node's next beat. */
static int move_all(struct drain *d, json_t **out)
{
	uint64_t end_ms = clock_mono_ms() + SETTLE_MS;
	json_t *answer = NULL;
	int err = await_node(d);

	*out = NULL;
	if (err)
		return err;
	for (;;) {
		err = ask_node(d, &answer);
		if (err)
			break;
		if (move_tables(d, answer))
			end_ms = clock_mono_ms() + SETTLE_MS;
		else if (!is_behind(d, answer) || clock_mono_ms() >= end_ms)
			break;
		json_decref(answer);
		answer = NULL;
		pause_briefly();
	}
	*out = answer;
	return err;
}

int cli_drain_run(struct cli_admin *m, const char *node, bool as_json)
{
	struct drain d = {.m = m,
			  .node = node,
			  .as_json = as_json,
			  .moved = json_array(),
			  .failed = json_object(),
			  .stays = json_array()};
	json_t *answer = NULL;
	int code = CLI_OK;

	if (move_all(&d, &answer)) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	} else {
		list_rest(&d, answer);
		if (json_object_size(d.failed))
			code = CLI_FAILED;
		(void)json_object_set(answer, "moved", d.moved);
		(void)json_object_set(answer, "stays", d.stays);
		if (!as_json)
			print_rest(&d, answer);
		else if (cli_report_print(json_incref(answer), true))
			code = CLI_FAILED;
	}
	json_decref(answer);
	json_decref(d.moved);
	json_decref(d.failed);
	json_decref(d.stays);
	return code;
}
