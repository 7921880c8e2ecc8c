/* SPDX-License-Identifier: Apache-2.0 */
/* Walks that are refused, lose their key or their queue pair, and answers that
 * are none. */
#include "nic_walk.h"

static const struct walk_ask find = {.program = FIND, .at = 256, .key = 3};

/* The status of one walk; a connection that failed is made anew. */
static enum ibv_wc_status ask_one(struct walk_conn *w,
				  const struct walk_ask *ask)
{
	const struct nic_cqe *cqe;
	enum ibv_wc_status status;

	walk_ask(w, 1, ask);
	pair_run(&w->c.p);
	cqe = nic_cq_peek(w->c.e[0].scq);
	assert_non_null(cqe);
	assert_int_equal(cqe->wr_id, 1);
	status = (enum ibv_wc_status)cqe->status;
	nic_cq_pop(w->c.e[0].scq);
	if (status != IBV_WC_SUCCESS) {
		assert_int_equal(nic_qp_state(w->c.e[1].qp), IBV_QPS_ERR);
		conn_restart(&w->c);
	}
	return status;
}

/* ---- no right to ask ------------------------------------------------------
 */

static void refused_without_a_walker_or_pads(void **state)
{
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	assert_int_equal(ask_one(&w, &find), IBV_WC_SUCCESS);
	walk_connect(&w, 0);
	assert_int_equal(ask_one(&w, &find), IBV_WC_REM_INV_REQ_ERR);
	walk_connect(&w, WALK_PAD);
	assert_int_equal(nic_set_walker(w.c.e[1].nic, NULL), 0);
	assert_int_equal(ask_one(&w, &find), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_qp_access), 2);
	assert_int_equal(w.f.begun, 1);
	/* Only while it is not connected, and only so much. */
	assert_int_equal(nic_qp_set_walk_pad(w.c.e[1].qp, 64), -EINVAL);
	qp_to(w.c.e[1].qp, IBV_QPS_RESET);
	assert_int_equal(nic_qp_set_walk_pad(w.c.e[1].qp, NIC_WALK_PAD_MAX + 1),
			 -EINVAL);
	walk_release(&w);
}

static void a_program_that_is_not_there(void **state)
{
	struct walk_ask ask = find;
	struct walk_conn w;

	walk_init(&w, 4);
	ask.program = 99;
	assert_int_equal(ask_one(&w, &ask), IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_NO_PROGRAM);
	assert_int_equal(walk_result(&w, 1).took, 0);
	assert_int_equal(nic_qp_state(w.c.e[0].qp), IBV_QPS_RTS);
	walk_release(&w);
}

static void keys_are_checked_as_for_reads(void **state)
{
	struct nic_mr_attr attr = {.length = END_BYTES,
				   .access = IBV_ACCESS_LOCAL_WRITE |
					     IBV_ACCESS_REMOTE_WRITE};
	struct walk_ask ask = find;
	struct nic_mr *mr, *other;
	struct nic_pd *pd;
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	attr.addr = w.c.e[1].mem;
	ask.rkey = w.c.e[1].key ^ 1;
	assert_int_equal(ask_one(&w, &ask), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_key), 1);
	assert_int_equal(counter(&w.c.e[1], NIC_C_keys_guessed), 1);
	/* It may be written only. */
	assert_int_equal(nic_mr_reg(w.c.e[1].pd, &attr, &mr), 0);
	ask.rkey = nic_mr_key(mr);
	assert_int_equal(ask_one(&w, &ask), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_access), 1);
	/* It is another domain's. */
	assert_int_equal(nic_pd_create(w.c.e[1].nic, &pd), 0);
	attr.access |= IBV_ACCESS_REMOTE_READ;
	assert_int_equal(nic_mr_reg(pd, &attr, &other), 0);
	ask.rkey = nic_mr_key(other);
	assert_int_equal(ask_one(&w, &ask), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_pd), 1);
	assert_int_equal(w.f.begun, 0);
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_equal(nic_mr_dereg(other), 0);
	assert_int_equal(nic_pd_destroy(pd), 0);
	walk_release(&w);
}

