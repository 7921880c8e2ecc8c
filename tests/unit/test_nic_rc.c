/* SPDX-License-Identifier: Apache-2.0 */
/* Reliable connections: every operation, every loss, every error. */
#include "nic_pair.h"

static const uint32_t sizes[] = {0,   1,   3,	 63,   64,    255,
				 256, 257, 1024, 5000, 65536, 100001};

static void fill(uint8_t *p, uint32_t len, unsigned seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static void moves_every_size_at_every_mtu(void **state)
{
	unsigned m, s;

	for (m = IBV_MTU_256; m <= IBV_MTU_4096; m++) {
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];

		conn_init(&c, (enum ibv_mtu)m);
		for (s = 0; s < ARRAY_LEN(sizes); s++) {
			uint32_t n = sizes[s];
			struct nic_cqe cqe;

			fill(a->mem, n, s);
			memset(b->mem, 0, END_BYTES);
			assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, n),
					 0);
			pair_run(&c.p);
			expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
			assert_memory_equal(a->mem, b->mem, END_BYTES / 2);

			memset(a->mem, 0, END_BYTES);
			assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, n),
					 0);
			pair_run(&c.p);
			expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
			assert_memory_equal(a->mem, b->mem, END_BYTES / 2);

			memset(b->mem, 0, END_BYTES);
			assert_int_equal(post_recv(b, 9, 0, END_BYTES), 0);
			assert_int_equal(post(a, b, IBV_WR_SEND, 3, 0, n), 0);
			pair_run(&c.p);
			expect_cqe(a->scq, 3, IBV_WC_SUCCESS);
			cqe = expect_cqe(b->rcq, 9, IBV_WC_SUCCESS);
			assert_int_equal(cqe.byte_len, n);
			assert_int_equal(cqe.opcode, IBV_WC_RECV);
			assert_memory_equal(a->mem, b->mem, END_BYTES / 2);
		}
		assert_int_equal(nic_outstanding(a->nic), 0);
		conn_release(&c);
	}
}

static void connects_over_ipv6(void **state)
{
	struct conn c;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 2; i++) {
		struct ibv_qp_attr av = {
			.ah_attr = {.is_global = 1, .port_num = 1}};

		av.ah_attr.grh.sgid_index = 1;
		memcpy(av.ah_attr.grh.dgid.raw,
		       nic_get_config(c.e[!i].nic)->gids[1].ip, 16);
		qp_to(c.e[i].qp, IBV_QPS_SQD);
		assert_int_equal(nic_qp_modify(c.e[i].qp, &av, IBV_QP_AV), 0);
		qp_to(c.e[i].qp, IBV_QPS_RTS);
	}
	fill(c.e[0].mem, 1000, 1);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 1000),
			 0);
	assert_int_equal(c.p.queue[c.p.tail % PAIR_QUEUE].bytes[14] >> 4, 6);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_memory_equal(c.e[0].mem, c.e[1].mem, 1000);
	memset(c.e[0].mem, 0, 1000);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 2, 0, 1000),
			 0);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
	assert_memory_equal(c.e[0].mem, c.e[1].mem, 1000);
	conn_release(&c);
}

static void atomics_return_the_former_value(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	uint64_t *word, *result;

	conn_init(&c, IBV_MTU_1024);
	word = (uint64_t *)(void *)(b->mem + 64);
	result = (uint64_t *)(void *)(a->mem + 64);
	*word = 41;
	assert_int_equal(post(a, b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 64, 8), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(*result, 41);
	assert_int_equal(*word, 42);
	/* post() compares with 1 and swaps 7 in. */
	assert_int_equal(post(a, b, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 64, 8), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(*result, 42);
	assert_int_equal(*word, 42);
	*word = 1;
	assert_int_equal(post(a, b, IBV_WR_ATOMIC_CMP_AND_SWP, 3, 64, 8), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 3, IBV_WC_SUCCESS);
	assert_int_equal(*word, 7);
	conn_release(&c);
}

/* Drops the n-th frame of an exchange, for every n: each operation must still
 * happen exactly once, after the timer or a NAK. */
static void survives_the_loss_of_any_frame(void **state)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_READ, IBV_WR_SEND,
						 IBV_WR_ATOMIC_FETCH_AND_ADD};
	unsigned o, lost;

	for (o = 0; o < ARRAY_LEN(ops); o++) {
		for (lost = 0; lost < 12; lost++) {
			uint32_t len = ops[o] == IBV_WR_ATOMIC_FETCH_AND_ADD
					       ? 8
					       : 1000;
			struct conn c;
			struct end *a = &c.e[0], *b = &c.e[1];
			unsigned seen = 0, i;

			conn_init(&c, IBV_MTU_256);
			fill(ops[o] == IBV_WR_RDMA_READ ? b->mem : a->mem, 4096,
			     o);
			*(uint64_t *)(void *)b->mem = 5;
			*(uint64_t *)(void *)a->mem = 5;
			for (i = 0; i < 3; i++) {
				assert_int_equal(
					post_recv(b, 10 + i, i * 1024, 1024),
					0);
				assert_int_equal(post(a, b, ops[o], i,
						      len == 8 ? 0 : i * 1024,
						      len),
						 0);
			}
			for (i = 0; i < 10; i++) {
				while (c.p.tail != c.p.head) {
					if (seen++ == lost)
						c.p.tail++;
					else
						pair_deliver(&c.p);
					nic_flush(a->nic);
					nic_flush(b->nic);
				}
				pair_advance(&c.p, 5000000);
			}
			for (i = 0; i < 3; i++)
				expect_cqe(a->scq, i, IBV_WC_SUCCESS);
			expect_no_cqe(a->scq);
			if (len == 8)
				assert_int_equal(*(uint64_t *)(void *)b->mem,
						 8);
			else
				for (i = 0; i < 3; i++)
					assert_memory_equal(a->mem + i * 1024,
							    b->mem + i * 1024,
							    1000);
			if (ops[o] == IBV_WR_SEND)
				for (i = 0; i < 3; i++)
					expect_cqe(b->rcq, 10 + i,
						   IBV_WC_SUCCESS);
			expect_no_cqe(b->rcq);
			conn_release(&c);
		}
	}
}

