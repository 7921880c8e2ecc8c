/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that nodes lend, and the orders about them. An order is told in every
 * answer to the node's beats until it is acknowledged; the node makes each
 * generation of a place once at most, and one that it has freed, or could not
 * make, never again. So orders and acknowledgements may be lost, late and
 * doubled.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "base/plant.h"
#include "tree_priv.h"

enum {
	FLAG_SEALED = 1,
	FLAG_DRAINED = 2,
};

/* ---- places ------------------------------------------------------------- */

static struct cd_block *at_place(const struct cd_node *n, unsigned index,
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

static bool waits_for_order(const struct cd_block *b)
{
	return !b->object || !b->is_made;
}

/* Around each change of what there is to order. */
static void forget_order(struct cd_block *b)
{
	struct cd_lent *lent = b->node->lent;

	if (!waits_for_order(b))
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
	if (!waits_for_order(b))
		return;
	lent->pending++;
	lent->untold++;
	if (b->object)
		lent->making_bytes += b->bytes;
}

/* ---- objects' blocks ---------------------------------------------------- */

static int join_object(struct cd_object *o, struct cd_block *b)
{
	unsigned at = o->block_count;
	struct cd_block **more = o->block;

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

	while (o->block[i] != b)
		i++;
	o->block_count--;
	memmove(o->block + i, o->block + i + 1,
		(o->block_count - i) * sizeof(*o->block));
	b->object = NULL;
}

int cd_block_own(struct cd_block *b, struct cd_object *o)
{
	int err = o ? join_object(o, b) : 0;

	if (!err)
		note_order(b);
	return err;
}

int cd_block_make(struct cd_core *core, struct cd_node *n, struct cd_object *o,
		  uint64_t number, struct cd_block **out)
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
	char why[80];

	(void)snprintf(why, sizeof(why), "node %s %s", n->name,
		       n->incarnation[0] ? "was started anew" : "is forgotten");
	for (unsigned i = 0; n->lent && n->lent->count && i < CD_BLOCKS_MAX;
	     i++) {
		struct cd_block *b = n->lent->block[i];

		if (!b || strcmp(b->run, n->incarnation) == 0 ||
		    PLANTED(ctl_any_run))
			continue;
		if (b->object)
			cd_object_lose(core, b->object, why);
		cd_block_free(core, b);
	}
	if (n->lent)
		n->lent->stray_count = 0;
}

/* ---- what a node says --------------------------------------------------- */

struct said {
	unsigned index;
	uint64_t generation;
	uint64_t used;
	uint64_t flags;
	const char *error;
};

static bool number_at(const json_t *row, size_t i, uint64_t max, uint64_t *out)
{
	const json_t *v = json_array_get(row, i);

	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
	    (uint64_t)json_integer_value(v) > max)
		return false;
	*out = (uint64_t)json_integer_value(v);
	return true;
}

static bool parse(const json_t *row, const char *list, struct said *s)
{
	uint64_t index = 0;
	bool is_state = strcmp(list, "blocks") == 0;
	bool fits = number_at(row, 0, CD_BLOCKS_MAX - 1, &index) &&
		    number_at(row, 1, INT64_MAX, &s->generation);

	s->index = (unsigned)index;
	if (is_state)
		fits = fits && number_at(row, 2, INT64_MAX, &s->used) &&
		       number_at(row, 3, INT64_MAX, &s->flags);
	if (strcmp(list, "failed") == 0) {
		s->error = json_string_value(json_array_get(row, 2));
		fits = fits && s->error;
	}
	return fits;
}

static const char *const lists[] = {"blocks", "freed", "failed"};

int cd_blocks_check(const json_t *beat)
{
	for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
		const json_t *rows = json_object_get(beat, lists[l]), *row;
		struct said s;
		size_t i;

		if (rows && !json_is_array(rows))
			return error_set(-EINVAL, "\"%s\" is a list", lists[l]);
		if (json_array_size(rows) > CD_SAID_MAX)
			return error_set(-E2BIG, "\"%s\" has %d at most",
					 lists[l], CD_SAID_MAX);
		json_array_foreach(rows, i, row)
		{
			if (!parse(row, lists[l], &s))
				return error_set(-EINVAL,
						 "\"%s\" has lists of index, "
						 "generation and more",
						 lists[l]);
		}
	}
	return 0;
}

static void stray_add(struct cd_lent *lent, const struct said *s)
{
	for (unsigned i = 0; i < lent->stray_count; i++)
		if (lent->stray[i].generation == s->generation)
			return;
	if (lent->stray_count == CD_ORDERS_MAX)
		return; /* the node will name it again */
	lent->stray[lent->stray_count++] =
		(struct cd_stray){s->index, s->generation};
}

