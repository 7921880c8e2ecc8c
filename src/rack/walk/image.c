/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes images; what their instructions do is verify.c's affair. */
#include "image.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/layout.h"
#include "op.h"

#define XXH_INLINE_ALL
/* The header mixes signs; that is not ours to mend. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <xxhash.h>
#pragma GCC diagnostic pop

/* Instructions are used where they lie. */
STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "byte order");

BYTES_TYPE(le16, 16, BYTES_LE)

struct header {
	struct layout_header layout;
	le16 load_lo;
	le16 load_bytes;
	le16 pad_bytes;
	le16 flags;
	le32 insns;
	char name[WALK_NAME_BYTES];
	uint8_t reserved[28]; /* 0 */
};

STATIC_ASSERT(sizeof(struct header) == WALK_HEADER_BYTES, "header size");
STATIC_ASSERT(offsetof(struct header, name) == 76, "name");

static const struct layout_kind kind = {
	.name = "walk image",
	.magic = "AQWALK01",
	.major = 1,
	.minor = 0,
	.header_size = sizeof(struct header),
};

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
}

static int check_name(const char *name)
{
	size_t len = strnlen(name, WALK_NAME_BYTES);

	if (len == 0 || len == WALK_NAME_BYTES)
		return error_set(-EINVAL,
				 "walk image: the name has no or more than %d "
				 "letters",
				 WALK_NAME_BYTES - 1);
	for (size_t i = 0; i < WALK_NAME_BYTES; i++) {
		if (i < len ? !is_name_char(name[i]) : name[i] != 0)
			return error_set(-EINVAL,
					 "walk image: a name has only letters, "
					 "digits, '_', '-' and '.'");
	}
	return 0;
}

int walk_image_check(const struct walk_image *image)
{
	int err = check_name(image->name);

	if (err)
		return err;
	if (image->load_bytes < WALK_LOAD_MIN ||
	    image->load_bytes > WALK_LOAD_MAX)
		return error_set(-EINVAL,
				 "walk image '%s': loads %u bytes of a node; "
				 "%d to %d are possible",
				 image->name, image->load_bytes, WALK_LOAD_MIN,
				 WALK_LOAD_MAX);
	if (image->pad_bytes > WALK_PAD_MAX)
		return error_set(-EINVAL,
				 "walk image '%s': a pad of %u bytes is larger "
				 "than %d",
				 image->name, image->pad_bytes, WALK_PAD_MAX);
	if (image->flags & ~(unsigned)WALK_STORES)
		return error_set(-EINVAL,
				 "walk image '%s': has unknown flags (%#x)",
				 image->name, image->flags);
	if (image->count < 1 || image->count > WALK_INSNS_MAX)
		return error_set(-EINVAL,
				 "walk image '%s': has %u instructions; 1 to "
				 "%d are possible",
				 image->name, image->count, WALK_INSNS_MAX);
	return 0;
}

static void fill_header(const struct walk_image *image, struct header *h)
{
	memset(h, 0, sizeof(*h));
	layout_header_init(&h->layout, &kind, walk_image_bytes(image),
			   "aquifer walk");
	h->load_lo = le16_put((uint16_t)image->load_lo);
	h->load_bytes = le16_put(image->load_bytes);
	h->pad_bytes = le16_put(image->pad_bytes);
	h->flags = le16_put(image->flags);
	h->insns = le32_put(image->count);
	memcpy(h->name, image->name, sizeof(h->name));
}

int walk_image_parse(const void *bytes, size_t len, struct walk_image *out)
{
	struct walk_image got;
	struct header h, canonical;
	int err = layout_header_check(bytes, len, &kind, NULL);

	if (err)
		return err;
	if (len < sizeof(h))
		return error_set(-EBADMSG,
				 "walk image: %zu bytes are too short", len);
	memcpy(&h, bytes, sizeof(h));
	memset(&got, 0, sizeof(got));
	memcpy(got.name, h.name, sizeof(got.name));
	got.load_lo = (int16_t)le16_get(h.load_lo);
	got.load_bytes = le16_get(h.load_bytes);
	got.pad_bytes = le16_get(h.pad_bytes);
	got.flags = le16_get(h.flags);
	got.count = le32_get(h.insns);
	err = walk_image_check(&got);
	if (err)
		return err;
	if (len != walk_image_bytes(&got))
		return error_set(-EINVAL,
				 "walk image '%s': %u instructions make %zu "
				 "bytes, not %zu",
				 got.name, got.count, walk_image_bytes(&got),
				 len);
	fill_header(&got, &canonical);
	if (memcmp(&h, &canonical, sizeof(h)))
		return error_set(-EINVAL,
				 "walk image '%s': the header has reserved or "
				 "foreign bytes; build it again",
				 got.name);
	if ((uintptr_t)bytes % _Alignof(struct walk_insn))
		return error_set(-EINVAL,
				 "walk image '%s': lies at an odd address",
				 got.name);
	got.insns = (const void *)((const uint8_t *)bytes + sizeof(h));
	got.hash = XXH3_64bits(bytes, len);
	*out = got;
	return 0;
}

size_t walk_image_bytes(const struct walk_image *image)
{
	return sizeof(struct header) +
	       (size_t)image->count * sizeof(struct walk_insn);
}

void walk_image_write(const struct walk_image *image, void *bytes)
{
	struct header h;

	fill_header(image, &h);
	memcpy(bytes, &h, sizeof(h));
	memcpy((uint8_t *)bytes + sizeof(h), image->insns,
	       image->count * sizeof(struct walk_insn));
}

uint64_t walk_image_hash(const struct walk_image *image)
{
	XXH3_state_t state;
	struct header h;

	fill_header(image, &h);
	(void)XXH3_64bits_reset(&state); /* cannot fail for a state that is */
	(void)XXH3_64bits_update(&state, &h, sizeof(h));
	(void)XXH3_64bits_update(&state, image->insns,
				 image->count * sizeof(struct walk_insn));
	return XXH3_64bits_digest(&state);
}
