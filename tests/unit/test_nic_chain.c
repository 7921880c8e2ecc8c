/* SPDX-License-Identifier: Apache-2.0 */
/* Chains: requests from memory, rewritten by others, and used again. */
#include "chain_rig.h"
#include "core/nic_limits.h"
#include "wire/wqe.h"

/* The public layout is the NIC's. */
#define SAME_SIZE(pub, own)                              \
	STATIC_ASSERT(sizeof(struct pub) == sizeof(own), \
		      "the size that the NIC reads")
#define SAME_PLACE(pub, own, field)                        \
	STATIC_ASSERT(offsetof(struct pub, field) ==       \
			      offsetof(struct own, field), \
		      "the place where the NIC reads")

SAME_SIZE(aqdv_wqe_ctrl, struct wqe_ctrl);
SAME_PLACE(aqdv_wqe_ctrl, wqe_ctrl, qpn_ds);
SAME_PLACE(aqdv_wqe_ctrl, wqe_ctrl, flags);
SAME_PLACE(aqdv_wqe_ctrl, wqe_ctrl, imm);
SAME_PLACE(aqdv_wqe_raddr, wqe_raddr, addr);
SAME_PLACE(aqdv_wqe_raddr, wqe_raddr, rkey);
SAME_PLACE(aqdv_wqe_atomic, wqe_atomic, swap_add);
SAME_PLACE(aqdv_wqe_atomic, wqe_atomic, compare);
SAME_PLACE(aqdv_wqe_cas_mask, wqe_cas_mask, swap_mask);
SAME_PLACE(aqdv_wqe_cas_mask, wqe_cas_mask, compare_mask);
SAME_PLACE(aqdv_wqe_masked_faa, wqe_masked_faa, add);
SAME_PLACE(aqdv_wqe_masked_faa, wqe_masked_faa, boundary);
SAME_PLACE(aqdv_wqe_data, wqe_data, byte_count);
SAME_PLACE(aqdv_wqe_data, wqe_data, lkey);
SAME_PLACE(aqdv_wqe_data, wqe_data, addr);
SAME_PLACE(aqdv_wqe_order, wqe_order, step);
SAME_PLACE(aqdv_wqe_order, wqe_order, index);
SAME_PLACE(aqdv_wqe_order, wqe_order, number);
STATIC_ASSERT((unsigned)AQDV_WQE_NOP == (unsigned)WQE_NOP &&
		      (unsigned)AQDV_WQE_WRITE == (unsigned)WQE_WRITE &&
		      (unsigned)AQDV_WQE_WRITE_IMM == (unsigned)WQE_WRITE_IMM &&
		      (unsigned)AQDV_WQE_SEND == (unsigned)WQE_SEND &&
		      (unsigned)AQDV_WQE_SEND_IMM == (unsigned)WQE_SEND_IMM &&
		      (unsigned)AQDV_WQE_READ == (unsigned)WQE_READ &&
		      (unsigned)AQDV_WQE_CAS == (unsigned)WQE_CAS &&
		      (unsigned)AQDV_WQE_FAA == (unsigned)WQE_FAA,
	      "opcodes");
STATIC_ASSERT(
	(unsigned)AQDV_WQE_MASKED_CAS == (unsigned)WQE_MASKED_CAS &&
		(unsigned)AQDV_WQE_MASKED_FAA == (unsigned)WQE_MASKED_FAA &&
		(unsigned)AQDV_WQE_WAIT == (unsigned)WQE_WAIT &&
		(unsigned)AQDV_WQE_SEND_ENABLE == (unsigned)WQE_SEND_ENABLE &&
		(unsigned)AQDV_WQE_RECV_ENABLE == (unsigned)WQE_RECV_ENABLE,
	"opcodes");
STATIC_ASSERT((unsigned)AQDV_WQE_CQE == (unsigned)WQE_CTRL_CQE &&
		      (unsigned)AQDV_WQE_FENCE == (unsigned)WQE_CTRL_FENCE &&
		      (unsigned)AQDV_WQE_SOLICITED ==
			      (unsigned)WQE_CTRL_SOLICITED,
	      "flags");
STATIC_ASSERT(AQDV_WQE_INLINE == WQE_INLINE_FLAG &&
		      AQDV_WQE_END == WQE_INVALID_LKEY &&
		      AQDV_WQE_IMMS == (unsigned)NIC_RECV_IMMS,
	      "marks");

/* ---- single requests ---------------------------------------------------- */

static const struct rig_shape plain_shape = {
	.work_blocks = 32,
	.work_flags = NIC_CHAIN_ORDERED,
};

