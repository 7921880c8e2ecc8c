/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: turns, shares of tenants, limits, and every way a walk ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "walk_rig.h"

static void all_workspaces_give_the_right_bytes(void **state)
{
	struct test *t = *state;
	struct walk w[WALK_WORKSPACES], more;

	for (uint64_t i = 0; i < WALK_WORKSPACES; i++)
		assert_int_equal(
			begin(t, &w[i], t, NODE_BYTES, 1 + 3 * i + 5, 1000), 0);
	assert_int_equal(begin(t, &more, t, NODE_BYTES, 1, 1000), -EAGAIN);
	assert_true(walk_engine_uses(t->engine, t->find));
	assert_int_equal(walk_engine_busy(t->engine), WALK_WORKSPACES);
	run_all(t);
	assert_false(walk_engine_uses(t->engine, t->find));
	for (uint64_t i = 0; i < WALK_WORKSPACES; i++) {
		const uint64_t key = 1 + 3 * i + 5;

		assert_int_equal(w[i].status, WALK_DONE);
		assert_int_equal(found(&w[i]), 10 * key);
		assert_int_equal(w[i].at, key * NODE_BYTES);
		assert_int_equal(w[i].took, key - 1); /* without node 5 */
		assert_int_equal(w[i].left, 1000 - w[i].took);
	}
	assert_int_equal(begin(t, &more, t, NODE_BYTES, 1, 1000), 0);
	run_all(t);
}

static void a_circle_ends_with_more_at_the_limit(void **state)
{
	struct test *t = *state;
	struct walk w;

	t->nodes[3].next = NODE_BYTES;
	assert_int_equal(begin(t, &w, t, NODE_BYTES, 99, 100), 0);
	run_all(t);
	assert_int_equal(w.status, WALK_MORE);
	assert_int_equal(w.took, 100);
	assert_int_equal(w.left, 0);
	/* 1, 2, 3, 1, ...: after a hundred comes node 2. */
	assert_int_equal(w.at, 2 * NODE_BYTES);
	assert_int_equal(begin(t, &w, t, NODE_BYTES, 1, 0), 0);
	run_all(t);
	assert_int_equal(w.status, WALK_MORE);
	assert_int_equal(w.took, 0);
}

static void every_end_is_told(void **state)
{
	static const struct {
		uint64_t next;
		enum walk_status status;
		uint64_t at;
	} ends[] = {
		{0, WALK_DONE, 2 * NODE_BYTES},
		{HERE_BYTES, WALK_ELSEWHERE, HERE_BYTES},
		{ELSE_BYTES, WALK_FAULT, ELSE_BYTES},
		{NODE_BYTES + 1, WALK_FAULT, NODE_BYTES + 1},
		{SECRET, WALK_NO_RIGHT, SECRET},
		{(uint64_t)1 << 63 | 0x123, WALK_FAIL, 0x23},
		{3 * NODE_BYTES, WALK_FAULT, 3 * NODE_BYTES}, /* BND */
	};
	struct test *t = *state;
	struct walk w;

	t->nodes[3].bound = 8;
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		t->nodes[2].next = ends[i].next;
		assert_int_equal(begin(t, &w, t, NODE_BYTES, 99, 100), 0);
		run_all(t);
		assert_int_equal(w.status, ends[i].status);
		assert_int_equal(w.at, ends[i].at);
		/* The first pointer is judged in the same way. */
		if (ends[i].status == WALK_DONE || ends[i].status == WALK_FAIL)
			continue;
		assert_int_equal(begin(t, &w, t, ends[i].next, 99, 100), 0);
		run_all(t);
		assert_int_equal(w.status, ends[i].status);
	}
}

static void what_the_request_did_not_bring_is_zero(void **state)
{
	struct test *t = *state;
	struct walk w;
	struct walk_job job = {.program = t->find, .given_bytes = 17};

	assert_int_equal(walk_engine_start(t->engine, &job), -EMSGSIZE);
	assert_int_equal(begin(t, &w, t, NODE_BYTES, 99, 1), 0);
	run_all(t);
	assert_int_equal(found(&w), 0);
}

