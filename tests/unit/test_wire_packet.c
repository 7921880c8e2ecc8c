/* SPDX-License-Identifier: Apache-2.0 */
/* Parse and build are inverses, field by field and bit by bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test_wire_pkt.h"
#include "wire/wire.h"

#define SEED UINT64_C(0x9e3779b97f4a7c15)

static uint8_t payload[WIRE_MTU_MAX];

static size_t ip_header_bytes(bool ipv4)
{
	return ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES;
}

/* The ICRC once more, bit by bit and from the text of the specification. */
static uint32_t slow_icrc(const uint8_t *ip, size_t n)
{
	size_t udp_at = ip[0] >> 4 == 4 ? 20 : 40;
	uint32_t crc = 0xffffffff;
	size_t i;
	int bit;

	for (i = 0; i < 8 + n; i++) {
		size_t at = i - 8;
		uint8_t byte = i < 8 ? 0xff : ip[at];

		if (i >= 8 && udp_at == 20 &&
		    (at == 1 || at == 8 || at == 10 || at == 11))
			byte = 0xff;
		if (i >= 8 && udp_at == 40) {
			if (at == 0)
				byte |= 0x0f;
			else if (at < 4 || at == 7)
				byte = 0xff;
		}
		if (i >= 8 &&
		    (at == udp_at + 6 || at == udp_at + 7 || at == udp_at + 12))
			byte = 0xff;
		crc ^= byte;
		for (bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void check_round_trip(uint64_t *rng, uint8_t opcode, bool ipv4,
			     uint32_t payload_len)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt in;
	struct wire_pkt out;
	size_t ip_bytes;
	size_t n;
	le32 icrc;

	test_random_pkt(rng, opcode, ipv4, payload, payload_len, &in);
	in.has_mac = test_random(rng) >> 63;
	in.mac = in.has_mac ? test_random(rng) : 0;
	n = wire_build(&in, frame);
	assert_int_equal(n, wire_header_bytes(opcode, ipv4) + in.payload_len +
				    in.pad + WIRE_ICRC_BYTES +
				    (in.has_mac ? WIRE_MAC_BYTES : 0));
	assert_in_range(n, 1, WIRE_FRAME_MAX);
	memset(&out, 0xa5, sizeof(out));
	assert_int_equal(wire_parse(frame, n, &out), WIRE_OK);
	assert_true(test_same_pkt(&in, &out));
	assert_ptr_equal(out.payload, frame + wire_header_bytes(opcode, ipv4));
	assert_memory_equal(out.payload, payload, out.payload_len);

	ip_bytes = n - WIRE_ETH_BYTES - WIRE_ICRC_BYTES;
	memcpy(&icrc, frame + n - sizeof(icrc), sizeof(icrc));
	assert_int_equal(le32_get(icrc),
			 wire_icrc(frame + WIRE_ETH_BYTES, ip_bytes));
	assert_int_equal(le32_get(icrc),
			 slow_icrc(frame + WIRE_ETH_BYTES, ip_bytes));
}

static void test_round_trip(void **state)
{
	static const uint32_t lens[] = {0,  1,	2,    3,    4,	 5,  63,
					64, 65, 66,   67,   68,	 69, 70,
					71, 72, 1024, 4095, 4096};
	uint64_t rng = SEED;
	size_t i;
	size_t k;

	for (i = 0; i < ARRAY_LEN(test_opcodes); i++) {
		for (k = 0; k < ARRAY_LEN(lens); k++) {
			check_round_trip(&rng, test_opcodes[i], true, lens[k]);
			check_round_trip(&rng, test_opcodes[i], false, lens[k]);
		}
		for (k = 0; k < 40; k++)
			check_round_trip(&rng, test_opcodes[i], k & 1,
					 (uint32_t)(test_random(&rng) % 300));
	}
}

/* What the ICRC does not protect must be all that a flipped bit can change. */
static bool differs_where_allowed(const struct wire_pkt *in,
				  const struct wire_pkt *out)
{
	struct wire_pkt x;

	memcpy(&x, out, sizeof(x));
	x.tos = in->tos;
	x.ttl = in->ttl;
	x.fecn = in->fecn;
	x.becn = in->becn;
	return test_same_pkt(in, &x);
}

static void check_flips(uint64_t *rng, uint8_t opcode, bool ipv4)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt in;
	struct wire_pkt out;
	unsigned int accepted = 0;
	size_t bit;
	size_t n;

	test_random_pkt(rng, opcode, ipv4, payload,
			(uint32_t)(test_random(rng) % 90), &in);
	n = wire_build(&in, frame);
	for (bit = WIRE_ETH_BYTES * 8; bit < n * 8; bit++) {
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		if (wire_parse(frame, n, &out) == WIRE_OK) {
			accepted++;
			assert_true(differs_where_allowed(&in, &out));
			assert_memory_equal(out.payload, payload,
					    out.payload_len);
		}
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	/*
	 * UDP checksum and the byte of FECN and BECN; in IPv6 also traffic
	 * class, flow label and hop limit, which in IPv4 the header's own
	 * checksum protects.
	 */
	assert_int_equal(accepted, ipv4 ? 16 + 8 : 16 + 8 + 8 + 20 + 8);
}

static void test_bit_flips(void **state)
{
	uint64_t rng = SEED;
	size_t i;

	for (i = 0; i < ARRAY_LEN(test_opcodes); i++) {
		check_flips(&rng, test_opcodes[i], true);
		check_flips(&rng, test_opcodes[i], false);
	}
}

struct field {
	size_t offset;
	size_t bytes;
	uint64_t mask;	/* of the bits to change */
	uint32_t needs; /* one of these flags; 0: always there */
	bool ip4_only;
};

#define FIELD(member, bits, flags)                               \
	{                                                        \
		.offset = offsetof(struct wire_pkt, member),     \
		.bytes = sizeof(((struct wire_pkt *)0)->member), \
		.mask = (bits), .needs = (flags)                 \
	}

static const struct field fields[] = {
	FIELD(tos, 0xff, 0),
	FIELD(ttl, 0xff, 0),
	{offsetof(struct wire_pkt, ip_id), 2, 0xffff, 0, true},
	{offsetof(struct wire_pkt, src_ip) + 12, 4, 0xffffffff, 0, false},
	{offsetof(struct wire_pkt, dst_ip) + 12, 4, 0xffffffff, 0, false},
	{offsetof(struct wire_pkt, src_mac) + 2, 4, 0xffffffff, 0, false},
	{offsetof(struct wire_pkt, dst_mac) + 2, 4, 0xffffffff, 0, false},
	FIELD(src_port, 0xffff, 0),
	FIELD(solicited, 1, 0),
	FIELD(mig_req, 1, 0),
	FIELD(ack_req, 1, 0),
	FIELD(fecn, 1, 0),
	FIELD(becn, 1, 0),
	FIELD(pkey, 0xffff, 0),
	FIELD(dest_qpn, WIRE_QPN_MASK, 0),
	FIELD(psn, WIRE_PSN_MASK, 0),
	FIELD(syndrome, 0xff, WIRE_OP_AETH),
	FIELD(msn, 0xffffff, WIRE_OP_AETH),
	FIELD(rkey, 0xffffffff, WIRE_OP_RETH | WIRE_OP_ATOMIC | WIRE_OP_INV),
	FIELD(dma_len, 0xffffffff, WIRE_OP_RETH),
	FIELD(va, UINT64_MAX, WIRE_OP_RETH | WIRE_OP_ATOMIC),
	FIELD(atomic.swap_add, UINT64_MAX, WIRE_OP_ATOMIC),
	FIELD(atomic.swap_mask, UINT64_MAX, WIRE_OP_CMASK),
	FIELD(atomic.compare_mask, UINT64_MAX, WIRE_OP_CMASK),
	FIELD(atomic.boundary, UINT64_MAX, WIRE_OP_FMASK),
	FIELD(original, UINT64_MAX, WIRE_OP_ATOMIC_ACK),
	FIELD(imm, 0xffffffff, WIRE_OP_IMM),
	FIELD(qkey, 0xffffffff, WIRE_OP_DETH),
	FIELD(src_qpn, WIRE_QPN_MASK, WIRE_OP_DETH),
	FIELD(walk.at, UINT64_MAX, WIRE_OP_WALK),
	FIELD(walk.program, UINT64_MAX, WIRE_OP_WALK),
	FIELD(walk.key, 0xffffffff, WIRE_OP_WALK),
	FIELD(walk.left, 0xffffffff, WIRE_OP_WALK),
	FIELD(walk.took, 0xffffffff, WIRE_OP_WALK),
	FIELD(walk.pad_bytes, 0xffff, WIRE_OP_WALK),
	FIELD(walk.status, 0xff, WIRE_OP_WALK),
	FIELD(walk.hops, 0xff, WIRE_OP_WALK),
};

/* Changing one field of the packet changes that field behind the wire and no
 * other; a field that the opcode does not have changes no byte. */
static void check_field(uint64_t *rng, uint8_t opcode, bool ipv4,
			const struct field *f)
{
	uint8_t before[WIRE_FRAME_MAX];
	uint8_t after[WIRE_FRAME_MAX];
	uint32_t flags = wire_opcodes[opcode].flags;
	bool there = (!f->needs || f->needs & flags) && (ipv4 || !f->ip4_only);
	struct wire_pkt in;
	struct wire_pkt out;
	uint64_t flip = 0;
	size_t n;

	test_random_pkt(rng, opcode, ipv4, payload, 9, &in);
	n = wire_build(&in, before);
	while (!flip)
		flip = test_random(rng) & f->mask;
	for (size_t i = 0; i < f->bytes; i++)
		((uint8_t *)&in)[f->offset + i] ^= (uint8_t)(flip >> 8 * i);
	assert_int_equal(wire_build(&in, after), n);
	assert_int_equal(wire_parse(after, n, &out), WIRE_OK);
	if (there)
		assert_true(test_same_pkt(&in, &out));
	assert_int_equal(memcmp(before, after, n) != 0, there);
}

static void test_one_field(void **state)
{
	uint64_t rng = SEED;
	size_t i;
	size_t k;

	for (i = 0; i < ARRAY_LEN(test_opcodes); i++)
		for (k = 0; k < ARRAY_LEN(fields); k++) {
			check_field(&rng, test_opcodes[i], true, &fields[k]);
			check_field(&rng, test_opcodes[i], false, &fields[k]);
		}
}

static void test_constants_of_build(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	uint64_t rng = SEED;

	test_random_pkt(&rng, WIRE_RC_SEND_ONLY, true, payload, 5, &pkt);
	wire_build(&pkt, frame);
	assert_int_equal(frame[20] << 8 | frame[21], 0x4000); /* DF */
	assert_int_equal(frame[36] << 8 | frame[37], WIRE_UDP_PORT);
	assert_int_equal(frame[40] << 8 | frame[41], 0); /* UDP checksum */
	assert_int_equal(frame[43] & 0x0f, 0);		 /* TVer */
	assert_int_equal(frame[43] >> 4 & 3, 3);	 /* pad */
	assert_memory_equal(frame + 54 + 5, "\0\0\0", 3);
	/* Reserved bits. */
	assert_int_equal(frame[46] & 0x3f, 0);
	assert_int_equal(frame[50] & 0x7f, 0);

	test_random_pkt(&rng, WIRE_RC_SEND_ONLY, false, payload, 5, &pkt);
	wire_build(&pkt, frame);
	assert_int_equal(frame[14] >> 4, 6);
	assert_int_equal((frame[15] & 0xf) | frame[16] | frame[17], 0);
	assert_int_equal(frame[60] << 8 | frame[61], 0);
}

/* A payload that is in its place already, one that is elsewhere in the same
 * frame, and one that is elsewhere give the same frame. */
static void test_payload_places(void **state)
{
	uint8_t want[WIRE_FRAME_MAX] = {0};
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	uint64_t rng = SEED;
	size_t at = wire_header_bytes(WIRE_RC_WRITE_ONLY, true);
	size_t shift;
	size_t n;

	test_random_pkt(&rng, WIRE_RC_WRITE_ONLY, true, payload, 333, &pkt);
	n = wire_build(&pkt, want);

	memset(frame, 0xee, sizeof(frame));
	memcpy(frame + at, payload, 333);
	pkt.payload = NULL;
	assert_int_equal(wire_build(&pkt, frame), n);
	assert_memory_equal(frame, want, n);

	for (shift = 0; shift <= at + 40; shift += 10) {
		memset(frame, 0xee, sizeof(frame));
		memcpy(frame + shift, payload, 333);
		pkt.payload = frame + shift;
		assert_int_equal(wire_build(&pkt, frame), n);
		assert_memory_equal(frame, want, n);
	}
}

/* Ethernet pads short frames; what stands behind the IP packet is not ours. */
static void test_ethernet_padding(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt in;
	struct wire_pkt out;
	uint64_t rng = SEED;
	size_t tail;
	size_t n;

	for (tail = 1; tail < 200; tail += 11) {
		test_random_pkt(&rng, WIRE_RC_ACK, tail & 1, NULL, 0, &in);
		n = wire_build(&in, frame);
		test_random_bytes(&rng, frame + n, tail);
		assert_int_equal(wire_parse(frame, n + tail, &out), WIRE_OK);
		assert_true(test_same_pkt(&in, &out));
	}
}

static void test_grh(void **state)
{
	static const uint8_t zero[20];
	uint8_t frame[WIRE_FRAME_MAX];
	uint8_t grh[WIRE_GRH_BYTES];
	struct wire_pkt pkt;
	uint64_t rng = SEED;

	test_random_pkt(&rng, WIRE_UD_SEND_ONLY, true, payload, 8, &pkt);
	wire_build(&pkt, frame);
	memset(grh, 0xee, sizeof(grh));
	wire_grh(frame, grh);
	assert_memory_equal(grh, zero, 20);
	assert_memory_equal(grh + 20, frame + WIRE_ETH_BYTES,
			    ip_header_bytes(true));

	test_random_pkt(&rng, WIRE_UD_SEND_ONLY, false, payload, 8, &pkt);
	wire_build(&pkt, frame);
	wire_grh(frame, grh);
	assert_memory_equal(grh, frame + WIRE_ETH_BYTES,
			    ip_header_bytes(false));
}

static int fill_payload(void **state)
{
	uint64_t rng = SEED;

	test_random_bytes(&rng, payload, sizeof(payload));
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_one_field),
		cmocka_unit_test(test_constants_of_build),
		cmocka_unit_test(test_payload_places),
		cmocka_unit_test(test_ethernet_padding),
		cmocka_unit_test(test_grh),
	};

	return cmocka_run_group_tests(tests, fill_payload, NULL);
}
