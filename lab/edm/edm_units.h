/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks and their times. The clock counts integer picoseconds; a 66-bit block
 * carries 8 bytes, so its time is 64,000 ps divided by the link's Gb/s, exact
 * for every Ethernet rate from 10 to 800 Gb/s.
 */
#ifndef AQ_EDM_UNITS_H
#define AQ_EDM_UNITS_H

#include "base/base.h"

#define EDM_NS	  UINT64_C(1000)
#define EDM_US	  (1000 * EDM_NS)
#define EDM_NEVER UINT64_MAX

enum {
	EDM_ADDRESS_BYTES = 8, /* goes with a request or a first write chunk */
	EDM_RMW_BYTES = 24,    /* compare-and-swap: three 64-bit words */
	EDM_RMW_REPLY_BYTES = 8,
	EDM_CHUNK_PAPER = 256, /* bytes; what load and unloaded time assume */
	EDM_NODES_MAX = 1024,
	EDM_MESSAGE_MAX = 16 << 20, /* bytes; with a batch around it, less */
};

/* How a block of memory data is told from a block of a frame. */
enum edm_md {
	EDM_MD_DATA,	/* a data block between MS and MT: 8 bytes each */
	EDM_MD_CONTROL, /* a control block of its own: 7 bytes each */
	EDM_MD_BARE,	/* payload and nothing else, as the published simulator
			 * counts; no wire could carry it */
};

/* Who goes first where frames and memory both wait. */
enum edm_ip_policy {
	EDM_IP_FAIR,   /* block by block in turns, the paper's default */
	EDM_IP_MEMORY, /* frames get what memory leaves */
};

/* Blocks of one memory message or chunk with its header. */
static inline uint32_t edm_blocks(enum edm_md md, uint32_t payload_bytes)
{
	if (md == EDM_MD_CONTROL)
		return 1 + (payload_bytes + 6) / 7;
	if (md == EDM_MD_BARE)
		return (payload_bytes + 7) / 8;
	if (payload_bytes <= 2)
		return 1; /* MST */
	return 2 + (payload_bytes > 9 ? (payload_bytes - 9 + 7) / 8 : 0);
}

/* What goes with the first chunk of a write. */
static inline uint32_t edm_first_extra(enum edm_md md)
{
	return md == EDM_MD_BARE ? 0 : EDM_ADDRESS_BYTES;
}

/* 0 when the rate has no whole number of picoseconds per block and byte. */
static inline uint64_t edm_block_ps(uint32_t gbps)
{
	return gbps >= 1 && 8000 % gbps == 0 ? 64000 / gbps : 0;
}

#endif
