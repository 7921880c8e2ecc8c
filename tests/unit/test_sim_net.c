/* SPDX-License-Identifier: Apache-2.0 */
/* Links: timing, queue bound, forwarding, and faults at the asked rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/net.h"
#include "wire/wire.h"

enum {
	FRAME_BYTES = 1000,
	MANY = 40000,
};

struct end {
	struct sim_net *net;
	struct sim_port *port;
	struct env_addr addr;
	unsigned got;
	unsigned damaged;
	unsigned late; /* arrived after one that was sent later */
	unsigned room;
	uint32_t last;
	uint64_t when_ps;
	uint8_t tos; /* of the last one */
};

static void on_rx(void *ctx, struct sim_frame *f)
{
	struct end *e = ctx;
	struct wire_pkt pkt;

	e->got++;
	e->tos = f->bytes[WIRE_ETH_BYTES + 1];
	e->when_ps = sim_now_ps(sim_net_sim(e->net));
	if (wire_parse(f->bytes, f->len_bytes, &pkt) != WIRE_OK) {
		e->damaged++;
	} else {
		e->late += wire_psn_diff(pkt.psn, e->last) < 0;
		e->last = pkt.psn;
	}
	sim_frame_free(e->net, f);
}

static void on_room(void *ctx)
{
	((struct end *)ctx)->room++;
}

static const struct sim_port_ops ops = {.rx = on_rx, .room = on_room};

static void attach(struct end *e, struct sim_net *net, uint8_t number,
		   const struct sim_link *link)
{
	*e = (struct end){.net = net};
	e->addr.ip[10] = 0xff;
	e->addr.ip[11] = 0xff;
	e->addr.ip[12] = 10;
	e->addr.ip[15] = number;
	assert_int_equal(
		sim_port_attach(net, &e->addr, link, &ops, e, &e->port), 0);
}

static bool send_one(struct end *from, const uint8_t to_ip[16], uint32_t psn)
{
	struct sim_frame *f = sim_port_tx_begin(from->port, WIRE_FRAME_MAX);
	struct wire_pkt pkt = {.opcode = WIRE_UD_SEND_ONLY,
			       .ttl = 64,
			       .pkey = 0xffff,
			       .src_port = 0xc000,
			       .psn = psn & WIRE_PSN_MASK,
			       .payload_len = FRAME_BYTES};

	if (!f)
		return false;
	memcpy(pkt.src_ip, from->addr.ip, 16);
	memcpy(pkt.dst_ip, to_ip, 16);
	memset(f->bytes, 0x5a, WIRE_FRAME_MAX);
	sim_port_tx_end(from->port, f, wire_build(&pkt, f->bytes), 0);
	return true;
}

struct setup {
	struct sim *sim;
	struct sim_net *net;
	struct end a, b;
};

static void start(struct setup *s, uint64_t seed, const struct sim_link *link)
{
	assert_int_equal(sim_create(seed, &s->sim), 0);
	assert_int_equal(sim_net_create(s->sim, &s->net), 0);
	attach(&s->a, s->net, 1, link);
	attach(&s->b, s->net, 2, link);
}

static void stop(struct setup *s)
{
	sim_net_destroy(s->net);
	sim_destroy(s->sim);
}

static void forward_to_b(void *ctx, struct sim_port *from, const uint8_t *frame,
			 size_t len_bytes)
{
	sim_net_emit(((struct end *)ctx)->port, frame, len_bytes);
}

static void test_timing(void **state)
{
	struct sim_link link = {.latency_ps = 500 * SIM_NS,
				.bits_per_s = 100000000000ull};
	struct setup s;
	uint64_t t0, one_ps;

	start(&s, 1, &link);
	sim_net_set_switch_ps(s.net, 100 * SIM_NS);
	t0 = sim_now_ps(s.sim);
	assert_true(send_one(&s.a, s.b.addr.ip, 1));
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	one_ps = s.b.when_ps - t0;
	/* 1,066 bytes and 24 of framing, at 80 ps each, on two wires. */
	assert_int_equal(one_ps, 2 * 500 * SIM_NS + 100 * SIM_NS +
					 2 * 80 * (FRAME_BYTES + 66 + 24));
	/* A burst arrives at the speed of the wire. */
	t0 = sim_now_ps(s.sim);
	for (uint32_t i = 0; i < 100; i++)
		assert_true(send_one(&s.a, s.b.addr.ip, 2 + i));
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(s.b.when_ps - t0, one_ps + 99ull * 80 * 1090);
	assert_int_equal(s.b.got, 101);
	assert_int_equal(s.b.late, 0);
	stop(&s);
}

/* No RDMA, so it counts as damaged. */
static void send_other(struct end *from, const uint8_t to_ip[16], uint8_t tos)
{
	struct sim_frame *f = sim_port_tx_begin(from->port, WIRE_FRAME_MAX);

	memset(f->bytes, 0, FRAME_BYTES);
	f->bytes[12] = 0x08;
	f->bytes[WIRE_ETH_BYTES] = 0x45;
	f->bytes[WIRE_ETH_BYTES + 1] = tos;
	f->bytes[WIRE_ETH_BYTES + 9] = 6;
	memcpy(f->bytes + WIRE_ETH_BYTES + 12, from->addr.ip + 12, 4);
	memcpy(f->bytes + WIRE_ETH_BYTES + 16, to_ip + 12, 4);
	sim_port_tx_end(from->port, f, FRAME_BYTES, 0);
}

/* Which frame of six comes when: two others, two of RDMA, one more other, and
 * one with a code point. */
