/* SPDX-License-Identifier: Apache-2.0 */
/* CRC-32 for packets of some dozen bytes; crc32_raw picks it by itself. */
#ifndef AQ_CRC_SHORT_H
#define AQ_CRC_SHORT_H

#include "base.h"

enum {
	CRC_SHORT_BLOCKS = 16,
	CRC_SHORT_MIN = 16,
	CRC_SHORT_MAX = CRC_SHORT_BLOCKS * 16 - 4,
	CRC_LEAD_MAX = (CRC_SHORT_BLOCKS - 2) * 16,
};

/* crc32_raw for CRC_SHORT_MIN to CRC_SHORT_MAX bytes, a multiple of four. */
uint32_t crc32_short(uint32_t state, const void *buf, size_t len_bytes);

/* crc32_raw of isa-l, for any length. */
uint32_t crc32_long(uint32_t state, const void *buf, size_t len_bytes);

/*
 * crc32_raw(0, ...) of the 24 bytes a1, b0, b1, as they lie in memory, and of
 * len_bytes at src: a multiple of 16, at most CRC_LEAD_MAX, read once and
 * copied to dst on the way, if that is not NULL. The first part is passed in
 * registers, because a load of bytes that were just stored in smaller pieces
 * stalls. Leading zeros do not change the CRC, so a shorter lead stands at the
 * end of the 24 bytes; xor the register before it into its first four bytes.
 */
uint32_t crc32_lead(uint64_t a1, uint64_t b0, uint64_t b1, void *dst,
		    const void *src, size_t len_bytes);
/* The same on a processor without carry-less multiplication. */
uint32_t crc32_lead_plain(uint64_t a1, uint64_t b0, uint64_t b1, void *dst,
			  const void *src, size_t len_bytes);

#endif
