/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DCQCN's control law: how the rate of a queue pair follows congestion
 * notifications. Timers are not events: the state is brought up to date when it
 * is read.
 */
#ifndef AQ_EDM_DCQCN_H
#define AQ_EDM_DCQCN_H

#include "base/base.h"

struct edm_dcqcn_params {
	double line_bps;
	double min_bps;
	double additive_bps;
	double hyper_bps;
	double gain;
	uint64_t alpha_ps;    /* alpha decays when no notification came */
	uint64_t increase_ps; /* the rate grows */
	uint64_t byte_count;  /* it also grows after so many bytes */
	uint64_t cut_ps;      /* at most one cut in this time */
	uint32_t fast_steps;  /* of fast recovery before it grows further */
};

struct edm_dcqcn {
	double rate_bps, target_bps, alpha;
	uint64_t alpha_at_ps, increase_at_ps, cut_at_ps;
	uint64_t sent_bytes;
	uint32_t time_steps, byte_steps;
	bool limited; /* below line rate */
};

/* As in the DCQCN paper, or as vendors ship it. */
void edm_dcqcn_params(struct edm_dcqcn_params *p, uint32_t gbps, bool vendor);
void edm_dcqcn_init(struct edm_dcqcn *d, const struct edm_dcqcn_params *p);
void edm_dcqcn_advance(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
		       uint64_t now_ps);
void edm_dcqcn_notified(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
			uint64_t now_ps);
void edm_dcqcn_sent(struct edm_dcqcn *d, const struct edm_dcqcn_params *p,
		    uint32_t bytes);

#endif
