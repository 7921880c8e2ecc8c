/* SPDX-License-Identifier: Apache-2.0 */
/* DCTCP's control law (RFC 8257): how a window follows marks and losses. */
#ifndef AQ_EDM_DCTCP_H
#define AQ_EDM_DCTCP_H

#include "base/base.h"

struct edm_dctcp {
	double window_bytes;
	double threshold_bytes; /* slow start below */
	double alpha;		/* estimate of the marked part */
	double gain;
	uint32_t mss_bytes;
	uint64_t window_end; /* sequence number: one estimate per window */
	uint64_t cut_end;    /* one cut per window */
	uint64_t acked_bytes, marked_bytes;
};

void edm_dctcp_init(struct edm_dctcp *d, uint32_t mss_bytes,
		    uint32_t window_bytes);
/* bytes newly acknowledged up to una, the next new byte being nxt. */
void edm_dctcp_ack(struct edm_dctcp *d, uint32_t bytes, bool marked,
		   uint64_t una, uint64_t nxt);
void edm_dctcp_fast_retransmit(struct edm_dctcp *d, uint64_t nxt);
void edm_dctcp_timeout(struct edm_dctcp *d, uint64_t nxt);

#endif