/* Every opcode on the node's own memory, without a packet. */
static void executes_every_opcode(void **state)
{
	struct rig r;
	uint32_t key;
	unsigned i;

	rig_init(&r, &plain_shape);
	rig_connect(&r);
	key = r.back.key;
	for (i = 0; i < 64; i++)
		((uint8_t *)rig_ptr(&r, RIG_HEAP))[i] = (uint8_t)(i + 1);
	rig_set_word(&r, RIG_HEAP + 0x200, 41);
	rig_set_word(&r, RIG_HEAP + 0x208, 5);
	rig_set_word(&r, RIG_HEAP + 0x210, 0x00ff);
	rig_set_word(&r, RIG_HEAP + 0x218, 0x1122334455667788);
	rig_rdma(&r, rig_work(&r, 0), AQDV_WQE_READ, RIG_HEAP, RIG_HEAP + 0x100,
		 64);
	rig_rdma(&r, rig_work(&r, 1), AQDV_WQE_WRITE, RIG_HEAP + 0x180,
		 RIG_HEAP + 1, 33);
	aqdv_wqe_put_amo(rig_work(&r, 2), AQDV_WQE_FAA, AQDV_WQE_CQE,
			 rig_at(&r, RIG_HEAP + 0x200), key, 1, 0,
			 rig_at(&r, RIG_HEAP + 0x300), key);
	aqdv_wqe_put_amo(rig_work(&r, 3), AQDV_WQE_CAS, AQDV_WQE_CQE,
			 rig_at(&r, RIG_HEAP + 0x208), key, 9, 5,
			 rig_at(&r, RIG_HEAP + 0x308), key);
	/* Modulo 256 by the top bit of a field. */
	aqdv_wqe_put_amo(rig_work(&r, 4), AQDV_WQE_MASKED_FAA, AQDV_WQE_CQE,
			 rig_at(&r, RIG_HEAP + 0x210), key, 8, 1u << 7,
			 rig_at(&r, RIG_HEAP + 0x310), key);
	aqdv_wqe_put_swap(rig_work(&r, 5), AQDV_WQE_CQE,
			  rig_at(&r, RIG_HEAP + 0x218), key,
			  rig_at(&r, RIG_HEAP + 0x318), key);
	aqdv_wqe_put_ctrl(&rig_work(&r, 8)->ctrl, AQDV_WQE_NOP, 4,
			  AQDV_WQE_CQE);
	rig_enable(&r, &r.work, 9);
	assert_memory_equal(rig_ptr(&r, RIG_HEAP),
			    rig_ptr(&r, RIG_HEAP + 0x100), 64);
	assert_memory_equal(rig_ptr(&r, RIG_HEAP + 1),
			    rig_ptr(&r, RIG_HEAP + 0x180), 33);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x200), 42);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x300), 41);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x208), 9);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x308), 5);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x210), 0x0007);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x310), 0x00ff);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x318), 0x8877665544332211);
	assert_int_equal(nic_cq_counted(r.done), 7);
	assert_int_equal(counter(&r.back, NIC_C_chain_loops), 6);
	assert_int_equal(r.p.head, 0); /* nothing on the wire */
	rig_release(&r);
}

/* Masked CAS has one segment more, inline data and empty messages. */
static void executes_longer_requests(void **state)
{
	struct rig r;
	union aqdv_wqe *w;
	struct aqdv_wqe_cas_mask *mask;
	uint32_t length;

	rig_init(&r, &plain_shape);
	rig_connect(&r);
	rig_set_word(&r, RIG_HEAP, 0xaa00bb);
	w = rig_work(&r, 0);
	aqdv_wqe_put_amo(w, AQDV_WQE_MASKED_CAS, 0, rig_at(&r, RIG_HEAP),
			 r.back.key, 0xcc, 0xbb, 0, 0);
	aqdv_wqe_put_ctrl(&w->ctrl, AQDV_WQE_MASKED_CAS, 5, AQDV_WQE_CQE);
	mask = (struct aqdv_wqe_cas_mask *)&w->data[3];
	mask->swap_mask = mask->compare_mask = htobe64(0xff);
	aqdv_wqe_put_data(&w[1].data[0], rig_at(&r, RIG_HEAP + 8), 8,
			  r.back.key);
	w = rig_work(&r, 2);
	aqdv_wqe_put_ctrl(&w->ctrl, AQDV_WQE_WRITE, 4, AQDV_WQE_CQE);
	aqdv_wqe_put_raddr(&w->rdma.raddr, rig_at(&r, RIG_HEAP + 16),
			   r.back.key);
	length = htobe32(9 | AQDV_WQE_INLINE);
	memcpy(&w->bytes[32], &length, 4);
	memcpy(&w->bytes[36], "in queue", 9);
	w = rig_work(&r, 3);
	rig_rdma(&r, w, AQDV_WQE_READ, RIG_HEAP, RIG_HEAP, 0);
	rig_enable(&r, &r.work, 4);
	assert_int_equal(rig_word(&r, RIG_HEAP), 0xaa00cc);
	assert_int_equal(rig_word(&r, RIG_HEAP + 8), 0xaa00bb);
	assert_string_equal(rig_ptr(&r, RIG_HEAP + 16), "in queue");
	assert_int_equal(nic_cq_counted(r.done), 3);
	rig_release(&r);
}

