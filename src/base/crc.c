/* SPDX-License-Identifier: Apache-2.0 */
/* CRC front ends over isa-l. */
#include "crc.h"

#include <isa-l/crc.h>
#include <isa-l/crc64.h>
#include <limits.h>

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

uint32_t crc32c(uint32_t crc, const void *buf, size_t len_bytes)
{
	const uint8_t *p = buf;

	/* isa-l takes an int for the length, and a pointer that it does not
	 * write through. */
	while (len_bytes > INT_MAX) {
		crc = ~crc32_iscsi((unsigned char *)(uintptr_t)p, INT_MAX,
				   ~crc);
		p += INT_MAX;
		len_bytes -= INT_MAX;
	}
	return ~crc32_iscsi((unsigned char *)(uintptr_t)p, (int)len_bytes,
			    ~crc);
}

uint64_t crc64(uint64_t crc, const void *buf, size_t len_bytes)
{
	return crc64_ecma_refl(crc, buf, len_bytes);
}
