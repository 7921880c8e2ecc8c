/* SPDX-License-Identifier: Apache-2.0 */
/* The share of the IPv4 identification in the ICRC: patched and found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "wire/wire.h"

static size_t build(uint8_t *frame, uint32_t payload_len, uint16_t id,
		    uint32_t *icrc)
{
	struct wire_pkt pkt = {
		.src_ip = {[10] = 0xff, 0xff, 10, 0, 0, 1},
		.dst_ip = {[10] = 0xff, 0xff, 10, 0, 0, 2},
		.ip_id = id,
		.ttl = 64,
		.src_port = 4791,
		.opcode = WIRE_RC_READ_RESP_ONLY,
		.pkey = 0xffff,
		.dest_qpn = 0x1234,
		.psn = 77,
		.payload_len = payload_len,
	};
	size_t len;

	memset(frame, 0x3c, WIRE_FRAME_MAX);
	len = wire_build(&pkt, frame);
	memcpy(icrc, frame + len - 4, 4);
	return len - WIRE_ETH_BYTES;
}

static const uint16_t ids[] = {0, 1, 2, 63, 64, 255, 256, 35166, 65535};

static void test_patch_and_solve(void **state)
{
	static struct wire_id_table t;
	uint8_t frame[WIRE_FRAME_MAX];

	wire_id_table_init(&t);
	for (uint32_t len = 0; len <= WIRE_MTU_MAX; len += len < 70 ? 1 : 331) {
		uint32_t icrc0, icrc;
		size_t ip_bytes = build(frame, len, 0, &icrc0);

		for (unsigned i = 0; i < ARRAY_LEN(ids); i++) {
			uint16_t found = 7;

			build(frame, len, ids[i], &icrc);
			assert_int_equal(wire_id_delta(&t, ip_bytes, ids[i]),
					 icrc ^ icrc0);
			assert_true(wire_id_solve(&t, ip_bytes, icrc ^ icrc0,
						  &found));
			assert_int_equal(found, ids[i]);
		}
	}
}

/* Of damaged packets no more than one in 2^16 is explained. */
static void test_damage(void **state)
{
	static struct wire_id_table t;
	uint32_t seed = 12345;
	unsigned explained = 0;
	uint16_t id;

	wire_id_table_init(&t);
	for (unsigned i = 0; i < 1000000; i++) {
		seed = seed * 1664525u + 1013904223u;
		explained += wire_id_solve(&t, 108, seed ^ seed >> 16, &id);
	}
	assert_in_range(explained, 0, 40);
	/* One flipped bit behind the field is never taken for another field. */
	for (unsigned bit = 0; bit < 32; bit++)
		assert_false(wire_id_solve(&t, 108, 1u << bit, &id));
	/* Lengths that no packet has. */
	assert_false(wire_id_solve(&t, 107, 1, &id));
	assert_false(wire_id_solve(&t, (size_t)WIRE_ID_WORDS * 4, 1, &id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patch_and_solve),
		cmocka_unit_test(test_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
