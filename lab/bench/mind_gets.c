/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages that come to a machine without a fault, beside READs of as many bytes
 * through the same switch: from the memory node, one or sixteen at a time, and
 * from another machine that has written them. Both machines are processes with
 * NICs of their own.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/error.h"
#include "mind_bench.h"
#include "mind_member.h"
#include "peers.h"
#include "side.h"

enum {
	PAGES = 256, /* as many as READs go through */
	BATCH = 64,  /* pages that the other machine writes at once */
	DEPTH = COHERENCE_LANES,
};

enum kind {
	GET,	/* from the memory node */
	TAKE_S, /* from the other machine, to read */
	TAKE_M, /* to write */
	GET_16,
};

struct param {
	enum kind kind;
	uint32_t page; /* of the segment, from which its own are */
};

/* In the memory that both sides share. Each word has one writer. */
struct turns {
	/* MT-1: the client's pages are taken; the server may write batch n. */
	_Atomic uint64_t want;
	/* MT-2: batch n is the server's. */
	_Atomic uint64_t have;
};

struct state {
	struct mind_member m;
	uint64_t first;	       /* page */
	uint64_t asked, batch; /* of the server: gets, and its batch */
	uint32_t at;	       /* pages of the batch before it are asked for */
};

static const struct param *param_of(const struct side *s)
{
	return s->param;
}

static struct turns *turns_of(const struct side *s)
{
	return (struct turns *)(void *)s->shared;
}

static int lost(struct side *s)
{
	return side_fail(s, -EIO, "shared memory was lost");
}

static int setup(struct side *s)
{
	struct state *st = calloc(1, sizeof(*st));
	int err;

	if (!st)
		return side_fail(s, -ENOMEM, "state");
	s->state = st;
	err = mind_member_segment(MIND_SEGMENT_BARE, &st->first);
	if (err)
		return side_fail(s, err, error_last());
	st->first += param_of(s)->page;
	err = mind_member_open(&st->m,
			       s->role == SIDE_CLIENT ? "client" : "server");
	return err ? side_fail(s, err, error_last()) : 0;
}

static void teardown(struct side *s)
{
	struct state *st = s->state;

	mind_member_close(&st->m);
	free(st);
}

/* ---- the other machine ------------------------------------------------------
 */

static uint64_t page_of(const struct state *st, uint32_t i)
{
	return st->first + (uint64_t)i * MIND_APART;
}

/* Asks for what is missing of its batch; says when all of it is here. */
static void write_batch(struct state *st, struct turns *t)
{
	/* MT-1, pairs with take_batch: the client has what it took. */
	uint64_t want = atomic_load_explicit(&t->want, memory_order_acquire);

	if (st->batch == want)
		return;
	while (st->at < BATCH && st->asked - st->m.answers < DEPTH) {
		enum coh_touch touch =
			mind_member_get(&st->m, page_of(st, st->at), COH_WRITE);

		if (touch == COH_TOUCH_LATER)
			break;
		st->at++;
		st->asked += touch == COH_TOUCH_SENT;
	}
	if (st->at < BATCH || st->asked != st->m.answers)
		return;
	st->at = 0;
	st->batch = want;
	/* MT-2, pairs with take_batch: the pages are written. */
	atomic_store_explicit(&t->have, want, memory_order_release);
}

static int serve(struct side *s)
{
	struct state *st = s->state;

	while (!side_stopped(s)) {
		uint64_t before = st->m.answers + st->m.fins;

		if (!mind_member_turn(&st->m))
			return lost(s);
		write_batch(st, turns_of(s));
		if (before == st->m.answers + st->m.fins)
			(void)sched_yield();
	}
	return 0;
}

/* ---- the one that measures
 * --------------------------------------------------- */

static int get_one(struct side *s, struct state *st, uint64_t page,
		   enum coh_right right)
{
	uint64_t before = st->m.answers, start = bench_ticks();

	if (mind_member_get(&st->m, page, right) != COH_TOUCH_SENT)
		return side_fail(s, -EPROTO, "a get that cannot be sent");
	while (st->m.answers == before)
		if (!mind_member_turn(&st->m))
			return lost(s);
	side_sample(s, 0, bench_ticks() - start);
	return 0;
}

static int measure_get(struct side *s, uint64_t window_ns,
		       struct side_result *out)
{
	uint64_t end = side_end_ticks(s, window_ns);
	struct state *st = s->state;
	int err = 0;

	for (out->ops = 0; !err && bench_ticks() < end; out->ops++) {
		uint64_t page = st->first + (out->ops * 67) % PAGES;

		err = get_one(s, st, page, COH_READ);
		mind_member_drop(&st->m, page);
	}
	return err;
}

