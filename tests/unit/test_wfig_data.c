/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structures of the walks' figures: the tree is a tree, however keys come;
 * every placing has the same answers; the copy of an image that counts does
 * what the image does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "figures/wfig.h"
#include "figures/wfig_count.h"
#include "sim/sim.h"

enum {
	SIZE = 2048,
	OPS = 100,
};

/* ---- the tree ------------------------------------------------------------ */

static bool finds(const struct wfig_tree *t, uint64_t key)
{
	const struct wfig_node *n = &t->node[t->root];

	while (!n->is_leaf) {
		uint32_t i = 0;

		while (i < n->count && n->entry[i].key <= key)
			i++;
		n = &t->node[n->child[i] - 1];
	}
	for (uint32_t i = 0; i < n->count; i++)
		if (n->entry[i].key == key)
			return true;
	return false;
}

static void check_tree(uint64_t (*key)(uint64_t i))
{
	struct wfig_tree t;
	uint64_t count = 0, seen = 0, last = 0;

	assert_int_equal(wfig_tree_create(&t, SIZE), 0);
	while (wfig_tree_insert(&t, key(count), count))
		count++;
	assert_in_range(t.count, SIZE - WFIG_TREE_LEVELS, SIZE);
	for (uint64_t i = 0; i < count; i++)
		assert_true(finds(&t, key(i)));
	assert_false(finds(&t, key(count)));
	for (uint64_t at = wfig_tree_first(&t) + 1; at;
	     at = t.node[at - 1].next) {
		const struct wfig_node *n = &t.node[at - 1];

		assert_true(n->is_leaf && n->count > 0);
		for (uint32_t i = 0; i < n->count; i++, seen++) {
			assert_true(!seen || n->entry[i].key > last);
			last = n->entry[i].key;
		}
	}
	assert_int_equal(seen, count);
	wfig_tree_release(&t);
}

static uint64_t upwards(uint64_t i)
{
	return i + 1;
}

static uint64_t downwards(uint64_t i)
{
	return UINT64_MAX - i;
}

static void test_tree_keeps_keys_in_order(void **state)
{
	check_tree(upwards);
	check_tree(downwards);
	check_tree(ycsb_key);
}

/* ---- placing ------------------------------------------------------------- */

static struct wfig_data *make(enum wfig_app app, enum wfig_place place,
			      uint32_t nodes)
{
	const struct wfig_data_config cfg = {.app = app,
					     .place = place,
					     .dist = YCSB_ZIPFIAN,
					     .nodes = nodes,
					     .size = SIZE,
					     .visits = 38,
					     .seed = 3};
	struct wfig_data *d;

	assert_int_equal(wfig_data_create(&cfg, &d), 0);
	return d;
}

static struct wfig_result sample(enum wfig_app app, enum wfig_place place,
				 uint32_t nodes)
{
	struct wfig_data *d = make(app, place, nodes);
	struct wfig_result res;

	wfig_result_clear(&res);
	wfig_sample(d, OPS, 5, &res);
	assert_int_equal(res.wrong, 0);
	wfig_data_destroy(d);
	return res;
}

static void test_every_placing_has_the_same_answers(void **state)
{
	for (unsigned a = 0; a < WFIG_APPS; a++) {
		enum wfig_app app = (enum wfig_app)a;
		struct wfig_result one = sample(app, WFIG_PARTITIONED, 1);

		assert_true(one.crossings == 0);
		for (unsigned p = WFIG_PARTITIONED; p <= WFIG_RANDOM; p++)
			for (uint32_t n = 2; n <= WFIG_NODES_MAX; n++) {
				struct wfig_result r =
					sample(app, (enum wfig_place)p, n);

				/* Trees are the same; of chains, which keys
				 * are asked for depends on their number. */
				if (app != WFIG_WEB)
					assert_true(r.visits == one.visits);
				if (p == WFIG_RANDOM)
					assert_true(r.crossed > 0.6);
			}
	}
}

