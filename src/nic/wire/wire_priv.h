/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Header layouts as they lie in a frame, shared by parse, build and ICRC. All
 * members are bytes, so a header may stand at any address.
 */
#ifndef AQ_WIRE_PRIV_H
#define AQ_WIRE_PRIV_H

#include "wire.h"

enum {
	WIRE_ETHERTYPE_IP4 = 0x0800,
	WIRE_ETHERTYPE_IP6 = 0x86dd,
	WIRE_IP_PROTO_UDP = 17,
	WIRE_IP4_VERSION_IHL = 0x45,
	WIRE_IP4_DF = 0x4000,
};

/*
 * The CRC register after the eight bytes 0xff that stand for the local route
 * header, which RoCEv2 does not have (IBTA annex A17).
 */
#define WIRE_ICRC_SEED 0xdebb20e3u

struct wire_eth {
	uint8_t dst[6];
	uint8_t src[6];
	be16 type;
};

struct wire_ip4 {
	uint8_t version_ihl;
	uint8_t tos;
	be16 total_len;
	be16 id;
	be16 frag;
	uint8_t ttl;
	uint8_t proto;
	be16 check;
	uint8_t src[4];
	uint8_t dst[4];
};

struct wire_ip6 {
	be32 version_class_flow;
	be16 payload_len;
	uint8_t next;
	uint8_t hop_limit;
	uint8_t src[16];
	uint8_t dst[16];
};

struct wire_udp {
	be16 src_port;
	be16 dst_port;
	be16 len;
	be16 check;
};

#define WIRE_BTH_SE	0x80u
#define WIRE_BTH_MIGREQ 0x40u
#define WIRE_BTH_TVER	0x0fu
#define WIRE_BTH_FECN	0x80000000u
#define WIRE_BTH_BECN	0x40000000u
#define WIRE_BTH_ACKREQ 0x80000000u
#define WIRE_BTH_MAC	0x40000000u /* of the reserved bits: ours */

struct wire_bth {
	uint8_t opcode;
	uint8_t flags; /* SE 1 | MigReq 1 | pad 2 | TVer 4 */
	be16 pkey;
	be32 ecn_qpn; /* FECN 1 | BECN 1 | reserved 6 | QPN 24 */
	be32 ack_psn; /* AckReq 1 | MAC 1 | reserved 6 | PSN 24 */
};

struct wire_deth {
	be32 qkey;
	be32 src_qpn;
};

struct wire_reth {
	be64 va;
	be32 rkey;
	be32 dma_len;
};

struct wire_atomic_eth {
	be64 va;
	be32 rkey;
	be64 swap_add;
	be64 compare;
};

/* Vendor: behind the AtomicETH of a masked compare-and-swap. */
struct wire_cmask {
	be64 swap_mask;
	be64 compare_mask;
};

/* Vendor: behind the AtomicETH of a masked fetch-and-add. */
struct wire_fmask {
	be64 boundary;
};

struct wire_aeth {
	be32 syndrome_msn; /* syndrome 8 | MSN 24 */
};

struct wire_atomic_ack {
	be64 original;
};

/* All fields that the ICRC treats specially are in these. */
struct wire_fixed4 {
	struct wire_ip4 ip;
	struct wire_udp udp;
	struct wire_bth bth;
};

struct wire_fixed6 {
	struct wire_ip6 ip;
	struct wire_udp udp;
	struct wire_bth bth;
};

STATIC_ASSERT(sizeof(struct wire_eth) == WIRE_ETH_BYTES, "Ethernet");
STATIC_ASSERT(sizeof(struct wire_ip4) == WIRE_IP4_BYTES, "IPv4");
STATIC_ASSERT(sizeof(struct wire_ip6) == WIRE_IP6_BYTES, "IPv6");
STATIC_ASSERT(sizeof(struct wire_udp) == WIRE_UDP_BYTES, "UDP");
STATIC_ASSERT(sizeof(struct wire_bth) == WIRE_BTH_BYTES, "BTH");
STATIC_ASSERT(sizeof(struct wire_deth) == 8, "DETH");
STATIC_ASSERT(sizeof(struct wire_reth) == 16, "RETH");
STATIC_ASSERT(sizeof(struct wire_atomic_eth) == 28, "AtomicETH");
STATIC_ASSERT(sizeof(struct wire_cmask) == 16, "compare and swap masks");
STATIC_ASSERT(sizeof(struct wire_fmask) == 8, "boundary mask");
STATIC_ASSERT(sizeof(struct wire_aeth) == 4, "AETH");
STATIC_ASSERT(sizeof(struct wire_atomic_ack) == 8, "AtomicAckETH");
STATIC_ASSERT(sizeof(struct wire_fixed4) == 40, "fixed headers, IPv4");
STATIC_ASSERT(sizeof(struct wire_fixed6) == 60, "fixed headers, IPv6");

/*
 * A switch on the path may change these fields, so the ICRC reads them as ones:
 * TOS or traffic class and flow label, TTL, checksums, FECN, BECN and the six
 * bits beside them.
 */
static inline void wire_icrc_mask_upper(struct wire_udp *udp,
					struct wire_bth *bth)
{
	udp->check = be16_put(0xffff);
	bth->ecn_qpn.b[0] = 0xff;
}

static inline void wire_icrc_mask4(struct wire_fixed4 *h)
{
	h->ip.tos = 0xff;
	h->ip.ttl = 0xff;
	h->ip.check = be16_put(0xffff);
	wire_icrc_mask_upper(&h->udp, &h->bth);
}

static inline void wire_icrc_mask6(struct wire_fixed6 *h)
{
	h->ip.version_class_flow = be32_put(0x6fffffff);
	h->ip.hop_limit = 0xff;
	wire_icrc_mask_upper(&h->udp, &h->bth);
}

/* Folds a ones' complement sum of 16- or 32-bit words. */
static inline uint32_t wire_fold16(uint64_t sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint32_t)((sum & 0xffff) + (sum >> 16));
}

/* Whether the checksum is right; the sum does not care for byte order. */
static inline bool wire_ip4_check_ok(const struct wire_ip4 *ip)
{
	uint32_t w[5];

	memcpy(w, ip, sizeof(w));
	return wire_fold16((uint64_t)w[0] + w[1] + w[2] + w[3] + w[4]) ==
	       0xffff;
}

#endif