/* SEND and WRITE_IMM to the other end of the loop go as packets. */
static void sends_to_itself(void **state)
{
	struct rig r;

	rig_init(&r, &plain_shape);
	rig_connect(&r);
	assert_int_equal(post_recv(&r.back, 3, RIG_HEAP, 64), 0);
	assert_int_equal(post_recv(&r.back, 4, RIG_HEAP, 64), 0);
	rig_set_word(&r, RIG_HEAP + 0x80, 77);
	rig_rdma(&r, rig_work(&r, 0), AQDV_WQE_WRITE_IMM, RIG_HEAP + 0x100,
		 RIG_HEAP + 0x80, 8);
	aqdv_wqe_put_ctrl(&rig_work(&r, 1)->ctrl, AQDV_WQE_SEND, 2,
			  AQDV_WQE_CQE);
	aqdv_wqe_put_data(&rig_work(&r, 1)->data[1],
			  rig_at(&r, RIG_HEAP + 0x80), 8, r.back.key);
	rig_enable(&r, &r.work, 2);
	expect_cqe(r.back.rcq, 3, IBV_WC_SUCCESS);
	expect_cqe(r.back.rcq, 4, IBV_WC_SUCCESS);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x100), 77);
	assert_int_equal(rig_word(&r, RIG_HEAP), 77);
	assert_int_equal(nic_cq_counted(r.done), 2);
	assert_true(r.p.head > 0);
	rig_release(&r);
}

/* Numbers of completions that can be polled are those of blocks. */
static void completes_in_order(void **state)
{
	struct rig_shape shape = plain_shape;
	struct rig r;

	shape.plain_cq = true;
	rig_init(&r, &shape);
	rig_connect(&r);
	aqdv_wqe_put_ctrl(&rig_work(&r, 0)->ctrl, AQDV_WQE_NOP, 1,
			  AQDV_WQE_CQE);
	aqdv_wqe_put_swap(rig_work(&r, 1), 0, rig_at(&r, RIG_HEAP), r.back.key,
			  rig_at(&r, RIG_HEAP), r.back.key);
	rig_rdma(&r, rig_work(&r, 4), AQDV_WQE_READ, RIG_HEAP, RIG_HEAP, 8);
	aqdv_wqe_put_order(rig_work(&r, 5), AQDV_WQE_WAIT, r.trigger_no, 0, 0);
	rig_work(&r, 5)->ctrl.flags = AQDV_WQE_CQE;
	aqdv_wqe_put_order(rig_work(&r, 6), AQDV_WQE_WAIT, r.trigger_no, 1, 0);
	rig_work(&r, 6)->ctrl.flags = AQDV_WQE_CQE;
	rig_enable(&r, &r.work, 7);
	expect_cqe(r.done, 0, IBV_WC_SUCCESS);
	expect_cqe(r.done, 4, IBV_WC_SUCCESS);
	expect_cqe(r.done, 5, IBV_WC_SUCCESS);
	expect_no_cqe(r.done);
	assert_int_equal(post_recv(&r.front, 1, RIG_HEAP, 64), 0);
	assert_int_equal(post(&r.client, &r.front, IBV_WR_SEND, 1, 0, 8), 0);
	pair_run(&r.p);
	expect_cqe(r.done, 6, IBV_WC_SUCCESS);
	rig_release(&r);
}

/* ---- requests that change requests -------------------------------------- */

