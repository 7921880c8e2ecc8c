/* SPDX-License-Identifier: Apache-2.0 */
/* Where a slot is, and how a request gets there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "el_ekv_priv.h"

/* ---- what blocks have ---------------------------------------------------- */

int el_kv_look(struct aq_ekv *kv, uint64_t number, struct el_look *out,
	       uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	struct block_op op = {.opcode = BLOCK_KV_LOOK};
	const struct el_block *b = el_find(o, number);
	struct block_kv_look_wire w;
	struct block_result r;
	int err = el_call_once(o, number, &op, 1, &r, kv->acked, deadline_ns);

	/* The ticket may have ended. */
	if (!err && r.status == BLOCK_DENIED)
		err = el_call_as(o, number, &op, 1, &r, kv->acked, deadline_ns);
	if (err == -ENODEV || (!err && r.status == BLOCK_STALE))
		return -ESTALE;
	if (err)
		return err;
	if (r.status == BLOCK_BUSY)
		return -EAGAIN;
	if (r.status != BLOCK_OK)
		return el_error(o, r.status);
	if (r.length != sizeof(w) || !r.data)
		return error_set(-EPROTO, "a node answered something else");
	memcpy(&w, r.data, sizeof(w));
	b = el_find(o, number);
	*out = (struct el_look){
		.number = number,
		.generation = b ? b->generation : 0,
		.lo = be32_get(w.lo),
		.hi = be32_get(w.hi),
		.used = be64_get(w.used),
		.room = be64_get(w.room),
		.items = be64_get(w.items),
		.decided = be64_get(w.decided),
		.from = {be64_get(w.from.number), be64_get(w.from.generation),
			 be32_get(w.from.token)},
		.to = {be64_get(w.to.number), be64_get(w.to.generation),
		       be32_get(w.to.token)},
	};
	return 0;
}

int el_kv_look_all(struct aq_ekv *kv, uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	struct el_look *look;
	int err = el_refresh(o, deadline_ns);

	kv->look_count = 0;
	if (err)
		return err;
	look = realloc(kv->look, (o->block_count + 1) * sizeof(*look));
	if (!look)
		return error_set(-ENOMEM, "no memory for a map");
	kv->look = look;
	for (unsigned i = 0; i < o->block_count; i++) {
		err = el_kv_look(kv, o->block[i].number, &look[kv->look_count],
				 deadline_ns);
		if (!err)
			kv->look_count++;
		else if (err != -EAGAIN && err != -ESTALE)
			return err;
	}
	return 0;
}

const struct el_look *el_kv_find_slot(const struct aq_ekv *kv, uint32_t slot)
{
	for (unsigned i = 0; i < kv->look_count; i++)
		if (slot >= kv->look[i].lo && slot < kv->look[i].hi)
			return &kv->look[i];
	return NULL;
}

static bool adds(enum block_opcode opcode)
{
	return opcode == BLOCK_KV_PUT || opcode == BLOCK_KV_ADD;
}

int el_kv_route(struct aq_ekv *kv, const struct el_kv_ask *ask,
		uint64_t *number, unsigned *tries, uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	const struct el_look *look;
	int err = 0;

	while (!(look = el_kv_find_slot(kv, ask->slot))) {
		err = el_kv_look_all(kv, deadline_ns);
		if (!err && !o->block_count) {
			if (!adds(ask->opcode))
				return -ENODATA;
			err = el_grow(o, UINT64_MAX, 1, deadline_ns);
		}
		if (err)
			return err;
		if (!el_kv_find_slot(kv, ask->slot) &&
		    !el_pause(tries, deadline_ns))
			return error_set(-ETIMEDOUT,
					 "no block of %s has the key", o->path);
	}
	*number = look->number;
	return 0;
}

/* ---- one try ------------------------------------------------------------- */

/* Memory for what does not go inside messages: the staging memory, or more. */
struct cargo {
	uint8_t *buf;
	uint32_t key;
	struct ibv_mr *mr; /* NULL: it is staging memory */
};

/* What is outside of the message, and what comes back, have the same place. */
static int cargo_make(struct el_object *o, size_t out, size_t in,
		      struct cargo *c)
{
	size_t bytes = u64_max(out, in);

	*c = (struct cargo){.buf = el_staging(o), .key = o->mr->rkey};
	if (out && !in && bytes <= EL_STAGING_BYTES)
		c->buf = el_stage(o, &c->key);
	if (bytes <= EL_STAGING_BYTES)
		return 0;
	c->buf = malloc(bytes);
	c->mr = c->buf ? el_register(o, c->buf, bytes) : NULL;
	if (c->mr) {
		c->key = c->mr->rkey;
		return 0;
	}
	free(c->buf);
	c->buf = NULL;
	return error_set(-ENOMEM, "no memory for a value of %zu bytes", bytes);
}

static void cargo_free(struct el_object *o, struct cargo *c)
{
	if (!c->mr)
		return;
	el_unregister(o, c->mr);
	free(c->buf);
}

size_t el_kv_bytes(const struct el_kv_ask *ask)
{
	return sizeof(struct block_kv_wire) + ask->key_bytes + ask->value_bytes;
}