static void gives_up_when_nobody_answers(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 64), 0);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 2, 0, 64), 0);
	for (i = 0; i < 10; i++) {
		c.p.tail = c.p.head; /* all lost */
		c.p.now_ns += 10000000;
		nic_tick(a->nic);
		nic_flush(a->nic);
	}
	expect_cqe(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	expect_cqe(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
	expect_no_cqe(a->scq);
	assert_int_equal(nic_qp_state(a->qp), IBV_QPS_ERR);
	assert_int_equal(nic_counter_get(a->nic, NIC_C_timeouts), 4);
	c.p.tail = c.p.head;
	conn_release(&c);
}

static void waits_for_a_receive(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	conn_init(&c, IBV_MTU_256);
	fill(a->mem, 1000, 3);
	assert_int_equal(post(a, b, IBV_WR_SEND, 1, 0, 1000), 0);
	pair_run(&c.p);
	expect_no_cqe(a->scq);
	assert_int_equal(nic_counter_get(b->nic, NIC_C_rnr_naks_sent), 1);
	assert_int_equal(post_recv(b, 5, 0, 4096), 0);
	pair_advance(&c.p, 30000);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	expect_cqe(b->rcq, 5, IBV_WC_SUCCESS);
	assert_memory_equal(a->mem, b->mem, 1000);
	/* And not for ever. */
	assert_int_equal(post(a, b, IBV_WR_SEND, 2, 0, 10), 0);
	pair_run(&c.p);
	pair_advance(&c.p, 30000);
	pair_advance(&c.p, 30000);
	expect_no_cqe(a->scq);
	pair_advance(&c.p, 30000);
	pair_advance(&c.p, 30000);
	expect_cqe(a->scq, 2, IBV_WC_RNR_RETRY_EXC_ERR);
	conn_release(&c);
}

/* Whatever follows a request that must wait is dropped without a word: NAKs for
 * it used up the retries of qperf's rc_bi_bw. */
static void a_waiting_peer_keeps_its_retries(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 8; i++)
		assert_int_equal(post(a, b, IBV_WR_SEND, i, 0, 16 * 256), 0);
	pair_run(&c.p);
	assert_int_equal(nic_counter_get(b->nic, NIC_C_rnr_naks_sent), 1);
	assert_int_equal(nic_counter_get(b->nic, NIC_C_naks_sent), 0);
	for (i = 0; i < 8; i++)
		assert_int_equal(post_recv(b, i, 0, 16 * 256), 0);
	pair_advance(&c.p, 30000);
	for (i = 0; i < 8; i++)
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	conn_release(&c);
}

struct refusal {
	const char *what;
	enum ibv_wr_opcode opcode;
	uint64_t addr_off;
	uint32_t key_xor;
	uint32_t len;
	int qp_access;
	enum ibv_wc_status status;
	enum nic_counter counter;
};