static void no_store_without_the_right_to_write(void **state)
{
	struct nic_mr_attr attr = {.length = END_BYTES,
				   .access = IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr only_read = {.qp_access_flags =
						IBV_ACCESS_REMOTE_READ};
	struct walk_ask ask = find;
	struct nic_mr *mr;
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	ask.program = MARK;
	attr.addr = w.c.e[1].mem;
	assert_int_equal(nic_mr_reg(w.c.e[1].pd, &attr, &mr), 0);
	ask.rkey = nic_mr_key(mr);
	assert_int_equal(ask_one(&w, &ask), IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_NO_RIGHT);
	/* Nor on a queue pair that may only read; which it may. */
	ask.rkey = 0;
	assert_int_equal(
		nic_qp_modify(w.c.e[1].qp, &only_read, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ask_one(&w, &ask), IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_NO_RIGHT);
	assert_int_equal(node_at(&w, 256)->visits, 0);
	ask.program = FIND;
	assert_int_equal(ask_one(&w, &ask), IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_DONE);
	only_read.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(
		nic_qp_modify(w.c.e[1].qp, &only_read, IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ask_one(&w, &ask), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(nic_mr_dereg(mr), 0);
	walk_release(&w);
}

/* ---- packets made by hand -------------------------------------------------
 */

static struct wire_pkt walk_packet(struct walk_conn *w, uint32_t psn_off)
{
	static const uint8_t zeros[WIRE_MTU_MAX];
	struct wire_pkt pkt =
		packet(&w->c.e[0], &w->c.e[1], WIRE_RC_WALK, END_PSN + psn_off);

	pkt.payload = zeros;
	pkt.payload_len = 8;
	pkt.walk = (struct wire_walk){
		.at = 256,
		.program = FIND,
		.key = w->c.e[1].key,
		.left = 10,
		.pad_bytes = 32,
	};
	return pkt;
}

static void pads_that_do_not_fit(void **state)
{
	struct walk_conn w;
	struct wire_pkt pkt;

	for (unsigned i = 0; i < 3; i++) {
		walk_init(&w, 4);
		make_list(&w, 256, 3, 64);
		pkt = walk_packet(&w, 0);
		if (i == 0)
			pkt.payload_len = WALK_PAD + 4;
		else if (i == 1)
			pkt.walk.pad_bytes = WALK_PAD + 1;
		else
			pkt.walk.pad_bytes = UINT16_MAX;
		inject(&w.c.e[1], &pkt);
		expect_ack(&w.c.p, WIRE_NAK_INVALID, END_PSN);
		assert_int_equal(counter(&w.c.e[1], NIC_C_deny_length), 1);
		assert_int_equal(w.f.begun, 0);
		walk_release(&w);
	}
	/* Nor one that makes the answer larger than a packet may be. */
	walk_init(&w, 4);
	w.c.mtu = IBV_MTU_256;
	walk_connect(&w, 256);
	pkt = walk_packet(&w, 0);
	pkt.walk.pad_bytes = 193;
	inject(&w.c.e[1], &pkt);
	expect_ack(&w.c.p, WIRE_NAK_INVALID, END_PSN);
	walk_release(&w);
}

static void refused_behind_the_answers_that_are_owed(void **state)
{
	struct walk_conn w;
	struct wire_pkt pkt;

	walk_init(&w, 16);
	make_list(&w, 256, 3, 64);
	w.f.held = true;
	for (unsigned i = 0; i < END_RD_ATOMIC; i++) {
		pkt = walk_packet(&w, i);
		inject(&w.c.e[1], &pkt);
	}
	/* One more than was agreed. */
	pkt = walk_packet(&w, END_RD_ATOMIC);
	inject(&w.c.e[1], &pkt);
	(void)nic_flush(w.c.e[1].nic);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_resources), 1);
	assert_false(take_packet(&w.c.p, &pkt));
	w.f.held = false;
	(void)nic_flush(w.c.e[1].nic);
	for (unsigned i = 0; i < END_RD_ATOMIC; i++) {
		assert_true(take_packet(&w.c.p, &pkt));
		assert_int_equal(pkt.opcode, WIRE_RC_WALK_ANSWER);
		assert_int_equal(pkt.psn, (END_PSN + i) & WIRE_PSN_MASK);
	}
	expect_ack(&w.c.p, WIRE_NAK_INVALID, END_PSN + END_RD_ATOMIC);
	assert_int_equal(nic_qp_state(w.c.e[1].qp), IBV_QPS_ERR);
	assert_int_equal(w.f.forgotten, 0);
	walk_release(&w);
}

struct bad_answer {
	const char *what;
	uint8_t opcode;
	uint32_t payload_len;
	struct wire_walk walk;
};

static void answers_that_are_none(void **state)
{
	static const struct bad_answer table[] = {
		{"an unknown status",
		 WIRE_RC_WALK_ANSWER,
		 32,
		 {.status = WALK_WIRE_STATUSES, .pad_bytes = 32}},
		{"more than there is room for",
		 WIRE_RC_WALK_ANSWER,
		 33,
		 {.pad_bytes = 33}},
		{"less than it says",
		 WIRE_RC_WALK_ANSWER,
		 16,
		 {.pad_bytes = 32}},
		{"an answer to a READ", WIRE_RC_READ_RESP_ONLY, 64, {.at = 0}},
		{"an answer to an atomic", WIRE_RC_ATOMIC_ACK, 0, {.at = 0}},
	};
	static const uint8_t zeros[64];

	for (unsigned i = 0; i < ARRAY_LEN(table); i++) {
		struct walk_conn w;
		struct wire_pkt pkt;

		walk_init(&w, 4);
		walk_ask(&w, 1, &find);
		w.c.p.tail = w.c.p.head;
		pkt = packet(&w.c.e[1], &w.c.e[0], table[i].opcode, END_PSN);
		pkt.payload = zeros;
		pkt.payload_len = table[i].payload_len;
		pkt.walk = table[i].walk;
		inject(&w.c.e[0], &pkt);
		expect_cqe(w.c.e[0].scq, 1, IBV_WC_BAD_RESP_ERR);
		assert_int_equal(walk_list(&w, 1)[0], 0xee);
		walk_release(&w);
	}
}

static void a_walk_answer_to_a_read(void **state)
{
	struct walk_conn w;
	struct wire_pkt pkt;

	walk_init(&w, 4);
	assert_int_equal(post(&w.c.e[0], &w.c.e[1], IBV_WR_RDMA_READ, 1, 0, 8),
			 0);
	pkt = packet(&w.c.e[1], &w.c.e[0], WIRE_RC_WALK_ANSWER, END_PSN);
	inject(&w.c.e[0], &pkt);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_BAD_RESP_ERR);
	w.c.p.tail = w.c.p.head;
	walk_release(&w);
}

/* ---- what is posted ------------------------------------------------------ */

static int post_list(struct walk_conn *w, uint32_t len, uint32_t send_bytes,
		     uint32_t lkey, unsigned flags)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)w->c.e[0].mem, .length = len, .lkey = lkey};
	struct nic_walk_request request = {
		.at = 256,
		.program = FIND,
		.rkey = w->c.e[1].key,
		.iterations = 9,
		.send_bytes = send_bytes,
	};
	struct nic_send_extra extra = {.walk = &request};
	struct ibv_send_wr wr = {
		.wr_id = 5,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED | flags,
	};

	return nic_qp_post_send(w->c.e[0].qp, &wr, &extra);
}

