/* SPDX-License-Identifier: Apache-2.0 */
/* A requester whose peer does not answer: one that does not run is waited for,
 * one that runs uses up its retries. */
#include "core/nic_limits.h"
#include "nic_pair.h"

/* Time passes, and whatever is sent is lost. */
static void wait_in_vain(struct conn *c, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 5) {
		c->p.now_ns += 5000000;
		c->p.tail = c->p.head;
		nic_tick(c->e[0].nic);
		nic_flush(c->e[0].nic);
	}
}

/* A peer that lives and does not run is slow. It fails after minutes, not after
 * the few milliseconds that the timer and its retries make here. */
static void a_slow_peer_uses_up_no_retries(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	conn_init(&c, IBV_MTU_256);
	c.p.peer = ENV_PEER_STALLED;
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	wait_in_vain(&c, 200000);
	expect_no_cqe(a->scq);
	assert_int_equal(nic_counter_get(a->nic, NIC_C_timeouts), 0);
	/* It runs again. The request was lost here, so it is sent again. */
	c.p.peer = ENV_PEER_RUNS;
	pair_advance(&c.p, 20000000);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(nic_counter_get(a->nic, NIC_C_timeouts), 1);
	c.p.peer = ENV_PEER_STALLED;
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, 64), 0);
	wait_in_vain(&c, NIC_STALL_NS / 1000000 + 100);
	expect_cqe(a->scq, 2, IBV_WC_RETRY_EXC_ERR);
	c.p.tail = c.p.head;
	conn_release(&c);
}

/* Stalls do not add up: a peer that runs now and then has all the time again
 * for its next stall, and its retries count only while it runs. */
static void each_stall_counts_for_itself(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	for (i = 0; i < 3; i++) { /* as many as it has retries */
		c.p.peer = ENV_PEER_STALLED;
		wait_in_vain(&c, 200000);
		c.p.peer = ENV_PEER_RUNS;
		while (nic_counter_get(a->nic, NIC_C_timeouts) == i)
			wait_in_vain(&c, 5);
	}
	expect_no_cqe(a->scq);
	wait_in_vain(&c, 200);
	expect_cqe(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	c.p.tail = c.p.head;
	conn_release(&c);
}

/* What the peer has done is asked for since the wait began, also where its bell
 * was not known then; and each wait begins anew. */
static void turns_are_counted_from_when_the_wait_began(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	conn_init(&c, IBV_MTU_256);
	c.p.peer = ENV_PEER_STALLED;
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	c.p.turns = 70;
	wait_in_vain(&c, 5);
	assert_int_equal(c.p.since_turns, 0);
	wait_in_vain(&c, 5);
	assert_int_equal(c.p.since_turns, 70);
	c.p.turns = 80;
	wait_in_vain(&c, 50);
	assert_int_equal(c.p.since_turns, 70);
	c.p.peer = ENV_PEER_RUNS;
	pair_advance(&c.p, 20000000);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	wait_in_vain(&c, 50);
	c.p.turns = 90;
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, 64), 0);
	c.p.turns = 99;
	while (c.p.since_turns != 90 &&
	       nic_counter_get(a->nic, NIC_C_timeouts) == 1)
		wait_in_vain(&c, 5);
	assert_int_equal(c.p.since_turns, 90);
	/* So does the wait for what is sent again. */
	while (nic_counter_get(a->nic, NIC_C_timeouts) <= 2)
		wait_in_vain(&c, 5);
	assert_int_equal(c.p.since_turns, 99);
	c.p.tail = c.p.head;
	conn_release(&c);
}

/* How long a request is waited for that nobody answers. */
static uint64_t patience_ms(uint32_t window_bytes, enum env_peer peer)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	uint64_t ms;

	conn_init(&c, IBV_MTU_256);
	c.p.window_bytes = window_bytes;
	conn_restart(&c);
	c.p.peer = peer;
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	for (ms = 0; nic_qp_state(a->qp) == IBV_QPS_RTS; ms += 5)
		wait_in_vain(&c, 5);
	expect_cqe(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	c.p.tail = c.p.head;
	conn_release(&c);
	return ms;
}

/* A peer behind a network may be a program on a busy machine: the standard
 * allows four times the timeout. Where it is known to run, that is not needed.
 */
static void an_unknown_peer_has_all_the_time_there_is(void **state)
{
	uint64_t known = patience_ms(0, ENV_PEER_RUNS);

	assert_int_equal(patience_ms(1 << 20, ENV_PEER_RUNS), known);
	assert_int_equal(patience_ms(0, ENV_PEER_UNKNOWN), known);
	assert_in_range(patience_ms(1 << 20, ENV_PEER_UNKNOWN), 4 * known - 20,
			4 * known + 20);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_slow_peer_uses_up_no_retries),
		cmocka_unit_test(each_stall_counts_for_itself),
		cmocka_unit_test(turns_are_counted_from_when_the_wait_began),
		cmocka_unit_test(an_unknown_peer_has_all_the_time_there_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
