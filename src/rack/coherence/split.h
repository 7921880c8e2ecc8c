/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded splitting: how large regions are. A large region needs one entry for
 * many pages, and is invalidated as a whole: pages that nobody asked for are
 * given back, which are counted as false invalidations. An epoch goes through
 * all entries, some at a time:
 *
 *  t   the threshold: false invalidations of the last epoch, divided by
 *      c * entries / 10; at least 1 when entries are few
 *  split  more than t false invalidations, and three entries are free
 *  join   the region and its right neighbour together have fewer than t, and
 *	   entries are few or t is high
 *  c   is doubled while less than 80 % of the entries are used, and halved when
 *      more than 95 % are: a small c makes t high, and so few entries
 *  new regions  are twice as large after an epoch with recalls for more than a
 *      twentieth of the entries, and half as large, down to the size they began
 *      with, when less than half of the entries are used
 *
 * "Few" is less than a fifth free. Who joins M and M has one owner (dir.h).
 */
#ifndef AQ_COHERENCE_SPLIT_H
#define AQ_COHERENCE_SPLIT_H

#include "dir.h"

enum {
	COH_SPLIT_STEP = 64,  /* entries between two packets */
	COH_SPLIT_CALM = 100, /* t from which quiet regions are joined */
	COH_SPLIT_C_ONE = 16, /* c is kept in sixteenths */
	COH_SPLIT_C_MAX = 16 * COH_SPLIT_C_ONE,
};

struct coh_split {
	uint32_t at;	    /* entries before it were looked at */
	uint32_t threshold; /* of this epoch */
	uint32_t c;	    /* in sixteenths */
	uint64_t sum;	    /* false invalidations seen in this epoch */
	uint64_t recalls;   /* until the last epoch ended */
	uint64_t splits, joins, epochs;
};

void coh_split_init(struct coh_split *s);
/* Looks at some entries more. True: the epoch has ended. */
bool coh_split_step(struct coh_split *s, struct coh_dir *d);

#endif
