/* SPDX-License-Identifier: Apache-2.0 */
/* Every reason to refuse a frame, and frames cut or filled at random. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "test_wire_pkt.h"
#include "wire/wire.h"

#define SEED UINT64_C(0x2545f4914f6cdd1d)

enum repair {
	NONE = 0,
	SUM = 1u << 0,	/* make the IPv4 header checksum right again */
	ICRC = 1u << 1, /* make the ICRC right again */
	BOTH = SUM | ICRC,
};

struct edit {
	uint16_t at; /* 0 ends the list */
	uint8_t value;
};

struct row {
	const char *what;
	uint8_t opcode;
	bool ipv6;
	uint32_t payload_len;
	struct edit edits[6];
	enum repair repair;
	enum wire_error want;
};

/* Where things are in a frame over IPv4 (IPv6: 20 bytes later from UDP on). */
enum {
	IP = 14,
	UDP4 = 34,
	BTH4 = 42,
	UDP6 = 54,
	BTH6 = 62,
};

static const struct row rows[] = {
	{"unchanged", WIRE_RC_SEND_ONLY, false, 8, {{0}}, NONE, WIRE_OK},
	{"unchanged", WIRE_RC_SEND_ONLY, true, 8, {{0}}, NONE, WIRE_OK},
	{"no DF", WIRE_RC_SEND_ONLY, false, 8, {{20, 0}}, BOTH, WIRE_OK},
	{"UDP checksum", WIRE_RC_ACK, false, 0, {{40, 1}}, NONE, WIRE_OK},
	{"reserved bits", WIRE_RC_ACK, false, 0, {{50, 0x3f}}, ICRC, WIRE_OK},
	{"a MAC that is not there",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{50, 0x40}},
	 ICRC,
	 WIRE_E_SHORT},
	{"pad not zero", WIRE_RC_SEND_ONLY, false, 7, {{61, 9}}, ICRC, WIRE_OK},

	{"a walk", WIRE_RC_SEND_ONLY, false, 32, {{BTH4, 0xc2}}, ICRC, WIRE_OK},
	{"a walk without its header",
	 WIRE_RC_SEND_ONLY,
	 false,
	 28,
	 {{BTH4, 0xc2}},
	 ICRC,
	 WIRE_E_SHORT},
	{"an answer without its header",
	 WIRE_RC_READ_RESP_ONLY,
	 true,
	 28,
	 {{BTH6, 0xc3}},
	 ICRC,
	 WIRE_E_SHORT},

	{"ARP", WIRE_RC_ACK, false, 0, {{13, 6}}, NONE, WIRE_E_NOT_ROCE},
	{"VLAN", WIRE_RC_ACK, false, 0, {{12, 0x81}}, NONE, WIRE_E_NOT_ROCE},
	{"TCP", WIRE_RC_ACK, false, 0, {{23, 6}}, BOTH, WIRE_E_NOT_ROCE},
	{"TCP", WIRE_RC_ACK, true, 0, {{20, 6}}, ICRC, WIRE_E_NOT_ROCE},
	{"hop by hop", WIRE_RC_ACK, true, 0, {{20, 0}}, ICRC, WIRE_E_NOT_ROCE},
	{"port", WIRE_RC_ACK, false, 0, {{37, 0}}, ICRC, WIRE_E_NOT_ROCE},
	{"port", WIRE_RC_ACK, true, 0, {{57, 0}}, ICRC, WIRE_E_NOT_ROCE},

	{"version 5", WIRE_RC_ACK, false, 0, {{IP, 0x55}}, SUM, WIRE_E_IP},
	{"version 4 as 6", WIRE_RC_ACK, true, 0, {{IP, 0x45}}, NONE, WIRE_E_IP},
	{"options", WIRE_RC_ACK, false, 0, {{IP, 0x46}}, BOTH, WIRE_E_IP},
	{"IHL 4", WIRE_RC_ACK, false, 0, {{IP, 0x44}}, BOTH, WIRE_E_IP},
	{"bad checksum", WIRE_RC_ACK, false, 0, {{22, 7}}, ICRC, WIRE_E_IP},
	{"MF", WIRE_RC_ACK, false, 0, {{20, 0x20}}, BOTH, WIRE_E_IP},
	{"offset", WIRE_RC_ACK, false, 0, {{21, 1}}, BOTH, WIRE_E_IP},
	{"reserved flag", WIRE_RC_ACK, false, 0, {{20, 0xc0}}, BOTH, WIRE_E_IP},

	{"IP ends in UDP",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{17, 27}},
	 BOTH,
	 WIRE_E_LENGTH},
	{"IP ends in UDP",
	 WIRE_RC_ACK,
	 true,
	 0,
	 {{19, 7}},
	 ICRC,
	 WIRE_E_LENGTH},
	{"IP shorter", WIRE_RC_ACK, false, 0, {{17, 44}}, BOTH, WIRE_E_LENGTH},
	{"UDP shorter", WIRE_RC_ACK, false, 0, {{39, 27}}, ICRC, WIRE_E_LENGTH},
	{"UDP longer", WIRE_RC_ACK, true, 0, {{59, 29}}, ICRC, WIRE_E_LENGTH},

	{"IP longer", WIRE_RC_ACK, false, 0, {{17, 49}}, BOTH, WIRE_E_SHORT},
	{"IP longer", WIRE_RC_ACK, true, 0, {{19, 29}}, ICRC, WIRE_E_SHORT},
	{"no room for a BTH",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{17, 43}, {39, 23}},
	 BOTH,
	 WIRE_E_SHORT},
	{"no room for a BTH",
	 WIRE_RC_ACK,
	 true,
	 0,
	 {{19, 23}, {59, 23}},
	 ICRC,
	 WIRE_E_SHORT},
	{"no room for a RETH",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{BTH4, 0x0c}},
	 ICRC,
	 WIRE_E_SHORT},
	{"no room for masks",
	 WIRE_RC_CAS,
	 true,
	 0,
	 {{BTH6, 0xc0}},
	 ICRC,
	 WIRE_E_SHORT},

	{"source address", WIRE_RC_ACK, false, 0, {{29, 1}}, SUM, WIRE_E_ICRC},
	{"PSN", WIRE_RC_ACK, false, 0, {{53, 1}}, NONE, WIRE_E_ICRC},
	{"ICRC itself", WIRE_RC_ACK, false, 0, {{58, 1}}, NONE, WIRE_E_ICRC},
	/* The ICRC comes before what the BTH says. */
	{"opcode", WIRE_RC_ACK, false, 0, {{BTH4, 0x24}}, NONE, WIRE_E_ICRC},
	{"version", WIRE_RC_ACK, true, 0, {{BTH6 + 1, 1}}, NONE, WIRE_E_ICRC},

	{"version 1",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{BTH4 + 1, 1}},
	 ICRC,
	 WIRE_E_VERSION},
	{"version 8",
	 WIRE_RC_ACK,
	 true,
	 0,
	 {{BTH6 + 1, 8}},
	 ICRC,
	 WIRE_E_VERSION},
	{"reserved",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{BTH4, 0x15}},
	 ICRC,
	 WIRE_E_OPCODE},
	{"UC SEND only",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{BTH4, 0x24}},
	 ICRC,
	 WIRE_E_OPCODE},
	{"vendor, unused",
	 WIRE_RC_ACK,
	 true,
	 0,
	 {{BTH6, 0xdf}},
	 ICRC,
	 WIRE_E_OPCODE},

	{"ACK with payload",
	 WIRE_RC_READ_RESP_ONLY,
	 false,
	 8,
	 {{BTH4, 0x11}},
	 ICRC,
	 WIRE_E_PAYLOAD},
	{"ACK with pad",
	 WIRE_RC_ACK,
	 false,
	 0,
	 {{BTH4 + 1, 0x10}},
	 ICRC,
	 WIRE_E_PAYLOAD},
	{"READ with payload",
	 WIRE_RC_WRITE_ONLY,
	 true,
	 4,
	 {{BTH6, 0x0c}},
	 ICRC,
	 WIRE_E_PAYLOAD},
	{"more pad than there is",
	 WIRE_RC_SEND_ONLY,
	 false,
	 0,
	 {{BTH4 + 1, 0x10}},
	 ICRC,
	 WIRE_E_PAYLOAD},
	/* 8 bytes less one, in IP and in UDP. */
	{"no multiple of four",
	 WIRE_RC_SEND_ONLY,
	 false,
	 8,
	 {{17, 51}, {39, 31}},
	 BOTH,
	 WIRE_E_PAYLOAD},
};

