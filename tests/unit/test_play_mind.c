/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that machines share through the switch is coherent, whatever the
 * network, the directory's size and deaths do; planted bugs are found. */
#include "play_test.h"
#include "plays/mind_litmus.h"
#include "plays/mind_play.h"

enum {
	SEEDS = 44,
	BUG_SEEDS = 400,
};

static struct play_sum sum;
static struct play_options opt;

static void memory_is_coherent(void **state)
{
	const struct mind_play_counts *n = (const void *)sum.count;

	play_test_hold(&mind_play, &opt, play_test_seeds(SEEDS), &sum);
	/* All of it must have happened, or nothing was shown. */
	assert_true(n->loads && n->stores && n->atomics && n->hits);
	assert_true(n->litmus && n->failed && n->gets_again);
	assert_true(n->gives && n->false_invals && n->recalls && n->waits);
	assert_true(n->splits && n->joins && n->evictions && n->leaves);
	assert_true(n->machine_deaths && n->switch_deaths && n->node_deaths);
	assert_true(n->lost_regions && n->resent);
	assert_true(n->moves && n->node_silences && n->copies_left);
	assert_true(n->lost && n->duplicated && n->reordered && n->corrupted);
}

static void same_seed_same_hash(void **state)
{
	static struct play_result res;

	/* A damaged frame may hide that it has an address, which is another
	 * one in each run. */
	do {
		opt.seed++;
		assert_int_equal(play_seed(&mind_play, &opt, &res), 0);
	} while (((struct mind_play_counts *)res.count)->corrupted);
	play_test_repeats(&mind_play, &opt, opt.seed);
}

static void bugs_are_found(void **state)
{
	play_test_finds_all(&mind_play, &opt, BUG_SEEDS);
}

/* ---- litmus shapes ---------------------------------------------------------
 */

/* The end that each shape is known for is the one that no order has. */
static void shapes_forbid_what_they_are_known_for(void **state)
{
	static const struct {
		const char *name;
		uint8_t end[MIND_LITMUS_REGS];
	} forbidden[] = {
		/* Loads by thread and step; then x, y, z. */
		{"MP", {[3] = 1, [4] = 0, [12] = 1, [13] = 1}},
		{"SB", {[1] = 0, [4] = 0, [12] = 1, [13] = 1}},
		{"LB", {[0] = 1, [3] = 1, [12] = 1, [13] = 1}},
		{"WRC", {[3] = 1, [6] = 1, [7] = 0, [12] = 1, [13] = 1}},
		{"IRIW",
		 {[6] = 1, [7] = 0, [9] = 1, [10] = 0, [12] = 1, [13] = 1}},
		{"2+2W", {[12] = 1, [13] = 1}},
		{"R", {[4] = 0, [12] = 1, [13] = 2}},
		{"S", {[3] = 1, [12] = 2, [13] = 1}},
	};

	for (unsigned i = 0; i < ARRAY_LEN(forbidden); i++) {
		const struct mind_litmus_shape *s = mind_litmus_shapes;

		while (s->name && strcmp(s->name, forbidden[i].name) != 0)
			s++;
		assert_non_null(s->name);
		if (mind_litmus_allows(s, forbidden[i].end))
			fail_msg("%s", s->name);
	}
}

static void shapes_allow_what_an_order_has(void **state)
{
	const uint8_t both[MIND_LITMUS_REGS] = {
		[3] = 1, [4] = 1, [12] = 1, [13] = 1};
	const uint8_t none[MIND_LITMUS_REGS] = {[12] = 1, [13] = 1};

	assert_true(mind_litmus_allows(&mind_litmus_shapes[0], both));
	assert_true(mind_litmus_allows(&mind_litmus_shapes[0], none));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes_forbid_what_they_are_known_for),
		cmocka_unit_test(shapes_allow_what_an_order_has),
		cmocka_unit_test(memory_is_coherent),
		cmocka_unit_test(same_seed_same_hash),
		cmocka_unit_test(bugs_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
