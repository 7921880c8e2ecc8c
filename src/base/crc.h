/* SPDX-License-Identifier: Apache-2.0 */
/* CRC front ends; isa-l does the work. */
#ifndef AQ_CRC_H
#define AQ_CRC_H

#include "base.h"

/* CRC-32 of IEEE 802.3, reflected, raw register in and out (no inversions), so
 * that a checksum can be continued over several pieces. */
uint32_t crc32_raw(uint32_t state, const void *buf, size_t len_bytes);

/* CRC-32C (Castagnoli), inverted on the way in and out. `crc` is 0, or the
 * result for the bytes before. */
uint32_t crc32c(uint32_t crc, const void *buf, size_t len_bytes);

/* CRC-64 of ECMA-182, reflected, inverted on the way in and out (known as
 * CRC-64/XZ). `crc` is 0, or the result for the bytes before. */
uint64_t crc64(uint64_t crc, const void *buf, size_t len_bytes);

#endif
