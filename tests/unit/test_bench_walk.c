/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of the benchmark and its functions in C find the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "bench/walk_exec.h"

static void all_ways_agree(void **state)
{
	struct walk_exec_times t[WALK_EXEC_KINDS];

	if (bench_walk_exec(t))
		fail_msg("%s", error_last());
	for (int i = 0; i < WALK_EXEC_KINDS; i++) {
		assert_true(t[i].native_ns > 0 && t[i].translated_ns > 0 &&
			    t[i].interpreted_ns > 0);
		print_message("%s: %.2f ns, %.2f of C; interpreter %.2f\n",
			      t[i].ratio, t[i].translated_ns,
			      t[i].translated_ns / t[i].native_ns,
			      t[i].interpreted_ns / t[i].native_ns);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ways_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
