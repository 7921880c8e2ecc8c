/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler as a pure object: random demands through every discipline, with
 * the invariants checked at every grant, and the derived minimum chunk.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "base/rng.h"
#include "edm/edm_queue.h"
#include "edm/edm_sched.h"

enum {
	PORTS = 12,
	MESSAGES = 2000,
	ACTIVE = 3,
	BLOCK_PS = 640,
};

enum event_kind {
	EV_WAKE,
	EV_DEMAND,
};

struct message {
	uint16_t src, dst;
	uint32_t bytes, left;
	uint32_t pair_turn; /* its place in the order of its pair */
	uint64_t known_ps, done_ps;
	bool started;
};

struct rig {
	struct edm_sched *s;
	struct edm_sched_config c;
	struct edm_queue *q;
	struct message m[MESSAGES];
	uint32_t count;
	uint64_t src_busy[PORTS], dst_busy[PORTS];
	uint32_t asked[PORTS][PORTS], finished[PORTS][PORTS];
	uint64_t grants;
};

static void on_grant(void *owner, const struct edm_grant *g)
{
	struct rig *r = owner;
	struct message *m = &r->m[g->handle];
	uint64_t end = g->issue_ps + g->blocks * r->c.block_ps;

	r->grants++;
	assert_true(g->issue_ps >= edm_queue_now(r->q));
	assert_int_equal(g->src, m->src);
	assert_int_equal(g->dst, m->dst);
	/* No port is matched twice: the hold before has ended. */
	assert_true(r->src_busy[g->src] <= g->issue_ps);
	assert_true(r->dst_busy[g->dst] <= g->issue_ps);
	r->src_busy[g->src] = end;
	r->dst_busy[g->dst] = end;
	/* In order within the pair, also while others overtake. */
	assert_int_equal(m->pair_turn, r->finished[g->src][g->dst]);
	assert_int_equal(g->first, !m->started);
	assert_true(g->bytes <= r->c.chunk_bytes && g->bytes <= m->left);
	assert_int_equal(g->blocks,
			 edm_blocks(r->c.md, g->bytes + (g->first ? 8 : 0)));
	m->started = true;
	m->left -= g->bytes;
	assert_int_equal(g->last, m->left == 0);
	if (g->last) {
		m->done_ps = g->issue_ps;
		r->finished[g->src][g->dst]++;
	}
}

static void on_wake(void *owner, uint64_t at_ps, uint32_t token)
{
	struct rig *r = owner;

	edm_queue_push(r->q, at_ps, EV_WAKE, 0, token, 0);
}

static void rig_init(struct rig *r, struct edm_sched_config c)
{
	memset(r, 0, sizeof(*r));
	c.ports = PORTS;
	c.lanes = c.lanes ? c.lanes : 1;
	c.active_max = ACTIVE;
	c.block_ps = BLOCK_PS;
	c.grant = on_grant;
	c.wake = on_wake;
	c.owner = r;
	r->c = c;
	assert_int_equal(edm_queue_create(100, &r->q), 0);
	assert_int_equal(edm_sched_create(&c, &r->s), 0);
}

static void rig_release(struct rig *r)
{
	edm_sched_destroy(r->s);
	edm_queue_destroy(r->q);
}

static void demand(struct rig *r, uint32_t id)
{
	struct message *m = &r->m[id];
	struct edm_demand d = {
		.src = m->src,
		.dst = m->dst,
		.handle = id,
		.bytes = m->bytes,
		.first_extra_bytes = 8,
		.control_up_blocks = 1,
		.control_down_blocks = 1,
		.control_port = m->src,
	};
	uint32_t active =
		r->asked[m->src][m->dst] - r->finished[m->src][m->dst];

	m->left = m->bytes;
	m->known_ps = edm_queue_now(r->q);
	m->pair_turn = r->asked[m->src][m->dst];
	if (active >= ACTIVE) {
		/* Over the bound: refused, the sender keeps it. */
		assert_int_equal(edm_sched_notify(r->s, m->known_ps, &d),
				 -ENOSPC);
		edm_queue_push(r->q, m->known_ps + 50000, EV_DEMAND, 0, id, 0);
		return;
	}
	r->asked[m->src][m->dst]++;
	assert_int_equal(edm_sched_notify(r->s, m->known_ps, &d), 0);
}

/* ASYNC promises it: no message waits while both its ports are free. */
static void check_work_conserved(struct rig *r)
{
	uint64_t now = edm_queue_now(r->q);

	for (uint16_t s = 0; s < PORTS; s++) {
		for (uint16_t d = 0; d < PORTS; d++) {
			if (r->asked[s][d] == r->finished[s][d])
				continue;
			assert_false(edm_sched_src_free(r->s, now, s) &&
				     edm_sched_dst_free(r->s, now, d));
		}
	}
}

