/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packets that the rxe driver of Linux 6.1 sent or accepted, captured between
 * two machines: their ICRC is right, they parse to what was sent, and building
 * them again gives the same bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/wire.h"

struct vector {
	uint8_t opcode;
	uint8_t pad;
	bool ack_req;
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t icrc;
	uint32_t payload_len;
	const char *hex; /* from the IP header to the ICRC */
};

static const struct vector vectors[] = {
	{WIRE_RC_ACK, 0, false, 0x11, 0x31d453, 0x7dd0e586u, 0,
	 "4500003031dc40004011f41a0a58000b0a58000cc12112b7001c00001100"
	 "ffff000000110031d4531f00000186e5d07d"},
	{WIRE_RC_READ_REQ, 0, true, 0x12, 0x4672cb, 0x79dafd15u, 0,
	 "4500003cb77e400040116e6c0a58000c0a58000bc14412b7002800000c00"
	 "ffff00000012804672cb0000558925ad10000000035e0000000815fdda79"},
	{WIRE_RC_READ_RESP_ONLY, 0, false, 0x12, 0x4672cb, 0xc6a415e9u, 8,
	 "45000038329f40004011f34f0a58000b0a58000cc14412b7002400001000"
	 "ffff00000012004672cb1f000001edde611bc7da1320e915a4c6"},
	{WIRE_RC_SEND_ONLY, 0, true, 0x15, 0xbd9020, 0x89a83715u, 16,
	 "4500003cc2454000401163a50a58000c0a58000bf20d12b7002800000400"
	 "ffff0000001580bd902000005601f0892fd000000915000000401537a889"},
	{WIRE_RC_READ_REQ, 0, true, 0x11, 0x002000, 0x5b49f70eu, 0,
	 "4500003c00004000401125f60a5800010a58000b12b712b7002800000c00"
	 "ffff000000118000200000007f5255f63000000002e6000000080ef7495b"},
	{WIRE_RC_READ_RESP_ONLY, 3, false, 0x77, 0x002033, 0xe8004d8eu, 5,
	 "45000038fb73400040112a860a58000b0a580001c7e712b7002400001030"
	 "ffff00000077000020331f00003400070e151c0000008e4d00e8"},
	{WIRE_RC_ACK, 0, false, 0x77, 0x002dad, 0xced1a803u, 0,
	 "450000300944400040111cbe0a58000b0a580001c7e712b7001c00001100"
	 "ffff0000007700002dad600000c903a8d1ce"},
	{WIRE_RC_READ_RESP_LAST, 0, false, 0x77, 0x002dac, 0x27e0dceeu, 8,
	 "450000380945400040111cb50a58000b0a580001c7e712b7002400000f00"
	 "ffff0000007700002dac1f0000c900070e151c232a31eedce027"},
	{WIRE_RC_WRITE_ONLY, 1, true, 0x11, 0x002dad, 0x2a733811u, 15,
	 "4500004c00004000401125e60a5800010a58000b12b712b7003800000a10"
	 "ffff0000001180002dad00007f5255ff3000000002e60000000f77726974"
	 "74656e20627920686f7374001138732a"},
	{WIRE_RC_SEND_ONLY, 0, true, 0x11, 0x002dee, 0x511f5696u, 12,
	 "4500003800004000401125fa0a5800010a58000b12b712b7002400000400"
	 "ffff0000001180002dee73656e7420627920686f737496561f51"},
	{WIRE_RC_FAA, 0, true, 0x11, 0x002def, 0xa1d83d40u, 0,
	 "4500004800004000401125ea0a5800010a58000b12b712b7003400001400"
	 "ffff0000001180002def00007f5256003000000002e60000000000000029"
	 "0000000000000000403dd8a1"},
	{WIRE_RC_ATOMIC_ACK, 0, false, 0x77, 0x002def, 0xf56d2f83u, 0,
	 "450000380949400040111cb10a58000b0a580001c7e712b7002400001200"
	 "ffff0000007700002def1f0000cd0000000000000000832f6df5"},
	{WIRE_RC_READ_RESP_ONLY, 3, false, 0x11, 0x001000, 0x0c6978fdu, 5,
	 "4500003800004000401125fa0a5800010a58000b12b712b7002400001030"
	 "ffff00000011000010001f00000105121f2c39000000fd78690c"},
	{WIRE_RC_WRITE_ONLY, 3, true, 0x77, 0x001032, 0x403da22au, 5,
	 "45000044097c400040111c720a58000b0a580001c7e712b7003000000a30"
	 "ffff00000077800010320000000010000000000012340000000505050505"
	 "050000002aa23d40"},
	{WIRE_RC_ACK, 0, false, 0x11, 0x001032, 0xb2bd0eb4u, 0,
	 "4500003000004000401126020a5800010a58000b12b712b7001c00001100"
	 "ffff00000011000010321f000033b40ebdb2"},
	{WIRE_RC_FAA, 0, true, 0x77, 0x002b39, 0x876485ceu, 0,
	 "45000048177f400040110e6b0a58000b0a580001c7e712b7003400001400"
	 "ffff0000007780002b390000000010008000000012340000000000000005"
	 "05000000aacebb0cce856487"},
	{WIRE_RC_ATOMIC_ACK, 0, false, 0x11, 0x002b39, 0xe59a4f74u, 0,
	 "4500003800004000401125fa0a5800010a58000b12b712b7002400001200"
	 "ffff0000001100002b391f000130605346392c1f1205744f9ae5"},
	{WIRE_RC_ACK, 0, false, 0x77, 0x002df0, 0xc0fa8c5du, 0,
	 "4500003017ad400040110e550a58000b0a580001c7e712b7001c00001100"
	 "ffff0000007700002df0620000cd5d8cfac0"},
};

