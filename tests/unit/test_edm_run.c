/* SPDX-License-Identifier: Apache-2.0 */
/* The cluster simulation: lone messages to the picosecond, steady state against
 * an independent model, and nothing lost in any fabric. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/rng.h"
#include "edm/edm_fabric.h"
#include "edm/edm_jobs.h"
#include "edm/edm_timing.h"

static struct edm_point run(const struct edm_config *c)
{
	struct edm_result *r = malloc(sizeof(*r));
	struct edm_unloaded *u;
	struct edm_point p;

	assert_non_null(r);
	assert_int_equal(edm_unloaded_create(&u), 0);
	assert_int_equal(edm_run_all(c, u, r), 0);
	edm_point_of(&p, r);
	edm_unloaded_destroy(u);
	free(r);
	return p;
}

static uint64_t delivered_ps;

static void note_done(void *owner, const struct edm_msg *m)
{
	delivered_ps = edm_queue_now(((struct edm_run *)owner)->q);
}

/* By simulation, not by formula. */
static uint64_t lone_ps(struct edm_config *c, enum edm_op op, uint32_t bytes)
{
	struct edm_result *r = calloc(1, sizeof(*r));
	struct edm_run *one;
	uint64_t ps;

	assert_non_null(r);
	c->nodes = 3;
	assert_int_equal(edm_run_create(c, r, &one), 0);
	(void)edm_run_submit(one, &(struct edm_arrival){.at_ps = EDM_US,
							.bytes = bytes,
							.src = 2,
							.dst = 0,
							.op = op});
	one->on_done = note_done;
	one->owner = one;
	edm_run_until(one, EDM_NEVER - 1);
	ps = delivered_ps - EDM_US;
	edm_run_destroy(one);
	free(r);
	return ps;
}

/* Table 1 is the time of the first block; the others follow at line rate. */
static void test_lone_messages(void **state)
{
	struct edm_config c;

	edm_config_init(&c);
	assert_int_equal(lone_ps(&c, EDM_WRITE, 64), 296960 + 9 * 640);
	assert_int_equal(lone_ps(&c, EDM_READ, 64), 299520 + (1 + 8) * 640);
	/* 23 chunks: 34 + 21 x 33 + 27 blocks without a gap, 778.9 ns. */
	assert_int_equal(lone_ps(&c, EDM_WRITE, 5840), 296960 + 753 * 640);
	assert_int_equal(lone_ps(&c, EDM_RMW, 8), 299520 + (3 + 1) * 640);
	c.gbps = 25;
	assert_int_equal(lone_ps(&c, EDM_WRITE, 64), 296960 + 9 * 2560);
	c.asic = true;
	c.gbps = 100;
	assert_true(lone_ps(&c, EDM_WRITE, 64) < 273000 + 9 * 640);
}

static void test_formula_is_simulation(void **state)
{
	static const uint32_t bytes[] = {1,   8,    63,	  64,	 255,
					 256, 257,  1024, 5840,	 99999,
					 300, 4096, 2,	  100000};
	struct edm_config c;

	edm_config_init(&c);
	for (int md = EDM_MD_DATA; md <= EDM_MD_CONTROL; md++) {
		c.md = (enum edm_md)md;
		for (unsigned i = 0; i < ARRAY_LEN(bytes); i++)
			for (int op = EDM_WRITE; op <= EDM_READ; op++)
				assert_int_equal(
					lone_ps(&c, (enum edm_op)op, bytes[i]),
					edm_timing_alone_ps(&c, (enum edm_op)op,
							    bytes[i]));
	}
}

/* The rivals' totals are Table 1's, plus serialization. */
static void test_rivals_table1(void **state)
{
	static const struct {
		enum edm_proto proto;
		uint64_t write_ps;
	} row[] = {
		{EDM_PROTO_DCTCP, 1889840},
		{EDM_PROTO_PFABRIC, 1889840},
		{EDM_PROTO_PFC, 1017840},
	};
	struct edm_config c;

	edm_config_init(&c);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		c.proto = row[i].proto;
		assert_int_equal(lone_ps(&c, EDM_WRITE, 64),
				 row[i].write_ps + 64 * 80);
		assert_int_equal(lone_ps(&c, EDM_READ, 64),
				 2 * row[i].write_ps + (64 + 8) * 80);
	}
}

