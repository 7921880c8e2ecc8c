/* SPDX-License-Identifier: Apache-2.0 */
/* From a packet in host form to a frame: the inverse of packet_parse.c. */
#include "base/crc.h"
#include "base/live.h"
#include "wire_priv.h"

static void put_udp(struct wire_udp *udp, const struct wire_pkt *pkt,
		    size_t udp_bytes)
{
	udp->src_port = be16_put(pkt->src_port);
	udp->dst_port = be16_put(WIRE_UDP_PORT);
	udp->len = be16_put((uint16_t)udp_bytes);
	udp->check = be16_put(0);
}

static be32 ecn_qpn(const struct wire_pkt *pkt)
{
	return be32_put((uint32_t)pkt->fecn << 31 | (uint32_t)pkt->becn << 30 |
			(pkt->dest_qpn & WIRE_QPN_MASK));
}

static void put_bth(struct wire_bth *bth, const struct wire_pkt *pkt,
		    uint32_t pad)
{
	bth->opcode = pkt->opcode;
	bth->flags = (uint8_t)((uint32_t)pkt->solicited << 7 |
			       (uint32_t)pkt->mig_req << 6 | pad << 4);
	bth->pkey = be16_put(pkt->pkey);
	bth->ecn_qpn = ecn_qpn(pkt);
	bth->ack_psn = be32_put((uint32_t)pkt->ack_req << 31 |
				(uint32_t)pkt->has_mac << 30 |
				(pkt->psn & WIRE_PSN_MASK));
}

static uint8_t *put_atomic(uint8_t *at, uint32_t flags,
			   const struct wire_pkt *pkt)
{
	const struct atomic_op *op = &pkt->atomic;
	struct wire_atomic_eth *eth = (void *)at;

	eth->va = be64_put(pkt->va);
	eth->rkey = be32_put(pkt->rkey);
	eth->swap_add = be64_put(op->swap_add);
	eth->compare = be64_put(flags & WIRE_OP_ADD ? 0 : op->compare);
	at += sizeof(*eth);
	if (flags & WIRE_OP_CMASK) {
		struct wire_cmask *mask = (void *)at;

		mask->swap_mask = be64_put(op->swap_mask);
		mask->compare_mask = be64_put(op->compare_mask);
		at += sizeof(*mask);
	}
	if (flags & WIRE_OP_FMASK) {
		struct wire_fmask *mask = (void *)at;

		mask->boundary = be64_put(op->boundary);
		at += sizeof(*mask);
	}
	return at;
}

static void put_extensions(uint8_t *at, uint32_t flags,
			   const struct wire_pkt *pkt)
{
	if (flags & WIRE_OP_DETH) {
		struct wire_deth *deth = (void *)at;

		deth->qkey = be32_put(pkt->qkey);
		deth->src_qpn = be32_put(pkt->src_qpn & WIRE_QPN_MASK);
		at += sizeof(*deth);
	}
	if (flags & WIRE_OP_RETH) {
		struct wire_reth *reth = (void *)at;

		reth->va = be64_put(pkt->va);
		reth->rkey = be32_put(pkt->rkey);
		reth->dma_len = be32_put(pkt->dma_len);
		at += sizeof(*reth);
	}
	if (flags & WIRE_OP_ATOMIC)
		at = put_atomic(at, flags, pkt);
	if (flags & WIRE_OP_AETH) {
		struct wire_aeth *aeth = (void *)at;

		aeth->syndrome_msn = be32_put((uint32_t)pkt->syndrome << 24 |
					      (pkt->msn & 0xffffff));
		at += sizeof(*aeth);
	}
	if (flags & WIRE_OP_ATOMIC_ACK) {
		struct wire_atomic_ack *ack = (void *)at;

		ack->original = be64_put(pkt->original);
		at += sizeof(*ack);
	}
	if (flags & WIRE_OP_IMM) {
		memcpy(at, &pkt->imm, sizeof(pkt->imm));
		at += sizeof(pkt->imm);
	}
	if (flags & WIRE_OP_INV) {
		be32 rkey = be32_put(pkt->rkey);

		memcpy(at, &rkey, sizeof(rkey));
	}
	if (flags & WIRE_OP_WALK) {
		struct wire_walk_eth eth = wire_walk_put(&pkt->walk);

		memcpy(at, &eth, sizeof(eth));
	}
}

/*
 * From the values and not from the header: reading back what was just stored
 * in smaller pieces stalls the processor, which took 10 ns here.
 */
static uint16_t ip4_check(const struct wire_pkt *pkt, size_t ip_bytes)
{
	be32 src;
	be32 dst;
	uint64_t sum;

	memcpy(&src, pkt->src_ip + 12, sizeof(src));
	memcpy(&dst, pkt->dst_ip + 12, sizeof(dst));
	sum = (uint64_t)be32_get(src) + be32_get(dst);
	sum += (uint32_t)WIRE_IP4_VERSION_IHL << 8 | pkt->tos;
	sum += ip_bytes + pkt->ip_id + WIRE_IP4_DF;
	sum += (uint32_t)pkt->ttl << 8 | WIRE_IP_PROTO_UDP;
	return (uint16_t)~wire_fold16(sum);
}

/*
 * Headers are written into the frame as the ICRC reads them, the ICRC runs once
 * over everything, and the masked fields get their values last. One run is a
 * third cheaper than two for a small packet (22 ns against 34 ns for 40 + 64
 * bytes with isa-l on an EPYC), because its cost is mostly per call.
 */
