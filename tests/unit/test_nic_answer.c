/* SPDX-License-Identifier: Apache-2.0 */
/* A requester whose peer answers badly, or whose memory goes away meanwhile. */
#include "core/nic_limits.h"
#include "nic_peer.h"

/* ---- responses ------------------------------------------------------------
 */

static void responses_to_nothing(void **state)
{
	struct conn c;
	unsigned i;

	begin(&c);
	send_ack(&c, WIRE_ACK_UNLIMITED, 0);
	send_ack(&c, WIRE_NAK_ACCESS, 0);
	send_ack(&c, WIRE_RNR_NAK, (uint32_t)-1);
	send_ack(&c, WIRE_NAK_PSN, 1 << 22);
	send_response(&c, WIRE_RC_READ_RESP_ONLY, 0, 8);
	send_response(&c, WIRE_RC_READ_RESP_MIDDLE, 0, MTU);
	send_response(&c, WIRE_RC_ATOMIC_ACK, 0, 0);
	assert_int_equal(counter(&c.e[0], NIC_C_drop_response), 7);
	/* Something is sent now, but these numbers are not of it. */
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 600),
			 0);
	for (i = 0; i < 2; i++) {
		send_ack(&c, WIRE_ACK_UNLIMITED, i ? 3 : (uint32_t)-1);
		send_ack(&c, WIRE_NAK_OP, i ? 3 : (uint32_t)-1);
	}
	send_response(&c, WIRE_RC_READ_RESP_ONLY, 1, 8); /* not a READ */
	send_response(&c, WIRE_RC_ATOMIC_ACK, 0, 0);
	assert_int_equal(counter(&c.e[0], NIC_C_drop_response), 13);
	assert_int_equal(nic_qp_state(c.e[0].qp), IBV_QPS_RTS);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(counter(&c.e[0], NIC_C_retries), 0);
	done(&c);
}

static void naks_end_the_request(void **state)
{
	static const struct {
		uint8_t syndrome;
		enum ibv_wc_status status;
	} table[] = {
		{WIRE_NAK_INVALID, IBV_WC_REM_INV_REQ_ERR},
		{WIRE_NAK_ACCESS, IBV_WC_REM_ACCESS_ERR},
		{WIRE_NAK_OP, IBV_WC_REM_OP_ERR},
		{0x64, IBV_WC_BAD_RESP_ERR},
		{0x7f, IBV_WC_BAD_RESP_ERR},
		{0x40, IBV_WC_BAD_RESP_ERR}, /* reserved */
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct conn c;

		begin(&c);
		assert_int_equal(
			post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
		assert_int_equal(
			post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 2, 0, 8), 0);
		assert_int_equal(
			post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 3, 0, 8), 0);
		send_ack(&c, table[i].syndrome, 1);
		/* What is before it arrived. */
		expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
		expect_cqe(c.e[0].scq, 2, table[i].status);
		expect_cqe(c.e[0].scq, 3, IBV_WC_WR_FLUSH_ERR);
		assert_int_equal(nic_qp_state(c.e[0].qp), IBV_QPS_ERR);
		c.p.tail = c.p.head;
		done(&c);
	}
}

struct bad_response {
	const char *what;
	enum ibv_wr_opcode request;
	uint8_t opcode;
	uint32_t psn_off, len;
	enum ibv_wc_status status; /* IBV_WC_SUCCESS: dropped */
	enum nic_counter counter;
};

/* To a READ of 700 bytes in three packets, or to an atomic. */
static const struct bad_response bad_responses[] = {
	{"short", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_FIRST, 0, 255,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"long", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_FIRST, 0, 257,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"much too long", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_FIRST, 0, 4096,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"empty", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_FIRST, 0, 0,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"end too early", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_LAST, 0, 256,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"only", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_ONLY, 0, 256,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"of an atomic", IBV_WR_RDMA_READ, WIRE_RC_ATOMIC_ACK, 0, 0,
	 IBV_WC_BAD_RESP_ERR, NIC_C_completions},
	{"out of order", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_MIDDLE, 1, 256,
	 IBV_WC_SUCCESS, NIC_C_drop_multi},
	{"end first", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_LAST, 2, 188,
	 IBV_WC_SUCCESS, NIC_C_drop_multi},
	{"behind", IBV_WR_RDMA_READ, WIRE_RC_READ_RESP_LAST, 3, 188,
	 IBV_WC_SUCCESS, NIC_C_drop_response},
	{"data for an atomic", IBV_WR_ATOMIC_FETCH_AND_ADD,
	 WIRE_RC_READ_RESP_ONLY, 0, 8, IBV_WC_BAD_RESP_ERR, NIC_C_completions},
};