/* Lone times are remembered by all that they depend on. */
static void test_unloaded_keys(void **state)
{
	struct edm_unloaded *u;
	struct edm_config c;
	uint64_t a, b, again;

	assert_int_equal(edm_unloaded_create(&u), 0);
	edm_config_init(&c);
	c.proto = EDM_PROTO_IRD;
	c.framing = EDM_FRAMING_WIRE;
	assert_int_equal(edm_unloaded_ps(u, &c, EDM_WRITE, 5840, &a), 0);
	c.chunk_bytes = 1024;
	assert_int_equal(edm_unloaded_ps(u, &c, EDM_WRITE, 5840, &b), 0);
	assert_true(b < a); /* fewer headers */
	c.chunk_bytes = 256;
	assert_int_equal(edm_unloaded_ps(u, &c, EDM_WRITE, 5840, &again), 0);
	assert_int_equal(a, again);
	edm_unloaded_destroy(u);
}

/* The common denominator is EDM as published: memory takes no time in it. */
static void test_common_denominator(void **state)
{
	struct edm_config c;
	struct edm_point p;

	edm_config_init(&c);
	c.nodes = 8;
	c.load = 0.01;
	c.write_ppm = 0;
	c.messages = 2000;
	c.mem_ps = 82000;
	p = run(&c);
	assert_true(p.own > 0.99 && p.own < 1.01);
	assert_true(p.common > 1.25 && p.common < 1.29);
}

/*
 * The literal matching against a separate model of it: 144 ports, 64 B in ten
 * blocks, no time for control; published there: mean waits of 11.1 ns at 0.6
 * and 30.6 ns at 0.8 (17.4 at 0.7).
 */
struct oracle {
	struct edm_queue *q;
	uint64_t born[1 << 17];
	double wait_ps;
	uint64_t counted, first;
};

static void oracle_grant(void *owner, const struct edm_grant *g)
{
	struct oracle *o = owner;

	if (g->handle < o->first)
		return;
	o->wait_ps += (double)(g->issue_ps - o->born[g->handle]);
	o->counted++;
}

static void oracle_wake(void *owner, uint64_t at_ps, uint32_t token)
{
	struct oracle *o = owner;

	edm_queue_push(o->q, at_ps, 1, 0, token, 0);
}

static double oracle_wait_ns(double rho)
{
	struct oracle *o = calloc(1, sizeof(*o));
	struct edm_sched_config sc;
	struct edm_sched *s;
	struct edm_config c;
	struct edm_event e;
	struct rng r;
	double at = 1e6, wait;
	uint32_t n = ARRAY_LEN(o->born), next = 0;

	assert_non_null(o);
	edm_config_init(&c);
	c.charge_control = false;
	edm_config_sched(&c, &sc);
	sc.active_max = 1000;
	sc.grant = oracle_grant;
	sc.wake = oracle_wake;
	sc.owner = o;
	o->first = n / 5;
	rng_init(&r, 7);
	assert_int_equal(edm_queue_create(20, &o->q), 0);
	assert_int_equal(edm_sched_create(&sc, &s), 0);
	edm_queue_push(o->q, (uint64_t)at, 0, 0, 0, 0);
	while (edm_queue_pop(o->q, &e)) {
		struct edm_demand d = {
			.handle = next, .bytes = 64, .first_extra_bytes = 8};

		if (e.kind == 1) {
			edm_sched_wake(s, e.at_ps, e.a);
			continue;
		}
		if (next == n)
			continue;
		d.src = (uint16_t)rng_below(&r, 144);
		d.dst = (uint16_t)((d.src + 1 + rng_below(&r, 143)) % 144);
		o->born[next++] = e.at_ps;
		assert_int_equal(edm_sched_notify(s, e.at_ps, &d), 0);
		at += -log(1 - rng_double(&r)) * 6400 / 144 / rho;
		edm_queue_push(o->q, (uint64_t)at, 0, 0, 0, 0);
	}
	wait = o->wait_ps / (double)o->counted / 1000;
	edm_sched_destroy(s);
	edm_queue_destroy(o->q);
	free(o);
	return wait;
}

