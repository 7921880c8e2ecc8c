/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the EDM fabric: nothing is lost that the design promises. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "edm/edm_jobs.h"

static struct edm_config base(void)
{
	struct edm_config c;

	edm_config_init(&c);
	c.nodes = 12;
	c.messages = 6000;
	c.load = 0.6;
	c.write_ppm = 500000;
	c.warmup_ppm = 0;
	return c;
}

static struct edm_point run(const struct edm_config *c)
{
	struct edm_result *r = malloc(sizeof(*r));
	struct edm_point p;

	assert_non_null(r);
	assert_int_equal(edm_run_all(c, NULL, r), 0);
	edm_point_of(&p, r);
	free(r);
	return p;
}

static uint64_t middle_ps(const struct edm_config *c)
{
	return (uint64_t)(edm_workload_gap_ps(c) * (double)c->messages / 2);
}

/* Lost notifications, requests and grants are found by timers. */
static void test_lost_control_blocks(void **state)
{
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct edm_config c = base();
		struct edm_point p;

		c.seed = seed;
		c.loss_ppm = 20000;
		c.timer_ps = 3 * EDM_US;
		c.read_retries = 50;
		c.sizes = seed % 2 ? EDM_SIZES_FIXED : EDM_SIZES_YCSB;
		p = run(&c);
		assert_true(p.drops > 0 && p.timeouts > 0);
		assert_int_equal(p.completed, p.measured);
		assert_int_equal(p.nulls, 0);
	}
}

static void test_mirror_in_step(void **state)
{
	struct edm_config c = base();
	struct edm_point one = run(&c), two;

	c.mirror = true;
	two = run(&c);
	/* Equal cables: both switches decide alike, to the picosecond. */
	assert_true(one.mean_ns == two.mean_ns);
	assert_true(two.duplicates > 0 && two.copy_gap_ns == 0);
}

static void test_switch_fails(void **state)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct edm_config c = base();
		struct edm_point p;

		c.seed = seed;
		c.mirror = true;
		c.mirror_skew_ps = 2000;
		c.fail_switch_ps = middle_ps(&c);
		p = run(&c);
		assert_int_equal(p.completed, p.measured);
		assert_true(p.duplicates < p.measured);
		/* Without the mirror the same failure loses messages. */
		c.mirror = false;
		c.mirror_skew_ps = 0;
		p = run(&c);
		assert_true(p.completed < p.measured);
		assert_true(p.completed > 0);
	}
}

static void test_link_disabled(void **state)
{
	for (uint32_t port = 0; port < 4; port++) {
		struct edm_config c = base();
		struct edm_point p;

		c.mirror = true;
		c.mirror_skew_ps = 2000;
		c.fail_link_ps = middle_ps(&c);
		c.fail_port = port;
		p = run(&c);
		assert_int_equal(p.completed, p.measured);
	}
}

/* Reads of a dead node end with nothing instead of waiting for ever. */
static void test_memory_node_dies(void **state)
{
	struct edm_config c = base();
	struct edm_point p;

	c.write_ppm = 0;
	c.fail_node_ps = middle_ps(&c);
	c.fail_port = 5;
	c.timer_ps = 3 * EDM_US;
	p = run(&c);
	assert_true(p.nulls > 0);
	/* Only what the dead node itself asked for is open. */
	assert_true(p.measured - p.completed < p.measured / 12);
}

/* What is possible at all: loss and a failing switch together. */
static void test_loss_with_mirror(void **state)
{
	struct edm_config c = base();
	struct edm_point p;

	c.mirror = true;
	c.loss_ppm = 5000;
	c.timer_ps = 3 * EDM_US;
	c.read_retries = 50;
	c.fail_switch_ps = middle_ps(&c);
	p = run(&c);
	assert_int_equal(p.completed, p.measured);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lost_control_blocks),
		cmocka_unit_test(test_mirror_in_step),
		cmocka_unit_test(test_switch_fails),
		cmocka_unit_test(test_link_disabled),
		cmocka_unit_test(test_memory_node_dies),
		cmocka_unit_test(test_loss_with_mirror),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