static void fix_sum(uint8_t *ip)
{
	uint32_t sum = 0;
	size_t i;

	ip[10] = ip[11] = 0;
	for (i = 0; i < 20; i += 2)
		sum += (uint32_t)ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
}

/* The ICRC stands where the IP length says, or at the end of the frame. */
static void fix_icrc(uint8_t *frame, size_t n, bool ipv6)
{
	size_t end = ipv6 ? 54u + (size_t)(frame[18] << 8 | frame[19])
			  : 14u + (size_t)(frame[16] << 8 | frame[17]);
	le32 icrc;

	end = u64_min(end, n);
	if (end < (ipv6 ? BTH6 : BTH4) + WIRE_BTH_BYTES + WIRE_ICRC_BYTES)
		return;
	icrc = le32_put(wire_icrc(frame + IP, end - IP - sizeof(icrc)));
	memcpy(frame + end - sizeof(icrc), &icrc, sizeof(icrc));
}

static size_t plain_frame(uint8_t opcode, bool ipv6, uint32_t payload_len,
			  uint8_t *frame)
{
	static const uint8_t payload[WIRE_MTU_MAX];
	struct wire_pkt pkt;
	uint64_t rng = SEED;

	test_random_pkt(&rng, opcode, !ipv6, payload, payload_len, &pkt);
	return wire_build(&pkt, frame);
}

