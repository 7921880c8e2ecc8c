/* SPDX-License-Identifier: Apache-2.0 */
/* Records of shared memory: there and back, and what is none. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "coherence/record.h"

static const struct coh_record good[] = {
	{.kind = COHERENCE_INVAL,
	 .inval = {.range = {0x200000004, 4},
		   .target = 0x200000007,
		   .term = 3,
		   .seq = 0xfffffffe,
		   .to = COH_READ,
		   .granted = {1, 2, [15] = 0xffffffff}}},
	{.kind = COHERENCE_INVAL, .inval = {.range = {7, 1}, .target = 7}},
	{.kind = COHERENCE_LOST,
	 .why = COHERENCE_WHY_NODE,
	 .lane = 15,
	 .serial = 9,
	 .range = {5, 1}},
	{.kind = COHERENCE_FIN, .fin = {{512, 512}, 1, 2}},
	{.kind = COHERENCE_EVICT, .range = {3, 512}},
	{.kind = COHERENCE_CLEAN, .term = 77},
};

/* Field by field: what is between them means nothing. */
static void expect_range(const struct coh_range *b, const struct coh_range *a)
{
	assert_int_equal(b->page, a->page);
	assert_int_equal(b->count, a->count);
}

static void expect_inval(const struct coh_inval *b, const struct coh_inval *a)
{
	expect_range(&b->range, &a->range);
	assert_int_equal(b->target, a->target);
	assert_int_equal(b->term, a->term);
	assert_int_equal(b->seq, a->seq);
	assert_int_equal(b->to, a->to);
	assert_memory_equal(b->granted, a->granted, sizeof(b->granted));
}

static void records_come_back_as_they_were(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(good); i++) {
		const struct coh_record *a = &good[i];
		uint8_t bytes[COHERENCE_INVAL_BYTES];
		uint32_t len = coh_record_build(a, bytes);
		struct coh_record b;

		assert_int_equal(coh_record_parse(bytes, len, &b), 0);
		assert_int_equal(b.kind, a->kind);
		if (a->kind == COHERENCE_INVAL)
			expect_inval(&b.inval, &a->inval);
		if (a->kind == COHERENCE_FIN) {
			expect_range(&b.fin.range, &a->fin.range);
			assert_int_equal(b.fin.term, a->fin.term);
			assert_int_equal(b.fin.seq, a->fin.seq);
		}
		if (a->kind == COHERENCE_LOST) {
			assert_int_equal(b.why, a->why);
			assert_int_equal(b.lane, a->lane);
			assert_int_equal(b.serial, a->serial);
		}
		if (a->kind == COHERENCE_LOST || a->kind == COHERENCE_EVICT)
			expect_range(&b.range, &a->range);
		if (a->kind == COHERENCE_CLEAN)
			assert_int_equal(b.term, a->term);
	}
}

static void what_makes_no_sense_is_refused(void **state)
{
	static const struct coh_record bad[] = {
		{.kind = 0},
		{.kind = 6},
		{.kind = COHERENCE_INVAL, /* not aligned */
		 .inval = {.range = {2, 4}, .target = 2}},
		{.kind = COHERENCE_INVAL, /* no power of two */
		 .inval = {.range = {3, 3}, .target = 3}},
		{.kind = COHERENCE_INVAL, /* the target is elsewhere */
		 .inval = {.range = {4, 4}, .target = 8}},
		{.kind = COHERENCE_INVAL, /* may keep all */
		 .inval = {.range = {4, 4}, .target = 4, .to = COH_WRITE}},
		{.kind = COHERENCE_INVAL,
		 .inval = {.range = {0, 1024}, .target = 0}},
		{.kind = COHERENCE_FIN, .fin = {{1, 2}, 1, 2}},
		{.kind = COHERENCE_FIN, .fin = {{0, 0}, 1, 2}},
		{.kind = COHERENCE_EVICT, .range = {3, 513}},
		{.kind = COHERENCE_EVICT, .range = {3, 0}},
		{.kind = COHERENCE_EVICT, .range = {UINT64_MAX, 2}},
		{.kind = COHERENCE_LOST, .lane = 16, .why = 1, .range = {1, 1}},
		{.kind = COHERENCE_LOST, .lane = 1, .why = 0, .range = {1, 1}},
		{.kind = COHERENCE_LOST, .lane = 1, .why = 4, .range = {1, 1}},
	};
	uint8_t bytes[COHERENCE_INVAL_BYTES];
	struct coh_record r;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		uint32_t len = coh_record_build(&bad[i], bytes);

		if (coh_record_parse(bytes, len, &r) != -EINVAL)
			fail_msg("row %u", i);
	}
	/* Another version, another length. */
	(void)coh_record_build(&good[5], bytes);
	assert_int_equal(coh_record_parse(bytes, 63, &r), -EINVAL);
	assert_int_equal(coh_record_parse(bytes, 0, &r), -EINVAL);
	assert_int_equal(coh_record_parse(bytes, 128, &r), -EINVAL);
	bytes[0]++;
	assert_int_equal(coh_record_parse(bytes, 64, &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_back_as_they_were),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