static void run(struct rig *r)
{
	struct edm_event e;

	while (edm_queue_pop(r->q, &e)) {
		if (e.kind == EV_WAKE)
			edm_sched_wake(r->s, e.at_ps, e.a);
		else
			demand(r, e.a);
		/* Several ports may be released at one instant. */
		if (r->c.discipline == EDM_ASYNC && !r->c.match_ps &&
		    edm_queue_next_ps(r->q) != e.at_ps)
			check_work_conserved(r);
	}
}

static void random_demands(struct rig *r, uint64_t seed)
{
	struct rng g;
	uint64_t at = 0;

	rng_init(&g, seed);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct message *m = &r->m[i];

		at += rng_below(&g, 4000);
		m->src = (uint16_t)rng_below(&g, PORTS);
		m->dst = (uint16_t)((m->src + 1 + rng_below(&g, PORTS - 1)) %
				    PORTS);
		m->bytes = rng_below(&g, 4)
				   ? 64
				   : (uint32_t)rng_between(&g, 1, 5000);
		edm_queue_push(r->q, at, EV_DEMAND, 0, i, 0);
	}
	r->count = MESSAGES;
}

static struct edm_sched_config discipline(enum edm_discipline d,
					  enum edm_policy p)
{
	return (struct edm_sched_config){
		.chunk_bytes = 256,
		.discipline = d,
		.policy = p,
		.slot_blocks = 35,
		.pim_iterations = 4,
		.pim_iteration_ps = 1000,
		.charge_control = true,
	};
}

static void check_random(struct edm_sched_config c, uint64_t seed)
{
	struct rig *r = malloc(sizeof(*r));
	uint64_t bytes = 0;

	assert_non_null(r);
	rig_init(r, c);
	random_demands(r, seed);
	run(r);
	/* Nothing starves: when arrivals end, everything gets through. */
	assert_int_equal(edm_sched_backlog(r->s), 0);
	for (uint32_t i = 0; i < r->count; i++) {
		assert_int_equal(r->m[i].left, 0);
		bytes += r->m[i].bytes;
	}
	assert_true(r->grants * c.chunk_bytes >= bytes);
	rig_release(r);
	free(r);
}

static void test_invariants(void **state)
{
	static const enum edm_discipline all[] = {EDM_ASYNC, EDM_SLOT,
						  EDM_RESERVE, EDM_PIM};

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		for (uint64_t seed = 1; seed <= 3; seed++) {
			check_random(discipline(all[i], EDM_FCFS), seed);
			check_random(discipline(all[i], EDM_SRPT), seed);
			check_random(discipline(all[i], EDM_PAIR), seed);
		}
	}
}

static void put(struct rig *r, uint64_t at, uint16_t src, uint16_t dst,
		uint32_t bytes)
{
	r->m[r->count] =
		(struct message){.src = src, .dst = dst, .bytes = bytes};
	edm_queue_push(r->q, at, EV_DEMAND, 0, r->count++, 0);
}

/* The same invariants when a matching takes time, longer than a chunk or not.
 */
static void test_timed_invariants(void **state)
{
	static const enum edm_discipline all[] = {EDM_ASYNC, EDM_SLOT,
						  EDM_RESERVE};
	static const uint64_t match_ps[] = {1000, 8000, 61440};

	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		for (unsigned k = 0; k < ARRAY_LEN(match_ps); k++) {
			struct edm_sched_config c =
				discipline(all[i], EDM_SRPT);

			c.match_ps = match_ps[k];
			check_random(c, k + 1);
			c.policy = EDM_PAIR;
			check_random(c, k + 4);
		}
	}
}

/* A matching delays the first grant, and is hidden behind chunks that are
 * longer than it; shorter ones wait for it. */
static void test_timed_chunks(void **state)
{
	struct rig *r = malloc(sizeof(*r));
	struct edm_sched_config c = discipline(EDM_ASYNC, EDM_FCFS);
	uint64_t hidden_ps, waits_ps;

	assert_non_null(r);
	c.match_ps = 8000;
	rig_init(r, c);
	put(r, 10000, 1, 2, 5840);
	run(r);
	hidden_ps = r->m[0].done_ps - 10000;
	rig_release(r);
	assert_int_equal(hidden_ps, 8000 + (34 + 21 * 33) * BLOCK_PS);
	c.chunk_bytes = 64;
	rig_init(r, c);
	put(r, 10000, 1, 2, 640);
	run(r);
	waits_ps = r->m[0].done_ps - 10000;
	/* Ten rounds, not ten chunks of 6.4 ns. */
	assert_int_equal(waits_ps, 10 * 8000);
	rig_release(r);
	free(r);
}