static void test_steady_state(void **state)
{
	static const struct {
		double rho, wait_ns;
	} row[] = {{0.2, 1.7},	{0.4, 4.7},  {0.6, 11.1},
		   {0.7, 17.4}, {0.8, 30.6}, {0.9, 84.9}};

	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		double ratio = (303.4 + oracle_wait_ns(row[i].rho)) /
			       (303.4 + row[i].wait_ns);

		if (ratio < 0.95 || ratio > 1.05)
			fail_msg("load %.1f: %.3f of the model", row[i].rho,
				 ratio);
	}
}

/* Every arrival completes, in every fabric, with every discipline. */
static void test_conservation(void **state)
{
	struct edm_config c;

	edm_config_init(&c);
	c.nodes = 24;
	c.messages = 4000;
	c.write_ppm = 450000;
	c.rmw_ppm = 100000;
	for (int p = 0; p < EDM_PROTO_COUNT; p++) {
		for (int s = EDM_SIZES_FIXED; s <= EDM_SIZES_HADOOP; s++) {
			struct edm_point r;

			c.proto = (enum edm_proto)p;
			c.sizes = (enum edm_sizes)s;
			c.load = s == EDM_SIZES_FIXED ? 0.7 : 0.4;
			c.messages = s == EDM_SIZES_FIXED ? 4000 : 300;
			c.policy = s == EDM_SIZES_FIXED ? EDM_FCFS : EDM_SRPT;
			r = run(&c);
			assert_int_equal(r.measured, c.messages * 8 / 10);
			assert_int_equal(r.completed, r.measured);
			assert_true(r.own > 0.98);
		}
	}
}

static void test_disciplines(void **state)
{
	double common[4];
	struct edm_config c;

	edm_config_init(&c);
	c.nodes = 48;
	c.sizes = EDM_SIZES_HADOOP;
	c.policy = EDM_SRPT;
	c.load = 0.4;
	c.write_ppm = 500000;
	c.messages = 1200;
	for (int d = EDM_ASYNC; d <= EDM_PIM; d++) {
		struct edm_point r;

		c.discipline = (enum edm_discipline)d;
		r = run(&c);
		assert_int_equal(r.completed, r.measured);
		common[d] = r.common;
		/* The switch holds a few chunks' worth, not more. */
		assert_true(r.egress_blocks_max <= 4 * 34);
	}
	/* The literal matching inverts priorities. */
	assert_true(common[EDM_ASYNC] > 1.3 * common[EDM_RESERVE]);
	assert_true(common[EDM_ASYNC] > 1.3 * common[EDM_SLOT]);
}

/* What waits at an egress port of the switch: not nothing, as published, but
 * never more than three chunks, as long as control blocks are charged. */
static void test_egress_bound(void **state)
{
	static const enum edm_discipline all[] = {EDM_ASYNC, EDM_SLOT,
						  EDM_RESERVE, EDM_PIM};
	struct edm_point r;
	struct edm_config c;
	uint64_t charged;

	edm_config_init(&c);
	c.nodes = 24;
	c.write_ppm = 500000;
	for (unsigned i = 0; i < ARRAY_LEN(all); i++) {
		c.discipline = all[i];
		c.sizes = EDM_SIZES_FIXED;
		c.policy = EDM_FCFS;
		c.load = 0.9;
		c.messages = 20000;
		r = run(&c);
		assert_in_range(r.egress_blocks_max, 0, 3 * 34);
		c.sizes = EDM_SIZES_HADOOP;
		c.policy = EDM_SRPT;
		c.load = 0.8;
		c.messages = 300;
		r = run(&c);
		assert_in_range(r.egress_blocks_max, 1, 3 * 34);
	}
	charged = r.egress_blocks_max;
	c.charge_control = false;
	r = run(&c);
	assert_true(r.egress_blocks_max > charged);
}

