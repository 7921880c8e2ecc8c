/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stamp is what the frames of one flow with one opcode and length have in
 * common: everything up to the destination queue pair, and the ICRC register
 * after it. With it a frame is built or parsed by looking at the rest only. A
 * frame can have a stamp if it is IPv4, has no pad and no MAC, and its
 * extension headers are none, a RETH, an AETH, an immediate value, a RETH with
 * an immediate value, or those of a walk's request and answer.
 */
#ifndef AQ_WIRE_STAMP_H
#define AQ_WIRE_STAMP_H

#include "wire.h"

enum {
	/* Ethernet, IPv4, UDP and the first four bytes of the BTH. */
	WIRE_STAMP_HEAD = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES + 4,
	/* The shortest frame that has a stamp: no extension, no payload. */
	WIRE_STAMP_FRAME_MIN = WIRE_STAMP_HEAD + 8 + WIRE_ICRC_BYTES,
};

enum wire_stamp_ext {
	WIRE_STAMP_NONE = 1,
	WIRE_STAMP_RETH,
	WIRE_STAMP_AETH,
	WIRE_STAMP_IMM,
	WIRE_STAMP_RETH_IMM,
	WIRE_STAMP_WALK,      /* a WALKETH */
	WIRE_STAMP_AETH_WALK, /* an AETH, then a WALKETH */
};

struct wire_stamp {
	uint8_t head[WIRE_STAMP_HEAD];
	uint16_t frame_len; /* 0: no stamp */
	uint32_t register_after;
	uint16_t payload_len;
	uint8_t payload_at;
	uint8_t ext; /* enum wire_stamp_ext */
	uint8_t reserved[8];
};
STATIC_ASSERT(sizeof(struct wire_stamp) == 64, "one cache line");

/* Makes the stamp for packets like this one, whose payload is not read. False:
 * such packets have no stamp, and *s is left alone. */
bool wire_stamp_make(struct wire_stamp *s,
		     const struct wire_pkt *pkt) MUST_CHECK;

/* The fields that differ between frames of a stamp, as in the headers. */
struct wire_vary {
	uint32_t ecn_qpn; /* FECN 1 | BECN 1 | 0 | destination 24 */
	uint32_t ack_psn; /* AckReq 1 | 0 | PSN 24 */
	uint64_t va;	  /* RETH */
	uint32_t rkey;
	uint32_t dma_len;
	uint32_t syndrome_msn; /* AETH */
	be32 imm;
	const struct wire_walk *walk; /* WALKETH */
	const uint8_t *payload;	      /* NULL: in place already */
	/* The payload is of a frame, not of memory whose words others store: it
	 * may be copied in any steps. */
	bool is_frame;
};

/* The word of a packet that asks for an acknowledgement. */
static inline uint32_t wire_vary_ack(uint32_t psn)
{
	return 1u << 31 | (psn & WIRE_PSN_MASK);
}

static inline struct wire_vary wire_vary_of(const struct wire_pkt *pkt)
{
	return (struct wire_vary){
		.ecn_qpn = (uint32_t)pkt->fecn << 31 |
			   (uint32_t)pkt->becn << 30 |
			   (pkt->dest_qpn & WIRE_QPN_MASK),
		.ack_psn = pkt->ack_req ? wire_vary_ack(pkt->psn)
					: pkt->psn & WIRE_PSN_MASK,
		.va = pkt->va,
		.rkey = pkt->rkey,
		.dma_len = pkt->dma_len,
		.syndrome_msn =
			(uint32_t)pkt->syndrome << 24 | (pkt->msn & 0xffffff),
		.imm = pkt->imm,
		.walk = &pkt->walk,
		.payload = pkt->payload,
	};
}

/*
 * wire_build for a packet of this flow, opcode and length. Writes each byte of
 * the frame once and reads none back, except a payload that is in place.
 */
size_t wire_stamp_build(const struct wire_stamp *s, const struct wire_vary *v,
			uint8_t *frame);

/*
 * wire_parse for a frame that matches the stamp: `pkt` is what wire_parse made
 * of an earlier one, and gets what is different now. False: it does not match,
 * or its ICRC is wrong; wire_parse will say. *pkt is then as it was, or as of
 * another frame of the stamp. Each byte is read once, but for the payload.
 */
bool wire_stamp_parse(const struct wire_stamp *s, const uint8_t *frame,
		      size_t len_bytes, struct wire_pkt *pkt) MUST_CHECK;

#endif
