/* SPDX-License-Identifier: Apache-2.0 */
/* The control law: growth, marks, delay, rare and frequent loss, timeouts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/congestion.h"

#define US 1000ull
#define MS 1000000ull

/* A network that answers whole windows. */
struct net {
	struct congestion c;
	uint32_t psn; /* next to be sent, and answered */
	uint64_t now_ns;
};

static void net_init(struct net *n, uint32_t window_max)
{
	*n = (struct net){.psn = 0xfffff0, .now_ns = 1000 * MS};
	congestion_init(&n->c, window_max, n->psn);
}

/* One round trip with a full window. */
static void round_trip(struct net *n, uint64_t rtt_ns)
{
	uint32_t first = n->psn, count = n->c.window;

	if (congestion_wants_time(&n->c))
		congestion_time(&n->c, first, n->now_ns);
	n->now_ns += rtt_ns;
	n->psn = (first + count) & 0xffffff;
	if (congestion_answered(&n->c, n->psn, 0))
		congestion_sample(&n->c, n->now_ns);
}

static void run(struct net *n, unsigned rounds, uint64_t rtt_ns)
{
	while (rounds--)
		round_trip(n, rtt_ns);
}

static void test_off(void **state)
{
	struct congestion c;

	congestion_init(&c, 0, 5);
	assert_false(c.on);
	assert_false(congestion_wants_time(&c));
	congestion_lost(&c, 9, false);
	assert_false(congestion_marked(&c, 9));
}

static void test_growth(void **state)
{
	struct net n;
	uint32_t before;

	net_init(&n, 512);
	before = n.c.window;
	round_trip(&n, 20 * US);
	assert_int_equal(n.c.window, 2 * before);
	run(&n, 10, 20 * US);
	assert_int_equal(n.c.window, 512);
	/* A window that is hardly used does not grow. */
	net_init(&n, 512);
	for (unsigned i = 0; i < 1000; i++) {
		n.psn = (n.psn + 1) & 0xffffff;
		(void)congestion_answered(&n.c, n.psn, 0);
	}
	assert_int_equal(n.c.window, CONGESTION_WINDOW_START);
}

static void test_marks(void **state)
{
	struct net n;

	net_init(&n, 512);
	run(&n, 10, 20 * US);
	assert_true(congestion_marked(&n.c, n.psn + 100));
	assert_int_equal(n.c.window, 512 - 102);
	/* Once per round trip. */
	assert_false(congestion_marked(&n.c, n.psn + 100));
	run(&n, 2, 20 * US);
	assert_true(congestion_marked(&n.c, n.psn));
	for (unsigned i = 0; i < 100; i++) {
		round_trip(&n, 20 * US);
		(void)congestion_marked(&n.c, n.psn);
	}
	assert_in_range(n.c.window, CONGESTION_WINDOW_MIN, 32);
	/* Marks end: growth again, by steps. */
	run(&n, 20, 20 * US);
	assert_true(n.c.window > 32 && n.c.window < 512);
}

/* 1 % at random leaves the window alone; 10 % does not. */
static void test_loss(void **state)
{
	struct net n;

	net_init(&n, 512);
	run(&n, 10, 20 * US);
	for (unsigned i = 0; i < 200; i++) {
		n.c.since_loss = 60 + (i * 37) % 80;
		congestion_lost(&n.c, n.psn, false);
		round_trip(&n, 20 * US);
	}
	assert_int_equal(n.c.window, 512);
	for (unsigned i = 0; i < 40; i++) {
		n.c.since_loss = 10;
		congestion_lost(&n.c, n.psn, false);
		n.psn = (n.psn + 2) & 0xffffff;
		(void)congestion_answered(&n.c, n.psn, 0);
	}
	assert_in_range(n.c.window, CONGESTION_WINDOW_MIN, 16);
}

static void test_delay(void **state)
{
	struct net n;

	net_init(&n, 512);
	run(&n, 10, 20 * US);
	/* A scheduler's slice now and then is no queue. */
	for (unsigned i = 0; i < 50; i++)
		round_trip(&n, i % 10 ? 20 * US : 4 * MS);
	assert_int_equal(n.c.window, 512);
	run(&n, 60, 30 * MS);
	assert_in_range(n.c.window, CONGESTION_DELAY_FLOOR,
			CONGESTION_DELAY_FLOOR + 2 * CONGESTION_STEP);
	/* Loss on top of it is congestion. */
	n.c.since_loss = 1000;
	congestion_lost(&n.c, n.psn, false);
	assert_in_range(n.c.window, CONGESTION_DELAY_FLOOR / 2,
			CONGESTION_DELAY_FLOOR / 2 + CONGESTION_STEP);
}

static void test_timeout(void **state)
{
	struct net n;
	uint64_t rto_ns;

	net_init(&n, 512);
	assert_int_equal(congestion_rto_ns(&n.c), CONGESTION_RTO_START_NS);
	run(&n, 30, 20 * US);
	assert_int_equal(congestion_rto_ns(&n.c), CONGESTION_RTO_MIN_NS);
	run(&n, 30, 10 * MS);
	rto_ns = congestion_rto_ns(&n.c);
	assert_in_range(rto_ns, 10 * MS, 40 * MS);
	congestion_lost(&n.c, n.psn, true);
	assert_int_equal(congestion_rto_ns(&n.c), 2 * rto_ns);
	for (unsigned i = 0; i < 100; i++)
		congestion_lost(&n.c, n.psn, true);
	assert_int_equal(congestion_rto_ns(&n.c),
			 rto_ns << CONGESTION_BACKOFF_MAX);
	assert_int_equal(n.c.window, CONGESTION_WINDOW_MIN);
	/* An answer, and it is as before. */
	round_trip(&n, 10 * MS);
	assert_in_range(congestion_rto_ns(&n.c), 10 * MS, 40 * MS);
}

/* What was sent twice is not timed (Karn). */
static void test_no_time_for_copies(void **state)
{
	struct net n;

	net_init(&n, 512);
	congestion_time(&n.c, n.psn, n.now_ns);
	congestion_lost(&n.c, (n.psn + 10) & 0xffffff, false);
	assert_false(congestion_wants_time(&n.c));
	assert_false(congestion_answered(&n.c, (n.psn + 5) & 0xffffff, 5));
	assert_false(congestion_wants_time(&n.c));
	assert_false(congestion_answered(&n.c, (n.psn + 10) & 0xffffff, 0));
	assert_true(congestion_wants_time(&n.c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_off),
		cmocka_unit_test(test_growth),
		cmocka_unit_test(test_marks),
		cmocka_unit_test(test_loss),
		cmocka_unit_test(test_delay),
		cmocka_unit_test(test_timeout),
		cmocka_unit_test(test_no_time_for_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
