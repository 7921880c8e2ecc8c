/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points of MIND's figures: under every system and workload loads see the last
 * store, the same seed gives the same numbers, transitions take what their hops
 * say, the directory keeps its bound, and rules follow areas, not bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/mfig.h"

/* Two machines with two threads each, and little of everything. */
static struct mfig_config small(enum mfig_work work, enum mfig_system system)
{
	struct mfig_config c;

	mfig_config_init(&c, work);
	c.system = system;
	c.machines = system == MFIG_SWAP ? 1 : 2;
	c.threads = 2;
	c.pages = 2048;
	c.cache_pages = 128;
	c.entries = 48;
	c.units = work == MFIG_TF ? 100000 : 600;
	c.share_percent = c.read_percent = 50;
	return c;
}

static struct mfig_result run(const struct mfig_config *c)
{
	struct mfig_result r;

	assert_int_equal(mfig_run(c, &r), 0);
	assert_int_equal(r.wrong, 0);
	return r;
}

static void every_load_sees_the_last_store(void **state)
{
	for (unsigned w = 0; w < MFIG_WORKS; w++)
		for (unsigned s = 0; s < MFIG_SYSTEMS; s++) {
			struct mfig_config c =
				small((enum mfig_work)w, (enum mfig_system)s);
			struct mfig_result r = run(&c);

			assert_true(r.kops > 0 && r.miss > 0 && r.miss <= 1);
			assert_true(s >= MFIG_GAM || r.gets);
		}
}

static void one_seed_is_one_run(void **state)
{
	struct mfig_config c = small(MFIG_MA, MFIG_MIND);
	struct mfig_result a = run(&c), b = run(&c);

	assert_memory_equal(&a, &b, sizeof(a));
	c.seed++;
	b = run(&c);
	assert_true(a.virtual_ms != b.virtual_ms);
}

static double takes(enum mfig_transition transition, enum mfig_system system)
{
	struct mfig_config c = small(MFIG_UNIFORM, system);

	c.transition = transition;
	c.threads = 1;
	return run(&c).latency_us;
}

/* A page that another machine has to give up takes two more hops, and one that
 * it must have given back to memory first four more than that. */
static void transitions_take_what_their_hops_take(void **state)
{
	double fetch = takes(MFIG_I_S, MFIG_MIND);

	assert_true(fetch > 8.5 && fetch < 9.5);
	assert_true(takes(MFIG_I_M, MFIG_MIND) == fetch);
	assert_true(takes(MFIG_S_M, MFIG_MIND) > fetch);
	assert_true(takes(MFIG_M_S, MFIG_MIND) > fetch + 1);
	assert_true(takes(MFIG_M_M, MFIG_MIND) > takes(MFIG_M_S, MFIG_MIND));
	assert_true(takes(MFIG_M_M, MFIG_AT_NODE) >
		    takes(MFIG_M_M, MFIG_MIND) + 1);
}

/* A directory that is too small recalls, and never has more than it has. */
static void the_directory_keeps_its_bound(void **state)
{
	struct mfig_config c = small(MFIG_UNIFORM, MFIG_MIND);
	struct mfig_result r = run(&c);

	assert_true(r.entries <= c.entries);
	c.entries = 8;
	r = run(&c);
	assert_true(r.recalls > 0);
	assert_true(r.entries <= c.entries);
	c.is_static = true;
	r = run(&c);
	assert_int_equal(r.recalls, 0);
	assert_int_equal(r.splits + r.joins, 0);
}

static void rules_follow_areas(void **state)
{
	struct mfig_rules parts, pages, more;

	assert_int_equal(mfig_rules_run(MFIG_TF, MFIG_PARTS, 10, 1, &parts), 0);
	assert_int_equal(mfig_rules_run(MFIG_TF, MFIG_2M_PAGES, 10, 1, &pages),
			 0);
	assert_int_equal(mfig_rules_run(MFIG_TF, MFIG_2M_PAGES, 80, 1, &more),
			 0);
	assert_true(parts.rules < pages.rules);
	assert_true(more.rules > 7 * pages.rules);
	assert_true(parts.jain > 0.95 && parts.jain <= 1);
	assert_int_equal(mfig_rules_run(MFIG_TF, MFIG_1G_PAGES, 10, 1, &pages),
			 0);
	assert_true(pages.jain < 0.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_load_sees_the_last_store),
		cmocka_unit_test(one_seed_is_one_run),
		cmocka_unit_test(transitions_take_what_their_hops_take),
		cmocka_unit_test(the_directory_keeps_its_bound),
		cmocka_unit_test(rules_follow_areas),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
