/* SPDX-License-Identifier: Apache-2.0 */
/* What of a message is left undone after something that could not be done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "blk_order.h"
#include "wire/block_kv_wire.h"

static struct block_op op(enum block_opcode opcode, uint32_t slot)
{
	return (struct block_op){.opcode = opcode,
				 .arg = slot | (uint64_t)BLOCK_KV_MAX
						       << BLOCK_KV_HOW_SHIFT};
}

static bool may(const struct blk_order *o, enum block_opcode opcode,
		uint32_t slot)
{
	struct block_op p = op(opcode, slot);

	return blk_order_may(o, &p);
}

static void note(struct blk_order *o, enum block_opcode opcode, uint32_t slot,
		 enum block_status status)
{
	struct block_op p = op(opcode, slot);

	blk_order_note(o, &p, status);
}

static void all_is_left_after_a_failure(void **state)
{
	static const enum block_status failures[] = {
		BLOCK_MOVED, BLOCK_FROZEN, BLOCK_NO_ROOM, BLOCK_STALE,
		BLOCK_BUSY,  BLOCK_LATER,  BLOCK_DENIED,
	};

	for (unsigned i = 0; i < ARRAY_LEN(failures); i++) {
		struct blk_order o = {0};

		note(&o, BLOCK_KV_PUT, 5, BLOCK_OK);
		assert_true(may(&o, BLOCK_KV_PUT, 6));
		note(&o, BLOCK_KV_PUT, 6, failures[i]);
		assert_false(may(&o, BLOCK_KV_PUT, 7));
		assert_false(may(&o, BLOCK_APPEND, 0));
	}
}

/* A refusal is not kept: who repeats the message tries again. */
static void only_its_slot_is_left_after_a_refusal(void **state)
{
	static const enum block_status refusals[] = {
		BLOCK_NO_KEY, BLOCK_VERSION, BLOCK_NO_NUMBER};

	for (unsigned i = 0; i < ARRAY_LEN(refusals); i++) {
		struct blk_order o = {0};

		note(&o, BLOCK_KV_DELETE, 5, refusals[i]);
		assert_false(may(&o, BLOCK_KV_PUT, 5));
		assert_false(may(&o, BLOCK_KV_GET, 5));
		assert_true(may(&o, BLOCK_KV_PUT, 6));
		note(&o, BLOCK_KV_PUT, 6, BLOCK_VERSION);
		assert_false(may(&o, BLOCK_KV_ADD, 6));
		assert_false(may(&o, BLOCK_KV_ADD, 5));
		assert_true(may(&o, BLOCK_KV_ADD, 7));
		/* What is about no key hangs on none. */
		assert_true(may(&o, BLOCK_KV_LOOK, 5));
	}
}

/* A get that finds nothing has changed nothing, and would not. */
static void a_get_holds_up_nobody(void **state)
{
	struct blk_order o = {0};

	note(&o, BLOCK_KV_GET, 5, BLOCK_NO_KEY);
	assert_true(may(&o, BLOCK_KV_PUT, 5));
}

static void many_refusals_are_not_too_many(void **state)
{
	struct blk_order o = {0};

	for (uint32_t i = 0; i < BLOCK_OPS_MAX; i++)
		note(&o, BLOCK_KV_DELETE, i, BLOCK_NO_KEY);
	for (uint32_t i = 0; i < BLOCK_OPS_MAX; i++)
		assert_false(may(&o, BLOCK_KV_PUT, i));
	assert_true(may(&o, BLOCK_KV_PUT, BLOCK_OPS_MAX));
	/* More than a message has: all is left. */
	note(&o, BLOCK_KV_DELETE, BLOCK_OPS_MAX, BLOCK_NO_KEY);
	assert_false(may(&o, BLOCK_KV_PUT, BLOCK_OPS_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_left_after_a_failure),
		cmocka_unit_test(only_its_slot_is_left_after_a_refusal),
		cmocka_unit_test(a_get_holds_up_nobody),
		cmocka_unit_test(many_refusals_are_not_too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