static void responses_keep_their_form(void **state)
{
	unsigned i, k;

	for (i = 0; i < ARRAY_LEN(bad_responses); i++) {
		const struct bad_response *r = &bad_responses[i];
		bool read = r->request == IBV_WR_RDMA_READ;
		struct conn c;

		begin(&c);
		memset(c.e[0].mem, 0x66, 8192);
		assert_int_equal(post(&c.e[0], &c.e[1], r->request, 1, 0,
				      read ? 700 : 8),
				 0);
		send_response(&c, r->opcode, r->psn_off, r->len);
		for (k = 0; k < 8192; k++)
			assert_int_equal(c.e[0].mem[k], 0x66);
		assert_int_equal(counter(&c.e[0], r->counter), 1);
		if (r->status != IBV_WC_SUCCESS) {
			expect_cqe(c.e[0].scq, 1, r->status);
			c.p.tail = c.p.head;
		} else {
			/* It asks again and goes on. */
			pair_run(&c.p);
			expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
			assert_memory_equal(c.e[0].mem, c.e[1].mem, 700);
		}
		done(&c);
	}
}

/* An ACK behind a READ says that the READ's answer is lost: it is asked for
 * again, and the request behind it is not complete before it. */
static void acknowledgements_do_not_replace_answers(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 1, 0, 700),
			 0);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 2, 4096, 8),
			 0);
	c.p.tail = c.p.head;
	send_ack(&c, WIRE_ACK_UNLIMITED, 3);
	expect_no_cqe(c.e[0].scq);
	assert_int_equal(counter(&c.e[0], NIC_C_retries), 1);
	send_ack(&c, WIRE_ACK_UNLIMITED, 3); /* again: once is enough */
	assert_int_equal(counter(&c.e[0], NIC_C_retries), 1);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
	/* What came again was executed once. */
	assert_int_equal(counter(&c.e[1], NIC_C_served), 2);
	assert_memory_equal(c.e[0].mem, c.e[1].mem, 700);
	done(&c);
}

/* A receive is missing when the last packet of a long WRITE brings an
 * immediate. Part of the message was acknowledged: that was taken for progress
 * each time, and the retries never ran out. */
static void not_ready_in_the_middle_runs_out(void **state)
{
	struct conn c;
	unsigned i;

	begin(&c);
	assert_int_equal(
		post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 700),
		0);
	pair_run(&c.p);
	for (i = 0; i < 10; i++)
		pair_advance(&c.p, 30000);
	expect_cqe(c.e[0].scq, 1, IBV_WC_RNR_RETRY_EXC_ERR);
	assert_int_equal(counter(&c.e[1], NIC_C_rnr_naks_sent), 4);
	done(&c);
}

static void sequence_naks_in_the_middle_run_out(void **state)
{
	struct conn c;
	unsigned i;

	begin(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 700),
			 0);
	for (i = 0; i < 10; i++) {
		c.p.tail = c.p.head;
		send_ack(&c, WIRE_NAK_PSN, 1);
		nic_flush(c.e[0].nic);
		/* The timer lets it ask again. */
		c.p.now_ns += 10000000;
		nic_tick(c.e[0].nic);
		nic_flush(c.e[0].nic);
	}
	expect_cqe(c.e[0].scq, 1, IBV_WC_RETRY_EXC_ERR);
	c.p.tail = c.p.head;
	done(&c);
}

/* ---- memory that goes away ------------------------------------------------
 */

/* The old key is dead afterwards; the end has another region. */
static void take_memory_away(struct end *e)
{
	struct nic_mr_attr attr = {.addr = e->mem, .length = 1};

	assert_int_equal(nic_mr_dereg(e->mr), 0);
	assert_int_equal(nic_mr_reg(e->pd, &attr, &e->mr), 0);
}

