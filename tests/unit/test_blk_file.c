/* SPDX-License-Identifier: Apache-2.0 */
/* Files: appends, their offsets, sealing, repetitions, and what readers see. */
#include "blk_rig.h"

enum {
	SIZE = BLOCK_BYTES_MIN,
	ROOM = SIZE - BLOCK_HEAD_BYTES,
};

static struct block_head head_of(const struct blk_rig *rig)
{
	struct block_head h;

	memcpy(&h, rig->mem, sizeof(h));
	return h;
}

static void appends_have_offsets(void **state)
{
	struct blk_rig rig;
	struct blk_answer a;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	a = blk_rig_put(&rig, 1, 1, BLOCK_APPEND, "hello");
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, 0);
	a = blk_rig_put(&rig, 2, 1, BLOCK_APPEND, "world!");
	assert_int_equal(a.value, 5);
	assert_memory_equal(rig.mem + BLOCK_HEAD_BYTES, "helloworld!", 11);
	assert_int_equal(be64_get(head_of(&rig).end), 11);
	assert_int_equal(be32_get(head_of(&rig).flags), BLOCK_HAS_START);
	blk_rig_free(&rig);
}

static void repetition_has_first_answer(void **state)
{
	struct blk_rig rig;
	struct blk_answer a;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_APPEND, "abc");
	(void)blk_rig_put(&rig, 1, 2, BLOCK_APPEND, "def");
	a = blk_rig_put(&rig, 1, 2, BLOCK_APPEND, "def");
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(a.value, 3);
	assert_int_equal(rig.block.file.end, 6);
	/* Acknowledged: whoever sends it again is late. */
	a = blk_rig_put(&rig, 1, 1, BLOCK_APPEND, "abc");
	assert_int_equal(a.status, BLOCK_STALE);
	assert_int_equal(rig.block.file.end, 6);
	blk_rig_free(&rig);
}

static void answers_are_kept_up_to_a_limit(void **state)
{
	struct blk_request r = {.opcode = BLOCK_APPEND,
				.length = 1,
				.value = (const uint8_t *)"x"};
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	for (r.sequence = 1; r.sequence <= BLK_ANSWERS; r.sequence++)
		assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_BUSY);
	for (r.sequence = 1; r.sequence <= BLK_ANSWERS; r.sequence++)
		assert_int_equal(blk_rig_do(&rig, 1, r).value, r.sequence - 1);
	r.acked = 1;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	blk_rig_free(&rig);
}

static void record_without_room_seals(void **state)
{
	struct blk_rig rig;
	struct blk_answer a;
	struct blk_request r = {.opcode = BLOCK_APPEND, .sequence = 1};

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	r.value = calloc(1, ROOM);
	r.length = ROOM - 3;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	r.sequence = 2;
	r.length = ROOM + 1;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_TOO_LONG);
	assert_int_equal(be32_get(head_of(&rig).flags), BLOCK_HAS_START);
	r.length = 4;
	a = blk_rig_do(&rig, 1, r);
	assert_int_equal(a.status, BLOCK_SEALED);
	assert_int_equal(a.value, ROOM - 3);
	/* Also for one that would fit. */
	r.length = 1;
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_SEALED);
	assert_true(be32_get(head_of(&rig).flags) & BLOCK_IS_SEALED);
	/* The first change is still known. */
	r.sequence = 1;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	free((void *)(uintptr_t)r.value);
	blk_rig_free(&rig);
}

static void start_is_kept(void **state)
{
	struct blk_request r = {.opcode = BLOCK_APPEND,
				.sequence = 1,
				.arg = 12345,
				.length = 1,
				.value = (const uint8_t *)"x"};
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, false);
	assert_int_equal(be32_get(head_of(&rig).flags), 0);
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	assert_int_equal(be64_get(head_of(&rig).start), 12345);
	r.arg = 12346;
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_STALE);
	blk_rig_free(&rig);
}

static void fetched_value_comes_later(void **state)
{
	struct blk_request r = {
		.opcode = BLOCK_APPEND, .sequence = 1, .length = 10000};
	struct blk_rig rig;
	struct blk_answer a;
	uint8_t *place;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	r.session = blk_rig_session(1);
	place = blk_begin(&rig.block, &r, &a);
	assert_ptr_equal(place, rig.mem + BLOCK_HEAD_BYTES);
	/* Its client died: nothing is there. */
	assert_int_equal(be64_get(head_of(&rig).end), 0);
	place = blk_begin(&rig.block, &r, &a);
	memset(place, 'y', r.length);
	blk_finish(&rig.block, &r, &a);
	assert_int_equal(a.status, BLOCK_OK);
	assert_int_equal(be64_get(head_of(&rig).end), 10000);
	/* A repetition is not fetched again. */
	assert_null(blk_begin(&rig.block, &r, &a));
	assert_int_equal(a.status, BLOCK_OK);
	blk_rig_free(&rig);
}

static void bad_requests(void **state)
{
	static const struct {
		enum block_opcode opcode;
		uint64_t sequence;
		enum block_status status;
	} rows[] = {
		{BLOCK_PUT, 1, BLOCK_BAD},    {BLOCK_GET, 1, BLOCK_BAD},
		{BLOCK_ACK, 1, BLOCK_BAD},    {BLOCK_CREDIT, 1, BLOCK_BAD},
		{BLOCK_APPEND, 0, BLOCK_BAD}, {BLOCK_SEAL, 0, BLOCK_BAD},
		{BLOCK_STAT, 0, BLOCK_OK},    {BLOCK_OPEN, 1, BLOCK_BAD},
	};
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(
			blk_rig_do(&rig, 1,
				   (struct blk_request){
					   .opcode = rows[i].opcode,
					   .sequence = rows[i].sequence,
					   .value = (const uint8_t *)""})
				.status,
			rows[i].status);
	blk_rig_free(&rig);
}

static void seal_for_good(void **state)
{
	struct blk_rig rig;
	struct blk_request r = {.opcode = BLOCK_SEAL, .sequence = 1, .arg = 1};

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, 1, 2, BLOCK_APPEND, "x").status,
			 BLOCK_CLOSED);
	blk_rig_free(&rig);
	/* Not when others may have gone on. */
	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	r.arg = 0;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_OK);
	r.arg = 1;
	r.sequence = 2;
	assert_int_equal(blk_rig_do(&rig, 1, r).status, BLOCK_SEALED);
	blk_rig_free(&rig);
}

static void sessions_have_a_limit(void **state)
{
	struct blk_rig rig;
	unsigned n = blk_session_room(SIZE);

	blk_rig_make(&rig, BLOCK_FILE, SIZE, 0, true);
	for (unsigned i = 1; i <= n; i++)
		assert_int_equal(
			blk_rig_put(&rig, i, 1, BLOCK_APPEND, "x").status,
			BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, n + 1, 1, BLOCK_APPEND, "x").status,
			 BLOCK_BUSY);
	blk_leave(&rig.block, blk_rig_session(3));
	assert_int_equal(blk_rig_put(&rig, n + 1, 1, BLOCK_APPEND, "x").status,
			 BLOCK_OK);
	blk_rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(appends_have_offsets),
		cmocka_unit_test(repetition_has_first_answer),
		cmocka_unit_test(answers_are_kept_up_to_a_limit),
		cmocka_unit_test(record_without_room_seals),
		cmocka_unit_test(start_is_kept),
		cmocka_unit_test(fetched_value_comes_later),
		cmocka_unit_test(bad_requests),
		cmocka_unit_test(seal_for_good),
		cmocka_unit_test(sessions_have_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