/* Figure 2 of ODRP: if x == y, a CAS makes a WRITE of the NOP behind it. */
static void branches_by_rewriting(void **state)
{
	uint64_t x;

	for (x = 6; x < 9; x++) {
		struct rig r;
		union aqdv_wqe *cas, *branch;
		uint64_t nop, write;

		rig_init(&r, &plain_shape);
		rig_connect(&r);
		cas = rig_work(&r, 0);
		branch = rig_work(&r, 1);
		rig_set_word(&r, RIG_HEAP, 1234);
		rig_rdma(&r, branch, AQDV_WQE_WRITE, RIG_HEAP + 8, RIG_HEAP, 8);
		/* The index of a control segment is free: y stands there. */
		branch->ctrl.opmod_idx_opcode =
			htobe32(7 << 8 | AQDV_WQE_WRITE);
		memcpy(&write, branch, 8);
		branch->ctrl.opmod_idx_opcode = htobe32(7 << 8 | AQDV_WQE_NOP);
		memcpy(&nop, branch, 8);
		branch->ctrl.opmod_idx_opcode =
			htobe32((uint32_t)x << 8 | AQDV_WQE_NOP);
		aqdv_wqe_put_amo(cas, AQDV_WQE_CAS, AQDV_WQE_CQE,
				 rig_at(&r, RIG_WORK + RIG_BLOCK), r.back.key,
				 write, nop, rig_at(&r, RIG_HEAP + 16),
				 r.back.key);
		rig_enable(&r, &r.work, 2);
		assert_int_equal(rig_word(&r, RIG_HEAP + 8), x == 7 ? 1234 : 0);
		assert_int_equal(nic_cq_counted(r.done), 2);
		rig_release(&r);
	}
}

/* A list of places, followed by READs that give each other their addresses;
 * the ring wraps in the middle of a request. */
static void follows_pointers(void **state)
{
	struct rig r;
	uint32_t i, at = RIG_HEAP;
	const uint32_t hops = 9;

	rig_init(&r, &(struct rig_shape){.work_blocks = hops,
					 .work_flags = NIC_CHAIN_ORDERED});
	rig_connect(&r);
	for (i = 0; i < hops; i++) {
		uint32_t next = RIG_HEAP + (i * 37 % 64 + 1) * 16;
		uint64_t be = htobe64(rig_at(&r, next));
		uint32_t field =
			RIG_WORK + (i + 1) % hops * RIG_BLOCK +
			(uint32_t)offsetof(struct aqdv_wqe_rdma, raddr);

		memcpy(rig_ptr(&r, at), &be, 8);
		rig_rdma(&r, rig_work(&r, i), AQDV_WQE_READ, 0, field, 8);
		at = next;
	}
	rig_work(&r, 0)->rdma.raddr.addr = htobe64(rig_at(&r, RIG_HEAP));
	rig_enable(&r, &r.work, hops);
	assert_int_equal(be64toh(rig_work(&r, 0)->rdma.raddr.addr),
			 rig_at(&r, at));
	/* A request of three blocks over the end of the ring. */
	rig_set_word(&r, RIG_HEAP + 0x2000, 0x0102030405060708);
	for (i = 0; i < 7; i++)
		aqdv_wqe_put_ctrl(&rig_work(&r, i)->ctrl, AQDV_WQE_NOP, 1, 0);
	{
		union aqdv_wqe swap[3];

		aqdv_wqe_put_swap(swap, 0, rig_at(&r, RIG_HEAP + 0x2000),
				  r.back.key, rig_at(&r, RIG_HEAP + 0x2008),
				  r.back.key);
		*rig_work(&r, 7) = swap[0];
		*rig_work(&r, 8) = swap[1];
		*rig_work(&r, 0) = swap[2];
	}
	assert_int_equal(nic_qp_enable_send(r.work.qp, hops + 7), 0);
	aqdv_wqe_put_ctrl(&rig_work(&r, 0)->ctrl, AQDV_WQE_NOP, 1, 0);
	nic_qp_kick(r.work.qp);
	pair_run(&r.p);
	aqdv_wqe_put_data(&rig_work(&r, 0)->data[0],
			  rig_at(&r, RIG_HEAP + 0x2009), 1, r.back.key);
	aqdv_wqe_put_data(&rig_work(&r, 0)->data[1],
			  rig_at(&r, RIG_HEAP + 0x2008), 1, r.back.key);
	rig_enable(&r, &r.work, hops + 10);
	assert_int_equal(rig_word(&r, RIG_HEAP + 0x2008), 0x0807060504030201);
	rig_release(&r);
}

/* ---- page loads --------------------------------------------------------- */

/* What the client sends for a load. */
struct load_args {
	uint64_t table_entry; /* all big-endian */
	uint64_t buffer;
	uint32_t rkey;
	uint32_t imm;
	uint32_t next_wait; /* the paper's recycling only */
	uint32_t next_enable;
	uint32_t next_recv;
	uint32_t pad;
};

