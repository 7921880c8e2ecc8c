/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both ends of an EDM link share: its settings, the scrambler, the gap
 * between frames, block lock, and how a memory message becomes blocks.
 */
#ifndef AQ_EDM_PHY_H
#define AQ_EDM_PHY_H

#include "block66.h"
#include "edm_units.h"

enum {
	EDM_FRAME_MIN = 60, /* without FCS; shorter ones are padded */
	EDM_FRAME_MAX = 9014,
	EDM_FCS_BYTES = 4,
	EDM_GAP_BYTES = 12,
	/* S, the bytes behind it, T. A jumbo frame: 1 + 1127 + 1. */
	EDM_FRAME_BLOCKS_MAX = 2 + (EDM_FRAME_MAX + EDM_FCS_BYTES) / 8,
	EDM_MSG_BYTES_MAX = 2048,
	/* With a check sum in the map that carries six bytes per block. */
	EDM_MSG_BLOCKS_MAX = 2 + (EDM_MSG_BYTES_MAX + 2 + 5) / 6,
	EDM_CRC_BYTES = 2,
};

struct edm_phy_config {
	enum edm_md md;
	enum wire_mem_map map;
	bool crc; /* check sum behind every message, N and G */
	/* A request may stand whole between two blocks of another message, so
	 * that no read waits for a chunk that has begun. */
	bool nest;
	uint8_t start_align; /* characters: 8 (40 Gb/s and up) or 4 */
};

/* -EINVAL with words: settings that no link can have. */
int edm_phy_config_check(const struct edm_phy_config *c) MUST_CHECK;

/* Self-synchronous, 1 + x^39 + x^58. `past` holds the last 64 bits on the
 * line, the latest in bit 63; any value will do at the start. */
struct edm_scrambler {
	uint64_t past;
};

uint64_t edm_scramble(struct edm_scrambler *s, uint64_t payload);
uint64_t edm_descramble(struct edm_scrambler *s, uint64_t payload);
/* The register as a standard draws it, 58 bits, the latest in bit 0. */
struct edm_scrambler edm_scrambler_from_register(uint64_t reg);
uint64_t edm_scrambler_register(const struct edm_scrambler *s);

/*
 * Deficit idle count: a start must stand at a multiple of `align` characters,
 * and the gap, counted from the /T/ to the next /S/, is 12 on average.
 */
struct edm_gap {
	uint32_t align;
	uint32_t deficit;
};

/* The shortest gap allowed behind a /T/ in lane `lane`. */
uint32_t edm_gap_next(const struct edm_gap *g, uint32_t lane);
/* Accounts for the gap that was made. False: shorter than allowed. */
bool edm_gap_account(struct edm_gap *g, uint32_t gap_chars);

/* Block lock: 64 valid headers in a row get it, 16 invalid ones among 64 lose
 * it. */
struct edm_lock {
	bool locked;
	uint32_t seen;
	uint32_t invalid;
	uint64_t lost; /* times */
};

void edm_lock_feed(struct edm_lock *l, uint8_t sync);

/* Payload bytes that follow a head: the address of a request, three words of a
 * read-modify-write, else what the size says. (A write's first chunk counts its
 * address in the size.) */
static inline uint32_t edm_msg_bytes(const struct wire_mem_head *h)
{
	switch (h->op) {
	case WIRE_MEM_RREQ:
		return EDM_ADDRESS_BYTES;
	case WIRE_MEM_RMWREQ:
		return EDM_RMW_BYTES;
	case WIRE_MEM_NULL:
		return 0;
	default:
		return h->size_bytes;
	}
}

/* Whether a message asks for data instead of carrying it. */
static inline bool edm_msg_request(const struct wire_mem_head *h)
{
	return h->op == WIRE_MEM_RREQ || h->op == WIRE_MEM_RMWREQ;
}

/* Blocks of a message; like edm_blocks() in the map of types that leaves most
 * room, and with the check sum where there is one. */
uint32_t edm_msg_blocks(const struct edm_phy_config *c, uint32_t bytes);

/* Writes the blocks of one message and returns their number. -EMSGSIZE for more
 * than EDM_MSG_BYTES_MAX, -EINVAL for a head that has no encoding. */
int edm_msg_encode(const struct edm_phy_config *c,
		   const struct wire_mem_head *head, const uint8_t *payload,
		   struct wire_block out[EDM_MSG_BLOCKS_MAX]) MUST_CHECK;
/* N or G. */
int edm_ctl_encode(const struct edm_phy_config *c, enum wire_block_kind kind,
		   const struct wire_mem_head *head,
		   struct wire_block *out) MUST_CHECK;
/* True when the tail of an N or G is what edm_ctl_encode() writes. */
bool edm_ctl_check(const struct edm_phy_config *c,
		   const struct wire_mem_head *head, const uint8_t tail[8]);

#endif
