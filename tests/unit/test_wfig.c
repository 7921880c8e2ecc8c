/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of the walks' figures: every way to traverse has the right answers,
 * the same seed gives the same numbers, the accelerator's times add up, and the
 * order of the ways is what it must be.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/wfig.h"
#include "figures/wfig_costs.h"

static struct wfig_config config(enum wfig_app app, enum wfig_system system,
				 uint32_t nodes)
{
	return (struct wfig_config){.data = {.app = app,
					     .place = app == WFIG_WEB
							      ? WFIG_PARTITIONED
							      : WFIG_GRANULES,
					     .dist = YCSB_UNIFORM,
					     .nodes = nodes,
					     .size = 4096,
					     .visits = 38,
					     .seed = 9},
				    .system = system,
				    .ops = 12,
				    .seed = 9};
}

static struct wfig_result run(const struct wfig_config *c)
{
	struct wfig_result r;

	assert_int_equal(wfig_run(c, &r), 0);
	assert_int_equal(r.wrong, 0);
	return r;
}

static void test_every_way_has_the_right_answers(void **state)
{
	for (unsigned a = 0; a < WFIG_APPS; a++)
		for (unsigned s = 0; s < WFIG_SYSTEMS; s++)
			for (uint32_t n = 1; n <= 3; n += 2) {
				struct wfig_config c =
					config((enum wfig_app)a,
					       (enum wfig_system)s, n);
				struct wfig_result r = run(&c);

				assert_true(r.mean_us > r.traverse_us);
				assert_true(r.p99_us >= r.mean_us);
			}
}

static void test_one_seed_is_one_run(void **state)
{
	struct wfig_config c = config(WFIG_RANGE, WFIG_SWITCH, 2);
	struct wfig_result a, b;

	c.has_rate = true;
	a = run(&c);
	b = run(&c);
	assert_memory_equal(&a, &b, sizeof(a));
	c.seed++;
	b = run(&c);
	assert_true(a.mean_us != b.mean_us);
}

/* Alone nothing waits: a walk takes what its iterations take, twice the network
 * stack, and the way there and back, which is well below 2 us. */
static void test_times_of_the_accelerator_add_up(void **state)
{
	struct wfig_config c = config(WFIG_TSV, WFIG_WALK, 1);
	struct wfig_result r = run(&c);
	double iteration = (double)(wfig_costs.sched_ps + wfig_costs.load_ps) +
			   r.cost * (double)wfig_costs.step_ps;
	double least = (r.visits * iteration + 2 * (double)wfig_costs.net_ps +
			(double)wfig_costs.client_ps) /
		       1e6;

	assert_true(r.wait_ns == 0);
	assert_true(r.traverse_us > least - 0.3);
	assert_true(r.traverse_us < least + 2);
}

/* One request crosses once per change of node; a switch spares the client. */
static void test_a_bounce_is_a_trip(void **state)
{
	struct wfig_config c = config(WFIG_RANGE, WFIG_WALK, 4);
	struct wfig_result bounce = run(&c), by_switch;

	assert_true(bounce.trips > 1 + bounce.crossings / 2);
	c.system = WFIG_SWITCH;
	by_switch = run(&c);
	assert_true(by_switch.trips == 1);
	assert_true(by_switch.mean_us < bounce.mean_us);
}

static void test_order_of_the_ways(void **state)
{
	for (unsigned a = 0; a < WFIG_APPS; a++) {
		struct wfig_config c = config((enum wfig_app)a, WFIG_WALK, 1);
		double walk, rpc, reads, cache, all;

		/* More pages than threads need at least. */
		c.data.size = 16384;
		walk = run(&c).traverse_us;
		c.system = WFIG_RPC;
		rpc = run(&c).traverse_us;
		c.system = WFIG_READS;
		reads = run(&c).traverse_us;
		c.system = WFIG_CACHE;
		c.cache_ppm = 1000000;
		all = run(&c).traverse_us;
		c.cache_ppm = 1;
		cache = run(&c).traverse_us;
		assert_true(all < rpc && rpc < walk && walk < reads);
		assert_true(all < cache);
	}
}

/* More pipelines serve more, up to what the bus carries. */
static void test_pipelines_limit_the_rate(void **state)
{
	struct wfig_config c = config(WFIG_TSV, WFIG_WALK, 1);
	struct wfig_result few, many;

	c.has_rate = true;
	c.logic = 1;
	c.memory = 1;
	few = run(&c);
	c.logic = 3;
	c.memory = 4;
	many = run(&c);
	assert_true(many.kops > 2 * few.kops);
	assert_true(few.logic_use > 0.5 && few.logic_use < 1.001);
	assert_true(many.memory_share < 1.001);
}

/* A node is written and linked in one trip; every one is in its chain. */
static void test_appends_are_linked(void **state)
{
	struct wfig_config c = config(WFIG_WEB, WFIG_WALK, 1);
	struct wfig_result ready, asks, miss;

	c.change = WFIG_MISS;
	miss = run(&c);
	c.change = WFIG_APPEND;
	ready = run(&c);
	c.change = WFIG_ALLOCATE;
	asks = run(&c);
	assert_true(miss.trips == 1 && ready.trips == 1);
	assert_true(asks.trips == 1 + (double)wfig_costs.allocate_trips);
	assert_true(asks.traverse_us > ready.traverse_us);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_way_has_the_right_answers),
		cmocka_unit_test(test_one_seed_is_one_run),
		cmocka_unit_test(test_times_of_the_accelerator_add_up),
		cmocka_unit_test(test_a_bounce_is_a_trip),
		cmocka_unit_test(test_order_of_the_ways),
		cmocka_unit_test(test_pipelines_limit_the_rate),
		cmocka_unit_test(test_appends_are_linked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
