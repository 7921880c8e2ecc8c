/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes that are planted in the verifier are found by the reference: random
 * instructions, most of them refused, until one is accepted that breaks a rule
 * when it runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/plant.h"
#include "base/rng.h"
#include "walk_reference.h"

enum plant plant_now;

enum {
	TRIES = 60000,
	INSNS = 7,
	WINDOW = 64,
};

/* Few registers and small numbers, so that something fits now and then. */
static struct walk_insn random_insn(struct rng *r)
{
	static const uint8_t ops[] = {
		WALK_OP_LDI,  WALK_OP_LDI,   WALK_OP_LDN1,  WALK_OP_LDNX1,
		WALK_OP_ADDI, WALK_OP_LDPX1, WALK_OP_STPX1, WALK_OP_JEQI,
		WALK_OP_MOV,  WALK_OP_BND};
	struct walk_insn n = {.op = ops[rng_below(r, sizeof(ops))]};
	const uint8_t form = walk_op_info(n.op)->form;

	if (form != WALK_FORM_BOUND && form != WALK_FORM_JUMP_IMM &&
	    form != WALK_FORM_STORE_X)
		n.d = (uint8_t)rng_below(r, 3);
	if (form != WALK_FORM_CONST && form != WALK_FORM_LOAD)
		n.a = (uint8_t)rng_below(r, 3);
	if (form == WALK_FORM_STORE_X)
		n.b = (uint8_t)rng_below(r, 3);
	if (form == WALK_FORM_JUMP_IMM)
		n.imm = (int32_t)(rng_between(r, 1, 3) << 16 | rng_below(r, 3));
	else if (form != WALK_FORM_UNARY)
		n.imm = (int32_t)rng_below(r, WINDOW + 8);
	return n;
}

/* Programs that were accepted, and how many of them broke a rule. */
static void play(uint32_t *accepted, uint32_t *broken)
{
	uint8_t node[WINDOW], pad[WINDOW];
	struct rng r;

	*accepted = *broken = 0;
	rng_init(&r, 1);
	for (int i = 0; i < TRIES; i++) {
		struct walk_insn insns[INSNS];
		const struct walk_image image = {.name = "play",
						 .load_bytes = WINDOW,
						 .pad_bytes = WINDOW,
						 .count = INSNS,
						 .insns = insns};

		for (int k = 0; k < INSNS - 1; k++)
			insns[k] = random_insn(&r);
		insns[INSNS - 1] = (struct walk_insn){.op = WALK_OP_RET};
		if (walk_verify(&image, 0, NULL))
			continue;
		(*accepted)++;
		for (int k = 0; k < 4; k++) {
			for (int b = 0; b < WINDOW; b++)
				node[b] = pad[b] =
					(uint8_t)rng_below(&r, k % 2 ? 3 : 256);
			if (reference_run(&image, node, pad, NULL).step ==
			    REFERENCE_BROKEN) {
				(*broken)++;
				break;
			}
		}
	}
}

static void the_verifier_accepts_nothing_bad(void **state)
{
	uint32_t accepted, broken;

	plant_now = PLANT_none;
	play(&accepted, &broken);
	assert_true(accepted > 100);
	assert_int_equal(broken, 0);
}

static void a_missing_join_is_found(void **state)
{
	uint32_t accepted, broken;

	plant_now = PLANT_walk_no_join;
	play(&accepted, &broken);
	assert_true(broken > 0);
}

static void a_missing_bound_is_found(void **state)
{
	uint32_t accepted, broken;

	plant_now = PLANT_walk_no_bound;
	play(&accepted, &broken);
	assert_true(broken > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_verifier_accepts_nothing_bad),
		cmocka_unit_test(a_missing_join_is_found),
		cmocka_unit_test(a_missing_bound_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