/* A message that is withdrawn gets no grant; those around it do. */
static void test_withdraw(void **state)
{
	struct rig *r = malloc(sizeof(*r));
	struct edm_demand d = {.src = 1, .dst = 2, .handle = 2};

	assert_non_null(r);
	rig_init(r, discipline(EDM_ASYNC, EDM_FCFS));
	r->m[0] = (struct message){.src = 3, .dst = 2, .bytes = 640};
	for (unsigned i = 1; i < 4; i++)
		r->m[i] = (struct message){.src = 1, .dst = 2, .bytes = 64};
	for (unsigned i = 0; i < 4; i++)
		demand(r, i);
	assert_int_equal(edm_sched_backlog(r->s), 4);
	edm_sched_withdraw(r->s, &d);
	edm_sched_withdraw(r->s, &d); /* not known any more */
	assert_int_equal(edm_sched_backlog(r->s), 3);
	r->m[3].pair_turn = 1;
	r->asked[1][2]--;
	run(r);
	assert_int_equal(edm_sched_backlog(r->s), 0);
	assert_false(r->m[2].started);
	assert_true(r->m[3].started && !r->m[3].left && !r->m[0].left);
	rig_release(r);
	free(r);
}

static void test_control_block_mode(void **state)
{
	struct edm_sched_config c = discipline(EDM_ASYNC, EDM_SRPT);

	c.md = EDM_MD_CONTROL;
	check_random(c, 9);
	c.charge_control = false;
	check_random(c, 9);
}

/* Chunks of one message follow each other at the wire's rate. */
static void test_pipelined(void **state)
{
	struct rig *r = malloc(sizeof(*r));

	assert_non_null(r);
	rig_init(r, discipline(EDM_ASYNC, EDM_FCFS));
	put(r, 10000, 1, 2, 5840);
	run(r);
	assert_int_equal(r->grants, 23);
	/* The last grant leaves after 34 + 21 x 33 blocks. */
	assert_int_equal(r->m[0].done_ps - 10000, (34 + 21 * 33) * BLOCK_PS);
	rig_release(r);
	free(r);
}

/* The best message waits for one port; its other port must not be taken by a
 * long chunk meanwhile. The literal discipline lets that happen. */
static uint64_t inverted_wait(enum edm_discipline d)
{
	struct rig *r = malloc(sizeof(*r));
	uint64_t done;

	assert_non_null(r);
	rig_init(r, discipline(d, EDM_SRPT));
	put(r, 0, 0, 1, 1280);	 /* holds 0 and 1 */
	put(r, 300, 2, 3, 1280); /* holds 2 and 3, out of step */
	put(r, 1000, 0, 3, 64);	 /* wants 0 of one, 3 of the other */
	run(r);
	done = r->m[2].done_ps;
	rig_release(r);
	free(r);
	return done;
}

static void test_priority_inversion(void **state)
{
	/* Five chunks of about 21 ns each go by in the literal one. */
	assert_true(inverted_wait(EDM_ASYNC) > 100000);
	assert_true(inverted_wait(EDM_RESERVE) < 25000);
	assert_true(inverted_wait(EDM_SLOT) < 25000);
}

/* The bits of the longest message there is once ran over those of the key, and
 * it went before everybody else. */
static void test_longest_is_last(void **state)
{
	for (int p = EDM_SRPT; p <= EDM_PAIR; p++) {
		struct rig *r = malloc(sizeof(*r));

		assert_non_null(r);
		rig_init(r, discipline(EDM_SLOT, (enum edm_policy)p));
		put(r, 1, 0, 2, EDM_MESSAGE_MAX);
		put(r, 1, 1, 2, 64);
		run(r);
		assert_true(r->m[1].done_ps < r->m[0].known_ps + 100000);
		rig_release(r);
		free(r);
	}
}

/* Enough iterations make a maximal matching: no message is left whose two ports
 * are free. That log2(ports) are enough on average is what the minimum chunk
 * rests on. */
