/* SPDX-License-Identifier: Apache-2.0 */
/* Walks between two NICs: what they answer, in which order, and how often they
 * are executed. */
#include "nic_walk.h"

static void one_packet_there_and_one_back(void **state)
{
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 7};
	struct nic_walk_result r;
	struct nic_cqe cqe;
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 10, 64);
	walk_ask(&w, 1, &ask);
	assert_int_equal(w.c.p.head - w.c.p.tail, 1);
	walk_arrive(&w);
	assert_int_equal(w.c.p.head - w.c.p.tail, 1);
	pair_run(&w.c.p);
	cqe = expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(cqe.opcode, IBV_WC_RDMA_READ);
	assert_int_equal(cqe.byte_len, sizeof(r) + sizeof(struct walk_pad));
	r = walk_result(&w, 1);
	assert_int_equal(r.status, WALK_WIRE_DONE);
	assert_int_equal(r.at, 256 + 6 * 64);
	assert_int_equal(r.program, FIND);
	assert_int_equal(r.took, 7);
	assert_int_equal(r.left, 93);
	assert_int_equal(r.pad_bytes, sizeof(struct walk_pad));
	assert_int_equal(r.space, 0);
	assert_int_equal(walk_answer(&w, 1).value, 1006);
	assert_int_equal(walk_answer(&w, 1).found, 1);
	assert_int_equal(walk_answer(&w, 1).visited, 7);
	assert_int_equal(counter(&w.c.e[1], NIC_C_walks), 1);
	assert_int_equal(counter(&w.c.e[1], NIC_C_walk_iterations), 7);
	walk_release(&w);
}

static void goes_on_where_it_ran_out(void **state)
{
	struct walk_ask ask = {
		.program = FIND, .at = 256, .key = 200, .iterations = 150};
	struct nic_walk_result r;
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 200, 32);
	walk_ask(&w, 1, &ask);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	r = walk_result(&w, 1);
	assert_int_equal(r.status, WALK_WIRE_MORE);
	assert_int_equal(r.left, 0);
	assert_int_equal(r.took, 150);
	/* Frames were looked at in between. */
	assert_int_equal(w.f.most_in_a_turn, NIC_WALK_TURN);
	ask.at = r.at;
	walk_ask(&w, 2, &ask);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 2, IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 2).status, WALK_WIRE_DONE);
	assert_int_equal(walk_answer(&w, 2).value, 1199);
	walk_release(&w);
}

/* The opcodes of what is on the wire, which is taken off it. */
static unsigned take_opcodes(struct walk_conn *w, uint8_t *opcode,
			     uint32_t *psn, unsigned max)
{
	struct wire_pkt pkt;
	unsigned n = 0;

	while (take_packet(&w->c.p, &pkt)) {
		assert_true(n < max);
		opcode[n] = pkt.opcode;
		psn[n++] = pkt.psn;
	}
	return n;
}

static void answers_leave_in_the_order_of_the_requests(void **state)
{
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 3};
	static const uint8_t want[] = {
		WIRE_RC_READ_RESP_ONLY, WIRE_RC_WALK_ANSWER,
		WIRE_RC_READ_RESP_ONLY, WIRE_RC_ATOMIC_ACK,
		WIRE_RC_WALK_ANSWER,	WIRE_RC_ACK,
	};
	uint8_t opcode[8];
	struct walk_conn w;
	uint32_t psn[8];
	unsigned n;

	walk_init(&w, 4);
	make_list(&w, 256, 10, 64);
	w.f.held = true;
	assert_int_equal(post(&w.c.e[0], &w.c.e[1], IBV_WR_RDMA_READ, 1, 0, 8),
			 0);
	walk_ask(&w, 2, &ask);
	assert_int_equal(post(&w.c.e[0], &w.c.e[1], IBV_WR_RDMA_READ, 3, 0, 8),
			 0);
	assert_int_equal(post(&w.c.e[0], &w.c.e[1], IBV_WR_ATOMIC_FETCH_AND_ADD,
			      4, 8, 8),
			 0);
	walk_ask(&w, 5, &ask);
	assert_int_equal(
		post(&w.c.e[0], &w.c.e[1], IBV_WR_RDMA_WRITE, 6, 16, 8), 0);
	walk_arrive(&w);
	/* What stands before the first walk does not wait for it. */
	n = take_opcodes(&w, opcode, psn, 8);
	assert_int_equal(n, 1);
	w.f.held = false;
	walk_arrive(&w);
	n += take_opcodes(&w, opcode + n, psn + n, 7);
	assert_int_equal(n, ARRAY_LEN(want));
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(opcode[i], want[i]);
		assert_int_equal(psn[i], (END_PSN + i) & WIRE_PSN_MASK);
	}
	walk_release(&w);
}

