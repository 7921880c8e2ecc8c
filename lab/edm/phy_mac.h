/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Ethernet side of a link: frames to blocks with preamble, FCS and gaps,
 * and back. One block per block time in each direction.
 */
#ifndef AQ_EDM_PHY_MAC_H
#define AQ_EDM_PHY_MAC_H

#include "phy.h"

/* The next frame without FCS, or NULL while there is none; it is copied before
 * the next call. At most EDM_FRAME_MAX bytes. */
typedef const uint8_t *edm_frame_source(void *owner, uint32_t *len_bytes);

struct edm_mac_tx {
	edm_frame_source *source;
	void *owner;
	struct edm_gap gap;
	/* What follows the start: preamble, frame, pad, FCS. */
	uint8_t bytes[7 + EDM_FRAME_MAX + EDM_FCS_BYTES];
	uint32_t len_bytes;
	uint32_t sent_bytes;
	bool in_frame;
	uint32_t gap_chars; /* so far, in whole blocks and since the T */
	uint32_t gap_want;
	uint64_t frames;
	uint64_t gap_sum; /* of gaps before a frame that did not have to wait */
	uint64_t gap_count;
};

void edm_mac_tx_init(struct edm_mac_tx *m, uint32_t start_align,
		     edm_frame_source *source, void *owner);
/* The block of this block time; an idle block when there is no frame. */
void edm_mac_tx_step(struct edm_mac_tx *m, struct wire_block *out);

/* Blocks from S to T of a frame without FCS that starts in lane 0. */
uint32_t edm_frame_blocks(uint32_t len_bytes);

/* A frame without FCS. */
typedef void edm_frame_sink(void *owner, const uint8_t *frame,
			    uint32_t len_bytes);

struct edm_mac_rx_stats {
	uint64_t frames;
	uint64_t bad_fcs;
	uint64_t bad_order;  /* S or T where none may be, a code inside */
	uint64_t bad_length; /* too short or too long */
	uint64_t short_gaps; /* shorter than the deficit idle count allows */
};

struct edm_mac_rx {
	edm_frame_sink *sink;
	void *owner;
	struct edm_gap gap;
	uint8_t bytes[7 + EDM_FRAME_MAX + EDM_FCS_BYTES + 8];
	uint32_t len_bytes;
	bool in_frame;
	uint32_t gap_chars;
	struct edm_mac_rx_stats stats;
};

void edm_mac_rx_init(struct edm_mac_rx *m, uint32_t start_align,
		     edm_frame_sink *sink, void *owner);
void edm_mac_rx_step(struct edm_mac_rx *m, const struct wire_block *in);

#endif
