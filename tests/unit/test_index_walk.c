/* SPDX-License-Identifier: Apache-2.0 */
/* Walks through an ordered index: gets by one walk, ranges that are added up,
 * trees that others change between two nodes of a walk, nodes that are torn,
 * and memory that lies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "index/tree_node.h"
#include "rig/walker.h"
#include "tree_rig.h"

enum {
	KEYS = 400,
	RANGES = 300,
	ITERATIONS = 20000,
};

/* A client that walks. */
struct walking {
	struct rig *r;
	struct tree_walker ops;
	struct rig_walker walker;
	struct walk_program *program[TREE_WALKS];
	struct tree_client *c;
	struct tree_client *other; /* makes changes meanwhile */
	struct rng rng;
	bool is_busy; /* with such a change */
};

static unsigned draw(struct rng *rng, uint64_t bound)
{
	return (unsigned)rng_below(rng, bound);
}

static int run_walk(void *ctx, enum tree_walk walk, uint64_t start, void *pad,
		    size_t pad_bytes, size_t send_bytes, uint32_t *trips)
{
	struct walking *w = ctx;

	*trips = 1;
	memset((uint8_t *)pad + send_bytes, 0, pad_bytes - send_bytes);
	assert_int_equal(pad_bytes, w->program[walk]->image.pad_bytes);
	return rig_walker_run(&w->walker, w->program[walk], start, pad);
}

static void open_walking(struct rig *r, struct walking *w)
{
	struct tree_config cfg = {
		.deadline_ms = 200, .walker = &w->ops, .walks_gets = true};
	struct kit_remote p = remote_open(r);

	*w = (struct walking){.r = r,
			      .ops = {.run = run_walk, .ctx = w},
			      .walker = {.region = r->region,
					 .iterations = ITERATIONS,
					 .ctx = w}};
	rng_init(&w->rng, 7);
	for (unsigned i = 0; i < TREE_WALKS; i++) {
		struct walk_build *b = NULL;
		struct walk_image image;

		assert_int_equal(
			tree_program_make(&r->g, (enum tree_walk)i, &b, &image),
			0);
		assert_int_equal(
			walk_program_open(&image, NULL, &w->program[i]), 0);
		walk_build_destroy(b);
	}
	assert_int_equal(tree_client_create(&p, &r->g, &cfg, &w->c), 0);
	w->other = client(r);
}

static void close_walking(struct walking *w)
{
	tree_client_destroy(w->c);
	tree_client_destroy(w->other);
	for (unsigned i = 0; i < TREE_WALKS; i++)
		walk_program_close(w->program[i]);
}

/* ---- keys and numbers ---------------------------------------------------- */

/* Of different lengths, some the beginning of another. */
static size_t key_of(unsigned i, char out[KEY_MAX])
{
	return (size_t)snprintf(out, KEY_MAX, "%03u%.*s", i / 3,
				(int)(i % 3) * 2, "zz\x01q");
}

static int64_t number_of(unsigned i)
{
	return (int64_t)(i * UINT64_C(0x9e3779b97f4a7c15)) >> 8;
}

static void put_number(struct tree_client *c, unsigned i)
{
	le64 value = le64_put((uint64_t)number_of(i));
	char key[KEY_MAX];
	size_t len = key_of(i, key);

	assert_int_equal(tree_put(c, key, len, &value, sizeof(value)), 0);
}

static void put_all(struct walking *w)
{
	for (unsigned i = 0; i < KEYS; i++)
		put_number(w->other, i * 7 % KEYS);
}

static void del_number(struct tree_client *c, unsigned i)
{
	char key[KEY_MAX];
	size_t len = key_of(i, key);
	int err = tree_del(c, key, len);

	assert_true(err == 0 || err == -ENOENT);
}

/* ---- gets ---------------------------------------------------------------- */