static void lists_that_make_no_sense(void **state)
{
	enum {
		MTU = 1024,
		RESULT = sizeof(struct nic_walk_result)
	};
	struct walk_conn w;
	uint32_t key;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	key = w.c.e[0].key;
	assert_int_equal(post_list(&w, RESULT - 1, 0, key, 0), -EINVAL);
	assert_int_equal(post_list(&w, RESULT + 8, 9, key, 0), -EINVAL);
	assert_int_equal(post_list(&w, RESULT + MTU - 63, 0, key, 0), -EINVAL);
	assert_int_equal(post_list(&w, RESULT + 8, 8, key, IBV_SEND_INLINE),
			 -EINVAL);
	/* No pad at all is fine, and so is the largest one that fits. */
	assert_int_equal(post_list(&w, RESULT, 0, key, 0), 0);
	nic_qp_kick(w.c.e[0].qp);
	pair_run(&w.c.p);
	assert_int_equal(expect_cqe(w.c.e[0].scq, 5, IBV_WC_SUCCESS).byte_len,
			 RESULT);
	walk_connect(&w, 1024 - 64);
	assert_int_equal(post_list(&w, RESULT + WALK_PAD, WALK_PAD, key ^ 1, 0),
			 0);
	nic_qp_kick(w.c.e[0].qp);
	expect_cqe(w.c.e[0].scq, 5, IBV_WC_LOC_PROT_ERR);
	walk_release(&w);
}

