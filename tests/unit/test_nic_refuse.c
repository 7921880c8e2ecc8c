/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request that is refused behind good ones. Its NAK used to be sent at once
 * and to end the queue pair: the answers of READs and atomics before it, which
 * had been executed, were never sent, and the requester reported them as failed
 * when its retries had run out.
 */
#include "core/nic_limits.h"
#include "nic_peer.h"

enum {
	BIG_BYTES = 1 << 20,
	GOOD = 1, /* wr_ids: the good ones from here on */
	BAD = 100,
	BEHIND = 101,
	RECV = 200,
	RECV_ROOM = 64,
	WORD_AT = 4096, /* of the atomics, in the memory of both ends */
	LAND_AT = 8192, /* of what must not be written */
};

/* What is wrong with the request behind the good ones. */
enum wrong {
	BAD_KEY,
	BAD_KEY_READ,
	BAD_RIGHT,
	BAD_BOUNDS,
	BAD_ALIGN,
	TOO_LONG,
};

/* The way between the ends. */
enum way {
	WIRE,
	NARROW, /* takes three frames, then it is full */
	LOSSY,	/* could lose some: READs are asked for in pieces */
	CABLE,
	WAYS,
};

struct rig {
	struct conn c;
	uint8_t *big[2];
	struct nic_mr *big_mr[2];
	struct nic_mr *closed_mr; /* of end 1, without remote rights */
};

static struct nic_mr *reg(struct end *e, uint8_t *mem, uint32_t len, int access)
{
	struct nic_mr_attr attr = {.addr = mem,
				   .iova = (uintptr_t)mem,
				   .length = len,
				   .access = access};
	struct nic_mr *mr;

	assert_int_equal(nic_mr_reg(e->pd, &attr, &mr), 0);
	return mr;
}

static void rig_init(struct rig *r, enum way way)
{
	struct conn *c = &r->c;

	conn_init_as(c, IBV_MTU_1024, way == CABLE);
	if (way == NARROW)
		c->p.capacity = 3;
	if (way == LOSSY) {
		c->p.window_bytes = 1 << 20;
		conn_restart(c);
	}
	for (unsigned i = 0; i < 2; i++) {
		r->big[i] = calloc(1, BIG_BYTES);
		assert_non_null(r->big[i]);
		r->big_mr[i] =
			reg(&c->e[i], r->big[i], BIG_BYTES,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
	}
	for (unsigned i = 0; i < BIG_BYTES; i++)
		r->big[1][i] = (uint8_t)(i * 7 + (i >> 8));
	r->closed_mr =
		reg(&c->e[1], c->e[1].mem, END_BYTES, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(post_recv(&c->e[1], RECV, 0, RECV_ROOM), 0);
}

static void rig_release(struct rig *r)
{
	for (unsigned i = 0; i < 2; i++) {
		if (r->big_mr[i])
			assert_int_equal(nic_mr_dereg(r->big_mr[i]), 0);
		free(r->big[i]);
	}
	assert_int_equal(nic_mr_dereg(r->closed_mr), 0);
	conn_release(&r->c);
}

/* ---- requests ------------------------------------------------------------ */

static void post_to(struct rig *r, enum ibv_wr_opcode opcode, uint64_t wr_id,
		    struct ibv_sge sge, uint32_t rkey, uint64_t va)
{
	struct nic_qp *qp = r->c.e[0].qp;
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = va;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = va;
		wr.wr.rdma.rkey = rkey;
	}
	assert_int_equal(nic_qp_post_send(qp, &wr, NULL), 0);
	nic_qp_kick(qp);
}

static struct ibv_sge sge_at(const struct rig *r, uint32_t at, uint32_t len)
{
	const struct end *e = &r->c.e[0];

	return (struct ibv_sge){
		.addr = (uintptr_t)e->mem + at, .length = len, .lkey = e->key};
}

static void post_good(struct rig *r, enum ibv_wr_opcode opcode, uint64_t wr_id,
		      uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)r->big[0],
			      .length = len,
			      .lkey = nic_mr_key(r->big_mr[0])};

	if (opcode == IBV_WR_RDMA_READ)
		post_to(r, opcode, wr_id, sge, nic_mr_key(r->big_mr[1]),
			(uintptr_t)r->big[1]);
	else
		assert_int_equal(post(&r->c.e[0], &r->c.e[1], opcode, wr_id,
				      WORD_AT, len),
				 0);
}

