/* SPDX-License-Identifier: Apache-2.0 */
/* At the end of a play with pages: checks where every page frame is. */
#ifndef AQ_PLAYS_PAGE_ACCOUNTS_H
#define AQ_PLAYS_PAGE_ACCOUNTS_H

#include "pageframe/pframe.h"
#include "play.h"

/* Each page frame must be in exactly one place: one of the tables, which have
 * this many pages each (NULL: taken back), or the queue of free ones, which
 * this empties. */
void page_accounts_check(struct play_run *r, struct pframe_pool *pool,
			 struct pframe_space *const *spaces, unsigned count,
			 unsigned pages, uint64_t page_bytes);

#endif
