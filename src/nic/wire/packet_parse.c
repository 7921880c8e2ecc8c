/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a frame to a packet in host form. Says what is wrong with a frame and
 * leaves it to the NIC whether the packet makes sense for a queue pair.
 */
#include "base/crc.h"
#include "wire_priv.h"

/*
 * A frame up to this size is copied whole, of a larger one only the headers:
 * then the ICRC of a small packet is one run instead of two, and the cost of a
 * short run is mostly that of the call.
 */
enum {
	SMALL_FRAME_BYTES = 192,
};

STATIC_ASSERT((int)SMALL_FRAME_BYTES >= (int)WIRE_HDR_MAX, "headers fit");

/* A frame while it is taken apart. Offsets count from its first byte. */
struct parse {
	const uint8_t *frame;
	size_t frame_bytes;
	size_t copied_bytes; /* of the frame that are in hdr */
	size_t udp_at;
	size_t end; /* where the IP packet ends; the ICRC is its tail */
	bool ipv4;
	uint8_t tos;
	uint8_t ttl;
	uint8_t ecn; /* of the BTH: FECN, BECN and reserved */
	uint8_t hdr[SMALL_FRAME_BYTES];
};

static void *hdr_at(struct parse *p, size_t at)
{
	return p->hdr + at;
}

static enum wire_error parse_ip4(struct parse *p)
{
	const struct wire_ip4 *ip = hdr_at(p, WIRE_ETH_BYTES);
	uint32_t total_bytes;

	if (UNLIKELY(p->copied_bytes < WIRE_ETH_BYTES + sizeof(*ip)))
		return WIRE_E_SHORT;
	/* No RoCEv2 sender uses options; without them offsets are fixed. */
	if (UNLIKELY(ip->version_ihl != WIRE_IP4_VERSION_IHL))
		return WIRE_E_IP;
	if (UNLIKELY(!wire_ip4_check_ok(ip)))
		return WIRE_E_IP;
	/* All but DF must be clear: reserved bit, MF and offset. */
	if (UNLIKELY(be16_get(ip->frag) & ~WIRE_IP4_DF))
		return WIRE_E_IP;
	if (UNLIKELY(ip->proto != WIRE_IP_PROTO_UDP))
		return WIRE_E_NOT_ROCE;
	total_bytes = be16_get(ip->total_len);
	if (UNLIKELY(total_bytes < WIRE_IP4_BYTES + WIRE_UDP_BYTES))
		return WIRE_E_LENGTH;
	p->ipv4 = true;
	p->tos = ip->tos;
	p->ttl = ip->ttl;
	p->udp_at = WIRE_ETH_BYTES + WIRE_IP4_BYTES;
	p->end = WIRE_ETH_BYTES + total_bytes;
	return p->end > p->frame_bytes ? WIRE_E_SHORT : WIRE_OK;
}

static enum wire_error parse_ip6(struct parse *p)
{
	const struct wire_ip6 *ip = hdr_at(p, WIRE_ETH_BYTES);
	uint32_t version_class;
	uint32_t payload_bytes;

	if (UNLIKELY(p->copied_bytes < WIRE_ETH_BYTES + sizeof(*ip)))
		return WIRE_E_SHORT;
	version_class = be32_get(ip->version_class_flow) >> 20;
	if (UNLIKELY(version_class >> 8 != 6))
		return WIRE_E_IP;
	/*
	 * In host form these mean IPv4; a peer must not pass for an IPv4 one by
	 * writing them into an IPv6 header, where they have no business.
	 */
	if (UNLIKELY(wire_is_ipv4(ip->src) || wire_is_ipv4(ip->dst)))
		return WIRE_E_IP;
	if (UNLIKELY(ip->next != WIRE_IP_PROTO_UDP))
		return WIRE_E_NOT_ROCE;
	payload_bytes = be16_get(ip->payload_len);
	if (UNLIKELY(payload_bytes < WIRE_UDP_BYTES))
		return WIRE_E_LENGTH;
	p->ipv4 = false;
	p->tos = (uint8_t)version_class;
	p->ttl = ip->hop_limit;
	p->udp_at = WIRE_ETH_BYTES + WIRE_IP6_BYTES;
	p->end = p->udp_at + payload_bytes;
	return p->end > p->frame_bytes ? WIRE_E_SHORT : WIRE_OK;
}

