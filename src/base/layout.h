/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 64 bytes that every layout in far memory or in a shared file starts with.
 * Little-endian on every machine. The checksum covers the header only: contents
 * change under one-sided writes and have checks of their own.
 *
 * Versions: a new minor version only adds fields that old readers may ignore. A
 * reader refuses an unknown major version and names both versions.
 */
#ifndef AQ_LAYOUT_H
#define AQ_LAYOUT_H

#include "base.h"
#include "bytes.h"

struct layout_header {
	char magic[8]; /* not terminated */
	le32 major;
	le32 minor;
	le32 header_size; /* bytes before the contents, at least 64 */
	le32 reserved0;	  /* 0 */
	le64 total_size;  /* bytes, header included */
	char creator[16]; /* who made it; padded with NUL */
	le64 reserved1;	  /* 0 */
	le64 checksum;	  /* CRC-64 (ECMA-182, reflected) of the rest */
};

STATIC_ASSERT(sizeof(struct layout_header) == 64, "layout header size");
STATIC_ASSERT(offsetof(struct layout_header, total_size) == 24, "total_size");
STATIC_ASSERT(offsetof(struct layout_header, creator) == 32, "creator");
STATIC_ASSERT(offsetof(struct layout_header, checksum) == 56, "checksum");
STATIC_ASSERT(_Alignof(struct layout_header) == 1, "any alignment will do");

/* The kind and version of layout that a room writes and understands. */
struct layout_kind {
	const char *name;  /* in words, for messages: "counter file" */
	const char *magic; /* exactly 8 characters */
	uint32_t major;
	uint32_t minor;
	uint32_t header_size; /* of this version, multiple of 64 */
};

/* A checked header in host form. */
struct layout_info {
	uint32_t minor;
	uint32_t header_size;
	uint64_t total_size;
	char creator[17];
};

void layout_header_init(struct layout_header *h, const struct layout_kind *kind,
			uint64_t total_size, const char *creator);

/*
 * Checks bytes of unknown origin; avail_bytes is how many are there, the whole
 * layout included. `info` may be NULL. error_last() names what is wrong.
 *   -EBADMSG           short, another magic, checksum, or impossible sizes
 *   -EPROTONOSUPPORT   another major version
 */
int layout_header_check(const void *bytes, uint64_t avail_bytes,
			const struct layout_kind *kind,
			struct layout_info *info) MUST_CHECK;

#endif
