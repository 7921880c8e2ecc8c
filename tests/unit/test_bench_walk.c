/* SPDX-License-Identifier: Apache-2.0 */
/* The walks of the benchmark and its functions in C find the same, and what is
 * not right in an application's memory is seen. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/error.h"
#include "bench/walk_app.h"
#include "bench/walk_exec.h"
#include "walk/ready.h"
#include "walk/verify.h"

enum {
	OPERATIONS = 500,
};

static void all_ways_agree(void **state)
{
	struct walk_exec_times t[WALK_EXEC_KINDS];

	if (bench_walk_exec(t))
		fail_msg("%s", error_last());
	for (int i = 0; i < WALK_EXEC_KINDS; i++) {
		assert_true(t[i].native_ns > 0 && t[i].translated_ns > 0 &&
			    t[i].interpreted_ns > 0);
		print_message("%s: %.2f ns, %.2f of C; interpreter %.2f\n",
			      t[i].ratio, t[i].translated_ns,
			      t[i].translated_ns / t[i].native_ns,
			      t[i].interpreted_ns / t[i].native_ns);
	}
}

static void open_app(struct walk_app *a, enum walk_app_kind kind)
{
	assert_int_equal(walk_app_init(a, kind, 1), 0);
	assert_int_equal(walk_app_map(a), 0);
}

static void close_app(struct walk_app *a)
{
	munmap(a->memory, a->bytes);
}

static uint64_t run(const struct walk_app *a, const struct walk_program *p,
		    struct walk_app_query *q)
{
	struct walk_end end = {q->start, WALK_STEP_NEXT};
	uint64_t nodes = 0;

	for (; end.step == WALK_STEP_NEXT; nodes++) {
		uint8_t *at = a->memory + end.next + p->image.load_lo;

		assert_true(end.next + p->image.load_bytes <= a->bytes);
		end = p->run(p, at, (uint8_t *)&q->pad);
	}
	assert_int_equal(end.step, WALK_STEP_DONE);
	return nodes;
}

static void applications_find_the_same(void **state)
{
	for (int kind = 0; kind < WALK_APP_KINDS; kind++) {
		struct walk_build *build;
		struct walk_program *p;
		struct walk_image image;
		struct walk_app a;
		struct rng r;

		open_app(&a, (enum walk_app_kind)kind);
		rng_init(&r, 1);
		assert_int_equal(walk_ready(walk_app_shape(&a),
					    WALK_LONGEST_DEFAULT, &build,
					    &image),
				 0);
		assert_int_equal(walk_program_open(&image, NULL, &p), 0);
		assert_int_equal(image.pad_bytes, walk_app_pad_bytes(&a));
		for (int i = 0; i < OPERATIONS; i++) {
			struct walk_app_query ours, q;
			uint64_t nodes;

			walk_app_draw(&a, &r, &ours);
			q = ours;
			assert_false(walk_app_found(&a, &q));
			walk_app_follow(&a, &q);
			assert_true(walk_app_found(&a, &q));
			nodes = run(&a, p, &ours);
			if (kind == WALK_APP_RANGE)
				assert_int_equal(nodes, a.tree.levels +
								WALK_SCAN_ROWS);
			assert_true(walk_app_found(&a, &ours));
			assert_memory_equal(&ours.pad, &q.pad, image.pad_bytes);
		}
		walk_program_close(p);
		walk_build_destroy(build);
		close_app(&a);
	}
}

/* Any word of a row, and a row that is missing. */
static void scans_are_checked(void **state)
{
	struct walk_app_query q;
	struct walk_app a;
	uint64_t at;

	open_app(&a, WALK_APP_RANGE);
	for (unsigned word = 0; word < WALK_ROW_BYTES; word += 8) {
		walk_tree_scan(&a.tree, 100, &q);
		walk_app_follow(&a, &q);
		assert_true(walk_app_found(&a, &q));
		q.pad.scan.pairs[word % WALK_SCAN_ROWS].value[word] ^= 1;
		assert_false(walk_app_found(&a, &q));
	}
	at = q.start;
	while (!((struct walk_row *)(void *)(a.memory + at))->is_leaf)
		at = walk_native_scan(NULL, a.memory + at, (uint8_t *)&q.pad)
			     .next;
	((struct walk_row *)(void *)(a.memory + at))->count = 0;
	walk_tree_scan(&a.tree, 100, &q);
	walk_app_follow(&a, &q);
	assert_false(walk_app_found(&a, &q));
	close_app(&a);
}

/* Neighbours are on other pages, and all leaves have places of their own. */
static void rows_are_scattered(void **state)
{
	uint64_t at, rows = 0, near = 0;
	struct walk_app_query q;
	struct walk_app a;

	open_app(&a, WALK_APP_RANGE);
	walk_tree_scan(&a.tree, 0, &q);
	at = q.start;
	while (!((struct walk_row *)(void *)(a.memory + at))->is_leaf)
		at = walk_native_scan(NULL, a.memory + at, (uint8_t *)&q.pad)
			     .next;
	while (at) {
		const struct walk_row *n = (const void *)(a.memory + at);

		assert_int_equal(n->key, rows);
		near += n->next / 4096 == at / 4096;
		at = n->next;
		rows++;
	}
	assert_int_equal(rows, a.tree.count[0]);
	assert_true(near < rows / 32);
	for (uint64_t i = 0; i < 4096; i++)
		assert_int_equal(walk_gather(4096, walk_scatter(4096, i)), i);
	close_app(&a);
}

/* What the rows of the benchmark say. */
static void a_scan_of_512_mb_visits_25_nodes(void **state)
{
	struct walk_app a;

	assert_int_equal(walk_app_init(&a, WALK_APP_RANGE, 512), 0);
	assert_int_equal(a.tree.levels - 1 + WALK_SCAN_ROWS + 1, 25);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_ways_agree),
		cmocka_unit_test(applications_find_the_same),
		cmocka_unit_test(scans_are_checked),
		cmocka_unit_test(rows_are_scattered),
		cmocka_unit_test(a_scan_of_512_mb_visits_25_nodes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
