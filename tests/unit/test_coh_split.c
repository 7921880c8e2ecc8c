/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes of regions: what is split and joined, and that nobody loses a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "coherence/split.h"

enum {
	MACHINES = 4,
	LANES = 2,
	ENTRIES = 32,
};

struct bed {
	struct coh_dir dir;
	struct coh_dir_entry entries[ENTRIES];
	struct coh_dir_slot slots[MACHINES * LANES];
	uint32_t buckets[8];
	struct coh_dir_out out;
	struct coh_split split;
};

static void bed_init(struct bed *b, uint32_t entries)
{
	memset(b, 0, sizeof(*b));
	b->dir = (struct coh_dir){.entries = b->entries,
				  .buckets = b->buckets,
				  .slots = b->slots,
				  .entry_count = entries,
				  .bucket_count = 8,
				  .region_pages = 4,
				  .machines = MACHINES,
				  .lanes = LANES};
	coh_dir_init(&b->dir, 1, 0, false);
	for (uint8_t i = 0; i < MACHINES; i++)
		assert_int_equal(coh_dir_join(&b->dir, i), 0);
	coh_split_init(&b->split);
}

/* A get that nobody has to make way for. */
static void get(struct bed *b, uint8_t machine, uint64_t page,
		enum coh_right right)
{
	static uint32_t serial;
	struct coh_get g = {.machine = machine,
			    .right = right,
			    .serial = ++serial,
			    .page = page};

	coh_dir_get(&b->dir, &g, &b->out);
	assert_int_equal(b->out.count, 1);
	assert_int_equal(b->out.action[0].kind, COH_DIR_READ);
	coh_dir_read_done(&b->dir, machine, 0, &b->out);
}

static struct coh_dir_entry *at(struct bed *b, uint64_t page)
{
	return (struct coh_dir_entry *)(uintptr_t)coh_dir_find(&b->dir, page);
}

static void check(struct bed *b)
{
	const char *wrong = coh_dir_check(&b->dir);

	if (wrong)
		fail_msg("%s", wrong);
}

static void halves_inherit(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	get(&b, 1, 6, COH_READ);
	get(&b, 2, 7, COH_READ);
	assert_true(coh_dir_split(&b.dir, at(&b, 4)));
	assert_int_equal(at(&b, 4)->sharers, 6);
	assert_int_equal(at(&b, 6)->sharers, 6);
	assert_ptr_not_equal(at(&b, 5), at(&b, 6));
	assert_true(coh_dir_split(&b.dir, at(&b, 4)));
	assert_false(coh_dir_split(&b.dir, at(&b, 4)));
	assert_int_equal(b.dir.used, 3);
	check(&b);
	/* Another machine's write reaches whoever may have the page. */
	coh_dir_get(&b.dir, &(struct coh_get){0, 0, COH_WRITE, 9, 7}, &b.out);
	assert_int_equal(b.out.count, 3);
	assert_int_equal(b.out.action[0].inval.range.page, 6);
	assert_int_equal(b.out.action[0].inval.range.count, 2);
	assert_false(coh_dir_split(&b.dir, at(&b, 6)));
	assert_false(coh_dir_merge(&b.dir, at(&b, 6)));
	check(&b);
}

/* The switch looks at entries a few at a time after a death, and an epoch may
 * come between. What is behind must not get the dead machine from what is
 * before: nobody would look there again, and a region would wait for its FIN
 * for ever. */
