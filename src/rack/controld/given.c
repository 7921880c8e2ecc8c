/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that have moved from node to node (decision 62). Whoever moves them
 * may die after the one node has given them and before the other was told to
 * take them, or when the other one waits for that. Both say in their beats what
 * they know, so the controller tells it.
 *
 * That a move was given is a row from the first beat that says so, because the
 * node may die, and the leader may change, before the other one is told. What
 * was given stays given, so a row is never wrong, and the oldest ones go by
 * number. A copy whose node was started anew and that has no such row ends: its
 * region may have come back to life there and been written since (decision 99).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/plant.h"
#include "cd_priv.h"

static const char *text(const json_t *row, const char *key)
{
	const char *s = json_string_value(json_object_get(row, key));

	return s ? s : "";
}

static bool is_id(const char *s)
{
	return strlen(s) == CTL_INCARNATION_TEXT - 1 &&
	       strspn(s, "0123456789abcdef") == CTL_INCARNATION_TEXT - 1;
}

static int check_list(const json_t *beat, const char *name, json_t **out)
{
	*out = json_object_get(beat, name);
	return (!*out || json_is_array(*out)) &&
			       json_array_size(*out) <= CD_GIVEN_MAX
		       ? 0
		       : error_set(-EINVAL, "\"%s\" is a list of %d at most",
				   name, CD_GIVEN_MAX);
}

static int check_ids(const json_t *beat, const char *name)
{
	json_t *ids, *row;
	size_t i;
	int err = check_list(beat, name, &ids);

	if (err)
		return err;
	json_array_foreach(ids, i, row)
	{
		if (!json_is_string(row) || !is_id(json_string_value(row)))
			return error_set(-EINVAL, "\"%s\" has names of moves",
					 name);
	}
	return 0;
}

int cd_given_check(const json_t *beat)
{
	json_t *sealed, *row;
	uint64_t n;
	size_t i;
	int err = check_ids(beat, "given");

	if (!err)
		err = check_ids(beat, "kept");
	if (!err)
		err = check_ids(beat, "taken");
	if (!err)
		err = check_list(beat, "sealed", &sealed);
	if (!err)
		err = ctl_field_u64(beat, "moving", false, 0, INT64_MAX, &n);
	if (!err)
		err = ctl_field_u64(beat, "moved", false, 0, INT64_MAX, &n);
	if (err)
		return err;
	json_array_foreach(sealed, i, row)
	{
		if (!is_id(text(row, "move")) || !is_id(text(row, "run")) ||
		    strlen(text(row, "from")) > CD_NAME_MAX)
			return error_set(-EINVAL, "\"sealed\" has objects with "
						  "move, from and run");
	}
	return 0;
}

/* ---- what was given, for ever -------------------------------------------- */

static bool has_id(const json_t *ids, const char *move)
{
	const json_t *id;
	size_t i;

	json_array_foreach(ids, i, id)
	{
		if (strcmp(json_string_value(id), move) == 0)
			return true;
	}
	return false;
}

static void stage(struct cd_core *core, const struct cd_node *n,
		  const char *move, json_t *value)
{
	char key[CD_NAME_MAX + 1 + CTL_INCARNATION_TEXT];

	(void)snprintf(key, sizeof(key), "%s/%s", n->name, move);
	cd_stage(core, "given", key, value);
}

/* The oldest one that the node does not speak of any more: there is one, since
 * more are remembered than a beat has. */
static void forget_oldest(struct cd_core *core, struct cd_node *n)
{
	const char *move, *oldest = NULL;
	json_int_t least = 0;
	json_t *number;

	json_object_foreach(n->was_given, move, number)
	{
		json_int_t i = json_integer_value(number);

		if ((oldest && i >= least) || has_id(n->given, move))
			continue;
		oldest = move;
		least = i;
	}
	if (!oldest)
		return;
	stage(core, n, oldest, NULL);
	(void)json_object_del(n->was_given, oldest);
}

static void remember(struct cd_core *core, struct cd_node *n)
{
	const json_t *row;
	size_t i;

	json_array_foreach(n->given, i, row)
	{
		const char *move = json_string_value(row);

		if (json_object_get(n->was_given, move))
			continue;
		if (json_object_size(n->was_given) >= CD_WAS_GIVEN_MAX)
			forget_oldest(core, n);
		(void)json_object_set_new(n->was_given, move,
					  json_integer(cd_int(++n->gifts)));
		if (!PLANTED(ctl_given_unsaved))
			stage(core, n, move,
			      json_pack("{s:I}", "number", cd_int(n->gifts)));
	}
}

