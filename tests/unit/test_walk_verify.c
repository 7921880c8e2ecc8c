/* SPDX-License-Identifier: Apache-2.0 */
/* The verifier: for every rule an image that only this rule refuses, and beside
 * it one that is just good enough. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>

#include "base/error.h"
#include "walk/op.h"
#include "walk/program.h"
#include "walk/show.h"

enum {
	INSNS = 8,
};

/* NODE has 16 bytes, PAD 16. */
struct row {
	const char *words; /* NULL: it is good */
	struct walk_insn insns[INSNS];
};

#define I(op_, d_, a_, b_, imm_)                                            \
	{                                                                   \
		.op = WALK_OP_##op_, .d = d_, .a = a_, .b = b_, .imm = imm_ \
	}
#define JI(op_, a_, value, on) I(op_, 0, a_, 0, (on) << 16 | (value))
#define RET		       I(RET, 0, 0, 0, 0)
#define ARG(node_reg, pad_reg, len, pad_at) \
	I(ARG, 0, node_reg, pad_reg, (len) << 16 | (pad_at))
#define NO WALK_REG_NONE

static const struct row rows[] = {
	/* 1. the form of an instruction */
	{NULL, {RET}},
	{"there is no operation 0x1", {{.op = 1}}},
	{"does not use is not 0", {I(RET, 1, 0, 0, 0)}},
	{"does not use is not 0", {I(RET, 0, 1, 0, 0)}},
	{"does not use is not 0", {I(RET, 0, 0, 1, 0)}},
	{"does not use is not 0", {I(RET, 0, 0, 0, 1)}},
	{NULL, {I(LDN8, 63, 0, 0, 8), RET}},
	{"r0 to r63 only", {I(LDN8, 64, 0, 0, 8), RET}},
	{NULL, {I(FAIL, 0, 0, 0, 255)}},
	{"not 0 to 255", {I(FAIL, 0, 0, 0, 256)}},
	{"not 0 to 255", {I(FAIL, 0, 0, 0, -1)}},
	{NULL, {I(CPY, 0, NO, 0, 0), ARG(NO, NO, 16, 0), RET}},
	{"second slot is missing", {RET, I(CPY, 0, NO, 0, 0)}},
	{"second slot is missing", {I(CPY, 0, NO, 0, 0), RET}},
	{"stands alone", {ARG(NO, NO, 1, 0), RET}},
	{"does not use is not 0",
	 {I(CPY, 1, NO, 0, 0), ARG(NO, NO, 1, 0), RET}},
	{"does not use is not 0",
	 {I(SUM, 1, NO, 0, 0), ARG(NO, NO, 1, 1), RET}},
	{"does not use is not 0", {I(SUM, 1, NO, 0, 0), ARG(NO, 3, 1, 0), RET}},
	{"r0 to r63 only", {I(CMP, 64, NO, 0, 0), ARG(NO, NO, 1, 0), RET}},
	{"r0 to r63 only", {I(CMP, 1, 64, 0, 0), ARG(NO, NO, 1, 0), RET}},
	{"not 1 to 4096", {I(CMP, 1, NO, 0, 0), ARG(NO, NO, 0, 0), RET}},
	/* 2. ways */
	{NULL, {I(JA, 0, 0, 0, 1), RET}},
	{"jumps go forward", {I(JA, 0, 0, 0, 0), RET}},
	{"jumps go forward", {I(JA, 0, 0, 0, -1), RET}},
	{"jumps go forward", {I(JA, 0, 0, 0, 2), RET}},
	{"into a block",
	 {I(LDI, 1, 0, 0, 0), JI(JEQI, 1, 0, 2), I(CPY, 0, NO, 0, 0),
	  ARG(NO, NO, 1, 0), RET}},
	{"no way leads here", {I(JA, 0, 0, 0, 2), RET, RET}},
	{"no way leads here", {RET, RET}},
	{"runs off its end", {I(LDI, 1, 0, 0, 0)}},
	{"runs off its end",
	 {I(LDI, 1, 0, 0, 0), JI(JEQI, 1, 0, 1), I(LDI, 1, 0, 0, 0)}},
	/* 3. registers that were written on every way */
	{"r5 was not written", {I(GO, 0, 5, 0, 0)}},
	{"r5 was not written", {I(LDI, 1, 0, 0, 0), I(ADD, 2, 1, 5, 0), RET}},
	{"r1 was not written", {I(LDIH, 1, 0, 0, 0), RET}},
	{"r2 was not written",
	 {I(LDI, 1, 0, 0, 0), JI(JEQI, 1, 0, 2), I(LDI, 2, 0, 0, 0),
	  I(GO, 0, 2, 0, 0)}},
	{NULL,
	 {I(LDI, 1, 0, 0, 0), JI(JEQI, 1, 0, 3), I(LDI, 2, 0, 0, 0),
	  I(JA, 0, 0, 0, 2), I(LDI, 2, 0, 0, 7), I(GO, 0, 2, 0, 0)}},
	/* 4. windows */
	{NULL, {I(LDN8, 1, 0, 0, 8), RET}},
	{"bytes 9 to 16 are not in the node", {I(LDN8, 1, 0, 0, 9), RET}},
	{"bytes -1 to 6 are not in the node", {I(LDN8, 1, 0, 0, -1), RET}},
	{"bytes 16 to 16 are not in the pad", {I(LDP1, 1, 0, 0, 16), RET}},
	{"not in the pad", {I(LDI, 1, 0, 0, 0), I(STP2, 0, 1, 0, 15), RET}},
	{"put 'bnd r1, 8' before it",
	 {I(LDN8, 1, 0, 0, 0), I(LDNX8, 2, 1, 0, 0), RET}},
	{NULL,
	 {I(LDN8, 1, 0, 0, 0), I(BND, 0, 1, 0, 8), I(LDNX8, 2, 1, 0, 0), RET}},
	{"r1 may be 9",
	 {I(LDN8, 1, 0, 0, 0), I(BND, 0, 1, 0, 9), I(LDNX8, 2, 1, 0, 0), RET}},
	{"r1 may be 8",
	 {I(LDN8, 1, 0, 0, 0), I(BND, 0, 1, 0, 8), I(LDNX8, 2, 1, 0, 1), RET}},
	/* The other way has no bound. */
	{"r1 may be 18446744073709551615",
	 {I(LDN8, 1, 0, 0, 0), JI(JEQI, 1, 0, 2), I(BND, 0, 1, 0, 8),
	  I(LDNX8, 2, 1, 0, 0), RET}},
	/* The larger bound of both. */
	{"r2 may be 9",
	 {I(LDI, 1, 0, 0, 0), I(LDI, 2, 0, 0, 8), JI(JEQI, 1, 0, 2),
	  I(LDI, 2, 0, 0, 9), I(LDNX8, 2, 2, 0, 0), RET}},
	{"leads out of the node",
	 {I(LDN1, 1, 0, 0, 0), I(CPY, 0, NO, 0, 0), ARG(1, NO, 4, 0), RET}},
	{"leads out of the pad",
	 {I(LDN1, 1, 0, 0, 0), I(CPY, 0, NO, 0, 0), ARG(NO, 1, 4, 0), RET}},
	{"length register may be larger",
	 {I(LDN1, 1, 0, 0, 0), I(CPY, 0, 1, 0, 0), ARG(NO, NO, 16, 0), RET}},
	{NULL,
	 {I(LDN1, 1, 0, 0, 0), I(MINI, 1, 1, 0, 16), I(CPY, 0, 1, 0, 0),
	  ARG(NO, NO, 16, 0), RET}},
	{"not in the pad", {I(CPY, 0, NO, 0, 0), ARG(NO, NO, 16, 1), RET}},
	{"not in the node", {I(SUM, 1, NO, 0, 1), ARG(NO, NO, 16, 0), RET}},
	/* 5. stores */
	{"does not say that it stores",
	 {I(LDI, 1, 0, 0, 0), I(STN8, 0, 1, 0, 0), RET}},
	{"does not say that it stores",
	 {I(LDI, 1, 0, 0, 0), I(FAAN, 2, 1, 0, 0), RET}},
};

