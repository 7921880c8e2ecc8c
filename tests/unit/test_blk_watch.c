/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of a block's events, what slow readers are told, and the order in
 * which entries of several blocks are told. */
#include <errno.h>
#include <stdio.h>

#include "blk_rig.h"

enum {
	ALL = -1,
	SIZE = BLOCK_BYTES_MIN,
};

static uint8_t answer[BLOCK_REPLY_MAX], room[2][BLOCK_REPLY_MAX];

static bool read_ring(const struct blk_watch *w, struct block_tail *t,
		      uint32_t events, uint32_t bytes)
{
	bool has_some;
	uint32_t n =
		blk_watch_read(w, t->is_started ? t->next : BLOCK_WATCH_NOW,
			       events, 0, answer, bytes, &has_some);

	assert_int_not_equal(n, 0);
	assert_int_equal(block_tail_take(t, answer, n), 0);
	return has_some;
}

static struct block_reader reader_of(struct block_tail **tails, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		tails[i]->bytes = room[i];
	return (struct block_reader){.tail = tails, .count = count};
}

static void events_are_told_once_and_in_order(void **state)
{
	struct block_tail t = {.generation = 7, .is_started = true},
			  *tails[] = {&t};
	struct block_reader r = reader_of(tails, 1);
	struct block_told told;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	assert_int_equal(blk_rig_put(&rig, 1, 1, BLOCK_PUT, "one").status, 0);
	/* A repetition is no event, and neither is what was refused. */
	assert_int_equal(blk_rig_put(&rig, 1, 1, BLOCK_PUT, "one").status, 0);
	(void)blk_rig_do(
		&rig, 2,
		(struct blk_request){.opcode = BLOCK_GET, .sequence = 1});
	(void)blk_rig_do(
		&rig, 2,
		(struct blk_request){.opcode = BLOCK_GET, .sequence = 2});
	assert_true(read_ring(&rig.block.watch, &t, (uint32_t)ALL, 8000));
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.what, BLOCK_EVENT_PUT);
	assert_int_equal(told.length, 3);
	assert_memory_equal(told.bytes, "one", 3);
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.what, BLOCK_EVENT_GET);
	assert_false(block_reader_next(&r, &told));
	assert_false(read_ring(&rig.block.watch, &t, (uint32_t)ALL, 8000));
	assert_false(block_reader_next(&r, &told));
	blk_rig_free(&rig);
}

static void now_means_from_now_on(void **state)
{
	struct block_tail t = {.generation = 7}, *tails[] = {&t};
	struct block_reader r = reader_of(tails, 1);
	struct block_told told;
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "before");
	assert_false(read_ring(&rig.block.watch, &t, (uint32_t)ALL, 8000));
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "after");
	assert_true(read_ring(&rig.block.watch, &t, (uint32_t)ALL, 8000));
	assert_true(block_reader_next(&r, &told));
	assert_memory_equal(told.bytes, "after", 5);
	blk_rig_free(&rig);
}

static void what_is_lost_is_counted(void **state)
{
	uint32_t only_gets = 1u << BLOCK_EVENT_GET;
	/* Readings of any size, of all events or of few. */
	for (uint32_t bytes = BLK_WATCH_ROOM_MIN; bytes < 9000; bytes += 701) {
		struct block_tail t = {.generation = 7, .is_started = true};
		struct block_tail *tails[] = {&t};
		struct block_reader r = reader_of(tails, 1);
		struct block_told told;
		uint64_t heard = 0, lost = 0;
		struct blk_watch w;

		assert_int_equal(blk_watch_init(&w, SIZE), 0);
		for (unsigned i = 0; i < 5000; i++) {
			char data[300];

			memset(data, 'x', sizeof(data));
			blk_watch_add(&w,
				      i % 3 ? BLOCK_EVENT_PUT : BLOCK_EVENT_GET,
				      i, i, data, i % 300);
			if (i % 7 == 0)
				blk_watch_mark(&w, BLOCK_MARK_SEALED, 0, 0);
			if (i % 1009 != 1008)
				continue;
			while (read_ring(&w, &t,
					 bytes % 2 ? only_gets : (uint32_t)ALL,
					 bytes))
				while (block_reader_next(&r, &told)) {
					lost += told.what ? 0 : told.lost;
					heard += told.what != 0;
					if (told.what)
						assert_int_equal(told.length,
								 told.value);
				}
			if (bytes % 2 == 0)
				assert_int_equal(heard + lost, i + 1);
		}
		assert_true(lost > 0 && heard > 0);
		blk_watch_release(&w);
	}
}

/* Slots move from one block to the other: what happened to them before comes
 * first, whichever ring is read first. */
