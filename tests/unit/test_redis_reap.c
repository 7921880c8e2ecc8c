/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that go without being named, on a table in local memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "../fuzz/fake_kv.h"
#include "redis/command.h"

enum {
	KEYS = 200,
};

static void fill(struct aq_kv_client *c)
{
	for (uint32_t i = 0; i < KEYS; i++)
		assert_int_equal(aq_kv_put(c, &i, sizeof(i), "v", 1, NULL), 0);
}

/* A scan that begins anew shows keys again, as often as that happens. */
static void all_of_them_go(void **state)
{
	static struct aq_kv_client table;
	static struct gateway g = {.kv_client = &table};
	uint64_t left;

	for (table.scans_again = 0; table.scans_again < 4;
	     table.scans_again++) {
		fill(&table);
		assert_int_equal(reap_all(&g), 0);
		assert_int_equal(aq_kv_count(&table, &left), 0);
		assert_int_equal(left, 0);
	}
	fake_release(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_them_go),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