static void test_chains_stay_on_their_node(void **state)
{
	assert_true(sample(WFIG_WEB, WFIG_PARTITIONED, 4).crossed == 0);
}

static void test_visits_are_as_published(void **state)
{
	double web = sample(WFIG_WEB, WFIG_PARTITIONED, 1).visits;
	double range = sample(WFIG_RANGE, WFIG_GRANULES, 1).visits;
	double tsv = sample(WFIG_TSV, WFIG_GRANULES, 1).visits;

	assert_true(web > 30 && web < 66);
	assert_true(range > 22 && range < 28);
	assert_true(tsv > 36 && tsv < 40);
}

/* A node that has other bytes makes a wrong answer, which is noticed. */
static void test_a_changed_value_is_noticed(void **state)
{
	for (unsigned a = 0; a < WFIG_APPS; a++) {
		struct wfig_data *d =
			make((enum wfig_app)a, WFIG_PARTITIONED, 1);
		struct wfig_visit v = {0};
		struct wfig_ask ask;
		struct rng r;

		sim_rand_init(&r, 1, 1);
		wfig_data_ask(d, &r, &ask);
		wfig_data_walk(d, &ask, &v);
		assert_true(v.right);
		/* Values: of a chain's node, or of the entries of a leaf. */
		for (uint64_t at = 0; at < d->piece_bytes; at += 256)
			for (uint32_t i = a == WFIG_WEB ? 8 : 24; i < 160;
			     i += 16)
				d->piece[0][at + i] ^= 1;
		sim_rand_init(&r, 1, 1);
		wfig_data_ask(d, &r, &ask);
		wfig_data_walk(d, &ask, &v);
		assert_false(v.right);
		wfig_data_destroy(d);
	}
}

/* ---- counting ------------------------------------------------------------ */

/* The pads of both agree after every iteration, and none costs more than the
 * verifier says. */
static void test_the_counting_copy_does_the_same(void **state)
{
	for (unsigned a = 0; a < WFIG_APPS; a++) {
		struct wfig_data *d =
			make((enum wfig_app)a, WFIG_PARTITIONED, 1);
		static uint8_t pad[WFIG_PAD_MAX];
		struct wfig_ask ask;
		struct rng r;

		sim_rand_init(&r, 1, 2);
		for (unsigned i = 0; i < OPS; i++) {
			uint64_t at, other;
			enum walk_step step;

			wfig_data_ask(d, &r, &ask);
			memcpy(pad, ask.pad, sizeof(pad));
			at = ask.start;
			do {
				uint8_t *node = d->piece[0] + at +
						d->program->image.load_lo;
				uint64_t cost = 0;

				step = walk_program_step(d->program, node, pad,
							 &at);
				assert_int_equal(wfig_count_step(d->counted,
								 node, ask.pad,
								 &other, &cost),
						 step);
				assert_int_equal(at, other);
				assert_memory_equal(pad, ask.pad,
						    ask.pad_bytes);
				assert_in_range(cost, 1,
						d->program->facts.longest);
			} while (step == WALK_STEP_NEXT);
		}
		wfig_data_destroy(d);
	}
}

/* Key, its load, comparison, next pointer, test, onward: as in the listing of
 * the paper. */
static void test_a_chain_takes_six_instructions(void **state)
{
	struct wfig_result r = sample(WFIG_WEB, WFIG_PARTITIONED, 1);

	assert_true(r.cost > 5.9 && r.cost < 6.2);
	assert_true(r.offloads && r.ratio < 0.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tree_keeps_keys_in_order),
		cmocka_unit_test(test_every_placing_has_the_same_answers),
		cmocka_unit_test(test_chains_stay_on_their_node),
		cmocka_unit_test(test_visits_are_as_published),
		cmocka_unit_test(test_a_changed_value_is_noticed),
		cmocka_unit_test(test_the_counting_copy_does_the_same),
		cmocka_unit_test(test_a_chain_takes_six_instructions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
