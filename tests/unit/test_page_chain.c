/* SPDX-License-Identifier: Apache-2.0 */
/* Pages by chains of work requests, and by the processor: the same store, the
 * same frames, and every frame in exactly one place whatever stops. */
#include "page_rig.h"

enum {
	FRAMES = 64,
	BYTES = 4096,
};

static uint8_t buf[BYTES], want[BYTES];

static int put(struct page_store *s, uint64_t page, uint64_t version)
{
	rig_fill(buf, BYTES, page, version);
	return page_put(s, page, buf);
}

static void expect(struct page_store *s, uint64_t page, uint64_t version)
{
	memset(buf, 0, BYTES);
	assert_int_equal(page_get(s, page, buf), 0);
	rig_fill(want, BYTES, page, version);
	assert_memory_equal(buf, want, BYTES);
}

static void test_life(void **state)
{
	struct page_store_options o = {.pages = 200, .mode = PAGE_CHAIN};
	struct page_store *s;
	struct page_stats st;
	struct rig r;

	rig_make(&r, 1);
	rig_make_pool(&r, FRAMES, BYTES);
	s = rig_store(&r, &o);
	assert_int_equal(put(s, 7, 1), 0);
	expect(s, 7, 1);
	assert_int_equal(put(s, 7, 2), 0);
	expect(s, 7, 2);
	assert_int_equal(frame_pool_free(r.pool), FRAMES - 1);
	assert_int_equal(page_drop(s, 7), 0);
	assert_int_equal(page_get(s, 7, buf), -ENODATA);
	assert_int_equal(frame_pool_free(r.pool), FRAMES);
	/* Many times round all rings. */
	for (uint64_t i = 0; i < 3000; i++) {
		assert_int_equal(put(s, i % 60, i), 0);
		expect(s, i % 60, i);
		if (i % 3 == 0)
			assert_int_equal(page_drop(s, i % 60), 0);
	}
	page_store_stats(s, &st);
	assert_int_equal(st.allocated_bytes, st.used_pages * BYTES);
	page_store_close(s);
	assert_int_equal(frame_pool_free(r.pool), FRAMES);
	rig_break(&r);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
