/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues, own and shared: limits, order, events, running dry. */
#include "core/nic_limits.h"
#include "nic_pair.h"

enum {
	PAIRS = 3,
	SRQ_WR = 16,
};

/* Several connections to one NIC whose receives come from one queue. */
struct shared {
	struct conn c;
	struct end a[PAIRS], b[PAIRS];
};

static void shared_init(struct shared *s)
{
	struct ibv_srq_attr attr = {.max_wr = SRQ_WR, .max_sge = 2};
	struct end *b = &s->c.e[1];
	unsigned i;

	conn_init(&s->c, IBV_MTU_256);
	assert_int_equal(nic_srq_create(b->pd, &attr, &b->srq_o, &b->srq), 0);
	for (i = 0; i < PAIRS; i++) {
		end_share(&s->a[i], &s->c.e[0], IBV_QPT_RC);
		end_share(&s->b[i], b, IBV_QPT_RC);
		end_connect(&s->a[i], &s->b[i], IBV_MTU_256);
		end_connect(&s->b[i], &s->a[i], IBV_MTU_256);
	}
}

static void shared_release(struct shared *s)
{
	unsigned i;

	for (i = 0; i < PAIRS; i++) {
		nic_qp_destroy(s->a[i].qp);
		nic_qp_destroy(s->b[i].qp);
	}
	conn_release(&s->c);
}

static int post_srq(struct end *e, uint64_t wr_id, uint32_t at, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)e->mem + at, len, e->key};
	struct ibv_recv_wr wr = {.wr_id = wr_id, .sg_list = &sge, .num_sge = 1};

	return nic_srq_post(e->srq, &wr);
}

static void everybody_takes_from_one_queue(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];
	unsigned i;

	shared_init(&s);
	for (i = 0; i < 9; i++)
		assert_int_equal(post_srq(b, i, i * 1024, 1024), 0);
	for (i = 0; i < 9; i++) {
		struct nic_cqe cqe;
		uint32_t len = 100 * (i + 1);

		memset(s.a[0].mem, (int)i + 1, len);
		assert_int_equal(post(&s.a[i % PAIRS], &s.b[i % PAIRS],
				      IBV_WR_SEND, i, 0, len),
				 0);
		pair_run(&s.c.p);
		expect_cqe(s.a[0].scq, i, IBV_WC_SUCCESS);
		/* Oldest first, whoever asks. */
		cqe = expect_cqe(b->rcq, i, IBV_WC_SUCCESS);
		assert_int_equal(cqe.byte_len, len);
		assert_int_equal(cqe.qp_num, nic_qp_number(s.b[i % PAIRS].qp));
		assert_ptr_equal(cqe.qp_owner, &s.b[i % PAIRS].qp_o);
		assert_int_equal(b->mem[i * 1024], i + 1);
		assert_int_equal(b->mem[i * 1024 + len - 1], i + 1);
	}
	shared_release(&s);
}

/* Two long messages at once: each keeps the receive that it took first. */
static void messages_do_not_mix(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];
	unsigned i;

	shared_init(&s);
	memset(s.a[0].mem, 0xa0, 4096);
	memset(s.a[0].mem + 4096, 0xa1, 4096);
	assert_int_equal(post_srq(b, 0, 0, 4096), 0);
	assert_int_equal(post_srq(b, 1, 4096, 4096), 0);
	/* Three frames fit on the wire: the two take turns. */
	s.c.p.capacity = 3;
	for (i = 0; i < 2; i++)
		assert_int_equal(
			post(&s.a[i], &s.b[i], IBV_WR_SEND, i, i * 4096, 4096),
			0);
	pair_run(&s.c.p);
	for (i = 0; i < 2; i++) {
		const struct nic_cqe *cqe = nic_cq_peek(b->rcq);
		const uint8_t *got;

		assert_non_null(cqe);
		assert_int_equal(cqe->status, IBV_WC_SUCCESS);
		got = b->mem + cqe->wr_id * 4096;
		assert_memory_equal(got,
				    cqe->qp_owner == &s.b[0].qp_o
					    ? s.a[0].mem
					    : s.a[0].mem + 4096,
				    4096);
		nic_cq_pop(b->rcq);
	}
	shared_release(&s);
}