/* A chunk is a choice of the fabric: it must not change what is asked of it. */
static void test_same_arrivals(void **state)
{
	struct edm_config c;
	double gap_ps;

	edm_config_init(&c);
	c.sizes = EDM_SIZES_MEMCACHED;
	gap_ps = edm_workload_gap_ps(&c);
	for (c.chunk_bytes = 64; c.chunk_bytes <= 1024; c.chunk_bytes *= 2)
		assert_true(edm_workload_gap_ps(&c) == gap_ps);
}

/* Requests that nest gain time for reads and take none from writes; a lone one
 * does not change. The best of EDM is better than each of its parts, keeps to
 * the bound on queues and loses nothing. */
static void test_best(void **state)
{
	struct edm_point plain, nest, best;
	struct edm_config c;

	edm_config_init(&c);
	edm_config_best(&c);
	assert_int_equal(c.discipline, EDM_ASYNC); /* 64 B: one chunk */
	edm_config_init(&c);
	c.nodes = 48;
	c.sizes = EDM_SIZES_HADOOP;
	c.discipline = EDM_RESERVE;
	c.policy = EDM_PAIR;
	c.load = 0.4;
	c.write_ppm = 500000;
	c.messages = 3000;
	plain = run(&c);
	c.nest = true;
	nest = run(&c);
	edm_config_best(&c);
	best = run(&c);
	assert_true(nest.read_common < plain.read_common - 0.003);
	assert_true(nest.write_common < plain.write_common + 0.005);
	assert_true(best.common < nest.common);
	assert_in_range(best.egress_blocks_max, 1, 3 * 66);
	assert_int_equal(best.completed, best.measured);
}

enum {
	ORDER_NODES = 6,
};

/* The number of the last message that came, by pair and direction. */
struct order {
	uint64_t last[ORDER_NODES][ORDER_NODES][2];
	uint64_t done;
};

static void order_check(void *owner, const struct edm_msg *m)
{
	struct order *o = owner;
	uint64_t *last = &o->last[m->src][m->dst][m->op == EDM_WRITE];

	assert_true(m->tag > *last);
	*last = m->tag;
	o->done++;
}

/* What the bound is kept with: of one compute node's messages with one memory
 * node none overtakes another, from the application to the last byte. */
static void test_delivery_in_order(void **state)
{
	struct edm_result result = {0};
	struct order o = {.done = 0};
	struct edm_workload *w;
	struct edm_arrival a;
	struct edm_config c;
	struct edm_run *r;

	edm_config_init(&c);
	c.nodes = ORDER_NODES;
	c.sizes = EDM_SIZES_HADOOP;
	c.load = 0.9;
	c.write_ppm = 500000;
	edm_config_best(&c);
	assert_int_equal(edm_run_create(&c, &result, &r), 0);
	assert_int_equal(edm_workload_create(&c, &w), 0);
	r->on_done = order_check;
	r->owner = &o;
	for (uint64_t n = 1; n <= 800; n++) {
		uint32_t m;

		assert_true(edm_workload_next(w, &a));
		edm_run_until(r, a.at_ps);
		m = edm_run_submit(r, &a);
		r->msg[m].tag = n;
	}
	edm_run_until(r, EDM_NEVER - 1);
	assert_int_equal(o.done, 800);
	edm_workload_destroy(w);
	edm_run_destroy(r);
}

static void test_same_seed_same_run(void **state)
{
	struct edm_config c;
	struct edm_point a, b;

	edm_config_init(&c);
	c.nodes = 16;
	c.messages = 3000;
	c.write_ppm = 500000;
	a = run(&c);
	b = run(&c);
	assert_true(a.mean_ns == b.mean_ns && a.events == b.events);
	c.seed = 2;
	b = run(&c);
	assert_true(a.mean_ns != b.mean_ns);
}

static const char *trend_of(const struct edm_config *c)
{
	struct edm_point p = run(c);
	const char *trend;

	(void)edm_growth(&p, &trend);
	return trend;
}