/* The key of the list is gone when the answer comes. */
static void nowhere_to_leave_the_answer(void **state)
{
	struct nic_mr_attr attr = {.length = 4096,
				   .access = IBV_ACCESS_LOCAL_WRITE};
	struct walk_conn w;
	struct nic_mr *mr;

	walk_init(&w, 4);
	make_list(&w, 256, 3, 64);
	attr.addr = w.c.e[0].mem;
	attr.iova = (uintptr_t)attr.addr;
	assert_int_equal(nic_mr_reg(w.c.e[0].pd, &attr, &mr), 0);
	assert_int_equal(post_list(&w, 64, 8, nic_mr_key(mr), 0), 0);
	nic_qp_kick(w.c.e[0].qp);
	walk_arrive(&w);
	assert_int_equal(nic_mr_dereg(mr), 0);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 5, IBV_WC_LOC_PROT_ERR);
	walk_release(&w);
}

/* ---- while they are under way ---------------------------------------------
 */

/* Three walks, of which the second has a key of its own, and a READ. They have
 * arrived; `budget` iterations of all walks were made, or none. */
static void ask_with_two_keys(struct walk_conn *w, unsigned budget,
			      struct nic_mr **mr)
{
	struct nic_mr_attr attr = {.length = END_BYTES,
				   .access = IBV_ACCESS_REMOTE_READ};
	struct walk_ask ask = find;

	walk_init(w, 8);
	make_list(w, 256, 100, 64);
	attr.addr = w->c.e[1].mem;
	assert_int_equal(nic_mr_reg(w->c.e[1].pd, &attr, mr), 0);
	ask.key = 100;
	walk_ask(w, 1, &ask);
	ask.rkey = nic_mr_key(*mr);
	walk_ask(w, 2, &ask);
	ask.rkey = 0;
	walk_ask(w, 3, &ask);
	assert_int_equal(
		post(&w->c.e[0], &w->c.e[1], IBV_WR_RDMA_READ, 4, 0, 8), 0);
	w->f.held = budget == 0;
	w->f.budget = budget;
	walk_arrive(w);
	w->f.held = false;
	assert_int_equal(w->f.begun, 3);
}

/* The first walk needs another key, and is answered before the refusal. */
static void a_key_revoked_before_the_first_turn(void **state)
{
	struct nic_mr *mr;
	struct walk_conn w;

	ask_with_two_keys(&w, 0, &mr);
	assert_int_equal(nic_mr_dereg(mr), 0);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(walk_answer(&w, 1).value, 1099);
	expect_cqe(w.c.e[0].scq, 2, IBV_WC_REM_ACCESS_ERR);
	expect_cqe(w.c.e[0].scq, 3, IBV_WC_WR_FLUSH_ERR);
	expect_cqe(w.c.e[0].scq, 4, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_key), 1);
	assert_false(nic_has_walks(w.c.e[1].nic));
	for (unsigned i = 0; i < w.f.room; i++)
		assert_null(w.f.walk[i]);
	walk_release(&w);
}

