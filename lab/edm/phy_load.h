/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory messages beside IP frames on one link: how much later they come than
 * on a link without frames, and what the frames lose. Every message is compared
 * with itself in a second run that has the same arrivals and no frame.
 */
#ifndef AQ_EDM_PHY_LOAD_H
#define AQ_EDM_PHY_LOAD_H

#include "phy_tx.h"

enum {
	EDM_LOAD_MESSAGES_MAX = 10 * 1000 * 1000,
};

struct edm_load_config {
	enum edm_md md;
	enum edm_tx_policy policy;
	uint32_t frame_bytes;	 /* with FCS: 64 to 9018 */
	uint32_t frame_permille; /* of the link's time, gaps included */
	uint32_t message_bytes;
	uint32_t memory_permille; /* of the link's blocks */
	uint32_t messages;
	uint64_t seed;
};

/* Times are in blocks. */
struct edm_load_result {
	uint64_t blocks; /* the run's length */
	/* A message alone on the link: from its making to its last block. */
	double alone_mean;
	/* Later than without frames: the first block (what Table 1 counts) and
	 * the whole message. */
	double first_rise_mean, whole_rise_mean;
	uint32_t first_rise_max, whole_rise_max;
	/* Longest that frames alone held up a memory block. */
	uint32_t block_wait_max, first_wait_max;
	/* Frames: of the link's time, offered and carried; from the first block
	 * that the sender's MAC makes to the last that the receiver's MAC gets,
	 * here and on a link without EDM. */
	double offered, carried;
	uint64_t frames;
	double transit_mean, transit_plain;
	uint64_t transit_max;
	uint32_t fifo_max, buffer_max;
	double reused; /* share of memory blocks that took an idle block */
};

/* -EINVAL with words for parameters that make no sense, -ENOMEM. */
int edm_load_run(const struct edm_load_config *c,
		 struct edm_load_result *out) MUST_CHECK;

#endif
