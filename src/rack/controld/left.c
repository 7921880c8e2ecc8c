/* SPDX-License-Identifier: Apache-2.0 */
/* What is on a memory node, by name: for who wants to empty it. */
#include "base/plant.h"
#include "tree_priv.h"

/* One row for each object, with its blocks added up. False: there are too many
 * objects. */
static bool add_block(const struct cd_block *b, json_t *by_id)
{
	char id[CD_ID_TEXT], path[CTL_PATH_MAX];
	json_t *row;

	cd_id_format(b->object->id, id);
	row = json_object_get(by_id, id);
	if (!row && json_object_size(by_id) == CD_LEFT_MAX)
		return false;
	if (!row) {
		cd_path_format(b->object->prefix, b->object, path);
		row = json_pack("{s:s, s:s, s:s, s:i, s:i, s:i}", "tenant",
				b->object->prefix->job->tenant, "path", path,
				"kind", cd_object_kind_name(b->object->kind),
				"copies", (int)b->object->copies, "blocks", 0,
				"bytes", 0);
		(void)json_object_set_new(by_id, id, row);
	}
	(void)json_object_set_new(
		row, "blocks",
		json_integer(
			json_integer_value(json_object_get(row, "blocks")) +
			1));
	(void)json_object_set_new(
		row, "bytes",
		json_integer(json_integer_value(json_object_get(row, "bytes")) +
			     cd_int(b->bytes)));
	return true;
}

static json_t *blocks_of(const struct cd_node *n, bool *is_complete)
{
	json_t *by_id = json_object(), *rows = json_array(), *row;
	const char *id;

	for (unsigned i = 0; n->lent && i < CD_BLOCKS_MAX; i++) {
		const struct cd_block *b = n->lent->block[i];

		/* Those that nobody has are being freed. */
		if (b && b->object)
			*is_complete &= add_block(b, by_id);
	}
	json_object_foreach(by_id, id, row)(void) json_array_append(rows, row);
	json_decref(by_id);
	return rows;
}

json_t *cd_left_add(const struct cd_core *core, const struct cd_node *n,
		    json_t *row)
{
	bool is_complete = n->names && n->names_complete;
	json_t *blocks = blocks_of(n, &is_complete);
	bool is_last;

	(void)json_object_set_new(
		row, "left", n->names ? json_incref(n->names) : json_array());
	(void)json_object_set_new(row, "blocks", blocks);
	/* Nothing will be added to it. Who led before only knows what was. */
	is_last = n->drain && cd_core_is_sure(core) && n->is_drained;
	if (PLANTED(ctl_left_early))
		is_last = n->drain;
	(void)json_object_set_new(row, "left_last", json_boolean(is_last));
	(void)json_object_set_new(row, "left_complete",
				  json_boolean(is_complete));
	return row;
}
