/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and checks layout headers. */
#include "layout.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "crc.h"
#include "error.h"

static uint64_t checksum(const struct layout_header *h)
{
	return crc64(0, h, offsetof(struct layout_header, checksum));
}

void layout_header_init(struct layout_header *h, const struct layout_kind *kind,
			uint64_t total_size, const char *creator)
{
	ASSERT(strlen(kind->magic) == sizeof(h->magic));
	ASSERT(kind->header_size >= sizeof(*h));
	ASSERT(total_size >= kind->header_size);
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, kind->magic, sizeof(h->magic));
	h->major = le32_put(kind->major);
	h->minor = le32_put(kind->minor);
	h->header_size = le32_put(kind->header_size);
	h->total_size = le64_put(total_size);
	memcpy(h->creator, creator, strnlen(creator, sizeof(h->creator)));
	h->checksum = le64_put(checksum(h));
}

/* Bytes of unknown origin as text for a message. */
static void printable(char *dst, const char *src, size_t len_bytes)
{
	size_t i;

	for (i = 0; i < len_bytes && src[i]; i++)
		dst[i] = src[i] >= 0x20 && src[i] < 0x7f ? src[i] : '?';
	dst[i] = 0;
}

static int check_sizes(const struct layout_kind *kind,
		       const struct layout_info *info, uint64_t avail_bytes)
{
	if (info->header_size < sizeof(struct layout_header) ||
	    info->header_size % sizeof(struct layout_header) ||
	    info->header_size > info->total_size)
		return error_set(-EBADMSG,
				 "%s: header of %u bytes in a total of "
				 "%" PRIu64 " is impossible",
				 kind->name, info->header_size,
				 info->total_size);
	if (info->total_size > avail_bytes)
		return error_set(-EBADMSG,
				 "%s: cut short: %" PRIu64 " of %" PRIu64
				 " bytes are there",
				 kind->name, avail_bytes, info->total_size);
	return 0;
}

int layout_header_check(const void *bytes, uint64_t avail_bytes,
			const struct layout_kind *kind,
			struct layout_info *info)
{
	struct layout_header h;
	struct layout_info got;
	char magic[sizeof(h.magic) + 1];
	int err;

	if (avail_bytes < sizeof(h))
		return error_set(-EBADMSG,
				 "%s: %" PRIu64 " bytes are too short for a "
				 "header of %zu",
				 kind->name, avail_bytes, sizeof(h));
	/* Read once: others may be able to write it meanwhile. */
	memcpy(&h, bytes, sizeof(h));
	printable(magic, h.magic, sizeof(h.magic));
	if (memcmp(h.magic, kind->magic, sizeof(h.magic)))
		return error_set(-EBADMSG,
				 "%s: starts with '%s' instead of '%s'",
				 kind->name, magic, kind->magic);
	if (le64_get(h.checksum) != checksum(&h))
		return error_set(-EBADMSG,
				 "%s: header checksum is %016" PRIx64
				 ", should be %016" PRIx64,
				 kind->name, le64_get(h.checksum),
				 checksum(&h));
	got.minor = le32_get(h.minor);
	got.header_size = le32_get(h.header_size);
	got.total_size = le64_get(h.total_size);
	printable(got.creator, h.creator, sizeof(h.creator));
	if (le32_get(h.major) != kind->major)
		return error_set(-EPROTONOSUPPORT,
				 "%s: made by '%s' in version %u.%u; this "
				 "program knows version %u.%u",
				 kind->name, got.creator, le32_get(h.major),
				 got.minor, kind->major, kind->minor);
	err = check_sizes(kind, &got, avail_bytes);
	if (err == 0 && info)
		*info = got;
	return err;
}
