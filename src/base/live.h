/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of memory that others write to meanwhile, as a NIC makes them of the
 * program's. Peers READ counts and pointers there and act on what they see, and
 * programs poll those that peers WRITE, so none of them may be half old and
 * half new.
 */
#ifndef AQ_LIVE_H
#define AQ_LIVE_H

#include "base.h"

/*
 * Like memmove, but every word of two, four or eight bytes that is aligned in
 * `src` is loaded by one instruction, whatever the alignment of `dst`. memmove
 * does not promise that: some copy in steps that are aligned in `dst`, others
 * byte by byte. No other thread may write to areas that overlap.
 */
void live_move(void *dst, const void *src, size_t len_bytes);

/*
 * The other way round, to memory that others poll: every word of two, four or
 * eight bytes that is aligned in `dst` is stored by one instruction, whatever
 * the alignment of `src`, and the last 64 bytes in ascending order after the
 * rest. The areas do not overlap.
 */
void live_place(void *dst, const void *src, size_t len_bytes);

#endif
