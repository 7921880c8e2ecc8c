/* SPDX-License-Identifier: Apache-2.0 */
/* Records of a key-value block: where they lie, and how they are found. */
#include <errno.h>
#include <stdlib.h>

#include "base/plant.h"
#include "blk.h"

enum {
	BUCKET_BYTES = 128, /* of a block, per bucket */
	BUCKETS_MIN = 16,
};

static uint32_t bucket_count(uint64_t size_bytes)
{
	uint32_t n = BUCKETS_MIN;

	while ((uint64_t)n * BUCKET_BYTES < size_bytes)
		n *= 2;
	return n;
}

uint64_t blk_ekv_own_bytes(uint64_t size_bytes)
{
	return (bucket_count(size_bytes) + (uint64_t)BLOCK_KV_SLOTS) *
	       sizeof(uint32_t);
}

int blk_ekv_init(struct blk_block *b, bool is_first)
{
	struct blk_ekv *e = &b->ekv;

	e->room = block_kv_room(b->size_bytes);
	e->hi = is_first ? BLOCK_KV_SLOTS : 0;
	e->bucket_count = bucket_count(b->size_bytes);
	e->bucket = calloc(e->bucket_count, sizeof(*e->bucket));
	e->slot = calloc(BLOCK_KV_SLOTS, sizeof(*e->slot));
	if (e->bucket && e->slot)
		return 0;
	blk_ekv_release(b);
	return -ENOMEM;
}

void blk_ekv_release(struct blk_block *b)
{
	free(b->ekv.bucket);
	free(b->ekv.slot);
}

/* ---- places -------------------------------------------------------------- */

uint8_t *blk_ekv_scratch(const struct blk_block *b)
{
	return blk_data(b) + b->ekv.room;
}

uint32_t blk_ekv_scratch_bytes(const struct blk_block *b)
{
	return (uint32_t)(blk_room(b) - b->ekv.room);
}

static struct blk_record *at(const struct blk_block *b, uint64_t offset)
{
	return (struct blk_record *)(void *)(blk_data(b) + offset);
}

struct blk_record *blk_record_at(const struct blk_block *b, uint32_t place)
{
	return place ? at(b, (uint64_t)(place - 1) * 8) : NULL;
}

static uint32_t place_of(const struct blk_block *b, const struct blk_record *r)
{
	return (uint32_t)(((const uint8_t *)r - blk_data(b)) / 8) + 1;
}

static bool is_live(const struct blk_record *r)
{
	return r->slot < BLOCK_KV_SLOTS;
}

/* ---- links --------------------------------------------------------------- */

static uint32_t *bucket_of(const struct blk_block *b, uint64_t hash)
{
	return &b->ekv.bucket[(uint32_t)hash & (b->ekv.bucket_count - 1)];
}

struct blk_record *blk_record_find(const struct blk_block *b, uint64_t hash,
				   const uint8_t *key, uint32_t key_bytes)
{
	struct blk_record *r = blk_record_at(b, *bucket_of(b, hash));

	while (r && (r->hash != hash || blk_record_key_bytes(r) != key_bytes ||
		     memcmp(blk_record_key(r), key, key_bytes) != 0))
		r = blk_record_at(b, r->next);
	return r;
}

static void chain(struct blk_block *b, struct blk_record *r)
{
	uint32_t place = place_of(b, r), *first = &b->ekv.slot[r->slot];
	struct blk_record *younger = blk_record_at(b, *first);
	uint32_t *bucket = bucket_of(b, r->hash);

	r->next = *bucket;
	*bucket = place;
	r->slot_prev = 0;
	r->slot_next = *first;
	if (younger)
		younger->slot_prev = place;
	*first = place;
}

void blk_record_link(struct blk_block *b, struct blk_record *r, uint32_t slot)
{
	r->slot = slot;
	chain(b, r);
	b->ekv.live += r->size;
	b->ekv.items++;
}

static void unchain(struct blk_block *b, struct blk_record *r)
{
	uint32_t place = place_of(b, r), *from = bucket_of(b, r->hash);
	struct blk_record *older = blk_record_at(b, r->slot_next);
	struct blk_record *younger = blk_record_at(b, r->slot_prev);

	while (*from != place)
		from = &blk_record_at(b, *from)->next;
	*from = r->next;
	if (older)
		older->slot_prev = r->slot_prev;
	if (younger)
		younger->slot_next = r->slot_next;
	else
		b->ekv.slot[r->slot] = r->slot_next;
}

void blk_record_kill(struct blk_block *b, struct blk_record *r)
{
	if (is_live(r)) {
		unchain(b, r);
		b->ekv.live -= r->size;
		b->ekv.items--;
	}
	r->slot = BLK_RECORD_DEAD;
}

/* ---- the heap ------------------------------------------------------------ */

/* Slides everything down that may move. Records stay in the order of their
 * places, and so do lists, whose youngest record is the highest: the parts of a
 * batch that is under way keep their numbers. */
static void compact(struct blk_block *b)
{
	struct blk_ekv *e = &b->ekv;
	uint64_t to = 0, from = 0;

	if (!PLANTED(kv_silent))
		blk_head_moves(b, ++e->moves);
	memset(e->bucket, 0, e->bucket_count * sizeof(*e->bucket));
	memset(e->slot, 0, BLOCK_KV_SLOTS * sizeof(*e->slot));
	while (from < e->tail) {
		struct blk_record *r = at(b, from);
		uint32_t size = r->size;

		if (r->pins) {
			if (to < from)
				*at(b, to) = (struct blk_record){
					.size = (uint32_t)(from - to),
					.slot = BLK_RECORD_DEAD};
			to = from;
		} else if (r->slot == BLK_RECORD_DEAD) {
			from += size;
			continue;
		} else if (to < from) {
			memmove(at(b, to), r, size);
			r = at(b, to);
		}
		if (is_live(r))
			chain(b, r);
		to += size;
		from += size;
	}
	e->tail = to;
}

uint8_t *blk_heap_reserve(struct blk_block *b, uint64_t bytes)
{
	struct blk_ekv *e = &b->ekv;

	bytes = align_up(bytes, 8);
	if (bytes > e->room)
		return NULL;
	if (e->tail > e->room - bytes && e->live + bytes <= e->room)
		compact(b);
	return e->tail <= e->room - bytes ? blk_data(b) + e->tail : NULL;
}

struct blk_record *blk_record_take(struct blk_block *b, uint32_t size,
				   uint32_t slot, uint64_t hash)
{
	struct blk_record *r = at(b, b->ekv.tail);

	r->size = (uint32_t)align_up(size, 8);
	r->pins = 0;
	r->hash = hash;
	r->slot = slot;
	b->ekv.tail += r->size;
	if (is_live(r))
		blk_record_link(b, r, slot);
	return r;
}
