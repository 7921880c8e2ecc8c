/* SPDX-License-Identifier: Apache-2.0 */
/* The short ways of READs and messages: what they leave to the long one, and
 * that a key that changes between their steps is asked again. */
#include <string.h>

#include "core/qp_priv.h"
#include "core/wqe_shape.h"
#include "nic_pair.h"

enum {
	LEN = 64,
	WARM = 6,
};

/* Until requests and answers of this size have their stamps. */
static void warm(struct conn *c)
{
	for (unsigned i = 0; i < WARM; i++) {
		assert_int_equal(
			post(&c->e[0], &c->e[1], IBV_WR_RDMA_READ, i, 0, LEN),
			0);
		pair_run(&c->p);
		expect_cqe(c->e[0].scq, i, IBV_WC_SUCCESS);
	}
}

/* Queues `n` READs and kicks once, so that all but the first are quick. */
static void post_many(struct conn *c, unsigned n, uint32_t len, int flags)
{
	struct end *a = &c->e[0], *b = &c->e[1];

	for (unsigned i = 0; i < n; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)a->mem + i * LEN,
			.length = len,
			.lkey = a->key,
		};
		struct ibv_send_wr wr = {
			.wr_id = i,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_RDMA_READ,
			.send_flags = (unsigned)(IBV_SEND_SIGNALED | flags),
			.wr.rdma = {(uintptr_t)b->mem + i * LEN, b->key},
		};

		assert_int_equal(nic_qp_post_send(a->qp, &wr, NULL), 0);
	}
	nic_qp_kick(a->qp);
}

static void fill(struct conn *c)
{
	for (uint32_t i = 0; i < END_RD_ATOMIC * LEN; i++) {
		c->e[0].mem[i] = 0;
		c->e[1].mem[i] = (uint8_t)(i * 7 + 1);
	}
}

static void test_data(void **state)
{
	static const uint32_t sizes[] = {64, 1, 8, 63, 0};
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	for (unsigned s = 0; s < ARRAY_LEN(sizes); s++) {
		fill(&c);
		post_many(&c, END_RD_ATOMIC, sizes[s], 0);
		pair_run(&c.p);
		for (unsigned i = 0; i < END_RD_ATOMIC; i++) {
			struct nic_cqe cqe =
				expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);

			assert_int_equal(cqe.byte_len, sizes[s]);
			assert_int_equal(cqe.opcode, IBV_WC_RDMA_READ);
			assert_memory_equal(c.e[0].mem + i * LEN,
					    c.e[1].mem + i * LEN, sizes[s]);
		}
		expect_no_cqe(c.e[0].scq);
	}
	conn_release(&c);
}

/* More than the peer has resources for, and fenced ones: they wait. */
static void test_waits(void **state)
{
	struct conn c;
	uint32_t sent;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	sent = c.p.head;
	post_many(&c, END_RD_ATOMIC + 3, LEN, 0);
	assert_int_equal(c.p.head - sent, END_RD_ATOMIC);
	pair_run(&c.p);
	for (unsigned i = 0; i < END_RD_ATOMIC + 3; i++)
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
	sent = c.p.head;
	post_many(&c, 2, LEN, IBV_SEND_FENCE);
	assert_int_equal(c.p.head - sent, 1);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	conn_release(&c);
}

/* A wire that takes no more in the middle of a batch. */
static void test_full(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	fill(&c);
	c.p.capacity = 3;
	post_many(&c, END_RD_ATOMIC, LEN, 0);
	assert_int_equal(c.p.head - c.p.tail, 3);
	assert_true(nic_has_ready(c.e[0].nic));
	c.p.capacity = 1024;
	pair_run(&c.p);
	for (unsigned i = 0; i < END_RD_ATOMIC; i++)
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
	assert_memory_equal(c.e[0].mem, c.e[1].mem, END_RD_ATOMIC * LEN);
	conn_release(&c);
}

/* A local key that is wrong from the start, in the second request. */
static void test_local_key(void **state)
{
	struct conn c;
	uint32_t right;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	right = c.e[0].key;
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 1, 0, LEN),
			 0);
	c.e[0].key ^= 1;
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 2, 0, LEN),
			 0);
	c.e[0].key = right;
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 2, IBV_WC_LOC_PROT_ERR);
	assert_true(counter(&c.e[0], NIC_C_local_protection) > 0);
	conn_release(&c);
}