/* What it did until then is done: the answer says how far it got, and nobody
 * else's request fails. */
static void a_key_revoked_between_turns(void **state)
{
	struct nic_walk_result r;
	struct nic_mr *mr;
	struct walk_conn w;

	ask_with_two_keys(&w, 8, &mr);
	assert_int_equal(nic_mr_dereg(mr), 0);
	pair_run(&w.c.p);
	for (uint64_t id = 1; id <= 4; id++)
		expect_cqe(w.c.e[0].scq, id, IBV_WC_SUCCESS);
	r = walk_result(&w, 2);
	assert_int_equal(r.status, WALK_WIRE_NO_RIGHT);
	assert_in_range(r.took, 1, 8);
	assert_int_equal(r.at, 256 + 64 * r.took);
	assert_int_equal(walk_answer(&w, 2).visited, r.took);
	assert_int_equal(walk_answer(&w, 2).found, 0);
	assert_int_equal(walk_answer(&w, 3).value, 1099);
	assert_int_equal(counter(&w.c.e[1], NIC_C_deny_key), 1);
	walk_release(&w);
}

/* Who keeps addresses has to hear of all that ends them. */
static void the_epoch_changes_with_what_a_walk_may_reach(void **state)
{
	struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_READ};
	struct nic_mr_attr more = {.length = END_BYTES,
				   .access = IBV_ACCESS_REMOTE_READ};
	const uint32_t *epoch;
	struct nic_mr *mr;
	struct walk_conn w;
	uint32_t before;

	walk_init(&w, 4);
	epoch = nic_walk_epoch(w.c.e[1].nic);
	more.addr = w.c.e[1].mem;
	assert_int_equal(nic_mr_reg(w.c.e[1].pd, &more, &mr), 0);
	before = *epoch;
	assert_int_equal(nic_mr_dereg(mr), 0);
	assert_int_not_equal(*epoch, before);
	/* A queue pair that may do less. */
	before = *epoch;
	assert_int_equal(nic_qp_modify(w.c.e[1].qp, &attr, IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_not_equal(*epoch, before);
	before = *epoch;
	attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
	assert_int_equal(nic_qp_modify(w.c.e[1].qp, &attr, IBV_QP_ACCESS_FLAGS),
			 0);
	assert_int_equal(*epoch, before);
	walk_release(&w);
}

/* The address is found anew when the same key opens other memory. */
static void a_hole_in_the_region(void **state)
{
	struct walk_ask ask = find;
	struct walk_conn w;

	walk_init(&w, 8);
	make_list(&w, 4096, 100, 64);
	ask.at = 4096;
	ask.key = 100;
	walk_ask(&w, 1, &ask);
	w.f.budget = 8;
	walk_arrive(&w);
	nic_memory_gone(w.c.e[1].nic, w.c.e[1].mem + 8192, 4096);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_FAULT);
	assert_int_equal(walk_result(&w, 1).at, 8192);
	walk_release(&w);
}

static void a_queue_pair_takes_its_walks_along(void **state)
{
	struct walk_conn w;

	for (unsigned how = 0; how < 3; how++) {
		walk_init(&w, 2);
		make_list(&w, 256, 3, 64);
		for (uint64_t id = 0; id < 5; id++)
			walk_ask(&w, id, &find);
		w.f.held = true;
		walk_arrive(&w);
		assert_true(nic_has_walks(w.c.e[1].nic));
		if (how == 0) {
			nic_qp_destroy(w.c.e[1].qp);
			w.c.e[1].qp = NULL;
		} else {
			qp_to(w.c.e[1].qp,
			      how == 1 ? IBV_QPS_ERR : IBV_QPS_RESET);
		}
		assert_int_equal(w.f.begun, 2);
		assert_int_equal(w.f.forgotten, 2);
		(void)nic_flush(w.c.e[1].nic);
		assert_false(nic_has_walks(w.c.e[1].nic));
		assert_int_equal(nic_set_walker(w.c.e[1].nic, NULL), 0);
		w.c.p.tail = w.c.p.head;
		walk_release(&w);
	}
}

