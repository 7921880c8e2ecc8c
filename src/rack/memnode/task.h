/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a node does at the vault, because the controller says so: halting a
 * block, writing its image or the manifest of all of them, removing an image,
 * and filling a new block from one. A thread of its own does it, one after the
 * other, for as long as a disk takes; beats go on meanwhile.
 *
 * A task has a number. The controller names it in every answer until it has
 * heard how it ended; the node does it once, and says so in its beats until one
 * of them was answered.
 */
#ifndef AQ_MEM_TASK_H
#define AQ_MEM_TASK_H

#include "blocks.h"
#include "image.h"

enum {
	MEM_TASKS_MAX =
		1024, /* that wait; more are taken when they come again */
	MEM_TASKS_TOLD = 64,   /* in one beat */
	MEM_TASK_WHY = 200,    /* bytes of words */
	MEM_TASK_PAUSE_MS = 2, /* until a block that is in use is tried again */
};

/* "tasks" of a beat, and of the answer to one. */
void mem_tasks_say(struct mem_node *node, json_t *beat);
void mem_tasks_hear(struct mem_node *node, const json_t *answer);
/* Without the lock; no more orders come. */
void mem_tasks_stop(struct mem_node *node);

/* "load" of an order to make a block: {"vault", "key", "image", "image_id",
 * "object"}. */
struct mem_load {
	struct mem_image image;
};
int mem_load_parse(const json_t *row, struct mem_load *out) MUST_CHECK;
/* The block is filled and installed some time later, or has failed; until then
 * it is busy. -EAGAIN, -EACCES: not at all. */
int mem_task_load(struct mem_node *node, struct mem_block *m,
		  const struct blk_place *place,
		  const struct mem_load *load) MUST_CHECK;

#endif
