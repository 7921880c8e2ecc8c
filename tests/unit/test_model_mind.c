/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The model check of coherent shared memory: it holds, it finds every planted
 * bug by its effect, its counterexamples can be played, and packing a state
 * loses nothing that matters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "mind_cmd.h"
#include "mind_search.h"

enum {
	STATES_MAX = 1000000,
	WALKS = 300,
	STEPS = 60,
};

/* Those of one page: the others are for the command. */
static bool is_small(const struct mind_case *c)
{
	return !c->full && c->config.pages == 1;
}

static void all_promises_hold(void **state)
{
	for (const struct mind_case *c = mind_cases; c->name; c++) {
		struct mind_result res;

		if (!is_small(c))
			continue;
		assert_int_equal(
			mind_search(&c->config, STATES_MAX, true, &res), 0);
		if (res.verdict != MIND_HOLDS)
			fail_msg("%s: %s", c->name, res.wrong);
		assert_true(res.states > 1000 && res.depth > 20);
	}
}

/* The counterexample leads, step by step, to what is wrong. */
static void replay(const struct mind_case *c, const struct mind_result *res)
{
	struct mind_world w;
	struct mind_event e;
	char text[512];

	mind_world_init(&w, &c->config);
	for (uint32_t i = 1; i < res->trace_length; i++) {
		struct mind_world before;

		assert_null(mind_judge(&w, false));
		mind_world_copy(&before, &w);
		assert_true(mind_follow(&w, &res->trace[i], &e));
		mind_event_text(&before, &e, text, sizeof(text));
		assert_true(strlen(text) > 5);
		mind_world_text(&w, text, sizeof(text));
		assert_non_null(strstr(text, "memory"));
	}
	if (res->verdict == MIND_BROKEN)
		assert_non_null(mind_judge(&w, false));
	else
		assert_false(mind_is_quiet(&w));
}

/* Some bugs show in one of the larger cases only. */
static bool is_for(const struct mind_case *c, enum plant bug)
{
	if (bug == PLANT_mind_no_room)
		return !c->full;
	if (bug == PLANT_mind_split_forgets)
		return strcmp(c->name, "split") == 0;
	if (bug == PLANT_coh_gone_early)
		return strcmp(c->name, "copies-both") == 0;
	if (bug == PLANT_mind_split_gone)
		return strcmp(c->name, "split-machine") == 0;
	return is_small(c);
}

static bool is_found(enum plant bug)
{
	bool found = false;

	plant_set(bug);
	for (const struct mind_case *c = mind_cases; c->name && !found; c++) {
		struct mind_result res;

		if (!is_for(c, bug))
			continue;
		assert_int_equal(
			mind_search(&c->config, STATES_MAX, false, &res), 0);
		found = res.verdict == MIND_BROKEN || res.verdict == MIND_STUCK;
		if (found)
			replay(c, &res);
		mind_result_release(&res);
	}
	plant_set(PLANT_none);
	return found;
}

static void every_planted_bug_is_found(void **state)
{
	/* That regions of two owners are joined takes 800,000 states to see:
	 * sim_mind_full does it. */
	for (const enum plant *bug = mind_bugs; *bug != PLANT_none; bug++)
		if (*bug != PLANT_mind_join_owners && !is_found(*bug))
			fail_msg("%s is not found", plant_name(*bug));
}

static void a_search_that_gives_up_says_so(void **state)
{
	struct mind_result res;

	assert_int_equal(mind_search(&mind_cases[0].config, 100, true, &res),
			 0);
	assert_int_equal(res.verdict, MIND_LIMIT);
	assert_int_equal(res.states, 100);
}

/* Random walks: a state that was packed and unpacked has the same successors,
 * packed. */
static void packing_loses_nothing_that_matters(void **state)
{
	struct rng rand;

	rng_init(&rand, 1);
	for (unsigned n = 0; n < WALKS; n++) {
		const struct mind_case *c = &mind_cases[n % 8];
		struct mind_world w;

		assert_non_null(c->name);
		mind_world_init(&w, &c->config);
		for (unsigned i = 0; i < STEPS; i++) {
			struct mind_event events[MIND_EVENTS_MAX], same;
			unsigned count = mind_events(&w, events);
			struct mind_packed before, again, after;
			struct mind_world copy;

			if (!count)
				break;
			mind_pack(&w, &before);
			mind_unpack(&c->config, &before, &copy);
			mind_pack(&copy, &again);
			assert_memory_equal(&before, &again, sizeof(before));
			mind_apply(&w, &events[rng_below(&rand, count)]);
			mind_pack(&w, &after);
			assert_true(mind_follow(&copy, &after, &same));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_promises_hold),
		cmocka_unit_test(every_planted_bug_is_found),
		cmocka_unit_test(a_search_that_gives_up_says_so),
		cmocka_unit_test(packing_loses_nothing_that_matters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
