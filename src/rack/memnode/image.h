/* SPDX-License-Identifier: Apache-2.0 */
/* Images at the vault, as a node writes and reads them. No lock is needed, and
 * all calls take as long as the vault does. */
#ifndef AQ_MEM_IMAGE_H
#define AQ_MEM_IMAGE_H

#include <jansson.h>

#include "block/blk_image.h"
#include "vault/vault.h"

enum {
	MEM_MANIFEST_MAX = 16 << 20,
};

struct mem_image {
	struct vault_place place;
	char dir[VAULT_IMAGE_MAX];
	struct blk_image_id block;
};

/* What the controller hears of a block that was written. */
struct mem_image_sum {
	uint64_t bytes, crc;
	uint32_t flags, items;
	json_t *slots; /* of a store, the caller's; NULL: none */
};

/* -ENOMEM, and what vault_put says, but never -ENOENT. */
int mem_image_write(const struct mem_image *i, struct blk_image *image,
		    struct mem_image_sum *out) MUST_CHECK;
int mem_manifest_write(const struct mem_image *i, json_t *text) MUST_CHECK;
/* The image of a block, in *buf, which the caller frees, also on failure.
 * -EBADMSG: it is damaged. */
int mem_image_read(const struct mem_image *i, const struct blk_options *o,
		   void **buf, struct blk_image *image) MUST_CHECK;
int mem_image_erase(const struct mem_image *i) MUST_CHECK;

#endif