/* Frames take what they carry; in turns with memory they make it slower, behind
 * it they get what it leaves. */
static void test_frames_take_bandwidth(void **state)
{
	struct edm_point plain, some, fair, first;
	struct edm_config c;

	edm_config_init(&c);
	c.nodes = 8;
	c.messages = 5000;
	c.load = 0.4;
	plain = run(&c);
	assert_true(plain.ip_share == 0);
	c.ip_load_ppm = 300000;
	some = run(&c);
	/* All frames fit. */
	assert_true(some.ip_share > 0.27 && some.ip_share < 0.33);
	assert_true(some.mean_ns > plain.mean_ns + 2);
	c.ip_load_ppm = 1000000;
	fair = run(&c);
	assert_true(fair.mean_ns > some.mean_ns);
	assert_true(fair.ip_share > some.ip_share);
	c.ip_policy = EDM_IP_MEMORY;
	first = run(&c);
	/* Four transmitters, at most a block of a frame at each; what is late
	 * also makes others late. */
	assert_true(first.mean_ns > plain.mean_ns);
	assert_true(first.mean_ns < plain.mean_ns + 6);
	/* And the frames have lost what memory took. */
	assert_true(first.ip_share < 0.65);
	assert_true(first.ip_share > 0.5);
	/* In turns, half a link is all that memory has. */
	c.ip_policy = EDM_IP_FAIR;
	c.load = 0.7;
	c.messages = 20000;
	assert_string_equal(trend_of(&c), "overload");
}

/* What grows with the run is called overload, what does not is not. */
static void test_overload(void **state)
{
	struct edm_config c;

	edm_config_init(&c);
	c.nodes = 16;
	c.messages = 20000;
	c.load = 0.9;
	assert_null(trend_of(&c));
	c.load_is_payload = true;
	c.load = 0.811;
	assert_string_equal(trend_of(&c), "overload");
	c.load = 0.512;
	assert_null(trend_of(&c));
}

/* The time of a matching: nothing at a low load beside what Table 1 has for it,
 * and dear at a high one with chunks shorter than it. */
static void test_timed(void **state)
{
	for (int d = EDM_ASYNC; d <= EDM_PIM; d++) {
		struct edm_point none, timed;
		struct edm_config c;

		edm_config_init(&c);
		c.nodes = 144;
		c.messages = 8000;
		c.discipline = (enum edm_discipline)d;
		c.load = 0.1;
		none = run(&c);
		c.timed = true;
		timed = run(&c);
		assert_int_equal(timed.completed, timed.measured);
		assert_true(fabs(timed.mean_ns - none.mean_ns) < 8);
		c.load = 0.9;
		timed = run(&c);
		c.timed = false;
		none = run(&c);
		assert_int_equal(timed.completed, timed.measured);
		/* A slot is hardly shorter than a matching, and PIM has its
		 * iterations anyway. */
		if (d == EDM_ASYNC || d == EDM_RESERVE)
			assert_true(timed.mean_ns > none.mean_ns + 5);
	}
}

static void test_options_of_edm(void **state)
{
	struct edm_config c;
	struct edm_point plain, r;

	edm_config_init(&c);
	c.nodes = 8;
	c.messages = 5000;
	c.load = 0.8;
	plain = run(&c);
	c.active_max = 1;
	r = run(&c);
	assert_true(r.mean_ns > plain.mean_ns);
	assert_int_equal(r.completed, r.measured);
	c.batch_bytes = 256;
	r = run(&c);
	assert_int_equal(r.completed, r.measured);
	c.batch_bytes = 0;
	c.active_max = 3;
	c.pattern = EDM_PATTERN_INCAST;
	r = run(&c);
	assert_int_equal(r.completed, r.measured);
	c.pattern = EDM_PATTERN_SKEW;
	r = run(&c);
	assert_int_equal(r.completed, r.measured);
	c.pattern = EDM_PATTERN_SPLIT;
	r = run(&c);
	assert_int_equal(r.completed, r.measured);
}

/* Below something else: the owner's clock drives it. */
struct owner {
	uint64_t sent, delivered, lost; /* sums of tags */
	uint64_t now_ps, delivered_ps;
};

