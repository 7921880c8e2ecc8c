/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of one client, and its moves of slots: BIND, START, batches from
 * source to target, UNBIND, as block/blk_ekv.h has them. */
#include "efig_ekv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	KEY_BYTES = 16,
	HEAD = sizeof(struct block_kv_batch_wire),
	TRIES = 64,
	STEPS_MAX = 1 << 20, /* of one move */
};

static struct blk_block *block_of(struct efig_ekv *kv, unsigned at)
{
	return efig_rack_block(kv->rack, &kv->place[at]);
}

/* Executes one operation; the value is copied to its place, as far as there is
 * one here. */
static struct blk_answer ask(struct efig_ekv *kv, struct blk_block *b,
			     struct blk_request *q, const void *value,
			     uint32_t given)
{
	static const uint8_t session[BLOCK_SESSION_BYTES] = {2};
	struct blk_answer a = {.status = BLOCK_STALE};
	uint8_t *place;

	q->session = session;
	q->inside_room = BLOCK_REPLY_MAX - 100;
	q->buffer_bytes = UINT32_MAX;
	q->acked = kv->sequence ? kv->sequence - 1 : 0;
	place = blk_begin(b, q, &a);
	if (place) {
		memcpy(place, value, given);
		blk_finish(b, q, &a);
	}
	return a;
}

/* ---- keys ---------------------------------------------------------------- */

static void key_text(uint64_t key, char out[KEY_BYTES + 1])
{
	(void)snprintf(out, KEY_BYTES + 1, "%016llx", (unsigned long long)key);
}

uint32_t efig_ekv_slot(uint64_t key)
{
	char text[KEY_BYTES + 1];

	key_text(key, text);
	return block_kv_slot(block_kv_hash(text, KEY_BYTES));
}

static int find(struct efig_ekv *kv, uint32_t slot)
{
	for (unsigned i = 0; i < kv->count; i++) {
		const struct blk_block *b = block_of(kv, i);

		if (b && slot >= b->ekv.lo && slot < b->ekv.hi)
			return (int)i;
	}
	return -1;
}

static struct blk_answer key_op(struct efig_ekv *kv, unsigned at,
				enum block_opcode opcode, uint64_t key,
				uint32_t value_bytes)
{
	uint8_t head[sizeof(struct block_kv_wire) + KEY_BYTES + 1];
	struct block_kv_wire w = {
		.version = be64_put(BLOCK_KV_ANY),
		.key_bytes = be32_put(KEY_BYTES),
		.value_bytes = be32_put(value_bytes),
	};
	struct blk_request q = {
		.opcode = opcode,
		.arg = efig_ekv_slot(key),
		.length = (uint32_t)sizeof(w) + KEY_BYTES + value_bytes,
		.sequence = opcode == BLOCK_KV_GET ? 0 : ++kv->sequence,
	};

	memcpy(head, &w, sizeof(w));
	key_text(key, (char *)head + sizeof(w));
	if (!value_bytes)
		q.value = head;
	return ask(kv, block_of(kv, at), &q, head, sizeof(w) + KEY_BYTES);
}

bool efig_ekv_get(struct efig_ekv *kv, uint64_t key, unsigned *at, bool *waits)
{
	int i = find(kv, efig_ekv_slot(key));
	struct blk_answer a;

	if (i < 0)
		return false;
	a = key_op(kv, (unsigned)i, BLOCK_KV_GET, key, 0);
	*at = (unsigned)i;
	*waits = a.status == BLOCK_LATER;
	return a.status == BLOCK_OK || *waits;
}

/* ---- moves --------------------------------------------------------------- */

struct move {
	struct blk_block *from, *to;
	uint64_t from_number, to_number;
	uint32_t token;
	bool is_bottom, is_all;
};

