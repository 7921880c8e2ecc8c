/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bit errors on a link that carries memory messages and frames: their outcome,
 * and which check notices. The one thing that must not happen is that a message
 * or frame arrives with wrong bytes.
 */
#ifndef AQ_EDM_PHY_ERRORS_H
#define AQ_EDM_PHY_ERRORS_H

#include "phy_rx.h"

enum {
	EDM_ERRORS_MESSAGES_MAX = 100 * 1000 * 1000,
};

struct edm_errors_config {
	struct edm_phy_config phy;
	double error_rate; /* per bit on the cable */
	uint32_t message_bytes;
	uint32_t messages;
	uint32_t frame_bytes; /* with FCS; always one waiting. 0: none */
	uint64_t seed;
};

struct edm_errors_result {
	uint64_t bits, flips;
	uint64_t sent, right, wrong, lost; /* messages */
	uint64_t phantoms;		   /* messages that were never sent */
	/* Which checks noticed: see struct edm_rx_stats. */
	struct edm_rx_stats rx;
	uint64_t frames_sent, frames_right, frames_wrong, frames_fcs;
	uint64_t lock_lost;
};

/* -EINVAL with words for parameters that make no sense, -ENOMEM. */
int edm_errors_run(const struct edm_errors_config *c,
		   struct edm_errors_result *out) MUST_CHECK;

#endif