/* Loses each frame of an exchange in turn, and doubles it. */
static void executed_once_whatever_is_lost(void **state)
{
	struct walk_ask ask = {.program = MARK, .at = 256, .key = 3};
	struct pair_frame copy;
	struct walk_conn w;

	walk_init(&w, 4);
	for (unsigned what = 0; what < 4; what++) {
		make_list(&w, 256, 3, 64);
		walk_ask(&w, what, &ask);
		copy = w.c.p.queue[w.c.p.tail % PAIR_QUEUE];
		if (what == 0) { /* the request is lost */
			w.c.p.tail = w.c.p.head;
		} else if (what == 1) { /* the answer is */
			walk_arrive(&w);
			w.c.p.tail = w.c.p.head;
		} else if (what == 2) { /* the request comes twice at once */
			w.f.held = true;
			walk_arrive(&w);
			nic_input(w.c.e[1].nic, copy.bytes, copy.len,
				  copy.from);
			w.f.held = false;
		} else { /* and once more, much later */
			pair_run(&w.c.p);
			nic_input(w.c.e[1].nic, copy.bytes, copy.len,
				  copy.from);
		}
		(void)nic_flush(w.c.e[1].nic);
		pair_run(&w.c.p);
		walk_wait(&w);
		expect_cqe(w.c.e[0].scq, what, IBV_WC_SUCCESS);
		expect_no_cqe(w.c.e[0].scq);
		assert_int_equal(walk_answer(&w, what).value, 1002);
		for (unsigned i = 0; i < 3; i++)
			assert_int_equal(node_at(&w, 256 + i * 64)->visits, 1);
	}
	assert_int_equal(counter(&w.c.e[1], NIC_C_walks), 4);
	assert_int_equal(counter(&w.c.e[1], NIC_C_duplicate_walks), 3);
	walk_release(&w);
}

/* An answer is what was answered, not what another walk would find now. */
static void a_duplicate_gets_the_old_answer(void **state)
{
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 2};
	struct walk_conn w;

	walk_init(&w, 4);
	make_list(&w, 256, 2, 64);
	walk_ask(&w, 1, &ask);
	walk_arrive(&w);
	w.c.p.tail = w.c.p.head;
	node_at(&w, 256 + 64)->value = 5;
	walk_wait(&w);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(walk_answer(&w, 1).value, 1001);
	walk_release(&w);
}

static void more_walks_than_there_is_room_for(void **state)
{
	struct walk_ask ask = {.program = MARK, .at = 256, .key = 4};
	struct walk_conn w;

	walk_init(&w, 2);
	make_list(&w, 256, 4, 64);
	for (uint64_t id = 0; id < END_RD_ATOMIC; id++)
		walk_ask(&w, id, &ask);
	w.f.held = true;
	walk_arrive(&w);
	assert_int_equal(w.f.begun, 2);
	assert_int_equal(counter(&w.c.e[1], NIC_C_walk_waits), 6);
	assert_int_equal(nic_set_walker(w.c.e[1].nic, NULL), -EBUSY);
	w.f.held = false;
	walk_ask(&w, END_RD_ATOMIC, &ask); /* waits for a resource */
	walk_wait(&w);
	for (uint64_t id = 0; id <= END_RD_ATOMIC; id++) {
		expect_cqe(w.c.e[0].scq, id, IBV_WC_SUCCESS);
		assert_int_equal(walk_answer(&w, id).value, 1003);
	}
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(node_at(&w, 256 + i * 64)->visits,
				 END_RD_ATOMIC + 1);
	assert_false(nic_has_walks(w.c.e[1].nic));
	assert_int_equal(nic_set_walker(w.c.e[1].nic, NULL), 0);
	walk_release(&w);
}