/*
 * A UDP checksum is not verified, whatever its value: senders of RoCEv2 put
 * zero there, the ICRC covers every byte that it covers and detects more, and
 * it would cost a second pass over the payload.
 */
static enum wire_error parse_udp(struct parse *p)
{
	const struct wire_udp *udp = hdr_at(p, p->udp_at);
	size_t udp_bytes = p->end - p->udp_at;

	if (UNLIKELY(be16_get(udp->dst_port) != WIRE_UDP_PORT))
		return WIRE_E_NOT_ROCE;
	if (UNLIKELY(be16_get(udp->len) != udp_bytes))
		return WIRE_E_LENGTH;
	if (UNLIKELY(udp_bytes <
		     WIRE_UDP_BYTES + WIRE_BTH_BYTES + WIRE_ICRC_BYTES))
		return WIRE_E_SHORT;
	return WIRE_OK;
}

/*
 * Runs over the copied headers, which are masked for it, and over the rest in
 * the frame: what is believed later is what was checked here.
 */
static enum wire_error check_icrc(struct parse *p)
{
	size_t icrc_at = p->end - WIRE_ICRC_BYTES;
	size_t in_copy = u64_min(icrc_at, p->copied_bytes);
	struct wire_bth *bth = hdr_at(p, p->udp_at + WIRE_UDP_BYTES);
	uint32_t state;
	le32 icrc;

	p->ecn = bth->ecn_qpn.b[0];
	if (p->ipv4)
		wire_icrc_mask4(hdr_at(p, WIRE_ETH_BYTES));
	else
		wire_icrc_mask6(hdr_at(p, WIRE_ETH_BYTES));
	state = crc32_raw(WIRE_ICRC_SEED, hdr_at(p, WIRE_ETH_BYTES),
			  in_copy - WIRE_ETH_BYTES);
	if (icrc_at > in_copy)
		state = crc32_raw(state, p->frame + in_copy, icrc_at - in_copy);
	memcpy(&icrc, p->frame + icrc_at, sizeof(icrc));
	return le32_get(icrc) == (uint32_t)~state ? WIRE_OK : WIRE_E_ICRC;
}

/* Member by member: clearing the whole structure by memset becomes a string
 * instruction, which takes longer than all the rest (22 ns per READ). */
static void clear_extensions(struct wire_pkt *pkt)
{
	pkt->syndrome = 0;
	pkt->msn = 0;
	pkt->rkey = 0;
	pkt->dma_len = 0;
	pkt->va = 0;
	memset(&pkt->atomic, 0, sizeof(pkt->atomic));
	pkt->original = 0;
	pkt->imm = be32_put(0);
	pkt->qkey = 0;
	pkt->src_qpn = 0;
	pkt->mac = 0;
	memset(&pkt->walk, 0, sizeof(pkt->walk));
}

static void read_lower(struct parse *p, struct wire_pkt *pkt)
{
	const struct wire_eth *eth = hdr_at(p, 0);
	const struct wire_udp *udp = hdr_at(p, p->udp_at);

	memcpy(pkt->dst_mac, eth->dst, sizeof(pkt->dst_mac));
	memcpy(pkt->src_mac, eth->src, sizeof(pkt->src_mac));
	if (p->ipv4) {
		static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
		const struct wire_ip4 *ip = hdr_at(p, WIRE_ETH_BYTES);

		memcpy(pkt->src_ip, mapped, sizeof(mapped));
		memcpy(pkt->src_ip + 12, ip->src, sizeof(ip->src));
		memcpy(pkt->dst_ip, mapped, sizeof(mapped));
		memcpy(pkt->dst_ip + 12, ip->dst, sizeof(ip->dst));
		pkt->ip_id = be16_get(ip->id);
	} else {
		const struct wire_ip6 *ip = hdr_at(p, WIRE_ETH_BYTES);

		memcpy(pkt->src_ip, ip->src, sizeof(ip->src));
		memcpy(pkt->dst_ip, ip->dst, sizeof(ip->dst));
		pkt->ip_id = 0;
	}
	pkt->tos = p->tos;
	pkt->ttl = p->ttl;
	pkt->src_port = be16_get(udp->src_port);
}