enum {
	LOAD_WORK_BLOCKS = 3,  /* WAIT, READ, ENABLE */
	LOAD_FRONT_BLOCKS = 2, /* WRITE, RECV_ENABLE */
	LOAD_SEGS = 8,
};

static uint32_t field(uint32_t ring, uint32_t block, size_t offset)
{
	return ring + block * RIG_BLOCK + (uint32_t)offset;
}

/* Where the pieces of a message go. */
static void put_load_recv(struct rig *r, uint32_t slot)
{
	struct aqdv_wqe_data *d =
		(struct aqdv_wqe_data *)rig_ptr(r, RIG_RECVS) +
		slot * LOAD_SEGS;
	uint32_t key = r->back.key;

	aqdv_wqe_put_data(
		&d[0],
		rig_at(r, field(RIG_WORK, slot * LOAD_WORK_BLOCKS + 1,
				offsetof(struct aqdv_wqe_rdma, raddr.addr))),
		8, key);
	aqdv_wqe_put_data(
		&d[1],
		rig_at(r, field(RIG_FRONT, slot * LOAD_FRONT_BLOCKS,
				offsetof(struct aqdv_wqe_rdma, raddr.addr))),
		12, key);
	aqdv_wqe_put_data(&d[2],
			  rig_at(r, field(RIG_FRONT, slot * LOAD_FRONT_BLOCKS,
					  offsetof(struct aqdv_wqe_ctrl, imm))),
			  4, key);
	aqdv_wqe_put_end(&d[3]);
}

static void put_load_slot(struct rig *r, uint32_t slot)
{
	union aqdv_wqe *w = rig_work(r, slot * LOAD_WORK_BLOCKS);
	union aqdv_wqe *f = rig_front(r, slot * LOAD_FRONT_BLOCKS);

	aqdv_wqe_put_order(&w[0], AQDV_WQE_WAIT, r->trigger_no, slot + 1,
			   RIG_SLOTS);
	rig_rdma(r, &w[1], AQDV_WQE_READ, 0,
		 field(RIG_FRONT, slot * LOAD_FRONT_BLOCKS,
		       offsetof(struct aqdv_wqe_rdma, data[0].addr)),
		 8);
	aqdv_wqe_put_order(
		&w[2], AQDV_WQE_SEND_ENABLE, nic_qp_number(r->front.qp),
		(slot + 1) * LOAD_FRONT_BLOCKS, RIG_SLOTS * LOAD_FRONT_BLOCKS);
	aqdv_wqe_put_rdma(&f[0], AQDV_WQE_WRITE_IMM, 0, 0, 0, 0, r->back.key,
			  RIG_PAGE_BYTES);
	aqdv_wqe_put_order(&f[1], AQDV_WQE_RECV_ENABLE,
			   nic_qp_number(r->front.qp), RIG_SLOTS + slot + 1,
			   RIG_SLOTS);
	put_load_recv(r, slot);
}

static void load_init(struct rig *r)
{
	uint32_t i;

	rig_init(r, &(struct rig_shape){
			    .work_blocks = RIG_SLOTS * LOAD_WORK_BLOCKS,
			    .work_flags = NIC_CHAIN_ORDERED | NIC_CHAIN_CYCLIC,
			    .front_blocks = RIG_SLOTS * LOAD_FRONT_BLOCKS,
			    .recvs = RIG_SLOTS,
			    .recv_segs = LOAD_SEGS,
		    });
	for (i = 0; i < RIG_SLOTS; i++)
		put_load_slot(r, i);
	for (i = 0; i < RIG_PAGE_COUNT; i++) {
		uint64_t page =
			htobe64(rig_at(r, RIG_PAGES + i * RIG_PAGE_BYTES));

		memcpy(rig_ptr(r, RIG_TABLE + i * 8), &page, 8);
		memset(rig_ptr(r, RIG_PAGES + i * RIG_PAGE_BYTES), (int)i + 1,
		       RIG_PAGE_BYTES);
	}
	rig_connect(r);
	assert_int_equal(nic_qp_enable_recv(r->front.qp, RIG_SLOTS), 0);
	pair_run(&r->p);
}

/* Sends arguments; the page comes to `at` of the client's memory. */
static void load(struct rig *r, uint32_t page, uint32_t at, uint32_t imm)
{
	struct load_args args = {
		.table_entry = htobe64(rig_at(r, RIG_TABLE + page * 8)),
		.buffer = htobe64((uintptr_t)r->client.mem + at),
		.rkey = htobe32(r->client.key),
		.imm = htobe32(imm),
	};
	struct ibv_sge sge = {
		.addr = (uintptr_t)&args,
		.length = offsetof(struct load_args, next_wait),
	};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_INLINE,
	};

	assert_int_equal(post_recv(&r->client, imm, 0, 0), 0);
	assert_int_equal(nic_qp_post_send(r->client.qp, &wr, NULL), 0);
	nic_qp_kick(r->client.qp);
}