int cd_given_row(struct cd_core *core, const char *key, const json_t *row)
{
	const char *slash = strchr(key, '/');
	char name[CD_NAME_MAX + 1];
	struct cd_node *n;
	uint64_t number;
	int err = ctl_field_u64(row, "number", true, 1, INT64_MAX, &number);

	if (err)
		return err;
	if (!slash || slash - key > CD_NAME_MAX || !is_id(slash + 1))
		return error_set(-EINVAL, "the key is NODE/MOVE");
	(void)snprintf(name, sizeof(name), "%.*s", (int)(slash - key), key);
	n = cd_node_find(core, name);
	if (!n) {
		cd_stage(core, "given", key, NULL);
		return 0;
	}
	(void)json_object_set_new(n->was_given, slash + 1,
				  json_integer(cd_int(number)));
	n->gifts = u64_max(n->gifts, number);
	return 0;
}

void cd_given_forget(struct cd_core *core, const struct cd_node *n)
{
	const char *move;
	json_t *number;
	unsigned i = 0;

	json_object_foreach(n->was_given, move, number)
	{
		/* As with allowances: what is left is struck off by the next
		 * leader. */
		if (i++ % 32 == 31)
			cd_stage_group(core);
		stage(core, n, move, NULL);
	}
}

/* ---- beats ----------------------------------------------------------------
 */

static void take(json_t **at, const json_t *beat, const char *name)
{
	json_decref(*at);
	*at = json_incref(json_object_get(beat, name));
}

void cd_given_hear(struct cd_core *core, struct cd_node *n, const json_t *beat)
{
	take(&n->given, beat, "given");
	take(&n->kept, beat, "kept");
	take(&n->taken, beat, "taken");
	take(&n->sealed, beat, "sealed");
	n->moving =
		(uint64_t)json_integer_value(json_object_get(beat, "moving"));
	n->moved = (uint64_t)json_integer_value(json_object_get(beat, "moved"));
	cd_stage_group(core);
	remember(core, n);
}

/* Whether the run that it comes from has ended, and says nothing any more. A
 * join alone does not tell: that of a run before may have come late. */
static bool is_over(const struct cd_node *from, const json_t *row)
{
	return from->has_beaten &&
	       strcmp(from->incarnation, text(row, "run")) != 0;
}

static bool is_given(const struct cd_core *core, const json_t *row)
{
	const struct cd_node *from = cd_node_find(core, text(row, "from"));

	return from && (json_object_get(from->was_given, text(row, "move")) ||
			(PLANTED(ctl_take_silent) && from->state != CD_UP) ||
			(PLANTED(ctl_take_over) && is_over(from, row)) ||
			PLANTED(ctl_take_ungiven));
}

/* It never will be: the same run has given the move up, or has ended without a
 * word that it was given. */
static bool is_void(const struct cd_core *core, const json_t *row)
{
	const struct cd_node *from = cd_node_find(core, text(row, "from"));

	if (!from || is_given(core, row))
		return false;
	return is_over(from, row) || has_id(from->kept, text(row, "move")) ||
	       PLANTED(ctl_drop_ungiven);
}

bool cd_given_is_due(const struct cd_core *core, const struct cd_node *n)
{
	const json_t *row;
	size_t i;

	json_array_foreach(n->sealed, i, row)
	{
		if (is_given(core, row) || is_void(core, row))
			return true;
	}
	return false;
}

static void say(const struct cd_core *core, const struct cd_node *n,
		bool (*which)(const struct cd_core *core, const json_t *row),
		const char *name, json_t *answer)
{
	json_t *ids = json_array();
	const json_t *row;
	size_t i;

	json_array_foreach(n->sealed, i, row)
	{
		if (which(core, row))
			(void)json_array_append_new(
				ids, json_string(text(row, "move")));
	}
	if (json_array_size(ids))
		(void)json_object_set(answer, name, ids);
	json_decref(ids);
}

static bool is_taken(const struct cd_core *core, const char *move)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++)
		if (core->node[i] && has_id(core->node[i]->taken, move))
			return true;
	return false;
}

/* What it gave is where it was to go, though whoever moved it may have died
 * before it could say so: the node need not remember it. */
static void say_ends(const struct cd_core *core, const struct cd_node *n,
		     json_t *answer)
{
	json_t *ids = json_array(), *id;
	size_t i;

	json_array_foreach(n->given, i, id)
	{
		if (is_taken(core, json_string_value(id)))
			(void)json_array_append(ids, id);
	}
	if (json_array_size(ids))
		(void)json_object_set(answer, "end", ids);
	json_decref(ids);
}

void cd_given_say(const struct cd_core *core, const struct cd_node *n,
		  json_t *answer)
{
	say(core, n, is_given, "take", answer);
	say(core, n, is_void, "drop", answer);
	say_ends(core, n, answer);
}
