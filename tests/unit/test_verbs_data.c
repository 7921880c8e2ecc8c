/* SPDX-License-Identifier: Apache-2.0 */
/* The data path through every door: post_send, wr_*, poll_cq, extended CQs,
 * shared receive queues, datagrams, windows, masked atomics. */
#include "verbs_pair.h"

#include <aquifer/aqdv.h>

static const uint64_t OPS_ALL =
	IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_SEND_WITH_INV |
	IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_LOCAL_INV;

static void expect_ok(struct ibv_cq *cq, uint64_t wr_id)
{
	struct ibv_wc wc = pair_wait(cq);

	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, wr_id);
}

static struct ibv_send_wr rdma(struct side *target, enum ibv_wr_opcode opcode,
			       uint64_t wr_id, size_t offset)
{
	return (struct ibv_send_wr){
		.wr_id = wr_id,
		.opcode = opcode,
		.wr.rdma = {.remote_addr = (uintptr_t)target->buf + offset,
			    .rkey = target->mr->rkey},
	};
}

static void test_send_write_read(void **state)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_SEND_WITH_IMM};
	struct pair p = {0};
	struct ibv_wc wc;

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	memset(p.a.buf, 0x11, 5000);
	side_recv(&p.b, 77, 0, 8000);
	wr.imm_data = 0xdeadbeef;
	assert_int_equal(side_post(&p.a, &wr, 0, 5000), 0);
	wc = pair_wait(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 77);
	assert_int_equal(wc.byte_len, 5000);
	assert_int_equal(wc.qp_num, p.b.qp->qp_num);
	assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0xdeadbeef);
	assert_memory_equal(p.a.buf, p.b.buf, 5000);
	expect_ok(p.a.cq, 1);

	memset(p.a.buf, 0x22, 100);
	wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 2, 9000);
	assert_int_equal(side_post(&p.a, &wr, 0, 100), 0);
	expect_ok(p.a.cq, 2);
	assert_int_equal(p.b.buf[9099], 0x22);
	wr = rdma(&p.b, IBV_WR_RDMA_READ, 3, 9000);
	assert_int_equal(side_post(&p.a, &wr, 20000, 100), 0);
	expect_ok(p.a.cq, 3);
	assert_int_equal(p.a.buf[20099], 0x22);
	pair_break(&p);
	pair_close(&p);
}

static void test_refused_posts(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, second, *bad;
	struct ibv_recv_wr recv = {.num_sge = 1000}, *bad_recv;
	struct pair p = {0};
	unsigned i;

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	side_make(&p, &p.a, IBV_QPT_RC, 0);
	side_make(&p, &p.b, IBV_QPT_RC, 0);
	assert_int_equal(side_post(&p.a, &wr, 0, 8), EINVAL);
	assert_int_equal(ibv_post_recv(p.a.qp, &recv, &bad_recv), EINVAL);
	assert_ptr_equal(bad_recv, &recv);
	side_init(&p.a);
	side_init(&p.b);
	side_connect(&p, &p.a, p.b.qp->qp_num);
	side_connect(&p, &p.b, p.a.qp->qp_num);
	assert_int_equal(ibv_post_recv(p.a.qp, &recv, &bad_recv), EINVAL);
	wr.opcode = 99;
	assert_int_equal(side_post(&p.a, &wr, 0, 8), EINVAL);
	wr.opcode = IBV_WR_BIND_MW;
	assert_int_equal(side_post(&p.a, &wr, 0, 8), EINVAL);

	/* The good one of a list is posted, the bad one is named. */
	wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 5, 0);
	second = (struct ibv_send_wr){.opcode = IBV_WR_SEND, .num_sge = 1000};
	wr.next = &second;
	wr.send_flags = IBV_SEND_SIGNALED;
	assert_int_equal(ibv_post_send(p.a.qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &second);
	expect_ok(p.a.cq, 5);

	/* A full queue. Nothing drives the NIC here, so none completes. */
	for (i = 0; i < PAIR_DEPTH; i++) {
		wr = rdma(&p.b, IBV_WR_RDMA_WRITE, i, 0);
		assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	}
	assert_int_equal(side_post(&p.a, &wr, 0, 8), ENOMEM);
	for (i = 0; i < PAIR_DEPTH; i++)
		expect_ok(p.a.cq, i);
	pair_break(&p);
	pair_close(&p);
}

