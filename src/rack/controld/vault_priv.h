/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of objects at the vault, and the tasks by which nodes write, read and
 * remove them. The controller itself never touches the vault: it names the
 * place with each task.
 *
 *   image  ID   of, dir, first, count, bytes, done
 *
 * An object's row names its image; an image that no object names is erased. So
 * the row of an image is there before anything of it is written, and nothing
 * that was begun is forgotten. What is under way is soft: a new leader begins
 * the flush of an expired object anew, with another image.
 *
 * An object is READY, then FLUSHING when its lease is over (nobody may open
 * it), FLUSHED when its image is complete (then its blocks are freed), LOADING
 * when somebody wants it back, and READY again, under another id, so nobody who
 * had it open before goes on with it.
 */
#ifndef AQ_CD_VAULT_PRIV_H
#define AQ_CD_VAULT_PRIV_H

#include "tree_priv.h"

enum {
	CD_TASKS_EACH = 16,  /* of one object, at a time */
	CD_TASKS_SAID = 16,  /* in one answer */
	CD_TASKS_HEARD = 64, /* in one beat */
	/* The manifest has a row for each, and comes in one answer. */
	CD_IMAGE_BLOCKS = 4096,
	CD_LOAD_STEP = 16, /* blocks that are placed at a time */
	CD_IMAGE_DIR = 300,
	CD_FLUSH_PAUSE_MS = 250, /* after a failure; doubles */
	CD_FLUSH_PAUSE_MAX_MS = 8000,
	CD_ERASE_PAUSE_MS = 30000,
	CD_FLUSH_SLOW_MS = 10000, /* without news: the vault is slow */
	CD_FLUSH_ROUNDS = 16,	  /* of a store in use whose slots move */
};

struct cd_image {
	/* The row. */
	uint64_t id;
	uint64_t of; /* the object that its blocks name */
	char dir[CD_IMAGE_DIR];
	uint64_t first, count; /* numbers of blocks */
	uint64_t bytes;
	bool is_done;
	/* Soft. */
	struct cd_object *object; /* that has it; NULL: to be erased */
	bool is_flushed_to;	  /* by that object; it does not have it yet */
	uint64_t task;		  /* that erases it; 0: none */
	uint64_t again_ns;	  /* not before then */
};

enum cd_task_kind {
	CD_TASK_SAVE,
	CD_TASK_MANIFEST,
	CD_TASK_ERASE,
	CD_TASK_HALT, /* a block, until it is saved */
};

struct cd_task {
	struct cd_task *next;
	uint64_t id;
	enum cd_task_kind kind;
	struct cd_node *node;
	struct cd_image *image;
	struct cd_block *block; /* of a save or halt; gone: the task is, too */
	json_t *text;		/* of a manifest */
	bool is_told;
	unsigned round; /* of answers, when it was told last */
};

/* An object on its way to the vault. */
struct cd_flush {
	struct cd_image *image;
	bool is_final;	   /* its lease is over, and its memory is given back */
	bool freezes;	   /* all blocks are halted before one is saved */
	bool is_halted;	   /* they are */
	json_t *halted;	   /* by number: which of them */
	uint64_t last;	   /* blocks that came later are not in it */
	bool is_empty;	   /* there was none */
	json_t *saved;	   /* by number: what the manifest has */
	json_t *before;	   /* of a store: `saved` of the round before */
	unsigned rounds;   /* of a store, before this one */
	uint64_t manifest; /* task; 0: not yet */
	uint64_t news_ns, again_ns;
	unsigned pause_ms;
	bool is_failing;
};

/* ---- image.c ------------------------------------------------------------- */

/* -ENOMEM. Nothing is staged. */
int cd_image_add(struct cd_core *core, uint64_t id,
		 struct cd_image **out) MUST_CHECK;
void cd_image_free(struct cd_core *core, struct cd_image *image);
void cd_image_stage(struct cd_core *core, const struct cd_image *image);
int cd_image_row(struct cd_core *core, const char *key,
		 const json_t *row) MUST_CHECK;
/* Nobody has it any more. */
void cd_image_orphan(struct cd_image *image);
/* Erases those that nobody has. */
void cd_images_tick(struct cd_core *core);
json_t *cd_image_json(const struct cd_image *image);

/* ---- task.c -------------------------------------------------------------- */

/* NULL: no memory. */
struct cd_task *cd_task_add(struct cd_core *core, enum cd_task_kind kind,
			    struct cd_node *node, struct cd_image *image);
struct cd_task *cd_task_find(const struct cd_core *core, uint64_t id);
void cd_task_drop(struct cd_core *core, struct cd_task *task);
/* All of an image, a block or a node. */
void cd_tasks_drop(struct cd_core *core, const struct cd_image *image,
		   const struct cd_block *block, const struct cd_node *node);