static void the_dead_do_not_get_past_the_look(void **state)
{
	static struct bed b;
	uint32_t looked = 0;

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_READ);
	get(&b, 2, 0, COH_READ);
	get(&b, 1, 4, COH_READ);
	get(&b, 2, 4, COH_READ);
	assert_true(coh_dir_gone(&b.dir, 1, &looked, &b.out));
	assert_int_equal(at(&b, 0)->sharers, 4);
	assert_int_equal(at(&b, 4)->sharers, 6);
	assert_false(coh_dir_merge(&b.dir, at(&b, 0)));
	assert_false(coh_dir_split(&b.dir, at(&b, 4)));
	while (coh_dir_gone(&b.dir, 1, &looked, &b.out))
		;
	assert_int_equal(at(&b, 4)->sharers, 4);
	assert_true(coh_dir_split(&b.dir, at(&b, 4)));
	assert_true(coh_dir_merge(&b.dir, at(&b, 4)));
	assert_true(coh_dir_merge(&b.dir, at(&b, 0)));
	assert_int_equal(at(&b, 0)->sharers, 4);
	check(&b);
}

static void a_new_region_keeps_clear_of_others(void **state)
{
	static struct bed b;
	const struct coh_range half = {0, 2};

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_READ);
	assert_true(coh_dir_split(&b.dir, at(&b, 0)));
	coh_dir_evict(&b.dir, 1, &half, &b.out);
	assert_null(at(&b, 0));
	assert_non_null(at(&b, 2));
	get(&b, 3, 1, COH_WRITE);
	assert_int_equal(at(&b, 1)->order, 1);
	assert_int_equal(at(&b, 0)->sharers, 8);
	assert_int_equal(at(&b, 2)->sharers, 2);
	check(&b);
	/* A part of a region cannot be left. */
	coh_dir_evict(&b.dir, 3, &(struct coh_range){1, 1}, &b.out);
	assert_non_null(at(&b, 0));
	check(&b);
}

static void what_fits_is_joined(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_READ);
	get(&b, 2, 4, COH_READ);
	get(&b, 1, 8, COH_WRITE);
	get(&b, 2, 12, COH_WRITE);
	get(&b, 3, 16, COH_WRITE);
	get(&b, 3, 20, COH_WRITE);
	assert_false(coh_dir_merge(&b.dir, at(&b, 4))); /* not the left one */
	assert_true(coh_dir_merge(&b.dir, at(&b, 0)));
	assert_int_equal(at(&b, 7)->sharers, 6);
	assert_ptr_equal(at(&b, 0), at(&b, 7));
	assert_false(coh_dir_merge(&b.dir, at(&b, 8))); /* two owners */
	assert_true(coh_dir_merge(&b.dir, at(&b, 16)));
	assert_int_equal(at(&b, 23)->sharers, 8);
	assert_false(coh_dir_merge(&b.dir, at(&b, 0))); /* S and M */
	assert_true(coh_dir_merge(&b.dir, at(&b, 16))); /* nobody at 24 */
	assert_ptr_equal(at(&b, 31), at(&b, 16));
	check(&b);
}

static void regions_have_an_upper_bound(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_READ);
	while (coh_dir_merge(&b.dir, at(&b, 0)))
		;
	assert_int_equal(coh_dir_pages(at(&b, 0)), COH_REGION_PAGES_MAX);
	check(&b);
}

static void epoch(struct bed *b)
{
	while (!coh_split_step(&b->split, &b->dir))
		;
	check(b);
}

static void false_invalidations_split_a_region(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_READ);
	get(&b, 1, 4, COH_READ);
	at(&b, 0)->false_invals = 5;
	epoch(&b);
	assert_int_equal(at(&b, 0)->order, 1);
	assert_int_equal(at(&b, 4)->order, 2);
	assert_int_equal(b.split.splits, 1);
	epoch(&b);
	assert_int_equal(b.split.splits, 1);
}

/* The last three entries are not for splitting, and quiet regions are joined.
 */
static void a_full_directory_joins(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	for (uint64_t i = 0; i < ENTRIES; i++)
		get(&b, 1, i * 4, COH_READ);
	at(&b, 0)->false_invals = 1000;
	epoch(&b);
	assert_int_equal(b.split.splits, 0);
	assert_true(b.split.joins > 0);
	assert_true(b.dir.used < ENTRIES);
}

/* A region that is recalled gives up what it has, and nobody asked for a page
 * of it: that is no reason to split it. */
