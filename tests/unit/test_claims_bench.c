/* SPDX-License-Identifier: Apache-2.0 */
/* Every claim that names a benchmark finds there its ratio, in the group that
 * its command runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bench/bench.h"
#include "claims/claims.h"

static const struct bench_ratio *find(const struct claim *c, const char *bench,
				      const char *group)
{
	for (unsigned i = 0; bench_all[i]; i++) {
		const struct bench_ratio *r = bench_all[i]->ratios;

		if (strcmp(bench_all[i]->name, bench) != 0)
			continue;
		while (r->name &&
		       (strcmp(r->name, c->what) || strcmp(r->group, group)))
			r++;
		return r->name ? r : NULL;
	}
	return NULL;
}

static void every_benchmark_has_the_ratio(void **state)
{
	unsigned count = 0;

	CLAIM_DOC_EACH(d)
	for (size_t i = 0; i < d->count; i++) {
		const struct claim *c = &d->claims[i];
		char bench[32], group[32];

		if (c->kind != CLAIM_MEASURED)
			continue;
		assert_int_equal(sscanf(c->command, "bench %31s --only %31s",
					bench, group),
				 2);
		if (!find(c, bench, group))
			fail_msg("%s has no ratio %s", c->command, c->what);
		count++;
	}
	assert_in_range(count, 1, 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_benchmark_has_the_ratio),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