static void test_pim_is_maximal(void **state)
{
	double iterations = 0;

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct edm_sched_config c = discipline(EDM_PIM, EDM_FCFS);
		struct rig *r = malloc(sizeof(*r));
		struct edm_sched_stats st;
		struct edm_event e;
		struct rng g;

		assert_non_null(r);
		c.pim_iterations = PORTS;
		rig_init(r, c);
		rng_init(&g, seed);
		for (unsigned i = 0; i < 60; i++) {
			uint16_t src = (uint16_t)rng_below(&g, PORTS);

			put(r, 0, src,
			    (uint16_t)((src + 1 + rng_below(&g, PORTS - 1)) %
				       PORTS),
			    2560);
		}
		/* The first chunk takes 21 ns; PORTS iterations 12. */
		while (edm_queue_next_ps(r->q) <= PORTS * 1000 &&
		       edm_queue_pop(r->q, &e)) {
			if (e.kind == EV_WAKE)
				edm_sched_wake(r->s, e.at_ps, e.a);
			else
				demand(r, e.a);
		}
		check_work_conserved(r);
		edm_sched_stats(r->s, &st);
		iterations += (double)st.matchings / 20;
		rig_release(r);
		free(r);
	}
	assert_true(iterations <= 6); /* log2(12) is 3.6; +1 finds nothing */
}

/* A short message behind a long one of its pair, and a rival of the long one
 * that is shorter than that: when the short one is through. */
static uint64_t behind_long_done(enum edm_policy p)
{
	struct rig *r = malloc(sizeof(*r));
	uint64_t done;

	assert_non_null(r);
	rig_init(r, discipline(EDM_RESERVE, p));
	put(r, 0, 0, 1, 40000);
	put(r, 0, 2, 1, 20000);
	put(r, 100, 0, 1, 64);
	run(r);
	assert_int_equal(r->m[0].left, 0);
	assert_int_equal(r->m[1].left, 0);
	done = r->m[2].done_ps;
	rig_release(r);
	free(r);
	return done;
}

static void test_pair_hurries_the_first(void **state)
{
	uint64_t line_ps = 40000 / 256 * 33 * BLOCK_PS;

	/* SRPT lets the rival by; PAIR does nothing but what is ahead. The
	 * order of the pair is checked at every grant. */
	assert_true(behind_long_done(EDM_SRPT) > line_ps * 14 / 10);
	assert_true(behind_long_done(EDM_PAIR) < line_ps * 11 / 10);
	assert_true(behind_long_done(EDM_PAIR) > line_ps * 9 / 10);
}

/* A stream of short messages, and one long one with them at its ports. */
static uint64_t long_done(uint64_t age_cap_ps)
{
	struct edm_sched_config c = discipline(EDM_ASYNC, EDM_SRPT);
	struct rig *r = malloc(sizeof(*r));
	uint64_t done;

	assert_non_null(r);
	c.age_cap_ps = age_cap_ps;
	rig_init(r, c);
	put(r, 0, 0, 1, 4000);
	for (unsigned i = 0; i < MESSAGES - 1; i++)
		put(r, 1 + i * 6400, (uint16_t)(i % 3), 1 + (i % 3 == 1) * 2,
		    64);
	run(r);
	done = r->m[0].done_ps;
	rig_release(r);
	free(r);
	return done;
}

static void test_starvation(void **state)
{
	uint64_t free_run = long_done(0), capped = long_done(200000);

	assert_true(capped < free_run);
	assert_true(capped < 2000000);
}

static void test_renotify(void **state)
{
	struct rig *r = malloc(sizeof(*r));
	struct edm_demand d = {.src = 4,
			       .dst = 5,
			       .handle = 0,
			       .bytes = 600,
			       .first_extra_bytes = 8,
			       .control_up_blocks = 1,
			       .control_down_blocks = 1,
			       .control_port = 4};
	struct edm_event e;

	assert_non_null(r);
	rig_init(r, discipline(EDM_ASYNC, EDM_FCFS));
	r->m[0] = (struct message){.src = 4, .dst = 5, .left = 600};
	assert_int_equal(edm_sched_notify(r->s, 10000, &d), 0);
	assert_int_equal(r->grants, 1);
	/* The first grant was lost: the sender still lacks all 600 bytes. */
	r->m[0].left = 600;
	assert_int_equal(edm_sched_renotify(r->s, 10010, &d), 0);
	while (edm_queue_pop(r->q, &e))
		edm_sched_wake(r->s, e.at_ps, e.a);
	assert_int_equal(r->m[0].left, 0);
	assert_int_equal(r->grants, 4);
	/* The last grant was lost: the message is unknown now. */
	r->m[0].left = d.bytes = 88;
	r->m[0].started = false;
	r->finished[4][5] = 0;
	assert_int_equal(
		edm_sched_renotify(r->s, edm_queue_now(r->q) + 99999, &d), 0);
	assert_int_equal(r->m[0].left, 0);
	rig_release(r);
	free(r);
}

static uint32_t dropped_sum;

