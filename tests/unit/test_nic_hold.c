/* SPDX-License-Identifier: Apache-2.0 */
/* Acknowledgements that are held back: which, until when, and that nothing is
 * lost by it. */
#include "core/nic_limits.h"
#include "nic_pair.h"

enum {
	LEN = 64,
};

static void begin(struct conn *c)
{
	conn_init(c, IBV_MTU_1024);
	for (unsigned i = 0; i < END_WR; i++)
		assert_int_equal(post_recv(&c->e[1], i, 4096, LEN), 0);
	nic_hold_acks(c->e[1].nic, true);
}

static void send_one(struct conn *c, enum ibv_wr_opcode opcode, uint64_t id)
{
	assert_int_equal(post(&c->e[0], &c->e[1], opcode, id, 0, LEN), 0);
	pair_run(&c->p);
}

/* Several answers, one acknowledgement, when it is let go. */
static void test_answers(void **state)
{
	struct conn c;

	begin(&c);
	for (unsigned i = 0; i < 3; i++)
		send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, i);
	send_one(&c, IBV_WR_SEND_WITH_IMM, 3);
	expect_no_cqe(c.e[0].scq);
	for (unsigned i = 0; i < 4; i++)
		expect_cqe(c.e[1].rcq, i, IBV_WC_SUCCESS);
	assert_int_equal(nic_held_acks(c.e[1].nic), 4);
	assert_int_equal(counter(&c.e[1], NIC_C_acks_held), 1);
	nic_release_acks(c.e[1].nic);
	assert_int_equal(nic_held_acks(c.e[1].nic), 0);
	pair_run(&c.p);
	for (unsigned i = 0; i < 4; i++)
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
	assert_int_equal(counter(&c.e[1], NIC_C_acks_sent), 1);
	assert_int_equal(counter(&c.e[0], NIC_C_retries), 0);
	nic_release_acks(c.e[1].nic); /* nothing */
	assert_int_equal(c.p.head, c.p.tail);
	conn_release(&c);
}

/* What somebody waits for goes at once, and takes along what was held. */
static void test_others(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_SEND, IBV_WR_RDMA_READ,
		IBV_WR_ATOMIC_FETCH_AND_ADD};

	for (unsigned i = 0; i < ARRAY_LEN(opcodes); i++) {
		bool atomic = opcodes[i] == IBV_WR_ATOMIC_FETCH_AND_ADD;
		struct conn c;

		begin(&c);
		send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 1);
		expect_no_cqe(c.e[0].scq);
		assert_int_equal(post(&c.e[0], &c.e[1], opcodes[i], 2, 0,
				      atomic ? 8 : LEN),
				 0);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
		expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
		/* It is on the list still; there is nothing to send. */
		nic_release_acks(c.e[1].nic);
		assert_int_equal(c.p.head, c.p.tail);
		conn_release(&c);
	}
}

static void test_bound(void **state)
{
	struct conn c;
	unsigned i;

	STATIC_ASSERT((int)NIC_ACK_HOLD_MAX <= (int)END_WR, "enough receives");
	begin(&c);
	for (i = 0; i < NIC_ACK_HOLD_MAX - 1; i++)
		send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, i);
	expect_no_cqe(c.e[0].scq);
	send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, i);
	for (i = 0; i < NIC_ACK_HOLD_MAX; i++)
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
	conn_release(&c);
}

/* A gap is reported at once, behind what was held: nobody waits for a timer. */
static void test_gap(void **state)
{
	struct conn c;

	begin(&c);
	send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 1);
	assert_int_equal(
		post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 2, 0, LEN),
		0);
	c.p.tail = c.p.head; /* lost */
	send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 3);
	nic_release_acks(c.e[1].nic);
	pair_run(&c.p);
	nic_release_acks(c.e[1].nic);
	pair_run(&c.p);
	for (unsigned i = 1; i <= 3; i++)
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
	assert_int_equal(counter(&c.e[1], NIC_C_naks_sent), 1);
	conn_release(&c);
}

/* A queue pair that fails, or is used anew, is off the list. */
static void test_ends(void **state)
{
	struct conn c;

	begin(&c);
	send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 1);
	conn_restart(&c);
	nic_release_acks(c.e[1].nic);
	assert_int_equal(c.p.head, c.p.tail);
	assert_int_equal(post_recv(&c.e[1], 7, 4096, LEN), 0);
	send_one(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 2);
	qp_to(c.e[1].qp, IBV_QPS_ERR);
	nic_release_acks(c.e[1].nic);
	assert_int_equal(c.p.head, c.p.tail);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_answers), cmocka_unit_test(test_others),
		cmocka_unit_test(test_bound),	cmocka_unit_test(test_gap),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
