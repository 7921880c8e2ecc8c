/* SPDX-License-Identifier: Apache-2.0 */
/* The control laws of the rival fabrics, each by itself. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "edm/edm_dcqcn.h"
#include "edm/edm_dctcp.h"
#include "edm/edm_pfabric.h"
#include "edm/edm_run.h"

static void near(double a, double b)
{
	if (fabs(a - b) > 1e-6 * fabs(b))
		fail_msg("%.9g is not %.9g", a, b);
}

static void test_dctcp_grows(void **state)
{
	struct edm_dctcp d;

	edm_dctcp_init(&d, 1000, 10000);
	/* Slow start: every acknowledged byte is one byte more. */
	edm_dctcp_ack(&d, 1000, false, 1000, 10000);
	near(d.window_bytes, 11000);
	d.threshold_bytes = 11000;
	/* Then one segment per window. */
	edm_dctcp_ack(&d, 1000, false, 2000, 12000);
	near(d.window_bytes, 11000 + 1000.0 * 1000 / 11000);
}

static void test_dctcp_marks(void **state)
{
	struct edm_dctcp d;
	double alpha;

	edm_dctcp_init(&d, 1000, 16000);
	/* First estimate: everything marked, alpha stays 1: halve. */
	edm_dctcp_ack(&d, 1000, true, 1000, 16000);
	near(d.alpha, 1);
	near(d.window_bytes, 8000);
	/* A second mark within the window changes nothing. */
	edm_dctcp_ack(&d, 1000, true, 2000, 17000);
	near(d.window_bytes, 8000);
	/* A window with a quarter marked moves alpha by a sixteenth. */
	edm_dctcp_ack(&d, 2000, false, 4000, 17000);
	alpha = d.alpha;
	edm_dctcp_ack(&d, 12000, false, 16000, 30000);
	near(d.alpha, alpha * 15 / 16 + 1.0 / 16 * (1000.0 / 15000));
}

static void test_dctcp_loss(void **state)
{
	struct edm_dctcp d;

	edm_dctcp_init(&d, 1000, 16000);
	edm_dctcp_fast_retransmit(&d, 16000);
	near(d.window_bytes, 8000);
	edm_dctcp_timeout(&d, 16000);
	near(d.window_bytes, 1000);
	near(d.threshold_bytes, 4000);
	for (int i = 0; i < 5; i++)
		edm_dctcp_fast_retransmit(&d, 16000);
	near(d.window_bytes, 1000); /* never below one segment */
}

static void test_dcqcn(void **state)
{
	struct edm_dcqcn_params p;
	struct edm_dcqcn d;
	double alpha;

	edm_dcqcn_params(&p, 100, false);
	edm_dcqcn_init(&d, &p);
	near(d.rate_bps, 100e9);
	/* The first notification halves the rate. */
	edm_dcqcn_notified(&d, &p, 1000000);
	near(d.rate_bps, 50e9);
	near(d.target_bps, 100e9);
	/* Another one within 50 us does not count. */
	edm_dcqcn_notified(&d, &p, 2000000);
	near(d.rate_bps, 50e9);
	/* Fast recovery: half the distance every 55 us, five times. */
	alpha = d.alpha;
	edm_dcqcn_advance(&d, &p, 1000000 + p.increase_ps);
	near(d.rate_bps, 75e9);
	near(d.alpha, alpha * 255 / 256);
	edm_dcqcn_advance(&d, &p, 1000000 + 5 * p.increase_ps);
	near(d.rate_bps, 100e9 - 50e9 / 32);
	/* The byte counter is the second clock. */
	edm_dcqcn_sent(&d, &p, 10000000);
	assert_int_equal(d.byte_steps, 1);
	near(d.rate_bps, 100e9 - 50e9 / 64);
}

