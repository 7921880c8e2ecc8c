/* SPDX-License-Identifier: Apache-2.0 */
/* Stamps: what they build is what wire_build builds, what they parse is what
 * wire_parse parses, and what differs in any bit is left to wire_parse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "test_wire_pkt.h"
#include "wire/wire_stamp.h"

static const uint16_t lengths[] = {0,	4,   8,	  16,  60,   64,  128,
				   224, 240, 256, 260, 1024, 4096};

static bool has_stamp(uint8_t opcode)
{
	uint32_t ext = wire_opcodes[opcode].flags & ~0xffu;

	return ext == 0 || ext == WIRE_OP_RETH || ext == WIRE_OP_AETH ||
	       ext == WIRE_OP_IMM || ext == (WIRE_OP_RETH | WIRE_OP_IMM) ||
	       ext == WIRE_OP_WALK || ext == (WIRE_OP_AETH | WIRE_OP_WALK);
}

/* The same flow, opcode and length; everything else anew. */
static void vary(uint64_t *seed, struct wire_pkt *pkt)
{
	pkt->psn = test_random(seed) & WIRE_PSN_MASK;
	pkt->dest_qpn = test_random(seed) & WIRE_QPN_MASK;
	pkt->ack_req = test_random(seed) & 1;
	pkt->fecn = test_random(seed) & 1;
	pkt->becn = test_random(seed) & 1;
	test_random_extensions(seed, wire_opcodes[pkt->opcode].flags, pkt);
}

static size_t stamp_build(const struct wire_stamp *s,
			  const struct wire_pkt *pkt, uint8_t *frame)
{
	struct wire_vary v = wire_vary_of(pkt);

	return wire_stamp_build(s, &v, frame);
}

static void check_same(const struct wire_pkt *a, const struct wire_pkt *b)
{
	assert_true(test_same_pkt(a, b));
	assert_ptr_equal(a->payload, b->payload);
}

static void check_flow(uint64_t *seed, uint8_t opcode, uint32_t len)
{
	uint8_t payload[WIRE_MTU_MAX], slow[WIRE_FRAME_MAX];
	uint8_t fast[WIRE_FRAME_MAX + 1], shifted[WIRE_MTU_MAX + 8];
	struct wire_pkt pkt, known, parsed;
	struct wire_stamp s;
	struct wire_vary v;
	size_t n;

	test_random_bytes(seed, payload, sizeof(payload));
	test_random_pkt(seed, opcode, true, payload, len, &pkt);
	n = wire_build(&pkt, slow);
	assert_true(wire_stamp_make(&s, &pkt));
	assert_int_equal(wire_parse(slow, n, &known), WIRE_OK);
	for (unsigned i = 0; i < 20; i++) {
		vary(seed, &pkt);
		test_random_bytes(seed, payload, sizeof(payload));
		pkt.payload = payload;
		assert_int_equal(wire_build(&pkt, slow), n);
		memset(fast, 0x55, sizeof(fast));
		assert_int_equal(stamp_build(&s, &pkt, fast), n);
		assert_memory_equal(fast, slow, n);
		assert_int_equal(fast[n], 0x55);
		/* The payload in another frame, wherever it lies there. */
		memcpy(shifted + i % 8, payload, len);
		v = wire_vary_of(&pkt);
		v.payload = shifted + i % 8;
		v.is_frame = true;
		memset(fast, 0x55, sizeof(fast));
		assert_int_equal(wire_stamp_build(&s, &v, fast), n);
		assert_memory_equal(fast, slow, n);
		assert_int_equal(fast[n], 0x55);
		/* The payload in place. */
		memset(fast, 0x55, wire_header_bytes(opcode, true));
		pkt.payload = NULL;
		assert_int_equal(stamp_build(&s, &pkt, fast), n);
		assert_memory_equal(fast, slow, n);

		assert_int_equal(wire_parse(slow, n, &parsed), WIRE_OK);
		assert_true(wire_stamp_parse(&s, slow, n, &known));
		check_same(&known, &parsed);
	}
}

static void test_like_slow(void **state)
{
	uint64_t seed = 77;

	for (unsigned o = 0; o < sizeof(test_opcodes); o++) {
		uint8_t opcode = test_opcodes[o];

		if (!has_stamp(opcode))
			continue;
		for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
			check_flow(&seed, opcode, lengths[i]);
	}
}

static void test_none(void **state)
{
	uint8_t payload[64] = {0};
	struct wire_stamp s, before;
	struct wire_pkt pkt;
	uint64_t seed = 5;

	memset(&s, 0x11, sizeof(s));
	before = s;
	for (unsigned o = 0; o < sizeof(test_opcodes); o++) {
		uint8_t opcode = test_opcodes[o];

		/* IPv6, then another extension, then a pad. */
		test_random_pkt(&seed, opcode, false, payload, 0, &pkt);
		assert_false(wire_stamp_make(&s, &pkt));
		test_random_pkt(&seed, opcode, true, payload, 0, &pkt);
		if (!has_stamp(opcode))
			assert_false(wire_stamp_make(&s, &pkt));
		test_random_pkt(&seed, opcode, true, payload, 5, &pkt);
		if (pkt.payload_len)
			assert_false(wire_stamp_make(&s, &pkt));
		assert_memory_equal(&s, &before, sizeof(s));
	}
}

/* Any single bit that changes makes the stamp say no, unless the ICRC does not
 * cover it and it is not in the head: then both ways take it. */
static void check_bits(uint64_t *seed, uint8_t opcode, uint32_t len)
{
	uint8_t payload[256], frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt, known, parsed;
	struct wire_stamp s;
	size_t n;

	test_random_bytes(seed, payload, sizeof(payload));
	test_random_pkt(seed, opcode, true, payload, len, &pkt);
	n = wire_build(&pkt, frame);
	assert_true(wire_stamp_make(&s, &pkt));
	assert_int_equal(wire_parse(frame, n, &known), WIRE_OK);
	for (size_t bit = 0; bit < n * 8; bit++) {
		bool fast;

		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		fast = wire_stamp_parse(&s, frame, n, &known);
		if (fast) {
			assert_int_equal(bit / 8, WIRE_STAMP_HEAD);
			assert_int_equal(wire_parse(frame, n, &parsed),
					 WIRE_OK);
			check_same(&known, &parsed);
		}
		frame[bit / 8] ^= (uint8_t)(1u << bit % 8);
		assert_true(wire_stamp_parse(&s, frame, n, &known));
	}
	assert_false(wire_stamp_parse(&s, frame, n + 1, &known));
	assert_false(wire_stamp_parse(&s, frame, n - 1, &known));
}

static void test_mismatch(void **state)
{
	uint64_t seed = 99;

	check_bits(&seed, WIRE_RC_READ_REQ, 0);
	check_bits(&seed, WIRE_RC_READ_RESP_ONLY, 64);
	check_bits(&seed, WIRE_RC_WRITE_ONLY, 64);
	check_bits(&seed, WIRE_RC_WRITE_ONLY, 20);
	check_bits(&seed, WIRE_RC_SEND_ONLY, 240);
	check_bits(&seed, WIRE_RC_ACK, 0);
	check_bits(&seed, WIRE_RC_WALK, 40);
	check_bits(&seed, WIRE_RC_WALK_ANSWER, 64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_slow),
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_mismatch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
