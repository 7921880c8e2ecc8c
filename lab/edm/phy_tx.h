/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sending end of an EDM link: in every block time it sends one block, of a
 * memory message, of a frame, or idle. Memory blocks interrupt frames and take
 * the place of idle blocks. The MAC is held back by a signal that needs four
 * block times to reach it, so at most four of its blocks ever wait. One thread;
 * no allocation behind edm_phy_tx_init().
 */
#ifndef AQ_EDM_PHY_TX_H
#define AQ_EDM_PHY_TX_H

#include "base/rng.h"
#include "phy_mac.h"

enum {
	EDM_TX_FIFO = 4,       /* blocks of the MAC, also the signal's delay */
	EDM_TX_QUEUE = 8192,   /* blocks of memory messages; a power of two */
	EDM_TX_REQUEST = 1024, /* of requests that may stand in messages */
	EDM_TX_CTL = 256,      /* notifications and grants; a power of two */
};

/* Which block goes first when a memory block and a frame's block both wait. A
 * message of EDM_MD_DATA that has begun is never interrupted by a frame. */
enum edm_tx_policy {
	EDM_TX_FAIR,	 /* block by block; over time, half each */
	EDM_TX_MEMORY,	 /* memory */
	EDM_TX_NO_SPLIT, /* memory, but frames are not interrupted */
	EDM_TX_GAPS,	 /* frames: memory begins in idle blocks only */
	EDM_TX_RANDOM,	 /* a coin each time, for tests */
	EDM_TX_POLICIES,
};

const char *edm_tx_policy_name(enum edm_tx_policy p);

enum edm_tx_slot {
	EDM_SLOT_IDLE,
	EDM_SLOT_FRAME,
	EDM_SLOT_MEMORY,
	EDM_SLOT_CONTROL, /* N or G */
};

struct edm_tx_out {
	struct wire_block block;
	enum edm_tx_slot slot;
	bool first, last; /* of a message, or of a frame */
};

struct edm_tx_stats {
	uint64_t blocks[EDM_SLOT_CONTROL + 1]; /* by edm_tx_slot */
	uint64_t preemptions; /* frame blocks that had to wait for memory */
	uint64_t gaps_reused; /* idle blocks that memory replaced */
	uint32_t fifo_max;    /* most frame blocks that ever waited */
	/* Longest time, in blocks, that a memory block at the head of its queue
	 * waited for frames, and the same for the first block of a message. */
	uint32_t head_wait_max;
	uint32_t first_wait_max;
};

struct edm_tx_entry {
	struct wire_block block;
	bool first, last;
};

struct edm_phy_tx {
	struct edm_phy_config config;
	enum edm_tx_policy policy;
	struct edm_mac_tx *mac;
	struct rng *rng; /* EDM_TX_RANDOM */
	struct edm_tx_entry queue[EDM_TX_QUEUE];
	uint32_t queue_head, queue_tail;
	struct edm_tx_entry request[EDM_TX_REQUEST]; /* with nest */
	uint32_t request_head, request_tail;
	struct wire_block ctl[EDM_TX_CTL];
	uint32_t ctl_head, ctl_tail;
	struct wire_block fifo[EDM_TX_FIFO + 1];
	uint32_t fifo_count;
	uint32_t stops; /* bit i: the MAC holds still in i block times */
	bool in_message, in_request, in_frame;
	int32_t balance; /* blocks by which memory is ahead of frames */
	uint32_t head_wait;
	struct edm_tx_stats stats;
};

/* `mac` may be NULL: no frames. -EINVAL with words. */
int edm_phy_tx_init(struct edm_phy_tx *t, const struct edm_phy_config *c,
		    enum edm_tx_policy policy, struct edm_mac_tx *mac,
		    struct rng *rng) MUST_CHECK;
/* -EAGAIN while the queue is full; else as edm_msg_encode(). */
int edm_phy_tx_message(struct edm_phy_tx *t, const struct wire_mem_head *head,
		       const uint8_t *payload) MUST_CHECK;
int edm_phy_tx_control(struct edm_phy_tx *t, enum wire_block_kind kind,
		       const struct wire_mem_head *head) MUST_CHECK;
/* One block time. */
void edm_phy_tx_step(struct edm_phy_tx *t, struct edm_tx_out *out);
/* Memory blocks that wait. */
uint32_t edm_phy_tx_backlog(const struct edm_phy_tx *t);

#endif
