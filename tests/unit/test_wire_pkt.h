/* SPDX-License-Identifier: Apache-2.0 */
/* Packets for tests: one of every opcode, random but the same in each run. */
#ifndef AQ_TEST_WIRE_PKT_H
#define AQ_TEST_WIRE_PKT_H

#include "wire/wire.h"

/* Every opcode there is; test_wire_opcode.c checks that none is missing. */
static const uint8_t test_opcodes[] = {
	0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a,
	0x0b, 0x0c, 0x0d, 0x0e, 0x0f, 0x10, 0x11, 0x12, 0x13, 0x14, 0x16,
	0x17, 0x64, 0x65, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5,
};

/* xorshift64*; the state is the seed and not zero. */
static inline uint64_t test_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(0x2545f4914f6cdd1d);
}

static inline void test_random_bytes(uint64_t *state, void *buf, size_t n)
{
	uint8_t *at = buf;

	while (n--)
		*at++ = (uint8_t)(test_random(state) >> 32);
}

static inline void test_random_ip(uint64_t *state, bool ipv4, uint8_t ip[16])
{
	test_random_bytes(state, ip, 16);
	ip[0] = 0x20; /* a global address, and never an IPv4-mapped one */
	if (ipv4) {
		memset(ip, 0, 10);
		ip[10] = ip[11] = 0xff;
	}
}

static inline void test_random_extensions(uint64_t *state, uint32_t flags,
					  struct wire_pkt *pkt)
{
	struct atomic_op *op = &pkt->atomic;

	if (flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC | WIRE_OP_INV))
		pkt->rkey = (uint32_t)test_random(state);
	if (flags & (WIRE_OP_RETH | WIRE_OP_ATOMIC))
		pkt->va = test_random(state);
	if (flags & WIRE_OP_RETH)
		pkt->dma_len = (uint32_t)test_random(state);
	if (flags & WIRE_OP_AETH) {
		pkt->syndrome = (uint8_t)test_random(state);
		pkt->msn = test_random(state) & WIRE_PSN_MASK;
	}
	if (flags & WIRE_OP_ATOMIC) {
		op->is_add = flags & WIRE_OP_ADD;
		op->swap_add = test_random(state);
		op->compare = op->is_add ? 0 : test_random(state);
		op->swap_mask = UINT64_MAX;
		op->compare_mask = UINT64_MAX;
	}
	if (flags & WIRE_OP_CMASK) {
		op->swap_mask = test_random(state);
		op->compare_mask = test_random(state);
	}
	if (flags & WIRE_OP_FMASK)
		op->boundary = test_random(state);
	if (flags & WIRE_OP_ATOMIC_ACK)
		pkt->original = test_random(state);
	if (flags & WIRE_OP_IMM)
		pkt->imm = be32_put((uint32_t)test_random(state));
	if (flags & WIRE_OP_WALK) {
		pkt->walk.at = test_random(state);
		pkt->walk.program = test_random(state);
		pkt->walk.key = (uint32_t)test_random(state);
		pkt->walk.left = (uint32_t)test_random(state);
		pkt->walk.took = (uint32_t)test_random(state);
		pkt->walk.pad_bytes = (uint16_t)test_random(state);
		pkt->walk.status = (uint8_t)test_random(state);
		pkt->walk.hops = (uint8_t)test_random(state);
	}
	if (flags & WIRE_OP_DETH) {
		pkt->qkey = (uint32_t)test_random(state);
		pkt->src_qpn = test_random(state) & WIRE_QPN_MASK;
	}
}

/* `payload_len` is ignored where the opcode has no payload. */
static inline void test_random_pkt(uint64_t *state, uint8_t opcode, bool ipv4,
				   const uint8_t *payload, uint32_t payload_len,
				   struct wire_pkt *pkt)
{
	uint32_t flags = wire_opcodes[opcode].flags;
	uint64_t bits = test_random(state) >> 32;

	/* Padding too, so that packets can be compared with memcmp. */
	memset(pkt, 0, sizeof(*pkt));
	test_random_bytes(state, pkt->dst_mac, sizeof(pkt->dst_mac));
	test_random_bytes(state, pkt->src_mac, sizeof(pkt->src_mac));
	test_random_ip(state, ipv4, pkt->src_ip);
	test_random_ip(state, ipv4, pkt->dst_ip);
	pkt->tos = (uint8_t)test_random(state);
	pkt->ttl = (uint8_t)test_random(state);
	pkt->ip_id = ipv4 ? (uint16_t)test_random(state) : 0;
	pkt->src_port = (uint16_t)test_random(state);
	pkt->opcode = opcode;
	pkt->solicited = bits & 1;
	pkt->mig_req = bits & 2;
	pkt->ack_req = bits & 4;
	pkt->fecn = bits & 8;
	pkt->becn = bits & 16;
	pkt->pkey = (uint16_t)test_random(state);
	pkt->dest_qpn = test_random(state) & WIRE_QPN_MASK;
	pkt->psn = test_random(state) & WIRE_PSN_MASK;
	test_random_extensions(state, flags, pkt);
	if (flags & WIRE_OP_PAYLOAD)
		pkt->payload_len = payload_len;
	pkt->pad = -pkt->payload_len & 3;
	pkt->payload = payload;
}

/* Equal in all but where the payload lies. Member by member: what is between
 * them is nobody's business. */
static inline bool test_same_pkt(const struct wire_pkt *a,
				 const struct wire_pkt *b)
{
#define SAME(m) (memcmp(&a->m, &b->m, sizeof(a->m)) == 0)
	return SAME(dst_mac) && SAME(src_mac) && SAME(src_ip) && SAME(dst_ip) &&
	       SAME(tos) && SAME(ttl) && SAME(ip_id) && SAME(src_port) &&
	       SAME(opcode) && SAME(pad) && SAME(solicited) && SAME(mig_req) &&
	       SAME(ack_req) && SAME(fecn) && SAME(becn) && SAME(pkey) &&
	       SAME(dest_qpn) && SAME(psn) && SAME(has_mac) && SAME(mac) &&
	       SAME(syndrome) && SAME(msn) && SAME(rkey) && SAME(dma_len) &&
	       SAME(va) && SAME(atomic.is_add) && SAME(atomic.swap_add) &&
	       SAME(atomic.compare) && SAME(atomic.swap_mask) &&
	       SAME(atomic.compare_mask) && SAME(atomic.boundary) &&
	       SAME(original) && SAME(imm) && SAME(qkey) && SAME(src_qpn) &&
	       SAME(walk.at) && SAME(walk.program) && SAME(walk.key) &&
	       SAME(walk.left) && SAME(walk.took) && SAME(walk.pad_bytes) &&
	       SAME(walk.status) && SAME(walk.hops) && SAME(payload_len);
#undef SAME
}

#endif