static void on_drop(void *owner, uint32_t handle)
{
	dropped_sum += handle;
}

static void test_disable_port(void **state)
{
	struct rig *r = malloc(sizeof(*r));
	struct edm_demand d = {.src = 1, .dst = 3, .bytes = 64};

	assert_non_null(r);
	rig_init(r, discipline(EDM_SLOT, EDM_FCFS));
	for (uint32_t i = 1; i <= 3; i++) {
		d.handle = i;
		d.src = (uint16_t)i;
		d.dst = i == 2 ? 1 : 5;
		assert_int_equal(edm_sched_notify(r->s, 1, &d), 0);
	}
	dropped_sum = 0;
	edm_sched_disable_port(r->s, 1, on_drop);
	assert_int_equal(dropped_sum, 1 + 2);
	assert_int_equal(edm_sched_backlog(r->s), 1);
	assert_int_equal(
		edm_sched_notify(
			r->s, 2,
			&(struct edm_demand){.src = 1, .dst = 2, .bytes = 1}),
		-ENETDOWN);
	rig_release(r);
	free(r);
}

static void test_bad_config(void **state)
{
	struct edm_sched_config good = discipline(EDM_PIM, EDM_FCFS), c;
	struct edm_sched *s;

	good.ports = 4;
	good.lanes = 2;
	good.active_max = 3;
	good.block_ps = 640;
	c = good;
	c.ports = 1;
	assert_int_equal(edm_sched_create(&c, &s), -EINVAL);
	assert_non_null(strstr(error_last(), "ports"));
	c = good;
	c.chunk_bytes = 4;
	assert_int_equal(edm_sched_create(&c, &s), -EINVAL);
	assert_non_null(strstr(error_last(), "chunk"));
	c = good;
	c.active_max = 0;
	assert_int_equal(edm_sched_create(&c, &s), -EINVAL);
	c = good;
	c.pim_iterations = 0;
	assert_int_equal(edm_sched_create(&c, &s), -EINVAL);
	c = good;
	c.discipline = EDM_SLOT;
	c.slot_blocks = 33;
	assert_int_equal(edm_sched_create(&c, &s), -EINVAL);
	assert_non_null(strstr(error_last(), "slot"));
}

/* The paper's numbers: 512 ports, 3 GHz, 100 Gb/s. */
static void test_minimum_chunk(void **state)
{
	assert_int_equal(edm_sched_matching_ps(512, 3000), 9000);
	assert_int_equal(edm_sched_chunk_min(512, 3000, 100), 128);
	/* 800 Gb/s: 9 ns are 900 bytes. */
	assert_int_equal(edm_sched_chunk_min(512, 3000, 800), 1024);
	assert_int_equal(edm_sched_chunk_min(1024, 3000, 800), 1024);
	assert_int_equal(edm_sched_chunk_min(144, 3000, 100), 128);
	assert_int_equal(edm_sched_chunk_min(512, 3000, 7), 0);
}

static void test_blocks(void **state)
{
	static const struct {
		uint32_t bytes, data, control;
	} row[] = {
		{1, 1, 2},     {2, 1, 2},     {8, 2, 3},     {24, 4, 5},
		{64, 9, 11},   {72, 10, 12},  {108, 15, 17}, {256, 33, 38},
		{264, 34, 39}, {208, 27, 31},
	};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		assert_int_equal(edm_blocks(EDM_MD_DATA, row[i].bytes),
				 row[i].data);
		assert_int_equal(edm_blocks(EDM_MD_CONTROL, row[i].bytes),
				 row[i].control);
	}
	assert_int_equal(edm_block_ps(100), 640);
	assert_int_equal(edm_block_ps(25), 2560);
	assert_int_equal(edm_block_ps(800), 80);
	assert_int_equal(edm_block_ps(33), 0);
	assert_int_equal(edm_block_ps(0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_invariants),
		cmocka_unit_test(test_timed_invariants),
		cmocka_unit_test(test_timed_chunks),
		cmocka_unit_test(test_withdraw),
		cmocka_unit_test(test_control_block_mode),
		cmocka_unit_test(test_pipelined),
		cmocka_unit_test(test_priority_inversion),
		cmocka_unit_test(test_longest_is_last),
		cmocka_unit_test(test_pim_is_maximal),
		cmocka_unit_test(test_pair_hurries_the_first),
		cmocka_unit_test(test_starvation),
		cmocka_unit_test(test_renotify),
		cmocka_unit_test(test_disable_port),
		cmocka_unit_test(test_bad_config),
		cmocka_unit_test(test_minimum_chunk),
		cmocka_unit_test(test_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
