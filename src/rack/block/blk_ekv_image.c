/* SPDX-License-Identifier: Apache-2.0 */
/* Images of blocks of key-value stores: the slots that the block has, and its
 * live records, each a block_kv_wire with key and value behind it. */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "blk_image.h"

/* ---- saving -------------------------------------------------------------- */

static struct blk_record *record_at(const struct blk_block *b, uint64_t offset)
{
	return (struct blk_record *)(void *)(blk_data(b) + offset);
}

static uint64_t live_bytes(const struct blk_record *r)
{
	return sizeof(r->head) + (uint64_t)blk_record_key_bytes(r) +
	       be32_get(r->head.value_bytes);
}

static struct blk_ekv_image_wire head_of(const struct blk_ekv *e)
{
	const struct blk_ekv_out *o = &e->out;
	struct blk_ekv_image_wire w = {
		.lo = be32_put(e->lo),
		.hi = be32_put(e->hi),
		.clock = be64_put(e->clock),
	};

	if (o->generation && o->is_frozen) {
		w.frozen_lo = be32_put(o->lo);
		w.frozen_hi = be32_put(o->hi);
		w.to = be64_put(o->generation);
		w.token = be32_put(o->token);
		w.batch = be64_put(o->batch);
	}
	return w;
}

int blk_ekv_save(const struct blk_block *b, struct blk_image *out,
		 uint32_t *items)
{
	const struct blk_ekv *e = &b->ekv;
	struct blk_ekv_image_wire head = head_of(e);
	uint8_t *buf = malloc(sizeof(head) + e->live), *at = buf;

	if (!buf)
		return error_set(-ENOMEM, "no memory for the image of a block");
	memcpy(at, &head, sizeof(head));
	at += sizeof(head);
	*items = 0;
	for (uint64_t place = 0; place < e->tail;) {
		const struct blk_record *r = record_at(b, place);

		place += r->size;
		if (r->slot >= BLOCK_KV_SLOTS)
			continue;
		memcpy(at, &r->head, live_bytes(r));
		at += live_bytes(r);
		++*items;
	}
	out->own = buf;
	out->payload = buf;
	out->bytes = (uint64_t)(at - buf);
	return 0;
}

/* ---- loading ------------------------------------------------------------- */

int blk_image_slots(const struct blk_image *image, struct blk_image_slots *out)
{
	struct blk_ekv_image_wire w;

	if (be16_get(image->head.kind) != BLOCK_EKV || image->bytes < sizeof(w))
		return -EINVAL;
	memcpy(&w, image->payload, sizeof(w));
	*out = (struct blk_image_slots){
		.lo = be32_get(w.lo),
		.hi = be32_get(w.hi),
		.frozen_lo = be32_get(w.frozen_lo),
		.frozen_hi = be32_get(w.frozen_hi),
		.to = be64_get(w.to),
		.token = be32_get(w.token),
		.batch = be64_get(w.batch),
		.clock = be64_get(w.clock),
	};
	return 0;
}

/* One record from the bytes at *at, if it is one of the slots that come. */
static bool take(struct blk_block *b, const struct blk_image_slots *all,
		 const struct blk_image *image, const uint8_t **at,
		 const uint8_t *end)
{
	struct block_kv_wire head;
	uint64_t bytes, hash;
	uint32_t key_bytes, slot;
	const uint8_t *from = *at;
	uint8_t *place;

	if ((size_t)(end - from) < sizeof(head))
		return false;
	memcpy(&head, from, sizeof(head));
	key_bytes = be32_get(head.key_bytes);
	bytes = sizeof(head) + (uint64_t)key_bytes + be32_get(head.value_bytes);
	if (!key_bytes || key_bytes > block_kv_key_max(b->size_bytes) ||
	    bytes > (size_t)(end - from) || be64_get(head.version) > all->clock)
		return false;
	hash = block_kv_hash(from + sizeof(head), key_bytes);
	slot = block_kv_slot(hash);
	*at = from + bytes;
	if (slot < all->lo || slot >= all->hi)
		return false;
	if (slot < image->lo || slot >= image->hi)
		return true;
	if (blk_record_find(b, hash, from + sizeof(head), key_bytes))
		return false;
	place = blk_heap_reserve(b, BLK_RECORD_OWN + bytes);
	if (!place)
		return false;
	memcpy(place + BLK_RECORD_OWN, from, bytes);
	(void)blk_record_take(b, (uint32_t)(BLK_RECORD_OWN + bytes), slot,
			      hash);
	return true;
}

int blk_ekv_load(struct blk_block *b, const struct blk_image *image,
		 uint64_t start, uint32_t items)
{
	const uint8_t *at = image->payload + sizeof(struct blk_ekv_image_wire);
	const uint8_t *end = image->payload + image->bytes;
	struct blk_image_slots all;
	uint32_t seen = 0;

	if (blk_image_slots(image, &all) || all.lo > all.hi ||
	    all.hi > BLOCK_KV_SLOTS || image->lo < all.lo ||
	    image->hi > all.hi || image->lo >= image->hi ||
	    b->flags & BLOCK_IS_SEALED)
		return error_set(-EBADMSG, "its slots are not as they were");
	while (at < end && seen < items && take(b, &all, image, &at, end))
		seen++;
	if (at != end || seen != items)
		return error_set(-EBADMSG, "its records are not as they were");
	b->ekv.lo = image->lo;
	b->ekv.hi = image->hi;
	b->ekv.clock = all.clock;
	blk_head_write(b, 0, 0);
	return 0;
}
