/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that two memory nodes have (docs/mind.md, "Two copies"): which of them
 * is read, and when what was given back is acknowledged. Pure, as all of this
 * room. The first node is 0, the second 1.
 */
#ifndef AQ_COHERENCE_COPIES_H
#define AQ_COHERENCE_COPIES_H

#include "coherence.h"

enum {
	COH_TWO = 2,
};

/* What becomes of a give-back when its writes are done. */
enum coh_give_fate {
	COH_GIVE_KEPT, /* it is where it shall be */
	COH_GIVE_HELD, /* the keeper must note first who has it */
	COH_GIVE_VOID, /* nobody has it */
};

/* The one that is read: the second, if only that one answers. */
uint8_t coh_copies_read(const bool is_away[COH_TWO]);
/* Both were written to, and both count. `is_away`: by now. */
enum coh_give_fate coh_copies_fate(const bool has_failed[COH_TWO],
				   const bool is_away[COH_TWO]);
/* Both were written to, and since then the keeper has noted that only `one`
 * counts. */
enum coh_give_fate coh_copies_fate_alone(const bool has_failed[COH_TWO],
					 uint8_t one);

#endif
