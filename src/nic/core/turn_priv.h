/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns among protection domains. As long as only one of them does something
 * there is nothing to share; when others are there, each has turns by the work
 * that it did lately.
 */
#ifndef AQ_TURN_PRIV_H
#define AQ_TURN_PRIV_H

#include "memory_priv.h"
#include "nic_priv.h"

/* The work done so far, in the measure of turns: packets, large ones more than
 * small ones, and steps of chains, which are less. */
static inline uint64_t nic_work(const struct nic *nic)
{
	return nic->counters[NIC_C_tx_frames] +
	       nic->counters[NIC_C_chain_steps] / NIC_TURN_STEPS +
	       nic->counters[NIC_C_reach_ops] +
	       ((nic->counters[NIC_C_tx_bytes] +
		 nic->counters[NIC_C_reach_bytes] + nic->chain_bytes) >>
		NIC_TURN_SHIFT);
}

/* A domain does something now, and another one did before: both are there, and
 * for a while they share. */
void turn_changes(struct nic_pd *pd);

/* The domain did more lately than another one that is there. */
bool turn_is_greedy(struct nic_pd *pd);

static inline void turn_of(struct nic_pd *pd)
{
	if (UNLIKELY(pd->nic->last_domain != pd))
		turn_changes(pd);
}

/* Counts work outside of turns, which a post caused. */
static inline void turn_count(struct nic_pd *pd, uint64_t work)
{
	if (!work)
		return;
	turn_of(pd);
	if (UNLIKELY(pd->nic->crowd))
		pd->used += (uint32_t)work * NIC_USED_PART;
}

/* Another domain has its turn now; the caller makes its queue pair ready again.
 */
static inline bool turn_is_over(const struct nic *nic)
{
	return UNLIKELY(nic->crowd) && nic_work(nic) >= nic->turn_end;
}

#endif
