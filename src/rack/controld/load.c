/* SPDX-License-Identifier: Apache-2.0 */
/* Loading: new blocks, which their nodes fill from the image before they say
 * that they are made. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

int cd_load_begin(struct cd_core *core, struct cd_object *o,
		  struct cd_object **out)
{
	struct cd_prefix *p = o->prefix;
	struct cd_object *n;
	int err;

	if (!o->image)
		return error_set(-ENOENT, "it has no image");
	if (!core->vault[0])
		return error_set(-EINVAL, "the controller has no vault; "
					  "rack.vault in its rack.ini names "
					  "one");
	err = cd_object_add(core, p, o->name, cd_id_take(core), &n);
	if (err)
		return err;
	err = cd_moving_add(core, n);
	if (err) {
		cd_object_remove(core, n);
		return err;
	}
	n->kind = o->kind;
	n->block_bytes = o->block_bytes;
	n->bound = o->bound;
	n->copies = o->copies;
	n->epoch = n->id;
	n->state = CD_LOADING;
	n->image = o->image;
	n->image->object = n;
	o->image = NULL;
	cd_unstage_id(core, "object", o->id);
	cd_object_remove(core, o);
	cd_stage_object(core, n);
	cd_lease_renew(core, p);
	cd_load_step(core, n);
	*out = n;
	return 0;
}

static void finish(struct cd_core *core, struct cd_object *o)
{
	o->state = CD_READY;
	o->trouble[0] = 0;
	core->tree->loaded++;
	cd_moving_end(core, o);
	cd_stage_object(core, o);
	cd_stage_part(core);
	cd_lease_renew(core, o->prefix);
}

static int place(struct cd_core *core, struct cd_object *o)
{
	const struct cd_wish wish = {
		.size_bytes = o->block_bytes, .copies = 1, .is_block = true};
	struct cd_node *node[CD_COPIES_MAX] = {NULL};
	struct cd_block *b;
	int err = cd_place_policy("least")(core, &wish, node);

	if (!err)
		err = cd_block_make(core, node[0], o,
				    o->image->first + o->block_count, 0, &b);
	/* Its copies join when it is there. */
	if (!err && b->identity) {
		b->is_full = true;
		cd_chain_bump(core, b);
	}
	return err;
}

void cd_load_step(struct cd_core *core, struct cd_object *o)
{
	unsigned made = 0;
	int err = 0;

	if (o->lost[0]) {
		cd_load_fail(core, o, o->lost);
		return;
	}
	for (unsigned i = 0;
	     !err && i < CD_LOAD_STEP && o->block_count < o->image->count;
	     i++) {
		err = place(core, o);
		cd_stage_part(core);
	}
	if (err) {
		cd_load_fail(core, o, error_last());
		return;
	}
	for (unsigned i = 0; i < o->block_count; i++)
		made += o->block[i]->is_made;
	if (made == o->image->count)
		finish(core, o);
}

void cd_load_fail(struct cd_core *core, struct cd_object *o, const char *why)
{
	(void)snprintf(o->trouble, sizeof(o->trouble), "%s", why);
	cd_vault_alarm(core, o, o->trouble);
	cd_moving_end(core, o);
	cd_flush_give_back(core, o);
}

json_t *cd_load_json(const struct cd_core *core, const struct cd_block *b)
{
	const struct cd_object *o = b->object;
	json_t *row;

	if (o->state != CD_LOADING)
		return NULL;
	row = json_pack("{s:s, s:s, s:I, s:I}", "vault", core->vault, "image",
			o->image->dir, "image_id", cd_int(o->image->id),
			"object", cd_int(o->image->of));
	cd_vault_add_key(core, row);
	return row;
}
