/* SPDX-License-Identifier: Apache-2.0 */
/* What a peer's WRITE looks like to the program that polls the memory. */
#include "step_rig.h"

#include "core/nic_priv.h"

/* Flags and counters have two, four or eight bytes, and are written alone or
 * behind others. */
static void test_words_are_written_whole(void **state)
{
	static const uint16_t lengths[] = {1,  2,  3,  4,   5,	 6,   7,  8,
					   12, 20, 37, 256, 260, 300, 512};
	static uint8_t from[STEP_BYTES + 1];

	if (!STEP_WORKS)
		skip();
	memset(from, 0xff, sizeof(from));
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++)
		for (unsigned at = 0; at < 8; at++) {
			int err;

			step_from = at;
			step_to = at + lengths[i];
			step_begin();
			err = touch_place((uint8_t *)step_read + at,
					  from + (at & 1), lengths[i]);
			step_end();
			assert_int_equal(err, 0);
			step_check_written(at, lengths[i]);
		}
}

/* Whoever sees the end of a message sees all of it: the last bytes are stored
 * after the rest. */
static void test_the_end_is_written_last(void **state)
{
	static uint8_t from[STEP_BYTES];

	if (!STEP_WORKS)
		skip();
	memset(from, 0xff, sizeof(from));
	for (unsigned len = 9; len <= 512; len += 23) {
		step_last = (const uint8_t *)step_read + len - 1;
		step_begin();
		(void)!touch_place((uint8_t *)step_read, from, len);
		step_end();
		assert_int_equal(step_early, 0);
	}
	step_last = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words_are_written_whole),
		cmocka_unit_test(test_the_end_is_written_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