static void marks_keep_the_order(void **state)
{
	struct block_tail a = {.generation = 1, .is_started = true};
	struct block_tail b = {.generation = 2, .is_started = true};
	struct block_tail *tails[] = {&a, &b};
	struct block_reader r = reader_of(tails, 2);
	struct block_told told;
	struct blk_watch from, to;

	assert_int_equal(blk_watch_init(&from, SIZE), 0);
	assert_int_equal(blk_watch_init(&to, SIZE), 0);
	blk_watch_add(&from, BLOCK_EVENT_SET, 1, 1, "k", 1);
	blk_watch_mark(&from, BLOCK_MARK_GOES, 1, 2);
	blk_watch_mark(&to, BLOCK_MARK_CAME, from.serial, 1);
	blk_watch_add(&to, BLOCK_EVENT_SET, 1, 2, "k", 1);
	assert_true(read_ring(&to, &b, (uint32_t)ALL, 8000));
	assert_false(block_reader_next(&r, &told));
	assert_false(r.wants_map);
	/* Also who wants no such events hears of the mark. */
	assert_true(read_ring(&from, &a, 1u << BLOCK_EVENT_DELETE, 8000));
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.value, 2);
	blk_watch_release(&from);
	blk_watch_release(&to);
}

static void a_mark_that_was_missed_counts(void **state)
{
	struct block_tail a = {.generation = 1, .is_started = true};
	struct block_tail b = {.generation = 2, .is_started = true};
	struct block_tail *tails[] = {&a, &b};
	struct block_reader r = reader_of(tails, 2);
	struct block_told told;
	struct blk_watch to;

	assert_int_equal(blk_watch_init(&to, SIZE), 0);
	blk_watch_mark(&to, BLOCK_MARK_CAME, 1, 1);
	for (unsigned i = 0; i < 1000; i++)
		blk_watch_add(&to, BLOCK_EVENT_SET, 1, i, "k", 1);
	assert_true(read_ring(&to, &b, (uint32_t)ALL, 8000));
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.what, 0);
	assert_int_equal(told.lost, to.before);
	assert_false(block_reader_next(&r, &told));
	/* Its source is gone: nothing is waited for. */
	block_tail_end(&a, true, 0);
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.value, to.before);
	blk_watch_release(&to);
}

static void unknown_blocks_are_asked_for(void **state)
{
	struct block_tail b = {.generation = 2, .is_started = true};
	struct block_tail *tails[] = {&b};
	struct block_reader r = reader_of(tails, 1);
	struct block_told told;
	struct blk_watch to;

	assert_int_equal(blk_watch_init(&to, SIZE), 0);
	blk_watch_mark(&to, BLOCK_MARK_CAME, 1, 99);
	blk_watch_add(&to, BLOCK_EVENT_SET, 1, 5, "k", 1);
	assert_true(read_ring(&to, &b, (uint32_t)ALL, 8000));
	assert_false(block_reader_next(&r, &told));
	assert_true(r.wants_map);
	assert_int_equal(r.wanted, 99);
	/* It came and went: how much that was nobody knows. */
	r.is_known_gone = true;
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.what, 0);
	assert_int_equal(told.lost, 0);
	assert_true(block_reader_next(&r, &told));
	assert_int_equal(told.value, 5);
	blk_watch_release(&to);
}

static void lies_are_refused(void **state)
{
	struct blk_watch w;
	bool has_some;
	uint32_t n;

	assert_int_equal(blk_watch_init(&w, SIZE), 0);
	for (unsigned i = 0; i < 20; i++)
		blk_watch_add(&w, BLOCK_EVENT_SET, 3, i, "key", 3);
	n = blk_watch_read(&w, 0, (uint32_t)ALL, 0, answer, 8000, &has_some);
	/* Any byte may be another one: no reader leaves its memory. */
	for (uint32_t at = 0; at < n; at++) {
		struct block_tail t = {.generation = 7, .is_started = true};
		struct block_tail *tails[] = {&t};
		struct block_reader r = reader_of(tails, 1);
		struct block_told told;
		uint8_t saved = answer[at];

		answer[at] ^= 0xff;
		if (block_tail_take(&t, answer, n) == 0)
			for (unsigned i = 0; i < 100; i++)
				if (!block_reader_next(&r, &told))
					break;
		answer[at] = saved;
	}
	for (uint32_t cut = 0; cut < n; cut++) {
		struct block_tail t = {.is_started = true, .bytes = room[0]};

		if ((cut - sizeof(struct block_watch_wire)) % 40)
			assert_int_equal(block_tail_take(&t, answer, cut),
					 -EPROTO);
	}
	blk_watch_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_told_once_and_in_order),
		cmocka_unit_test(now_means_from_now_on),
		cmocka_unit_test(what_is_lost_is_counted),
		cmocka_unit_test(marks_keep_the_order),
		cmocka_unit_test(a_mark_that_was_missed_counts),
		cmocka_unit_test(unknown_blocks_are_asked_for),
		cmocka_unit_test(lies_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
