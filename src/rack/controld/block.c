/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks that nodes lend: their places, whose they are, and whether there is an
 * order about them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/plant.h"
#include "vault_priv.h"

/* ---- places ------------------------------------------------------------- */

struct cd_block *cd_block_at(const struct cd_node *n, unsigned index,
			     uint64_t generation)
{
	struct cd_block *b =
		n->lent && index < CD_BLOCKS_MAX ? n->lent->block[index] : NULL;

	return b && b->generation == generation ? b : NULL;
}

int cd_block_add(struct cd_node *n, unsigned index, struct cd_block **out)
{
	struct cd_block *b;

	if (!n->lent)
		n->lent = calloc(1, sizeof(*n->lent));
	if (n->lent && n->lent->block[index])
		return error_set(-EINVAL, "the place has a block already");
	b = n->lent ? calloc(1, sizeof(*b)) : NULL;
	if (!b)
		return error_set(-ENOMEM, "no memory for a block");
	b->node = n;
	b->index = index;
	n->lent->block[index] = b;
	n->lent->count++;
	*out = b;
	return 0;
}

bool cd_block_waits(const struct cd_block *b)
{
	return !b->object || !b->is_made;
}

/* Around each change of what there is to order. */
static void forget_order(struct cd_block *b)
{
	struct cd_lent *lent = b->node->lent;

	if (!cd_block_waits(b))
		return;
	lent->pending--;
	lent->untold -= !b->is_told;
	if (b->object)
		lent->making_bytes -= b->bytes;
}

static void note_order(struct cd_block *b)
{
	struct cd_lent *lent = b->node->lent;

	b->is_told = false;
	if (!cd_block_waits(b))
		return;
	lent->pending++;
	lent->untold++;
	if (b->object)
		lent->making_bytes += b->bytes;
}

void cd_block_is_there(struct cd_block *b)
{
	forget_order(b);
	b->is_made = true;
	note_order(b);
}

/* ---- objects' blocks ---------------------------------------------------- */

/* Copies lie behind the first one, by generation. */
static bool join_chain(struct cd_object *o, struct cd_block *b)
{
	for (unsigned i = 0; i < o->block_count; i++) {
		struct cd_block **at = &o->block[i];

		if ((*at)->number != b->number)
			continue;
		while (*at && (*at)->generation < b->generation)
			at = &(*at)->next;
		b->next = *at;
		*at = b;
		b->object = o;
		return true;
	}
	return false;
}

static int join_object(struct cd_object *o, struct cd_block *b)
{
	unsigned at = o->block_count;
	struct cd_block **more = o->block;

	if (b->identity && join_chain(o, b))
		return 0;
	if (!(at & (at - 1)))
		more = realloc(o->block, (at ? 2 * at : 1) * sizeof(*more));
	if (!more)
		return error_set(-ENOMEM, "no memory for a block");
	o->block = more;
	while (at && more[at - 1]->number > b->number) {
		more[at] = more[at - 1];
		at--;
	}
	more[at] = b;
	o->block_count++;
	b->object = o;
	return 0;
}

static void leave_object(struct cd_block *b)
{
	struct cd_object *o = b->object;
	unsigned i = 0;
	struct cd_block **at;

	while (o->block[i]->number != b->number)
		i++;
	for (at = &o->block[i]; *at != b;)
		at = &(*at)->next;
	*at = b->next;
	b->next = NULL;
	b->object = NULL;
	if (o->block[i])
		return;
	o->block_count--;
	memmove(o->block + i, o->block + i + 1,
		(o->block_count - i) * sizeof(*o->block));
}

int cd_block_own(struct cd_block *b, struct cd_object *o)
{
	int err = o ? join_object(o, b) : 0;

	if (!err)
		note_order(b);
	return err;
}

int cd_block_make(struct cd_core *core, struct cd_node *n, struct cd_object *o,
		  uint64_t number, uint64_t identity, struct cd_block **out)
{
	unsigned index = n->lent ? n->lent->first_free : 0;
	struct cd_block *b;
	int err;

	while (n->lent && index < CD_BLOCKS_MAX && n->lent->block[index])
		index++;
	if (index == CD_BLOCKS_MAX)
		return error_set(-ENOSPC,
				 "node %s has %d blocks, which is all "
				 "that one can have",
				 n->name, CD_BLOCKS_MAX);
	err = cd_block_add(n, index, &b);
	if (err)
		return err;
	n->lent->first_free = index + 1;
	b->generation = cd_id_take(core);
	b->number = number;
	b->bytes = o->block_bytes;
	if (o->copies > 1)
		b->identity = identity ? identity : b->generation;
	(void)snprintf(b->run, sizeof(b->run), "%s", n->incarnation);
	err = cd_block_own(b, o);
	if (err) {
		n->lent->block[index] = NULL;
		n->lent->count--;
		free(b);
		return err;
	}
	n->promised_bytes += b->bytes;
	o->epoch = cd_id_take(core);
	cd_stage_block(core, b);
	*out = b;
	return 0;
}

void cd_block_release(struct cd_core *core, struct cd_block *b, bool is_staged)
{
	if (is_staged)
		b->object->epoch = cd_id_take(core);
	if (b->saving)
		cd_tasks_drop(core, NULL, b, NULL);
	forget_order(b);
	leave_object(b);
	note_order(b);
	if (is_staged)
		cd_stage_block(core, b);
	if (PLANTED(ctl_reuse_early) && core->leads)
		cd_block_free(core, b);
}

/* The row's key. */
static void key_of(const struct cd_block *b, char key[2 * CD_NAME_MAX + 2])
{
	(void)snprintf(key, 2 * CD_NAME_MAX + 2, "%s/%05u", b->node->name,
		       b->index);
}

static void drop(struct cd_block *b)
{
	struct cd_lent *lent = b->node->lent;

	forget_order(b);
	if (b->object)
		leave_object(b);
	lent->block[b->index] = NULL;
	lent->count--;
	if (b->index < lent->first_free)
		lent->first_free = b->index;
	free(b);
}

void cd_block_free(struct cd_core *core, struct cd_block *b)
{
	char key[2 * CD_NAME_MAX + 2];

	key_of(b, key);
	cd_stage(core, "block", key, NULL);
	if (b->saving)
		cd_tasks_drop(core, NULL, b, NULL);
	drop(b);
	cd_stage_part(core);
}

void cd_blocks_forget(struct cd_node *n)
{
	for (unsigned i = 0; n->lent && i < CD_BLOCKS_MAX; i++)
		if (n->lent->block[i])
			drop(n->lent->block[i]);
	free(n->lent);
	n->lent = NULL;
}

void cd_blocks_lose(struct cd_core *core, struct cd_node *n)
{
	struct cd_object *o;
	uint64_t number;
	char why[80];

	(void)snprintf(why, sizeof(why), "node %s %s", n->name,
		       n->incarnation[0] ? "was started anew" : "is forgotten");
	for (unsigned i = 0; n->lent && n->lent->count && i < CD_BLOCKS_MAX;
	     i++) {
		struct cd_block *b = n->lent->block[i];

		if (!b || strcmp(b->run, n->incarnation) == 0 ||
		    PLANTED(ctl_any_run))
			continue;
		o = b->object;
		number = b->number;
		if (o && !cd_chain_survives(b))
			cd_object_lose(core, o, why);
		cd_block_free(core, b);
		if (o)
			cd_chain_leave(core, o, number);
	}
	if (n->lent)
		n->lent->stray_count = 0;
}
