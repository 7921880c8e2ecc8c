/* SPDX-License-Identifier: Apache-2.0 */
/* What is on its way, for the page: flushes to the vault and loads from it,
 * with what goes wrong, and nodes that are being emptied. */
#include <string.h>

#include "cd_page_priv.h"
#include "vault_priv.h"

/* Blocks that are done, of how many. */
static void count_blocks(const struct cd_object *o, uint64_t *done,
			 uint64_t *all)
{
	*done = 0;
	if (o->state == CD_LOADING) {
		*all = o->image ? o->image->count : 0;
		for (unsigned i = 0; i < o->block_count; i++)
			*done += o->block[i]->is_made;
		return;
	}
	*all = o->block_count;
	if (o->flush)
		*done = json_object_size(o->flush->saved);
}

static const char *state_of(const struct cd_object *o)
{
	if (o->state == CD_LOADING)
		return "runs";
	return o->flush && !o->flush->is_failing ? "runs" : "fails";
}

static json_t *object_row(const struct cd_object *o)
{
	char path[CTL_PATH_MAX];
	uint64_t done, all;
	json_t *row;

	cd_path_format(o->prefix, o, path);
	count_blocks(o, &done, &all);
	row = json_pack("{s:s, s:s, s:s, s:s, s:I, s:I}", "kind",
			o->state == CD_LOADING ? "load" : "flush", "name", path,
			"tenant", o->prefix->job->tenant, "state", state_of(o),
			"done", cd_int(done), "blocks", cd_int(all));
	if (o->trouble[0])
		(void)json_object_set_new(row, "why", json_string(o->trouble));
	return row;
}

static json_t *node_row(const struct cd_node *n)
{
	return json_pack("{s:s, s:s, s:s, s:I, s:I}", "kind", "drain", "name",
			 n->name, "state", cd_state_name(n), "bytes",
			 cd_int(n->used_bytes), "regions", cd_int(n->regions));
}

/* As many as an answer may have. A tenant is shown its own, and no nodes. */
void cd_overview_moves(const struct cd_core *core, const struct cd_tenant *only,
		       json_t *tree)
{
	const struct cd_ids *all = &core->tree->moving;
	json_t *rows = json_array();

	for (unsigned i = 0; !only && i < CD_NODES_MAX; i++)
		if (core->node[i] && core->node[i]->drain)
			(void)json_array_append_new(rows,
						    node_row(core->node[i]));
	for (size_t i = 0;
	     i < all->count && json_array_size(rows) < CD_NAMES_SHOWN; i++) {
		const struct cd_object *o = all->row[i].thing;

		if (!only || strcmp(o->prefix->job->tenant, only->name) == 0)
			(void)json_array_append_new(rows, object_row(o));
	}
	(void)json_object_set_new(tree, "moves", rows);
	if (only)
		return;
	(void)json_object_set_new(
		tree, "vault",
		json_pack("{s:I, s:I, s:I}", "flushed",
			  cd_int(core->tree->flushed), "loaded",
			  cd_int(core->tree->loaded), "errors",
			  cd_int(core->tree->vault_errors)));
}
