/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoCEv2 packets: one opcode table, one parsed form, parse and build as exact
 * inverses. Pure functions on bounded bytes; no allocation, no I/O.
 */
#ifndef AQ_WIRE_H
#define AQ_WIRE_H

#include "base/atomic_op.h"
#include "base/base.h"
#include "base/bytes.h"
#include "walk_wire.h"

enum {
	WIRE_UDP_PORT = 4791,
	WIRE_ETH_BYTES = 14,
	WIRE_IP4_BYTES = 20,
	WIRE_IP6_BYTES = 40,
	WIRE_UDP_BYTES = 8,
	WIRE_BTH_BYTES = 12,
	WIRE_ICRC_BYTES = 4,
	WIRE_GRH_BYTES = 40,
	WIRE_MTU_MAX = 4096,
	/* Largest header stack: Ethernet, IPv6, UDP, BTH, masked atomics. */
	WIRE_HDR_MAX = WIRE_ETH_BYTES + WIRE_IP6_BYTES + WIRE_UDP_BYTES +
		       WIRE_BTH_BYTES + 44,
	WIRE_MAC_BYTES = 8,
	WIRE_TAIL_MAX = 3 + WIRE_MAC_BYTES + WIRE_ICRC_BYTES, /* pad first */
	WIRE_FRAME_MAX = WIRE_HDR_MAX + WIRE_MTU_MAX + WIRE_TAIL_MAX,
};

/* ECN, the low bits of TOS or traffic class (RFC 3168). */
enum wire_ecn {
	WIRE_ECN_MASK = 3,
	WIRE_ECT0 = 2, /* the sender reacts to marks */
	WIRE_CE = 3,   /* marked: congestion on the way */
};

/* Room for a frame with this much payload, pad and ICRC included; at most
 * WIRE_FRAME_MAX. */
static inline size_t wire_frame_bound(size_t payload_bytes)
{
	return WIRE_FRAME_MAX - WIRE_MTU_MAX + payload_bytes;
}

#define WIRE_PSN_MASK 0xffffffu
#define WIRE_QPN_MASK 0xffffffu

/* Packet numbers live on a circle of 2^24; < 0 means that a comes before b. */
static inline int32_t wire_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t wire_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & WIRE_PSN_MASK;
}

/* Is `psn` one of [first, last]? */
static inline bool wire_psn_is_within(uint32_t psn, uint32_t first,
				      uint32_t last)
{
	return ((psn - first) & WIRE_PSN_MASK) <=
	       ((last - first) & WIRE_PSN_MASK);
}

enum wire_transport {
	WIRE_RC = 1,
	WIRE_UC,
	WIRE_UD,
};

/* What a packet belongs to. */
enum wire_kind {
	WIRE_SEND = 1,
	WIRE_WRITE,
	WIRE_READ,
	WIRE_ATOMIC,
	WIRE_READ_RESP,
	WIRE_ACK,
	WIRE_ATOMIC_ACK,
	WIRE_WALK,
	WIRE_WALK_ANSWER,
	WIRE_WALK_ON,
	WIRE_WALK_BACK,
};

enum wire_op_flags {
	WIRE_OP_FIRST = 1u << 0, /* starts a message: FIRST or ONLY */
	WIRE_OP_LAST = 1u << 1,	 /* ends a message: LAST or ONLY */
	WIRE_OP_RESPONSE = 1u << 2,
	WIRE_OP_PAYLOAD = 1u << 3,
	WIRE_OP_RECV = 1u << 4, /* its last packet consumes a receive */
	WIRE_OP_ADD = 1u << 5, /* the atomic adds; else it compares and swaps */
	/* Extension headers, in the order in which they stand. */
	WIRE_OP_DETH = 1u << 8,
	WIRE_OP_RETH = 1u << 9,
	WIRE_OP_ATOMIC = 1u << 10,
	WIRE_OP_CMASK = 1u << 11, /* compare and swap masks (vendor) */
	WIRE_OP_FMASK = 1u << 12, /* field boundary mask (vendor) */
	WIRE_OP_AETH = 1u << 13,
	WIRE_OP_ATOMIC_ACK = 1u << 14,
	WIRE_OP_IMM = 1u << 15,
	WIRE_OP_INV = 1u << 16,
	WIRE_OP_WALK = 1u << 17, /* WALKETH (vendor) */
};

struct wire_opcode {
	const char *name; /* NULL: no such opcode */
	uint8_t transport;
	uint8_t kind;
	uint8_t ext_bytes; /* extension headers behind the BTH */
	uint32_t flags;
};

extern const struct wire_opcode wire_opcodes[256];