/* A fenced request waits for the walk before it, another one does not. */
static void a_fence_waits_for_walks(void **state)
{
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 1};
	struct walk_conn w;
	uint8_t opcode[4];
	uint32_t psn[4];

	walk_init(&w, 4);
	make_list(&w, 256, 1, 64);
	walk_ask(&w, 1, &ask);
	ask.flags = IBV_SEND_FENCE;
	walk_ask(&w, 2, &ask);
	assert_int_equal(take_opcodes(&w, opcode, psn, 4), 1);
	walk_wait(&w);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	expect_cqe(w.c.e[0].scq, 2, IBV_WC_SUCCESS);
	walk_release(&w);
}

/* ---- places -------------------------------------------------------------- */

struct spot {
	uint64_t at;
	enum walk_wire_status status;
	uint64_t local; /* where it is, if DONE */
};

/* Each is a list of one node, whose value is where it is. */
static void check_spots(struct walk_conn *w, uint32_t rkey,
			const struct spot *spots, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct walk_ask ask = {
			.program = FIND,
			.at = spots[i].at,
			.key = 77,
			.rkey = rkey,
		};
		bool is_there = spots[i].status == WALK_WIRE_DONE;

		if (is_there)
			*node_at(w, spots[i].local) = (struct walk_node){
				.key = 77, .value = spots[i].local};
		walk_ask(w, i, &ask);
		pair_run(&w->c.p);
		expect_cqe(w->c.e[0].scq, i, IBV_WC_SUCCESS);
		assert_int_equal(walk_result(w, i).status, spots[i].status);
		assert_int_equal(walk_result(w, i).at, spots[i].at);
		if (is_there)
			assert_int_equal(walk_answer(w, i).value,
					 spots[i].local);
	}
}

static void offsets_begin_at_the_region(void **state)
{
	static const struct spot spots[] = {
		{0, WALK_WIRE_DONE, 0},
		{END_BYTES - NODE_BYTES, WALK_WIRE_DONE,
		 END_BYTES - NODE_BYTES},
		{END_BYTES - NODE_BYTES + 1, WALK_WIRE_FAULT, 0},
		{END_BYTES, WALK_WIRE_FAULT, 0},
		{UINT64_MAX, WALK_WIRE_FAULT, 0},
		{UINT64_MAX - NODE_BYTES + 1, WALK_WIRE_FAULT, 0},
		{1ull << 63, WALK_WIRE_FAULT, 0},
	};
	struct walk_conn w;

	walk_init(&w, 4);
	check_spots(&w, 0, spots, ARRAY_LEN(spots));
	assert_int_equal(counter(&w.c.e[1], NIC_C_walk_faults), 5);
	walk_release(&w);
}

enum {
	SHIFT = 12,
	STRIPE = 1 << SHIFT,
};

static const struct spot striped[] = {
	/* The second of three pieces. */
	{STRIPE, WALK_WIRE_DONE, 0},
	{STRIPE + 64, WALK_WIRE_DONE, 64},
	{4 * STRIPE + 64, WALK_WIRE_DONE, STRIPE + 64},
	{2 * STRIPE - NODE_BYTES, WALK_WIRE_DONE, STRIPE - NODE_BYTES},
	{2 * STRIPE - NODE_BYTES + 8, WALK_WIRE_FAULT, 0},
	{0, WALK_WIRE_ELSEWHERE, 0},
	{2 * STRIPE, WALK_WIRE_ELSEWHERE, 0},
	{3 * STRIPE, WALK_WIRE_ELSEWHERE, 0},
	/* Its own, but beyond its end. */
	{(END_BYTES / STRIPE * 3 + 1) * (uint64_t)STRIPE, WALK_WIRE_FAULT, 0},
};