static struct blk_answer tell(struct efig_ekv *kv, struct blk_block *b,
			      enum block_opcode opcode, uint64_t arg,
			      const void *value, uint32_t length)
{
	struct blk_request q = {.opcode = opcode, .arg = arg, .length = length};
	struct blk_answer a;

	if (length && length <= BLOCK_INSIDE_MAX)
		q.value = value;
	a = ask(kv, b, &q, value, length);
	kv->moved.messages++;
	kv->moved.bytes += length + a.length;
	if (kv->message)
		kv->message(kv->ctx, length + a.length);
	return a;
}

static struct blk_answer tell_end(struct efig_ekv *kv, struct move *m,
				  bool is_source, enum block_opcode opcode,
				  uint64_t arg)
{
	const struct blk_block *other = is_source ? m->to : m->from;
	struct block_kv_end_wire w = {
		.number = be64_put(is_source ? m->to_number : m->from_number),
		.generation = be64_put(other->generation),
		.token = be32_put(m->token),
		.is_bottom = be16_put(m->is_bottom),
		.is_all = be16_put(m->is_all),
	};

	return tell(kv, is_source ? m->from : m->to, opcode, arg, &w,
		    sizeof(w));
}

/* What the source gave becomes a batch for the target. */
static bool carry(struct efig_ekv *kv, const struct blk_answer *a,
		  uint32_t part, struct block_kv_batch_wire *head,
		  uint32_t *bytes)
{
	uint32_t need = a->length + HEAD;

	if (need > kv->carried_room) {
		uint8_t *more = realloc(kv->carried, need);

		if (!more)
			return false;
		kv->carried = more;
		kv->carried_room = need;
	}
	if (a->value == BLOCK_KV_WHOLE) {
		memcpy(kv->carried, a->data, a->length);
		memcpy(head, a->data, HEAD);
		*bytes = a->length;
		return true;
	}
	memcpy(kv->carried + HEAD, a->data, a->length);
	head->first = be32_put(part);
	head->answers = be32_put(0);
	head->records = be32_put(1);
	memcpy(kv->carried, head, HEAD);
	*bytes = need;
	return true;
}

/* One batch; *more says whether there is another one. */
static bool move_batch(struct efig_ekv *kv, struct move *m, uint64_t *batch,
		       bool *more)
{
	struct block_kv_batch_wire head = {0};
	uint32_t part = 0, bytes;

	for (unsigned step = 0; step < STEPS_MAX; step++) {
		struct blk_answer a =
			tell_end(kv, m, true, BLOCK_KV_EXPORT, part);

		if (a.status != BLOCK_OK || !a.data ||
		    !carry(kv, &a, part, &head, &bytes))
			return false;
		*batch = be64_get(head.number) & (BLOCK_KV_HAS - 1);
		a = tell(kv, m->to, BLOCK_KV_IMPORT,
			 (uint64_t)m->token << 32 | *batch, kv->carried, bytes);
		if (a.status != BLOCK_OK)
			return false;
		if (a.value != BLOCK_KV_DONE) {
			part = (uint32_t)a.value;
			continue;
		}
		kv->moved.batches++;
		a = tell_end(kv, m, true, BLOCK_KV_SETTLE,
			     *batch | BLOCK_KV_HAS);
		*more = a.value != 0;
		return a.status == BLOCK_OK;
	}
	return false;
}

static bool move_slots(struct efig_ekv *kv, struct move *m)
{
	uint64_t batch = 0;
	bool more = true;
	struct blk_answer a = tell_end(kv, m, false, BLOCK_KV_BIND, 0);

	m->token = (uint32_t)a.value;
	if (a.status != BLOCK_OK ||
	    tell_end(kv, m, true, BLOCK_KV_START, (uint64_t)m->token << 32)
			    .status != BLOCK_OK)
		return false;
	while (more)
		if (!move_batch(kv, m, &batch, &more))
			return false;
	kv->moved.moves++;
	return tell(kv, m->to, BLOCK_KV_UNBIND,
		    (uint64_t)m->token << 32 | batch, NULL, 0)
		       .status == BLOCK_OK;
}

