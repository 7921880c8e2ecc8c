/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is on a drained node: tables, regions and indexes move
 * (cli_drain_move.c), and the controller moves blocks that have copies, which
 * is waited for (cli_drain_copies.c). Other blocks have one place, pages belong
 * to programs that run, and of the rest its node says why it cannot leave.
 */
#include "cli_drain.h"

#include <aquifer/index.h>
#include <aquifer/kv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli_action.h"
#include "cli_report.h"

enum {
	HEARD_MS = 10000,
	SETTLE_MS = 10000, /* until the controller knows what is gone */
	LOOK_MS = 50,
};

enum kind {
	TABLE,
	INDEX,
	REGION,
};

static const char *const kind_name[] = {
	[TABLE] = "table", [INDEX] = "index", [REGION] = "region"};

enum {
	KEY_BYTES = 160,
};

/* Something that moves as a whole: a region belongs to one. */
struct thing {
	enum kind kind;
	const char *tenant;
	char name[CLIENT_PIECE_NAME_MAX]; /* of the table, or so */
	char key[KEY_BYTES];		  /* in the objects below */
};

struct drain {
	struct cli_admin *m;
	struct cli_drain_right *right; /* of one tenant; or NULL */
	const char *node;
	bool as_json;
	json_t *moved;	/* [{"tenant", "table" or so, "to"}] */
	json_t *done;	/* KEY: true */
	json_t *failed; /* KEY: why */
	json_t *fixed;	/* KEY: why it cannot be moved at all */
	json_t *copied; /* TENANT PATH: what had blocks with copies here */
	json_t *stays;	/* [{"tenant", "name", "kind", "size", "why"}] */
};

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

/* ---- moving --------------------------------------------------------------
 */

/* What the region of that row is, or is a part of. */
static void thing_of(const json_t *row, struct thing *t)
{
	const char *region = cli_drain_text(row, "name");

	t->tenant = cli_drain_text(row, "tenant");
	t->kind = aq_kv_owns_region(region, t->name)	  ? TABLE
		  : aq_index_owns_region(region, t->name) ? INDEX
							  : REGION;
	if (t->kind == REGION)
		(void)snprintf(t->name, sizeof(t->name), "%s", region);
	(void)snprintf(t->key, sizeof(t->key), "%s %s/%s", kind_name[t->kind],
		       t->tenant, t->name);
}

/* The regions of the thing that are on the node. */
static int regions_of(const struct drain *d, const json_t *rows,
		      const struct thing *t, struct client_move *out)
{
	const json_t *row;
	struct thing one;
	size_t i;

	*out = (struct client_move){.from = d->node};
	json_array_foreach(rows, i, row)
	{
		thing_of(row, &one);
		if (strcmp(one.key, t->key) != 0)
			continue;
		if (out->count == CLIENT_MOVE_MAX)
			return error_set(-EOPNOTSUPP,
					 "it has more than %d regions here",
					 CLIENT_MOVE_MAX);
		out->name[out->count++] = cli_drain_text(row, "name");
	}
	return 0;
}

/* One right at a time: what is on a node comes tenant by tenant, mostly. */
static int take_right(struct drain *d, const char *tenant)
{
	int err;

	if (cli_drain_right_is_of(d->right, tenant))
		return 0;
	cli_drain_right_close(d->right);
	d->right = NULL;
	err = cli_drain_right_open(d->m, tenant, &d->right);
	if (!err && cli_drain_settle(d->right, d->node))
		cli_error("%s", error_last());
	return err;
}

static int move(struct drain *d, const json_t *rows, const struct thing *t,
		char to[CLIENT_NODE_NAME_MAX])
{
	struct client_move regions;
	int err = take_right(d, t->tenant);

	to[0] = '\0';
	if (err || t->kind == TABLE)
		return err ? err : cli_drain_table(d->right, t->name);
	err = regions_of(d, rows, t, &regions);
	return err ? err : cli_drain_regions(d->right, &regions, to);
}

static void move_thing(struct drain *d, const json_t *rows,
		       const struct thing *t)
{
	char to[CLIENT_NODE_NAME_MAX];
	json_t *row;
	int err;

	if (!d->as_json) {
		printf("%s %s of tenant %s: ", kind_name[t->kind], t->name,
		       t->tenant);
		(void)fflush(stdout);
	}
	err = move(d, rows, t, to);
	if (err) {
		(void)json_object_set_new(err == -EOPNOTSUPP ? d->fixed
							     : d->failed,
					  t->key, json_string(error_last()));
	} else {
		row = json_pack("{s:s, s:s}", "tenant", t->tenant,
				kind_name[t->kind], t->name);
		if (to[0])
			(void)json_object_set_new(row, "to", json_string(to));
		(void)json_array_append_new(d->moved, row);
		(void)json_object_set_new(d->done, t->key, json_true());
	}
	if (!d->as_json && err)
		printf("stays: %s\n", error_last());
	else if (!d->as_json)
		printf("moved%s%s\n", to[0] ? " to " : "", to);
}