static void expect_load(struct rig *r, uint32_t page, uint32_t at, uint32_t imm)
{
	struct nic_cqe cqe = expect_cqe(r->client.rcq, imm, IBV_WC_SUCCESS);

	assert_int_equal(be32toh(cqe.imm_or_key), imm);
	assert_int_equal(r->client.mem[at], page + 1);
	assert_int_equal(r->client.mem[at + RIG_PAGE_BYTES - 1], page + 1);
}

/* Rings are used again many thousand times, in batches up to all slots. */
static void loads_pages(void **state)
{
	struct rig r;
	uint32_t i, done = 0, total = 100000, batch = 1;

	load_init(&r);
	while (done < total) {
		for (i = 0; i < batch; i++)
			load(&r, (done + i) % RIG_PAGE_COUNT,
			     0x4000 + i * RIG_PAGE_BYTES, done + i);
		pair_run(&r.p);
		for (i = 0; i < batch; i++)
			expect_load(&r, (done + i) % RIG_PAGE_COUNT,
				    0x4000 + i * RIG_PAGE_BYTES, done + i);
		done += batch;
		batch = batch % RIG_SLOTS + 1;
	}
	assert_int_equal(nic_cq_counted(r.trigger), done);
	assert_int_equal(counter(&r.back, NIC_C_chain_loops), done);
	assert_int_equal(counter(&r.back, NIC_C_rnr_naks_sent), 0);
	rig_release(&r);
}

/* More requests than receives: they wait, and none is lost or mixed up. */
static void keeps_too_many_waiting(void **state)
{
	struct rig r;
	uint32_t i;

	load_init(&r);
	for (i = 0; i < 3 * RIG_SLOTS; i++)
		load(&r, i % RIG_PAGE_COUNT, 0x4000 + i * RIG_PAGE_BYTES, i);
	pair_run(&r.p);
	for (i = 0; i < 50; i++)
		pair_advance(&r.p, 1000000);
	for (i = 0; i < 3 * RIG_SLOTS; i++)
		expect_load(&r, i % RIG_PAGE_COUNT, 0x4000 + i * RIG_PAGE_BYTES,
			    i);
	rig_release(&r);
}

/* The oldest frame arrives and stays on the wire. */
static void duplicate(struct pair *p)
{
	const struct pair_frame *f = &p->queue[p->tail % PAIR_QUEUE];

	nic_input(p->side[f->to].nic, f->bytes, f->len, NIC_FROM_NET);
}

/* Frames are lost, doubled and reordered by the test's dice. */
static void loads_pages_over_a_bad_wire(void **state)
{
	struct rig r;
	uint32_t i, got = 0;
	unsigned tries;

	load_init(&r);
	for (i = 0; i < 400; i++) {
		load(&r, i % RIG_PAGE_COUNT, 0x4000, i);
		for (tries = 0; nic_cq_is_empty(r.client.rcq); tries++) {
			uint32_t dice = (uint32_t)rng_below(&r.p.rng, 16);

			assert_true(tries < 10000);
			if (r.p.head == r.p.tail) {
				pair_advance(&r.p, 0);
				if (r.p.head == r.p.tail)
					pair_advance(&r.p, 5000000);
				continue;
			}
			if (dice == 0)
				r.p.tail++; /* lost */
			else if (dice == 1)
				duplicate(&r.p);
			else
				pair_deliver(&r.p);
			(void)nic_flush(r.client.nic);
			(void)nic_flush(r.back.nic);
		}
		expect_load(&r, i % RIG_PAGE_COUNT, 0x4000, i);
		got++;
	}
	pair_run(&r.p);
	assert_int_equal(got, 400);
	assert_int_equal(nic_cq_counted(r.trigger), got);
	rig_release(&r);
}

/* ---- recycling by the client -------------------------------------------- */

/* As in the paper: steps are 0, and each message brings the indices of the
 * round that it starts, and the receive queue's doorbell. */
