/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that have moved from node to node (decision 62). Whoever moves them
 * may die after the one node has given them and before the other was told to
 * take them, or when the other one waits for that. Both say in their beats what
 * they know, so the controller tells it. Nothing of this is a row: what was
 * given stays given, and what was kept stays kept.
 */
#include <errno.h>
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

static void take(json_t **at, const json_t *beat, const char *name)
{
	json_decref(*at);
	*at = json_incref(json_object_get(beat, name));
}

void cd_given_hear(struct cd_node *n, const json_t *beat)
{
	take(&n->given, beat, "given");
	take(&n->kept, beat, "kept");
	take(&n->sealed, beat, "sealed");
	n->moving =
		(uint64_t)json_integer_value(json_object_get(beat, "moving"));
	n->moved = (uint64_t)json_integer_value(json_object_get(beat, "moved"));
}

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

/* Whether the node that it comes from was started anew since, and has it no
 * more. A join alone does not tell: that of a run before may have come late. */
static bool is_lost(const struct cd_node *from, const json_t *row)
{
	if (PLANTED(ctl_take_silent) && from->state != CD_UP)
		return true;
	return from->has_beaten &&
	       strcmp(from->incarnation, text(row, "run")) != 0;
}

static bool is_given(const struct cd_core *core, const json_t *row)
{
	const struct cd_node *from = cd_node_find(core, text(row, "from"));

	return from &&
	       (is_lost(from, row) || has_id(from->given, text(row, "move")) ||
		PLANTED(ctl_take_ungiven));
}

/* It never will be: the same run has given the move up. */
static bool is_kept(const struct cd_core *core, const json_t *row)
{
	const struct cd_node *from = cd_node_find(core, text(row, "from"));

	return from && strcmp(from->incarnation, text(row, "run")) == 0 &&
	       (has_id(from->kept, text(row, "move")) ||
		(PLANTED(ctl_drop_ungiven) &&
		 !has_id(from->given, text(row, "move"))));
}

bool cd_given_is_due(const struct cd_core *core, const struct cd_node *n)
{
	const json_t *row;
	size_t i;

	json_array_foreach(n->sealed, i, row)
	{
		if (is_given(core, row) || is_kept(core, row))
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

void cd_given_say(const struct cd_core *core, const struct cd_node *n,
		  json_t *answer)
{
	say(core, n, is_given, "take", answer);
	say(core, n, is_kept, "drop", answer);
}