static void dry_queues_say_not_ready(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];

	shared_init(&s);
	assert_int_equal(post_srq(b, 0, 0, 64), 0);
	assert_int_equal(post(&s.a[0], &s.b[0], IBV_WR_SEND, 1, 0, 8), 0);
	assert_int_equal(post(&s.a[1], &s.b[1], IBV_WR_SEND, 2, 0, 8), 0);
	pair_run(&s.c.p);
	expect_cqe(s.a[0].scq, 1, IBV_WC_SUCCESS);
	expect_no_cqe(s.a[0].scq);
	assert_int_equal(counter(b, NIC_C_rnr_naks_sent), 1);
	assert_int_equal(counter(&s.a[0], NIC_C_rnr_naks_received), 1);
	assert_int_equal(post_srq(b, 5, 0, 64), 0);
	pair_advance(&s.c.p, 30000);
	expect_cqe(s.a[0].scq, 2, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 0, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 5, IBV_WC_SUCCESS);
	shared_release(&s);
}

static void the_limit_tells_once(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];
	struct ibv_srq_attr attr = {.srq_limit = 2};
	struct ibv_srq_attr big = {.srq_limit = SRQ_WR + 1};
	unsigned i;

	shared_init(&s);
	assert_int_equal(nic_srq_modify(b->srq, &big, IBV_SRQ_LIMIT), -EINVAL);
	assert_int_equal(nic_srq_modify(b->srq, &big, IBV_SRQ_MAX_WR),
			 -EOPNOTSUPP);
	for (i = 0; i < 5; i++)
		assert_int_equal(post_srq(b, i, 0, 64), 0);
	assert_int_equal(nic_srq_modify(b->srq, &attr, IBV_SRQ_LIMIT), 0);
	nic_srq_query(b->srq, &big);
	assert_int_equal(big.srq_limit, 2);
	assert_int_equal(big.max_wr, SRQ_WR);
	assert_int_equal(big.max_sge, 2);
	for (i = 0; i < 5; i++) {
		assert_int_equal(post(&s.a[i % PAIRS], &s.b[i % PAIRS],
				      IBV_WR_SEND, i, 0, 8),
				 0);
		pair_run(&s.c.p);
		/* 4, 3, 2 left: quiet; 1 left: the event; then quiet. */
		if (i == 3)
			expect_event(&b->srq_o, IBV_EVENT_SRQ_LIMIT_REACHED);
		expect_no_event(&b->srq_o);
	}
	nic_srq_query(b->srq, &attr);
	assert_int_equal(attr.srq_limit, 0);
	shared_release(&s);
}

/* A queue pair that fails leaves the receives to the others and says that it
 * takes no more; only a message that it was in the middle of is flushed. */
static void failing_leaves_the_rest(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];
	struct wire_pkt first;
	uint8_t payload[256] = {1};

	shared_init(&s);
	assert_int_equal(post_srq(b, 0, 0, 1024), 0);
	assert_int_equal(post_srq(b, 1, 0, 1024), 0);
	first = packet(&s.a[0], &s.b[0], WIRE_RC_SEND_FIRST, END_PSN);
	first.payload = payload;
	first.payload_len = 256;
	inject(b, &first);
	qp_to(s.b[0].qp, IBV_QPS_ERR);
	expect_cqe(b->rcq, 0, IBV_WC_WR_FLUSH_ERR);
	expect_no_cqe(b->rcq);
	expect_event(&s.b[0].qp_o, IBV_EVENT_QP_LAST_WQE_REACHED);
	qp_to(s.b[0].qp, IBV_QPS_ERR);
	expect_no_event(&s.b[0].qp_o); /* once */
	assert_int_equal(post(&s.a[1], &s.b[1], IBV_WR_SEND, 7, 0, 8), 0);
	s.c.p.tail = s.c.p.head - 1; /* without what b[0] had to say */
	pair_run(&s.c.p);
	expect_cqe(b->rcq, 1, IBV_WC_SUCCESS);
	expect_no_event(&s.b[1].qp_o);
	shared_release(&s);
}