enum wire_op {
	WIRE_RC_SEND_FIRST = 0x00,
	WIRE_RC_SEND_MIDDLE = 0x01,
	WIRE_RC_SEND_LAST = 0x02,
	WIRE_RC_SEND_LAST_IMM = 0x03,
	WIRE_RC_SEND_ONLY = 0x04,
	WIRE_RC_SEND_ONLY_IMM = 0x05,
	WIRE_RC_WRITE_FIRST = 0x06,
	WIRE_RC_WRITE_MIDDLE = 0x07,
	WIRE_RC_WRITE_LAST = 0x08,
	WIRE_RC_WRITE_LAST_IMM = 0x09,
	WIRE_RC_WRITE_ONLY = 0x0a,
	WIRE_RC_WRITE_ONLY_IMM = 0x0b,
	WIRE_RC_READ_REQ = 0x0c,
	WIRE_RC_READ_RESP_FIRST = 0x0d,
	WIRE_RC_READ_RESP_MIDDLE = 0x0e,
	WIRE_RC_READ_RESP_LAST = 0x0f,
	WIRE_RC_READ_RESP_ONLY = 0x10,
	WIRE_RC_ACK = 0x11,
	WIRE_RC_ATOMIC_ACK = 0x12,
	WIRE_RC_CAS = 0x13,
	WIRE_RC_FAA = 0x14,
	WIRE_RC_SEND_LAST_INV = 0x16,
	WIRE_RC_SEND_ONLY_INV = 0x17,
	WIRE_UD_SEND_ONLY = 0x64,
	WIRE_UD_SEND_ONLY_IMM = 0x65,
	WIRE_RC_MASKED_CAS = 0xc0,
	WIRE_RC_MASKED_FAA = 0xc1,
	WIRE_RC_WALK = 0xc2,
	WIRE_RC_WALK_ANSWER = 0xc3,
	WIRE_UD_WALK_ON = 0xc4,
	WIRE_UD_WALK_BACK = 0xc5,
};

enum wire_syndrome {
	WIRE_ACK_UNLIMITED = 0x1f, /* ACK, credits not counted */
	WIRE_RNR_NAK = 0x20,	   /* | timer code */
	WIRE_NAK_PSN = 0x60,
	WIRE_NAK_INVALID = 0x61,
	WIRE_NAK_ACCESS = 0x62,
	WIRE_NAK_OP = 0x63,
};

static inline bool wire_syndrome_is_ack(uint8_t s)
{
	return (s & 0xe0) == 0;
}

static inline bool wire_syndrome_is_rnr(uint8_t s)
{
	return (s & 0xe0) == WIRE_RNR_NAK;
}

/* A RoCEv2 packet in host form. */
struct wire_pkt {
	/* Ethernet, IP and UDP. IPv4 addresses are IPv4-mapped. */
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
	uint8_t tos; /* IPv4 TOS or IPv6 traffic class; ECN in bits 0-1 */
	uint8_t ttl;
	uint16_t ip_id; /* IPv4 only */
	uint16_t src_port;
	/* BTH */
	uint8_t opcode;
	uint8_t pad;
	bool solicited;
	bool mig_req;
	bool ack_req;
	bool fecn;
	bool becn;
	uint16_t pkey;
	uint32_t dest_qpn;
	uint32_t psn;
	/* Extensions; only those of the opcode are meaningful. */
	uint8_t syndrome;
	uint32_t msn;
	uint32_t rkey; /* RETH, AtomicETH or IETH */
	uint32_t dma_len;
	uint64_t va;
	struct atomic_op atomic;
	uint64_t original; /* AtomicAckETH */
	be32 imm;
	uint32_t qkey;
	uint32_t src_qpn;
	/*
	 * A message authentication code between pad and ICRC, said by the bit
	 * behind AckReq, which RoCEv2 reserves. Wire carries it and knows
	 * nothing of keys (docs/decisions/0015-packet-authentication.md).
	 */
	bool has_mac;
	uint64_t mac;
	const uint8_t *payload; /* inside the frame that was parsed */
	uint32_t payload_len;
	struct wire_walk walk; /* an extension, too, and seldom looked at */
};

/* Why a frame is not a packet; each has its counter in the NIC. */
enum wire_error {
	WIRE_OK = 0,
	WIRE_E_SHORT,	 /* shorter than its headers, or its MAC, say */
	WIRE_E_NOT_ROCE, /* another ethertype, protocol or port */
	WIRE_E_IP,	 /* bad version, header length, checksum or fragment */
	WIRE_E_LENGTH,	 /* IP and UDP lengths disagree */
	WIRE_E_ICRC,
	WIRE_E_VERSION, /* BTH transport version */
	WIRE_E_OPCODE,	/* unknown opcode */
	/* Pad or payload where the opcode has none, payload and pad not a
	 * multiple of four bytes, or more payload than the largest MTU. */
	WIRE_E_PAYLOAD,
};

