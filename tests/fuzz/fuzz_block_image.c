/* SPDX-License-Identifier: Apache-2.0 */
/* Images of blocks, any bytes; the sums are made right, so that mutations get
 * past them. What is loaded can be saved again to the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "block/blk_image.h"
#include "fuzz.h"

enum {
	SIZE = BLOCK_BYTES_MIN,
};

static void check(const uint8_t *data, size_t len, enum block_kind kind)
{
	const struct blk_options o = {
		.kind = kind, .size_bytes = SIZE, .generation = 7};
	struct blk_image image, again;
	struct blk_image_id id;
	struct blk_block b;
	uint8_t *mem;

	if (len < sizeof(image.head))
		return;
	memcpy(&image.head, data, sizeof(image.head));
	id = (struct blk_image_id){be64_get(image.head.object),
				   be64_get(image.head.image),
				   be64_get(image.head.number)};
	if (blk_image_parse(data, len, &id, &image))
		return;
	mem = calloc(1, SIZE);
	ASSERT(mem && blk_init(&b, &o, mem) == 0);
	if (blk_image_load(&b, &image) == 0) {
		/* A move that was under way is not in what was loaded. */
		size_t skip = kind == BLOCK_EKV
				      ? sizeof(struct blk_ekv_image_wire)
				      : 0;

		ASSERT(blk_image_take(&b, &id, &again) == 0);
		ASSERT(again.bytes == image.bytes);
		ASSERT(again.bytes <= skip ||
		       memcmp(again.payload + skip, image.payload + skip,
			      again.bytes - skip) == 0);
		blk_image_release(&again);
	}
	blk_release(&b);
	free(mem);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct blk_image image = {0};
	uint8_t *copy;

	check(data, len, BLOCK_FILE);
	if (len < sizeof(image.head))
		return 0;
	copy = malloc(len);
	ASSERT(copy);
	memcpy(&image.head, data, sizeof(image.head));
	image.payload = data + sizeof(image.head);
	image.bytes = len - sizeof(image.head);
	image.head.magic = be32_put(BLK_IMAGE_MAGIC);
	image.head.version = be16_put(BLK_IMAGE_VERSION);
	image.head.bytes = be64_put(image.bytes);
	blk_image_sum(&image);
	memcpy(copy, &image.head, sizeof(image.head));
	memcpy(copy + sizeof(image.head), image.payload, image.bytes);
	check(copy, len,
	      be16_get(image.head.kind) == BLOCK_QUEUE ? BLOCK_QUEUE
	      : be16_get(image.head.kind) == BLOCK_EKV ? BLOCK_EKV
						       : BLOCK_FILE);
	free(copy);
	return 0;
}