static void creation_is_validated(void **state)
{
	static const struct {
		uint32_t wr, sge;
		int err;
	} table[] = {
		{0, 1, -EINVAL},
		{NIC_SRQ_WR_MAX + 1, 1, -EINVAL},
		{1, NIC_SGE_MAX + 1, -EINVAL},
		{1, 0, 0},
		{3, NIC_SGE_MAX, 0},
		{NIC_SRQ_WR_MAX, 1, 0},
	};
	struct conn c;
	struct end *b = &c.e[1];
	unsigned i, n;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct ibv_srq_attr attr = {.max_wr = table[i].wr,
					    .max_sge = table[i].sge};
		struct nic_srq *srq;

		assert_int_equal(nic_srq_create(b->pd, &attr, &b->srq_o, &srq),
				 table[i].err);
		if (table[i].err)
			continue;
		b->srq = srq;
		for (n = 0; n < table[i].wr; n++)
			assert_int_equal(post_srq(b, n, 0, 1), 0);
		assert_int_equal(post_srq(b, n, 0, 1), -ENOMEM);
		b->srq = NULL;
		assert_int_equal(nic_pd_destroy(b->pd), -EBUSY);
		assert_int_equal(nic_srq_destroy(srq), 0);
	}
	conn_release(&c);
}

static void receive_requests_are_validated(void **state)
{
	struct shared s;
	struct end *b = &s.c.e[1];
	struct ibv_sge sge[END_SGE + 1] = {{0}};
	struct ibv_recv_wr wr = {.sg_list = sge};

	shared_init(&s);
	wr.num_sge = -1;
	assert_int_equal(nic_srq_post(b->srq, &wr), -EINVAL);
	assert_int_equal(nic_qp_post_recv(b->qp, &wr), -EINVAL);
	wr.num_sge = 3; /* the shared queue has two */
	assert_int_equal(nic_srq_post(b->srq, &wr), -EINVAL);
	wr.num_sge = END_SGE + 1;
	assert_int_equal(nic_qp_post_recv(b->qp, &wr), -EINVAL);
	/* Not past the queue that all share. */
	wr.num_sge = 0;
	assert_int_equal(nic_qp_post_recv(s.b[0].qp, &wr), -EINVAL);
	assert_int_equal(nic_srq_destroy(b->srq), -EBUSY);
	/* No buffers at all are fine for an empty message. */
	assert_int_equal(nic_srq_post(b->srq, &wr), 0);
	assert_int_equal(post(&s.a[0], &s.b[0], IBV_WR_SEND, 3, 0, 0), 0);
	pair_run(&s.c.p);
	expect_cqe(s.a[0].scq, 3, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 0, IBV_WC_SUCCESS);
	shared_release(&s);
}

/* Positions come round: more receives than the queue has places. */
static void queues_go_round(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 3 * END_WR; i++) {
		assert_int_equal(post_recv(b, i, i * 8, 8), 0);
		*(uint64_t *)(void *)(a->mem + i * 8) = i + 1;
		assert_int_equal(post(a, b, IBV_WR_SEND, i, i * 8, 8), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		expect_cqe(b->rcq, i, IBV_WC_SUCCESS);
		assert_int_equal(*(uint64_t *)(void *)(b->mem + i * 8), i + 1);
	}
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(everybody_takes_from_one_queue),
		cmocka_unit_test(messages_do_not_mix),
		cmocka_unit_test(dry_queues_say_not_ready),
		cmocka_unit_test(the_limit_tells_once),
		cmocka_unit_test(failing_leaves_the_rest),
		cmocka_unit_test(creation_is_validated),
		cmocka_unit_test(receive_requests_are_validated),
		cmocka_unit_test(queues_go_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
