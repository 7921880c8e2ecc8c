/* SPDX-License-Identifier: Apache-2.0 */
/* The opcode table against the specification's, and packet number arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "test_wire_pkt.h"
#include "wire/wire.h"

struct expect {
	uint8_t opcode;
	const char *name;
	uint8_t transport;
	uint8_t kind;
	uint8_t ext_bytes;
	char place; /* first, middle, last, only */
	bool response;
	bool payload;
	bool recv;
};

static const struct expect expect[] = {
	{0x00, "RC_SEND_FIRST", WIRE_RC, WIRE_SEND, 0, 'f', 0, 1, 1},
	{0x01, "RC_SEND_MIDDLE", WIRE_RC, WIRE_SEND, 0, 'm', 0, 1, 1},
	{0x02, "RC_SEND_LAST", WIRE_RC, WIRE_SEND, 0, 'l', 0, 1, 1},
	{0x03, "RC_SEND_LAST_IMM", WIRE_RC, WIRE_SEND, 4, 'l', 0, 1, 1},
	{0x04, "RC_SEND_ONLY", WIRE_RC, WIRE_SEND, 0, 'o', 0, 1, 1},
	{0x05, "RC_SEND_ONLY_IMM", WIRE_RC, WIRE_SEND, 4, 'o', 0, 1, 1},
	{0x06, "RC_WRITE_FIRST", WIRE_RC, WIRE_WRITE, 16, 'f', 0, 1, 0},
	{0x07, "RC_WRITE_MIDDLE", WIRE_RC, WIRE_WRITE, 0, 'm', 0, 1, 0},
	{0x08, "RC_WRITE_LAST", WIRE_RC, WIRE_WRITE, 0, 'l', 0, 1, 0},
	{0x09, "RC_WRITE_LAST_IMM", WIRE_RC, WIRE_WRITE, 4, 'l', 0, 1, 1},
	{0x0a, "RC_WRITE_ONLY", WIRE_RC, WIRE_WRITE, 16, 'o', 0, 1, 0},
	{0x0b, "RC_WRITE_ONLY_IMM", WIRE_RC, WIRE_WRITE, 20, 'o', 0, 1, 1},
	{0x0c, "RC_READ_REQ", WIRE_RC, WIRE_READ, 16, 'o', 0, 0, 0},
	{0x0d, "RC_READ_RESP_FIRST", WIRE_RC, WIRE_READ_RESP, 4, 'f', 1, 1, 0},
	{0x0e, "RC_READ_RESP_MIDDLE", WIRE_RC, WIRE_READ_RESP, 0, 'm', 1, 1, 0},
	{0x0f, "RC_READ_RESP_LAST", WIRE_RC, WIRE_READ_RESP, 4, 'l', 1, 1, 0},
	{0x10, "RC_READ_RESP_ONLY", WIRE_RC, WIRE_READ_RESP, 4, 'o', 1, 1, 0},
	{0x11, "RC_ACK", WIRE_RC, WIRE_ACK, 4, 'o', 1, 0, 0},
	{0x12, "RC_ATOMIC_ACK", WIRE_RC, WIRE_ATOMIC_ACK, 12, 'o', 1, 0, 0},
	{0x13, "RC_CAS", WIRE_RC, WIRE_ATOMIC, 28, 'o', 0, 0, 0},
	{0x14, "RC_FAA", WIRE_RC, WIRE_ATOMIC, 28, 'o', 0, 0, 0},
	{0x16, "RC_SEND_LAST_INV", WIRE_RC, WIRE_SEND, 4, 'l', 0, 1, 1},
	{0x17, "RC_SEND_ONLY_INV", WIRE_RC, WIRE_SEND, 4, 'o', 0, 1, 1},
	{0x64, "UD_SEND_ONLY", WIRE_UD, WIRE_SEND, 8, 'o', 0, 1, 1},
	{0x65, "UD_SEND_ONLY_IMM", WIRE_UD, WIRE_SEND, 12, 'o', 0, 1, 1},
	{0xc0, "RC_MASKED_CAS", WIRE_RC, WIRE_ATOMIC, 44, 'o', 0, 0, 0},
	{0xc1, "RC_MASKED_FAA", WIRE_RC, WIRE_ATOMIC, 36, 'o', 0, 0, 0},
	{0xc2, "RC_WALK", WIRE_RC, WIRE_WALK, 32, 'o', 0, 1, 0},
	{0xc3, "RC_WALK_ANSWER", WIRE_RC, WIRE_WALK_ANSWER, 36, 'o', 1, 1, 0},
	{0xc4, "UD_WALK_ON", WIRE_UD, WIRE_WALK_ON, 40, 'o', 0, 1, 0},
	{0xc5, "UD_WALK_BACK", WIRE_UD, WIRE_WALK_BACK, 40, 'o', 0, 1, 0},
};