static void rereg(struct end *e, int access)
{
	struct nic_mr_attr attr = {.access = access};

	assert_int_equal(
		nic_mr_rereg(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, &attr),
		0);
}

/* The right to write is taken away while the answer is on its way. */
static void test_local_revoked(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	fill(&c);
	post_many(&c, 2, LEN, 0);
	while (c.p.queue[c.p.tail % PAIR_QUEUE].to == 1 && c.p.tail != c.p.head)
		pair_deliver(&c.p);
	(void)nic_flush(c.e[1].nic);
	rereg(&c.e[0], IBV_ACCESS_REMOTE_READ);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_LOC_PROT_ERR);
	expect_cqe(c.e[0].scq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(c.e[0].mem[0], 0);
	conn_release(&c);
}

/* The peer's key is taken back between the request and its answer, which wait
 * for each other because the wire is full. */
static void test_remote_revoked(void **state)
{
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	fill(&c);
	post_many(&c, 2, LEN, 0);
	pair_deliver(&c.p);
	pair_deliver(&c.p);
	rereg(&c.e[1], IBV_ACCESS_LOCAL_WRITE);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_REM_ACCESS_ERR);
	expect_cqe(c.e[0].scq, 1, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(c.e[0].mem[0], 0);
	assert_int_equal(counter(&c.e[1], NIC_C_deny_access), 1);
	conn_release(&c);
}

/* Requests that were rewritten after they were posted. */
static void test_rewritten(void **state)
{
	struct conn c;
	struct plain_wqe *wqe;
	struct sendq *q;

	conn_init(&c, IBV_MTU_1024);
	warm(&c);
	fill(&c);
	/* The third waits for the fence of the second, and meanwhile becomes a
	 * WRITE. */
	q = &c.e[0].qp->sq;
	post_many(&c, 1, LEN, 0);
	post_many(&c, 1, LEN, IBV_SEND_FENCE);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 9, 128, LEN),
			 0);
	wqe = sendq_seg(q, sendq_slot(q, q->head - 1)->block *
				   (uint32_t)WQE_BLOCK_BYTES);
	wqe->ctrl.opmod_idx_opcode = be32_put(WQE_WRITE);
	memset(c.e[0].mem + 128, 0x5a, LEN);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 0, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 9, IBV_WC_SUCCESS);
	assert_int_equal(c.e[1].mem[128], 0x5a);
	conn_release(&c);
}

/* ---- messages ----------------------------------------------------------- */

/* A message of `pieces` of LEN bytes each, from `at` on; its value is wr_id. */
static void send_message(struct conn *c, enum ibv_wr_opcode opcode,
			 uint64_t wr_id, uint32_t at, int pieces,
			 unsigned flags)
{
	struct end *a = &c->e[0], *b = &c->e[1];
	struct ibv_sge sge[2];
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = pieces,
		.opcode = opcode,
		.imm_data = (uint32_t)wr_id,
		.send_flags = IBV_SEND_SIGNALED | flags,
		.wr.rdma = {(uintptr_t)b->mem + at, b->key},
	};

	for (int i = 0; i < pieces; i++)
		sge[i] = (struct ibv_sge){
			.addr = (uintptr_t)a->mem + at + (uint32_t)i * LEN,
			.length = LEN,
			.lkey = a->key,
		};
	assert_int_equal(post_recv(b, wr_id, at, 2 * LEN), 0);
	assert_int_equal(nic_qp_post_send(a->qp, &wr, NULL), 0);
	nic_qp_kick(a->qp);
}

static void expect_message(struct conn *c, enum ibv_wr_opcode opcode,
			   uint64_t wr_id, uint32_t at, int pieces)
{
	uint32_t bytes = (uint32_t)pieces * LEN;
	bool writes = opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
	struct nic_cqe cqe = expect_cqe(c->e[1].rcq, wr_id, IBV_WC_SUCCESS);

	assert_int_equal(cqe.byte_len, bytes);
	assert_int_equal(cqe.opcode,
			 writes ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV);
	assert_int_equal(cqe.wc_flags,
			 opcode == IBV_WR_SEND ? 0 : IBV_WC_WITH_IMM);
	if (opcode != IBV_WR_SEND)
		assert_int_equal(cqe.imm_or_key, wr_id);
	assert_memory_equal(c->e[0].mem + at, c->e[1].mem + at, bytes);
	expect_cqe(c->e[0].scq, wr_id, IBV_WC_SUCCESS);
}

