/* SPDX-License-Identifier: Apache-2.0 */
/* Two memory nodes with the same pages. */
#include "copies.h"

#include "base/plant.h"

uint8_t coh_copies_read(const bool is_away[COH_TWO])
{
	return is_away[0] && !is_away[1];
}

enum coh_give_fate coh_copies_fate(const bool has_failed[COH_TWO],
				   const bool is_away[COH_TWO])
{
	if (!has_failed[0] && !has_failed[1])
		return COH_GIVE_KEPT;
	if (has_failed[0] && has_failed[1])
		return COH_GIVE_VOID;
	/* If it were acknowledged and the switch died, the node that was away
	 * could come back with old bytes and count as well. */
	if (PLANTED(coh_pair_early))
		return COH_GIVE_KEPT;
	/* The one that has it may have gone since. */
	return is_away[0] && is_away[1] ? COH_GIVE_VOID : COH_GIVE_HELD;
}

enum coh_give_fate coh_copies_fate_alone(const bool has_failed[COH_TWO],
					 uint8_t one)
{
	if (PLANTED(coh_pair_other))
		one = !one;
	return has_failed[one] ? COH_GIVE_VOID : COH_GIVE_KEPT;
}