static void refuses_what_was_not_granted(void **state)
{
	static const struct refusal table[] = {
		{"wrong tag", IBV_WR_RDMA_READ, 0, 1, 8, 15,
		 IBV_WC_REM_ACCESS_ERR, NIC_C_deny_key},
		{"wrong key", IBV_WR_RDMA_WRITE, 0, 0x10000, 8, 15,
		 IBV_WC_REM_ACCESS_ERR, NIC_C_deny_key},
		{"past the end", IBV_WR_RDMA_READ, END_BYTES - 4, 0, 8, 15,
		 IBV_WC_REM_ACCESS_ERR, NIC_C_deny_bounds},
		{"before the start", IBV_WR_RDMA_WRITE, (uint64_t)-8, 0, 8, 15,
		 IBV_WC_REM_ACCESS_ERR, NIC_C_deny_bounds},
		{"far away", IBV_WR_RDMA_WRITE, 1ull << 62, 0, 8, 15,
		 IBV_WC_REM_ACCESS_ERR, NIC_C_deny_bounds},
		{"misaligned", IBV_WR_ATOMIC_FETCH_AND_ADD, 4, 0, 8, 15,
		 IBV_WC_REM_INV_REQ_ERR, NIC_C_deny_align},
		{"no read right", IBV_WR_RDMA_READ, 0, 0, 8, 1 | 2,
		 IBV_WC_REM_INV_REQ_ERR, NIC_C_deny_qp_access},
		{"no write right", IBV_WR_RDMA_WRITE, 0, 0, 8, 1 | 4,
		 IBV_WC_REM_INV_REQ_ERR, NIC_C_deny_qp_access},
		{"no atomic right", IBV_WR_ATOMIC_CMP_AND_SWP, 0, 0, 8, 7,
		 IBV_WC_REM_INV_REQ_ERR, NIC_C_deny_qp_access},
	};
	unsigned t;

	for (t = 0; t < ARRAY_LEN(table); t++) {
		const struct refusal *r = &table[t];
		struct conn c;
		struct end *a = &c.e[0], *b = &c.e[1];
		struct end wrong;
		struct ibv_qp_attr attr = {.qp_access_flags =
						   (unsigned)r->qp_access};

		conn_init(&c, IBV_MTU_256);
		wrong = *b;
		wrong.mem = (uint8_t *)((uintptr_t)b->mem + r->addr_off);
		wrong.key ^= r->key_xor;
		assert_int_equal(
			nic_qp_modify(b->qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
		memset(b->mem, 0x5a, END_BYTES);
		assert_int_equal(post(a, &wrong, r->opcode, 1, 0, r->len), 0);
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 2, 0, 64), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, 1, r->status);
		expect_cqe(a->scq, 2, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(nic_counter_get(b->nic, r->counter), 1);
		assert_int_equal(nic_qp_state(b->qp), IBV_QPS_ERR);
		assert_int_equal(b->mem[0], 0x5a);
		assert_int_equal(b->mem[63], 0x5a);
		conn_release(&c);
	}
}

static void receive_errors_reach_both_ends(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_sge bad = {.addr = 1, .length = 100, .lkey = 0x12345678};
	struct ibv_recv_wr wr = {.wr_id = 4, .sg_list = &bad, .num_sge = 1};

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(post_recv(b, 3, 0, 100), 0);
	assert_int_equal(post_recv(b, 4, 0, 100), 0);
	assert_int_equal(post(a, b, IBV_WR_SEND, 1, 0, 101), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_REM_INV_REQ_ERR);
	expect_cqe(b->rcq, 3, IBV_WC_LOC_LEN_ERR);
	expect_cqe(b->rcq, 4, IBV_WC_WR_FLUSH_ERR);
	conn_release(&c);

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(nic_qp_post_recv(b->qp, &wr), 0);
	assert_int_equal(post(a, b, IBV_WR_SEND, 1, 0, 10), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_REM_OP_ERR);
	expect_cqe(b->rcq, 4, IBV_WC_LOC_PROT_ERR);
	conn_release(&c);
}

static void local_errors_come_in_order(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct end bad;

	conn_init(&c, IBV_MTU_256);
	bad = *a;
	bad.key ^= 0xff00;
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 64), 0);
	assert_int_equal(post(&bad, b, IBV_WR_RDMA_WRITE, 2, 0, 64), 0);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 3, 0, 64), 0);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	expect_cqe(a->scq, 2, IBV_WC_LOC_PROT_ERR);
	expect_cqe(a->scq, 3, IBV_WC_WR_FLUSH_ERR);
	conn_release(&c);
}

/* More work than the wire takes: everything waits its turn and arrives. */
static void full_path_delays_and_loses_nothing(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	c.p.capacity = 3;
	fill(a->mem, END_BYTES, 1);
	for (i = 0; i < 20; i++)
		assert_int_equal(
			post(a, b, i % 2 ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			     i, i * 8192, 8000),
			0);
	pair_run(&c.p);
	for (i = 0; i < 20; i++)
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	for (i = 0; i < 20; i++)
		assert_memory_equal(a->mem + i * 8192, b->mem + i * 8192, 8000);
	assert_true(nic_counter_get(a->nic, NIC_C_tx_stalls) > 0);
	conn_release(&c);
}

