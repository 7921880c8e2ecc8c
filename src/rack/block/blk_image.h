/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of a block: what of it is worth keeping, as bytes that do not
 * depend on where it lay. Of a file these are its bytes, of a queue its items,
 * each behind its length, of a key-value store its slots and records
 * (blk_ekv_image.c). Sessions are not kept: who goes on after a load has opened
 * the object anew.
 *
 *   image   blk_image_wire, then the payload
 *
 * The header names the object, the image and the block's number, so a block of
 * another image is not taken for this one; its sum covers the payload's.
 */
#ifndef AQ_BLK_IMAGE_H
#define AQ_BLK_IMAGE_H

#include "blk.h"

enum {
	BLK_IMAGE_MAGIC = 0x61716969, /* "aqii" */
	BLK_IMAGE_VERSION = 1,
};

struct blk_image_wire {
	be32 magic;
	be16 version;
	be16 kind;
	be64 object;
	be64 image;
	be64 number;
	be64 start; /* of a file's block */
	be32 flags; /* enum block_flag */
	be32 items; /* of a queue or store */
	be64 bytes; /* of the payload */
	be64 payload_crc;
	be64 crc; /* of all above */
};
STATIC_ASSERT(sizeof(struct blk_image_wire) == 72, "block image");

/* Which one it is. */
struct blk_image_id {
	uint64_t object;
	uint64_t image;
	uint64_t number;
};

/* What the payload of a store's block begins with. */
struct blk_ekv_image_wire {
	be32 lo, hi; /* slots that it has: from, up to */
	/* Of them, a batch that may be at another block by now. */
	be32 frozen_lo, frozen_hi;
	be64 to; /* generation of that block; 0: there is no such batch */
	be32 token;
	be32 unused;
	be64 batch;
	be64 clock; /* no version is larger */
};
STATIC_ASSERT(sizeof(struct blk_ekv_image_wire) == 48, "store image");

struct blk_image {
	struct blk_image_wire head;
	const uint8_t *payload; /* in the block's memory, or in `own` */
	uint64_t bytes;
	void *own;	 /* NULL: the block's memory has it */
	uint32_t lo, hi; /* of a store: the slots that a load takes */
};

/* What is in the block at this moment. The payload of a file stays in the
 * block, whose memory must stay, too: what lies below the end never changes.
 * The caller releases it. -ENOMEM, -EOPNOTSUPP. */
int blk_image_take(const struct blk_block *b, const struct blk_image_id *id,
		   struct blk_image *out) MUST_CHECK;
/* Its sums, which take as long as the payload is long. */
void blk_image_sum(struct blk_image *image);
void blk_image_release(struct blk_image *image);

/* The same from bytes, which stay the caller's. -EBADMSG: damaged, or another
 * one; error_last() says what. */
int blk_image_parse(const void *bytes, size_t len_bytes,
		    const struct blk_image_id *id,
		    struct blk_image *out) MUST_CHECK;
/* Fills a block of which nothing was used yet. -EBADMSG: it does not fit. */
int blk_image_load(struct blk_block *b,
		   const struct blk_image *image) MUST_CHECK;

/* Of a store's block: what its payload begins with, as it was written. */
struct blk_image_slots {
	uint32_t lo, hi, frozen_lo, frozen_hi;
	uint64_t to;
	uint32_t token;
	uint64_t batch, clock;
};
/* -EINVAL: it is none. */
int blk_image_slots(const struct blk_image *image,
		    struct blk_image_slots *out) MUST_CHECK;

/* ---- blk_ekv_image.c: operators ------------------------------------------ */

int blk_ekv_save(const struct blk_block *b, struct blk_image *out,
		 uint32_t *items) MUST_CHECK;
int blk_ekv_load(struct blk_block *b, const struct blk_image *image,
		 uint64_t start, uint32_t items) MUST_CHECK;

static inline uint64_t blk_image_crc(const struct blk_image *image)
{
	return be64_get(image->head.crc);
}

#endif