/* With the flag. */
static const struct row store_rows[] = {
	{NULL, {I(LDI, 1, 0, 0, 0), I(STN8, 0, 1, 0, 0), RET}},
	{NULL, {I(LDI, 1, 0, 0, 0), I(FAAN, 2, 1, 0, 8), RET}},
	{"not in the node", {I(LDI, 1, 0, 0, 0), I(CASN, 2, 1, 1, 16), RET}},
};

static uint32_t count_of(const struct walk_insn *insns)
{
	uint32_t n = 0;

	while (n < INSNS && insns[n].op)
		n++;
	return n;
}

static struct walk_image image_of(const struct row *row, uint16_t flags)
{
	return (struct walk_image){
		.name = "row",
		.load_bytes = 16,
		.pad_bytes = 16,
		.flags = flags,
		.count = count_of(row->insns),
		.insns = row->insns,
	};
}

static void check(const struct row *row, size_t i, uint16_t flags)
{
	const struct walk_image image = image_of(row, flags);
	const int err = walk_verify(&image, 0, NULL);

	if (err != (row->words ? -EINVAL : 0))
		fail_msg("row %zu: %d, %s", i, err, error_last());
	if (row->words && !strstr(error_last(), row->words))
		fail_msg("row %zu: '%s' lacks '%s'", i, error_last(),
			 row->words);
}