void el_kv_fill(const struct el_kv_ask *ask, uint8_t *out)
{
	struct block_kv_wire head = {
		.version = be64_put(ask->version),
		.key_bytes = be32_put((uint32_t)ask->key_bytes),
		.value_bytes = be32_put((uint32_t)ask->value_bytes),
	};

	memcpy(out, &head, sizeof(head));
	out += sizeof(head);
	if (ask->key_bytes)
		memcpy(out, ask->key, ask->key_bytes);
	if (ask->value_bytes)
		memcpy(out + ask->key_bytes, ask->value, ask->value_bytes);
}

static int try_once(struct aq_ekv *kv, uint64_t number,
		    const struct el_kv_ask *ask, size_t room,
		    struct block_result *r, uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	uint8_t inside[BLOCK_INSIDE_MAX];
	size_t bytes = el_kv_bytes(ask);
	bool is_inside = bytes <= BLOCK_INSIDE_MAX;
	struct block_op op = {
		.opcode = ask->opcode,
		.sequence = ask->sequence,
		.arg = ask->slot | ask->how << BLOCK_KV_HOW_SHIFT,
		.length = (uint32_t)bytes,
		.room = room > BLOCK_INSIDE_MAX ? (uint32_t)room : 0,
	};
	struct cargo c = {0};
	int err = el_warm_up(o, number, deadline_ns);

	if (!err)
		err = cargo_make(o, is_inside ? 0 : bytes, op.room, &c);
	if (err)
		return err;
	op.address = (uintptr_t)c.buf;
	op.key = c.key;
	op.value = is_inside ? inside : NULL;
	el_kv_fill(ask, is_inside ? inside : c.buf);
	err = el_call_as(o, number, &op, 1, r, kv->acked, deadline_ns);
	if (!err && r->status == BLOCK_OK && ask->out && r->length) {
		/* What came inside may be more than the caller has room for,
		 * who says so. */
		if (!r->data && r->length > op.room)
			err = error_set(-EPROTO, "a node sent too much");
		else if (r->length <= ask->room_bytes)
			memcpy(ask->out, r->data ? r->data : c.buf, r->length);
	}
	cargo_free(o, &c);
	return err;
}

/* What a refusal asks for; 0: try again. */
static int refused(struct aq_ekv *kv, uint64_t number, enum block_status status,
		   unsigned tries, uint64_t deadline_ns)
{
	switch ((int)status) {
	case BLOCK_MOVED:
	case BLOCK_STALE:
		kv->look_count = 0;
		return 0;
	case BLOCK_FROZEN:
		return tries < EL_EKV_HELP
			       ? 0
			       : el_kv_help(kv, number, deadline_ns);
	case BLOCK_NO_ROOM:
		return el_kv_split(kv, number, deadline_ns);
	default: /* BLOCK_LATER */
		return 0;
	}
}

bool el_kv_is_answer(enum block_status status)
{
	return status != BLOCK_MOVED && status != BLOCK_STALE &&
	       status != BLOCK_FROZEN && status != BLOCK_NO_ROOM &&
	       status != BLOCK_LATER;
}

/* A block that says so, and is in the newest map: the change is too old. */
static int check_stale(struct aq_ekv *kv, uint64_t number, uint64_t generation,
		       uint64_t deadline_ns)
{
	int err = el_refresh(&kv->object, deadline_ns);
	const struct el_block *b = el_find(&kv->object, number);

	if (!err && b && b->generation == generation)
		err = el_error(&kv->object, BLOCK_STALE);
	return err;
}

int el_kv_ask(struct aq_ekv *kv, struct el_kv_ask *ask, struct block_result *r,
	      uint64_t deadline_ns)
{
	struct el_object *o = &kv->object;
	size_t room = u64_min(ask->room_bytes, EL_STAGING_BYTES);
	unsigned tries = 0;
	uint64_t number = 0, generation;

	for (;;) {
		int err = el_kv_route(kv, ask, &number, &tries, deadline_ns);

		*r = (struct block_result){.status = BLOCK_NO_KEY};
		if (err)
			return err == -ENODATA ? 0 : err;
		generation = el_kv_find_slot(kv, ask->slot)->generation;
		err = try_once(kv, number, ask, room, r, deadline_ns);
		if (err == -ENODEV) {
			kv->look_count = 0;
		} else if (err) {
			return err;
		} else if (r->status == BLOCK_TOO_LONG && ask->out &&
			   r->length > room && r->length <= ask->room_bytes) {
			room = r->length; /* more than staging memory */
		} else if (el_kv_is_answer(r->status)) {
			return 0;
		} else {
			err = r->status == BLOCK_STALE
				      ? check_stale(kv, number, generation,
						    deadline_ns)
				      : 0;
			if (!err)
				err = refused(kv, number, r->status, tries,
					      deadline_ns);
			if (err)
				return err;
		}
		if (!el_pause(&tries, deadline_ns))
			return error_set(-ETIMEDOUT,
					 "%s did not answer in time: %s",
					 o->path, block_status_text(r->status));
	}
}
