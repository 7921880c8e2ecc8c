/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers: the right bytes, every list that is none, every way one ends, and
 * turns that are no longer than they may be. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "walk/gather.h"
#include "wire/gather_wire.h"

enum {
	BYTES = 1 << 16,
	GAP_AT = 32768, /* from here on it is another node's */
	PAD = 4032,
	SECRET = 4096, /* no right to this byte */
};

struct pad {
	uint8_t bytes[PAD];
	uint32_t list_bytes, answer_bytes;
	bool is_over;
	enum walk_status status;
	uint64_t at;
	uint32_t left, took;
};

struct bed {
	uint8_t memory[BYTES];
	struct walk_gathers *g;
	uint64_t around; /* more than asked for, in spans */
	uint32_t asked;
	uint64_t gone_at; /* the key is taken back from here on; 0: it is not */
};

static enum walk_reach reach(void *ctx, void *handle, uint64_t at, uint32_t len,
			     bool write, struct walk_span *span)
{
	struct bed *b = ctx;

	assert_false(write);
	assert_true(len > 0);
	b->asked++;
	if (b->gone_at && b->asked > b->gone_at)
		return WALK_REACH_NO_RIGHT;
	if (at <= SECRET && at + len > SECRET)
		return WALK_REACH_NO_RIGHT;
	if (at >= BYTES || len > BYTES - at)
		return WALK_REACH_FAULT;
	if (at >= GAP_AT)
		return WALK_REACH_ELSEWHERE;
	*span = (struct walk_span){at, len + b->around, b->memory + at};
	return WALK_REACH_HERE;
}

static void done(void *ctx, void *handle, enum walk_status status, uint64_t at,
		 uint32_t left, uint32_t took)
{
	struct pad *p = handle;

	assert_false(p->is_over);
	p->is_over = true;
	p->status = status;
	p->at = at;
	p->left = left;
	p->took = took;
}

static void bed_open(struct bed *b)
{
	memset(b, 0, sizeof(*b));
	for (unsigned i = 0; i < BYTES; i++)
		b->memory[i] = (uint8_t)(i * 7 + i / 256);
	assert_int_equal(walk_gathers_open(&(struct walk_host){.ctx = b,
							       .reach = reach,
							       .done = done},
					   &b->g),
			 0);
}

static void want(struct pad *p, uint64_t at, uint32_t len)
{
	le64 word = gather_place_put(
		(struct gather_place){.at = at, .len_bytes = len});

	memcpy(p->bytes + p->list_bytes, &word, sizeof(word));
	p->list_bytes += sizeof(word);
	p->answer_bytes += gather_place_room(len);
}

static int begin(struct bed *b, struct pad *p)
{
	return walk_gathers_start(b->g, p, p->bytes, p->list_bytes, PAD,
				  &p->answer_bytes);
}

static void the_bytes_are_right(void **state)
{
	static const uint32_t len[] = {1, 8, 64, 13, 1000, 7, 128};
	static struct bed b;

	for (unsigned around = 0; around < 2; around++) {
		struct pad p = {.list_bytes = 0};
		uint32_t out = 0;

		bed_open(&b);
		b.around = around ? 512 : 0;
		for (unsigned i = 0; i < 7; i++)
			want(&p, 20000 - 777 * i, len[i]);
		assert_int_equal(begin(&b, &p), 0);
		assert_false(p.is_over);
		assert_int_equal(walk_gathers_turn(b.g, 64), 7);
		assert_true(p.is_over);
		assert_int_equal(p.status, WALK_DONE);
		assert_int_equal(p.took, 7);
		assert_int_equal(p.left, 0);
		for (unsigned i = 0; i < 7; i++) {
			assert_memory_equal(p.bytes + out,
					    b.memory + 20000 - 777 * i, len[i]);
			out += gather_place_room(len[i]);
		}
		assert_int_equal(out, p.answer_bytes);
		assert_int_equal(walk_gathers_busy(b.g), 0);
		walk_gathers_close(b.g);
	}
}

