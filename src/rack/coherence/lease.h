/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lease of a machine: how long others go on without news from it, and when
 * it must have stopped by itself. The machine counts from when it *sent* a
 * heartbeat that was answered, the members' keeper from when it *received* it,
 * so the machine stops COH_LEASE_NS - COH_LEASE_STOP_NS before the keeper ends
 * its membership, whatever the network did, if both clocks run at the same rate
 * within that margin. A machine that was paused as a whole notices late: it
 * asks coh_lease_must_stop before it lets anybody touch a page again.
 */
#ifndef AQ_COHERENCE_LEASE_H
#define AQ_COHERENCE_LEASE_H

#include "base/base.h"

#define COH_HEARTBEAT_NS  1000000000ull
#define COH_LEASE_STOP_NS (4 * COH_HEARTBEAT_NS)
#define COH_LEASE_NS	  (5 * COH_HEARTBEAT_NS)

/* The machine: its processes may use cached pages no longer (cache.h,
 * coh_cache_suspend). */
static inline bool coh_lease_must_stop(uint64_t answered_sent_ns,
				       uint64_t now_ns)
{
	return now_ns - answered_sent_ns >= COH_LEASE_STOP_NS;
}

/* The keeper: the machine is no member any more (dir.h, coh_dir_gone). */
static inline bool coh_lease_is_over(uint64_t received_ns, uint64_t now_ns)
{
	return now_ns - received_ns >= COH_LEASE_NS;
}

#endif