/* Two domains with more walks than there is room for: the second does not wait
 * for all of the first. */
static void domains_wait_in_turn(void **state)
{
	struct walk_ask ask = find;
	struct end more[2];
	struct walk_conn w;
	uint64_t first;

	walk_init(&w, 1);
	make_list(&w, 256, 40, 64);
	ask.key = 40;
	/* The other domain, whose memory is its own. */
	memset(more, 0, sizeof(more));
	end_init(&more[0], w.c.e[0].nic, IBV_QPT_RC);
	end_init(&more[1], w.c.e[1].nic, IBV_QPT_RC);
	assert_int_equal(nic_qp_set_walk_pad(more[1].qp, WALK_PAD), 0);
	end_connect(&more[0], &more[1], IBV_MTU_1024);
	end_connect(&more[1], &more[0], IBV_MTU_1024);
	memcpy(more[1].mem, w.c.e[1].mem, 8192);
	w.f.held = true;
	for (uint64_t id = 0; id < 6; id++)
		walk_ask(&w, id, &ask);
	walk_arrive(&w);
	{
		struct nic_qp *qp = w.c.e[0].qp;
		uint32_t key = w.c.e[0].key;
		uint8_t *mem = w.c.e[0].mem;

		w.c.e[0].qp = more[0].qp;
		w.c.e[0].key = more[0].key;
		w.c.e[0].mem = more[0].mem;
		ask.rkey = more[1].key;
		walk_ask(&w, 7, &ask);
		w.c.e[0].qp = qp;
		w.c.e[0].key = key;
		w.c.e[0].mem = mem;
	}
	walk_arrive(&w);
	w.f.held = false;
	for (unsigned i = 0; nic_cq_is_empty(more[0].scq); i++) {
		assert_true(i < 100);
		walk_arrive(&w);
		while (w.c.p.tail != w.c.p.head)
			pair_deliver(&w.c.p);
	}
	expect_cqe(more[0].scq, 7, IBV_WC_SUCCESS);
	for (first = 0; !nic_cq_is_empty(w.c.e[0].scq); first++)
		expect_cqe(w.c.e[0].scq, first, IBV_WC_SUCCESS);
	assert_true(first <= 3);
	pair_run(&w.c.p);
	while (first < 6)
		expect_cqe(w.c.e[0].scq, first++, IBV_WC_SUCCESS);
	end_release(&more[0]);
	end_release(&more[1]);
	walk_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused_without_a_walker_or_pads),
		cmocka_unit_test(a_program_that_is_not_there),
		cmocka_unit_test(keys_are_checked_as_for_reads),
		cmocka_unit_test(no_store_without_the_right_to_write),
		cmocka_unit_test(pads_that_do_not_fit),
		cmocka_unit_test(refused_behind_the_answers_that_are_owed),
		cmocka_unit_test(answers_that_are_none),
		cmocka_unit_test(a_walk_answer_to_a_read),
		cmocka_unit_test(lists_that_make_no_sense),
		cmocka_unit_test(nowhere_to_leave_the_answer),
		cmocka_unit_test(a_key_revoked_before_the_first_turn),
		cmocka_unit_test(a_key_revoked_between_turns),
		cmocka_unit_test(the_epoch_changes_with_what_a_walk_may_reach),
		cmocka_unit_test(a_hole_in_the_region),
		cmocka_unit_test(a_queue_pair_takes_its_walks_along),
		cmocka_unit_test(domains_wait_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