static void a_recall_is_no_false_invalidation(void **state)
{
	static struct bed b;

	bed_init(&b, ENTRIES);
	get(&b, 1, 0, COH_WRITE);
	coh_dir_recall(&b.dir, 0, &b.out);
	coh_dir_give(&b.dir, 1, 2, &b.out);
	assert_int_equal(b.out.action[0].kind, COH_DIR_WRITE);
	assert_int_equal(at(&b, 0)->false_invals, 0);
	assert_int_equal(b.dir.counters[COH_DIR_C_false_invals], 0);
}

/* Whoever finds no entry has one recalled. After an epoch of that new regions
 * are larger, up to the bound, and small again when there is room. */
static void new_regions_are_larger_while_entries_lack(void **state)
{
	static struct bed b;
	uint32_t pages = 4;

	bed_init(&b, ENTRIES);
	for (unsigned i = 0; i < 12; i++) {
		b.dir.counters[COH_DIR_C_recalls] += ENTRIES / 10;
		epoch(&b);
		pages = u32_min(pages * 2, COH_REGION_PAGES_MAX);
		assert_int_equal(b.dir.new_pages, pages);
	}
	get(&b, 1, 513, COH_READ);
	assert_int_equal(coh_dir_pages(at(&b, 1023)), COH_REGION_PAGES_MAX);
	/* Beside others a new one has what is left. */
	assert_true(coh_dir_split(&b.dir, at(&b, 513)));
	coh_dir_evict(&b.dir, 1, &(struct coh_range){768, 256}, &b.out);
	get(&b, 1, 800, COH_READ);
	assert_int_equal(coh_dir_pages(at(&b, 800)), 256);
	check(&b);
	for (unsigned i = 0; i < 12; i++)
		epoch(&b);
	assert_int_equal(b.dir.new_pages, 4);
}

/* Gets, evictions, splits and joins without order: the directory stays whole,
 * and each machine that had a page is still known to have it. */
static void any_order_keeps_who_has_what(void **state)
{
	static struct bed b;
	uint16_t has[64] = {0};
	struct rng rng;

	rng_init(&rng, 7);
	bed_init(&b, ENTRIES);
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t page = rng_u64(&rng) % 64;
		struct coh_dir_entry *e = at(&b, page);
		uint8_t m = (uint8_t)(rng_u64(&rng) % MACHINES);

		switch (rng_u64(&rng) % 4) {
		case 0:
			if (b.dir.used + 4 < ENTRIES) {
				get(&b, m, page, COH_READ);
				has[page] |= (uint16_t)(1u << m);
			}
			break;
		case 1:
			if (e)
				(void)coh_dir_split(&b.dir, e);
			break;
		case 2:
			if (e)
				(void)coh_dir_merge(&b.dir, e);
			break;
		default: {
			struct coh_range r = {page & ~7ull, 8};

			coh_dir_evict(&b.dir, m, &r, &b.out);
			for (unsigned k = 0; k < 8; k++)
				has[r.page + k] &= (uint16_t) ~(1u << m);
		}
		}
		check(&b);
		for (uint64_t p = 0; p < 64; p++)
			if (has[p] &&
			    (!at(&b, p) || has[p] & ~at(&b, p)->sharers))
				fail_msg("step %u: page %u is forgotten", i,
					 (unsigned)p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(halves_inherit),
		cmocka_unit_test(the_dead_do_not_get_past_the_look),
		cmocka_unit_test(a_new_region_keeps_clear_of_others),
		cmocka_unit_test(what_fits_is_joined),
		cmocka_unit_test(regions_have_an_upper_bound),
		cmocka_unit_test(false_invalidations_split_a_region),
		cmocka_unit_test(a_full_directory_joins),
		cmocka_unit_test(a_recall_is_no_false_invalidation),
		cmocka_unit_test(new_regions_are_larger_while_entries_lack),
		cmocka_unit_test(any_order_keeps_who_has_what),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