static void test_wr_interface(void **state)
{
	struct ibv_qp_ex *qp;
	struct pair p = {0};
	char text[8] = "inline!";
	struct ibv_data_buf bufs[] = {{text, 3}, {text + 3, 5}};
	struct ibv_sge sges[8] = {0};
	struct ibv_wc wc;
	int i;

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, OPS_ALL);
	qp = ibv_qp_to_qp_ex(p.a.qp);
	assert_non_null(qp);

	/* Inline data is taken at once: the buffer changes before it goes. */
	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = 0;
	ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data_list(qp, 2, bufs);
	memset(text, 'x', sizeof(text));
	qp->wr_id = 2;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(qp, p.b.mr->rkey, (uintptr_t)p.b.buf + 8, 41);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.buf, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_ok(p.a.cq, 2);
	assert_string_equal((char *)p.b.buf, "inline!");
	assert_int_equal(p.b.buf[8], 41);

	/* Aborted, and refused because of the last one: nothing happens. */
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(qp, text, 8);
	ibv_wr_abort(qp);
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(qp, text, 8);
	ibv_wr_rdma_read(qp, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_sge_list(qp, 8, sges);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	/* An atomic of four bytes: only the NIC finds out. */
	ibv_wr_start(qp);
	ibv_wr_rdma_write(qp, p.b.mr->rkey, (uintptr_t)p.b.buf);
	ibv_wr_set_inline_data(qp, text, 8);
	ibv_wr_atomic_fetch_add(qp, p.b.mr->rkey, (uintptr_t)p.b.buf, 1);
	ibv_wr_set_sge(qp, p.a.mr->lkey, (uintptr_t)p.a.buf, 4);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	ibv_wr_start(qp);
	for (i = 0; i <= PAIR_DEPTH; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);
	assert_int_equal(ibv_poll_cq(p.a.cq, 1, &wc), 0);
	assert_string_equal((char *)p.b.buf, "inline!");
	pair_break(&p);
	pair_close(&p);
}

static void test_plain_qp_has_no_wr_interface(void **state)
{
	struct pair p = {0};

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_null(ibv_qp_to_qp_ex(p.a.qp));
	pair_break(&p);
	pair_close(&p);
}

static void test_extended_cq(void **state)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_cq_ex *ex;
	struct ibv_send_wr wr;
	struct pair p = {0};
	uint64_t first_ns, wall_ns;
	int i, rc = ENOENT;

	pair_open(&p);
	ex = ibv_create_cq_ex(p.ctx, &attr);
	assert_non_null(ex);
	p.a.cq = ibv_cq_ex_to_cq(ex);
	pair_make(&p, IBV_QPT_RC, 0);
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	for (i = 0; i < 2; i++) {
		wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 10u + (unsigned)i, 0);
		assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	}
	for (i = 0; i < PAIR_POLLS && rc == ENOENT; i++)
		rc = ibv_start_poll(ex, &poll);
	assert_int_equal(rc, 0);
	assert_int_equal(ex->wr_id, 10);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RDMA_WRITE);
	assert_int_equal(ibv_wc_read_qp_num(ex), p.a.qp->qp_num);
	first_ns = ibv_wc_read_completion_ts(ex);
	wall_ns = ibv_wc_read_completion_wallclock_ns(ex);
	assert_true(wall_ns / 1000000000u + 5 >= (uint64_t)time(NULL));
	rc = ibv_next_poll(ex);
	ibv_end_poll(ex);
	while (rc == ENOENT) {
		rc = ibv_start_poll(ex, &poll);
		if (!rc)
			ibv_end_poll(ex);
	}
	assert_true(first_ns > 0);
	attr.wc_flags = IBV_WC_EX_WITH_TM_INFO;
	assert_null(ibv_create_cq_ex(p.ctx, &attr));
	assert_int_equal(errno, EOPNOTSUPP);
	pair_break(&p);
	pair_close(&p);
}

static void test_shared_receives(void **state)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 2}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct ibv_srq_attr attr;
	struct pair p = {0};
	uint32_t number;

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	p.srq = ibv_create_srq(p.pd, &init);
	assert_non_null(p.srq);
	assert_int_equal(ibv_get_srq_num(p.srq, &number), 0);
	side_make(&p, &p.a, IBV_QPT_RC, 0);
	side_make(&p, &p.b, IBV_QPT_RC, 0);
	side_init(&p.a);
	side_init(&p.b);
	side_connect(&p, &p.a, p.b.qp->qp_num);
	side_connect(&p, &p.b, p.a.qp->qp_num);
	assert_int_equal(ibv_query_srq(p.srq, &attr), 0);
	assert_true(attr.max_wr >= 8);
	assert_int_equal(ibv_destroy_srq(p.srq), EBUSY);
	side_recv(&p.b, 5, 0, 64);
	memcpy(p.a.buf + 100, "shared", 7);
	assert_int_equal(side_post(&p.a, &wr, 100, 7), 0);
	expect_ok(p.b.cq, 5);
	assert_string_equal((char *)p.b.buf, "shared");
	side_break(&p.a);
	side_break(&p.b);
	assert_int_equal(ibv_destroy_srq(p.srq), 0);
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