static void what_is_no_list_is_refused(void **state)
{
	static struct bed b;
	struct pad p = {.list_bytes = 0}, q;

	bed_open(&b);
	assert_int_equal(begin(&b, &p), -EINVAL); /* empty */
	want(&p, 64, 64);
	q = p;
	q.list_bytes--; /* not whole */
	assert_int_equal(begin(&b, &q), -EINVAL);
	q = p;
	q.answer_bytes--; /* less than it would be */
	assert_int_equal(begin(&b, &q), -EINVAL);
	q = p;
	want(&q, 64, 0); /* nothing */
	assert_int_equal(begin(&b, &q), -EINVAL);
	q = (struct pad){.list_bytes = 0};
	want(&q, 64, PAD + 1); /* more than there is room for */
	assert_int_equal(begin(&b, &q), -EINVAL);
	q = (struct pad){.list_bytes = 0};
	for (unsigned i = 0; i < GATHER_WIRE_PLACES + 1; i++)
		want(&q, 64, 1);
	assert_int_equal(begin(&b, &q), -EINVAL); /* too many */
	q = p;
	assert_int_equal(
		walk_gathers_start(b.g, &q, q.bytes, 8, 7, &q.answer_bytes),
		-EINVAL); /* a list longer than the pad */
	assert_int_equal(walk_gathers_busy(b.g), 0);
	assert_int_equal(begin(&b, &p), 0);
	walk_gathers_close(b.g);
}

static void every_end_is_told(void **state)
{
	static const struct {
		uint64_t at;
		enum walk_status status;
	} ends[] = {
		{SECRET, WALK_NO_RIGHT},
		{GAP_AT, WALK_ELSEWHERE},
		{BYTES, WALK_FAULT},
		{BYTES - 8, WALK_FAULT},
		{(1ull << 48) - 64, WALK_FAULT},
	};
	static struct bed b;

	bed_open(&b);
	b.around = 16; /* a place of 64 bytes is never in the last one's span */
	for (unsigned i = 0; i < 5; i++) {
		struct pad p = {.list_bytes = 0};

		want(&p, 128, 64);
		want(&p, ends[i].at, 64);
		want(&p, 256, 64);
		assert_int_equal(begin(&b, &p), 0);
		(void)walk_gathers_turn(b.g, 64);
		assert_true(p.is_over);
		assert_int_equal(p.status, ends[i].status);
		assert_int_equal(p.at, ends[i].at);
		assert_int_equal(p.took, 1);
		assert_int_equal(p.left, 2);
	}
	walk_gathers_close(b.g);
}

/* A turn ends where it has to, and the next one asks again where memory is. */
static void turns_are_short_and_trust_nothing(void **state)
{
	static struct bed b;
	struct pad p = {.list_bytes = 0}, q = {.list_bytes = 0};

	bed_open(&b);
	for (unsigned i = 0; i < 20; i++) {
		want(&p, 1000 + 64 * i, 64);
		want(&q, 9000 + 64 * i, 64);
	}
	assert_int_equal(begin(&b, &p), 0);
	assert_int_equal(begin(&b, &q), 0);
	assert_int_equal(walk_gathers_turn(b.g, 8), 8);
	assert_false(p.is_over);
	b.gone_at = b.asked;
	assert_int_equal(walk_gathers_turn(b.g, 8), 8);
	/* Its key is gone; the other's first place is refused as well. */
	assert_true(p.is_over);
	assert_int_equal(p.status, WALK_NO_RIGHT);
	assert_int_equal(p.took, 8);
	assert_false(q.is_over);
	b.gone_at = 0;
	assert_int_equal(walk_gathers_turn(b.g, 64), 20);
	assert_int_equal(q.status, WALK_DONE);
	assert_memory_equal(q.bytes, b.memory + 9000, 64 * 20);
	walk_gathers_close(b.g);
}

static void they_have_so_many_places(void **state)
{
	static struct bed b;
	static struct pad p[WALK_GATHERS + 1];

	bed_open(&b);
	for (unsigned i = 0; i <= WALK_GATHERS; i++) {
		p[i] = (struct pad){.list_bytes = 0};
		want(&p[i], 64 * i, 64);
		assert_int_equal(begin(&b, &p[i]),
				 i < WALK_GATHERS ? 0 : -EAGAIN);
	}
	assert_int_equal(walk_gathers_busy(b.g), WALK_GATHERS);
	/* One whose connection has ended is not touched any more. */
	assert_true(walk_gathers_forget(b.g, &p[3]));
	assert_false(walk_gathers_forget(b.g, &p[3]));
	memset(p[3].bytes, 0xee, PAD);
	assert_int_equal(begin(&b, &p[WALK_GATHERS]), 0);
	assert_int_equal(walk_gathers_turn(b.g, 64), WALK_GATHERS);
	for (unsigned i = 0; i <= WALK_GATHERS; i++) {
		assert_int_equal(p[i].is_over, i != 3);
		if (i != 3)
			assert_memory_equal(p[i].bytes, b.memory + 64 * i, 64);
	}
	assert_int_equal(p[3].bytes[0], 0xee);
	walk_gathers_close(b.g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_are_right),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(every_end_is_told),
		cmocka_unit_test(turns_are_short_and_trust_nothing),
		cmocka_unit_test(they_have_so_many_places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
