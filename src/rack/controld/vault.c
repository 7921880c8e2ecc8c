/* SPDX-License-Identifier: Apache-2.0 */
/* Objects on their way to and from the vault, and what people hear of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

static const char *const states[] = {"ready", "flushing", "flushed", "loading"};

const char *cd_object_state_name(const struct cd_object *o)
{
	return states[o->state];
}

int cd_object_state_parse(const char *text, struct cd_object *o)
{
	for (unsigned i = 0; i < ARRAY_LEN(states); i++) {
		if (strcmp(text, states[i]) != 0)
			continue;
		o->state = (enum cd_object_state)i;
		return 0;
	}
	return error_set(-EINVAL, "\"state\" is none");
}

int cd_object_usable(const struct cd_object *o)
{
	switch (o->state) {
	case CD_READY:
		return 0;
	case CD_FLUSHING:
		return error_set(-ESTALE,
				 "its lease is over, and it is being written "
				 "to the vault");
	case CD_FLUSHED:
		if (o->trouble[0])
			return error_set(-EBADMSG, "it cannot be loaded: %s",
					 o->trouble);
		return error_set(-ESTALE,
				 "its lease is over; its image is %s, and "
				 "'aquifer ns load' brings it back",
				 o->image ? o->image->dir : "missing");
	case CD_LOADING:
		return error_set(-EAGAIN, "it is being loaded");
	}
	return -EINVAL;
}

void cd_vault_add_key(const struct cd_core *core, json_t *row)
{
	const struct vault_key *k = &core->vault_key;

	if (k->id[0])
		(void)json_object_set_new(row, "key",
					  json_pack("{s:s, s:s, s:s}", "id",
						    k->id, "secret", k->secret,
						    "session", k->session));
}

/* ---- what is under way --------------------------------------------------- */

int cd_moving_add(struct cd_core *core, struct cd_object *o)
{
	return cd_ids_find(&core->tree->moving, o->id)
		       ? 0
		       : cd_ids_add(&core->tree->moving, o->id, o);
}

void cd_moving_end(struct cd_core *core, struct cd_object *o)
{
	if (cd_ids_find(&core->tree->moving, o->id))
		cd_ids_remove(&core->tree->moving, o->id);
}

void cd_vault_alarm(struct cd_core *core, const struct cd_object *o,
		    const char *why)
{
	char path[CTL_PATH_MAX];

	core->tree->vault_errors++;
	cd_path_format(o->prefix, o, path);
	(void)snprintf(core->tree->vault_why, sizeof(core->tree->vault_why),
		       "%s", why);
	log_warn("controld", "%s of %s and the vault: %s", path,
		 o->prefix->job->tenant, why);
	cd_event_seen(core, CD_ABOUT_TENANT, o->prefix->job->tenant,
		      "%.40s and the vault: %s", path, why);
}

static void step(struct cd_core *core, struct cd_object *o)
{
	if (o->state == CD_LOADING)
		cd_load_step(core, o);
	else if (o->flush)
		cd_flush_step(core, o);
	else if (o->state != CD_FLUSHING)
		cd_moving_end(core, o);
	else if (cd_flush_begin(core, o, true) &&
		 strcmp(o->trouble, error_last()) != 0) {
		(void)snprintf(o->trouble, sizeof(o->trouble), "%s",
			       error_last());
		cd_vault_alarm(core, o, o->trouble);
	}
}

void cd_vault_tick(struct cd_core *core)
{
	struct cd_ids *all = &core->tree->moving;

	cd_stage_group(core);
	/* From the end: a step may take its object off the list. */
	for (size_t i = all->count; i-- > 0;)
		if (i < all->count)
			step(core, all->row[i].thing);
	cd_images_tick(core);
	cd_stage_group(core);
}

/* ---- rows ---------------------------------------------------------------- */

int cd_vault_rows_end(struct cd_core *core)
{
	const struct cd_ids *all = &core->tree->objects;
	int err = 0;

	for (size_t i = 0; i < all->count && !err; i++) {
		struct cd_object *o = all->row[i].thing;

		if (o->image_id) {
			o->image =
				cd_ids_find(&core->tree->images, o->image_id);
			if (!o->image || !o->image->is_done || o->image->object)
				return error_set(-EBADMSG,
						 "object %s has an image that "
						 "is not its own",
						 o->name);
			o->image->object = o;
		}
		if ((o->state == CD_FLUSHED || o->state == CD_LOADING) &&
		    !o->image)
			return error_set(-EBADMSG, "object %s has no image",
					 o->name);
		if (o->state == CD_FLUSHED && o->block_count)
			cd_flush_give_back(core, o);
		else if (o->state != CD_READY && o->state != CD_FLUSHED)
			err = cd_moving_add(core, o);
	}
	return err;
}

void cd_vault_forget(struct cd_core *core, struct cd_object *o)
{
	cd_flush_drop(core, o);
	cd_moving_end(core, o);
	if (o->image)
		cd_image_orphan(o->image);
	o->image = NULL;
}

void cd_vault_clear(struct cd_core *core)
{
	struct cd_tree *tree = core->tree;

	while (tree->images.count)
		cd_image_free(core, tree->images.row[0].thing);
	tree->vault_why[0] = 0;
}

/* ---- for people ---------------------------------------------------------- */

unsigned cd_vault_failing(const struct cd_core *core)
{
	const struct cd_ids *all = &core->tree->moving;
	unsigned count = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct cd_object *o = all->row[i].thing;

		count += o->flush ? o->flush->is_failing
				  : o->state == CD_FLUSHING;
	}
	return count;
}

json_t *cd_vault_json(const struct cd_core *core, bool sees_all)
{
	const struct cd_ids *all = &core->tree->moving;
	unsigned loading = 0, failing = cd_vault_failing(core);
	json_t *tree;

	for (size_t i = 0; i < all->count; i++)
		loading +=
			((const struct cd_object *)all->row[i].thing)->state ==
			CD_LOADING;
	tree = json_pack("{s:b, s:i, s:i, s:i}", "is_set", core->vault[0] != 0,
			 "flushing", (int)(all->count - loading), "loading",
			 (int)loading, "failing", (int)failing);
	if (sees_all && core->vault[0])
		(void)json_object_set_new(tree, "place",
					  json_string(core->vault));
	if (sees_all && failing)
		(void)json_object_set_new(tree, "why",
					  json_string(core->tree->vault_why));
	return tree;
}