static void read_bth(struct parse *p, struct wire_pkt *pkt)
{
	const struct wire_bth *bth = hdr_at(p, p->udp_at + WIRE_UDP_BYTES);
	uint32_t ack_psn = be32_get(bth->ack_psn);

	pkt->opcode = bth->opcode;
	pkt->pad = bth->flags >> 4 & 3;
	pkt->solicited = bth->flags & WIRE_BTH_SE;
	pkt->mig_req = bth->flags & WIRE_BTH_MIGREQ;
	pkt->ack_req = ack_psn & WIRE_BTH_ACKREQ;
	pkt->has_mac = ack_psn & WIRE_BTH_MAC;
	pkt->fecn = p->ecn & WIRE_BTH_FECN >> 24;
	pkt->becn = p->ecn & WIRE_BTH_BECN >> 24;
	pkt->pkey = be16_get(bth->pkey);
	pkt->dest_qpn = be32_get(bth->ecn_qpn) & WIRE_QPN_MASK;
	pkt->psn = ack_psn & WIRE_PSN_MASK;
}

/*
 * Plain atomics become masked ones that touch every bit. The compare field of
 * an addition is not read: rxe sends what its memory held.
 */
static const uint8_t *read_atomic(const uint8_t *at, uint32_t flags,
				  struct wire_pkt *pkt)
{
	const struct wire_atomic_eth *eth = (const void *)at;
	struct atomic_op *op = &pkt->atomic;

	pkt->va = be64_get(eth->va);
	pkt->rkey = be32_get(eth->rkey);
	op->is_add = flags & WIRE_OP_ADD;
	op->swap_add = be64_get(eth->swap_add);
	op->compare = op->is_add ? 0 : be64_get(eth->compare);
	op->swap_mask = ~UINT64_C(0);
	op->compare_mask = ~UINT64_C(0);
	at += sizeof(*eth);
	if (flags & WIRE_OP_CMASK) {
		const struct wire_cmask *mask = (const void *)at;

		op->swap_mask = be64_get(mask->swap_mask);
		op->compare_mask = be64_get(mask->compare_mask);
		at += sizeof(*mask);
	}
	if (flags & WIRE_OP_FMASK) {
		const struct wire_fmask *mask = (const void *)at;

		op->boundary = be64_get(mask->boundary);
		at += sizeof(*mask);
	}
	return at;
}

static void read_extensions(const uint8_t *at, uint32_t flags,
			    struct wire_pkt *pkt)
{
	if (flags & WIRE_OP_DETH) {
		const struct wire_deth *deth = (const void *)at;

		pkt->qkey = be32_get(deth->qkey);
		pkt->src_qpn = be32_get(deth->src_qpn) & WIRE_QPN_MASK;
		at += sizeof(*deth);
	}
	if (flags & WIRE_OP_RETH) {
		const struct wire_reth *reth = (const void *)at;

		pkt->va = be64_get(reth->va);
		pkt->rkey = be32_get(reth->rkey);
		pkt->dma_len = be32_get(reth->dma_len);
		at += sizeof(*reth);
	}
	if (flags & WIRE_OP_ATOMIC)
		at = read_atomic(at, flags, pkt);
	if (flags & WIRE_OP_AETH) {
		const struct wire_aeth *aeth = (const void *)at;
		uint32_t v = be32_get(aeth->syndrome_msn);

		pkt->syndrome = (uint8_t)(v >> 24);
		pkt->msn = v & 0xffffff;
		at += sizeof(*aeth);
	}
	if (flags & WIRE_OP_ATOMIC_ACK) {
		const struct wire_atomic_ack *ack = (const void *)at;

		pkt->original = be64_get(ack->original);
		at += sizeof(*ack);
	}
	if (flags & WIRE_OP_IMM) {
		memcpy(&pkt->imm, at, sizeof(pkt->imm));
		at += sizeof(pkt->imm);
	}
	if (flags & WIRE_OP_INV) {
		be32 rkey;

		memcpy(&rkey, at, sizeof(rkey));
		pkt->rkey = be32_get(rkey);
	}
	if (flags & WIRE_OP_WALK)
		pkt->walk = wire_walk_get((const void *)at);
}