static void deliver(struct conn *c, unsigned frames)
{
	while (frames--)
		pair_deliver(&c->p);
}

static void target_of_a_write_goes_away(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 1024),
			 0);
	deliver(&c, 2);
	take_memory_away(&c.e[1]);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(c.e[1].mem[511], 0);
	assert_int_equal(c.e[1].mem[512], CANARY);
	assert_int_equal(counter(&c.e[1], NIC_C_deny_key), 1);
	done(&c);
}

static void source_of_a_write_goes_away(void **state)
{
	struct conn c;

	begin(&c);
	/* More than one turn sends: 100 packets. */
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_WRITE, 1, 0, 25600),
			 0);
	take_memory_away(&c.e[0]);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	assert_true(counter(&c.e[0], NIC_C_local_protection) > 0);
	done(&c);
}

/* The peer's NAK used to be taken for a lost response: the error was that the
 * retries ran out. */
static void source_of_a_read_goes_away(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 1, 0, 25600),
			 0);
	deliver(&c, 1);
	nic_flush(c.e[1].nic); /* one turn */
	take_memory_away(&c.e[1]);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(&c.e[1], NIC_C_deny_key), 1);
	assert_int_equal(counter(&c.e[0], NIC_C_retries), 0);
	done(&c);
}

static void target_of_a_read_goes_away(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 1, 0, 1024),
			 0);
	deliver(&c, 1);
	nic_flush(c.e[1].nic);
	deliver(&c, 2);
	take_memory_away(&c.e[0]);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(c.e[0].mem[511], CANARY);
	assert_int_equal(c.e[0].mem[512], 0);
	done(&c);
}

static void memory_of_a_receive_goes_away(void **state)
{
	struct conn c;

	begin(&c);
	assert_int_equal(post_recv(&c.e[1], 9, 0, 1024), 0);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_SEND, 1, 0, 1024), 0);
	deliver(&c, 2);
	take_memory_away(&c.e[1]);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_REM_OP_ERR);
	expect_cqe(c.e[1].rcq, 9, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(c.e[1].mem[512], CANARY);
	done(&c);
}

/* Over a network that loses, what seems lost is asked for at once; but not for
 * ever by a peer that answers all but one. */
static void one_request_is_never_answered(void **state)
{
	struct conn c;
	unsigned i;

	begin(&c);
	c.p.window_bytes = 1 << 16;
	conn_restart(&c);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 1, 0, 8), 0);
	assert_int_equal(post(&c.e[0], &c.e[1], IBV_WR_RDMA_READ, 2, 64, 8), 0);
	for (i = 0; i < 100; i++) {
		c.p.tail = c.p.head;
		send_response(&c, WIRE_RC_READ_RESP_ONLY, 1, 8);
	}
	assert_int_equal(counter(&c.e[0], NIC_C_retries), NIC_REPEATS_MAX);
	assert_int_equal(nic_qp_state(c.e[0].qp), IBV_QPS_RTS);
	/* The timer asks again, and then it is answered. */
	c.p.tail = c.p.head;
	c.p.now_ns += 1000000000;
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
	expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
	done(&c);
}

static void every_reason_was_met(void **state)
{
	assert_true(reached[NIC_C_drop_response] > 0);
	assert_true(reached[NIC_C_drop_multi] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(responses_to_nothing),
		cmocka_unit_test(naks_end_the_request),
		cmocka_unit_test(responses_keep_their_form),
		cmocka_unit_test(acknowledgements_do_not_replace_answers),
		cmocka_unit_test(not_ready_in_the_middle_runs_out),
		cmocka_unit_test(sequence_naks_in_the_middle_run_out),
		cmocka_unit_test(target_of_a_write_goes_away),
		cmocka_unit_test(source_of_a_write_goes_away),
		cmocka_unit_test(source_of_a_read_goes_away),
		cmocka_unit_test(target_of_a_read_goes_away),
		cmocka_unit_test(memory_of_a_receive_goes_away),
		cmocka_unit_test(one_request_is_never_answered),
		cmocka_unit_test(every_reason_was_met),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