static void put_client_recv(struct rig *r)
{
	struct aqdv_wqe_data *d = rig_ptr(r, RIG_RECVS);
	uint32_t key = r->back.key;

	aqdv_wqe_put_data(
		&d[0],
		rig_at(r, field(RIG_WORK, 1,
				offsetof(struct aqdv_wqe_rdma, raddr.addr))),
		8, key);
	aqdv_wqe_put_data(
		&d[1],
		rig_at(r, field(RIG_FRONT, 0,
				offsetof(struct aqdv_wqe_rdma, raddr.addr))),
		12, key);
	aqdv_wqe_put_data(&d[2],
			  rig_at(r, field(RIG_FRONT, 0,
					  offsetof(struct aqdv_wqe_ctrl, imm))),
			  4, key);
	aqdv_wqe_put_data(&d[3],
			  rig_at(r, field(RIG_WORK, 0,
					  offsetof(struct aqdv_wqe_control,
						   order.index))),
			  4, key);
	aqdv_wqe_put_data(&d[4],
			  rig_at(r, field(RIG_WORK, 2,
					  offsetof(struct aqdv_wqe_control,
						   order.index))),
			  4, key);
	aqdv_wqe_put_data(&d[5], rig_at(r, RIG_DBR), 4, key);
	aqdv_wqe_put_end(&d[6]);
}

static void client_init(struct rig *r)
{
	uint64_t page;

	rig_init(r, &(struct rig_shape){
			    .work_blocks = 3,
			    .work_flags = NIC_CHAIN_ORDERED | NIC_CHAIN_CYCLIC,
			    .front_blocks = 1,
			    .recvs = 1,
			    .recv_segs = LOAD_SEGS,
			    .doorbell = true,
		    });
	page = htobe64(rig_at(r, RIG_PAGES));
	memcpy(rig_ptr(r, RIG_TABLE), &page, 8);
	memset(rig_ptr(r, RIG_PAGES), 1, RIG_PAGE_BYTES);
	aqdv_wqe_put_order(rig_work(r, 0), AQDV_WQE_WAIT, r->trigger_no, 1, 0);
	rig_rdma(r, rig_work(r, 1), AQDV_WQE_READ, 0,
		 field(RIG_FRONT, 0,
		       offsetof(struct aqdv_wqe_rdma, data[0].addr)),
		 8);
	aqdv_wqe_put_order(rig_work(r, 2), AQDV_WQE_SEND_ENABLE,
			   nic_qp_number(r->front.qp), 0, 0);
	aqdv_wqe_put_rdma(rig_front(r, 0), AQDV_WQE_WRITE_IMM, 0, 0, 0, 0,
			  r->back.key, RIG_PAGE_BYTES);
	put_client_recv(r);
	rig_connect(r);
	*(uint32_t *)rig_ptr(r, RIG_DBR) = htobe32(1);
	pair_run(&r->p);
}

static void client_recycles(void **state)
{
	struct rig r;
	uint32_t i;

	client_init(&r);
	for (i = 0; i < 100000; i++) {
		struct load_args args = {
			.table_entry = htobe64(rig_at(&r, RIG_TABLE)),
			.buffer = htobe64((uintptr_t)r.client.mem + 0x4000),
			.rkey = htobe32(r.client.key),
			.imm = htobe32(i),
			.next_wait = htobe32(i + 2),
			.next_enable = htobe32(i + 1),
			.next_recv = htobe32(i + 2),
		};
		struct ibv_sge sge = {
			.addr = (uintptr_t)&args,
			.length = offsetof(struct load_args, pad),
		};
		struct ibv_send_wr wr = {
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_INLINE,
		};

		assert_int_equal(post_recv(&r.client, i, 0, 0), 0);
		assert_int_equal(nic_qp_post_send(r.client.qp, &wr, NULL), 0);
		nic_qp_kick(r.client.qp);
		pair_run(&r.p);
		expect_load(&r, 0, 0x4000, i);
	}
	rig_release(&r);
}

/* ---- immediate values --------------------------------------------------- */

static void send_imm(struct rig *r, enum ibv_wr_opcode opcode, uint32_t imm)
{
	uint64_t text = 0x1122334455667788;
	struct ibv_sge sge = {.addr = (uintptr_t)&text, .length = 8};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.imm_data = imm,
		.send_flags = IBV_SEND_INLINE,
	};

	assert_int_equal(nic_qp_post_send(r->client.qp, &wr, NULL), 0);
	nic_qp_kick(r->client.qp);
	pair_run(&r->p);
}

/* A receive puts the value where its list says, beside the data; a message
 * without one, and a place that may not be written to, end the queue pair. */
