/* SPDX-License-Identifier: Apache-2.0 */
/* What a cache server says of its pages, for `aquifer shared check`: a file of
 * this, and its rows. */
#ifndef AQ_SHD_HELD_H
#define AQ_SHD_HELD_H

#include "base/base.h"

enum {
	SHD_HELD_WORDS = 120,
};

/* Neighbours with the same right. */
struct shd_held_row {
	uint64_t va, size_bytes;
	uint64_t writes; /* 1: processes may write */
};

struct shd_held {
	uint32_t machine, term;
	uint32_t is_member; /* else there are no rows: it has no switch now */
	uint32_t row_count;
	/* Which invariant of the cache is broken; "": none. */
	char wrong[SHD_HELD_WORDS];
	struct shd_held_row row[];
};

#endif