static void queue_limits_are_kept(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < 64; i++)
		assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, i, 0, 8), 0);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 64, 0, 8), -ENOMEM);
	for (i = 0; i < 64; i++)
		assert_int_equal(post_recv(a, i, 0, 8), 0);
	assert_int_equal(post_recv(a, 64, 0, 8), -ENOMEM);
	pair_run(&c.p);
	for (i = 0; i < 64; i++)
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
	conn_release(&c);
}

static void reset_takes_everything_back(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

	conn_init(&c, IBV_MTU_256);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 64), 0);
	pair_run(&c.p);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 2, 0, 64), 0);
	assert_int_equal(nic_qp_modify(a->qp, &attr, IBV_QP_STATE), 0);
	expect_no_cqe(a->scq);
	assert_int_equal(nic_outstanding(a->nic), 0);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 3, 0, 64), -EINVAL);
	pair_run(&c.p);
	conn_release(&c);
}

/* Without a retry timer nobody else would ever say so. */
static void set_no_timeout(struct end *e)
{
	struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};

	assert_int_equal(nic_qp_modify(e->qp, &sqd, IBV_QP_STATE), 0);
	assert_int_equal(
		nic_qp_modify(e->qp, &sqd, IBV_QP_STATE | IBV_QP_TIMEOUT), 0);
	assert_int_equal(nic_qp_modify(e->qp, &rts, IBV_QP_STATE), 0);
}

static void a_peer_that_is_gone_is_an_error(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct env_path *path = (struct env_path *)&c.p.side[1];

	conn_init(&c, IBV_MTU_256);
	set_no_timeout(a);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	nic_path_down(a->nic, path);
	expect_cqe(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	conn_release(&c);

	conn_init(&c, IBV_MTU_256);
	set_no_timeout(a);
	nic_path_down(a->nic, path);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	expect_cqe(a->scq, 1, IBV_WC_RETRY_EXC_ERR);
	conn_release(&c);

	/* With one, the answer may be on its way still. */
	conn_init(&c, IBV_MTU_256);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 1, 0, 64), 0);
	nic_path_down(a->nic, path);
	expect_no_cqe(a->scq);
	pair_run(&c.p);
	expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	conn_release(&c);
}

/* A source that guesses keys is not listened to for a while. */
static void guessing_is_blocked(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < NIC_KEY_FAILURES; i++) {
		struct end wrong = *b;

		wrong.key ^= 0x100 + i * 0x100;
		assert_int_equal(post(a, &wrong, IBV_WR_RDMA_READ, i, 0, 8), 0);
		pair_run(&c.p);
		expect_cqe(a->scq, i, IBV_WC_REM_ACCESS_ERR);
		assert_int_equal(nic_qp_modify(a->qp, &reset, IBV_QP_STATE), 0);
		assert_int_equal(nic_qp_modify(b->qp, &reset, IBV_QP_STATE), 0);
		end_connect(a, b, IBV_MTU_256);
		end_connect(b, a, IBV_MTU_256);
	}
	assert_int_equal(nic_counter_get(b->nic, NIC_C_sources_blocked), 1);
	assert_int_equal(post(a, b, IBV_WR_RDMA_READ, 50, 0, 8), 0);
	pair_run(&c.p);
	expect_no_cqe(a->scq);
	assert_true(nic_counter_get(b->nic, NIC_C_drop_blocked) > 0);
	/* The block ends before the retries do only for patient peers. */
	c.p.now_ns += NIC_BLOCK_NS;
	nic_tick(a->nic);
	pair_run(&c.p);
	expect_cqe(a->scq, 50, IBV_WC_SUCCESS);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(moves_every_size_at_every_mtu),
		cmocka_unit_test(connects_over_ipv6),
		cmocka_unit_test(atomics_return_the_former_value),
		cmocka_unit_test(survives_the_loss_of_any_frame),
		cmocka_unit_test(gives_up_when_nobody_answers),
		cmocka_unit_test(waits_for_a_receive),
		cmocka_unit_test(a_waiting_peer_keeps_its_retries),
		cmocka_unit_test(refuses_what_was_not_granted),
		cmocka_unit_test(receive_errors_reach_both_ends),
		cmocka_unit_test(local_errors_come_in_order),
		cmocka_unit_test(full_path_delays_and_loses_nothing),
		cmocka_unit_test(queue_limits_are_kept),
		cmocka_unit_test(reset_takes_everything_back),
		cmocka_unit_test(a_peer_that_is_gone_is_an_error),
		cmocka_unit_test(guessing_is_blocked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
