/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel leaves to hardware when it sends a frame, done here: where a
 * switch takes frames from kernels there is no such hardware. */
#ifndef AQ_BOARD_FRAME_H
#define AQ_BOARD_FRAME_H

#include "base/base.h"

static inline unsigned frame_load16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Whether it is RoCE, and of which family. */
bool frame_is_roce(const uint8_t *f, size_t len_bytes, bool *ipv4);

/* Sums up from `start`; the field, so far behind, holds the pseudo header's
 * sum. Does nothing where that is not inside the frame. */
void frame_sum_finish(uint8_t *f, size_t len_bytes, size_t start,
		      size_t offset);

/* The checksum of a RoCE packet over IPv6, which must have one. */
void frame_sum_udp6(uint8_t *f, size_t len_bytes);

/* Finishes the checksum of TCP or UDP if it was left unfinished; other frames,
 * and those with a right one or with rubbish, stay as they are. */
void frame_mend(uint8_t *f, size_t len_bytes);

#endif
