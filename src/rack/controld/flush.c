/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flushing: each block's image by its node, then the manifest, then the rows;
 * only then memory is given back. A flush that a user asked for is given up
 * when something fails. That of an expired object is tried again, with growing
 * pauses, for as long as it takes, and its data stays.
 *
 * The image of a file in use is what was there at one moment: blocks are saved
 * in any order, and the one that was not sealed when it was saved is the last
 * of the image. What had been appended before the flush began is in it, since
 * all blocks before that one were sealed by then. A queue's is the same for its
 * tail; blocks that were drained meanwhile are missing at its front. A store's
 * is in slots.c.
 *
 * A flush that freezes has all blocks halted first, also those that come while
 * it does so. When there is none left each is what it was at that moment until
 * it is saved; what is made later was not there. Nodes halt blocks for some
 * seconds, whatever becomes of the controller; then the flush fails.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/log.h"
#include "cd_page_priv.h"
#include "vault_priv.h"

enum {
	IS_SEALED = 1,	    /* of the flags that a node says */
	HEAD_BYTES = 72,    /* of an image of a block without anything in it */
	DIR_NAME_MAX = 150, /* characters of the path in the image's name */
};

/* ---- the beginning ------------------------------------------------------- */

/* TENANT/PATH@OBJECT.IMAGE, the end of the path where it is long. */
static void name_dir(struct cd_image *image, const struct cd_object *o)
{
	char path[CTL_PATH_MAX];
	const char *tail = path + 1;
	char *at;

	cd_path_format(o->prefix, o, path);
	for (at = path; *at; at++)
		if (*at == '/')
			*at = '+';
	if (strlen(tail) > DIR_NAME_MAX)
		tail += strlen(tail) - DIR_NAME_MAX;
	tail += strspn(tail, ".");
	(void)snprintf(image->dir, sizeof(image->dir),
		       "%.32s/%.150s@%" PRIu64 ".%" PRIu64,
		       o->prefix->job->tenant, tail, o->id, image->id);
}

static int check(const struct cd_core *core, const struct cd_object *o)
{
	if (!core->vault[0])
		return error_set(-EINVAL, "the controller has no vault; "
					  "rack.vault in its rack.ini names "
					  "one");
	if (o->lost[0])
		return error_set(-ESTALE, "it is lost: %s", o->lost);
	if (o->block_count > CD_IMAGE_BLOCKS)
		return error_set(-E2BIG,
				 "it has %u blocks, and an image %d at most; "
				 "larger blocks help",
				 o->block_count, CD_IMAGE_BLOCKS);
	return 0;
}

static void note_last(struct cd_flush *f, const struct cd_object *o)
{
	f->is_empty = !o->block_count;
	f->last = o->block_count ? o->block[o->block_count - 1]->number : 0;
}

static int begin(struct cd_core *core, struct cd_object *o, bool is_final,
		 bool freezes)
{
	struct cd_flush *f = calloc(1, sizeof(*f));
	int err = f ? cd_image_add(core, cd_id_take(core), &f->image)
		    : error_set(-ENOMEM, "no memory for a flush");

	if (!err) {
		err = cd_moving_add(core, o);
		if (err)
			cd_image_free(core, f->image);
	}
	if (err) {
		free(f);
		return err;
	}
	f->image->of = o->id;
	f->image->object = o;
	f->image->is_flushed_to = true;
	name_dir(f->image, o);
	f->is_final = is_final;
	f->freezes = freezes;
	f->halted = json_object();
	note_last(f, o);
	f->saved = json_object();
	f->news_ns = env_now_ns(core->env);
	o->flush = f;
	o->trouble[0] = 0;
	cd_image_stage(core, f->image);
	cd_stage_part(core);
	return 0;
}

static int begin_as(struct cd_core *core, struct cd_object *o, bool is_final,
		    bool freezes)
{
	int err = check(core, o);

	if (!err && !is_final)
		err = cd_object_usable(o);
	if (!err && o->flush && !is_final)
		err = error_set(-EBUSY, "it is being flushed");
	if (err)
		return err;
	if (o->flush)
		cd_flush_drop(core, o);
	err = begin(core, o, is_final, freezes);
	if (!err)
		cd_flush_step(core, o);
	return err;
}

int cd_flush_begin(struct cd_core *core, struct cd_object *o, bool is_final)
{
	return begin_as(core, o, is_final, false);
}

