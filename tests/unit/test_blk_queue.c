/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: order, bound, credits, parked items, the ring's end. */
#include <stdio.h>

#include "blk_rig.h"

enum {
	SIZE = BLOCK_BYTES_MIN,
};

static struct blk_answer get(struct blk_rig *rig, unsigned client,
			     uint64_t sequence, uint64_t acked, bool parks)
{
	return blk_rig_do(rig, client,
			  (struct blk_request){.opcode = BLOCK_GET,
					       .sequence = sequence,
					       .acked = acked,
					       .arg = parks});
}

static struct blk_answer tell(struct blk_rig *rig, enum block_opcode opcode,
			      unsigned client, uint64_t sequence, uint64_t arg)
{
	return blk_rig_do(rig, client,
			  (struct blk_request){.opcode = opcode,
					       .sequence = sequence,
					       .acked = sequence - 1,
					       .arg = arg});
}

static void is_item(const struct blk_answer *a, const char *text)
{
	assert_int_equal(a->status, BLOCK_OK);
	assert_int_equal(a->length, strlen(text));
	assert_memory_equal(a->data, text, strlen(text));
}

static void first_in_first_out(void **state)
{
	struct blk_rig rig;
	struct blk_answer a;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	assert_int_equal(get(&rig, 2, 1, 0, false).status, BLOCK_EMPTY);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "one");
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "");
	(void)blk_rig_put(&rig, 1, 3, BLOCK_PUT, "three");
	a = get(&rig, 2, 1, 0, false);
	is_item(&a, "one");
	a = get(&rig, 2, 1, 0, false); /* the answer was lost */
	is_item(&a, "one");
	a = get(&rig, 2, 2, 1, false);
	is_item(&a, "");
	assert_int_equal(get(&rig, 2, 1, 1, false).status, BLOCK_STALE);
	a = get(&rig, 3, 1, 0, false);
	is_item(&a, "three");
	assert_int_equal(get(&rig, 3, 2, 1, false).status, BLOCK_EMPTY);
	blk_rig_free(&rig);
}

static void bound_holds(void **state)
{
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 2, true);
	assert_int_equal(blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a").status, 0);
	assert_int_equal(blk_rig_put(&rig, 1, 2, BLOCK_PUT, "b").status, 0);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "c").status,
			 BLOCK_FULL);
	/* A parked item counts until it is acknowledged. */
	assert_int_equal(get(&rig, 2, 1, 0, true).status, BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "c").status,
			 BLOCK_FULL);
	assert_int_equal(get(&rig, 2, 2, 1, false).status, BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "c").status, 0);
	blk_rig_free(&rig);
}

static void later_block_needs_credit(void **state)
{
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 3, false);
	assert_int_equal(blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a").status,
			 BLOCK_NO_CREDIT);
	assert_int_equal(tell(&rig, BLOCK_CREDIT, 1, 1, 2).status, BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, 1, 2, BLOCK_PUT, "a").status, 0);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "b").status,
			 BLOCK_FULL);
	/* What was counted earlier and comes later does not hold. */
	assert_int_equal(tell(&rig, BLOCK_CREDIT, 2, 1, 3).status, BLOCK_OK);
	assert_int_equal(tell(&rig, BLOCK_CREDIT, 2, 2, 1).status, BLOCK_OK);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "b").status, 0);
	assert_int_equal(blk_rig_put(&rig, 1, 4, BLOCK_PUT, "c").status,
			 BLOCK_FULL);
	blk_rig_free(&rig);
	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, false);
	assert_int_equal(blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a").status, 0);
	blk_rig_free(&rig);
}

static void parked_items_come_back_in_order(void **state)
{
	struct blk_rig rig;
	struct blk_answer a, b;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a");
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "b");
	(void)blk_rig_put(&rig, 1, 3, BLOCK_PUT, "c");
	a = get(&rig, 2, 1, 0, true);
	b = get(&rig, 2, 2, 1, true);
	is_item(&b, "b");
	assert_int_equal(tell(&rig, BLOCK_ACK, 3, 1, b.value).status,
			 BLOCK_STALE); /* not its own */
	assert_int_equal(tell(&rig, BLOCK_ACK, 2, 3, a.value).status, BLOCK_OK);
	assert_int_equal(tell(&rig, BLOCK_ACK, 2, 3, a.value).status, BLOCK_OK);
	assert_int_equal(tell(&rig, BLOCK_ACK, 2, 4, a.value).status,
			 BLOCK_STALE);
	blk_leave(&rig.block, blk_rig_session(2));
	a = get(&rig, 3, 2, 0, false);
	is_item(&a, "b");
	a = get(&rig, 3, 3, 0, false);
	is_item(&a, "c");
	blk_rig_free(&rig);
}

static void taken_items_do_not_come_back(void **state)
{
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a");
	(void)get(&rig, 2, 1, 0, false);
	blk_leave(&rig.block, blk_rig_session(2));
	assert_int_equal(get(&rig, 3, 1, 0, false).status, BLOCK_EMPTY);
	assert_int_equal(blk_used_bytes(&rig.block), 0);
	blk_rig_free(&rig);
}

