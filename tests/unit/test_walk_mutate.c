/* SPDX-License-Identifier: Apache-2.0 */
/* The changes that fuzz_walk_image makes of programs leave most of them such
 * that the verifier takes them, and still reach every instruction. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "walk_mutate.h"

enum {
	STEPS = 4000,
	ROOM = 4096,
};

static void most_changes_are_accepted(void **state)
{
	static uint8_t bytes[ROOM];
	static struct mutate m;
	size_t len = 0;
	uint32_t accepted = 0;
	bool seen[256] = {false};
	struct rng r;

	rng_init(&r, 1);
	m.max = WALK_INSNS_MAX;
	for (int i = 0; i < STEPS; i++) {
		len = walk_mutate(&r, bytes, len, ROOM);
		assert_true(len <= ROOM);
		mutate_take(&m, bytes, len);
		if (!m.count || !mutate_fits(&m))
			continue;
		accepted++;
		for (uint32_t k = 0; k < m.count; k++)
			seen[m.insns[k].op] = true;
	}
	assert_true(accepted > STEPS / 2);
	assert_true(accepted < STEPS); /* refusals are of interest, too */
	for (int op = 0; op < 256; op++)
		assert_int_equal(seen[op], walk_op_info((uint8_t)op)->form !=
						   WALK_FORM_NONE);
}

/* Whatever it is given, it stays within its room. */
static void any_bytes_are_taken(void **state)
{
	struct rng r;

	rng_init(&r, 2);
	for (int i = 0; i < STEPS; i++) {
		const size_t room = rng_below(&r, 200);
		size_t len = rng_below(&r, room + 1);
		uint8_t *bytes = malloc(room + 1); /* exact, for ASan */

		assert_non_null(bytes);
		rng_fill(&r, bytes, len);
		len = walk_mutate(&r, bytes, len, room);
		assert_true(len <= room);
		free(bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(most_changes_are_accepted),
		cmocka_unit_test(any_bytes_are_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