static void test_dcqcn_additive(void **state)
{
	struct edm_dcqcn_params p;
	struct edm_dcqcn d;

	edm_dcqcn_params(&p, 100, false);
	edm_dcqcn_init(&d, &p);
	/* Twice cut: the target is what the rate was. */
	edm_dcqcn_notified(&d, &p, EDM_US);
	edm_dcqcn_notified(&d, &p, EDM_US + p.cut_ps);
	assert_true(d.target_bps < 51e9);
	edm_dcqcn_advance(&d, &p, EDM_US + p.cut_ps + 6 * p.increase_ps);
	/* The sixth step adds to the target. */
	near(d.target_bps, 50e9 + p.additive_bps);
	while (d.byte_steps <= p.fast_steps)
		edm_dcqcn_sent(&d, &p, 10000000);
	assert_true(d.target_bps >= 50e9 + p.additive_bps + p.hyper_bps);
}

static void test_pfabric_queue(void **state)
{
	struct edm_packet p[6] = {{0}};
	struct edm_pfabric_queue q = {.limit_bytes = 4000};

	for (uint32_t i = 0; i < 6; i++)
		p[i].wire_bytes = 1000;
	p[0] = (struct edm_packet){
		.seq = 9000ull << 32, .msg = 1, .wire_bytes = 1000};
	p[1] = (struct edm_packet){
		.seq = 5000ull << 32 | 4, .msg = 2, .wire_bytes = 1000};
	p[2] = (struct edm_packet){
		.seq = 7000ull << 32 | 3, .msg = 2, .wire_bytes = 1000};
	p[3] = (struct edm_packet){
		.seq = 6000ull << 32, .msg = 3, .wire_bytes = 1000};
	p[4] = (struct edm_packet){
		.seq = 8000ull << 32, .msg = 4, .wire_bytes = 1000};
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(edm_pfabric_push(&q, p, i), EDM_MSG_NONE);
	/* Full: the least urgent goes, which is not the newest. */
	assert_int_equal(edm_pfabric_push(&q, p, 4), 0);
	/* Message 2 is the most urgent, its earlier packet first. */
	assert_int_equal(edm_pfabric_pop(&q, p), 2);
	assert_int_equal(edm_pfabric_pop(&q, p), 1);
	assert_int_equal(edm_pfabric_pop(&q, p), 3);
	assert_int_equal(edm_pfabric_pop(&q, p), 4);
	assert_int_equal(edm_pfabric_pop(&q, p), EDM_MSG_NONE);
	assert_int_equal(q.bytes, 0);
	edm_pfabric_release(&q);
}

/* ---- whole fabrics, driven by hand --------------------------------------- */

struct rig {
	struct edm_run *run;
	struct edm_result r;
	uint64_t done_ps[64];
};

static void on_done(void *owner, const struct edm_msg *m)
{
	struct rig *g = owner;

	g->done_ps[m - g->run->msg] = edm_queue_now(g->run->q);
}

static struct rig *rig_make(struct edm_config *c)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	c->nodes = 4;
	assert_int_equal(edm_run_create(c, &g->r, &g->run), 0);
	g->run->on_done = on_done;
	g->run->owner = g;
	return g;
}

static uint32_t put(struct rig *g, uint16_t src, uint16_t dst, uint32_t bytes)
{
	return edm_run_submit(g->run, &(struct edm_arrival){.at_ps = EDM_US,
							    .bytes = bytes,
							    .src = src,
							    .dst = dst});
}

static void rig_finish(struct rig *g)
{
	edm_run_until(g->run, EDM_NEVER - 1);
	g->run->ops->report(g->run->proto, &g->r);
	edm_run_destroy(g->run);
}

/* A long message to a busy port, then a short one to an idle port. */
static uint64_t cxl_victim(bool voq)
{
	struct edm_config c;
	struct rig *g;
	uint32_t victim;
	uint64_t ps;

	edm_config_init(&c);
	c.proto = EDM_PROTO_CXL;
	c.cxl_voq = voq;
	g = rig_make(&c);
	(void)put(g, 0, 2, 200000);
	(void)put(g, 1, 2, 200000);
	victim = put(g, 1, 3, 64);
	rig_finish(g);
	ps = g->done_ps[victim] - EDM_US;
	free(g);
	return ps;
}

static void test_cxl_head_of_line(void **state)
{
	/* Half the rate of two times 200 KB is in front of it, or little. The
	 * sender's own queue is in order in both. */
	assert_true(cxl_victim(false) >= cxl_victim(true));
}