static void sealed_block_drains(void **state)
{
	struct blk_rig rig;
	struct blk_answer a;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "a");
	assert_int_equal(tell(&rig, BLOCK_SEAL, 1, 2, 0).value, 1);
	assert_int_equal(blk_rig_put(&rig, 1, 3, BLOCK_PUT, "b").status,
			 BLOCK_SEALED);
	a = get(&rig, 2, 1, 0, true);
	assert_int_equal(get(&rig, 3, 1, 0, false).status, BLOCK_PARKED);
	assert_false(blk_is_drained(&rig.block));
	assert_int_equal(tell(&rig, BLOCK_ACK, 2, 2, a.value).status, BLOCK_OK);
	assert_int_equal(get(&rig, 3, 1, 0, false).status, BLOCK_DRAINED);
	assert_true(blk_is_drained(&rig.block));
	blk_rig_free(&rig);
}

static void ring_comes_round(void **state)
{
	struct blk_rig rig;
	char text[3000];
	uint64_t seq = 0, got = 0;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	for (unsigned i = 0; i < 500; i++) {
		struct blk_answer a;

		memset(text, 'a' + i % 26, sizeof(text));
		text[100 + i * 37 % 2800] = 0;
		a = blk_rig_put(&rig, 1, ++seq, BLOCK_PUT, text);
		assert_int_equal(a.status, BLOCK_OK);
		if (i < 10)
			continue;
		a = get(&rig, 2, got + 1, got, false);
		got++;
		assert_int_equal(a.status, BLOCK_OK);
		assert_int_equal(a.length, 100 + (got - 1) * 37 % 2800);
		assert_int_equal(a.data[a.length - 1], 'a' + (got - 1) % 26);
	}
	/* Full, and empty again. */
	memset(text, 'z', sizeof(text));
	text[2999] = 0;
	while (blk_rig_put(&rig, 1, ++seq, BLOCK_PUT, text).status == BLOCK_OK)
		;
	assert_int_equal(blk_rig_put(&rig, 1, seq, BLOCK_PUT, text).status,
			 BLOCK_NO_ROOM);
	while (get(&rig, 2, got + 1, got, false).status == BLOCK_OK)
		got++;
	(void)get(&rig, 2, got + 1, got, false);
	assert_int_equal(blk_used_bytes(&rig.block), 0);
	blk_rig_free(&rig);
}

static void long_items_need_a_buffer(void **state)
{
	struct blk_rig rig;
	struct blk_request r = {.opcode = BLOCK_GET, .sequence = 1};
	uint8_t *big = calloc(1, 9000);

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_do(&rig, 1,
			 (struct blk_request){.opcode = BLOCK_PUT,
					      .sequence = 1,
					      .length = 9000,
					      .value = big});
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "small");
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_TOO_LONG);
	assert_int_equal(blk_rig_do(&rig, 2, r).length, 9000);
	r.buffer_bytes = 9000;
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_OK);
	r.sequence = 2;
	r.buffer_bytes = 0;
	r.inside_room = 4; /* the answer is full */
	assert_int_equal(blk_rig_do(&rig, 2, r).status, BLOCK_LATER);
	assert_int_equal(rig.block.queue.items, 1);
	free(big);
	blk_rig_free(&rig);
}

/* A client was away, and what it had taken went back; its numbers did not. */
static void who_was_away_gets_another_item(void **state)
{
	struct blk_rig rig;
	struct blk_answer a, b;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	(void)blk_rig_put(&rig, 1, 1, BLOCK_PUT, "one");
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "two");
	a = get(&rig, 2, 1, 0, true);
	is_item(&a, "one");
	(void)tell(&rig, BLOCK_ACK, 2, 2, a.value);
	a = get(&rig, 2, 3, 2, true);
	is_item(&a, "two");
	blk_give_back(&rig.block, blk_rig_session(2));
	/* The answer to its get was lost. */
	b = get(&rig, 2, 3, 2, true);
	assert_int_equal(b.status, BLOCK_LATER);
	assert_null(b.data);
	b = get(&rig, 3, 1, 0, true);
	is_item(&b, "two");
	assert_int_equal(tell(&rig, BLOCK_ACK, 2, 4, a.value).status,
			 BLOCK_STALE);
	assert_int_equal(tell(&rig, BLOCK_ACK, 3, 2, b.value).status, BLOCK_OK);
	/* And one that was here all the time: a put is not made again. */
	blk_give_back(&rig.block, blk_rig_session(1));
	(void)blk_rig_put(&rig, 1, 2, BLOCK_PUT, "two");
	assert_int_equal(get(&rig, 3, 3, 2, false).status, BLOCK_EMPTY);
	blk_rig_free(&rig);
}

static void parked_names_are_checked(void **state)
{
	static const uint64_t names[] = {
		0, 1, UINT64_MAX, 1ull << 32, (1ull << 32) + 5000, 2ull << 32};
	struct blk_rig rig;

	blk_rig_make(&rig, BLOCK_QUEUE, SIZE, 0, true);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++)
		assert_int_equal(
			tell(&rig, BLOCK_ACK, 1, i + 1, names[i]).status,
			BLOCK_STALE);
	blk_rig_free(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_first_out),
		cmocka_unit_test(bound_holds),
		cmocka_unit_test(later_block_needs_credit),
		cmocka_unit_test(parked_items_come_back_in_order),
		cmocka_unit_test(taken_items_do_not_come_back),
		cmocka_unit_test(sealed_block_drains),
		cmocka_unit_test(ring_comes_round),
		cmocka_unit_test(long_items_need_a_buffer),
		cmocka_unit_test(who_was_away_gets_another_item),
		cmocka_unit_test(parked_names_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