static int measure_gets(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	uint64_t end = side_end_ticks(s, window_ns), asked;
	struct state *st = s->state;
	uint64_t before = asked = st->m.answers;

	while (bench_ticks() < end || asked != st->m.answers) {
		bool is_over = bench_ticks() >= end;

		while (!is_over && asked - st->m.answers < DEPTH) {
			uint64_t page = st->first + (asked * 67) % PAGES;

			mind_member_drop(&st->m, page);
			if (mind_member_get(&st->m, page, COH_READ) !=
			    COH_TOUCH_SENT)
				break;
			asked++;
		}
		if (!mind_member_turn(&st->m))
			return lost(s);
		if (!is_over)
			out->ops = st->m.answers - before;
	}
	return 0;
}

/* The other machine writes a batch, then its pages are taken one by one. */
static int take_batch(struct side *s, struct state *st, struct turns *t,
		      uint64_t end, uint64_t *ops)
{
	enum coh_right right =
		param_of(s)->kind == TAKE_M ? COH_WRITE : COH_READ;
	uint64_t n = atomic_load_explicit(&t->want, memory_order_relaxed) + 1;
	int err = 0;

	/* MT-1, pairs with write_batch. */
	atomic_store_explicit(&t->want, n, memory_order_release);
	/* MT-2, pairs with write_batch. */
	while (atomic_load_explicit(&t->have, memory_order_acquire) != n) {
		uint64_t before = st->m.fins;

		if (!mind_member_turn(&st->m))
			return lost(s);
		if (before == st->m.fins)
			(void)sched_yield();
		if (side_stopped(s))
			return side_fail(s, -EIO, "the other machine is gone");
	}
	for (uint32_t i = 0; i < BATCH && !err && bench_ticks() < end; i++) {
		err = get_one(s, st, page_of(st, i), right);
		++*ops;
	}
	return err;
}

static int measure_take(struct side *s, uint64_t window_ns,
			struct side_result *out)
{
	uint64_t end = side_end_ticks(s, window_ns);
	struct state *st = s->state;
	int err = 0;

	out->ops = 0;
	while (!err && bench_ticks() < end)
		err = take_batch(s, st, turns_of(s), end, &out->ops);
	return err;
}

static int measure(struct side *s, uint64_t window_ns, struct side_result *out)
{
	switch (param_of(s)->kind) {
	case GET:
		return measure_get(s, window_ns, out);
	case GET_16:
		return measure_gets(s, window_ns, out);
	case TAKE_S:
	case TAKE_M:
		break;
	}
	return measure_take(s, window_ns, out);
}

static const struct side_ops ops = {
	.setup = setup,
	.serve = serve,
	.measure = measure,
	.teardown = teardown,
};

/* ---- both
 * --------------------------------------------------------------------- */

#define SUBJECT(name_, what_, ops_, param_)                                 \
	&(const struct subject_desc)                                        \
	{                                                                   \
		.name = name_, .what = what_, .ops = ops_, .param = param_, \
		.at_switch = MIND_SWITCH, .is_plain = true                  \
	}
#define READ(depth_)                                           \
	&(const struct ours_param)                             \
	{                                                      \
		.block = 4096, .depth = depth_, .qp_count = 1, \
		.ack_timeout = 18                              \
	}
#define PAGES_OF(kind_)                                           \
	&(const struct param)                                     \
	{                                                         \
		.kind = kind_, .page = (kind_)*PAGES * MIND_APART \
	}

static struct conduct_group groups[] = {
	{"get",
	 METRIC_P50,
	 {SUBJECT("read4k", "READ of 4 KiB through the switch, 1 outstanding",
		  &ours_ops, READ(1)),
	  SUBJECT("coh_get", "page from the memory node, no fault", &ops,
		  PAGES_OF(GET)),
	  SUBJECT("coh_take_s",
		  "page that another machine has written, to read", &ops,
		  PAGES_OF(TAKE_S)),
	  SUBJECT("coh_take_m", "the same, to write", &ops, PAGES_OF(TAKE_M))},
	 4,
	 NULL},
	{"rate",
	 METRIC_RATE,
	 {SUBJECT("read4k_16", "READs of 4 KiB, 16 outstanding", &ours_ops,
		  READ(DEPTH)),
	  SUBJECT("coh_get_16", "pages from the memory node, 16 outstanding",
		  &ops, PAGES_OF(GET_16))},
	 2,
	 NULL},
};

int mind_bench_gets(struct bench *b)
{
	/* More processes than cores, as in `bench switch`. */
	struct conduct_options opt = {.rounds = b->rounds,
				      .window_ns = b->window_ms * 1000000ull,
				      .keep_all = true,
				      .is_together = true};

	return bench_run_groups(b, groups, ARRAY_LEN(groups), &opt, NULL);
}