static const uint8_t eth[WIRE_ETH_BYTES] = {2, 0, 0, 0, 0, 1, 2,
					    0, 0, 0, 0, 2, 8, 0};

static size_t frame_of(const struct vector *v, uint8_t *frame)
{
	size_t n = strlen(v->hex) / 2;
	size_t i;

	memcpy(frame, eth, sizeof(eth));
	for (i = 0; i < n; i++) {
		unsigned int byte;

		assert_int_equal(sscanf(v->hex + 2 * i, "%2x", &byte), 1);
		frame[sizeof(eth) + i] = (uint8_t)byte;
	}
	return sizeof(eth) + n;
}

static void test_icrc(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	size_t i;

	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		size_t n = frame_of(&vectors[i], frame);
		size_t ip_bytes = n - sizeof(eth) - WIRE_ICRC_BYTES;

		assert_int_equal(wire_icrc(frame + sizeof(eth), ip_bytes),
				 vectors[i].icrc);
	}
}

static void test_parse(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	size_t i;

	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		const struct vector *v = &vectors[i];
		size_t n = frame_of(v, frame);

		assert_int_equal(wire_parse(frame, n, &pkt), WIRE_OK);
		assert_int_equal(pkt.opcode, v->opcode);
		assert_int_equal(pkt.pad, v->pad);
		assert_int_equal(pkt.ack_req, v->ack_req);
		assert_int_equal(pkt.dest_qpn, v->dest_qpn);
		assert_int_equal(pkt.psn, v->psn);
		assert_int_equal(pkt.payload_len, v->payload_len);
		assert_int_equal(pkt.pkey, 0xffff);
		assert_int_equal(pkt.ttl, 64);
		assert_false(pkt.solicited || pkt.mig_req || pkt.fecn ||
			     pkt.becn);
		assert_true(wire_is_ipv4(pkt.src_ip));
		assert_true(wire_is_ipv4(pkt.dst_ip));
	}
}

/* The compare field of rxe's additions is not ours: it sends old memory. */
static bool has_junk(const struct wire_pkt *pkt)
{
	return wire_opcodes[pkt->opcode].flags & WIRE_OP_ADD;
}

static void test_rebuild(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	uint8_t again[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	size_t i;

	for (i = 0; i < ARRAY_LEN(vectors); i++) {
		size_t n = frame_of(&vectors[i], frame);

		assert_int_equal(wire_parse(frame, n, &pkt), WIRE_OK);
		assert_int_equal(wire_build(&pkt, again), n);
		if (!has_junk(&pkt))
			assert_memory_equal(again, frame, n);
	}
}

static const struct vector *find(uint8_t opcode, uint32_t psn)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(vectors); i++)
		if (vectors[i].opcode == opcode && vectors[i].psn == psn)
			return &vectors[i];
	fail();
	return NULL;
}

static void parse_vector(uint8_t opcode, uint32_t psn, uint8_t *frame,
			 struct wire_pkt *pkt)
{
	size_t n = frame_of(find(opcode, psn), frame);

	assert_int_equal(wire_parse(frame, n, pkt), WIRE_OK);
}

static void test_extensions(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;

	parse_vector(WIRE_RC_READ_REQ, 0x4672cb, frame, &pkt);
	assert_int_equal(pkt.va, 0x0000558925ad1000);
	assert_int_equal(pkt.rkey, 0x35e);
	assert_int_equal(pkt.dma_len, 8);
	assert_int_equal(pkt.ip_id, 0xb77e);
	assert_int_equal(pkt.src_port, 0xc144);

	parse_vector(WIRE_RC_ACK, 0x002dad, frame, &pkt);
	assert_int_equal(pkt.syndrome, WIRE_NAK_PSN);
	assert_int_equal(pkt.msn, 0xc9);

	parse_vector(WIRE_RC_FAA, 0x002b39, frame, &pkt);
	assert_int_equal(pkt.va, 0x10008000);
	assert_int_equal(pkt.rkey, 0x1234);
	assert_true(pkt.atomic.is_add);
	assert_int_equal(pkt.atomic.swap_add, 5);
	assert_int_equal(pkt.atomic.compare, 0);
	assert_true(pkt.atomic.swap_mask == UINT64_MAX);
	assert_true(pkt.atomic.compare_mask == UINT64_MAX);
	assert_int_equal(pkt.atomic.boundary, 0);

	parse_vector(WIRE_RC_ATOMIC_ACK, 0x002b39, frame, &pkt);
	assert_true(pkt.original == 0x605346392c1f1205);
	assert_int_equal(pkt.msn, 0x130);

	parse_vector(WIRE_RC_WRITE_ONLY, 0x002dad, frame, &pkt);
	assert_memory_equal(pkt.payload, "written by host", 15);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_icrc),
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_rebuild),
		cmocka_unit_test(test_extensions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
