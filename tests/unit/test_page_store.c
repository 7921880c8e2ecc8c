/* SPDX-License-Identifier: Apache-2.0 */
/* Page stores over looped nodes: order, copies, damage, loss, rebuilding. */
#include "page_rig.h"

enum {
	PAGES = 97,
	BYTES = 4096,
};

static uint8_t buf[BYTES], want[BYTES];

static void put(struct page_store *s, uint64_t page, uint64_t version)
{
	rig_fill(buf, BYTES, page, version);
	assert_int_equal(page_put(s, page, buf), 0);
}

static void expect(struct page_store *s, uint64_t page, uint64_t version)
{
	memset(buf, 0, BYTES);
	assert_int_equal(page_get(s, page, buf), 0);
	rig_fill(want, BYTES, page, version);
	assert_memory_equal(buf, want, BYTES);
}

static void test_one_node(void **state)
{
	struct page_store_options o = {.pages = PAGES};
	struct page_stats st;
	struct page_store *s;
	struct rig r;

	rig_make(&r, 1);
	s = rig_store(&r, &o);
	assert_int_equal(page_get(s, 0, buf), -ENODATA);
	assert_int_equal(page_get(s, PAGES, buf), -ERANGE);
	for (uint64_t p = 0; p < PAGES; p++)
		put(s, p, 1);
	put(s, 5, 2);
	expect(s, 5, 2);
	expect(s, 96, 1);
	assert_int_equal(page_drop(s, 96), 0);
	assert_int_equal(page_drop(s, 96), 0);
	assert_int_equal(page_get(s, 96, buf), -ENODATA);
	assert_false(page_is_stored(s, 96));
	page_store_stats(s, &st);
	assert_int_equal(st.used_pages, PAGES - 1);
	assert_int_equal(st.stores, PAGES + 1);
	assert_int_equal(st.bytes_in, 2 * BYTES);
	page_store_close(s);
	rig_break(&r);
}

static void test_bad_options(void **state)
{
	static const struct page_store_options bad[] = {
		{.pages = 0},
		{.pages = 1, .page_bytes = 100},
		{.pages = 1, .page_bytes = 2 << 20},
		{.pages = 1, .copies = PAGE_COPIES_MAX + 1},
		{.pages = 1, .depth = PAGE_DEPTH_MAX + 1},
		{.pages = 1, .mode = PAGE_MODE_COUNT},
		{.pages = 1, .nodes = 1, .copies = 2},
	};
	struct rig r;
	struct page_wiring w = {.open = rig_open,
				.close = rig_close,
				.node_count = rig_node_count,
				.ctx = &r};
	struct page_store_options many = {.pages = 1, .copies = 4};
	enum page_mode mode;
	struct page_store *s;

	rig_make(&r, 3);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(page_store_create("t", &bad[i], &w, &s),
				 -EINVAL);
	assert_int_equal(page_store_create("t", &many, &w, &s), -ENOSPC);
	assert_int_equal(page_mode_parse("chain", &mode), 0);
	assert_int_equal(mode, PAGE_CHAIN);
	assert_int_equal(page_mode_parse("chains", &mode), -EINVAL);
	rig_break(&r);
}

/* Everything on one page in order, whatever else is under way. */
static void test_order(void **state)
{
	enum {
		OPS = 48,
		BUSY_PAGE = 3
	};
	static uint8_t space[OPS][BYTES];
	struct page_store_options o = {.pages = PAGES, .depth = OPS};
	struct page_op ops[OPS], *list[OPS], *done[OPS];
	struct page_store *s;
	unsigned ended = 0;
	struct rig r;

	rig_make(&r, 2);
	s = rig_store(&r, &o);
	assert_int_equal(page_register(s, space, sizeof(space)), 0);
	for (unsigned i = 0; i < OPS; i++) {
		ops[i] =
			(struct page_op){.kind = i % 4 < 2    ? PAGE_STORE
						 : i % 4 == 2 ? PAGE_LOAD
							      : PAGE_INVALIDATE,
					 .page = BUSY_PAGE + i / 24,
					 .buf = space[i]};
		rig_fill(space[i], BYTES, ops[i].page, i);
		list[i] = &ops[i];
	}
	assert_int_equal(page_submit(s, list, OPS), OPS);
	assert_int_equal(page_submit(s, list, 1), -EAGAIN);
	/* A synchronous call comes through, behind those on its page. */
	assert_int_equal(page_get(s, BUSY_PAGE, buf), -ENODATA);
	for (unsigned spin = 0; ended < OPS && spin < 1000000; spin++)
		ended += (unsigned)page_poll(s, done, OPS);
	assert_int_equal(ended, OPS);
	assert_int_equal(page_pending(s), 0);
	for (unsigned i = 0; i < OPS; i++) {
		assert_int_equal(ops[i].result, 0);
		if (ops[i].kind != PAGE_LOAD)
			continue;
		rig_fill(want, BYTES, ops[i].page, i - 1);
		assert_memory_equal(space[i], want, BYTES);
	}
	page_store_close(s);
	rig_break(&r);
}

