/* SPDX-License-Identifier: Apache-2.0 */
/* How large a program's stores are, and on which nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/link.h"
#include "run/far.h"

#define MIB (1ull << 20)

/* A heap takes of the nodes not much more than it has. */
static void unused_room_is_a_part_of_what_is_used(void **state)
{
	uint64_t have = 0;
	unsigned stores = 0;

	(void)state;
	for (; have < 64ull << 30 >> RUN_PAGE_SHIFT; stores++) {
		uint64_t more = run_far_store_pages(have);

		assert_true(more <= u64_max(RUN_STORE_PAGES,
					    have / RUN_STORE_PART +
						    RUN_STORE_PAGES_MIN));
		have += more;
	}
	assert_true(stores <= RUN_STORES_MAX);
}

static void fits_on_the_nodes_that_have_room(void **state)
{
	static const struct {
		uint64_t free[3];
		unsigned copies;
		uint64_t want, fits;
		uint32_t nodes;
	} row[] = {
		{{64 * MIB, 64 * MIB, 64 * MIB}, 1, 4096, 4096, 3},
		{{64 * MIB, 0, 64 * MIB}, 1, 4096, 4096, 2},
		{{64 * MIB, 0, 0}, 1, 4096, 4096, 1},
		{{8 * MIB, 0, 0}, 1, 4096, 2048, 1},
		{{64 * MIB, 0, 0}, 2, 4096, 0, 0},
		{{8 * MIB, 8 * MIB, 0}, 2, 4096, 2048, 2},
		{{1000, 1000, 1000}, 1, 4096, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		struct client_host host[3] = {{.free_bytes = row[i].free[0]},
					      {.free_bytes = row[i].free[1]},
					      {.free_bytes = row[i].free[2]}};
		uint32_t nodes = 0;

		assert_int_equal(run_far_fit(host, 3, row[i].copies,
					     row[i].want, &nodes),
				 row[i].fits);
		assert_int_equal(nodes, row[i].nodes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(unused_room_is_a_part_of_what_is_used),
		cmocka_unit_test(fits_on_the_nodes_that_have_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