static void get_by_walks(struct rig *r)
{
	struct walking w;
	const struct tree_stats *s;
	uint8_t buf[VALUE_MAX];
	char key[KEY_MAX];
	size_t len;

	open_walking(r, &w);
	assert_int_equal(tree_get(w.c, "x", 1, buf, sizeof(buf), &len),
			 -ENOENT);
	put_all(&w);
	for (unsigned i = 0; i < KEYS; i++) {
		le64 value;

		assert_int_equal(tree_get(w.c, key, key_of(i, key), buf,
					  sizeof(buf), &len),
				 0);
		assert_int_equal(len, sizeof(value));
		memcpy(&value, buf, sizeof(value));
		assert_int_equal(le64_get(value), (uint64_t)number_of(i));
	}
	assert_int_equal(tree_get(w.c, "0", 1, buf, sizeof(buf), &len),
			 -ENOENT);
	assert_int_equal(tree_get(w.c, "zzz", 3, buf, sizeof(buf), &len),
			 -ENOENT);
	/* Nothing was read. */
	s = tree_client_stats(w.c);
	assert_int_equal(s->walks, KEYS + 3);
	assert_int_equal(s->get_trips, KEYS + 3);
	assert_int_equal(s->walks_short + s->inner_reads, 0);
	close_walking(&w);
}

/* ---- ranges -------------------------------------------------------------- */

static struct tree_range draw_range(struct rng *rng, char from[KEY_MAX],
				    char to[KEY_MAX])
{
	struct tree_range range = {.from = from,
				   .from_len =
					   key_of(draw(rng, KEYS + 20), from),
				   .is_after = draw(rng, 4) == 0};

	if (draw(rng, 8) == 0)
		range.from_len = 0;
	if (draw(rng, 8)) {
		range.to = to;
		range.to_len = key_of(draw(rng, KEYS + 20), to);
	}
	return range;
}

/* The same by key after key. */
static struct tree_reduced reduce_slowly(const struct tree_range *range)
{
	struct tree_reduced out = {.min = INT64_MAX, .max = INT64_MIN};
	struct tree_key from = {range->from, (uint32_t)range->from_len};
	struct tree_key to = {range->to, (uint32_t)range->to_len};
	__int128 sum = 0;
	char text[KEY_MAX];

	for (unsigned i = 0; i < KEYS; i++) {
		struct tree_key key = {(uint8_t *)text,
				       (uint32_t)key_of(i, text)};
		int order = tree_key_compare(key, from);

		if (order < 0 || (order == 0 && range->is_after) ||
		    (range->to && tree_key_compare(key, to) >= 0))
			continue;
		out.count++;
		sum += number_of(i);
		if (number_of(i) < out.min)
			out.min = number_of(i);
		if (number_of(i) > out.max)
			out.max = number_of(i);
	}
	if (!out.count)
		out.min = out.max = 0;
	out.sum = (uint64_t)sum;
	out.sum_high = (uint64_t)(sum >> 64);
	return out;
}

static void check_reduced(struct tree_client *c, const struct tree_range *range)
{
	struct tree_reduced want = reduce_slowly(range), got;

	assert_int_equal(tree_reduce(c, range, false, &got), 0);
	assert_memory_equal(&got, &want, sizeof(got));
	assert_int_equal(tree_reduce(c, range, true, &got), 0);
	assert_int_equal(got.count, want.count);
	assert_true(got.sum == 0 && got.min == 0 && got.max == 0);
}

static void ranges(struct rig *r)
{
	char from[KEY_MAX], to[KEY_MAX];
	const struct tree_range all = {0};
	const struct tree_stats *s;
	struct tree_reduced none;
	struct walking w;

	open_walking(r, &w);
	assert_int_equal(tree_reduce(w.c, &all, false, &none), 0);
	assert_true(none.count == 0 && none.min == 0 && none.max == 0);
	put_all(&w);
	check_reduced(w.c, &all);
	for (unsigned i = 0; i < RANGES; i++) {
		struct tree_range range = draw_range(&w.rng, from, to);

		check_reduced(w.c, &range);
	}
	s = tree_client_stats(w.c);
	assert_int_equal(s->walks, 2 * RANGES + 3);
	assert_int_equal(s->walks_short + s->scans, 0);
	/* Without walks it is the same. */
	check_reduced(w.other, &all);
	for (unsigned i = 0; i < RANGES / 4; i++) {
		struct tree_range range = draw_range(&w.rng, from, to);

		check_reduced(w.other, &range);
	}
	close_walking(&w);
}

/* A sum of more than 64 bits; and keys that are as long as they may be, which
 * no key that a walk could begin with comes right after. */