/* A datagram, and the answer to it made from its headers alone. */
static void test_datagrams(void **state)
{
	struct ibv_ah_attr attr = {.is_global = 1,
				   .port_num = 1,
				   .grh = {.sgid_index = 1, .hop_limit = 64}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct pair p = {0};
	struct ibv_ah *ah;
	struct ibv_wc wc;

	pair_open(&p);
	pair_make(&p, IBV_QPT_UD, 0);
	assert_int_equal(ibv_query_gid(p.ctx, 1, 1, &attr.grh.dgid), 0);
	attr.is_global = 0;
	assert_null(ibv_create_ah(p.pd, &attr));
	attr.is_global = 1;
	attr.grh.sgid_index = 9;
	assert_null(ibv_create_ah(p.pd, &attr));
	attr.grh.sgid_index = 1;
	ah = ibv_create_ah(p.pd, &attr);
	assert_non_null(ah);

	side_recv(&p.b, 9, 0, 140);
	memcpy(p.a.buf, "ping", 5);
	assert_int_equal(side_post(&p.a, &wr, 0, 5), EINVAL); /* no handle */
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = p.b.qp->qp_num;
	wr.wr.ud.remote_qkey = 0x1234;
	assert_int_equal(side_post(&p.a, &wr, 0, 5), 0);
	wc = pair_wait(p.b.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.byte_len, 45);
	assert_int_equal(wc.src_qp, p.a.qp->qp_num);
	assert_int_equal(wc.wc_flags & IBV_WC_GRH, IBV_WC_GRH);
	assert_int_equal(wc.sl, 0x0a);
	assert_string_equal((char *)p.b.buf + 40, "ping");
	expect_ok(p.a.cq, 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);

	ah = ibv_create_ah_from_wc(p.pd, &wc, (struct ibv_grh *)p.b.buf, 1);
	assert_non_null(ah);
	memset(p.b.buf, 0, 40);
	assert_null(
		ibv_create_ah_from_wc(p.pd, &wc, (struct ibv_grh *)p.b.buf, 1));
	side_recv(&p.a, 10, 0, 140);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = wc.src_qp;
	memcpy(p.b.buf, "pong", 5);
	assert_int_equal(side_post(&p.b, &wr, 0, 5), 0);
	expect_ok(p.a.cq, 10);
	assert_string_equal((char *)p.a.buf + 40, "pong");
	assert_int_equal(ibv_destroy_ah(ah), 0);
	pair_break(&p);
	pair_close(&p);
}

static void test_windows(void **state)
{
	struct ibv_send_wr wr = {.wr_id = 1, .opcode = IBV_WR_BIND_MW};
	struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED};
	struct ibv_mw *one, *two;
	struct pair p = {0};
	uint32_t old;

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	one = ibv_alloc_mw(p.pd, IBV_MW_TYPE_1);
	two = ibv_alloc_mw(p.pd, IBV_MW_TYPE_2);
	assert_non_null(one);
	assert_non_null(two);
	assert_null(ibv_alloc_mw(p.pd, 3));

	bind.bind_info = (struct ibv_mw_bind_info){
		.mr = p.b.mr,
		.addr = (uintptr_t)p.b.buf,
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	old = one->rkey;
	assert_int_equal(ibv_bind_mw(p.b.qp, one, &bind), 0);
	assert_int_not_equal(one->rkey, old);
	expect_ok(p.b.cq, 0);
	assert_int_equal(ibv_bind_mw(p.b.qp, two, &bind), EINVAL);

	wr.bind_mw.mw = one; /* type 1 has its own verb */
	wr.bind_mw.bind_info = bind.bind_info;
	assert_int_equal(side_post(&p.b, &wr, 0, 0), EINVAL);
	wr.bind_mw.mw = two;
	wr.bind_mw.rkey = ibv_inc_rkey(two->rkey);
	assert_int_equal(side_post(&p.b, &wr, 0, 0), 0);
	expect_ok(p.b.cq, 1);
	assert_int_equal(ibv_dereg_mr(p.b.mr), EBUSY);

	memcpy(p.a.buf, "window", 7);
	wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 2, 0);
	wr.wr.rdma.rkey = ibv_inc_rkey(two->rkey);
	assert_int_equal(side_post(&p.a, &wr, 0, 7), 0);
	expect_ok(p.a.cq, 2);
	assert_string_equal((char *)p.b.buf, "window");
	wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 3, 60); /* beyond it */
	wr.wr.rdma.rkey = one->rkey;
	assert_int_equal(side_post(&p.a, &wr, 0, 7), 0);
	assert_int_equal(pair_wait(p.a.cq).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(one), 0);
	assert_int_equal(ibv_dealloc_mw(two), 0);
	pair_break(&p);
	pair_close(&p);
}