static void classes(bool has_classes, bool has_switch, const char *expected)
{
	struct sim_link link = {.latency_ps = 500 * SIM_NS,
				.bits_per_s = 100000000000ull};
	char seen[7] = "";
	struct setup s;

	start(&s, 1, &link);
	if (has_classes)
		sim_net_set_classes(s.net);
	if (has_switch)
		sim_net_set_switch(s.net, forward_to_b, &s.b);
	send_other(&s.a, s.b.addr.ip, 0);
	send_other(&s.a, s.b.addr.ip, 1); /* ECN is none */
	assert_true(send_one(&s.a, s.b.addr.ip, 3));
	assert_true(send_one(&s.a, s.b.addr.ip, 4));
	send_other(&s.a, s.b.addr.ip, 0);
	send_other(&s.a, s.b.addr.ip, 0x80);
	for (unsigned got = 0; got < 6; got++) {
		unsigned damaged = s.b.damaged;

		while (s.b.got == got)
			assert_true(sim_run_next(s.sim));
		seen[got] = s.b.damaged == damaged ? 'r'
			    : s.b.tos >> 2	   ? 'u'
						   : 'o';
	}
	assert_string_equal(seen, expected);
	stop(&s);
}

/* What has begun goes on; then RDMA goes before all others, which keep their
 * wire busy and are not lost. */
static void test_classes(void **state)
{
	classes(false, false, "oorrou");
	classes(true, false, "orruoo");
	classes(true, true, "orruoo");
}

static void test_queue_and_routes(void **state)
{
	struct sim_link link = {.latency_ps = SIM_US,
				.bits_per_s = 10000000000ull,
				.queue_frames = 4};
	uint8_t nowhere[16] = {[10] = 0xff, 0xff, 10, 0, 0, 99};
	struct setup s;
	unsigned sent = 0;

	start(&s, 1, &link);
	while (send_one(&s.a, s.b.addr.ip, sent))
		sent++;
	assert_int_equal(sent, 4);
	assert_int_equal(sim_net_stats(s.net)->queue_full, 1);
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(s.a.room, 1);
	assert_int_equal(s.b.got, 4);
	assert_true(send_one(&s.a, nowhere, 5));
	sim_net_set_cut(s.a.port, s.b.port, true);
	assert_true(send_one(&s.b, s.a.addr.ip, 6));
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(sim_net_stats(s.net)->no_route, 1);
	assert_int_equal(sim_net_stats(s.net)->cut, 1);
	sim_net_set_cut(s.b.port, s.a.port, false);
	assert_true(send_one(&s.b, s.a.addr.ip, 7));
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(s.a.got, 1);
	/* Down while a frame is under way: it is gone, and so is what it sends.
	 */
	assert_true(send_one(&s.b, s.a.addr.ip, 8));
	sim_port_set_down(s.a.port, true);
	assert_true(send_one(&s.a, s.b.addr.ip, 9));
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(s.a.got, 1);
	assert_int_equal(s.b.got, 4);
	stop(&s);
}

static void near(uint64_t count, uint64_t of, uint32_t ppm)
{
	uint64_t want = of * ppm / 1000000;

	assert_in_range(count, want - want / 10, want + want / 10);
}

static void count_frame(void *ctx, const uint8_t *frame, size_t len_bytes)
{
	assert_true(len_bytes > 0);
	++*(uint64_t *)ctx;
}

static uint64_t run_faults(uint64_t seed, const struct sim_faults *faults)
{
	struct sim_link link = {.latency_ps = SIM_US,
				.bits_per_s = 100000000000ull,
				.faults = *faults};
	const struct sim_net_stats *st;
	uint64_t hash, struck = 0;
	struct setup s;

	start(&s, seed, &link);
	sim_net_set_fault_tap(s.net, count_frame, &struck);
	st = sim_net_stats(s.net);
	for (uint32_t i = 0; i < MANY; i++) {
		assert_true(send_one(&s.a, s.b.addr.ip, i));
		if (i % 64 == 0)
			sim_run_until(s.sim, sim_now_ps(s.sim) + SIM_US);
	}
	assert_int_equal(sim_run_until(s.sim, UINT64_MAX), SIM_END_EMPTY);
	assert_int_equal(st->sent, MANY);
	assert_int_equal(st->delivered, MANY - st->lost + st->duplicated);
	near(st->lost, MANY, faults->loss_ppm);
	near(st->duplicated, MANY - st->lost, faults->dup_ppm);
	near(st->reordered, st->delivered, faults->reorder_ppm);
	near(st->corrupted, st->delivered, faults->corrupt_ppm);
	/* Two bits can flip back, and some fields no checksum covers. */
	assert_in_range(s.b.damaged, st->corrupted * 9 / 10, st->corrupted);
	assert_true(s.b.late > st->reordered / 4);
	assert_int_equal(struck, st->lost + st->reordered + st->corrupted);
	assert_int_equal(s.b.got, st->delivered);
	hash = sim_trace_hash(s.sim);
	stop(&s);
	return hash;
}

static void test_faults(void **state)
{
	struct sim_faults f = {.loss_ppm = 100000,
			       .dup_ppm = 50000,
			       .reorder_ppm = 200000,
			       .corrupt_ppm = 30000,
			       .reorder_max_ps = 20 * SIM_US};
	uint64_t first = run_faults(3, &f);

	assert_int_equal(first, run_faults(3, &f));
	assert_int_not_equal(first, run_faults(4, &f));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_timing),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_queue_and_routes),
		cmocka_unit_test(test_faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
