/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured frames over one link, beside memory messages at random times: does
 * everything come out as it went in, byte for byte and in order?
 */
#ifndef AQ_EDM_PHY_FRAMES_H
#define AQ_EDM_PHY_FRAMES_H

#include "pcap_read.h"
#include "phy_tx.h"

struct edm_frames_config {
	struct edm_phy_config phy;
	enum edm_tx_policy policy;
	uint64_t seed;
};

struct edm_frames_result {
	uint64_t frames, messages; /* that came out as they went in */
	uint64_t wrong;		   /* frames and messages that did not */
	uint64_t blocks;	   /* the run's length */
	uint64_t preemptions, gaps_reused;
	uint32_t fifo_max, buffer_max;
};

/* -EINVAL: no frame in the file, or settings that no link can have; -ENOMEM. */
int edm_frames_run(const struct edm_pcap *pcap,
		   const struct edm_frames_config *c,
		   struct edm_frames_result *out) MUST_CHECK;

#endif