static void extremes(struct rig *r)
{
	static const int64_t rows[] = {INT64_MAX, INT64_MAX, INT64_MIN,
				       INT64_MIN, INT64_MIN, -1};
	static const uint64_t high[] = {0,	    0,		0,
					UINT64_MAX, UINT64_MAX, UINT64_MAX};
	const struct tree_range after = {
		.from = "key-of-12-03", .from_len = 12, .is_after = true};
	const struct tree_range all = {0};
	struct tree_reduced got;
	struct walking w;
	__int128 sum = 0;

	open_walking(r, &w);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		le64 value = le64_put((uint64_t)rows[i]);
		char key[KEY_MAX + 1];

		snprintf(key, sizeof(key), "key-of-12-%02u", i);
		assert_int_equal(
			tree_put(w.other, key, KEY_MAX, &value, sizeof(value)),
			0);
		sum += rows[i];
		assert_int_equal(tree_reduce(w.c, &all, false, &got), 0);
		assert_int_equal(got.sum, (uint64_t)sum);
		assert_int_equal(got.sum_high, (uint64_t)(sum >> 64));
		assert_int_equal(got.sum_high, high[i]);
	}
	assert_int_equal(got.min, INT64_MIN);
	assert_int_equal(got.max, INT64_MAX);
	assert_int_equal(tree_client_stats(w.c)->scans, 0);
	assert_int_equal(tree_reduce(w.c, &after, false, &got), 0);
	assert_int_equal(got.count, 2);
	assert_int_equal(tree_client_stats(w.c)->scans, 1);
	close_walking(&w);
}

static void no_numbers(struct rig *r)
{
	const struct tree_range all = {0};
	const struct tree_range before = {.to = "100", .to_len = 3};
	const struct tree_range long_one = {.from = "0123456789abc",
					    .from_len = 13};
	struct tree_reduced got;
	struct walking w;

	open_walking(r, &w);
	put_all(&w);
	put(w.other, "100", "one");
	assert_int_equal(tree_reduce(w.c, &all, false, &got), -EDOM);
	assert_non_null(strstr(error_last(), "key '100' has 3 bytes"));
	assert_int_equal(tree_reduce(w.c, &before, false, &got), 0);
	assert_int_equal(got.count, 300);
	assert_int_equal(tree_reduce(w.c, &all, true, &got), 0);
	assert_int_equal(got.count, KEYS);
	assert_int_equal(tree_reduce(w.c, &long_one, true, &got), -EINVAL);
	close_walking(&w);
}

/* ---- changes meanwhile --------------------------------------------------- */

/* Every third key comes and goes; the others stay. */
static void change_something(void *ctx)
{
	struct walking *w = ctx;
	unsigned first = draw(&w->rng, KEYS / 3);

	if (w->is_busy || draw(&w->rng, 3))
		return;
	w->is_busy = true;
	/* Neighbours, so that leaves become empty and full. */
	for (unsigned i = first; i < KEYS / 3 && i < first + 6; i++)
		if (draw(&w->rng, 2))
			del_number(w->other, 3 * i + 1);
		else
			put_number(w->other, 3 * i + 1);
	w->is_busy = false;
}

static void while_it_changes(struct rig *r)
{
	const struct tree_range all = {0};
	unsigned stay = KEYS - KEYS / 3;
	uint8_t buf[VALUE_MAX];
	char key[KEY_MAX];
	struct walking w;
	size_t len;

	open_walking(r, &w);
	for (unsigned i = 0; i < KEYS; i++)
		if (i % 3 != 1)
			put_number(w.other, i);
	w.walker.between = change_something;
	for (unsigned i = 0; i < 60; i++) {
		struct tree_reduced got;
		unsigned k = draw(&w.rng, KEYS / 3) * 3;

		assert_int_equal(tree_reduce(w.c, &all, i & 1, &got), 0);
		assert_in_range(got.count, stay - 1, KEYS);
		assert_int_equal(tree_get(w.c, key, key_of(k, key), buf,
					  sizeof(buf), &len),
				 0);
	}
	assert_true(tree_client_stats(w.other)->splits > 5);
	check_whole(w.other, UINT64_MAX);
	close_walking(&w);
}

