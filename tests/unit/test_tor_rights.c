/* SPDX-License-Identifier: Apache-2.0 */
/* Where shared memory is, and who may use it: beside tables that name every
 * page. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "switch/rights.h"
#include "switch/translate.h"

enum {
	PAGES = 64,
	DOMAINS = 3,
};

/* ---- rights ----------------------------------------------------------------
 */

static void a_range_has_few_pieces(void **state)
{
	struct rights r;

	assert_int_equal(rights_init(&r), 0);
	/* 4 KiB .. 64 KiB: 1 + 2 + 4 + 8 pages. */
	assert_int_equal(rights_set(&r, 1, 1, 15, COH_WRITE), 0);
	assert_int_equal(r.count, 4);
	/* The missing page joins them. */
	assert_int_equal(rights_set(&r, 1, 0, 1, COH_WRITE), 0);
	assert_int_equal(r.count, 1);
	assert_int_equal(rights_find(&r, 1, 0), COH_WRITE);
	assert_int_equal(rights_find(&r, 1, 16), COH_NONE);
	assert_int_equal(rights_find(&r, 0, 0), COH_NONE);
	assert_int_equal(rights_find(&r, 2, 0), COH_NONE);
	assert_int_equal(rights_set(&r, 1, 8, 1, COH_READ), 0);
	assert_int_equal(rights_find(&r, 1, 8), COH_READ);
	assert_int_equal(rights_find(&r, 1, 9), COH_WRITE);
	assert_int_equal(rights_set(&r, 1, 0, PAGES, COH_NONE), 0);
	assert_int_equal(r.count, 0);
	rights_release(&r);
}

static void bad_ranges_change_nothing(void **state)
{
	struct rights r;

	assert_int_equal(rights_init(&r), 0);
	assert_int_equal(rights_set(&r, 1, 0, 0, COH_READ), -EINVAL);
	assert_int_equal(rights_set(&r, 1, 1ull << 52, 1, COH_READ), -EINVAL);
	assert_int_equal(rights_set(&r, 1, 1, 1ull << 52, COH_READ), -EINVAL);
	assert_int_equal(rights_set(&r, 1, 0, 1ull << 52, COH_READ), 0);
	assert_int_equal(rights_set(&r, 1, 0, 1ull << 52, COH_NONE), 0);
	for (uint64_t i = 0; i < RIGHTS_PIECES; i++)
		assert_int_equal(rights_set(&r, 1, 2 * i, 1, COH_READ), 0);
	assert_int_equal(rights_set(&r, 1, 2 * RIGHTS_PIECES, 1, COH_READ),
			 -ENOSPC);
	assert_int_equal(r.count, RIGHTS_PIECES);
	assert_int_equal(rights_find(&r, 1, 2 * RIGHTS_PIECES), COH_NONE);
	assert_int_equal(rights_find(&r, 1, 2 * RIGHTS_PIECES - 2), COH_READ);
	/* What joins pieces still fits. */
	assert_int_equal(rights_set(&r, 1, 1, 1, COH_READ), 0);
	rights_release(&r);
}

static void any_order_gives_the_same_rights(void **state)
{
	uint8_t want[DOMAINS][PAGES] = {0};
	struct rights r;
	struct rng rng;

	rng_init(&rng, 3);
	assert_int_equal(rights_init(&r), 0);
	for (unsigned i = 0; i < 3000; i++) {
		uint32_t domain = (uint32_t)rng_below(&rng, DOMAINS);
		uint64_t page = rng_below(&rng, PAGES);
		uint64_t count = 1 + rng_below(&rng, PAGES - page);
		enum coh_right right = (enum coh_right)rng_below(&rng, 3);

		assert_int_equal(rights_set(&r, domain, page, count, right), 0);
		memset(&want[domain][page], (int)right, count);
		for (uint32_t d = 0; d < DOMAINS; d++)
			for (uint64_t p = 0; p < PAGES; p++)
				if (rights_find(&r, d, p) != want[d][p])
					fail_msg("step %u domain %u page %u", i,
						 d, (unsigned)p);
	}
	rights_release(&r);
}

/* ---- translation ------------------------------------------------------------
 */

static void arenas_and_outliers(void **state)
{
	const uint64_t va = coherence_arena(2);
	struct translate t;
	uint32_t node;
	uint64_t addr;

	assert_int_equal(translate_init(&t), 0);
	assert_int_equal(translate_find(&t, va, &node, &addr), -EFAULT);
	assert_int_equal(translate_node(&t, 2, va, 0x1000, 1 << 20), 0);
	assert_int_equal(translate_node(&t, 2, va, 0x1000, 1 << 20), -EEXIST);
	assert_int_equal(translate_node(&t, 64, va, 0, 1 << 20), -EINVAL);
	assert_int_equal(translate_node(&t, 3, coherence_arena(3), 0, 0),
			 -EINVAL);
	assert_int_equal(translate_node(&t, 3, coherence_arena(3), 0, 4097),
			 -EINVAL);
	assert_int_equal(
		translate_node(&t, 3, coherence_arena(3), 0, 1ull << 60),
		-EINVAL);
	assert_int_equal(
		translate_node(&t, 3, coherence_arena(3), 0x90000, 1 << 20), 0);
	assert_int_equal(translate_find(&t, va + 4096, &node, &addr), 0);
	assert_int_equal(node, 2);
	assert_int_equal(addr, 0x2000);
	assert_int_equal(translate_find(&t, va + (1 << 20), &node, &addr),
			 -EFAULT);
	assert_int_equal(translate_find(&t, va - 1, &node, &addr), -EFAULT);
	assert_int_equal(translate_find(&t, 0, &node, &addr), -EFAULT);
	assert_int_equal(translate_find(&t, UINT64_MAX, &node, &addr), -EFAULT);
	/* The smallest one counts. */
	assert_int_equal(translate_outlier(&t, va, 1 << 16, 3, 0x100000), 0);
	assert_int_equal(translate_outlier(&t, va, 1 << 12, 3, 0x200000), 0);
	assert_int_equal(translate_outlier(&t, va, 1 << 12, 3, 0x200000),
			 -EEXIST);
	assert_int_equal(translate_outlier(&t, va + 4096, 1 << 16, 3, 0),
			 -EINVAL);
	assert_int_equal(translate_outlier(&t, va, 1 << 11, 3, 0), -EINVAL);
	assert_int_equal(translate_outlier(&t, va, 3 << 12, 3, 0), -EINVAL);
	assert_int_equal(translate_outlier(&t, va, 1 << 13, 9, 0), -ENOENT);
	assert_int_equal(translate_find(&t, va + 8, &node, &addr), 0);
	assert_int_equal(addr, 0x200008);
	assert_int_equal(translate_find(&t, va + 4096, &node, &addr), 0);
	assert_int_equal(node, 3);
	assert_int_equal(addr, 0x101000);
	assert_int_equal(translate_find(&t, va + (1 << 16), &node, &addr), 0);
	assert_int_equal(node, 2);
	translate_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_has_few_pieces),
		cmocka_unit_test(bad_ranges_change_nothing),
		cmocka_unit_test(any_order_gives_the_same_rights),
		cmocka_unit_test(arenas_and_outliers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
