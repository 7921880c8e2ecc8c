/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of a walk: what a .walk file has, what is installed on a node, and
 * what its hash names. Little-endian: a layout_header with magic AQWALK01, then
 *	le16 load_lo	signed: where the node's window begins, from the pointer
 *	le16 load_bytes	8 to 4096
 *	le16 pad_bytes	0 to 4032
 *	le16 flags	enum walk_flag
 *	le32 insns	1 to 4096
 *	char name[24]	letters, digits, '_', '-', '.'; padded with NUL
 *	28 bytes 0
 * and the instructions at byte 128, 8 bytes each. There is one way to write an
 * image: another creator or version in the header is refused, so that the same
 * walk has the same hash everywhere.
 */
#ifndef AQ_WALK_IMAGE_H
#define AQ_WALK_IMAGE_H

#include "base/base.h"

enum {
	WALK_LOAD_MIN = 8,
	WALK_LOAD_MAX = 4096,
	WALK_PAD_MAX = 4032,
	WALK_INSNS_MAX = 4096,
	WALK_NAME_BYTES = 24, /* with a NUL at the end */
	WALK_HEADER_BYTES = 128,
	WALK_IMAGE_MAX = WALK_HEADER_BYTES + 8 * WALK_INSNS_MAX,
};

enum walk_flag {
	WALK_STORES = 1, /* it changes nodes, and needs the right to */
};

/* As it lies in the image; see op.h. */
struct walk_insn {
	uint8_t op, d, a, b;
	int32_t imm;
};

STATIC_ASSERT(sizeof(struct walk_insn) == 8, "walk instruction size");
STATIC_ASSERT(offsetof(struct walk_insn, imm) == 4, "imm");

struct walk_image {
	char name[WALK_NAME_BYTES];
	int16_t load_lo;
	uint16_t load_bytes, pad_bytes, flags;
	uint32_t count;		       /* of instructions */
	const struct walk_insn *insns; /* whoever made the image owns them */
	uint64_t hash;		       /* XXH3-64 of the whole file */
};

/*
 * Checks the header and its arithmetic, not the instructions (verify.h). `out`
 * points into `bytes`, which are 8-byte aligned and stay until the image is not
 * needed any more; no byte may be left over. error_last() says what is wrong.
 *   -EBADMSG           no image: short, another magic, checksum
 *   -EPROTONOSUPPORT   another version
 *   -EINVAL            a field has no good value
 */
int walk_image_parse(const void *bytes, size_t len,
		     struct walk_image *out) MUST_CHECK;
/* Only the fields but insns and hash: -EINVAL. */
int walk_image_check(const struct walk_image *image) MUST_CHECK;
/* Of the file, at most WALK_IMAGE_MAX. */
size_t walk_image_bytes(const struct walk_image *image);
/* Writes walk_image_bytes(); image->hash is not read. */
void walk_image_write(const struct walk_image *image, void *bytes);
/* What image->hash must be, by the other fields. */
uint64_t walk_image_hash(const struct walk_image *image);

#endif
