/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any requests, in any order, to three blocks of a key-value store. Each is
 * answered, and the heap stays what it should be: records one behind the other,
 * live ones in the lists, and counted.
 */
#include <stdlib.h>
#include <string.h>

#include "block/blk.h"
#include "fuzz.h"

enum {
	BLOCKS = 3,
	BYTES = 4096,
	EACH = 20, /* bytes of input that say what to do, before the value */
};

static void check(const struct blk_block *b)
{
	const struct blk_ekv *e = &b->ekv;
	uint64_t live = 0, items = 0, listed = 0;

	ASSERT(e->tail <= e->room && e->lo <= e->hi);
	for (uint64_t at = 0; at < e->tail;) {
		const struct blk_record *r = (const void *)(blk_data(b) + at);

		ASSERT(r->size >= BLK_RECORD_BYTES && r->size % 8 == 0 &&
		       r->size <= e->tail - at);
		if (r->slot < BLOCK_KV_SLOTS) {
			live += r->size;
			items++;
		}
		at += r->size;
	}
	ASSERT(live == e->live && items == e->items);
	for (uint32_t s = 0; s < BLOCK_KV_SLOTS; s++)
		for (const struct blk_record *r = blk_record_at(b, e->slot[s]);
		     r; r = blk_record_at(b, r->slot_next)) {
			ASSERT(r->slot == s);
			listed++;
		}
	ASSERT(listed == items);
}

/* Inputs begin with what a correct client sends more often than not. */
static void make_sound(struct blk_request *r, uint8_t *value, uint8_t how)
{
	struct block_kv_wire head;
	uint32_t key_bytes;

	if (how & 1 || r->length < sizeof(head) + 2)
		return;
	memcpy(&head, value, sizeof(head));
	key_bytes = 1 + how / 2 % 8;
	if (key_bytes > r->length - sizeof(head))
		return;
	head.key_bytes = be32_put(key_bytes);
	head.value_bytes =
		be32_put(r->length - (uint32_t)sizeof(head) - key_bytes);
	if (how & 16)
		head.version = be64_put(BLOCK_KV_ANY);
	memcpy(value, &head, sizeof(head));
	r->arg = (r->arg & ~(uint64_t)(BLOCK_KV_SLOTS - 1)) |
		 block_kv_slot(block_kv_hash(value + sizeof(head), key_bytes));
}

/* What one block gives another one takes, whole or damaged. */
static void carry(struct blk_block *blocks, const uint8_t *in)
{
	static uint8_t session[BLOCK_SESSION_BYTES], value[BYTES];
	struct blk_block *from = &blocks[in[0] % BLOCKS];
	struct blk_block *to = &blocks[in[2] % BLOCKS];
	const struct block_kv_end_wire end = {
		.generation = be64_put(to->generation),
		.token = be32_put(in[8] % 4),
	};
	struct blk_request r = {
		.session = session,
		.opcode = BLOCK_KV_EXPORT,
		.arg = in[9] % 4,
		.length = sizeof(end),
		.value = (const uint8_t *)&end,
		.inside_room = 4u * in[4] + 200,
	};
	struct blk_answer a;

	if (blk_begin(from, &r, &a) || a.status != BLOCK_OK || !a.data)
		return;
	memcpy(value, a.data, a.length);
	if (in[10] & 1)
		value[(in[11] + 256u * in[12]) % a.length] = in[13];
	r.opcode = BLOCK_KV_IMPORT;
	r.arg = (uint64_t)(in[8] % 4) << 32 | in[14] % 4;
	r.length = a.length;
	r.value = value;
	ASSERT(!blk_begin(to, &r, &a));
}

static void step(struct blk_block *blocks, const uint8_t *in, size_t len)
{
	static uint8_t session[BLOCK_SESSION_BYTES], value[BYTES];
	struct blk_block *b = &blocks[in[0] % BLOCKS];
	struct blk_request r = {
		.session = session,
		.opcode = (enum block_opcode)(in[1] % 32 % BLOCK_OPCODES),
		.sequence = in[2],
		.acked = in[3],
		.value = value,
		.inside_room = 4u * in[4] + 200,
		.buffer_bytes = 16u * in[5],
	};
	struct blk_answer a;
	uint8_t *place;

	session[0] = in[6] % 24;
	memcpy(&r.arg, in + 8, sizeof(r.arg));
	if (in[7] & 32) /* tokens and batches are small numbers */
		r.arg = (uint64_t)(in[8] % 4) << 32 | in[9] % 4 |
			(in[10] & 1 ? BLOCK_KV_HAS : 0);
	r.length = (uint32_t)len;
	memcpy(value, in + EACH, len);
	make_sound(&r, value, in[7]);
	if (in[7] & 64)
		r.value = NULL;
	place = blk_begin(b, &r, &a);
	if (place) {
		ASSERT(!r.value && place >= b->mem &&
		       place + r.length <= b->mem + b->size_bytes);
		memcpy(place, value, r.length);
		blk_finish(b, &r, &a);
	}
	ASSERT((unsigned)a.status < BLOCK_STATUSES);
	ASSERT(!a.data || (a.data >= b->mem &&
			   a.data + a.length <= b->mem + b->size_bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static uint8_t mem[BLOCKS][BYTES] CACHE_ALIGNED;
	struct blk_block blocks[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		struct blk_options o = {.kind = BLOCK_EKV,
					.size_bytes = BYTES,
					.generation = i + 1,
					.is_first = !i};

		memset(mem[i], 0, BYTES);
		if (blk_init(&blocks[i], &o, mem[i]))
			abort();
	}
	while (len > EACH) {
		size_t n = (size_t)data[16] + 256u * (data[17] % 4);

		n = n < len - EACH ? n : len - EACH;
		if (data[1] % 32 == 31)
			carry(blocks, data);
		else
			step(blocks, data, n);
		data += EACH + n;
		len -= EACH + n;
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		check(&blocks[i]);
		blk_release(&blocks[i]);
	}
	return 0;
}