static void every_rule_refuses_what_breaks_it(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(&rows[i], i, 0);
	for (size_t i = 0; i < sizeof(store_rows) / sizeof(rows[0]); i++)
		check(&store_rows[i], i, WALK_STORES);
}

/* The bound that an instruction leaves: the access that it just allows, and the
 * one that it does not. r1 is below 256, r2 anything. */
static const struct {
	struct walk_insn insn; /* writes r3 */
	uint64_t bound;
} ops[] = {
	{I(ADDI, 3, 1, 0, 100), 355},
	{I(ADD, 3, 1, 1, 0), 510},
	{I(ADDI, 3, 1, 0, -1), UINT64_MAX},
	{I(SUBI, 3, 1, 0, 1), UINT64_MAX},
	{I(MULI, 3, 1, 0, 8), 2040},
	{I(MUL, 3, 2, 1, 0), UINT64_MAX},
	{I(DIVI, 3, 1, 0, 10), 25},
	{I(DIV, 3, 1, 2, 0), 255},
	{I(DIVI, 3, 1, 0, 0), 255},
	{I(MODI, 3, 2, 0, 10), 9},
	{I(MODI, 3, 1, 0, 0), 255},
	{I(MOD, 3, 1, 2, 0), 255},
	{I(ANDI, 3, 2, 0, 31), 31},
	{I(ANDI, 3, 1, 0, -2), 255},
	{I(OR, 3, 1, 1, 0), 255},
	{I(ORI, 3, 1, 0, 256), 511},
	{I(XORI, 3, 1, 0, 1), 255},
	{I(SHLI, 3, 1, 0, 2), 1020},
	{I(SHLI, 3, 1, 0, 60), UINT64_MAX},
	{I(SHL, 3, 1, 1, 0), UINT64_MAX},
	{I(SHRI, 3, 1, 0, 4), 15},
	{I(SHRI, 3, 2, 0, 56), 255},
	{I(SARI, 3, 1, 0, 4), 15},
	{I(SARI, 3, 2, 0, 60), UINT64_MAX},
	{I(MINI, 3, 2, 0, 77), 77},
	{I(MAXI, 3, 1, 0, 300), 300},
	{I(MAX, 3, 1, 2, 0), UINT64_MAX},
	{I(ADDI32, 3, 2, 0, 1), UINT32_MAX},
	{I(ANDI32, 3, 2, 0, 31), 31},
	{I(SHLI32, 3, 1, 0, 2), 1020},
	{I(SHRI32, 3, 2, 0, 28), 15},
	{I(SARI32, 3, 2, 0, 31), UINT32_MAX},
	{I(MOV, 3, 1, 0, 0), 255},
	{I(MOV32, 3, 2, 0, 0), UINT32_MAX},
	{I(NEG, 3, 1, 0, 0), UINT64_MAX},
	{I(SX1, 3, 1, 0, 0), UINT64_MAX},
	{I(SX2, 3, 1, 0, 0), 255},
	{I(BSW2, 3, 2, 0, 0), UINT16_MAX},
	{I(BSW8, 3, 1, 0, 0), UINT64_MAX},
	{I(LDI, 3, 0, 0, 40), 40},
	{I(LDI, 3, 0, 0, -1), UINT64_MAX},
	{I(LDN2, 3, 0, 0, 0), UINT16_MAX},
};

