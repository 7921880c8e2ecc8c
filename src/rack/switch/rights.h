/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what with shared memory: (domain, range) to nothing, read, or read
 * and write. Ranges are kept as pieces of a power of two of pages, as a match
 * table would hold them; neighbours with the same right are joined, so a range
 * has as few pieces as it can, whatever the order in which it was given. What
 * has no piece has no right.
 */
#ifndef AQ_SWITCH_RIGHTS_H
#define AQ_SWITCH_RIGHTS_H

#include "coherence/coherence.h"

enum {
	RIGHTS_PIECES = 8192,
};

struct rights_piece {
	uint32_t domain;
	uint8_t order; /* 1 << order pages */
	uint8_t right; /* enum coh_right */
	uint64_t page;
};

struct rights {
	uint32_t count;
	struct rights_piece
		*pieces; /* by domain and page; apart from each other */
	struct rights_piece *spare; /* while a change is tried */
};

int rights_init(struct rights *r) MUST_CHECK;
void rights_release(struct rights *r);
/* From now on the domain has this right to the pages. -EINVAL, -ENOSPC; then
 * nothing has changed. */
int rights_set(struct rights *r, uint32_t domain, uint64_t page, uint64_t count,
	       enum coh_right right) MUST_CHECK;
enum coh_right rights_find(const struct rights *r, uint32_t domain,
			   uint64_t page);

#endif