int cd_flush_begin_frozen(struct cd_core *core, struct cd_object *o)
{
	return begin_as(core, o, false, true);
}

bool cd_flush_expire(struct cd_core *core, struct cd_object *o)
{
	bool is_over =
		o->state == CD_READY && !(o->flush && o->flush->is_final);

	if (o->lost[0] && o->image) { /* an earlier image is left */
		cd_flush_give_back(core, o);
		return true;
	}
	if (o->lost[0])
		return false;
	if (!is_over)
		return true;
	o->state = CD_FLUSHING;
	cd_stage_object(core, o);
	cd_stage_part(core);
	/* It is begun again by the tick; nothing is lost meanwhile. */
	if (cd_flush_begin(core, o, true)) {
		cd_vault_alarm(core, o, error_last());
		if (cd_moving_add(core, o))
			cd_core_resign(core,
				       "the controller has no memory left");
	}
	return true;
}

/* ---- the way ------------------------------------------------------------- */

static void key_of(uint64_t number, char out[24])
{
	(void)snprintf(out, 24, "%" PRIu64, number);
}

static bool has_block(const json_t *done, const struct cd_block *b)
{
	char key[24];

	key_of(b->number, key);
	return json_object_get(done, key) != NULL;
}

/* How many blocks are not in `done` yet; as many as may are begun. */
static unsigned begin_blocks(struct cd_core *core, struct cd_object *o,
			     enum cd_task_kind kind, const json_t *done)
{
	struct cd_flush *f = o->flush;
	unsigned left = 0, begun = 0;

	for (unsigned i = 0; !f->is_empty && i < o->block_count; i++) {
		struct cd_block *b = o->block[i];
		struct cd_task *t;

		if (b->number > f->last || has_block(done, b))
			continue;
		left++;
		begun += b->saving != 0;
		if (b->saving || begun >= CD_TASKS_EACH || !b->is_made ||
		    b->node->state != CD_UP)
			continue;
		t = cd_task_add(core, kind, b->node, f->image);
		if (!t)
			continue;
		t->block = b;
		b->saving = t->id;
		begun++;
	}
	return left;
}

/* Whether there are some that are not halted. */
static bool halt_blocks(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;

	note_last(f, o);
	if (begin_blocks(core, o, CD_TASK_HALT, f->halted))
		return true;
	f->is_halted = true;
	return false;
}

static unsigned save_blocks(struct cd_core *core, struct cd_object *o)
{
	return begin_blocks(core, o, CD_TASK_SAVE, o->flush->saved);
}

static uint64_t field(const json_t *row, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(row, name));
}

/* What of the saved blocks is the image: in order, without a gap, up to the
 * first that could still grow, and without empty ones at the end. */
static json_t *choose(const struct cd_flush *f)
{
	json_t *rows = json_array();
	const char *key;
	json_t *row;

	json_object_foreach(f->saved, key, row)
	{
		size_t at = json_array_size(rows);

		while (at && field(json_array_get(rows, at - 1), "number") >
				     field(row, "number"))
			at--;
		(void)json_array_insert(rows, at, row);
	}
	for (size_t i = 1; i < json_array_size(rows); i++) {
		uint64_t before = field(json_array_get(rows, i - 1), "number");

		if (field(json_array_get(rows, i), "number") == before + 1)
			continue;
		while (i--)
			(void)json_array_remove(rows, 0);
		i = 0;
	}
	for (size_t i = 0; i < json_array_size(rows); i++) {
		row = json_array_get(rows, i);
		if (field(row, "flags") & IS_SEALED)
			continue;
		if (field(row, "bytes") > HEAD_BYTES)
			i++;
		while (json_array_size(rows) > i)
			(void)json_array_remove(rows, i);
	}
	return rows;
}

static json_t *manifest(const struct cd_object *o, struct cd_image *image,
			json_t *rows)
{
	char path[CTL_PATH_MAX];
	const json_t *row;
	size_t i;

	image->count = json_array_size(rows);
	/* Blocks of a store are counted anew. */
	image->first = o->kind == CD_EKV
			       ? 0
			       : field(json_array_get(rows, 0), "number");
	image->bytes = 0;
	json_array_foreach(rows, i, row) image->bytes += field(row, "bytes");
	cd_path_format(o->prefix, o, path);
	return json_pack("{s:i, s:I, s:I, s:s, s:s, s:s, s:I, s:I, s:o}",
			 "format", 1, "image", cd_int(image->id), "object",
			 cd_int(image->of), "tenant", o->prefix->job->tenant,
			 "path", path, "kind", cd_object_kind_name(o->kind),
			 "block_bytes", cd_int(o->block_bytes), "bound",
			 cd_int(o->bound), "blocks", rows);
}

