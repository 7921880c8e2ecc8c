/* SPDX-License-Identifier: Apache-2.0 */
/* Images: their rows, and the end of those that nobody has. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "vault_priv.h"

int cd_image_add(struct cd_core *core, uint64_t id, struct cd_image **out)
{
	struct cd_image *image = calloc(1, sizeof(*image));
	int err = image ? cd_ids_add(&core->tree->images, id, image)
			: error_set(-ENOMEM, "no memory for an image");

	if (err) {
		free(image);
		return err;
	}
	image->id = id;
	*out = image;
	return 0;
}

void cd_image_free(struct cd_core *core, struct cd_image *image)
{
	cd_tasks_drop(core, image, NULL, NULL);
	cd_ids_remove(&core->tree->images, image->id);
	free(image);
}

void cd_image_stage(struct cd_core *core, const struct cd_image *image)
{
	char key[CD_ID_TEXT];

	cd_id_format(image->id, key);
	cd_stage(core, "image", key,
		 json_pack("{s:I, s:s, s:I, s:I, s:I, s:b}", "of",
			   cd_int(image->of), "dir", image->dir, "first",
			   cd_int(image->first), "count", cd_int(image->count),
			   "bytes", cd_int(image->bytes), "done",
			   image->is_done));
}

int cd_image_row(struct cd_core *core, const char *key, const json_t *row)
{
	const json_t *done = json_object_get(row, "done");
	struct cd_image *image = NULL;
	const char *dir = NULL;
	uint64_t id = 0;
	int err = ctl_field_string(row, "dir", true, &dir);

	if (!err &&
	    (!cd_id_parse(key, &id) || cd_ids_find(&core->tree->images, id) ||
	     strlen(dir) >= CD_IMAGE_DIR || !json_is_boolean(done)))
		err = error_set(-EINVAL, "it is no image, or comes twice");
	if (!err)
		err = cd_image_add(core, id, &image);
	if (!err)
		err = ctl_field_u64(row, "of", true, 1, INT64_MAX, &image->of);
	if (!err)
		err = ctl_field_u64(row, "first", true, 0, INT64_MAX,
				    &image->first);
	if (!err)
		err = ctl_field_u64(row, "count", true, 0, CD_IMAGE_BLOCKS,
				    &image->count);
	if (!err)
		err = ctl_field_u64(row, "bytes", true, 0, INT64_MAX,
				    &image->bytes);
	if (err)
		return err;
	image->is_done = json_is_true(done);
	(void)snprintf(image->dir, sizeof(image->dir), "%s", dir);
	return 0;
}

void cd_image_orphan(struct cd_image *image)
{
	image->object = NULL;
	image->again_ns = 0;
}

json_t *cd_image_json(const struct cd_image *image)
{
	return json_pack("{s:I, s:I, s:I, s:s}", "id", cd_int(image->id),
			 "blocks", cd_int(image->count), "bytes",
			 cd_int(image->bytes), "dir", image->dir);
}

void cd_images_tick(struct cd_core *core)
{
	struct cd_ids *all = &core->tree->images;
	uint64_t now = env_now_ns(core->env);
	struct cd_node *n = core->vault[0] ? cd_task_node(core) : NULL;
	unsigned begun = 0;

	for (size_t i = 0; n && i < all->count && begun < CD_TASKS_EACH; i++) {
		struct cd_image *image = all->row[i].thing;
		struct cd_task *t;

		if (image->object || image->task || now < image->again_ns)
			continue;
		t = cd_task_add(core, CD_TASK_ERASE, n, image);
		image->task = t ? t->id : 0;
		begun++;
	}
}
