/* SPDX-License-Identifier: Apache-2.0 */
/* Tenants have equal shares of the engine, whatever the others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "walk_rig.h"

/* One tenant has all workspaces; another comes. */
static void tenants_have_equal_shares_of_workspaces(void **state)
{
	struct test *t = *state;
	struct walk a[WALK_WORKSPACES + 1], b[WALK_WORKSPACES];

	t->nodes[3].next = NODE_BYTES; /* a circle */
	for (int i = 0; i < WALK_WORKSPACES; i++)
		assert_int_equal(begin(t, &a[i], a, NODE_BYTES, 99,
				       20 + 10 * (uint32_t)i),
				 0);
	assert_int_equal(begin(t, &b[0], b, NODE_BYTES, 99, 20), -EAGAIN);
	while (walk_engine_busy(t->engine) == WALK_WORKSPACES)
		(void)walk_engine_turn(t->engine, 64);
	/* What is free now is for the other, who has asked. */
	assert_int_equal(begin(t, &a[64], a, NODE_BYTES, 99, 20), -EAGAIN);
	assert_int_equal(begin(t, &b[0], b, NODE_BYTES, 99, 20), 0);
	run_all(t);
	for (int i = 0; i < 32; i++) {
		/* Alone until here, a could have more. */
		assert_int_equal(begin(t, &b[i], b, NODE_BYTES, 99, 20), 0);
		assert_int_equal(begin(t, &a[i], a, NODE_BYTES, 99, 20), 0);
	}
	assert_int_equal(begin(t, &a[32], a, NODE_BYTES, 99, 20), -EAGAIN);
	assert_int_equal(begin(t, &b[32], b, NODE_BYTES, 99, 20), -EAGAIN);
	run_all(t);
}

/* Who asked and never came again does not hold the others back for ever. */
static void a_tenant_that_gave_up_has_no_share(void **state)
{
	struct test *t = *state;
	struct walk a[WALK_WORKSPACES], b;

	t->nodes[3].next = NODE_BYTES;
	for (int i = 0; i < WALK_WORKSPACES; i++)
		assert_int_equal(begin(t, &a[i], a, NODE_BYTES, 99, 9999), 0);
	assert_int_equal(begin(t, &b, &b, NODE_BYTES, 99, 20), -EAGAIN);
	assert_true(walk_engine_forget(t->engine, &a[0]));
	assert_int_equal(begin(t, &a[0], a, NODE_BYTES, 99, 20), -EAGAIN);
	for (int i = 0; i < 100; i++)
		(void)walk_engine_turn(t->engine, 1);
	assert_int_equal(begin(t, &a[0], a, NODE_BYTES, 99, 20), 0);
}

/* 32 walks against 16: half of the iterations each. Then 32 against one, which
 * has one of 17. */
static void tenants_have_equal_shares_of_iterations(void **state)
{
	struct test *t = *state;
	struct walk a[32], b[16];
	uint32_t all = 0;

	t->nodes[3].next = NODE_BYTES;
	for (int i = 0; i < 32; i++) {
		if (i < 16)
			assert_int_equal(begin(t, &b[i], b, NODE_BYTES, 99, 32),
					 0);
		assert_int_equal(begin(t, &a[i], a, NODE_BYTES, 99, 9999), 0);
	}
	for (; t->over < 16; all++)
		(void)walk_engine_turn(t->engine, 1);
	assert_in_range(all, 2 * 16 * 32 - 32, 2 * 16 * 32 + 32);
	assert_int_equal(begin(t, &b[0], b, NODE_BYTES, 99, 10), 0);
	for (all = 0; t->over < 17; all++)
		(void)walk_engine_turn(t->engine, 1);
	assert_in_range(all, 9 * 17 - 1, 11 * 17 + 1);
}

int main(void)
{
#define ENGINE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		ENGINE_TEST(tenants_have_equal_shares_of_workspaces),
		ENGINE_TEST(a_tenant_that_gave_up_has_no_share),
		ENGINE_TEST(tenants_have_equal_shares_of_iterations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
