/* SPDX-License-Identifier: Apache-2.0 */
/* Images of blocks: their header and sums. What a kind keeps is in its own
 * file. */
#include "blk_image.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/crc.h"
#include "base/error.h"

int blk_image_take(const struct blk_block *b, const struct blk_image_id *id,
		   struct blk_image *out)
{
	uint32_t items = 0;
	int err;

	*out = (struct blk_image){0};
	if (!b->kind->save)
		return error_set(-EOPNOTSUPP, "there are no images of a %s",
				 b->kind->name);
	err = b->kind->save(b, out, &items);
	if (err)
		return err;
	out->head = (struct blk_image_wire){
		.magic = be32_put(BLK_IMAGE_MAGIC),
		.version = be16_put(BLK_IMAGE_VERSION),
		.kind = be16_put((uint16_t)b->kind->id),
		.object = be64_put(id->object),
		.image = be64_put(id->image),
		.number = be64_put(id->number),
		.flags = be32_put(b->flags),
		.items = be32_put(items),
		.bytes = be64_put(out->bytes),
	};
	if (b->kind->id == BLOCK_FILE)
		out->head.start = be64_put(b->file.start);
	return 0;
}

static uint64_t head_crc(const struct blk_image_wire *head)
{
	return crc64(0, head, offsetof(struct blk_image_wire, crc));
}

void blk_image_sum(struct blk_image *image)
{
	image->head.payload_crc =
		be64_put(crc64(0, image->payload, image->bytes));
	image->head.crc = be64_put(head_crc(&image->head));
}

void blk_image_release(struct blk_image *image)
{
	free(image->own);
	*image = (struct blk_image){0};
}

int blk_image_parse(const void *bytes, size_t len_bytes,
		    const struct blk_image_id *id, struct blk_image *out)
{
	struct blk_image_slots slots;
	struct blk_image i = {0};

	if (len_bytes < sizeof(i.head))
		return error_set(-EBADMSG, "it is cut off");
	memcpy(&i.head, bytes, sizeof(i.head));
	i.payload = (const uint8_t *)bytes + sizeof(i.head);
	i.bytes = len_bytes - sizeof(i.head);
	if (be32_get(i.head.magic) != BLK_IMAGE_MAGIC)
		return error_set(-EBADMSG, "it is no image of a block");
	if (head_crc(&i.head) != be64_get(i.head.crc))
		return error_set(-EBADMSG, "the sum of its header is wrong");
	if (be16_get(i.head.version) != BLK_IMAGE_VERSION)
		return error_set(-EBADMSG,
				 "its version is %u, and %d is known here",
				 be16_get(i.head.version), BLK_IMAGE_VERSION);
	if (be64_get(i.head.object) != id->object ||
	    be64_get(i.head.image) != id->image ||
	    be64_get(i.head.number) != id->number)
		return error_set(-EBADMSG,
				 "it is block %" PRIu64
				 " of another object or image",
				 be64_get(i.head.number));
	if (be64_get(i.head.bytes) != i.bytes)
		return error_set(-EBADMSG,
				 "it has %" PRIu64 " bytes instead of %" PRIu64,
				 i.bytes, be64_get(i.head.bytes));
	if (be64_get(i.head.payload_crc) != crc64(0, i.payload, i.bytes))
		return error_set(-EBADMSG, "the sum of its bytes is wrong");
	if (!blk_image_slots(&i, &slots)) {
		i.lo = slots.lo;
		i.hi = slots.hi;
	}
	*out = i;
	return 0;
}

int blk_image_load(struct blk_block *b, const struct blk_image *image)
{
	const struct blk_image_wire *h = &image->head;
	const uint32_t known =
		BLOCK_IS_SEALED | BLOCK_IS_LAST | BLOCK_HAS_START;
	uint32_t flags = be32_get(h->flags);

	if (be16_get(h->kind) != b->kind->id || !b->kind->load ||
	    flags & ~known)
		return error_set(-EBADMSG, "it is of another kind");
	b->flags |= flags;
	return b->kind->load(b, image, be64_get(h->start), be32_get(h->items));
}