static void test_table(void **state)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(expect); i++) {
		const struct expect *e = &expect[i];
		const struct wire_opcode *op = &wire_opcodes[e->opcode];
		bool first = e->place == 'f' || e->place == 'o';
		bool last = e->place == 'l' || e->place == 'o';

		assert_string_equal(op->name, e->name);
		assert_int_equal(op->transport, e->transport);
		assert_int_equal(op->kind, e->kind);
		assert_int_equal(op->ext_bytes, e->ext_bytes);
		assert_int_equal(!!(op->flags & WIRE_OP_FIRST), first);
		assert_int_equal(!!(op->flags & WIRE_OP_LAST), last);
		assert_int_equal(!!(op->flags & WIRE_OP_RESPONSE), e->response);
		assert_int_equal(!!(op->flags & WIRE_OP_PAYLOAD), e->payload);
		assert_int_equal(!!(op->flags & WIRE_OP_RECV), e->recv);
		assert_int_equal(test_opcodes[i], e->opcode);
		assert_int_equal(wire_header_bytes(e->opcode, true),
				 14 + 20 + 8 + 12 + e->ext_bytes);
		assert_int_equal(wire_header_bytes(e->opcode, false),
				 14 + 40 + 8 + 12 + e->ext_bytes);
	}
}

/* Unreliable connections (0x20 and up) are among those that do not exist. */
static void test_no_others(void **state)
{
	size_t known = 0;
	size_t i;

	for (i = 0; i < ARRAY_LEN(wire_opcodes); i++)
		known += wire_opcodes[i].name != NULL;
	assert_int_equal(known, ARRAY_LEN(expect));
	assert_int_equal(known, ARRAY_LEN(test_opcodes));
	assert_null(wire_opcodes[0x15].name);
	assert_null(wire_opcodes[0x24].name);
}

static void test_add_flag(void **state)
{
	assert_true(wire_opcodes[WIRE_RC_FAA].flags & WIRE_OP_ADD);
	assert_true(wire_opcodes[WIRE_RC_MASKED_FAA].flags & WIRE_OP_ADD);
	assert_false(wire_opcodes[WIRE_RC_CAS].flags & WIRE_OP_ADD);
	assert_false(wire_opcodes[WIRE_RC_MASKED_CAS].flags & WIRE_OP_ADD);
}

static void test_psn(void **state)
{
	static const struct {
		uint32_t a;
		uint32_t b;
		int32_t diff;
	} rows[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000},
		{0x000010, 0xfffff0, 0x20},
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(wire_psn_diff(rows[i].a, rows[i].b),
				 rows[i].diff);
	assert_int_equal(wire_psn_add(0xffffff, 1), 0);
	assert_int_equal(wire_psn_add(0xfffff0, 0x20), 0x10);
}

static void test_syndromes(void **state)
{
	assert_true(wire_syndrome_is_ack(WIRE_ACK_UNLIMITED));
	assert_true(wire_syndrome_is_ack(0));
	assert_true(wire_syndrome_is_rnr(WIRE_RNR_NAK | 31));
	assert_false(wire_syndrome_is_ack(WIRE_RNR_NAK));
	assert_false(wire_syndrome_is_rnr(WIRE_NAK_PSN));
	assert_false(wire_syndrome_is_ack(WIRE_NAK_ACCESS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_no_others),
		cmocka_unit_test(test_add_flag),
		cmocka_unit_test(test_psn),
		cmocka_unit_test(test_syndromes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
