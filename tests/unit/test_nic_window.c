/* SPDX-License-Identifier: Apache-2.0 */
/* A queue pair whose packet numbers have left their window ends the process
 * instead of taking one packet for another. */
#include "core/qp_priv.h"
#include "nic_pair.h"
/* after cmocka */
#include "dies.h"

enum {
	LEN = 64,
};

static void send_one(void *arg)
{
	struct conn *c = arg;

	(void)post(&c->e[0], &c->e[1], IBV_WR_RDMA_WRITE, 1, 0, LEN);
	pair_run(&c->p);
}

static void go_back_to_what_was_not_sent(void *arg)
{
	struct conn *c = arg;
	struct requester *req = &c->e[0].qp->req;

	req->una_psn = wire_psn_add(req->next_psn, 1);
	requester_go_back(c->e[0].qp);
}

static void go_back_before_the_oldest(void *arg)
{
	struct conn *c = arg;
	struct requester *req = &c->e[0].qp->req;

	c->p.capacity = 1;
	(void)post(&c->e[0], &c->e[1], IBV_WR_RDMA_WRITE, 1, 0, LEN);
	req->una_psn = wire_psn_add(req->una_psn, WIRE_PSN_MASK);
	requester_go_back(c->e[0].qp);
}

static void complete_what_is_not_the_oldest(void *arg)
{
	struct conn *c = arg;
	struct requester *req = &c->e[0].qp->req;

	(void)post(&c->e[0], &c->e[1], IBV_WR_RDMA_WRITE, 1, 0, LEN);
	req->una_psn = wire_psn_add(req->una_psn, WIRE_PSN_MASK - 4);
	pair_run(&c->p);
}

static void answer_behind_the_end(void *arg)
{
	struct conn *c = arg;
	struct responder *rsp = &c->e[1].qp->rsp;

	(void)post(&c->e[0], &c->e[1], IBV_WR_RDMA_READ, 1, 0, LEN);
	pair_run(&c->p);
	rsp->res[0].next_psn = wire_psn_add(rsp->res[0].last_psn, 1);
	rsp->res[0].pending = true;
	rsp->res_pending = 1;
	(void)responder_run(c->e[1].qp);
}

static void refuse_what_did_not_come(void *arg)
{
	struct conn *c = arg;

	nak_refuse(c->e[1].qp, WIRE_NAK_OP,
		   wire_psn_add(c->e[1].qp->rsp.epsn, 1));
}

static void test_window(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	assert_false(dies(send_one, &c));
	assert_true(dies(go_back_to_what_was_not_sent, &c));
	assert_true(dies(go_back_before_the_oldest, &c));
	assert_true(dies(complete_what_is_not_the_oldest, &c));
	assert_true(dies(answer_behind_the_end, &c));
	assert_true(dies(refuse_what_did_not_come, &c));
	conn_release(&c);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