/* Clusters of keys come and go as a whole, so leaves die below the walk. */
static void empty_a_leaf(void *ctx)
{
	struct walking *w = ctx;
	unsigned first = draw(&w->rng, KEYS - 20);
	bool is_put = draw(&w->rng, 2);

	if (w->is_busy || draw(&w->rng, 8))
		return;
	w->is_busy = true;
	for (unsigned i = first; i < first + 20; i++)
		if (i % 50 == 0)
			continue;
		else if (is_put)
			put_number(w->other, i);
		else
			del_number(w->other, i);
	w->is_busy = false;
}

static void while_leaves_die(struct rig *r)
{
	const struct tree_range all = {0};
	struct tree_reduced got;
	struct walking w;

	open_walking(r, &w);
	put_all(&w);
	w.walker.between = empty_a_leaf;
	for (unsigned i = 0; i < 60; i++) {
		assert_int_equal(tree_reduce(w.c, &all, i & 1, &got), 0);
		assert_in_range(got.count, KEYS / 50, KEYS);
	}
	assert_true(tree_client_stats(w.other)->pruned > 5);
	/* Some walks lost their way, and READs went on from there. */
	assert_true(tree_client_stats(w.c)->walks_short > 0);
	/* Entries may lead to leaves that are gone; that is no damage. */
	w.walker.between = NULL;
	check_whole(w.other, UINT64_MAX);
	/* A visit of everything ends what is unfinished. */
	put_all(&w);
	check_whole(w.other, KEYS);
	check_reduced(w.c, &all);
	close_walking(&w);
}

/* ---- what is wrong ------------------------------------------------------- */

/* A leaf with the key, in the memory itself. */
static struct tree_node *leaf_of(struct rig *r, const char *key)
{
	struct tree_key k = {(const uint8_t *)key, (uint32_t)strlen(key)};

	for (uint32_t i = 0; i < r->g.node_count; i++) {
		struct tree_node *n =
			(struct tree_node *)(r->region->mem +
					     tree_node_at(&r->g, i));
		struct tree_item item;

		if (n->state == TREE_NODE_LIVE && !n->level &&
		    tree_node_find(&r->g, n, k, &item) == TREE_SLOT_USED)
			return n;
	}
	fail_msg("there is no leaf with %s", key);
	return NULL;
}

/* Somebody died between two packets: the head is new, the slots are old. The
 * walk notices; who reads mends it. */
static void two_versions(struct rig *r)
{
	const struct tree_range all = {0};
	struct tree_node *n;
	struct walking w;

	open_walking(r, &w);
	put_all(&w);
	n = leaf_of(r, "070");
	n->version = le32_put(le32_get(n->version) + 1);
	tree_node_set_state(&r->g, n, TREE_NODE_LIVE); /* a sum that is right */
	check_reduced(w.c, &all);
	assert_int_equal(tree_client_stats(w.c)->walks, 2);
	assert_int_equal(tree_client_stats(w.c)->walks_short, 1);
	assert_int_equal(tree_client_stats(w.c)->mended, 1);
	close_walking(&w);
}

/* Any words anywhere: an error, or what a client without walks sees. */
static void lies(struct rig *r)
{
	const struct tree_range all = {0};
	uint64_t from = r->g.node_offset, bytes = r->g.size_bytes - from;
	uint8_t *before = malloc(r->g.size_bytes);
	uint8_t buf[VALUE_MAX], pad[sizeof(struct tree_pad) + TREE_KEY_MAX];
	char key[KEY_MAX];
	struct walking w;
	uint32_t trips;
	size_t len;

	assert_non_null(before);
	open_walking(r, &w);
	put_all(&w);
	memcpy(before, r->region->mem, r->g.size_bytes);
	for (unsigned i = 0; i < 300; i++) {
		uint64_t at = rng_below(&w.rng, bytes / 8) * 8;
		int err;

		if (i % 50 == 0)
			at = TREE_ROOT_AT - from;
		rng_fill(&w.rng, r->region->mem + from + at,
			 1 + draw(&w.rng, 8));
		memset(pad, 0, sizeof(pad));
		err = run_walk(&w, TREE_WALK_SUM, TREE_ROOT_AT, pad,
			       sizeof(pad), sizeof(pad), &trips);
		assert_true(err == 0 || err == -ECANCELED || err == -EFAULT ||
			    err == -ELOOP);
		err = tree_get(w.c, key, key_of(i % KEYS, key), buf,
			       sizeof(buf), &len);
		assert_true(err == 0 || err == -ENOENT || err == -EBADMSG ||
			    err == -ETIMEDOUT);
		memcpy(r->region->mem, before, r->g.size_bytes);
	}
	check_reduced(w.c, &all);
	free(before);
	close_walking(&w);
}