static void test_cxl_credits(void **state)
{
	struct edm_config c;
	struct rig *g;
	uint64_t few, many;

	edm_config_init(&c);
	c.proto = EDM_PROTO_CXL;
	c.cxl_credits = 8;
	g = rig_make(&c);
	(void)put(g, 0, 1, 100000);
	rig_finish(g);
	few = g->done_ps[0];
	assert_true(g->r.pauses > 0);
	free(g);
	c.cxl_credits = 128;
	g = rig_make(&c);
	(void)put(g, 0, 1, 100000);
	rig_finish(g);
	many = g->done_ps[0];
	assert_int_equal(g->r.pauses, 0);
	free(g);
	/* A packet per round trip, against the full rate of 12.5 B/ns. */
	assert_true(few > 2 * many);
	assert_true(many - EDM_US < 100000 * 80 + 200000);
}

/* Two receivers credit one sender: one of them waits, and idles. */
static void test_ird_conflict(void **state)
{
	struct edm_config c;
	struct rig *g;
	uint64_t last;

	edm_config_init(&c);
	c.proto = EDM_PROTO_IRD;
	g = rig_make(&c);
	(void)put(g, 0, 1, 25600);
	(void)put(g, 0, 2, 25600);
	rig_finish(g);
	last = u64_max(g->done_ps[0], g->done_ps[1]) - EDM_US;
	/* The sender's link is the limit; 51,200 B take 4,096 ns. */
	assert_true(last >= 4096 * EDM_NS);
	assert_true(last < 4096 * EDM_NS + 3000 * EDM_NS);
	/* And one message is done well before the other, or both late. */
	assert_int_equal(g->r.grants, 200);
	free(g);
}

static uint64_t fastpass_last(bool unlimited)
{
	struct edm_config c;
	struct rig *g;
	uint64_t last = 0;

	edm_config_init(&c);
	c.proto = EDM_PROTO_FASTPASS;
	c.framing = EDM_FRAMING_WIRE;
	c.fastpass_free = unlimited;
	g = rig_make(&c);
	for (unsigned i = 0; i < 60; i++)
		(void)put(g, (uint16_t)(i % 4), (uint16_t)((i + 1) % 4), 64);
	rig_finish(g);
	for (unsigned i = 0; i < 60; i++)
		last = u64_max(last, g->done_ps[i]);
	free(g);
	return last - EDM_US;
}

static void test_fastpass_arbiter(void **state)
{
	/* 60 requests and 60 grants of 84 B pass one link, 6.72 ns each, in
	 * both directions at once; the arbiter itself takes no time. */
	uint64_t bound = fastpass_last(false), free_ps = fastpass_last(true);

	assert_true(bound > free_ps + 250 * EDM_NS);
	assert_true(bound < free_ps + 900 * EDM_NS);
}

static void test_pfc_pauses(void **state)
{
	struct edm_config c;
	struct rig *g;

	edm_config_init(&c);
	c.proto = EDM_PROTO_PFC;
	g = rig_make(&c);
	for (uint16_t s = 1; s < 4; s++)
		(void)put(g, s, 0, 400000);
	rig_finish(g);
	/* Three into one: inputs fill to the threshold and stop; no loss. */
	assert_true(g->r.pauses > 0);
	assert_int_equal(g->r.drops, 0);
	for (unsigned i = 0; i < 3; i++)
		assert_true(g->done_ps[i] > 0);
	free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dctcp_grows),
		cmocka_unit_test(test_dctcp_marks),
		cmocka_unit_test(test_dctcp_loss),
		cmocka_unit_test(test_dcqcn),
		cmocka_unit_test(test_dcqcn_additive),
		cmocka_unit_test(test_pfabric_queue),
		cmocka_unit_test(test_cxl_head_of_line),
		cmocka_unit_test(test_cxl_credits),
		cmocka_unit_test(test_ird_conflict),
		cmocka_unit_test(test_fastpass_arbiter),
		cmocka_unit_test(test_pfc_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