/* Returns the status that it must end with. */
static enum ibv_wc_status post_wrong(struct rig *r, enum wrong wrong)
{
	struct end *to = &r->c.e[1];
	uint64_t va = (uintptr_t)to->mem + LAND_AT;
	struct ibv_sge sge = sge_at(r, LAND_AT, 8);

	switch (wrong) {
	case BAD_KEY:
		post_to(r, IBV_WR_RDMA_WRITE, BAD, sge, to->key ^ 0x5a, va);
		return IBV_WC_REM_ACCESS_ERR;
	case BAD_KEY_READ:
		post_to(r, IBV_WR_RDMA_READ, BAD, sge, to->key ^ 0x5a, va);
		return IBV_WC_REM_ACCESS_ERR;
	case BAD_RIGHT:
		post_to(r, IBV_WR_RDMA_WRITE, BAD, sge,
			nic_mr_key(r->closed_mr), va);
		return IBV_WC_REM_ACCESS_ERR;
	case BAD_BOUNDS:
		post_to(r, IBV_WR_RDMA_WRITE, BAD, sge, to->key,
			(uintptr_t)to->mem + END_BYTES - 7);
		return IBV_WC_REM_ACCESS_ERR;
	case BAD_ALIGN:
		post_to(r, IBV_WR_ATOMIC_FETCH_AND_ADD, BAD, sge, to->key,
			va + 4);
		return IBV_WC_REM_INV_REQ_ERR;
	case TOO_LONG:
		post_to(r, IBV_WR_SEND, BAD, sge_at(r, 0, RECV_ROOM + 1), 0, 0);
		return IBV_WC_REM_INV_REQ_ERR;
	}
	fail();
	return IBV_WC_SUCCESS;
}

static uint64_t word(const struct rig *r)
{
	uint64_t w;

	memcpy(&w, r->c.e[1].mem + WORD_AT, sizeof(w));
	return w;
}

static const struct {
	enum ibv_wr_opcode opcode;
	uint32_t len;
	unsigned count;
} goods[] = {
	{IBV_WR_RDMA_READ, 8, 1},
	{IBV_WR_RDMA_READ, 8, END_RD_ATOMIC - 1},
	{IBV_WR_RDMA_READ, 3000, 3},
	{IBV_WR_RDMA_READ, BIG_BYTES, 1},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, 1},
	{IBV_WR_ATOMIC_FETCH_AND_ADD, 8, END_RD_ATOMIC - 1},
};

static void good_ones_succeed_before(enum wrong wrong, enum way way, unsigned g)
{
	struct end *a, *b;
	enum ibv_wc_status status;
	struct rig r = {0};

	rig_init(&r, way);
	a = &r.c.e[0];
	b = &r.c.e[1];
	for (unsigned i = 0; i < goods[g].count; i++)
		post_good(&r, goods[g].opcode, GOOD + i, goods[g].len);
	status = post_wrong(&r, wrong);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, BEHIND, LAND_AT, 8), 0);
	memset(a->mem + LAND_AT, 0x77, 8);
	pair_run(&r.c.p);
	for (unsigned i = 0; i < goods[g].count; i++)
		expect_cqe(a->scq, GOOD + i, IBV_WC_SUCCESS);
	expect_cqe(a->scq, BAD, status);
	expect_cqe(a->scq, BEHIND, IBV_WC_WR_FLUSH_ERR);
	expect_no_cqe(a->scq);
	assert_int_equal(counter(a, NIC_C_timeouts), 0);
	if (goods[g].opcode == IBV_WR_RDMA_READ)
		assert_memory_equal(r.big[0], r.big[1], goods[g].len);
	else
		assert_int_equal(word(&r), goods[g].count);
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(b->mem[LAND_AT + i], 0);
	assert_int_equal(nic_qp_state(b->qp), IBV_QPS_ERR);
	expect_event(&b->qp_o, status == IBV_WC_REM_ACCESS_ERR
				       ? IBV_EVENT_QP_ACCESS_ERR
				       : IBV_EVENT_QP_REQ_ERR);
	expect_no_event(&b->qp_o);
	expect_cqe(b->rcq, RECV,
		   wrong == TOO_LONG ? IBV_WC_LOC_LEN_ERR
				     : IBV_WC_WR_FLUSH_ERR);
	rig_release(&r);
}

