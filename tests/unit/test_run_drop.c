/* SPDX-License-Identifier: Apache-2.0 */
/* Slots that are given up: their pages leave in the background, by chains, and
 * who needs a slot meanwhile has one at once. */
#define LOOP_GRANTS
#include "page_rig.h"

#include "pageframe/pframe_priv.h"
#include "run/far.h"

enum {
	PFRAMES = 64,
	USED = 40,
	SLOTS = 50, /* of the store; the first has number 1 */
	BYTES = 4096,
	LOOKS = 100000,
};

static uint8_t page[BYTES];

static void open_far(struct far *f, struct rig *r)
{
	struct page_store_options o = {.pages = SLOTS, .mode = PAGE_CHAIN};

	*f = (struct far){.mode = PAGE_CHAIN, .grow_err = -ENOSPC};
	assert_int_equal(run_far_tables(f, 1), 0);
	f->slots = 1;
	assert_int_equal(run_far_tables(f, 1 + SLOTS), 0);
	rig_make(r, 1);
	rig_make_pool(r, PFRAMES, BYTES);
	f->store[0] = (struct far_store){
		.handle = rig_store(r, &o), .first = 1, .pages = SLOTS};
	f->store_count = 1;
	for (uint32_t i = SLOTS; i > 0; i--)
		f->free[f->free_count++] = i;
	f->slots += SLOTS;
}

static void close_far(struct far *f, struct rig *r)
{
	page_store_close(f->store[0].handle);
	free(f->refs);
	free(f->free);
	free(f->aside);
	free(f->drops.slot);
	rig_break(r);
}

static void store(struct far *f, uint32_t slot)
{
	struct far_user user = {.left = 1};
	struct page_op op = {.buf = page, .cookie = &user};

	rig_fill(page, BYTES, slot, 1);
	run_far_store(f, slot, &op);
	run_far_await(f, &user);
	assert_int_equal(op.result, 0);
}

/* As the reclaim thread does, until nothing is under way. */
static unsigned drop(struct far *f, bool is_idle)
{
	unsigned told = 0, looks = 0;

	do
		told += run_far_drop_step(f, is_idle);
	while (run_far_is_dropping(f) && ++looks < LOOKS);
	assert_true(looks < LOOKS);
	return told;
}

static void leave_in_the_background(void **state)
{
	struct rig r;
	struct far f;

	(void)state;
	open_far(&f, &r);
	for (uint32_t i = 1; i <= USED; i++) {
		assert_int_equal(run_far_slot_new(&f), i);
		store(&f, i);
	}
	run_far_slot_get(&f, 1);
	for (uint32_t i = 1; i <= USED; i++)
		assert_int_equal(run_far_slot_put(&f, i), i != 1);
	/* The node still has all of them. */
	assert_int_equal(pframe_space_used(r.node[0].space), USED);
	assert_int_equal(f.used, 1);
	assert_int_equal(f.drops.count, USED - 1);
	/* A page frame that is there already is used first. */
	assert_int_equal(run_far_slot_new(&f), USED);
	store(&f, USED);
	assert_int_equal(pframe_space_used(r.node[0].space), USED);
	/* Some at a time; the last ones when there is nothing else to do. */
	assert_int_equal(drop(&f, false), FAR_DROPS);
	assert_int_equal(pframe_space_used(r.node[0].space), USED - FAR_DROPS);
	assert_int_equal(drop(&f, true), USED - 2 - FAR_DROPS);
	assert_int_equal(drop(&f, true), 0);
	assert_int_equal(pframe_space_used(r.node[0].space), 2);
	assert_int_equal(f.free_count, SLOTS - 2);
	assert_true(page_is_stored(f.store[0].handle, 0));
	assert_false(page_is_stored(f.store[0].handle, 1));
	close_far(&f, &r);
}

/* A slot that was never stored, or whose store failed, has nothing to leave. */
static void nothing_leaves_where_nothing_is(void **state)
{
	struct rig r;
	struct far f;
	uint32_t slot;

	(void)state;
	open_far(&f, &r);
	slot = run_far_slot_new(&f);
	assert_true(run_far_slot_put(&f, slot));
	assert_int_equal(f.drops.count, 0);
	assert_int_equal(f.free_count, SLOTS);
	slot = run_far_slot_new(&f);
	run_far_slot_refuse(&f, slot);
	assert_int_equal(f.drops.count, 0);
	assert_int_equal(f.aside_count, 1);
	assert_int_equal(drop(&f, true), 0);
	close_far(&f, &r);
}

/* The end waits for what is under way, and for nothing else. */
static void ends_with_some_under_way(void **state)
{
	struct rig r;
	struct far f;

	(void)state;
	open_far(&f, &r);
	for (uint32_t i = 0; i < USED; i++)
		store(&f, run_far_slot_new(&f));
	for (uint32_t i = 1; i <= USED; i++)
		assert_true(run_far_slot_put(&f, i));
	assert_int_equal(run_far_drop_step(&f, true), FAR_DROPS);
	run_far_drop_end(&f);
	assert_false(run_far_is_dropping(&f));
	assert_int_equal(pframe_space_used(r.node[0].space), USED - FAR_DROPS);
	close_far(&f, &r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leave_in_the_background),
		cmocka_unit_test(nothing_leaves_where_nothing_is),
		cmocka_unit_test(ends_with_some_under_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