static void fail(struct cd_core *core, struct cd_object *o, const char *why);

/* All blocks of a store are saved again. */
static void begin_round(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;
	char why[sizeof(o->trouble)];

	if (f->is_final || f->freezes || f->rounds >= CD_FLUSH_ROUNDS) {
		(void)snprintf(why, sizeof(why), "%s", error_last());
		fail(core, o, why);
		f = o->flush;
		if (!f)
			return;
	} else {
		f->again_ns =
			env_now_ns(core->env) + CD_FLUSH_PAUSE_MS * 1000000ull;
	}
	f->rounds++;
	json_decref(f->before);
	f->before = f->saved;
	f->saved = json_object();
	note_last(f, o);
}

static void write_manifest(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;
	const struct cd_task *old = cd_task_find(core, f->manifest);
	struct cd_node *n = cd_task_node(core);
	json_t *rows = NULL;
	struct cd_task *t;

	/* Its node is gone: another one writes the same. */
	if (old && old->node->state == CD_UP)
		return;
	if (old)
		cd_task_drop(core, cd_task_find(core, f->manifest));
	f->manifest = 0;
	if (o->kind != CD_EKV) {
		rows = choose(f);
	} else if (cd_slots_choose(f->saved, f->before,
				   f->is_final || f->freezes, &rows)) {
		begin_round(core, o);
		return;
	}
	t = n ? cd_task_add(core, CD_TASK_MANIFEST, n, f->image) : NULL;
	f->manifest = t ? t->id : 0;
	if (t)
		t->text = manifest(o, f->image, rows);
	else
		json_decref(rows);
}

static void watch(struct cd_core *core, const struct cd_object *o)
{
	struct cd_flush *f = o->flush;
	uint64_t silent_ms = (env_now_ns(core->env) - f->news_ns) / 1000000;

	if (f->is_failing || silent_ms < CD_FLUSH_SLOW_MS)
		return;
	f->is_failing = true;
	cd_vault_alarm(core, o,
		       "the vault is slow, or nodes are away: "
		       "nothing was heard for 10 s");
}

void cd_flush_step(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;

	if (o->lost[0]) {
		bool was_final = f->is_final;

		cd_flush_drop(core, o);
		if (!was_final)
			return;
		o->state = CD_READY; /* lost, as its row says */
		cd_stage_object(core, o);
		cd_stage_part(core);
		o->prefix->job->due_ns = 0;
		return;
	}
	watch(core, o);
	if (env_now_ns(core->env) < f->again_ns)
		return;
	if (f->freezes && !f->is_halted && halt_blocks(core, o))
		return;
	if (!save_blocks(core, o))
		write_manifest(core, o);
}

static void end_flush(struct cd_flush *f)
{
	json_decref(f->halted);
	json_decref(f->saved);
	json_decref(f->before);
	free(f);
}

/* ---- news ---------------------------------------------------------------- */

static void fail(struct cd_core *core, struct cd_object *o, const char *why)
{
	struct cd_flush *f = o->flush;
	uint64_t now = env_now_ns(core->env);

	if (!f->is_final) {
		(void)snprintf(o->trouble, sizeof(o->trouble), "%s", why);
		cd_vault_alarm(core, o, why);
		cd_flush_drop(core, o);
		return;
	}
	/* Other blocks may fail at the same time, and count once. */
	if (now < f->again_ns)
		return;
	f->pause_ms = f->pause_ms ? 2 * f->pause_ms : CD_FLUSH_PAUSE_MS;
	if (f->pause_ms > CD_FLUSH_PAUSE_MAX_MS)
		f->pause_ms = CD_FLUSH_PAUSE_MAX_MS;
	f->again_ns = now + f->pause_ms * 1000000ull;
	f->news_ns = now;
	if (!f->is_failing || strcmp(o->trouble, why) != 0)
		cd_vault_alarm(core, o, why);
	f->is_failing = true;
	(void)snprintf(o->trouble, sizeof(o->trouble), "%s", why);
}