static void test_checksum(void **state)
{
	struct page_store_options o = {.pages = 4, .nodes = 2, .copies = 2};
	struct page_stats st;
	struct page_store *s;
	struct rig r;

	rig_make(&r, 2);
	s = rig_store(&r, &o);
	put(s, 0, 1);
	r.node[0].memory[100] ^= 1; /* page 0's first copy */
	expect(s, 0, 1);
	page_store_stats(s, &st);
	assert_int_equal(st.damaged, 1);
	assert_int_equal(st.repaired, 1);
	/* The second copy is behind the two first copies of that node. */
	r.node[1].memory[2 * BYTES + 7] ^= 0x80;
	assert_int_equal(page_get(s, 0, buf), -EILSEQ);
	put(s, 0, 2);
	expect(s, 0, 2);
	page_store_close(s);
	rig_break(&r);
}

/* A node dies while much is under way. */
static void lose_one(uint32_t nodes, uint32_t copies)
{
	struct page_store_options o = {.pages = PAGES,
				       .nodes = nodes,
				       .copies = copies,
				       .deadline_ms = 1000};
	struct page_op ops[32], *list[32], *done[32];
	static uint8_t space[32][BYTES];
	struct page_store *s;
	unsigned ended = 0;
	struct rig r;
	int64_t left;

	rig_make(&r, nodes + 1);
	s = rig_store(&r, &o);
	for (uint64_t p = 0; p < PAGES; p++)
		put(s, p, 1);
	rig_kill(&r, 1);
	for (unsigned i = 0; i < 32; i++) {
		ops[i] =
			(struct page_op){.kind = i & 1 ? PAGE_STORE : PAGE_LOAD,
					 .page = i,
					 .buf = space[i]};
		rig_fill(space[i], BYTES, i, 2);
		list[i] = &ops[i];
	}
	assert_int_equal(page_submit(s, list, 32), 32);
	while (ended < 32)
		ended += (unsigned)page_poll(s, done, 32);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(ops[i].result, 0);
	for (uint64_t p = 0; p < PAGES; p++)
		expect(s, p, p < 32 && p & 1 ? 2 : 1);
	assert_string_equal(page_lost_node(s), "m1");
	/* The spare node takes over, a few pages at a time. */
	left = page_rebuild(s, 10);
	assert_true(left > 0);
	assert_null(page_lost_node(s));
	assert_int_equal(page_rebuild(s, UINT64_MAX), 0);
	/* Now another one may die. */
	rig_kill(&r, 0);
	for (uint64_t p = 0; p < PAGES; p++)
		expect(s, p, p < 32 && p & 1 ? 2 : 1);
	page_store_close(s);
	rig_break(&r);
}

static void test_lose_copies(void **state)
{
	lose_one(2, 2);
	lose_one(3, 2);
	lose_one(4, 3);
}

/* Without a second copy a lost page is an error, never zeros or -ENODATA. */
static void test_lose_all(void **state)
{
	struct page_store_options o = {.pages = 8, .nodes = 2};
	struct page_store *s;
	struct rig r;

	rig_make(&r, 2);
	s = rig_store(&r, &o);
	for (uint64_t p = 0; p < 6; p++)
		put(s, p, 1);
	rig_kill(&r, 1);
	for (uint64_t p = 0; p < 6; p++) {
		if (p & 1)
			assert_int_equal(page_get(s, p, buf), -EHOSTDOWN);
		else
			expect(s, p, 1);
	}
	assert_int_equal(page_put(s, 7, buf), -EHOSTDOWN);
	assert_int_equal(page_get(s, 7, buf), -EHOSTDOWN);
	assert_int_equal(page_get(s, 6, buf), -ENODATA);
	assert_int_equal(page_rebuild(s, 1), -EHOSTDOWN);
	r.node[1].is_down = false; /* it comes back, empty */
	assert_int_equal(page_rebuild(s, UINT64_MAX), 0);
	assert_int_equal(page_get(s, 1, buf), -EHOSTDOWN);
	put(s, 1, 3);
	expect(s, 1, 3);
	assert_int_equal(page_drop(s, 3), 0);
	assert_int_equal(page_get(s, 3, buf), -ENODATA);
	page_store_close(s);
	rig_break(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_node),
		cmocka_unit_test(test_bad_options),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_checksum),
		cmocka_unit_test(test_lose_copies),
		cmocka_unit_test(test_lose_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