static void answers_leave_before_the_refusal(void **state)
{
	for (unsigned g = 0; g < ARRAY_LEN(goods); g++) {
		for (enum wrong w = BAD_KEY; w <= TOO_LONG; w++) {
			for (enum way way = WIRE; way < WAYS; way++)
				good_ones_succeed_before(w, way, g);
		}
	}
}

/* More READs than the responder keeps resources for: those that it had room
 * for are answered. */
static void reads_that_were_agreed_are_answered(void **state)
{
	static const uint32_t lens[] = {8, 3000, 200 << 10};

	for (unsigned i = 0; i < ARRAY_LEN(lens); i++) {
		struct ibv_qp_attr two = {.max_dest_rd_atomic = 2};
		struct rig r = {0};

		rig_init(&r, WIRE);
		qp_to(r.c.e[1].qp, IBV_QPS_SQD);
		assert_int_equal(nic_qp_modify(r.c.e[1].qp, &two,
					       IBV_QP_MAX_DEST_RD_ATOMIC),
				 0);
		for (unsigned k = 0; k < 4; k++)
			post_good(&r, IBV_WR_RDMA_READ, GOOD + k, lens[i]);
		pair_run(&r.c.p);
		expect_cqe(r.c.e[0].scq, GOOD, IBV_WC_SUCCESS);
		expect_cqe(r.c.e[0].scq, GOOD + 1, IBV_WC_SUCCESS);
		expect_cqe(r.c.e[0].scq, GOOD + 2, IBV_WC_REM_INV_REQ_ERR);
		expect_cqe(r.c.e[0].scq, GOOD + 3, IBV_WC_WR_FLUSH_ERR);
		assert_memory_equal(r.big[0], r.big[1], lens[i]);
		assert_int_equal(counter(&r.c.e[1], NIC_C_deny_resources), 1);
		rig_release(&r);
	}
}

/* ---- while the NAK waits --------------------------------------------------
 */

/* A READ of three packets and an atomic are accepted, a SEND that is too long
 * is refused, and the wire takes nothing. */
static void owe(struct rig *r)
{
	struct wire_pkt pkt;

	rig_init(r, WIRE);
	post_good(r, IBV_WR_RDMA_READ, GOOD, 3000);
	post_good(r, IBV_WR_ATOMIC_FETCH_AND_ADD, GOOD + 1, 8);
	(void)post_wrong(r, TOO_LONG);
	r->c.p.capacity = 0;
	while (r->c.p.tail != r->c.p.head)
		pair_deliver(&r->c.p);
	assert_true(nic_flush(r->c.e[1].nic));
	assert_false(take_packet(&r->c.p, &pkt));
	assert_int_equal(nic_qp_state(r->c.e[1].qp), IBV_QPS_RTS);
	assert_int_equal(word(r), 1);
	/* Who saw the receive fail might destroy the queue pair. */
	expect_no_cqe(r->c.e[1].rcq);
	expect_no_event(&r->c.e[1].qp_o);
}

