/* SPDX-License-Identifier: Apache-2.0 */
/* Records operations; gives byte strings and keys their numbers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lin_priv.h"

enum {
	FIRST_ROOM = 64,
};

/* Makes room for one more; amortized. */
static int grow(void **array, uint64_t *room, uint64_t needed, size_t each)
{
	uint64_t want = *room ? *room : FIRST_ROOM;
	void *more;

	if (needed <= *room)
		return 0;
	while (want < needed)
		want *= 2;
	more = realloc(*array, want * each);
	if (!more)
		return -ENOMEM;
	*array = more;
	*room = want;
	return 0;
}

int lin_history_create(struct lin_history **out)
{
	struct lin_history *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	*out = h;
	return 0;
}

void lin_history_destroy(struct lin_history *h)
{
	if (!h)
		return;
	free(h->op);
	free(h->key);
	free(h->key_table.slot);
	free(h->text);
	free(h->text_table.slot);
	free(h->bytes);
	free(h);
}

static void table_clear(struct lin_table *t)
{
	if (t->slot)
		memset(t->slot, 0, t->slots * sizeof(*t->slot));
	t->count = 0;
}

void lin_history_clear(struct lin_history *h)
{
	h->ops = 0;
	h->events = 0;
	h->bytes_used = 0;
	table_clear(&h->key_table);
	table_clear(&h->text_table);
}

void lin_history_set_initial(struct lin_history *h, struct lin_value v)
{
	h->initial = v;
}

uint64_t lin_history_op_count(const struct lin_history *h)
{
	return h->ops;
}

/* ---- tables ------------------------------------------------------------- */

static uint64_t hash_bytes(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint64_t v = UINT64_C(0xcbf29ce484222325); /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		v = (v ^ p[i]) * UINT64_C(0x100000001b3);
	return v ^ v >> 29;
}

static uint64_t hash_of(const struct lin_history *h, const struct lin_table *t,
			uint64_t index)
{
	if (t == &h->key_table)
		return hash_bytes(&h->key[index], sizeof(h->key[index]));
	return hash_bytes(h->bytes + h->text[index].offset,
			  h->text[index].len_bytes);
}

/* Keeps the table at most half full. */
static int table_grow(const struct lin_history *h, struct lin_table *t)
{
	uint64_t slots = t->slots ? 2 * t->slots : 2 * FIRST_ROOM;
	uint32_t *slot;

	if (2 * (t->count + 1) <= t->slots)
		return 0;
	slot = calloc(slots, sizeof(*slot));
	if (!slot)
		return -ENOMEM;
	for (uint64_t i = 0; i < t->count; i++) {
		uint64_t at = hash_of(h, t, i) & (slots - 1);

		while (slot[at])
			at = (at + 1) & (slots - 1);
		slot[at] = (uint32_t)(i + 1);
	}
	free(t->slot);
	t->slot = slot;
	t->slots = slots;
	return 0;
}

static bool text_is(const struct lin_history *h, uint64_t index,
		    const void *data, size_t len)
{
	const struct lin_span *s = &h->text[index];

	return s->len_bytes == len &&
	       (!len || !memcmp(h->bytes + s->offset, data, len));
}

int lin_bytes(struct lin_history *h, const void *data, size_t len_bytes,
	      struct lin_value *out)
{
	struct lin_table *t = &h->text_table;
	uint64_t at;
	int err = table_grow(h, t);

	if (!err)
		err = grow((void **)&h->text, &h->texts_room, t->count + 1,
			   sizeof(*h->text));
	if (!err)
		err = grow((void **)&h->bytes, &h->bytes_room,
			   h->bytes_used + len_bytes + 1, 1);
	if (err)
		return err;
	at = hash_bytes(data, len_bytes) & (t->slots - 1);
	for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
		if (text_is(h, t->slot[at] - 1, data, len_bytes))
			goto found;
	}
	if (t->count >= LIN_OPS_MAX)
		return -ENOSPC;
	h->text[t->count] = (struct lin_span){h->bytes_used, len_bytes};
	if (len_bytes)
		memcpy(h->bytes + h->bytes_used, data, len_bytes);
	h->bytes_used += len_bytes;
	t->slot[at] = (uint32_t)++t->count;
found:
	*out = (struct lin_value){t->slot[at] - 1, LIN_BYTES, 0};
	return 0;
}

static int key_find(struct lin_history *h, struct lin_value key, uint32_t *out)
{
	struct lin_table *t = &h->key_table;
	uint64_t at;
	int err = table_grow(h, t);

	if (!err)
		err = grow((void **)&h->key, &h->keys_room, t->count + 1,
			   sizeof(*h->key));
	if (err)
		return err;
	at = hash_bytes(&key, sizeof(key)) & (t->slots - 1);
	for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
		if (lin_value_equal(h->key[t->slot[at] - 1], key))
			goto found;
	}
	h->key[t->count] = key;
	t->slot[at] = (uint32_t)++t->count;
found:
	*out = t->slot[at] - 1;
	return 0;
}

/* ---- operations --------------------------------------------------------- */

int64_t lin_invoke(struct lin_history *h, uint32_t process,
		   struct lin_value key, enum lin_call call, struct lin_value a,
		   struct lin_value b, uint64_t time_ns)
{
	uint32_t index = 0;
	int err;

	if (h->ops >= LIN_OPS_MAX)
		return -ENOSPC;
	if (call >= LIN_CALLS || (call == LIN_FAA && a.kind != LIN_INT))
		return -EINVAL;
	err = key_find(h, key, &index);
	if (!err)
		err = grow((void **)&h->op, &h->ops_room, h->ops + 1,
			   sizeof(*h->op));
	if (err)
		return err;
	h->op[h->ops] = (struct lin_op){
		.a = a,
		.b = b,
		.invoke_pos = h->events++,
		.return_pos = LIN_NEVER,
		.invoke_ns = time_ns,
		.key = index,
		.process = process,
		.call = (uint8_t)call,
	};
	return (int64_t)h->ops++;
}

void lin_return(struct lin_history *h, int64_t op, enum lin_type type,
		enum lin_said said, struct lin_value got, uint64_t time_ns)
{
	struct lin_op *o;

	ASSERT(op >= 0 && (uint64_t)op < h->ops);
	o = &h->op[op];
	ASSERT(o->type == LIN_OPEN && type != LIN_OPEN);
	o->type = (uint8_t)type;
	o->return_ns = time_ns;
	if (type == LIN_OK) {
		o->said = (uint8_t)said;
		o->got = got;
		o->return_pos = h->events++;
	}
}