bool efig_ekv_split(struct efig_ekv *kv, unsigned at)
{
	uint64_t last = 0;
	unsigned more;
	struct move m;

	for (unsigned i = 0; i < kv->count; i++)
		last = u64_max(last, kv->place[i].number);
	if (kv->count == EFIG_EKV_BLOCKS ||
	    efig_rack_grow(kv->rack, kv->tenant, kv->path, (int64_t)last,
			   &kv->place[kv->count], 1, &more))
		return false;
	kv->count++;
	m = (struct move){.from = block_of(kv, at),
			  .to = block_of(kv, kv->count - 1),
			  .from_number = kv->place[at].number,
			  .to_number = kv->place[kv->count - 1].number};
	return move_slots(kv, &m);
}

/* All to a neighbour that has room for both, as the client chooses it. */
static void merge(struct efig_ekv *kv, unsigned at)
{
	struct blk_block *from = block_of(kv, at);

	for (unsigned i = 0; i < kv->count; i++) {
		struct blk_block *to = block_of(kv, i);
		struct move m = {.from = from,
				 .to = to,
				 .from_number = kv->place[at].number,
				 .to_number = kv->place[i].number,
				 .is_all = true};
		struct blk_request seal = {.opcode = BLOCK_SEAL};

		if (i == at || to->ekv.lo == to->ekv.hi ||
		    (to->ekv.hi != from->ekv.lo &&
		     to->ekv.lo != from->ekv.hi) ||
		    to->ekv.live + from->ekv.live > to->ekv.room / 2)
			continue;
		m.is_bottom = to->ekv.hi == from->ekv.lo;
		if (!move_slots(kv, &m))
			return;
		(void)ask(kv, from, &seal, NULL, 0);
		efig_rack_drained(kv->rack, &kv->place[at]);
		kv->place[at] = kv->place[--kv->count];
		return;
	}
}

/* ---- changes ------------------------------------------------------------- */

bool efig_ekv_put(struct efig_ekv *kv, uint64_t key, uint32_t value_bytes)
{
	uint32_t slot = efig_ekv_slot(key);

	for (unsigned i = 0; i < TRIES; i++) {
		int at = find(kv, slot);
		struct blk_answer a;

		if (at < 0)
			return false;
		a = key_op(kv, (unsigned)at, BLOCK_KV_PUT, key, value_bytes);
		if (a.status == BLOCK_OK) {
			if (a.length >= kv->high)
				(void)efig_ekv_split(kv, (unsigned)at);
			return true;
		}
		if (!efig_ekv_split(kv, (unsigned)at))
			return false;
	}
	return false;
}

bool efig_ekv_delete(struct efig_ekv *kv, uint64_t key)
{
	int at = find(kv, efig_ekv_slot(key));
	struct blk_answer a;

	if (at < 0)
		return false;
	a = key_op(kv, (unsigned)at, BLOCK_KV_DELETE, key, 0);
	if (a.status == BLOCK_OK && a.length < kv->low && kv->count > 1)
		merge(kv, (unsigned)at);
	return a.status == BLOCK_OK;
}

uint64_t efig_ekv_used(struct efig_ekv *kv)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < kv->count; i++)
		sum += block_of(kv, i)->ekv.live;
	return sum;
}

int efig_ekv_open(struct efig_ekv *kv, uint64_t block_bytes)
{
	char full[80];

	(void)snprintf(full, sizeof(full), "/v1/ns%s", kv->path);
	if (efig_rack_ask(kv->rack, kv->tenant, CTL_POST, full,
			  json_pack("{s:s, s:I}", "kind", "ekv", "block_bytes",
				    (json_int_t)block_bytes),
			  NULL) != 201)
		return -EPROTO;
	return efig_rack_grow(kv->rack, kv->tenant, kv->path, -1, kv->place, 1,
			      &kv->count);
}

void efig_ekv_close(struct efig_ekv *kv)
{
	free(kv->carried);
	kv->carried = NULL;
}
