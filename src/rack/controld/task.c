/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks of nodes at the vault. One is told in every answer to its node's beats
 * until the node has said how it ended. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "vault_priv.h"

struct cd_task *cd_task_add(struct cd_core *core, enum cd_task_kind kind,
			    struct cd_node *node, struct cd_image *image)
{
	struct cd_task *t = calloc(1, sizeof(*t)), **at = &core->tree->tasks;

	if (!t)
		return NULL; /* the next tick tries again */
	t->id = cd_id_take(core);
	t->kind = kind;
	t->node = node;
	t->image = image;
	while (*at)
		at = &(*at)->next;
	*at = t;
	return t;
}

struct cd_task *cd_task_find(const struct cd_core *core, uint64_t id)
{
	struct cd_task *t = core->tree->tasks;

	while (t && t->id != id)
		t = t->next;
	return t;
}

void cd_task_drop(struct cd_core *core, struct cd_task *task)
{
	struct cd_task **at = &core->tree->tasks;

	while (*at != task)
		at = &(*at)->next;
	*at = task->next;
	if (task->block)
		task->block->saving = 0;
	if (task->image->task == task->id)
		task->image->task = 0;
	json_decref(task->text);
	free(task);
}

void cd_tasks_drop(struct cd_core *core, const struct cd_image *image,
		   const struct cd_block *block, const struct cd_node *node)
{
	struct cd_task *next, *t = core->tree->tasks;

	for (; t; t = next) {
		next = t->next;
		if ((image && t->image == image) ||
		    (block && t->block == block) || (node && t->node == node))
			cd_task_drop(core, t);
	}
}

struct cd_node *cd_task_node(const struct cd_core *core)
{
	for (unsigned i = 0; i < CD_NODES_MAX; i++) {
		struct cd_node *n = core->node[i];

		if (n && n->kind == CD_MEMORY && n->state == CD_UP && n->lends)
			return n;
	}
	return NULL;
}

/* ---- what a node says ---------------------------------------------------- */

static int parse(const json_t *row, uint64_t *id, struct cd_task_end *end)
{
	const char *how = NULL, *why = NULL;
	int err = json_is_object(row)
			  ? ctl_field_u64(row, "id", true, 1, INT64_MAX, id)
			  : -EINVAL;

	*end = (struct cd_task_end){0};
	if (!err)
		err = ctl_field_string(row, "end", true, &how);
	if (!err)
		err = ctl_field_string(row, "why", false, &why);
	if (!err)
		err = ctl_field_string(row, "crc", false, &end->crc);
	if (!err)
		err = ctl_field_u64(row, "bytes", false, 0, INT64_MAX,
				    &end->bytes);
	if (!err)
		err = ctl_field_u64(row, "flags", false, 0, UINT32_MAX,
				    &end->flags);
	if (!err)
		err = ctl_field_u64(row, "items", false, 0, UINT32_MAX,
				    &end->items);
	end->slots = json_object_get(row, "slots");
	if (!err)
		err = cd_slots_check(end->slots);
	if (err)
		return error_set(-EINVAL, "\"tasks\" has objects with id, end "
					  "and more");
	if (strcmp(how, "done") != 0)
		end->why = why && *why ? why : how;
	end->is_gone = strcmp(how, "-ENOENT") == 0;
	return 0;
}

int cd_tasks_check(const json_t *beat)
{
	const json_t *rows = json_object_get(beat, "tasks"), *row;
	struct cd_task_end end;
	uint64_t id;
	size_t i;

	if (rows && !json_is_array(rows))
		return error_set(-EINVAL, "\"tasks\" is a list");
	if (json_array_size(rows) > CD_TASKS_HEARD)
		return error_set(-E2BIG, "\"tasks\" has %d at most",
				 CD_TASKS_HEARD);
	json_array_foreach(rows, i, row)
	{
		int err = parse(row, &id, &end);

		if (err)
			return err;
	}
	return 0;
}