/* Parses a copy that ends where the frame ends, so that ASan sees more. */
static enum wire_error parse_exact(const uint8_t *frame, size_t n,
				   struct wire_pkt *pkt)
{
	uint8_t *copy = malloc(n + !n);
	enum wire_error e;

	assert_non_null(copy);
	memcpy(copy, frame, n);
	e = wire_parse(copy, n, pkt);
	free(copy);
	return e;
}

static void test_table(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	unsigned int reached = 0;
	struct wire_pkt pkt;
	struct wire_pkt untouched;
	size_t i;

	memset(&untouched, 0xa5, sizeof(untouched));
	for (i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		size_t n =
			plain_frame(r->opcode, r->ipv6, r->payload_len, frame);
		const struct edit *e;
		enum wire_error got;

		for (e = r->edits; e->at; e++) {
			assert_int_not_equal(frame[e->at], e->value);
			frame[e->at] = e->value;
		}
		if (r->repair & SUM)
			fix_sum(frame + IP);
		if (r->repair & ICRC)
			fix_icrc(frame, n, r->ipv6);
		memcpy(&pkt, &untouched, sizeof(pkt));
		got = parse_exact(frame, n, &pkt);
		if (got != r->want)
			print_error("row %zu, %s\n", i, r->what);
		assert_int_equal(got, r->want);
		if (got)
			assert_memory_equal(&pkt, &untouched, sizeof(pkt));
		reached |= 1u << got;
	}
	assert_int_equal(reached, (1u << (WIRE_E_PAYLOAD + 1)) - 1);
}