/* All sizes in turns, so that each has its stamp after the first ones. */
static void test_messages(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned i = 0; i < 8 * 9; i++) {
		enum ibv_wr_opcode opcode = opcodes[i / 8 % 3];
		int pieces = (int)(i / 24);
		unsigned flags = i % 8 == 6 ? IBV_SEND_SOLICITED : 0;

		fill(&c);
		for (uint32_t k = 0; k < 4 * LEN; k++)
			c.e[0].mem[k] = (uint8_t)(i + k);
		send_message(&c, opcode, i, LEN, pieces, flags);
		pair_run(&c.p);
		expect_message(&c, opcode, i, LEN, pieces);
	}
	expect_no_cqe(c.e[1].rcq);
	conn_release(&c);
}

/* What was sent the short way and is lost comes again the long way, once. */
static void test_lost_messages(void **state)
{
	static const enum ibv_wr_opcode opcodes[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM};
	struct conn c;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned i = 0; i < 30; i++) {
		enum ibv_wr_opcode opcode = opcodes[i / 10];

		c.e[0].mem[LEN] = (uint8_t)i;
		send_message(&c, opcode, i, LEN, 1, 0);
		if (i % 10 > 4)
			c.p.tail = c.p.head;
		pair_run(&c.p);
		for (unsigned k = 0; k < 4; k++)
			pair_advance(&c.p, 100000000);
		expect_message(&c, opcode, i, LEN, 1);
		expect_no_cqe(c.e[1].rcq);
	}
	assert_true(counter(&c.e[0], NIC_C_retries) >= 15);
	conn_release(&c);
}

/* A key that is wrong at either end: nothing is written, and both learn it. */
static void test_message_keys(void **state)
{
	struct conn c;

	for (unsigned far = 0; far < 2; far++) {
		conn_init(&c, IBV_MTU_1024);
		for (unsigned i = 0; i < WARM; i++) {
			send_message(&c, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, 1,
				     0);
			pair_run(&c.p);
			expect_message(&c, IBV_WR_RDMA_WRITE_WITH_IMM, i, 0, 1);
		}
		c.e[0].mem[0] = 1;
		c.e[1].mem[0] = 0;
		c.e[far].key ^= 1;
		send_message(&c, IBV_WR_RDMA_WRITE_WITH_IMM, 9, 0, 1, 0);
		c.e[far].key ^= 1;
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 9,
			   far ? IBV_WC_REM_ACCESS_ERR : IBV_WC_LOC_PROT_ERR);
		assert_int_equal(c.e[1].mem[0], 0);
		conn_release(&c);
	}
}

/* Without a receive they wait for one. */
static void test_message_waits(void **state)
{
	struct conn c;
	struct nic_cqe cqe;

	conn_init(&c, IBV_MTU_1024);
	for (unsigned i = 0; i < WARM; i++) {
		send_message(&c, IBV_WR_SEND_WITH_IMM, i, 0, 0, 0);
		pair_run(&c.p);
		expect_message(&c, IBV_WR_SEND_WITH_IMM, i, 0, 0);
	}
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_SEND_WITH_IMM, 7, 0, 0),
			 0);
	pair_run(&c.p);
	expect_no_cqe(c.e[1].rcq);
	assert_int_equal(post_recv(&c.e[1], 8, 0, 0), 0);
	for (unsigned k = 0; k < 100; k++)
		pair_advance(&c.p, 10000000);
	cqe = expect_cqe(c.e[1].rcq, 8, IBV_WC_SUCCESS);
	assert_int_equal(cqe.byte_len, 0);
	expect_cqe(c.e[0].scq, 7, IBV_WC_SUCCESS);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_data),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_local_key),
		cmocka_unit_test(test_local_revoked),
		cmocka_unit_test(test_remote_revoked),
		cmocka_unit_test(test_rewritten),
		cmocka_unit_test(test_messages),
		cmocka_unit_test(test_lost_messages),
		cmocka_unit_test(test_message_keys),
		cmocka_unit_test(test_message_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
