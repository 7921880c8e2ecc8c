/* SPDX-License-Identifier: Apache-2.0 */
/* The requester's timers. */
#ifndef AQ_NIC_REQUESTER_TIMER_PRIV_H
#define AQ_NIC_REQUESTER_TIMER_PRIV_H

#include "qp_priv.h"

/* requester_timer.c. Something was sent or answered: restarts the timer. */
void requester_start_timer(struct nic_qp *qp);
void requester_set_rto(struct nic_qp *qp);

static inline void requester_start_rto(struct nic_qp *qp)
{
	if (UNLIKELY(qp->lossy))
		requester_set_rto(qp);
}

void requester_stop_timers(struct nic_qp *qp);

#endif