static const struct nic_place second_of_three = {
	.space = 0xabcd, .index = 1, .count = 3, .shift = SHIFT};

static void knows_its_stripes(void **state)
{
	struct walk_conn w;

	walk_init(&w, 4);
	assert_int_equal(nic_mr_set_place(w.c.e[1].mr, &second_of_three), 0);
	check_spots(&w, 0, striped, ARRAY_LEN(striped));
	assert_int_equal(walk_result(&w, 5).space, 0xabcd);
	assert_int_equal(counter(&w.c.e[1], NIC_C_walk_elsewhere), 3);
	walk_release(&w);
}

static void bind_window(struct walk_conn *w, struct nic_mw *mw, uint64_t from,
			uint64_t bytes, unsigned access)
{
	struct nic_send_extra extra = {.mw = mw, .bind_mr = w->c.e[1].mr};
	struct ibv_send_wr wr = {
		.wr_id = 9,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {.rkey = nic_mw_key(mw),
			    .bind_info = {.addr = (uintptr_t)w->c.e[1].mem +
						  from,
					  .length = bytes,
					  .mw_access_flags = access}},
	};

	assert_int_equal(nic_qp_post_send(w->c.e[1].qp, &wr, &extra), 0);
	nic_qp_kick(w->c.e[1].qp);
	pair_run(&w->c.p);
	expect_cqe(w->c.e[1].scq, 9, IBV_WC_SUCCESS);
}

static void windows_have_the_place_of_their_region(void **state)
{
	static const struct spot spots[] = {
		/* Its second stripe is what the window opens. */
		{STRIPE, WALK_WIRE_FAULT, 0},
		{4 * STRIPE, WALK_WIRE_DONE, STRIPE},
		{5 * STRIPE - NODE_BYTES, WALK_WIRE_DONE,
		 2 * STRIPE - NODE_BYTES},
		{7 * STRIPE, WALK_WIRE_FAULT, 0},
		{2 * STRIPE, WALK_WIRE_ELSEWHERE, 0},
	};
	struct walk_ask ask = {.program = MARK, .at = 4 * STRIPE, .key = 77};
	struct nic_place place = second_of_three;
	struct walk_conn w;
	struct nic_mw *mw;

	walk_init(&w, 4);
	assert_int_equal(nic_mr_set_place(w.c.e[1].mr, &second_of_three), 0);
	assert_int_equal(nic_mw_alloc(w.c.e[1].pd, IBV_MW_TYPE_2, &mw), 0);
	bind_window(&w, mw, STRIPE, STRIPE, IBV_ACCESS_REMOTE_READ);
	/* Windows have no space, so it may change. */
	place.space++;
	assert_int_equal(nic_mr_set_place(w.c.e[1].mr, &place), 0);
	place.index = 0;
	assert_int_equal(nic_mr_set_place(w.c.e[1].mr, &place), -EBUSY);
	check_spots(&w, nic_mw_key(mw), spots, ARRAY_LEN(spots));
	/* It opens less than the region: nobody writes through it. */
	ask.rkey = nic_mw_key(mw);
	walk_ask(&w, 1, &ask);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(walk_result(&w, 1).status, WALK_WIRE_NO_RIGHT);
	assert_int_equal(walk_result(&w, 1).space, 0);
	assert_int_equal(nic_mw_dealloc(mw), 0);
	walk_release(&w);
}

static void places_that_make_no_sense(void **state)
{
	static const struct nic_place bad[] = {
		{.count = 0},
		{.count = 1, .index = 1},
		{.count = 1, .shift = 12},
		{.count = 2, .index = 2, .shift = 12},
		{.count = 2, .shift = 5},
		{.count = 2, .shift = 63},
		{.count = NIC_PLACE_COUNT_MAX + 1, .shift = 12},
	};
	struct walk_conn w;

	walk_init(&w, 4);
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(nic_mr_set_place(w.c.e[1].mr, &bad[i]),
				 -EINVAL);
	walk_release(&w);
}

