/* SPDX-License-Identifier: Apache-2.0 */
/* Completion channels, asynchronous events, acknowledgements, and fork. */
#include "verbs_pair.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static bool is_readable(int fd)
{
	struct pollfd pfd = {.fd = fd, .events = POLLIN};

	return poll(&pfd, 1, 0) == 1;
}

static void send_one(struct pair *p, unsigned flags)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND, .send_flags = flags};

	side_recv(&p->b, 1, 0, 64);
	assert_int_equal(side_post(&p->a, &wr, 0, 8), 0);
	assert_int_equal(pair_wait(p->a.cq).status, IBV_WC_SUCCESS);
}

static void test_event_per_arm(void **state)
{
	struct pair p = {0};
	struct ibv_cq *cq;
	void *cookie;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	send_one(&p, 0);
	assert_false(is_readable(p.channel->fd)); /* not armed */
	assert_int_equal(pair_wait(p.b.cq).status, IBV_WC_SUCCESS);

	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	send_one(&p, 0);
	send_one(&p, 0);
	assert_true(is_readable(p.channel->fd));
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), 0);
	assert_ptr_equal(cq, p.b.cq);
	assert_ptr_equal(cookie, &p.b);
	assert_false(is_readable(p.channel->fd)); /* one per arm */

	/* Solicited only. */
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 1), 0);
	send_one(&p, 0);
	assert_false(is_readable(p.channel->fd));
	send_one(&p, IBV_SEND_SOLICITED);
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), 0);
	ibv_ack_cq_events(cq, 2);

	assert_int_equal(fcntl(p.channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), -1);
	assert_int_equal(errno, EAGAIN);
	pair_break(&p);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

/* The waiting thread drives the NIC itself: nobody else does here. */
static void test_waiting_drives(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct pair p = {0};
	struct ibv_cq *cq;
	void *cookie;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	side_recv(&p.b, 1, 0, 64);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), 0);
	assert_ptr_equal(cq, p.b.cq);
	ibv_ack_cq_events(cq, 1);
	pair_break(&p);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

/* An event that nobody read must not be delivered for a CQ that is gone. */
static void test_stale_event_is_skipped(void **state)
{
	struct pair p = {0};
	struct ibv_cq *cq;
	void *cookie;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	send_one(&p, 0);
	assert_true(is_readable(p.channel->fd));
	pair_break(&p);
	assert_int_equal(fcntl(p.channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

static atomic_bool acked;

static void *late_ack(void *arg)
{
	usleep(50000);
	atomic_store(&acked, true);
	ibv_ack_cq_events(arg, 1);
	return NULL;
}

static void test_destroy_waits_for_ack(void **state)
{
	struct pair p = {0};
	pthread_t thread;
	struct ibv_cq *cq;
	void *cookie;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
	send_one(&p, 0);
	assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), 0);
	pthread_create(&thread, NULL, late_ack, cq);
	pair_break(&p);
	assert_true(atomic_load(&acked));
	pthread_join(thread, NULL);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

/* A pipe holds thousands of events; those that found it full come later. */
static void test_full_channel_loses_nothing(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct pair p = {0};
	struct ibv_cq *cq;
	unsigned got_a = 0, i;
	void *cookie;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_true(fcntl(p.channel->fd, F_SETPIPE_SZ, 4096) >= 0);
	/* b's events fill the pipe, then one of a's has no room. */
	wr.wr.rdma.rkey = p.a.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.a.buf;
	for (i = 0; i < 512; i++) {
		assert_int_equal(ibv_req_notify_cq(p.b.cq, 0), 0);
		assert_int_equal(side_post(&p.b, &wr, 0, 8), 0);
		assert_int_equal(pair_wait(p.b.cq).status, IBV_WC_SUCCESS);
	}
	wr.wr.rdma.rkey = p.b.mr->rkey;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
	assert_int_equal(ibv_req_notify_cq(p.a.cq, 0), 0);
	assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	assert_int_equal(pair_wait(p.a.cq).status, IBV_WC_SUCCESS);
	for (i = 0; i < 513; i++) {
		assert_int_equal(ibv_get_cq_event(p.channel, &cq, &cookie), 0);
		got_a += cq == p.a.cq;
		ibv_ack_cq_events(cq, 1);
	}
	assert_int_equal(got_a, 1);
	assert_false(is_readable(p.channel->fd));
	pair_break(&p);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

static void test_async_events(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct ibv_async_event event;
	struct pair p = {0};

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	/* A wrong key: the target hears about the attempt. */
	wr.wr.rdma.rkey = p.b.mr->rkey ^ 0xff00;
	wr.wr.rdma.remote_addr = (uintptr_t)p.b.buf;
	assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	assert_int_equal(pair_wait(p.a.cq).status, IBV_WC_REM_ACCESS_ERR);
	assert_true(is_readable(p.ctx->async_fd));
	assert_int_equal(ibv_get_async_event(p.ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, p.b.qp);
	ibv_ack_async_event(&event);
	pair_break(&p);

	/* Unread ones go with their object. */
	pair_make(&p, IBV_QPT_RC, 0);
	wr.wr.rdma.rkey = p.b.mr->rkey ^ 0xff00;
	assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	assert_int_equal(pair_wait(p.a.cq).status, IBV_WC_REM_ACCESS_ERR);
	pair_break(&p);
	assert_int_equal(fcntl(p.ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(ibv_get_async_event(p.ctx, &event), -1);
	assert_int_equal(errno, EAGAIN);
	pair_close(&p);
}

/* In the child: 0 when every inherited object is a shell that breaks nothing,
 * and the inherited context still makes new ones. */
static int child_check(struct pair *p)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
	struct ibv_recv_wr recv = {0}, *bad_recv;
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *cookie;

	if (ibv_post_send(p->a.qp, &wr, &bad) != EIO || bad != &wr ||
	    ibv_post_recv(p->a.qp, &recv, &bad_recv) != EIO)
		return 1;
	if (ibv_poll_cq(p->a.cq, 1, &wc) >= 0 ||
	    ibv_req_notify_cq(p->a.cq, 0) != EIO ||
	    ibv_get_cq_event(p->channel, &cq, &cookie) != -1)
		return 2;
	if (ibv_reg_mr(p->pd, p->a.buf, 64, 0) || errno != EIO ||
	    ibv_create_cq(p->ctx, 1, NULL, p->channel, 0))
		return 3;
	if (ibv_destroy_qp(p->a.qp) || ibv_dereg_mr(p->a.mr) ||
	    ibv_destroy_cq(p->a.cq))
		return 4;
	p->pd = ibv_alloc_pd(p->ctx);
	cq = ibv_create_cq(p->ctx, 1, NULL, NULL, 0);
	if (!p->pd || !cq || !ibv_reg_mr(p->pd, p->a.buf, 64, 0))
		return 5;
	return ibv_close_device(p->ctx);
}

static void test_fork(void **state)
{
	struct pair p = {0};
	int status;
	pid_t pid;

	pair_open(&p);
	p.channel = ibv_create_comp_channel(p.ctx);
	pair_make(&p, IBV_QPT_RC, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child_check(&p));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent never noticed. */
	send_one(&p, 0);
	pair_break(&p);
	assert_int_equal(ibv_destroy_comp_channel(p.channel), 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_event_per_arm),
		cmocka_unit_test(test_waiting_drives),
		cmocka_unit_test(test_stale_event_is_skipped),
		cmocka_unit_test(test_destroy_waits_for_ack),
		cmocka_unit_test(test_full_channel_loses_nothing),
		cmocka_unit_test(test_async_events),
		cmocka_unit_test(test_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
