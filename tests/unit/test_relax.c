/* SPDX-License-Identifier: Apache-2.0 */
/* Resting: who is among strangers sleeps, for as long as it believes so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "base/relax.h"

enum {
	RESTS = 50,
};

/* How often the calling thread has slept. */
static long sleeps(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
	return usage.ru_nvcsw;
}

static void naps_among_strangers(void **state)
{
	struct relax r = {.crowded_until_ns = UINT64_MAX};
	long before = sleeps();

	for (unsigned i = 0; i < RESTS; i++)
		relax_rest(&r);
	/* On a busy machine some are over before the kernel has begun them. */
	assert_true(sleeps() - before >= RESTS / 2);
	assert_true(r.crowded_until_ns == UINT64_MAX);
}

/* What it believed ends; on a busy machine it learns it again. */
static void yields_otherwise(void **state)
{
	struct relax r = {.crowded_until_ns = 1};
	long before = sleeps();

	for (unsigned i = 0; i < RESTS; i++)
		relax_rest(&r);
	assert_true(sleeps() - before < RESTS);
	assert_true(r.span_ns ? r.crowded_until_ns > 1
			      : r.crowded_until_ns == 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(naps_among_strangers),
		cmocka_unit_test(yields_otherwise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
