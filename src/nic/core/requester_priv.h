/* SPDX-License-Identifier: Apache-2.0 */
/* The requester, and the completer, which takes what comes back. */
#ifndef AQ_NIC_REQUESTER_PRIV_H
#define AQ_NIC_REQUESTER_PRIV_H

#include <infiniband/verbs.h>

#include "base/timer.h"
#include "nic_limits.h"
#include "wire/wire.h"

struct nic_qp;

struct requester {
	struct timer timer;
	uint32_t next_psn; /* of the next new request */
	uint32_t una_psn;  /* oldest not acknowledged */
	uint32_t send_pkt; /* packets of slot `send` already sent */
	uint32_t rd_outstanding;
	uint32_t unasked; /* packets since acknowledgement was asked for */
	bool rnr_wait;
	bool restarted;	 /* went back to una_psn already, no progress since */
	uint8_t repeats; /* without progress; see requester_resend */
	uint8_t retry_left;
	uint8_t rnr_left;
	/* A walk that switches may carry on is under way: its answer may come
	 * late, and nothing else may come before it. */
	bool alone;
	bool reach_failed; /* the last request that the system was to execute */
	bool progressed;   /* since the timer was set */
	bool gave_up;	   /* retries ended without an answer */
	uint8_t waited;	   /* timers in a row without news of the peer */
	uint64_t peer_turns; /* of the peer, when the wait began */
	uint64_t stalled_ns; /* since when the peer does not run; 0: it runs */
	/* The key that the env had no mapping for, and how often in a row. */
	uint32_t far_key;
	uint32_t far_misses;
	uint32_t ahead_psn;  /* the last response that came too early */
	uint64_t restart_ns; /* when restarted was set; only where cc is on */
	uint64_t rto_ns;     /* when rto_timer is due */
	struct timer rto_timer; /* resends without using up a retry */
};

/* Packet numbers that were given out and are not acknowledged. */
static inline uint32_t requester_in_flight(const struct requester *req)
{
	return (req->next_psn - req->una_psn) & WIRE_PSN_MASK;
}

/* Whenever one of the two moves: una_psn never overtakes next_psn, and no more
 * numbers are in use than can be told from those of the next round. */
static inline void requester_assert_window(const struct requester *req)
{
	ASSERT(requester_in_flight(req) <= NIC_WINDOW_PSNS);
}

/* Sends what may be sent, for at most one turn. False: the path was full. */
bool requester_run(struct nic_qp *qp);
/* The same for what is in the send queue. */
bool requester_run_queued(struct nic_qp *qp);
void requester_reset(struct nic_qp *qp);
/* Sends again from the oldest packet that was not acknowledged. */
void requester_go_back(struct nic_qp *qp);
bool requester_is_new_loss(struct nic_qp *qp, uint32_t psn);
bool requester_is_new_nak(const struct nic_qp *qp);
/* One retry is used up: goes back, or fails the queue pair. */
void requester_retry(struct nic_qp *qp, enum ibv_wc_status exhausted);
/* The peer's answer says, or implies, that something was lost. */
void requester_resend(struct nic_qp *qp);
void requester_progress(struct nic_qp *qp);
bool requester_has_work(const struct nic_qp *qp);
void completer_input(struct nic_qp *qp, const struct wire_pkt *pkt);

#endif