/* ---- other ways ---------------------------------------------------------- */

static void a_network_that_loses(void **state)
{
	struct walk_ask ask = {.program = MARK, .at = 256, .key = 3};
	struct walk_conn w;
	struct rng lost;

	conn_init(&w.c, IBV_MTU_1024);
	rng_init(&lost, 1);
	w.c.p.window_bytes = 64 << 10;
	follower_init(&w.f, 4);
	assert_int_equal(nic_set_walker(w.c.e[1].nic, &w.f.hook), 0);
	walk_connect(&w, WALK_PAD);
	make_list(&w, 256, 3, 64);
	for (uint64_t id = 0; id < 50; id++) {
		walk_ask(&w, id % 8, &ask);
		for (unsigned i = 0; nic_cq_is_empty(w.c.e[0].scq); i++) {
			assert_true(i < 1000);
			/* A fifth of the frames is lost. */
			if (w.c.p.tail != w.c.p.head && rng_u64(&lost) % 5 == 0)
				w.c.p.tail++;
			else if (w.c.p.tail != w.c.p.head)
				pair_deliver(&w.c.p);
			(void)nic_flush(w.c.e[0].nic);
			(void)nic_flush(w.c.e[1].nic);
			if (w.c.p.tail == w.c.p.head) {
				w.c.p.now_ns += 100000;
				nic_tick(w.c.e[0].nic);
			}
		}
		expect_cqe(w.c.e[0].scq, id % 8, IBV_WC_SUCCESS);
		assert_int_equal(walk_answer(&w, id % 8).value, 1002);
	}
	assert_int_equal(node_at(&w, 256)->visits, 50);
	assert_true(counter(&w.c.e[1], NIC_C_duplicate_walks) > 5);
	walk_release(&w);
}

static void packets_with_a_mac(void **state)
{
	static const uint8_t key[NIC_AUTH_KEY_BYTES] = {1, 2, 3};
	struct walk_ask ask = {.program = FIND, .at = 256, .key = 2};
	struct walk_conn w;
	struct wire_pkt pkt;

	walk_init(&w, 4);
	make_list(&w, 256, 2, 64);
	for (unsigned i = 0; i < 2; i++) {
		qp_to(w.c.e[i].qp, IBV_QPS_RESET);
		assert_int_equal(nic_qp_set_auth(w.c.e[i].qp, key, sizeof(key)),
				 0);
	}
	end_connect(&w.c.e[0], &w.c.e[1], w.c.mtu);
	end_connect(&w.c.e[1], &w.c.e[0], w.c.mtu);
	walk_ask(&w, 1, &ask);
	pair_run(&w.c.p);
	expect_cqe(w.c.e[0].scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(walk_answer(&w, 1).value, 1001);
	/* Another place to begin, with the same MAC. */
	walk_ask(&w, 2, &ask);
	assert_true(take_packet(&w.c.p, &pkt));
	assert_true(pkt.has_mac);
	pkt.walk.at++;
	inject(&w.c.e[1], &pkt);
	assert_int_equal(counter(&w.c.e[1], NIC_C_drop_auth), 1);
	walk_wait(&w);
	expect_cqe(w.c.e[0].scq, 2, IBV_WC_SUCCESS);
	walk_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_packet_there_and_one_back),
		cmocka_unit_test(goes_on_where_it_ran_out),
		cmocka_unit_test(answers_leave_in_the_order_of_the_requests),
		cmocka_unit_test(executed_once_whatever_is_lost),
		cmocka_unit_test(a_duplicate_gets_the_old_answer),
		cmocka_unit_test(more_walks_than_there_is_room_for),
		cmocka_unit_test(a_fence_waits_for_walks),
		cmocka_unit_test(offsets_begin_at_the_region),
		cmocka_unit_test(knows_its_stripes),
		cmocka_unit_test(windows_have_the_place_of_their_region),
		cmocka_unit_test(places_that_make_no_sense),
		cmocka_unit_test(a_network_that_loses),
		cmocka_unit_test(packets_with_a_mac),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