static void test_masked_atomics(void **state)
{
	struct aqdv_masked_wr second = {.wr_id = 2}, wr = {.wr_id = 1}, *bad;
	struct pair p = {0};
	struct ibv_sge sge;
	uint64_t *word;

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	word = (uint64_t *)p.b.buf;
	*word = 0x1122334455667788;
	sge = (struct ibv_sge){
		.addr = (uintptr_t)p.a.buf, .length = 8, .lkey = p.a.mr->lkey};
	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	wr.remote_addr = (uintptr_t)word;
	wr.rkey = p.b.mr->rkey;
	second = wr;
	second.wr_id = 2;
	wr.next = &second;
	/* The first compares the low byte only and swaps the top one. The
	 * second does not match. */
	wr.cas.compare = 0x88;
	wr.cas.compare_mask = 0xff;
	wr.cas.swap = 0xaaull << 56;
	wr.cas.swap_mask = 0xffull << 56;
	second.cas.compare = 0x99;
	second.cas.compare_mask = 0xff;
	second.cas.swap_mask = UINT64_MAX;
	assert_int_equal(aqdv_post_masked_cas(p.a.qp, &wr, &bad), 0);
	expect_ok(p.a.cq, 1);
	expect_ok(p.a.cq, 2);
	assert_true(*word == 0xaa22334455667788);
	assert_true(*(uint64_t *)p.a.buf == 0xaa22334455667788);

	/* Two fields of 32 bits: the carry of the lower one stays there. */
	*word = 0x00000001ffffffff;
	wr.next = NULL;
	wr.faa.add = 0x0000000100000001;
	wr.faa.boundary = 1ull << 31;
	assert_int_equal(aqdv_post_masked_faa(p.a.qp, &wr, &bad), 0);
	expect_ok(p.a.cq, 1);
	assert_true(*word == 0x0000000200000000);
	wr.send_flags |= IBV_SEND_INLINE;
	assert_int_equal(aqdv_post_masked_faa(p.a.qp, &wr, &bad), -EINVAL);
	assert_ptr_equal(bad, &wr);
	pair_break(&p);
	pair_close(&p);
}

/* Completions of a queue pair vanish with it. */
static void test_reset_purges(void **state)
{
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct pair p = {0};
	struct ibv_send_wr wr;
	struct ibv_wc wc;
	struct loop *loop = loop_provider()->ctx;

	pair_open(&p);
	pair_make(&p, IBV_QPT_RC, 0);
	wr = rdma(&p.b, IBV_WR_RDMA_WRITE, 1, 0);
	assert_int_equal(side_post(&p.a, &wr, 0, 8), 0);
	loop_drive(&loop->host);
	loop_drive(&loop->host);
	assert_int_equal(ibv_modify_qp(p.a.qp, &reset, IBV_QP_STATE), 0);
	assert_int_equal(p.a.qp->state, IBV_QPS_RESET);
	assert_int_equal(ibv_poll_cq(p.a.cq, 1, &wc), 0);
	assert_int_equal(ibv_query_qp(p.a.qp, &attr, IBV_QP_STATE, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RESET);
	assert_int_equal(init.cap.max_send_wr, p.a.qp ? PAIR_DEPTH : 0);
	assert_ptr_equal(init.send_cq, p.a.cq);
	/* From RESET there is no way to RTR. */
	reset.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(p.a.qp, &reset, IBV_QP_STATE), EINVAL);
	assert_int_equal(ibv_modify_qp(p.a.qp, NULL, IBV_QP_STATE), EINVAL);
	pair_break(&p);
	pair_close(&p);
}

/* qperf knows no GIDs: without one, the peer is on this host. */
static void test_address_without_gid(void **state)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {.port_num = 1},
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
		   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		   IBV_QP_MIN_RNR_TIMER;
	struct pair p = {0};

	pair_open(&p);
	p.pd = ibv_alloc_pd(p.ctx);
	side_make(&p, &p.a, IBV_QPT_RC, 0);
	side_init(&p.a);
	attr.dest_qp_num = p.a.qp->qp_num;
	assert_int_equal(ibv_modify_qp(p.a.qp, &attr, mask), 0);
	assert_int_equal(p.a.qp->state, IBV_QPS_RTR);
	side_break(&p.a);
	assert_int_equal(ibv_dealloc_pd(p.pd), 0);
	pair_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_send_write_read),
		cmocka_unit_test(test_refused_posts),
		cmocka_unit_test(test_wr_interface),
		cmocka_unit_test(test_plain_qp_has_no_wr_interface),
		cmocka_unit_test(test_extended_cq),
		cmocka_unit_test(test_shared_receives),
		cmocka_unit_test(test_datagrams),
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_masked_atomics),
		cmocka_unit_test(test_reset_purges),
		cmocka_unit_test(test_address_without_gid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
