/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a packet, and that it never leaves its buffer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/net_trace.h"
#include "test_wire_pkt.h"
#include "wire/wire.h"

#define IP4(a, b, c, d)                                              \
	{                                                            \
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d \
	}

struct row {
	struct wire_pkt pkt;
	const char *text;
};

static const struct row rows[] = {
	{{.src_ip = IP4(10, 0, 0, 1),
	  .dst_ip = IP4(10, 0, 0, 2),
	  .src_port = 49152,
	  .opcode = WIRE_RC_READ_REQ,
	  .dest_qpn = 0x11,
	  .psn = 7,
	  .ack_req = true,
	  .va = 0x1000,
	  .rkey = 0x2a01,
	  .dma_len = 64},
	 "10.0.0.1:49152 > 10.0.0.2 RC_READ_REQ qpn=0x11 psn=7 ackreq "
	 "va=0x1000 rkey=0x2a01 dma_len=64"},
	{{.src_ip = {0xfe, 0x80, [15] = 1},
	  .dst_ip = {0xfe, 0x80, [15] = 2},
	  .src_port = 1,
	  .opcode = WIRE_RC_ACK,
	  .dest_qpn = 0x12,
	  .psn = 8,
	  .syndrome = WIRE_NAK_ACCESS,
	  .msn = 3},
	 "fe80:0:0:0:0:0:0:1:1 > fe80:0:0:0:0:0:0:2 RC_ACK qpn=0x12 psn=8 "
	 "nak-access syndrome=0x62 msn=3"},
	{{.src_ip = IP4(1, 2, 3, 4),
	  .dst_ip = IP4(5, 6, 7, 8),
	  .opcode = WIRE_RC_MASKED_CAS,
	  .va = 0x8,
	  .rkey = 1,
	  .atomic = {.compare = 1,
		     .swap_add = 2,
		     .compare_mask = 0xff,
		     .swap_mask = 0xff00}},
	 "1.2.3.4:0 > 5.6.7.8 RC_MASKED_CAS qpn=0x0 psn=0 va=0x8 rkey=0x1 "
	 "compare=0x1 swap=0x2 compare_mask=0xff swap_mask=0xff00"},
	{{.src_ip = IP4(1, 2, 3, 4),
	  .dst_ip = IP4(5, 6, 7, 8),
	  .opcode = WIRE_RC_MASKED_FAA,
	  .atomic = {.is_add = true, .swap_add = 5, .boundary = 0x8000}},
	 "1.2.3.4:0 > 5.6.7.8 RC_MASKED_FAA qpn=0x0 psn=0 va=0x0 rkey=0x0 "
	 "add=0x5 boundary=0x8000"},
	{{.src_ip = IP4(1, 2, 3, 4),
	  .dst_ip = IP4(5, 6, 7, 8),
	  .opcode = WIRE_UD_SEND_ONLY_IMM,
	  .solicited = true,
	  .fecn = true,
	  .becn = true,
	  .qkey = 0x11111111,
	  .src_qpn = 0x20,
	  .imm = {{0, 0, 1, 2}},
	  .payload_len = 9},
	 "1.2.3.4:0 > 5.6.7.8 UD_SEND_ONLY_IMM qpn=0x0 psn=0 se fecn becn "
	 "qkey=0x11111111 src_qpn=0x20 imm=0x00000102 len=9"},
	{{.src_ip = IP4(1, 2, 3, 4),
	  .dst_ip = IP4(5, 6, 7, 8),
	  .opcode = WIRE_RC_SEND_ONLY_INV,
	  .rkey = 0xabc},
	 "1.2.3.4:0 > 5.6.7.8 RC_SEND_ONLY_INV qpn=0x0 psn=0 inv=0xabc len=0"},
	{{.src_ip = IP4(1, 2, 3, 4),
	  .dst_ip = IP4(5, 6, 7, 8),
	  .opcode = WIRE_RC_ATOMIC_ACK,
	  .syndrome = WIRE_ACK_UNLIMITED,
	  .original = 0x77},
	 "1.2.3.4:0 > 5.6.7.8 RC_ATOMIC_ACK qpn=0x0 psn=0 ack syndrome=0x1f "
	 "msn=0 original=0x77"},
	{{.src_ip = IP4(1, 2, 3, 4), .dst_ip = IP4(5, 6, 7, 8), .opcode = 0x24},
	 "1.2.3.4:0 > 5.6.7.8 opcode 0x24 qpn=0x0 psn=0"},
};

static void test_text(void **state)
{
	char buf[512];
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++) {
		net_text(&rows[i].pkt, buf, sizeof(buf));
		assert_string_equal(buf, rows[i].text);
	}
}

static void test_syndromes(void **state)
{
	static const struct {
		uint8_t syndrome;
		const char *word;
	} names[] = {
		{WIRE_ACK_UNLIMITED, " ack "},
		{WIRE_RNR_NAK | 12, " rnr "},
		{WIRE_NAK_PSN, " nak-psn "},
		{WIRE_NAK_INVALID, " nak-invalid "},
		{WIRE_NAK_OP, " nak-op "},
		{0x64, " nak "},
	};
	struct wire_pkt pkt = {.opcode = WIRE_RC_ACK};
	char buf[512];
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		pkt.syndrome = names[i].syndrome;
		net_text(&pkt, buf, sizeof(buf));
		assert_non_null(strstr(buf, names[i].word));
	}
}

static void test_every_size(void **state)
{
	struct wire_pkt pkt;
	uint64_t rng = 1;
	char whole[512];
	size_t i;
	size_t n;

	for (i = 0; i < ARRAY_LEN(test_opcodes); i++) {
		test_random_pkt(&rng, test_opcodes[i], i & 1, NULL, 3, &pkt);
		net_text(&pkt, whole, sizeof(whole));
		for (n = 1; n <= strlen(whole) + 1; n++) {
			char *buf = malloc(n);

			assert_non_null(buf);
			net_text(&pkt, buf, n);
			assert_int_equal(strlen(buf), n - 1);
			assert_memory_equal(buf, whole, n - 1);
			free(buf);
		}
	}
	net_text(&pkt, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_syndromes),
		cmocka_unit_test(test_every_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
