/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of blocks: what one member says arrives at the next at once. What goes
 * wrong in between is played by `aquifer sim elastic`. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "block/blk_chain.h"

enum {
	NODES = 3,
	BYTES = 1 << 20,
	LARGE = 100 << 10, /* more than a piece */
};

static const uint64_t ms = 1000000;

struct node {
	struct rig *rig;
	struct blk_block block;
	struct blk_chain chain;
	uint8_t *mem;
	bool is_cut;
};

struct rig {
	struct node node[NODES];
	uint64_t now_ns;
	unsigned done;
	struct blk_answer answer;
};

static bool deliver(void *ctx, const struct blk_member *to,
		    struct blk_link_message *m)
{
	struct node *from = ctx, *n = &from->rig->node[to->node];
	uint8_t *bytes = malloc(sizeof(struct blk_link_wire) + m->bytes);
	struct blk_link_message in;

	assert_non_null(bytes);
	assert_int_equal(blk_link_parse(bytes, blk_link_build(m, bytes), &in),
			 0);
	if (!from->is_cut && !n->is_cut && n->mem)
		blk_chain_hear(&n->chain, &in, from->rig->now_ns);
	free(bytes);
	return true;
}

static bool is_held(void *ctx)
{
	return false;
}

static void note(void *ctx, const struct blk_answer *a)
{
	struct node *n = ctx;

	n->rig->done++;
	n->rig->answer = *a;
}

static void freed(void *ctx)
{
}

static void make(struct rig *r, unsigned i, enum block_kind kind, bool is_whole)
{
	struct blk_options o = {.kind = kind,
				.size_bytes = BYTES,
				.generation = i + 1,
				.identity = 1,
				.is_first = true};
	struct node *n = &r->node[i];
	struct blk_chain_carrier carrier = {.ctx = n,
					    .send = deliver,
					    .is_held = is_held,
					    .done = note,
					    .freed = freed};

	n->rig = r;
	n->mem = aligned_alloc(64, BYTES);
	assert_non_null(n->mem);
	memset(n->mem, 0, BYTES);
	assert_int_equal(blk_init(&n->block, &o, n->mem), 0);
	blk_chain_init(&n->chain, &n->block, is_whole, &carrier);
}

/* Members first..NODES-1, of which so many are full. */
static void configure(struct rig *r, uint64_t epoch, unsigned first,
		      unsigned count, unsigned full, bool is_fresh)
{
	struct blk_chain_config c = {.epoch = epoch,
				     .count = count,
				     .full = full,
				     .is_fresh = is_fresh};

	for (unsigned i = 0; i < count; i++)
		c.member[i] = (struct blk_member){.node = first + i,
						  .generation = first + i + 1};
	for (unsigned i = 0; i < count; i++) {
		c.at = i;
		if (!r->node[first + i].is_cut)
			blk_chain_configure(&r->node[first + i].chain, &c,
					    r->now_ns);
	}
}

static void pass(struct rig *r, uint64_t time_ms)
{
	for (uint64_t t = 0; t < time_ms; t += 5) {
		r->now_ns += 5 * ms;
		for (unsigned i = 0; i < NODES; i++)
			if (r->node[i].mem && !r->node[i].is_cut)
				blk_chain_tick(&r->node[i].chain, r->now_ns);
	}
}

static struct rig *begin(enum block_kind kind, unsigned count)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	r->now_ns = 1000 * ms;
	for (unsigned i = 0; i < count; i++)
		make(r, i, kind, true);
	configure(r, 1, 0, count, count, false);
	pass(r, 20);
	return r;
}

static void end(struct rig *r)
{
	for (unsigned i = 0; i < NODES; i++) {
		if (!r->node[i].mem)
			continue;
		blk_release(&r->node[i].block);
		free(r->node[i].mem);
	}
	free(r);
}

static const uint8_t session[BLOCK_SESSION_BYTES] = {7};

static struct blk_answer change(struct rig *r, unsigned node,
				enum block_opcode opcode, uint64_t sequence,
				const void *value, uint32_t length)
{
	struct blk_request q = {.session = session,
				.opcode = opcode,
				.sequence = sequence,
				.arg = opcode == BLOCK_GET,
				.value = value,
				.length = length,
				.inside_room = BLOCK_INSIDE_MAX};
	struct blk_answer a = {.status = BLOCK_STATUSES};
	unsigned before = r->done;
	uint8_t *place;

	assert_true(blk_chain_is_open(&r->node[node].chain));
	if (blk_chain_change(&r->node[node].chain, &q, &a, &place, r->now_ns) ==
	    BLK_CHAIN_ANSWER)
		return a;
	return r->done > before ? r->answer
				: (struct blk_answer){.status = BLOCK_STATUSES};
}

