/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The receiving end of an EDM link, between descrambler and decoder: takes the
 * memory blocks out, gathers the blocks of a frame until its end and hands them
 * to the decoder in consecutive block times, idle blocks otherwise. Nothing
 * that arrives is trusted. One thread; no allocation behind edm_phy_rx_init().
 */
#ifndef AQ_EDM_PHY_RX_H
#define AQ_EDM_PHY_RX_H

#include "phy.h"

enum {
	/* The longest frame, what arrives while it leaves, and a little for
	 * gaps that are made again. A power of two. */
	EDM_RX_BUFFER = 4096,
};

struct edm_rx_sink {
	void (*message)(void *owner, const struct wire_mem_head *head,
			const uint8_t *payload, uint32_t len_bytes);
	void (*control)(void *owner, enum wire_block_kind kind,
			const struct wire_mem_head *head);
	void *owner;
};

/* Why something was dropped; each message or frame counts once. */
struct edm_rx_stats {
	uint64_t messages;
	uint64_t controls;
	uint64_t frames;
	uint64_t bad_sync;     /* blocks */
	uint64_t bad_type;     /* blocks */
	uint64_t bad_head;     /* memory blocks whose head makes no sense */
	uint64_t bad_order;    /* messages cut short, or blocks out of place */
	uint64_t bad_pad;      /* messages with bits behind their end */
	uint64_t bad_crc;      /* messages, notifications and grants */
	uint64_t frames_cut;   /* frames whose end never came */
	uint64_t stray_blocks; /* data or end that belong to nothing */
	uint64_t overflows;    /* frames longer than any may be */
	uint32_t buffer_max;   /* most blocks that ever waited */
};

/* A message that arrives. */
struct edm_rx_message {
	struct wire_mem_head head;
	uint8_t bytes[EDM_MSG_BYTES_MAX + EDM_CRC_BYTES + 16];
	uint32_t got_bytes, blocks_left;
	bool open, spoiled;
};

enum {
	EDM_RX_NEST = 2, /* a message, and a request inside it */
};

struct edm_phy_rx {
	struct edm_phy_config config;
	struct edm_rx_sink sink;
	struct edm_rx_message message[EDM_RX_NEST];
	uint32_t depth; /* which of them takes the next block */
	/* Blocks of frames, from `out` over `done` to `in`: those behind `done`
	 * belong to a frame that is still arriving. */
	struct wire_block buffer[EDM_RX_BUFFER];
	uint32_t out, done, in;
	bool in_frame, out_in_frame;
	struct edm_gap gap;
	uint32_t gap_chars, term_lane;
	struct edm_rx_stats stats;
};

int edm_phy_rx_init(struct edm_phy_rx *r, const struct edm_phy_config *c,
		    const struct edm_rx_sink *sink) MUST_CHECK;
/* One block time: a descrambled block in, a block for the decoder out. */
void edm_phy_rx_step(struct edm_phy_rx *r, const struct wire_block *in,
		     struct wire_block *out);

#endif