static void bounds_follow_arithmetic(void **state)
{
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct walk_insn insns[] = {I(LDN1, 1, 0, 0, 0),
					    I(LDN8, 2, 0, 0, 0), ops[i].insn,
					    I(LDPX1, 4, 3, 0, 0), RET};
		struct walk_image image = {.name = "bound",
					   .load_bytes = 16,
					   .pad_bytes = 4032,
					   .count = 5,
					   .insns = insns};
		char words[40];

		if (ops[i].bound < 4032) {
			assert_int_equal(walk_verify(&image, 0, NULL), 0);
			image.pad_bytes = (uint16_t)ops[i].bound;
		}
		assert_int_equal(walk_verify(&image, 0, NULL), -EINVAL);
		(void)snprintf(words, sizeof(words), "r3 may be %llu,",
			       (unsigned long long)ops[i].bound);
		if (!strstr(error_last(), words))
			fail_msg("op %zu: %s", i, error_last());
	}
}

static void the_longest_path_counts(void **state)
{
	static const struct row ways = {
		NULL,
		{I(LDN8, 1, 0, 0, 0), JI(JEQI, 1, 0, 3), I(SUM, 2, NO, 0, 0),
		 ARG(NO, NO, 16, 0), I(LDN8, 2, 0, 0, 0), RET},
	};
	struct walk_insn copy[] = {I(CPY, 0, NO, 0, 0), ARG(NO, NO, 4000, 0),
				   RET};
	struct walk_image image = image_of(&ways, 0);
	struct walk_facts facts;

	assert_int_equal(walk_verify(&image, 5, &facts), 0);
	assert_int_equal(facts.longest, 5);
	assert_int_equal(facts.loads, 3);
	assert_int_equal(facts.stores, 0);
	assert_int_equal(walk_verify(&image, 4, &facts), -EINVAL);
	assert_non_null(strstr(error_last(), "costs 5, more than"));
	image.load_bytes = 4096;
	image.pad_bytes = 4000;
	image.insns = copy;
	image.count = 3;
	assert_int_equal(walk_verify(&image, 0, &facts), 0);
	assert_int_equal(facts.longest, 1 + 4000 / 32 + 1);
	image.count = 0;
	assert_int_equal(walk_verify(&image, 0, &facts), -EINVAL);
	image.count = WALK_INSNS_MAX + 1;
	assert_int_equal(walk_verify(&image, 0, &facts), -EINVAL);
}

static void listings_say_what_is_there(void **state)
{
	static const struct {
		struct walk_insn insns[2];
		const char *text;
		uint32_t slots;
	} shown[] = {
		{{I(LDN8, 1, 0, 0, 16)}, "ldn8 r1, node[16]", 1},
		{{I(LDPX2, 1, 3, 0, 4)}, "ldpx2 r1, pad[r3 + 4]", 1},
		{{I(STP4, 0, 2, 0, 8)}, "stp4 pad[8], r2", 1},
		{{I(STNX1, 0, 2, 3, 8)}, "stnx1 node[r2 + 8], r3", 1},
		{{I(CASN, 1, 2, 3, 8)}, "casn r1, node[8], r2, r3", 1},
		{{I(ADDI32, 1, 2, 0, -3)}, "add32 r1, r2, -3", 1},
		{{JI(JLTI, 4, 9, 7)}, "jlt r4, 9, 7", 1},
		{{I(JA, 0, 0, 0, 3)}, "ja 3", 1},
		{{I(CMP, 4, NO, 0, 8), ARG(2, NO, 16, 24)},
		 "cmp r4, pad[24], node[r2 + 8], 16",
		 2},
		{{I(CPY, 0, 5, 0, 8), ARG(NO, NO, 16, 24)},
		 "cpy pad[24], node[8], r5 (<= 16)",
		 2},
		{{I(FAIL, 0, 0, 0, 7)}, "fail 7", 1},
		{{{.op = 3, .imm = 5}}, "? 03 00 00 00 00000005", 1},
	};

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
		const struct walk_image image = {.count = 2,
						 .insns = shown[i].insns};
		char text[WALK_SHOW_MAX];

		assert_int_equal(walk_show(&image, 0, text), shown[i].slots);
		assert_string_equal(text, shown[i].text);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_rule_refuses_what_breaks_it),
		cmocka_unit_test(bounds_follow_arithmetic),
		cmocka_unit_test(the_longest_path_counts),
		cmocka_unit_test(listings_say_what_is_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