static void a_change_is_answered_when_all_have_it(void **state)
{
	struct rig *r = begin(BLOCK_FILE, 3);
	uint8_t *large = malloc(LARGE);

	memset(large, 'x', LARGE);
	assert_int_equal(change(r, 0, BLOCK_APPEND, 1, "hello", 5).status,
			 BLOCK_OK);
	assert_int_equal(change(r, 0, BLOCK_APPEND, 2, large, LARGE).value, 5);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(r->node[i].block.file.end, 5 + LARGE);
		assert_memory_equal(r->node[i].mem + BLOCK_HEAD_BYTES + 5,
				    large, LARGE);
	}
	/* One that does not hear: nobody is answered. */
	r->node[2].is_cut = true;
	assert_int_equal(change(r, 0, BLOCK_APPEND, 3, "lost?", 5).status,
			 BLOCK_STATUSES);
	assert_int_equal(r->node[0].block.file.end, 5 + LARGE);
	r->node[2].is_cut = false;
	pass(r, 100);
	assert_int_equal(r->done, 3);
	assert_int_equal(r->node[2].block.file.end, 10 + LARGE);
	free(large);
	end(r);
}

static void only_the_last_one_reads_and_only_with_a_lease(void **state)
{
	struct rig *r = begin(BLOCK_FILE, 3);

	(void)blk_chain_may_read(&r->node[2].chain, r->now_ns);
	pass(r, 20);
	assert_false(blk_chain_may_read(&r->node[0].chain, r->now_ns));
	assert_false(blk_chain_may_read(&r->node[1].chain, r->now_ns));
	assert_true(blk_chain_may_read(&r->node[2].chain, r->now_ns));
	r->node[2].is_cut = true;
	pass(r, BLK_LEASE_MS);
	assert_false(blk_chain_may_read(&r->node[2].chain, r->now_ns));
	end(r);
}

static void who_is_left_waits_for_the_lease_and_goes_on(void **state)
{
	struct rig *r = begin(BLOCK_QUEUE, 3);

	(void)blk_chain_may_read(&r->node[2].chain, r->now_ns);
	pass(r, 20);
	assert_int_equal(change(r, 0, BLOCK_PUT, 1, "a", 1).status, BLOCK_OK);
	r->node[2].is_cut = true;
	assert_int_equal(change(r, 0, BLOCK_PUT, 2, "b", 1).status,
			 BLOCK_STATUSES);
	configure(r, 2, 0, 2, 2, false);
	pass(r, 50);
	assert_int_equal(r->done, 1);
	pass(r, BLK_LEASE_REST_MS);
	assert_int_equal(r->done, 2);
	assert_int_equal(r->node[1].block.queue.items, 2);
	end(r);
}

static void a_new_head_knows_what_was_answered(void **state)
{
	struct rig *r = begin(BLOCK_QUEUE, 3);

	assert_int_equal(change(r, 0, BLOCK_PUT, 1, "a", 1).status, BLOCK_OK);
	r->node[0].is_cut = true;
	configure(r, 2, 1, 2, 2, false);
	pass(r, 50);
	assert_int_equal(change(r, 1, BLOCK_PUT, 1, "a", 1).status, BLOCK_OK);
	assert_int_equal(r->node[1].block.queue.items, 1);
	assert_int_equal(r->node[2].block.queue.items, 1);
	end(r);
}

static void a_joiner_gets_all_and_then_counts(void **state)
{
	struct rig *r = begin(BLOCK_QUEUE, 2);

	for (unsigned i = 1; i <= 60; i++)
		assert_int_equal(
			change(r, 0, BLOCK_PUT, i, "an item", 7).status,
			BLOCK_OK);
	make(r, 2, BLOCK_QUEUE, false);
	configure(r, 2, 0, 3, 2, true);
	assert_false(blk_chain_is_whole(&r->node[2].chain));
	pass(r, 500);
	assert_true(blk_chain_is_whole(&r->node[2].chain));
	assert_int_equal(r->node[2].block.queue.items, 60);
	assert_int_equal(r->node[2].block.watch.total, 60);
	assert_int_equal(r->node[2].chain.told, r->node[2].block.watch.serial);
	assert_memory_equal(r->node[2].block.watch.ring,
			    r->node[0].block.watch.ring,
			    r->node[0].block.watch.tail);
	configure(r, 3, 0, 3, 3, false);
	pass(r, 50);
	assert_int_equal(change(r, 0, BLOCK_GET, 61, NULL, 0).status, BLOCK_OK);
	assert_int_equal(r->node[2].block.queue.parked_count, 1);
	end(r);
}