/* Each thing that the answer names and that was not tried yet. */
static unsigned move_things(struct drain *d, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "left"), *row;
	struct thing t;
	unsigned tried = 0;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		thing_of(row, &t);
		if (json_object_get(d->done, t.key) ||
		    json_object_get(d->failed, t.key) ||
		    json_object_get(d->fixed, t.key))
			continue;
		move_thing(d, rows, &t);
		tried++;
	}
	return tried;
}

/* Whether what was moved is still said to be there. */
static bool is_behind(const struct drain *d, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "left"), *row;
	struct thing t;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		thing_of(row, &t);
		if (json_object_get(d->done, t.key))
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
			  cli_drain_text(row, "tenant"), "name", name, "kind",
			  kind, "size", (json_int_t)bytes, "why", why));
}

static void add_region(struct drain *d, const json_t *row)
{
	const char *why;
	struct thing t;

	thing_of(row, &t);
	why = json_string_value(json_object_get(d->failed, t.key));
	if (!why)
		why = json_string_value(json_object_get(d->fixed, t.key));
	add_stay(d, row, cli_drain_text(row, "name"), kind_name[t.kind],
		 cli_drain_number(row, "size"),
		 why ? why : "it was made meanwhile; drain again");
}

static void list_rest(struct drain *d, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "left"), *row;
	uint64_t named = 0, used = cli_drain_number(answer, "used");
	size_t i;

	json_array_foreach(rows, i, row)
	{
		named += cli_drain_number(row, "size");
		add_region(d, row);
	}
	rows = json_object_get(answer, "blocks");
	json_array_foreach(rows, i, row)
	{
		named += cli_drain_number(row, "bytes");
		add_stay(d, row, cli_drain_text(row, "path"),
			 cli_drain_text(row, "kind"),
			 cli_drain_number(row, "bytes"),
			 cli_drain_number(row, "copies") > 1
				 ? "no other node has room for its copies, or "
				   "one with a copy is down"
				 : "blocks without copies do not move; they go "
				   "when it is removed, read out of a queue, "
				   "or not renewed");
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
		(void)cli_rack_size(cli_drain_number(row, "size"), size);
		if (*cli_drain_text(row, "name"))
			printf("  %s of tenant %s (%s) stays: %s\n",
			       cli_drain_text(row, "name"),
			       cli_drain_text(row, "tenant"), size,
			       cli_drain_text(row, "why"));
		else
			printf("  %s (%s) stays: %s\n",
			       cli_drain_text(row, "kind"), size,
			       cli_drain_text(row, "why"));
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
					d->node,
					cli_drain_text(answer, "state"));
		json_decref(answer);
		if (err || is_last)
			return err;
		pause_briefly();
	}
}

/* The controller hears of what is gone with the node's next beat. */
static int move_all(struct drain *d, json_t **out)
{
	uint64_t end_ms = clock_mono_ms() + SETTLE_MS, before = 0, copies;
	json_t *answer = NULL;
	int err = await_node(d);

	*out = NULL;
	if (err)
		return err;
	for (;;) {
		err = ask_node(d, &answer);
		if (err)
			break;
		copies = cli_drain_copies_note(d->copied, answer);
		if (move_things(d, answer) || copies < before)
			end_ms = clock_mono_ms() + SETTLE_MS;
		else if ((!copies && !is_behind(d, answer)) ||
			 clock_mono_ms() >= end_ms)
			break;
		before = copies;
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
			  .done = json_object(),
			  .failed = json_object(),
			  .fixed = json_object(),
			  .copied = json_object(),
			  .stays = json_array()};
	json_t *answer = NULL;
	int code = CLI_OK;

	if (move_all(&d, &answer)) {
		cli_error("%s", error_last());
		code = CLI_FAILED;
	} else {
		cli_drain_copies_list(d.copied, answer, d.moved, as_json);
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
	cli_drain_right_close(d.right);
	json_decref(d.moved);
	json_decref(d.done);
	json_decref(d.failed);
	json_decref(d.fixed);
	json_decref(d.copied);
	json_decref(d.stays);
	return code;
}
