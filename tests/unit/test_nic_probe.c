/* SPDX-License-Identifier: Apache-2.0 */
/* Signs of life: who is asked and when, that any responder answers without
 * doing anything, and what counts as silence. */
#include "nic_pair.h"

static int probe(struct end *e)
{
	return nic_qp_probe(e->nic, nic_qp_number(e->qp));
}

/* Asked before anything was sent, and without rights and receives. */
static void test_alive(void **state)
{
	struct ibv_qp_attr none = {.qp_access_flags = 0};
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	assert_int_equal(nic_qp_modify(c.e[1].qp, &none, IBV_QP_ACCESS_FLAGS),
			 0);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(probe(&c.e[0]), 0);
		pair_run(&c.p);
	}
	assert_int_equal(counter(&c.e[0], NIC_C_probes), 5);
	assert_int_equal(counter(&c.e[1], NIC_C_duplicates), 5);
	assert_int_equal(counter(&c.e[1], NIC_C_acks_sent), 5);
	assert_int_equal(counter(&c.e[0], NIC_C_drop_response), 0);
	expect_no_event(&c.e[1].qp_o);
	conn_release(&c);
}

/* In the middle of a connection: no packet is lost or taken twice. */
static void test_between(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned i = 0; i < 40; i++) {
		enum ibv_wr_opcode opcode =
			i % 2 ? IBV_WR_SEND : IBV_WR_RDMA_READ;

		assert_int_equal(post_recv(&c.e[1], i, 4096, 64), 0);
		assert_int_equal(post(&c.e[0], &c.e[1], opcode, i, 0, 64), 0);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
		assert_int_equal(probe(&c.e[0]), 0);
		assert_int_equal(probe(&c.e[1]), 0);
		pair_run(&c.p);
	}
	for (unsigned i = 0; i < 20; i++)
		expect_cqe(c.e[1].rcq, i, IBV_WC_SUCCESS);
	expect_no_cqe(c.e[1].rcq);
	conn_release(&c);
}

static void test_silence(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	assert_int_equal(probe(&c.e[0]), 0); /* the first question */
	c.p.tail = c.p.head;		     /* lost */
	assert_int_equal(probe(&c.e[0]), 1);
	c.p.tail = c.p.head;
	assert_int_equal(probe(&c.e[0]), 1);
	/* The answer came late; and a request of the peer's says as much. */
	pair_run(&c.p);
	assert_int_equal(probe(&c.e[0]), 0);
	c.p.tail = c.p.head;
	assert_int_equal(post(&c.e[1], &c.e[0], IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
	pair_run(&c.p);
	assert_int_equal(probe(&c.e[0]), 0);
	conn_release(&c);
}

/* Whose requests are under way is not asked, nor who cannot answer us. */
static void test_not_asked(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(probe(&c.e[0]), 0);
	assert_int_equal(counter(&c.e[0], NIC_C_probes), 0);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(probe(&c.e[0]), 0);
	c.p.tail = c.p.head;
	qp_to(c.e[0].qp, IBV_QPS_ERR);
	assert_int_equal(probe(&c.e[0]), 0);
	assert_int_equal(probe(&c.e[0]), 0);
	assert_int_equal(counter(&c.e[0], NIC_C_probes), 1);
	assert_int_equal(nic_qp_probe(c.e[0].nic, nic_qp_number(c.e[0].qp) ^ 1),
			 -EINVAL);
	conn_release(&c);
}

/* A request that nobody answered was question enough. */
static void test_given_up(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
	for (unsigned i = 0; i < 1000 && nic_qp_state(c.e[0].qp) != IBV_QPS_ERR;
	     i++) {
		c.p.tail = c.p.head;
		c.p.now_ns += 10000000;
		nic_tick(c.e[0].nic);
		(void)nic_flush(c.e[0].nic);
	}
	c.p.tail = c.p.head;
	expect_cqe(c.e[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	assert_int_equal(probe(&c.e[0]), 1);
	assert_int_equal(probe(&c.e[0]), 1);
	/* Not so who starts again. */
	conn_restart(&c);
	assert_int_equal(probe(&c.e[0]), 0);
	pair_run(&c.p);
	assert_int_equal(probe(&c.e[0]), 0);
	pair_run(&c.p);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alive),
		cmocka_unit_test(test_between),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_not_asked),
		cmocka_unit_test(test_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