/* The BTH is believed from here on: its ICRC was right. */
static enum wire_error parse_transport(struct parse *p, struct wire_pkt *pkt)
{
	size_t ext_at = p->udp_at + WIRE_UDP_BYTES + WIRE_BTH_BYTES;
	const struct wire_bth *bth = hdr_at(p, ext_at - WIRE_BTH_BYTES);
	const struct wire_opcode *op = &wire_opcodes[bth->opcode];
	size_t body_bytes = p->end - WIRE_ICRC_BYTES - ext_at;
	size_t pad_bytes = bth->flags >> 4 & 3;
	bool has_mac = be32_get(bth->ack_psn) & WIRE_BTH_MAC;
	size_t mac_bytes = has_mac ? WIRE_MAC_BYTES : 0;

	if (UNLIKELY(bth->flags & WIRE_BTH_TVER))
		return WIRE_E_VERSION;
	if (UNLIKELY(!op->name))
		return WIRE_E_OPCODE;
	if (UNLIKELY(body_bytes < op->ext_bytes + mac_bytes))
		return WIRE_E_SHORT;
	body_bytes -= op->ext_bytes + mac_bytes;
	if (op->flags & WIRE_OP_PAYLOAD) {
		if (UNLIKELY(body_bytes % 4 || body_bytes < pad_bytes ||
			     body_bytes - pad_bytes > WIRE_MTU_MAX))
			return WIRE_E_PAYLOAD;
	} else if (UNLIKELY(body_bytes || pad_bytes)) {
		return WIRE_E_PAYLOAD;
	}

	clear_extensions(pkt);
	read_lower(p, pkt);
	read_bth(p, pkt);
	read_extensions(hdr_at(p, ext_at), op->flags, pkt);
	pkt->payload = p->frame + ext_at + op->ext_bytes;
	pkt->payload_len = (uint32_t)(body_bytes - pad_bytes);
	if (UNLIKELY(has_mac)) {
		le64 mac;

		memcpy(&mac, p->frame + p->end - WIRE_ICRC_BYTES - sizeof(mac),
		       sizeof(mac));
		pkt->mac = le64_get(mac);
	}
	return WIRE_OK;
}

HOT enum wire_error wire_parse(const uint8_t *frame, size_t len_bytes,
			       struct wire_pkt *pkt)
{
	const struct wire_eth *eth;
	struct parse p;
	enum wire_error e;
	uint16_t type;

	if (UNLIKELY(len_bytes < WIRE_ETH_BYTES))
		return WIRE_E_SHORT;
	p.frame = frame;
	p.frame_bytes = len_bytes;
	if (len_bytes <= sizeof(p.hdr)) {
		p.copied_bytes = len_bytes;
		memcpy(p.hdr, frame, len_bytes);
	} else {
		p.copied_bytes = WIRE_HDR_MAX;
		memcpy(p.hdr, frame, WIRE_HDR_MAX);
	}

	eth = hdr_at(&p, 0);
	type = be16_get(eth->type);
	if (type == WIRE_ETHERTYPE_IP4)
		e = parse_ip4(&p);
	else if (type == WIRE_ETHERTYPE_IP6)
		e = parse_ip6(&p);
	else
		e = WIRE_E_NOT_ROCE;
	if (LIKELY(!e))
		e = parse_udp(&p);
	if (LIKELY(!e))
		e = check_icrc(&p);
	if (LIKELY(!e))
		e = parse_transport(&p, pkt);
	return e;
}

void wire_grh(const uint8_t *frame, uint8_t grh[WIRE_GRH_BYTES])
{
	const struct wire_eth *eth = (const void *)frame;
	const uint8_t *ip = frame + WIRE_ETH_BYTES;

	if (be16_get(eth->type) == WIRE_ETHERTYPE_IP4) {
		memset(grh, 0, WIRE_GRH_BYTES - WIRE_IP4_BYTES);
		memcpy(grh + WIRE_GRH_BYTES - WIRE_IP4_BYTES, ip,
		       WIRE_IP4_BYTES);
	} else {
		memcpy(grh, ip, WIRE_GRH_BYTES);
	}
}
