/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of an EDM link, end to end: MAC, sender, line, receiver, MAC.
 * Every step is one block time.
 */
#ifndef AQ_EDM_PHY_LINK_H
#define AQ_EDM_PHY_LINK_H

#include "phy_line.h"
#include "phy_mac.h"
#include "phy_rx.h"
#include "phy_tx.h"

struct edm_phy_link_config {
	struct edm_phy_config phy;
	enum edm_tx_policy policy;
	double error_rate;
	uint64_t seed;
	edm_frame_source *source; /* NULL: no frames */
	edm_frame_sink *frames;
	void *frame_owner;
	struct edm_rx_sink memory;
};

struct edm_phy_link {
	struct edm_mac_tx mac_tx;
	struct edm_phy_tx tx;
	struct edm_line line;
	struct edm_phy_rx rx;
	struct edm_mac_rx mac_rx;
	struct rng rng;
	uint64_t now; /* block times so far */
};

/* The descrambler is in step and blocks are locked when this returns. */
int edm_phy_link_create(const struct edm_phy_link_config *c,
			struct edm_phy_link **out) MUST_CHECK;
void edm_phy_link_destroy(struct edm_phy_link *l);
/* Returns the number of bits that the line got wrong. */
unsigned edm_phy_link_step(struct edm_phy_link *l, struct edm_tx_out *sent);
/* Nothing is under way at either end. */
bool edm_phy_link_quiet(const struct edm_phy_link *l);

/* What both experiments may send. -EINVAL with words. */
int edm_phy_link_check(uint32_t frame_bytes, uint32_t message_bytes,
		       uint32_t messages, uint32_t messages_max) MUST_CHECK;

#endif