/* The head says that a client is away; then all have its items back, and know
 * what it did. */
static void items_come_back_at_all_members(void **state)
{
	struct rig *r = begin(BLOCK_QUEUE, 3);
	uint32_t at;

	assert_int_equal(change(r, 0, BLOCK_PUT, 1, "a", 1).status, BLOCK_OK);
	assert_int_equal(change(r, 0, BLOCK_GET, 2, NULL, 0).status, BLOCK_OK);
	assert_false(blk_chain_end_session(&r->node[0].chain, r->now_ns));
	assert_int_equal(
		blk_session_find(&r->node[0].block, session, false, &at), 0);
	r->node[0].block.session[at].returns = true;
	assert_true(blk_chain_end_session(&r->node[0].chain, r->now_ns));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(r->node[i].block.queue.parked_count, 0);
		assert_int_equal(r->node[i].block.queue.items, 1);
		assert_int_equal(r->node[i].block.session_count, 1);
	}
	assert_false(blk_chain_end_session(&r->node[0].chain, r->now_ns));
	/* Another head knows it, too. */
	r->node[0].is_cut = true;
	configure(r, 2, 1, 2, 2, false);
	pass(r, 50);
	assert_int_equal(change(r, 1, BLOCK_GET, 2, NULL, 0).status,
			 BLOCK_LATER);
	assert_int_equal(change(r, 1, BLOCK_PUT, 1, "a", 1).status, BLOCK_OK);
	assert_int_equal(r->node[1].block.queue.items, 1);
	assert_int_equal(change(r, 1, BLOCK_GET, 3, NULL, 0).status, BLOCK_OK);
	end(r);
}

static void a_copy_of_another_size_is_refused(void **state)
{
	struct blk_options o = {.kind = BLOCK_FILE,
				.size_bytes = BYTES,
				.generation = 1,
				.is_first = true};
	struct blk_block a, b;
	void *mem[2] = {calloc(1, BYTES), calloc(1, BYTES)};
	static struct blk_state from, to;
	uint64_t total;
	uint32_t n;
	const uint8_t *bytes;

	assert_int_equal(blk_init(&a, &o, mem[0]), 0);
	o.size_bytes = BYTES / 2;
	assert_int_equal(blk_init(&b, &o, mem[1]), 0);
	total = blk_state_begin(&from, &a);
	bytes = blk_state_at(&from, 0, 1 << 20, &n);
	assert_int_equal(blk_state_take(&to, &b, 0, bytes, n), -EBADMSG);
	assert_int_equal(blk_state_end(&to, &b, total), -EBADMSG);
	blk_release(&a);
	blk_release(&b);
	free(mem[0]);
	free(mem[1]);
}

static void damaged_messages_are_refused(void **state)
{
	struct blk_link_message m = {.type = BLK_LINK_ACK}, out;
	uint8_t bytes[sizeof(struct blk_link_wire)];
	size_t len = blk_link_build(&m, bytes);

	assert_int_equal(blk_link_parse(bytes, len, &out), 0);
	assert_int_equal(blk_link_parse(bytes, len - 1, &out), -EINVAL);
	for (size_t i = 0; i < len; i++) {
		bytes[i] ^= 1;
		assert_int_not_equal(blk_link_parse(bytes, len, &out), 0);
		bytes[i] ^= 1;
	}
	m.opcode = BLOCK_PUT; /* an acknowledgement has none */
	(void)blk_link_build(&m, bytes);
	assert_int_equal(blk_link_parse(bytes, len, &out), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_is_answered_when_all_have_it),
		cmocka_unit_test(only_the_last_one_reads_and_only_with_a_lease),
		cmocka_unit_test(who_is_left_waits_for_the_lease_and_goes_on),
		cmocka_unit_test(a_new_head_knows_what_was_answered),
		cmocka_unit_test(a_joiner_gets_all_and_then_counts),
		cmocka_unit_test(items_come_back_at_all_members),
		cmocka_unit_test(a_copy_of_another_size_is_refused),
		cmocka_unit_test(damaged_messages_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