static void a_forgotten_walk_is_not_told(void **state)
{
	struct test *t = *state;
	struct walk w[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(begin(t, &w[i], t, NODE_BYTES, 3000, 4000), 0);
	assert_true(walk_engine_turn(t->engine, 10));
	assert_true(walk_engine_forget(t->engine, &w[1]));
	assert_false(walk_engine_forget(t->engine, &w[1]));
	run_all(t);
	assert_true(w[0].is_over && !w[1].is_over && w[2].is_over);
	assert_int_equal(t->over, 2);
	assert_int_equal(walk_engine_busy(t->engine), 0);
}

static void done_may_start_the_next(void **state)
{
	struct test *t = *state;
	struct walk w[WALK_WORKSPACES], next;

	for (int i = 0; i < WALK_WORKSPACES; i++)
		assert_int_equal(begin(t, &w[i], t, NODE_BYTES, 2, 10), 0);
	t->again = &next;
	run_all(t);
	assert_true(next.is_over);
	assert_int_equal(t->over, WALK_WORKSPACES + 1);
}

static void a_turn_makes_no_more_than_it_may(void **state)
{
	struct test *t = *state;
	struct walk w;
	uint64_t before;

	assert_int_equal(begin(t, &w, t, NODE_BYTES, 3000, 4000), 0);
	for (uint32_t n = 0; n < 70; n++) {
		before = walk_engine_iterations(t->engine);
		assert_true(walk_engine_turn(t->engine, n));
		assert_int_equal(walk_engine_iterations(t->engine) - before, n);
	}
}

/* A key was revoked or memory moved: an address is not used any more. */
static void addresses_are_asked_again_in_a_new_epoch(void **state)
{
	struct test *t = *state;
	struct walk w;
	uint32_t before;

	assert_int_equal(begin(t, &w, t, NODE_BYTES, 3000, 4000), 0);
	assert_true(walk_engine_turn(t->engine, 3));
	before = t->asked;
	assert_true(walk_engine_turn(t->engine, 3));
	assert_int_equal(t->asked - before, 3);
	t->epoch++;
	before = t->asked;
	assert_true(walk_engine_turn(t->engine, 3));
	assert_int_equal(t->asked - before, 4);
}

static void what_lies_around_is_not_asked_for(void **state)
{
	struct test *t = *state;
	struct walk w;
	uint32_t before;

	t->around = 4 * NODE_BYTES;
	assert_int_equal(begin(t, &w, t, 10 * NODE_BYTES, 3000, 4000), 0);
	before = t->asked;
	assert_int_equal(before, 1);
	/* The first asked for five; two and a half times as many follow. */
	assert_true(walk_engine_turn(t->engine, 4));
	assert_int_equal(t->asked - before, 0);
	assert_true(walk_engine_turn(t->engine, 8));
	assert_int_equal(t->asked - before, 2);
	/* None of it counts in another epoch. */
	t->epoch++;
	before = t->asked;
	assert_true(walk_engine_turn(t->engine, 1));
	assert_int_equal(t->asked - before, 1);
}

int main(void)
{
#define ENGINE_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
	static const struct CMUnitTest tests[] = {
		ENGINE_TEST(all_workspaces_give_the_right_bytes),
		ENGINE_TEST(a_circle_ends_with_more_at_the_limit),
		ENGINE_TEST(every_end_is_told),
		ENGINE_TEST(what_the_request_did_not_bring_is_zero),
		ENGINE_TEST(a_forgotten_walk_is_not_told),
		ENGINE_TEST(done_may_start_the_next),
		ENGINE_TEST(a_turn_makes_no_more_than_it_may),
		ENGINE_TEST(addresses_are_asked_again_in_a_new_epoch),
		ENGINE_TEST(what_lies_around_is_not_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