static uint32_t put_ip4(uint8_t *frame, const struct wire_pkt *pkt,
			uint32_t pad, size_t ip_bytes)
{
	struct wire_fixed4 *h = (void *)(frame + WIRE_ETH_BYTES);
	uint32_t state;

	put_bth(&h->bth, pkt, pad);
	put_udp(&h->udp, pkt, ip_bytes - WIRE_IP4_BYTES);
	h->ip.version_ihl = WIRE_IP4_VERSION_IHL;
	h->ip.total_len = be16_put((uint16_t)ip_bytes);
	h->ip.id = be16_put(pkt->ip_id);
	h->ip.frag = be16_put(WIRE_IP4_DF);
	h->ip.proto = WIRE_IP_PROTO_UDP;
	memcpy(h->ip.src, pkt->src_ip + 12, sizeof(h->ip.src));
	memcpy(h->ip.dst, pkt->dst_ip + 12, sizeof(h->ip.dst));
	wire_icrc_mask4(h);
	state = crc32_raw(WIRE_ICRC_SEED, h, ip_bytes - WIRE_ICRC_BYTES);

	h->ip.tos = pkt->tos;
	h->ip.ttl = pkt->ttl;
	h->ip.check = be16_put(ip4_check(pkt, ip_bytes));
	h->udp.check = be16_put(0);
	h->bth.ecn_qpn = ecn_qpn(pkt);
	return state;
}

static uint32_t put_ip6(uint8_t *frame, const struct wire_pkt *pkt,
			uint32_t pad, size_t ip_bytes)
{
	struct wire_fixed6 *h = (void *)(frame + WIRE_ETH_BYTES);
	size_t udp_bytes = ip_bytes - WIRE_IP6_BYTES;
	uint32_t state;

	put_bth(&h->bth, pkt, pad);
	put_udp(&h->udp, pkt, udp_bytes);
	h->ip.payload_len = be16_put((uint16_t)udp_bytes);
	h->ip.next = WIRE_IP_PROTO_UDP;
	memcpy(h->ip.src, pkt->src_ip, sizeof(h->ip.src));
	memcpy(h->ip.dst, pkt->dst_ip, sizeof(h->ip.dst));
	wire_icrc_mask6(h);
	state = crc32_raw(WIRE_ICRC_SEED, h, ip_bytes - WIRE_ICRC_BYTES);

	h->ip.version_class_flow =
		be32_put(6u << 28 | (uint32_t)pkt->tos << 20);
	h->ip.hop_limit = pkt->ttl;
	h->udp.check = be16_put(0);
	h->bth.ecn_qpn = ecn_qpn(pkt);
	return state;
}

/* The length comes before what has it: no two packets have the same bytes in
 * different places. */
size_t wire_mac_head(const struct wire_pkt *pkt, uint64_t number,
		     uint8_t head[WIRE_MAC_HEAD_MAX])
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	struct wire_pkt like = *pkt;
	be64 words[2] = {be64_put(number), be64_put(pkt->payload_len)};

	memset(head, 0, WIRE_MAC_HEAD_MAX);
	memcpy(head, pkt->src_ip, 16);
	memcpy(head + 16, pkt->dst_ip, 16);
	memcpy(head + 32, words, sizeof(words));
	like.fecn = like.becn = false;
	put_bth((struct wire_bth *)(void *)(head + 48), &like, 0);
	put_extensions(head + 48 + WIRE_BTH_BYTES, op->flags, pkt);
	return align_up(48 + WIRE_BTH_BYTES + (size_t)op->ext_bytes, 8);
}

HOT size_t wire_build(const struct wire_pkt *pkt, uint8_t *frame)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	bool ipv4 = wire_is_ipv4(pkt->dst_ip);
	struct wire_eth *eth = (void *)frame;
	size_t hdr_bytes = wire_header_bytes(pkt->opcode, ipv4);
	uint8_t *payload = frame + hdr_bytes;
	uint32_t pad = -pkt->payload_len & 3;
	size_t mac_at = hdr_bytes + pkt->payload_len + pad;
	size_t icrc_at = mac_at + (pkt->has_mac ? WIRE_MAC_BYTES : 0);
	size_t len_bytes = icrc_at + WIRE_ICRC_BYTES;
	uint32_t state;
	le32 icrc;

	ASSERT(op->name);
	ASSERT(wire_is_ipv4(pkt->src_ip) == ipv4);
	ASSERT(pkt->payload_len <=
	       (op->flags & WIRE_OP_PAYLOAD ? WIRE_MTU_MAX : 0));

	/* First of all, because the payload may lie in this very frame. */
	if (pkt->payload && pkt->payload != payload)
		live_move(payload, pkt->payload, pkt->payload_len);
	/* The pad, and what is left of four bytes is of what follows. */
	memset(payload + pkt->payload_len, 0, 4);
	if (UNLIKELY(pkt->has_mac)) {
		le64 mac = le64_put(pkt->mac);

		memcpy(frame + mac_at, &mac, sizeof(mac));
	}

	memcpy(eth->dst, pkt->dst_mac, sizeof(eth->dst));
	memcpy(eth->src, pkt->src_mac, sizeof(eth->src));
	eth->type = be16_put(ipv4 ? WIRE_ETHERTYPE_IP4 : WIRE_ETHERTYPE_IP6);
	put_extensions(payload - op->ext_bytes, op->flags, pkt);
	if (ipv4)
		state = put_ip4(frame, pkt, pad, len_bytes - WIRE_ETH_BYTES);
	else
		state = put_ip6(frame, pkt, pad, len_bytes - WIRE_ETH_BYTES);
	icrc = le32_put(~state);
	memcpy(frame + icrc_at, &icrc, sizeof(icrc));
	return len_bytes;
}
