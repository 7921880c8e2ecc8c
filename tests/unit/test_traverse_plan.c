/* SPDX-License-Identifier: Apache-2.0 */
/* Where a walk runs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "traverse/traverse_priv.h"

/* 0.5 ns for an instruction, 100 ns for 64 bytes. */
static const struct node_facts node = {
	.has_walks = true,
	.iterations = 256,
	.step_ps = 500,
	.load_ns = {100, 160, 400, 1300},
};
static const struct node_facts old = {.has_walks = false};

struct row {
	struct plan_facts f;
	int err;
	uint32_t where;
};

static void test_decide(void **state)
{
	const struct row rows[] = {
		/* t_c against eta t_d: 75 ns for 64 bytes */
		{{.longest = 12, .load_bytes = 64, .node = node},
		 0,
		 AQ_WALK_THERE},
		{{.longest = 150, .load_bytes = 64, .node = node},
		 0,
		 AQ_WALK_THERE},
		{{.longest = 151, .load_bytes = 64, .node = node},
		 0,
		 AQ_WALK_HERE},
		{{.longest = 151, .load_bytes = 256, .node = node},
		 0,
		 AQ_WALK_THERE},
		/* mapped memory needs nobody else */
		{{.longest = 12,
		  .load_bytes = 64,
		  .node = node,
		  .is_mapped = true},
		 0,
		 AQ_WALK_HERE},
		{{.longest = 12,
		  .load_bytes = 64,
		  .node = node,
		  .is_mapped = true,
		  .flags = AQ_WALK_THERE},
		 0,
		 AQ_WALK_THERE},
		/* who says where */
		{{.longest = 12,
		  .load_bytes = 64,
		  .node = node,
		  .flags = AQ_WALK_HERE},
		 0,
		 AQ_WALK_HERE},
		{{.longest = 999,
		  .load_bytes = 64,
		  .node = node,
		  .flags = AQ_WALK_THERE},
		 0,
		 AQ_WALK_THERE},
		/* nodes without walks */
		{{.longest = 12, .load_bytes = 64, .node = old},
		 0,
		 AQ_WALK_HERE},
		{{.longest = 12,
		  .load_bytes = 64,
		  .node = old,
		  .flags = AQ_WALK_THERE},
		 -EOPNOTSUPP,
		 0},
		{{.longest = 12, .load_bytes = 64, .node = old, .stores = true},
		 -EOPNOTSUPP,
		 0},
		/* stores are done on the node, however much they compute */
		{{.longest = 999,
		  .load_bytes = 64,
		  .node = node,
		  .is_mapped = true,
		  .stores = true},
		 0,
		 AQ_WALK_THERE},
		{{.longest = 12,
		  .load_bytes = 64,
		  .node = node,
		  .stores = true,
		  .flags = AQ_WALK_HERE},
		 -EOPNOTSUPP,
		 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct aq_walk_plan plan = {0};
		int err = plan_decide(&rows[i].f, &plan);

		if (err != rows[i].err || plan.where != rows[i].where)
			fail_msg("row %zu: %d, %u", i, err, plan.where);
		assert_true(err ? error_last()[0] : plan.why[0]);
	}
}

static void test_load(void **state)
{
	static const struct {
		uint32_t bytes;
		double ns;
	} rows[] = {{8, 100},	{64, 100},   {160, 130},  {256, 160},
		    {640, 280}, {1024, 400}, {4096, 1300}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_float_equal(plan_load_ns(node.load_ns, rows[i].bytes),
				   rows[i].ns, 0.01);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decide),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