static void paid(struct rig *r)
{
	r->c.p.capacity = 1024;
	pair_run(&r->c.p);
	expect_cqe(r->c.e[0].scq, GOOD, IBV_WC_SUCCESS);
	expect_cqe(r->c.e[0].scq, GOOD + 1, IBV_WC_SUCCESS);
	expect_cqe(r->c.e[0].scq, BAD, IBV_WC_REM_INV_REQ_ERR);
	expect_cqe(r->c.e[1].rcq, RECV, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(nic_qp_state(r->c.e[1].qp), IBV_QPS_ERR);
	assert_int_equal(counter(&r->c.e[1], NIC_C_naks_sent), 1);
}

enum {
	FAA_PSN = 3, /* of owe's requests, from END_PSN on */
	BAD_PSN = 4,
};

static void nothing_new_is_executed_meanwhile(void **state)
{
	static const uint8_t opcodes[] = {WIRE_RC_FAA, WIRE_RC_WRITE_ONLY,
					  WIRE_RC_READ_REQ, WIRE_RC_SEND_ONLY};
	struct rig r = {0};

	owe(&r);
	assert_int_equal(post_recv(&r.c.e[1], RECV + 1, 0, RECV_ROOM), 0);
	for (unsigned i = 0; i < ARRAY_LEN(opcodes); i++) {
		for (uint32_t psn = BAD_PSN; psn < BAD_PSN + 3; psn++) {
			struct wire_pkt pkt = request(
				&r.c, opcodes[i], psn,
				opcodes[i] == WIRE_RC_WRITE_ONLY ? 8 : 0);

			pkt.va += WORD_AT;
			inject(&r.c.e[1], &pkt);
		}
	}
	assert_int_equal(counter(&r.c.e[1], NIC_C_drop_qp_state), 12);
	assert_int_equal(word(&r), 1);
	paid(&r);
	expect_cqe(r.c.e[1].rcq, RECV + 1, IBV_WC_WR_FLUSH_ERR);
	rig_release(&r);
}

/* The peer asks again for what it was promised: it comes, before the NAK. */
static void duplicates_are_answered_meanwhile(void **state)
{
	struct wire_pkt read, faa, pkt;
	struct rig r = {0};

	owe(&r);
	r.c.p.capacity = 4; /* the answers and no NAK */
	assert_true(nic_flush(r.c.e[1].nic));
	r.c.p.tail = r.c.p.head;
	r.c.p.capacity = 0;
	read = request(&r.c, WIRE_RC_READ_REQ, 0, 0);
	read.rkey = nic_mr_key(r.big_mr[1]);
	read.va = (uintptr_t)r.big[1];
	read.dma_len = 3000;
	inject(&r.c.e[1], &read);
	faa = request(&r.c, WIRE_RC_FAA, FAA_PSN, 0);
	inject(&r.c.e[1], &faa);
	assert_int_equal(counter(&r.c.e[1], NIC_C_duplicate_reads), 1);
	assert_int_equal(counter(&r.c.e[1], NIC_C_duplicate_atomics), 1);
	r.c.p.capacity = 1024;
	nic_flush(r.c.e[1].nic);
	for (uint32_t i = 0; i < FAA_PSN; i++) {
		assert_true(take_packet(&r.c.p, &pkt));
		assert_int_equal(pkt.psn, (END_PSN + i) & WIRE_PSN_MASK);
	}
	assert_true(take_packet(&r.c.p, &pkt));
	assert_int_equal(pkt.opcode, WIRE_RC_ATOMIC_ACK);
	expect_ack(&r.c.p, WIRE_NAK_INVALID, END_PSN + BAD_PSN);
	assert_int_equal(word(&r), 1);
	rig_release(&r);
}

/* The region that a READ is answered from goes away: its NAK takes the place of
 * the later one, and acknowledges nothing behind it. */
static void the_older_refusal_counts(void **state)
{
	struct rig r = {0};

	owe(&r);
	r.c.p.capacity = 1;
	nic_flush(r.c.e[1].nic);
	assert_int_equal(nic_mr_dereg(r.big_mr[1]), 0);
	r.big_mr[1] = NULL;
	r.c.p.capacity = 1024;
	pair_run(&r.c.p);
	expect_cqe(r.c.e[0].scq, GOOD, IBV_WC_REM_ACCESS_ERR);
	expect_cqe(r.c.e[0].scq, GOOD + 1, IBV_WC_WR_FLUSH_ERR);
	expect_cqe(r.c.e[0].scq, BAD, IBV_WC_WR_FLUSH_ERR);
	expect_cqe(r.c.e[1].rcq, RECV, IBV_WC_LOC_LEN_ERR);
	expect_event(&r.c.e[1].qp_o, IBV_EVENT_QP_ACCESS_ERR);
	expect_no_event(&r.c.e[1].qp_o);
	assert_int_equal(counter(&r.c.e[0], NIC_C_timeouts), 0);
	rig_release(&r);
}

/* The owner's own end of the queue pair comes first: the debt is forgotten. */
static void an_owner_who_ends_it_owes_nothing(void **state)
{
	for (unsigned i = 0; i < 3; i++) {
		struct end *b;
		struct rig r = {0};
		struct wire_pkt pkt;

		owe(&r);
		b = &r.c.e[1];
		if (i == 2) {
			nic_qp_destroy(b->qp);
			b->qp = NULL;
		} else {
			qp_to(b->qp, i ? IBV_QPS_RESET : IBV_QPS_ERR);
		}
		if (i == 0) {
			expect_cqe(b->rcq, RECV, IBV_WC_LOC_LEN_ERR);
			assert_int_equal(nic_qp_state(b->qp), IBV_QPS_ERR);
		}
		expect_no_cqe(b->rcq);
		expect_no_event(&b->qp_o);
		r.c.p.capacity = 1024;
		assert_false(nic_flush(b->nic));
		assert_false(take_packet(&r.c.p, &pkt));
		if (i == 1) {
			/* What it was is gone with it: it serves again. */
			conn_restart(&r.c);
			post_good(&r, IBV_WR_RDMA_READ, GOOD, 3000);
			pair_run(&r.c.p);
			expect_cqe(r.c.e[0].scq, GOOD, IBV_WC_SUCCESS);
		}
		rig_release(&r);
	}
}

/* ---- memory that goes away under READs ------------------------------------
 */

/* Several READs are being answered, over a network in pieces, when the region
 * goes: each ends with data or with the reason. */
static void a_region_goes_away_under_reads(void **state)
{
	enum {
		READS = 4,
		READ_BYTES = 200 << 10,
		PACKETS = 800
	};

	for (enum way way = WIRE; way < WAYS; way++) {
		for (unsigned after = 1; after < PACKETS - 64; after += 37) {
			struct rig r = {0};
			struct end *a = &r.c.e[0], *b = &r.c.e[1];
			unsigned i;

			rig_init(&r, way);
			r.c.p.capacity = u32_min(r.c.p.capacity, 32);
			for (i = 0; i < READS; i++)
				post_good(&r, IBV_WR_RDMA_READ, GOOD + i,
					  READ_BYTES);
			for (i = 0; i < after; i++) {
				nic_flush(b->nic);
				nic_flush(a->nic);
				pair_deliver(&r.c.p);
			}
			assert_int_equal(nic_mr_dereg(r.big_mr[1]), 0);
			r.big_mr[1] = NULL;
			pair_run(&r.c.p);
			for (i = 0;
			     nic_cq_peek(a->scq)->status == IBV_WC_SUCCESS; i++)
				expect_cqe(a->scq, GOOD + i, IBV_WC_SUCCESS);
			expect_cqe(a->scq, GOOD + i++, IBV_WC_REM_ACCESS_ERR);
			while (i < READS)
				expect_cqe(a->scq, GOOD + i++,
					   IBV_WC_WR_FLUSH_ERR);
			assert_int_equal(counter(a, NIC_C_timeouts), 0);
			rig_release(&r);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_leave_before_the_refusal),
		cmocka_unit_test(reads_that_were_agreed_are_answered),
		cmocka_unit_test(nothing_new_is_executed_meanwhile),
		cmocka_unit_test(duplicates_are_answered_meanwhile),
		cmocka_unit_test(the_older_refusal_counts),
		cmocka_unit_test(an_owner_who_ends_it_owes_nothing),
		cmocka_unit_test(a_region_goes_away_under_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