/* A node that is up and lends blocks; NULL: there is none. */
struct cd_node *cd_task_node(const struct cd_core *core);
/* The part of a beat about tasks: 0, or -EINVAL, when nothing is taken. */
int cd_tasks_check(const json_t *beat) MUST_CHECK;
void cd_tasks_hear(struct cd_core *core, struct cd_node *n, const json_t *beat);
bool cd_tasks_are_due(const struct cd_core *core, const struct cd_node *n);
void cd_tasks_say(struct cd_core *core, struct cd_node *n, json_t *answer);

/* How a task has ended. */
struct cd_task_end {
	const char *why; /* NULL: well */
	bool is_gone;	 /* the node has no such block */
	uint64_t bytes, flags, items;
	const char *crc;
	const json_t *slots; /* of a store's block (slots.c) */
};

/* ---- flush.c ------------------------------------------------------------- */

/* -EOPNOTSUPP, -EINVAL (no vault), -E2BIG, -EBUSY, -ESTALE, -ENOMEM. */
int cd_flush_begin(struct cd_core *core, struct cd_object *o,
		   bool is_final) MUST_CHECK;
/* The same of one in use; its blocks are halted first, so the image is what all
 * of it was at one moment. */
int cd_flush_begin_frozen(struct cd_core *core, struct cd_object *o) MUST_CHECK;
/* The lease of an object is over, and its job wants images. False: the object
 * is to be dropped. */
bool cd_flush_expire(struct cd_core *core, struct cd_object *o);
void cd_flush_step(struct cd_core *core, struct cd_object *o);
void cd_flush_halted(struct cd_core *core, struct cd_object *o,
		     const struct cd_block *b, const struct cd_task_end *end);
void cd_flush_saved(struct cd_core *core, struct cd_object *o,
		    const struct cd_block *b, const struct cd_task_end *end);
void cd_flush_written(struct cd_core *core, struct cd_object *o,
		      const struct cd_task_end *end);
/* It is given up; what was written of it is erased. */
void cd_flush_drop(struct cd_core *core, struct cd_object *o);
/* The object has its image and no memory. */
void cd_flush_give_back(struct cd_core *core, struct cd_object *o);
json_t *cd_flush_json(const struct cd_object *o);

/* ---- slots.c ------------------------------------------------------------- */

/* What a node says of the slots of a block that it saved; NULL is well. */
int cd_slots_check(const json_t *slots) MUST_CHECK;
/* Rows of the manifest of a store, which are the caller's, each with the slots
 * that are taken from that block. -EAGAIN: some slots were on their way, and
 * all blocks have to be saved again. `before` may be NULL. */
int cd_slots_choose(const json_t *saved, const json_t *before, bool is_final,
		    json_t **out) MUST_CHECK;

/* ---- load.c -------------------------------------------------------------- */

/* From its image, under another id; *out is that object. */
int cd_load_begin(struct cd_core *core, struct cd_object *o,
		  struct cd_object **out) MUST_CHECK;
void cd_load_step(struct cd_core *core, struct cd_object *o);
/* It stays FLUSHED. */
void cd_load_fail(struct cd_core *core, struct cd_object *o, const char *why);
/* What a node needs to fill a block of it; NULL: nothing. */
json_t *cd_load_json(const struct cd_core *core, const struct cd_block *b);

/* ---- vault.c ------------------------------------------------------------- */

/* Adds what a node shows the vault to a task or an order for it. */
void cd_vault_add_key(const struct cd_core *core, json_t *row);
const char *cd_object_state_name(const struct cd_object *o);
int cd_object_state_parse(const char *text, struct cd_object *o) MUST_CHECK;
/* 0: clients may use it. -ESTALE, -EAGAIN with words. */
int cd_object_usable(const struct cd_object *o) MUST_CHECK;
/* It is under way to or from the vault, or is not any more. */
int cd_moving_add(struct cd_core *core, struct cd_object *o) MUST_CHECK;
void cd_moving_end(struct cd_core *core, struct cd_object *o);
/* What goes wrong at the vault, for people. */
void cd_vault_alarm(struct cd_core *core, const struct cd_object *o,
		    const char *why);
void cd_vault_tick(struct cd_core *core);
/* Object and image rows have come. -EBADMSG, -ENOMEM. */
int cd_vault_rows_end(struct cd_core *core) MUST_CHECK;
/* Before an object is freed. */
void cd_vault_forget(struct cd_core *core, struct cd_object *o);
void cd_vault_clear(struct cd_core *core);
/* For status: {"place", "flushing", "loading", "failing", "why"}. */
json_t *cd_vault_json(const struct cd_core *core, bool sees_all);
unsigned cd_vault_failing(const struct cd_core *core);

void cd_handle_flush(void *ctx, struct ctl_call *call);
void cd_handle_load(void *ctx, struct ctl_call *call);

#endif