/*
 * Parses and checks one whole Ethernet frame. Headers are read once into a
 * local copy, so that a peer that can write the frame meanwhile cannot change
 * what was checked; the payload stays in the frame. Bytes behind the IP packet
 * (Ethernet padding) are ignored. On success every member of *pkt is written,
 * those that the opcode does not have as zero; else *pkt is left alone.
 */
enum wire_error wire_parse(const uint8_t *frame, size_t len_bytes,
			   struct wire_pkt *pkt);

/* Bytes in front of the payload for this opcode and address family. */
size_t wire_header_bytes(uint8_t opcode, bool ipv4);

static inline bool wire_is_ipv4(const uint8_t ip[16])
{
	static const uint8_t mapped[12] = {0, 0, 0, 0, 0,    0,
					   0, 0, 0, 0, 0xff, 0xff};

	return memcmp(ip, mapped, sizeof(mapped)) == 0;
}

/*
 * Writes headers, pad and ICRC around a payload of pkt->payload_len bytes. The
 * payload is expected at frame + wire_header_bytes() already, or copied there
 * when pkt->payload points elsewhere (NULL: in place). `frame` has room for
 * WIRE_FRAME_MAX bytes. Returns the frame's length.
 *
 * The pad follows from payload_len; pkt->pad is not read. Both addresses are of
 * one family, which decides between IPv4 and IPv6. An unknown opcode, or a
 * payload that the opcode cannot carry, is a bug of the caller.
 */
size_t wire_build(const struct wire_pkt *pkt, uint8_t *frame);

/*
 * What a MAC covers beside the payload: the addresses, the packet's number in
 * 64 bits, and the BTH and its extensions as built, without fields that
 * networks may change. Returns how much of `head` was written, a multiple of
 * eight.
 */
enum {
	WIRE_MAC_HEAD_MAX = 16 + 16 + 8 + 8 + WIRE_BTH_BYTES + 44,
};
STATIC_ASSERT(WIRE_MAC_HEAD_MAX % 8 == 0, "whole words");
size_t wire_mac_head(const struct wire_pkt *pkt, uint64_t number,
		     uint8_t head[WIRE_MAC_HEAD_MAX]);

/*
 * The ICRC of the IP packet (from its IP header to the end of the pad), which
 * has at least its IP, UDP and BTH headers. Stored little-endian in a frame.
 */
uint32_t wire_icrc(const uint8_t *ip, size_t len_bytes);

/*
 * How the IPv4 identification changes the ICRC (icrc_id.c), for ports that
 * cannot choose or see it. `ip_bytes` is the total length of the packet with
 * its ICRC, a multiple of four.
 */
enum {
	WIRE_ID_WORDS = (WIRE_FRAME_MAX - WIRE_ETH_BYTES) / 4 + 1,
};

struct wire_id_table {
	uint32_t power[WIRE_ID_WORDS];
	uint32_t inverse[WIRE_ID_WORDS];
};

void wire_id_table_init(struct wire_id_table *t);
/* The value to xor into the ICRC of the same packet with identification 0. */
uint32_t wire_id_delta(const struct wire_id_table *t, size_t ip_bytes,
		       uint16_t id);
/* The identification that explains this difference. False: none, so the packet
 * is damaged. A damaged packet is explained once in 2^16. */
bool wire_id_solve(const struct wire_id_table *t, size_t ip_bytes,
		   uint32_t delta, uint16_t *id) MUST_CHECK;

/* The headers around the payload of a UDP datagram. */
struct wire_outer {
	uint8_t dst_mac[6];
	uint8_t src_mac[6];
	uint8_t src_ip[16];
	uint8_t dst_ip[16];
	uint8_t tos;
	uint8_t ttl;
	uint16_t src_port;
	uint16_t ip_id; /* IPv4 only */
};

static inline size_t wire_outer_bytes(bool ipv4)
{
	return WIRE_ETH_BYTES + (ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES) +
	       WIRE_UDP_BYTES;
}

/* Writes Ethernet, IP and UDP headers in front of a datagram's payload, where
 * wire_outer_bytes() of room are. Returns where the frame starts. */
uint8_t *wire_wrap(const struct wire_outer *outer, uint8_t *payload,
		   size_t len_bytes);

/* The destination queue pair of the BTH at the start of a datagram's payload,
 * which has at least 12 bytes. */
static inline uint32_t wire_peek_qpn(const uint8_t *payload)
{
	return (uint32_t)payload[5] << 16 | (uint32_t)payload[6] << 8 |
	       payload[7];
}

/*
 * The 40 bytes that precede a UD payload in the receive buffer: the IPv6
 * header, or 20 bytes of zero and the IPv4 header. The frame was parsed before.
 */
void wire_grh(const uint8_t *frame, uint8_t grh[WIRE_GRH_BYTES]);

#endif