static void owner_sent(void *owner, uint64_t tag)
{
	((struct owner *)owner)->sent += tag;
}

static void owner_delivered(void *owner, uint64_t tag)
{
	struct owner *o = owner;

	o->delivered += tag;
	o->delivered_ps = o->now_ps;
}

static void owner_lost(void *owner, uint64_t tag)
{
	((struct owner *)owner)->lost += tag;
}

static void drive(struct edm_fabric *f, struct owner *o)
{
	while (edm_fabric_next_ps(f) != EDM_NEVER) {
		o->now_ps = edm_fabric_next_ps(f);
		edm_fabric_run(f, o->now_ps);
	}
}

static void test_link_model(void **state)
{
	struct owner o = {0};
	struct edm_fabric_calls calls = {.sent = owner_sent,
					 .delivered = owner_delivered,
					 .lost = owner_lost,
					 .owner = &o};
	struct edm_config c;
	struct edm_fabric *f;

	edm_config_init(&c);
	c.nodes = 4;
	assert_int_equal(edm_fabric_create(&c, &calls, &f), 0);
	assert_int_equal(edm_fabric_next_ps(f), EDM_NEVER);
	assert_int_equal(edm_fabric_send(f, EDM_US, 1, 2, 64, 40), 0);
	assert_int_equal(edm_fabric_send(f, EDM_US, 3, 0, 64, 2), 0);
	assert_int_equal(edm_fabric_send(f, EDM_US, 3, 3, 64, 2), -EINVAL);
	assert_int_equal(edm_fabric_send(f, EDM_US, 3, 4, 64, 2), -EINVAL);
	assert_int_equal(edm_fabric_send(f, EDM_US, 3, 1, 0, 2), -EINVAL);
	drive(f, &o);
	assert_int_equal(o.sent, 42);
	assert_int_equal(o.delivered, 42);
	assert_int_equal(o.delivered_ps, EDM_US + 296960 + 9 * 640);
	edm_fabric_destroy(f);
}

/* The only switch dies: what was under way is reported lost, once. */
static void test_link_model_loses(void **state)
{
	struct owner o = {0};
	struct edm_fabric_calls calls = {.sent = owner_sent,
					 .delivered = owner_delivered,
					 .lost = owner_lost,
					 .owner = &o};
	struct edm_config c;
	struct edm_fabric *f;

	edm_config_init(&c);
	c.nodes = 4;
	c.fail_switch_ps = 2 * EDM_US;
	assert_int_equal(edm_fabric_create(&c, &calls, &f), 0);
	assert_int_equal(edm_fabric_send(f, EDM_US, 1, 2, 64, 1), 0);
	assert_int_equal(edm_fabric_send(f, 2 * EDM_US - 1000, 1, 2, 64, 10),
			 0);
	assert_int_equal(edm_fabric_send(f, 3 * EDM_US, 2, 1, 64, 100), 0);
	drive(f, &o);
	assert_int_equal(o.sent, 111);
	assert_int_equal(o.delivered, 1);
	assert_int_equal(o.lost, 110);
	edm_fabric_destroy(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lone_messages),
		cmocka_unit_test(test_formula_is_simulation),
		cmocka_unit_test(test_rivals_table1),
		cmocka_unit_test(test_unloaded_keys),
		cmocka_unit_test(test_common_denominator),
		cmocka_unit_test(test_steady_state),
		cmocka_unit_test(test_conservation),
		cmocka_unit_test(test_disciplines),
		cmocka_unit_test(test_egress_bound),
		cmocka_unit_test(test_same_arrivals),
		cmocka_unit_test(test_best),
		cmocka_unit_test(test_delivery_in_order),
		cmocka_unit_test(test_same_seed_same_run),
		cmocka_unit_test(test_frames_take_bandwidth),
		cmocka_unit_test(test_overload),
		cmocka_unit_test(test_timed),
		cmocka_unit_test(test_options_of_edm),
		cmocka_unit_test(test_link_model),
		cmocka_unit_test(test_link_model_loses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