static void places_immediates(void **state)
{
	for (unsigned what = 0; what < 3; what++) {
		struct aqdv_wqe_data *d;
		struct rig r;

		rig_init(&r, &(struct rig_shape){.work_blocks = 4,
						 .front_blocks = 4,
						 .recvs = 2,
						 .recv_segs = 4});
		d = rig_ptr(&r, RIG_RECVS);
		for (unsigned i = 0; i < 2; i++, d += 4) {
			aqdv_wqe_put_imm(&d[0], rig_at(&r, RIG_HEAP + 4),
					 r.back.key);
			aqdv_wqe_put_data(&d[1], rig_at(&r, RIG_HEAP + 8), 8,
					  r.back.key);
			aqdv_wqe_put_imm(&d[2], rig_at(&r, RIG_HEAP + 16),
					 what == 2 && i ? r.back.key + 1
							: r.back.key);
			aqdv_wqe_put_end(&d[3]);
		}
		rig_connect(&r);
		assert_int_equal(nic_qp_enable_recv(r.front.qp, 2), 0);
		send_imm(&r, IBV_WR_SEND_WITH_IMM, htobe32(0x01020304));
		assert_int_equal(be64toh(rig_word(&r, RIG_HEAP)), 0x01020304);
		assert_int_equal(rig_word(&r, RIG_HEAP + 8),
				 0x1122334455667788);
		assert_int_equal(rig_word(&r, RIG_HEAP + 16) & UINT32_MAX,
				 htobe32(0x01020304));
		send_imm(&r, what == 1 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
			 htobe32(5));
		assert_int_equal(nic_cq_counted(r.trigger), what ? 1 : 2);
		assert_int_equal(nic_qp_state(r.front.qp),
				 what ? IBV_QPS_ERR : IBV_QPS_RTS);
		rig_release(&r);
	}
}

/* ---- queues that start each other --------------------------------------- */

static void enables_and_waits(void **state)
{
	struct rig r;
	union aqdv_wqe *f;

	/* `front` sends the client what `work` has copied, and waits for it. */
	rig_init(&r, &(struct rig_shape){.work_blocks = 4, .front_blocks = 4});
	rig_connect(&r);
	rig_set_word(&r, RIG_HEAP, 99);
	f = rig_front(&r, 0);
	rig_rdma(&r, rig_work(&r, 0), AQDV_WQE_WRITE, RIG_HEAP + 8, RIG_HEAP,
		 8);
	aqdv_wqe_put_order(&f[0], AQDV_WQE_WAIT, r.done_no, 1, 0);
	aqdv_wqe_put_rdma(&f[1], AQDV_WQE_WRITE, AQDV_WQE_CQE,
			  (uintptr_t)r.client.mem, r.client.key,
			  rig_at(&r, RIG_HEAP + 8), r.back.key, 8);
	rig_enable(&r, &r.front, 2);
	assert_int_equal(*(uint64_t *)(void *)r.client.mem, 0);
	rig_enable(&r, &r.work, 1);
	assert_int_equal(*(uint64_t *)(void *)r.client.mem, 99);
	assert_int_equal(nic_cq_counted(r.done), 2);
	assert_int_equal(nic_cq_destroy(r.done), -EBUSY);
	/* Enabled already: nothing happens. Too far: refused. */
	rig_enable(&r, &r.work, 1);
	assert_int_equal(nic_qp_enable_send(r.work.qp, 6), -EINVAL);
	assert_int_equal(nic_qp_enable_send(r.back.qp, 1), -EINVAL);
	assert_int_equal(nic_qp_enable_recv(r.front.qp, 1), -EINVAL);
	assert_int_equal(counter(&r.back, NIC_C_chain_steps), 3);
	/* Reset: it starts from the first block. */
	qp_to(r.work.qp, IBV_QPS_RESET);
	qp_to(r.back.qp, IBV_QPS_RESET);
	end_connect(&r.back, &r.work, IBV_MTU_4096);
	end_connect(&r.work, &r.back, IBV_MTU_4096);
	rig_set_word(&r, RIG_HEAP + 8, 0);
	rig_enable(&r, &r.work, 1);
	assert_int_equal(rig_word(&r, RIG_HEAP + 8), 99);
	rig_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(executes_every_opcode),
		cmocka_unit_test(executes_longer_requests),
		cmocka_unit_test(sends_to_itself),
		cmocka_unit_test(completes_in_order),
		cmocka_unit_test(branches_by_rewriting),
		cmocka_unit_test(follows_pointers),
		cmocka_unit_test(loads_pages),
		cmocka_unit_test(keeps_too_many_waiting),
		cmocka_unit_test(loads_pages_over_a_bad_wire),
		cmocka_unit_test(client_recycles),
		cmocka_unit_test(places_immediates),
		cmocka_unit_test(enables_and_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