/* ---- programs ------------------------------------------------------------ */

static void programs(void **state)
{
	static const struct {
		uint32_t node, key, value;
		int find, sum;
	} rows[] = {
		{1024, 32, 32, 0, 0},
		{1024, 8, 8, 0, 0},
		{256, 8, 16, 0, 0},
		{1024, 64, 128, 0, 0},
		{2048, 32, 32, 0, 0},
		/* The leaf does not fit into a pad. */
		{4096, 32, 32, -EOPNOTSUPP, 0},
		{8192, 32, 32, -EOPNOTSUPP, -EOPNOTSUPP},
		/* The last entry, from 464 on, is in two packets. */
		{544, 32, 16, 0, -EOPNOTSUPP},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct tree_options o = {.node_bytes = rows[i].node,
					       .key_max = rows[i].key,
					       .value_max = rows[i].value};
		struct tree_geometry g;

		assert_int_equal(tree_geometry_make(&o, &g), 0);
		for (unsigned k = 0; k < TREE_WALKS; k++) {
			int want = k == TREE_WALK_FIND ? rows[i].find
						       : rows[i].sum;
			struct walk_build *b = NULL;
			struct walk_image image;

			assert_int_equal(tree_program_make(&g,
							   (enum tree_walk)k,
							   &b, &image),
					 want);
			walk_build_destroy(b);
		}
	}
}

/* What nodes accept without being told otherwise. */
static void usual_sizes_fit(void **state)
{
	static const uint32_t rows[][3] = {
		{1024, 32, 32}, {1024, 16, 16}, {512, 8, 8}, {2048, 64, 128}};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		const struct tree_options o = {.node_bytes = rows[i][0],
					       .key_max = rows[i][1],
					       .value_max = rows[i][2]};
		struct tree_geometry g;

		assert_int_equal(tree_geometry_make(&o, &g), 0);
		for (unsigned k = 0; k < TREE_WALKS; k++) {
			struct walk_build *b = NULL;
			struct walk_image image;
			struct walk_facts facts;

			assert_int_equal(tree_program_make(&g,
							   (enum tree_walk)k,
							   &b, &image),
					 0);
			assert_int_equal(walk_verify(&image, 0, &facts), 0);
			walk_build_destroy(b);
		}
	}
}

/* ---- main ---------------------------------------------------------------- */

static const struct tree_options sizes[] = {
	{.size_bytes = 1024 * 320,
	 .node_bytes = 320,
	 .key_max = KEY_MAX,
	 .value_max = VALUE_MAX,
	 .clients = CLIENTS,
	 .failure_ms = 5,
	 .chunk_nodes = 8},
	{.size_bytes = 256 * 1024,
	 .key_max = KEY_MAX,
	 .value_max = VALUE_MAX,
	 .clients = CLIENTS,
	 .failure_ms = 5,
	 .chunk_nodes = 8},
};

#define PLAYED(name)                                            \
	static void test_##name(void **state)                   \
	{                                                       \
		for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) \
			play(&sizes[i], name);                  \
	}
PLAYED(get_by_walks)
PLAYED(ranges)
PLAYED(extremes)
PLAYED(no_numbers)
PLAYED(while_it_changes)
PLAYED(two_versions)
PLAYED(lies)

static void test_while_leaves_die(void **state)
{
	play(&sizes[0], while_leaves_die);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs),
		cmocka_unit_test(usual_sizes_fit),
		cmocka_unit_test(test_get_by_walks),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_no_numbers),
		cmocka_unit_test(test_while_it_changes),
		cmocka_unit_test(test_while_leaves_die),
		cmocka_unit_test(test_two_versions),
		cmocka_unit_test(test_lies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
