/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums that a kernel leaves to hardware when it sends a frame. A switch
 * has no such hardware, so it computes them here. */
#ifndef AQ_BOARD_FRAME_H
#define AQ_BOARD_FRAME_H

#include "base/base.h"

static inline unsigned frame_load16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Whether it is RoCE, and of which family. */
bool frame_is_roce(const uint8_t *f, size_t len_bytes, bool *ipv4);

/* Sums up from `start`; the checksum field, `offset` bytes after it, holds the
 * sum of the pseudo header. Does nothing if that is not inside the frame. */
void frame_sum_finish(uint8_t *f, size_t len_bytes, size_t start,
		      size_t offset);

/* The checksum of a RoCE packet over IPv6, which must have one. */
void frame_sum_udp6(uint8_t *f, size_t len_bytes);

/* Finishes the checksum of TCP or UDP if it was left unfinished; all other
 * frames stay as they are. */
void frame_mend(uint8_t *f, size_t len_bytes);

#endif
