/* SPDX-License-Identifier: Apache-2.0 */
/* CRC front ends over isa-l. */
#include "crc.h"

#include <isa-l/crc.h>
#include <isa-l/crc64.h>

#include "crc_short.h"

uint32_t crc32_long(uint32_t state, const void *buf, size_t len_bytes)
{
	/* isa-l inverts the register on the way in and out, as zlib does. */
	return ~crc32_gzip_refl(~state, buf, len_bytes);
}

HOT uint32_t crc32_raw(uint32_t state, const void *buf, size_t len_bytes)
{
	if (LIKELY(len_bytes % 4 == 0 && len_bytes >= CRC_SHORT_MIN &&
		   len_bytes <= CRC_SHORT_MAX))
		return crc32_short(state, buf, len_bytes);
	return crc32_long(state, buf, len_bytes);
}

uint64_t crc64(uint64_t crc, const void *buf, size_t len_bytes)
{
	return crc64_ecma_refl(crc, buf, len_bytes);
}