static void end_erase(struct cd_core *core, struct cd_image *image,
		      const struct cd_task_end *end)
{
	if (end->why) {
		log_warn("controld", "image %s is not erased yet: %s",
			 image->dir, end->why);
		image->again_ns =
			env_now_ns(core->env) + CD_ERASE_PAUSE_MS * 1000000ull;
		return;
	}
	cd_unstage_id(core, "image", image->id);
	cd_stage_part(core);
	cd_image_free(core, image);
}

static void hear(struct cd_core *core, struct cd_task *t,
		 const struct cd_task_end *end)
{
	struct cd_image *image = t->image;
	const struct cd_block *b = t->block;
	enum cd_task_kind kind = t->kind;

	cd_task_drop(core, t);
	if (kind == CD_TASK_ERASE)
		end_erase(core, image, end);
	else if (kind == CD_TASK_HALT)
		cd_flush_halted(core, image->object, b, end);
	else if (kind == CD_TASK_SAVE)
		cd_flush_saved(core, image->object, b, end);
	else
		cd_flush_written(core, image->object, end);
}

void cd_tasks_hear(struct cd_core *core, struct cd_node *n, const json_t *beat)
{
	const json_t *rows = json_object_get(beat, "tasks"), *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		struct cd_task_end end;
		struct cd_task *t;
		uint64_t id = 0;

		if (parse(row, &id, &end))
			continue;
		t = cd_task_find(core, id);
		if (t && t->node == n)
			hear(core, t, &end);
	}
}

/* ---- what it is told ----------------------------------------------------- */

bool cd_tasks_are_due(const struct cd_core *core, const struct cd_node *n)
{
	for (const struct cd_task *t = core->tree->tasks; t; t = t->next)
		if (t->node == n && !t->is_told)
			return true;
	return false;
}

static json_t *task_json(const struct cd_core *core, const struct cd_task *t)
{
	static const char *const words[] = {"save", "manifest", "erase",
					    "halt"};
	const struct cd_flush *f =
		t->image->object ? t->image->object->flush : NULL;
	json_t *row =
		json_pack("{s:I, s:s, s:s, s:s, s:I}", "id", cd_int(t->id),
			  "do", words[t->kind], "vault", core->vault, "image",
			  t->image->dir, "image_id", cd_int(t->image->id));

	cd_vault_add_key(core, row);
	if (t->block && f)
		(void)json_object_update_new(
			row,
			json_pack("{s:i, s:I, s:I, s:I, s:b, s:b}", "index",
				  (int)t->block->index, "generation",
				  cd_int(t->block->generation), "object",
				  cd_int(t->image->of), "number",
				  cd_int(t->block->number), "freeze",
				  f->is_final, "halted", f->freezes));
	if (t->text)
		(void)json_object_set(row, "text", t->text);
	return row;
}

/* Twice: what was never told first. A manifest is long, and goes alone. */
static void collect(struct cd_core *core, const struct cd_node *n, bool repeats,
		    json_t *rows)
{
	const struct cd_tree *tree = core->tree;
	bool is_full = json_array_size(rows) >= CD_TASKS_SAID;

	for (struct cd_task *t = tree->tasks; t && !is_full; t = t->next) {
		if (t->node != n || t->is_told != repeats ||
		    (repeats && t->round == tree->task_round))
			continue;
		(void)json_array_append_new(rows, task_json(core, t));
		t->is_told = true;
		t->round = tree->task_round;
		is_full = t->text || json_array_size(rows) >= CD_TASKS_SAID;
	}
}

void cd_tasks_say(struct cd_core *core, struct cd_node *n, json_t *answer)
{
	json_t *rows = json_array();

	core->tree->task_round++;
	collect(core, n, false, rows);
	collect(core, n, true, rows);
	if (json_array_size(rows))
		(void)json_object_set(answer, "tasks", rows);
	json_decref(rows);
}
