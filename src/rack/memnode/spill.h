/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spill tier: where blocks of elastic structures lie that find no room in
 * the pool. It is one file without a name in a folder, whose space is taken
 * from the disk when it is opened, so that nothing can lack later; it is mapped
 * as a whole, and the kernel keeps in memory what it has room for.
 *
 * A disk that fails shows as a fault of whoever touches the mapping. The NIC
 * makes an error of it, and so does the block server. Whoever else it is finds
 * zeros, and the part counts as bad from then on. That something could not be
 * written is found out by a thread that has the kernel write it every few
 * seconds; then all parts are bad.
 */
#ifndef AQ_MEM_SPILL_H
#define AQ_MEM_SPILL_H

#include "base/base.h"

enum {
	SPILL_UNIT = 64 << 10, /* of what is taken, at its multiples */
};

struct spill;

/* There is one in a process, as it handles a signal. -ENOENT, -ENOSPC and
 * others, with words. */
int spill_open(const char *dir, uint64_t size_bytes,
	       struct spill **out) MUST_CHECK;
/* Nothing of it is in use any more. NULL is allowed. */
void spill_close(struct spill *s);

/* Any thread. So many zeros; -ENOSPC: there is no such part. */
int spill_take(struct spill *s, uint64_t bytes, void **out) MUST_CHECK;
/* It is zeros again, or is kept for ever because the disk failed. */
void spill_give(struct spill *s, void *at, uint64_t bytes);
/* Whether something there could not be read or written. */
bool spill_is_bad(const struct spill *s, const void *at, uint64_t bytes);

uint64_t spill_size(const struct spill *s);
uint64_t spill_used(struct spill *s);
/* Failures of the disk. */
uint64_t spill_errors(const struct spill *s);

#endif
