/* SPDX-License-Identifier: Apache-2.0 */
/* Two memory nodes with the same pages: all that may fail, and what it means.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "copies.h"

static void the_one_that_answers_is_read(void **state)
{
	assert_int_equal(coh_copies_read((bool[]){false, false}), 0);
	assert_int_equal(coh_copies_read((bool[]){false, true}), 0);
	assert_int_equal(coh_copies_read((bool[]){true, false}), 1);
	/* Nobody answers: the error is the first one's. */
	assert_int_equal(coh_copies_read((bool[]){true, true}), 0);
}

/* By the four bits: failed at the first, at the second, away now. */
static void a_give_back_counts_where_both_have_it(void **state)
{
	static const enum coh_give_fate want[16] = {
		COH_GIVE_KEPT, COH_GIVE_HELD, COH_GIVE_HELD, COH_GIVE_VOID,
		/* The first is away. */
		COH_GIVE_KEPT, COH_GIVE_HELD, COH_GIVE_HELD, COH_GIVE_VOID,
		/* The second is. */
		COH_GIVE_KEPT, COH_GIVE_HELD, COH_GIVE_HELD, COH_GIVE_VOID,
		/* Both: who had it has gone since. */
		COH_GIVE_KEPT, COH_GIVE_VOID, COH_GIVE_VOID, COH_GIVE_VOID};

	for (unsigned i = 0; i < 16; i++) {
		const bool failed[] = {i & 1, i & 2}, away[] = {i & 4, i & 8};

		assert_int_equal(coh_copies_fate(failed, away), want[i]);
	}
}

static void who_counts_alone_decides_alone(void **state)
{
	for (uint8_t one = 0; one < COH_TWO; one++) {
		bool failed[COH_TWO] = {false};

		failed[!one] = true;
		assert_int_equal(coh_copies_fate_alone(failed, one),
				 COH_GIVE_KEPT);
		assert_int_equal(coh_copies_fate_alone(failed, !one),
				 COH_GIVE_VOID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_one_that_answers_is_read),
		cmocka_unit_test(a_give_back_counts_where_both_have_it),
		cmocka_unit_test(who_counts_alone_decides_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