static void hear_state(struct cd_core *core, struct cd_node *n,
		       const struct said *s)
{
	struct cd_block *b = at_place(n, s->index, s->generation);
	struct cd_object *o;

	if (!b) {
		if (!n->lent)
			n->lent = calloc(1, sizeof(*n->lent));
		if (n->lent)
			stray_add(n->lent, s);
		return;
	}
	forget_order(b);
	b->is_made = true;
	note_order(b);
	b->used_bytes = s->used;
	b->is_sealed = s->flags & FLAG_SEALED;
	b->is_drained = s->flags & FLAG_DRAINED;
	/* The front goes, as far as it is drained; the last one stays, for its
	 * number. */
	o = b->object;
	while (o && o->kind == CD_QUEUE && o->block_count > 1 &&
	       o->block[0]->is_drained) {
		cd_block_release(core, o->block[0], true);
		cd_stage_part(core);
	}
}

static void hear_freed(struct cd_core *core, struct cd_node *n,
		       const struct said *s)
{
	struct cd_block *b = at_place(n, s->index, s->generation);

	if (!b)
		return;
	/* Nobody had asked for that. */
	if (b->object)
		cd_object_lose(core, b->object, "its node has given it up");
	cd_block_free(core, b);
}

static void hear_failed(struct cd_core *core, struct cd_node *n,
			const struct said *s)
{
	struct cd_block *b = at_place(n, s->index, s->generation);

	if (!b || !b->object || b->is_made)
		return;
	if (strcmp(s->error, "-EDQUOT") == 0)
		b->object->failed = -EDQUOT;
	else
		n->lent->full_ns = env_now_ns(core->env);
	cd_block_release(core, b, true);
	cd_stage_part(core);
}

void cd_blocks_hear(struct cd_core *core, struct cd_node *n, const json_t *beat)
{
	static void (*const hear[])(struct cd_core *, struct cd_node *,
				    const struct said *) = {
		hear_state,
		hear_freed,
		hear_failed,
	};

	for (size_t l = 0; l < ARRAY_LEN(lists); l++) {
		const json_t *rows = json_object_get(beat, lists[l]), *row;
		size_t i;

		json_array_foreach(rows, i, row)
		{
			struct said s = {0};

			if (parse(row, lists[l], &s))
				hear[l](core, n, &s);
		}
	}
	n->lends = json_object_get(beat, "blocks") != NULL;
	n->promised_bytes = cd_blocks_making(n);
}

/* ---- what it is told ---------------------------------------------------- */

uint64_t cd_blocks_making(const struct cd_node *n)
{
	return n->lent ? n->lent->making_bytes : 0;
}

bool cd_blocks_are_due(const struct cd_node *n)
{
	return n->lent && (n->lent->untold || n->lent->stray_count);
}

bool cd_blocks_fit(const struct cd_core *core, const struct cd_node *n)
{
	if (!n->lends)
		return false;
	return !n->lent || !n->lent->full_ns ||
	       env_now_ns(core->env) - n->lent->full_ns >=
		       CD_FULL_MS * 1000000ull;
}

static json_t *make_json(const struct cd_block *b)
{
	const struct cd_object *o = b->object;

	return json_pack("{s:s, s:I, s:s, s:i, s:I, s:I, s:I, s:I}", "tenant",
			 o->prefix->job->tenant, "object", cd_int(o->id),
			 "kind", cd_object_kind_name(o->kind), "index",
			 (int)b->index, "generation", cd_int(b->generation),
			 "bytes", cd_int(b->bytes), "bound", cd_int(o->bound),
			 "number", cd_int(b->number));
}

static json_t *place_json(unsigned index, uint64_t generation)
{
	return json_pack("[i, I]", (int)index, cd_int(generation));
}

static void tell(struct cd_block *b, json_t *list)
{
	(void)json_array_append_new(
		list,
		b->object ? make_json(b) : place_json(b->index, b->generation));
	b->node->lent->untold -= !b->is_told;
	b->is_told = true;
	b->round = b->node->lent->round;
}

/* Twice: what was never told first, since more may wait than one answer
 * takes. */
static void collect(struct cd_lent *lent, bool repeats, json_t *make,
		    json_t *gone)
{
	for (unsigned i = 0, seen = 0; seen < lent->count; i++) {
		struct cd_block *b = lent->block[i];
		json_t *list = b && b->object ? make : gone;

		seen += b != NULL;
		if (b && waits_for_order(b) && b->is_told == repeats &&
		    (!repeats || b->round != lent->round) &&
		    json_array_size(list) < CD_ORDERS_MAX)
			tell(b, list);
	}
}

void cd_blocks_say(struct cd_core *core, struct cd_node *n, json_t *answer)
{
	struct cd_lent *lent = n->lent;
	json_t *make = json_array(), *gone = json_array();

	(void)json_object_set_new(answer, "ticket_keys", cd_keys_json(core));
	/* Strays are told again when the node names them again. */
	while (lent && lent->stray_count) {
		const struct cd_stray *s = &lent->stray[--lent->stray_count];

		(void)json_array_append_new(
			gone, place_json(s->index, s->generation));
	}
	if (lent && lent->pending) {
		lent->round++;
		collect(lent, false, make, gone);
		collect(lent, true, make, gone);
	}
	if (json_array_size(make) || json_array_size(gone))
		(void)json_object_set_new(
			answer, "block_orders",
			json_pack("{s:O, s:O}", "make", make, "free", gone));
	json_decref(make);
	json_decref(gone);
}