/* Addresses that mean IPv4 in host form must not come in an IPv6 header. */
static void test_mapped_address(void **state)
{
	static const size_t at[] = {IP + 8, IP + 24};
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	size_t i;

	for (i = 0; i < ARRAY_LEN(at); i++) {
		size_t n = plain_frame(WIRE_RC_ACK, true, 0, frame);

		memset(frame + at[i], 0, 10);
		memset(frame + at[i] + 10, 0xff, 2);
		fix_icrc(frame, n, true);
		assert_int_equal(parse_exact(frame, n, &pkt), WIRE_E_IP);
	}
}

static void test_too_much_payload(void **state)
{
	static uint8_t frame[WIRE_FRAME_MAX + 4];
	struct wire_pkt pkt;
	size_t n = plain_frame(WIRE_RC_SEND_ONLY, false, WIRE_MTU_MAX, frame);
	uint32_t ip_bytes = (uint32_t)n + 4 - IP;

	assert_int_equal(parse_exact(frame, n, &pkt), WIRE_OK);
	frame[16] = (uint8_t)(ip_bytes >> 8);
	frame[17] = (uint8_t)ip_bytes;
	frame[38] = (uint8_t)((ip_bytes - 20) >> 8);
	frame[39] = (uint8_t)(ip_bytes - 20);
	fix_sum(frame + IP);
	fix_icrc(frame, n + 4, false);
	assert_int_equal(parse_exact(frame, n + 4, &pkt), WIRE_E_PAYLOAD);
}

static void test_every_cut(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	size_t i;
	size_t cut;
	int ipv6;

	for (ipv6 = 0; ipv6 < 2; ipv6++)
		for (i = 0; i < ARRAY_LEN(test_opcodes); i++) {
			size_t n =
				plain_frame(test_opcodes[i], ipv6, 77, frame);

			for (cut = 0; cut < n; cut++)
				assert_int_equal(parse_exact(frame, cut, &pkt),
						 WIRE_E_SHORT);
		}
}

/* Every claim about lengths, with everything else made right: no result but a
 * defined one, and no read outside (ASan). */
static void test_every_length(void **state)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt pkt;
	uint32_t ip_bytes;
	size_t i;

	for (i = 0; i < ARRAY_LEN(test_opcodes); i++) {
		size_t n = plain_frame(test_opcodes[i], false, 40, frame);
		uint32_t least = 20 + 8 + 12 + 4 +
				 wire_opcodes[test_opcodes[i]].ext_bytes;

		for (ip_bytes = 0; ip_bytes <= n; ip_bytes++) {
			enum wire_error e;

			frame[16] = (uint8_t)(ip_bytes >> 8);
			frame[17] = (uint8_t)ip_bytes;
			frame[38] = (uint8_t)((ip_bytes - 20) >> 8);
			frame[39] = (uint8_t)(ip_bytes - 20);
			fix_sum(frame + IP);
			fix_icrc(frame, n, false);
			e = parse_exact(frame, n, &pkt);
			assert_in_range(e, WIRE_OK, WIRE_E_PAYLOAD);
			if (ip_bytes < least)
				assert_int_not_equal(e, WIRE_OK);
		}
	}
}

static void test_noise(void **state)
{
	uint8_t frame[256];
	struct wire_pkt pkt;
	uint64_t rng = SEED;
	size_t i;

	for (i = 0; i < 20000; i++) {
		size_t n = test_random(&rng) % sizeof(frame);

		test_random_bytes(&rng, frame, n);
		if (n > UDP6 && i & 1) {
			frame[12] = i & 2 ? 0x08 : 0x86;
			frame[13] = i & 2 ? 0x00 : 0xdd;
			frame[IP] = i & 2 ? 0x45 : 0x60;
			if (i & 2)
				fix_sum(frame + IP);
		}
		assert_int_not_equal(parse_exact(frame, n, &pkt), WIRE_OK);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_mapped_address),
		cmocka_unit_test(test_too_much_payload),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_every_length),
		cmocka_unit_test(test_noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
