/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks in beats: what nodes say of them, and the orders. An order is told in
 * every answer to the node's beats until it is acknowledged; the node makes
 * each generation of a place once at most, and one that it has freed, or could
 * not make, never again. So orders and acknowledgements may be lost, late and
 * doubled.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "vault_priv.h"

enum {
	FLAG_SEALED = 1,
	FLAG_DRAINED = 2,
};

/* ---- what a node says --------------------------------------------------- */

struct said {
	unsigned index;
	uint64_t generation;
	uint64_t used;
	uint64_t flags;
	const char *error, *why;
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
		s->why = json_string_value(json_array_get(row, 3));
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

/* With all its copies. */
static void release_all(struct cd_core *core, struct cd_block *b)
{
	while (b) {
		struct cd_block *next = b->next;

		cd_block_release(core, b, true);
		b = next;
	}
}

/* What the head of a chain says counts: it is the last to know. */
static bool is_first(const struct cd_block *b)
{
	for (unsigned i = 0; i < b->object->block_count; i++)
		if (b->object->block[i] == b)
			return true;
	return false;
}

static void hear_state(struct cd_core *core, struct cd_node *n,
		       const struct said *s)
{
	struct cd_block *b = cd_block_at(n, s->index, s->generation);
	struct cd_object *o;

	if (!b) {
		if (!n->lent)
			n->lent = calloc(1, sizeof(*n->lent));
		if (n->lent)
			stray_add(n->lent, s);
		return;
	}
	cd_block_is_there(b);
	b->used_bytes = s->used;
	b->is_sealed = s->flags & FLAG_SEALED;
	b->is_drained = s->flags & FLAG_DRAINED;
	/* The front goes, as far as it is drained; the last one stays, for its
	 * number. */
	o = b->object;
	while (o && o->kind == CD_QUEUE && o->state == CD_READY &&
	       o->block_count > 1 && o->block[0]->is_drained) {
		release_all(core, o->block[0]);
		cd_stage_part(core);
	}
	/* One of a store has given all its slots to another. */
	if (o && o->kind == CD_EKV && b->is_drained && o->block_count > 1 &&
	    is_first(b)) {
		release_all(core, b);
		cd_stage_part(core);
	}
}

static void hear_freed(struct cd_core *core, struct cd_node *n,
		       const struct said *s)
{
	struct cd_block *b = cd_block_at(n, s->index, s->generation);
	struct cd_object *o;
	uint64_t number;

	if (!b)
		return;
	/* Nobody had asked for that. */
	o = b->object;
	number = b->number;
	if (o && !cd_chain_survives(b))
		cd_object_lose(core, o, "its node has given it up");
	cd_block_free(core, b);
	if (o)
		cd_chain_leave(core, o, number);
}

static void hear_failed(struct cd_core *core, struct cd_node *n,
			const struct said *s)
{
	struct cd_block *b = cd_block_at(n, s->index, s->generation);
	struct cd_object *o;
	uint64_t number;

	if (!b || !b->object || b->is_made)
		return;
	if (b->object->state == CD_LOADING) {
		cd_load_fail(core, b->object, s->why ? s->why : s->error);
		return;
	}
	if (strcmp(s->error, "-EDQUOT") == 0)
		b->object->failed = -EDQUOT;
	else
		n->lent->full_ns = env_now_ns(core->env);
	o = b->object;
	number = b->number;
	cd_block_release(core, b, true);
	cd_chain_leave(core, o, number);
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
	return n->lent && (n->lent->untold || n->lent->stray_count ||
			   n->lent->has_chain_news);
}

bool cd_blocks_fit(const struct cd_core *core, const struct cd_node *n)
{
	if (!n->lends)
		return false;
	return !n->lent || !n->lent->full_ns ||
	       env_now_ns(core->env) - n->lent->full_ns >=
		       CD_FULL_MS * 1000000ull;
}

static json_t *make_json(const struct cd_core *core, const struct cd_block *b)
{
	const struct cd_object *o = b->object;
	json_t *load = cd_load_json(core, b);
	json_t *row = json_pack(
		"{s:s, s:I, s:s, s:i, s:I, s:I, s:I, s:I}", "tenant",
		o->prefix->job->tenant, "object", cd_int(o->id), "kind",
		cd_object_kind_name(o->kind), "index", (int)b->index,
		"generation", cd_int(b->generation), "bytes", cd_int(b->bytes),
		"bound", cd_int(o->bound), "number", cd_int(b->number));

	if (load)
		(void)json_object_set_new(row, "load", load);
	if (b->identity) {
		(void)json_object_set_new(row, "identity",
					  json_integer(cd_int(b->identity)));
		(void)json_object_set_new(row, "joins",
					  json_boolean(!b->is_full));
	}
	return row;
}

static json_t *place_json(unsigned index, uint64_t generation)
{
	return json_pack("[i, I]", (int)index, cd_int(generation));
}

static void tell(const struct cd_core *core, struct cd_block *b, json_t *list)
{
	(void)json_array_append_new(
		list, b->object ? make_json(core, b)
				: place_json(b->index, b->generation));
	b->node->lent->untold -= !b->is_told;
	b->is_told = true;
	b->round = b->node->lent->round;
}

/* Twice: what was never told first, since more may wait than one answer
 * takes. */
static void collect(const struct cd_core *core, struct cd_lent *lent,
		    bool repeats, json_t *make, json_t *gone)
{
	for (unsigned i = 0, seen = 0; seen < lent->count; i++) {
		struct cd_block *b = lent->block[i];
		json_t *list = b && b->object ? make : gone;

		seen += b != NULL;
		if (b && cd_block_waits(b) && b->is_told == repeats &&
		    (!repeats || b->round != lent->round) &&
		    json_array_size(list) < CD_ORDERS_MAX)
			tell(core, b, list);
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
		collect(core, lent, false, make, gone);
		collect(core, lent, true, make, gone);
	}
	if (json_array_size(make) || json_array_size(gone))
		(void)json_object_set_new(
			answer, "block_orders",
			json_pack("{s:O, s:O}", "make", make, "free", gone));
	json_decref(make);
	json_decref(gone);
}