static void thrive(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;
	char path[CTL_PATH_MAX];

	f->news_ns = env_now_ns(core->env);
	f->pause_ms = 0;
	o->trouble[0] = 0;
	if (!f->is_failing)
		return;
	f->is_failing = false;
	cd_path_format(o->prefix, o, path);
	log_info("controld", "the vault takes %s again", path);
	cd_event_seen(core, CD_ABOUT_TENANT, o->prefix->job->tenant,
		      "the vault takes %.80s again", path);
}

/* A block that was drained meanwhile is no loss; the next look finds it gone.
 */
static void miss(struct cd_core *core, struct cd_object *o,
		 const struct cd_task_end *end)
{
	if (!end->is_gone)
		fail(core, o, end->why);
	else
		o->flush->again_ns =
			env_now_ns(core->env) + CD_FLUSH_PAUSE_MS * 1000000ull;
}

void cd_flush_halted(struct cd_core *core, struct cd_object *o,
		     const struct cd_block *b, const struct cd_task_end *end)
{
	char key[24];

	if (end->why) {
		miss(core, o, end);
		return;
	}
	thrive(core, o);
	key_of(b->number, key);
	(void)json_object_set_new(o->flush->halted, key, json_true());
	cd_flush_step(core, o);
}

void cd_flush_saved(struct cd_core *core, struct cd_object *o,
		    const struct cd_block *b, const struct cd_task_end *end)
{
	char key[24];
	json_t *row;

	if (end->why) {
		miss(core, o, end);
		return;
	}
	thrive(core, o);
	key_of(b->number, key);
	row = json_pack("{s:I, s:I, s:s, s:I, s:I}", "number",
			cd_int(b->number), "bytes", cd_int(end->bytes), "crc",
			end->crc ? end->crc : "", "flags", cd_int(end->flags),
			"items", cd_int(end->items));
	if (o->kind == CD_EKV)
		(void)json_object_update_new(
			row,
			json_pack("{s:O, s:I}", "slots", end->slots,
				  "generation", cd_int(cd_block_identity(b))));
	(void)json_object_set_new(o->flush->saved, key, row);
	cd_flush_step(core, o);
}

void cd_flush_give_back(struct cd_core *core, struct cd_object *o)
{
	o->state = CD_FLUSHED;
	o->lost[0] = 0;
	cd_stage_object(core, o);
	/* The image is complete before anything is freed: a transaction of its
	 * own. */
	cd_stage_group(core);
	while (o->block_count) {
		cd_block_release(core, o->block[o->block_count - 1], true);
		cd_stage_part(core);
	}
}

void cd_flush_written(struct cd_core *core, struct cd_object *o,
		      const struct cd_task_end *end)
{
	struct cd_flush *f = o->flush;
	bool is_final = f->is_final;

	f->manifest = 0;
	if (end->why) {
		fail(core, o, end->why);
		return;
	}
	thrive(core, o);
	cd_stage_group(core);
	if (o->image)
		cd_image_orphan(o->image);
	o->image = f->image;
	o->image->is_done = true;
	o->image->is_flushed_to = false;
	o->flush = NULL;
	end_flush(f);
	cd_moving_end(core, o);
	core->tree->flushed++;
	cd_image_stage(core, o->image);
	log_info("controld", "%s is at the vault: %" PRIu64 " bytes",
		 o->image->dir, o->image->bytes);
	if (is_final)
		cd_flush_give_back(core, o);
	else
		cd_stage_object(core, o);
	cd_stage_group(core);
}

/* ---- the end ------------------------------------------------------------- */

void cd_flush_drop(struct cd_core *core, struct cd_object *o)
{
	struct cd_flush *f = o->flush;

	if (!f)
		return;
	cd_tasks_drop(core, f->image, NULL, NULL);
	f->image->is_flushed_to = false;
	cd_image_orphan(f->image);
	end_flush(f);
	o->flush = NULL;
	cd_moving_end(core, o);
}

json_t *cd_flush_json(const struct cd_object *o)
{
	const struct cd_flush *f = o->flush;

	return json_pack("{s:I, s:i, s:i}", "image", cd_int(f->image->id),
			 "blocks", (int)o->block_count, "saved",
			 (int)json_object_size(f->saved));
}
