/* SPDX-License-Identifier: Apache-2.0 */
/* Work requests: what they say, where they stand, how they complete. */
#include <errno.h>
#include <string.h>

#include "core/qp_priv.h"
#include "nic_pair.h"

static void fill(uint8_t *p, uint32_t len, unsigned seed)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

/* ---- masked atomics -------------------------------------------------------
 */

static uint64_t masked(struct conn *c, uint64_t old,
		       struct nic_masked_atomic *m)
{
	struct end *a = &c->e[0], *b = &c->e[1];
	uint64_t *word = (uint64_t *)(void *)(b->mem + 64);
	struct ibv_sge sge = {(uintptr_t)a->mem, 8, a->key};
	struct ibv_send_wr wr = {
		.wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct nic_send_extra extra = {.masked = m};
	struct nic_cqe cqe;

	m->remote_addr = (uintptr_t)word;
	m->rkey = b->key;
	*word = old;
	assert_int_equal(nic_qp_post_send(a->qp, &wr, &extra), 0);
	nic_qp_kick(a->qp);
	pair_run(&c->p);
	cqe = expect_cqe(a->scq, 1, IBV_WC_SUCCESS);
	assert_int_equal(cqe.opcode,
			 m->is_add ? IBV_WC_FETCH_ADD : IBV_WC_COMP_SWAP);
	assert_true(*(uint64_t *)(void *)a->mem == old);
	return *word;
}

static void masks_reach_the_far_word(void **state)
{
	static const struct {
		struct nic_masked_atomic m;
		uint64_t old, new;
	} table[] = {
		/* Compares one field, replaces another. */
		{{.swap_add = 0xaa00,
		  .compare = 0x0011,
		  .swap_mask = 0xff00,
		  .compare_mask = 0x00ff},
		 0x1234567800002211,
		 0x123456780000aa11},
		{{.swap_add = 0xaa00,
		  .compare = 0x0012,
		  .swap_mask = 0xff00,
		  .compare_mask = 0x00ff},
		 0x2211,
		 0x2211},
		/* No comparison at all, no replacement at all. */
		{{.swap_add = ~0ull, .compare = 5, .swap_mask = 1ull << 63},
		 0,
		 1ull << 63},
		{{.swap_add = ~0ull, .compare_mask = ~0ull}, 0, 0},
		{{.swap_add = 7,
		  .compare = 6,
		  .swap_mask = ~0ull,
		  .compare_mask = ~0ull},
		 6,
		 7},
		/* One field, two fields of 32 bits, eight of 8. */
		{{.is_add = true, .swap_add = 1}, ~0ull, 0},
		{{.is_add = true, .swap_add = 1, .boundary = 0x80000000},
		 0xffffffff,
		 0},
		{{.is_add = true,
		  .swap_add = 0x0101010101010101,
		  .boundary = 0x8080808080808080},
		 0xff00ff00ff00ff7f,
		 0x0001000100010080},
	};
	struct conn c;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct nic_masked_atomic m = table[i].m;

		assert_true(masked(&c, table[i].old, &m) == table[i].new);
	}
	conn_release(&c);
}

/* ---- data -----------------------------------------------------------------
 */

struct simple {
	enum ibv_wr_opcode opcode;
	unsigned flags;
	int num_sge;
	struct ibv_sge *sge;
};

static int post_simple(struct conn *c, uint64_t wr_id, const struct simple *s)
{
	struct end *b = &c->e[1];
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = s->sge,
		.num_sge = s->num_sge,
		.opcode = s->opcode,
		.send_flags = s->flags,
		.imm_data = htobe32(0x01020304),
		.wr.rdma = {.remote_addr = (uintptr_t)b->mem, .rkey = b->key},
	};

	return nic_qp_post_send(c->e[0].qp, &wr, NULL);
}

static void inline_data_is_taken_when_posted(void **state)
{
	static const uint32_t sizes[] = {0,  1,	 11,  12,  13,
					 28, 60, 200, 255, END_INLINE};
	enum {
		FLAGS = IBV_SEND_INLINE | IBV_SEND_SIGNALED
	};
	struct conn c;
	uint8_t local[1024], want[END_INLINE];
	struct ibv_qp_attr made;
	/* No key: the bytes are copied by the caller. */
	struct ibv_sge sge = {.addr = (uintptr_t)local};
	struct simple s = {IBV_WR_RDMA_WRITE, FLAGS, 1, &sge};
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(sizes); i++) {
		fill(local, sizes[i], i);
		memcpy(want, local, sizes[i]);
		memset(c.e[1].mem, 0xee, 1024);
		sge.length = sizes[i];
		assert_int_equal(post_simple(&c, i, &s), 0);
		memset(local, 0, sizeof(local));
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
		assert_memory_equal(c.e[1].mem, want, sizes[i]);
		assert_int_equal(c.e[1].mem[sizes[i]], 0xee);
	}
	/* The queue may have been given more room than was asked for. */
	nic_qp_query(c.e[0].qp, &made);
	assert_in_range(made.cap.max_inline_data, END_INLINE,
			sizeof(local) - 1);
	sge.length = made.cap.max_inline_data + 1;
	assert_int_equal(post_simple(&c, 0, &s), -EINVAL);
	/* Answers cannot be inline. */
	sge.length = 8;
	s.opcode = IBV_WR_RDMA_READ;
	assert_int_equal(post_simple(&c, 0, &s), -EINVAL);
	s.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(post_simple(&c, 0, &s), -EINVAL);
	conn_release(&c);
}

/* Cuts `total` bytes from `mem` into n elements, some of them empty, which do
 * not touch each other. */
static void cut(struct conn *c, struct end *e, struct ibv_sge *sge, unsigned n,
		uint32_t total)
{
	uint32_t at = 0;
	unsigned i;

	for (i = 0; i < n; i++) {
		uint32_t len = 0;

		if (i == n - 1)
			len = total;
		else if (i % 3)
			len = (uint32_t)rng_below(&c->p.rng, total / 4 + 1);
		sge[i] = (struct ibv_sge){(uintptr_t)e->mem + at, len, e->key};
		at += len + 16;
		total -= len;
	}
}

static void collect(const struct ibv_sge *sge, unsigned n, uint8_t *out)
{
	unsigned i;

	for (i = 0; i < n; i++) {
		memcpy(out, (const void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
		out += sge[i].length;
	}
}

static void gathers_and_scatters(void **state)
{
	static uint8_t sent[20000], got[20000];
	struct ibv_sge from[END_SGE + 1], to[END_SGE];
	struct conn c;
	struct simple s = {IBV_WR_SEND, IBV_SEND_SIGNALED, END_SGE, from};
	struct ibv_recv_wr recv = {
		.wr_id = 5, .sg_list = to, .num_sge = END_SGE};
	unsigned i;

	conn_init(&c, IBV_MTU_1024);
	for (i = 0; i < 50; i++) {
		uint32_t total = (uint32_t)rng_below(&c.p.rng, 20000);

		fill(c.e[0].mem, 40000, i);
		memset(c.e[1].mem, 0, 40000);
		cut(&c, &c.e[0], from, END_SGE, total);
		cut(&c, &c.e[1], to, END_SGE, total);
		collect(from, END_SGE, sent);
		s.opcode = IBV_WR_SEND;
		assert_int_equal(nic_qp_post_recv(c.e[1].qp, &recv), 0);
		assert_int_equal(post_simple(&c, 1, &s), 0);
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
		expect_cqe(c.e[1].rcq, 5, IBV_WC_SUCCESS);
		collect(to, END_SGE, got);
		assert_memory_equal(sent, got, total);

		s.opcode = IBV_WR_RDMA_READ;
		fill(c.e[1].mem, total, i + 100);
		assert_int_equal(post_simple(&c, 2, &s), 0);
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
		collect(from, END_SGE, got);
		assert_memory_equal(c.e[1].mem, got, total);
	}
	s.num_sge = END_SGE + 1;
	assert_int_equal(post_simple(&c, 0, &s), -EINVAL);
	s.num_sge = -1;
	assert_int_equal(post_simple(&c, 0, &s), -EINVAL);
	conn_release(&c);
}

/* Requests of every length go over the end of a small queue. */
static void requests_wrap(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];
	struct nic_qp_attr attr = {
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = 3,
			.max_recv_wr = 1,
			.max_send_sge = 9,
			.max_recv_sge = 1,
			.max_inline_data = 150},
	};
	unsigned i, wrapped_inline = 0, wrapped_pointers = 0;
	struct ibv_sge sge[9];

	conn_init(&c, IBV_MTU_256);
	nic_qp_destroy(a->qp);
	attr.send_cq = a->scq;
	attr.recv_cq = a->rcq;
	attr.owner = &a->qp_o;
	assert_int_equal(nic_qp_create(a->pd, &attr, &a->qp), 0);
	conn_restart(&c);
	for (i = 0; i < 400; i++) {
		bool in = rng_below(&c.p.rng, 2);
		uint32_t total = (uint32_t)rng_below(&c.p.rng, in ? 151 : 600);
		unsigned n = (unsigned)rng_between(&c.p.rng, 1, 9);
		struct simple s = {IBV_WR_RDMA_WRITE,
				   IBV_SEND_SIGNALED |
					   (in ? IBV_SEND_INLINE : 0),
				   (int)n, sge};
		const struct send_slot *slot =
			sendq_slot(&a->qp->sq, a->qp->sq.head);
		static uint8_t want[600];
		uint32_t first;

		fill(a->mem, 2000, i);
		memset(b->mem, 0, 2000);
		cut(&c, a, sge, n, total);
		collect(sge, n, want);
		assert_int_equal(post_simple(&c, i, &s), 0);
		first = slot->block & (a->qp->sq.block_count - 1);
		if (first + slot->blocks > a->qp->sq.block_count)
			*(in ? &wrapped_inline : &wrapped_pointers) += 1;
		nic_qp_kick(a->qp);
		pair_run(&c.p);
		expect_cqe(a->scq, i, IBV_WC_SUCCESS);
		assert_memory_equal(b->mem, want, total);
		assert_int_equal(b->mem[total], 0);
	}
	assert_true(wrapped_inline > 5);
	assert_true(wrapped_pointers > 5);
	conn_release(&c);
}

/* ---- order and completions ------------------------------------------------
 */

static void a_fence_waits_for_answers(void **state)
{
	unsigned fence;

	for (fence = 0; fence < 2; fence++) {
		struct conn c;
		struct ibv_sge sge = {.length = 8};
		struct simple read = {IBV_WR_RDMA_READ, IBV_SEND_SIGNALED, 1,
				      &sge};
		struct simple write = {IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 1,
				       &sge};

		conn_init(&c, IBV_MTU_256);
		sge.addr = (uintptr_t)c.e[0].mem;
		sge.lkey = c.e[0].key;
		if (fence)
			write.flags |= IBV_SEND_FENCE;
		assert_int_equal(post_simple(&c, 1, &read), 0);
		assert_int_equal(post_simple(&c, 2, &write), 0);
		nic_qp_kick(c.e[0].qp);
		assert_int_equal(c.p.head - c.p.tail, fence ? 1 : 2);
		/* With the fence it writes what it has just read. */
		c.e[1].mem[0] = 0x42;
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS);
		expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
		assert_int_equal(c.e[1].mem[0], fence ? 0x42 : 0);
		conn_release(&c);
	}
}

static void only_what_is_signaled_completes(void **state)
{
	struct conn c;
	struct ibv_sge sge = {.length = 8};
	struct simple s = {IBV_WR_RDMA_WRITE, 0, 1, &sge};
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	sge.addr = (uintptr_t)c.e[0].mem;
	sge.lkey = c.e[0].key;
	for (i = 0; i < 3 * END_WR; i++) {
		s.flags = i % 8 == 7 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(post_simple(&c, i, &s), 0);
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		if (i % 8 == 7)
			expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
		expect_no_cqe(c.e[0].scq);
	}
	/* An error always shows. */
	sge.lkey ^= 0x100;
	s.flags = 0;
	assert_int_equal(post_simple(&c, 99, &s), 0);
	nic_qp_kick(c.e[0].qp);
	expect_cqe(c.e[0].scq, 99, IBV_WC_LOC_PROT_ERR);
	conn_release(&c);
}

static void a_queue_pair_may_signal_all(void **state)
{
	struct conn c;
	struct ibv_sge sge = {.length = 8};
	struct simple s = {IBV_WR_RDMA_WRITE, 0, 1, &sge};
	struct nic_qp_attr attr = {
		.type = IBV_QPT_RC, .cap = {4, 4, 1, 1, 0}, .sq_sig_all = true};

	conn_init(&c, IBV_MTU_256);
	sge.addr = (uintptr_t)c.e[0].mem;
	sge.lkey = c.e[0].key;
	nic_qp_destroy(c.e[0].qp);
	attr.send_cq = c.e[0].scq;
	attr.recv_cq = c.e[0].rcq;
	attr.owner = &c.e[0].qp_o;
	assert_int_equal(nic_qp_create(c.e[0].pd, &attr, &c.e[0].qp), 0);
	conn_restart(&c);
	assert_int_equal(post_simple(&c, 4, &s), 0);
	nic_qp_kick(c.e[0].qp);
	pair_run(&c.p);
	expect_cqe(c.e[0].scq, 4, IBV_WC_SUCCESS);
	conn_release(&c);
}

static void immediates_arrive(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		uint32_t len;
		enum ibv_wc_opcode wc;
	} table[] = {
		{IBV_WR_SEND_WITH_IMM, 0, IBV_WC_RECV},
		{IBV_WR_SEND_WITH_IMM, 700, IBV_WC_RECV},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 0, IBV_WC_RECV_RDMA_WITH_IMM},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 8, IBV_WC_RECV_RDMA_WITH_IMM},
		{IBV_WR_RDMA_WRITE_WITH_IMM, 700, IBV_WC_RECV_RDMA_WITH_IMM},
	};
	struct conn c;
	unsigned i;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct ibv_sge sge = {(uintptr_t)c.e[0].mem, table[i].len,
				      c.e[0].key};
		struct simple s = {table[i].opcode, IBV_SEND_SIGNALED, 1, &sge};
		bool write = table[i].wc != IBV_WC_RECV;
		struct nic_cqe cqe;

		fill(c.e[0].mem, 1000, i);
		memset(c.e[1].mem, 0xcc, 8192);
		assert_int_equal(post_recv(&c.e[1], i, 4096, 1024), 0);
		assert_int_equal(post_simple(&c, i, &s), 0);
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		expect_cqe(c.e[0].scq, i, IBV_WC_SUCCESS);
		cqe = expect_cqe(c.e[1].rcq, i, IBV_WC_SUCCESS);
		assert_int_equal(cqe.opcode, table[i].wc);
		assert_int_equal(cqe.byte_len, table[i].len);
		assert_int_equal(cqe.wc_flags, IBV_WC_WITH_IMM);
		assert_int_equal(cqe.imm_or_key, htobe32(0x01020304));
		assert_memory_equal(c.e[1].mem + (write ? 0 : 4096), c.e[0].mem,
				    table[i].len);
		/* A WRITE takes the receive, not its buffer. */
		if (write)
			assert_int_equal(c.e[1].mem[4096], 0xcc);
	}
	conn_release(&c);
}

static void notifications_come_as_asked(void **state)
{
	enum {
		NOT_ARMED,
		ANY,
		SOLICITED
	};
	static const struct {
		int arm;
		unsigned flags;
		bool fails;
		unsigned events;
	} table[] = {
		{NOT_ARMED, IBV_SEND_SOLICITED, false, 0},
		{ANY, 0, false, 1},
		{ANY, IBV_SEND_SOLICITED, false, 1},
		{SOLICITED, 0, false, 0},
		{SOLICITED, IBV_SEND_SOLICITED, false, 1},
		{SOLICITED, 0, true, 1}, /* failures are worth waking for */
	};
	unsigned i;

	for (i = 0; i < ARRAY_LEN(table); i++) {
		struct conn c;
		struct ibv_sge sge = {.length = 600};
		struct simple s = {IBV_WR_SEND,
				   IBV_SEND_SIGNALED | table[i].flags, 1, &sge};
		unsigned k;

		conn_init(&c, IBV_MTU_256);
		sge.addr = (uintptr_t)c.e[0].mem;
		sge.lkey = c.e[0].key;
		for (k = 0; k < 3; k++)
			assert_int_equal(post_recv(&c.e[1], k, 0,
						   table[i].fails ? 8 : 1024),
					 0);
		if (table[i].arm != NOT_ARMED)
			nic_cq_arm(c.e[1].rcq, table[i].arm == SOLICITED);
		assert_int_equal(post_simple(&c, 1, &s), 0);
		assert_int_equal(post_simple(&c, 2, &s), 0);
		nic_qp_kick(c.e[0].qp);
		pair_run(&c.p);
		assert_int_equal(c.e[1].rcq_o.cq_events, table[i].events);
		assert_int_equal(c.e[0].scq_o.cq_events, 0);
		conn_release(&c);
	}
}

static void asking_for_any_is_not_weakened(void **state)
{
	struct conn c;
	struct end *a = &c.e[0], *b = &c.e[1];

	conn_init(&c, IBV_MTU_256);
	nic_cq_arm(a->scq, true);
	nic_cq_arm(a->scq, false);
	nic_cq_arm(a->scq, true);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 1, 0, 8), 0);
	pair_run(&c.p);
	assert_int_equal(a->scq_o.cq_events, 1);
	/* Timestamps are off until asked for. */
	assert_int_equal(expect_cqe(a->scq, 1, IBV_WC_SUCCESS).timestamp_ns, 0);
	nic_cq_enable_timestamps(a->scq);
	assert_int_equal(post(a, b, IBV_WR_RDMA_WRITE, 2, 0, 8), 0);
	pair_run(&c.p);
	assert_int_equal(expect_cqe(a->scq, 2, IBV_WC_SUCCESS).timestamp_ns,
			 c.p.now_ns);
	conn_release(&c);
}

/* ---- requests that change in memory ---------------------------------------
 */

static struct wqe_ctrl *ctrl_of(const struct nic_qp *qp, uint32_t i)
{
	const struct sendq *q = &qp->sq;
	uint32_t block = sendq_slot(q, i)->block & (q->block_count - 1);

	return (struct wqe_ctrl *)(q->wqes + block * WQE_BLOCK_BYTES);
}

static void set_opcode(struct wqe_ctrl *ctrl, uint8_t opcode)
{
	ctrl->opmod_idx_opcode = be32_put(opcode);
}

static void set_segments(struct wqe_ctrl *ctrl, uint32_t n)
{
	ctrl->qpn_ds = be32_put(n);
}

/* Control, remote address, then data. */
static struct wqe_data *data_of(struct wqe_ctrl *ctrl)
{
	return (struct wqe_data *)(void *)(ctrl + 2);
}

static void no_such_opcode(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, 0x55);
}

static void last_opcode(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, 0xff);
}

static void no_segments(struct wqe_ctrl *ctrl)
{
	set_segments(ctrl, 0);
}

static void without_address(struct wqe_ctrl *ctrl)
{
	set_segments(ctrl, 1);
}

static void beyond_its_blocks(struct wqe_ctrl *ctrl)
{
	set_segments(ctrl, 255);
}

static void inline_too_long(struct wqe_ctrl *ctrl)
{
	data_of(ctrl)->byte_count = be32_put(WQE_INLINE_FLAG | 13);
}

static void inline_huge(struct wqe_ctrl *ctrl)
{
	data_of(ctrl)->byte_count = be32_put(0xffffffff);
}

static void huge(struct wqe_ctrl *ctrl)
{
	data_of(ctrl)->byte_count = be32_put(0x7fffffff);
}

static void atomic_of_no_bytes(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, WQE_CAS);
	set_segments(ctrl, 4);
}

static void inline_read(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, WQE_READ);
	data_of(ctrl)->byte_count = be32_put(WQE_INLINE_FLAG | 8);
}

static void (*const spoils[])(struct wqe_ctrl *) = {
	no_such_opcode,	    last_opcode, no_segments, without_address,
	beyond_its_blocks,  inline_huge, huge,	      inline_too_long,
	atomic_of_no_bytes, inline_read,
};

/* As `spoils`, but when a first transmission was lost already. */
static void now_a_read(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, WQE_READ);
}

static void now_a_send(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, WQE_SEND);
}

static void now_shorter(struct wqe_ctrl *ctrl)
{
	data_of(ctrl)->byte_count = be32_put(8);
}

static void now_an_atomic(struct wqe_ctrl *ctrl)
{
	set_opcode(ctrl, WQE_CAS);
	set_segments(ctrl, 4);
	data_of(ctrl)[1] = data_of(ctrl)[0];
	data_of(ctrl)[1].byte_count = be32_put(8);
}

static void (*const late_spoils[])(struct wqe_ctrl *) = {
	now_a_read,  now_a_send,  now_shorter,	     now_an_atomic,
	last_opcode, inline_huge, beyond_its_blocks,
};

static void garbage_is_an_error(void **state)
{
	unsigned i, late;

	for (late = 0; late < 2; late++) {
		unsigned n = late ? ARRAY_LEN(late_spoils) : ARRAY_LEN(spoils);

		for (i = 0; i < n; i++) {
			struct conn c;
			struct ibv_sge sge[2] = {{.length = 600}};
			struct simple s = {IBV_WR_RDMA_WRITE, 0, 1, sge};

			conn_init(&c, IBV_MTU_256);
			sge[0].addr = (uintptr_t)c.e[0].mem;
			sge[0].lkey = c.e[0].key;
			assert_int_equal(post_simple(&c, 1, &s), 0);
			assert_int_equal(post_simple(&c, 2, &s), 0);
			if (!late)
				spoils[i](ctrl_of(c.e[0].qp, 1));
			nic_qp_kick(c.e[0].qp);
			if (late) {
				c.p.tail = c.p.head; /* lost */
				late_spoils[i](ctrl_of(c.e[0].qp, 1));
				c.p.now_ns += 10000000;
				nic_tick(c.e[0].nic);
				nic_flush(c.e[0].nic);
			}
			pair_run(&c.p);
			expect_cqe(c.e[0].scq, 2, IBV_WC_LOC_QP_OP_ERR);
			assert_int_equal(nic_qp_state(c.e[0].qp), IBV_QPS_ERR);
			conn_release(&c);
		}
	}
}

/* What is rewritten into another good request is that request. */
static void requests_may_be_rewritten(void **state)
{
	struct conn c;
	struct ibv_sge sge[2] = {{.length = 8}, {.length = 8}};
	struct simple s = {IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, 2, sge};
	struct wqe_ctrl *ctrl;

	conn_init(&c, IBV_MTU_256);
	sge[0].addr = (uintptr_t)c.e[0].mem;
	sge[1].addr = (uintptr_t)c.e[0].mem + 8;
	sge[0].lkey = sge[1].lkey = c.e[0].key;
	fill(c.e[1].mem, 64, 3);
	assert_int_equal(post_simple(&c, 1, &s), 0);
	ctrl = ctrl_of(c.e[0].qp, 0);
	set_opcode(ctrl, WQE_READ);
	data_of(ctrl)->byte_count = be32_put(5);
	nic_qp_kick(c.e[0].qp);
	pair_run(&c.p);
	assert_int_equal(expect_cqe(c.e[0].scq, 1, IBV_WC_SUCCESS).opcode,
			 IBV_WC_RDMA_READ);
	assert_memory_equal(c.e[0].mem, c.e[1].mem, 5);
	assert_memory_equal(c.e[0].mem + 8, c.e[1].mem + 5, 8);
	/* And one that does nothing. */
	assert_int_equal(post_simple(&c, 2, &s), 0);
	ctrl = ctrl_of(c.e[0].qp, 1);
	set_opcode(ctrl, WQE_NOP);
	set_segments(ctrl, 1);
	nic_qp_kick(c.e[0].qp);
	assert_int_equal(c.p.head, c.p.tail);
	expect_cqe(c.e[0].scq, 2, IBV_WC_SUCCESS);
	conn_release(&c);
}

static void datagrams_cannot_become_anything_else(void **state)
{
	struct conn c;
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_ah_attr ah_attr = {.is_global = 1, .port_num = 1};
	struct ibv_send_wr wr = {.wr_id = 3, .opcode = IBV_WR_SEND};
	struct nic_send_extra extra = {0};
	struct end u;

	conn_init(&c, IBV_MTU_256);
	end_share(&u, &c.e[0], IBV_QPT_UD);
	assert_int_equal(nic_qp_modify(u.qp, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_QKEY),
			 0);
	qp_to(u.qp, IBV_QPS_RTR);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(nic_qp_modify(u.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN),
			 0);
	memcpy(ah_attr.grh.dgid.raw, nic_get_config(c.e[1].nic)->gids[0].ip,
	       16);
	assert_int_equal(nic_ah_create(u.pd, &ah_attr, &extra.ah), 0);
	wr.wr.ud.remote_qpn = nic_qp_number(c.e[1].qp);
	assert_int_equal(nic_qp_post_send(u.qp, &wr, &extra), 0);
	set_opcode(ctrl_of(u.qp, 0), WQE_READ);
	nic_qp_kick(u.qp);
	expect_cqe(u.scq, 3, IBV_WC_LOC_QP_OP_ERR);
	assert_int_equal(c.p.head, c.p.tail);
	nic_ah_destroy(extra.ah);
	nic_qp_destroy(u.qp);
	conn_release(&c);
}

/* Random bytes over a request, seldom all of it. Whatever comes of it, the
 * sanitizers see no access out of bounds, and end 1's memory changes only
 * through its key. */
static void random_garbage_does_no_harm(void **state)
{
	enum {
		ROUNDS = 3000
	};
	struct conn c;
	struct ibv_sge sge[4];
	unsigned i, k, errors = 0;

	conn_init(&c, IBV_MTU_256);
	for (i = 0; i < ROUNDS; i++) {
		struct simple s = {i % 2 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				   IBV_SEND_SIGNALED, 4, sge};
		struct nic_qp *qp = c.e[0].qp;
		const struct nic_cqe *cqe;
		uint8_t *wqe;

		for (k = 0; k < 4; k++)
			sge[k] = (struct ibv_sge){(uintptr_t)c.e[0].mem +
							  k * 512,
						  300, c.e[0].key};
		assert_int_equal(post_simple(&c, 1, &s), 0);
		wqe = (uint8_t *)ctrl_of(qp, qp->sq.head - 1);
		for (k = 1 + (unsigned)rng_below(&c.p.rng, 2); k; k--)
			wqe[rng_below(&c.p.rng, 6 * WQE_SEG_BYTES)] =
				(uint8_t)rng_u64(&c.p.rng);
		if (i % 3 == 0) /* a known opcode, or nearly */
			wqe[3] = (uint8_t)rng_below(&c.p.rng, 0x20);
		nic_qp_kick(qp);
		pair_run(&c.p);
		pair_advance(&c.p, 30000); /* SENDs that wait for receives */
		for (k = 0; k < 20 && !nic_cq_peek(c.e[0].scq); k++)
			pair_advance(&c.p, 10000000);
		cqe = nic_cq_peek(c.e[0].scq);
		assert_non_null(cqe);
		errors += cqe->status != IBV_WC_SUCCESS;
		nic_cq_pop(c.e[0].scq);
		if (nic_qp_state(qp) != IBV_QPS_RTS ||
		    nic_qp_state(c.e[1].qp) != IBV_QPS_RTS)
			conn_restart(&c);
	}
	/* It is worth nothing if everything fails, or everything works. */
	assert_in_range(errors, ROUNDS / 10, ROUNDS * 9 / 10);
	conn_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_reach_the_far_word),
		cmocka_unit_test(inline_data_is_taken_when_posted),
		cmocka_unit_test(gathers_and_scatters),
		cmocka_unit_test(requests_wrap),
		cmocka_unit_test(a_fence_waits_for_answers),
		cmocka_unit_test(only_what_is_signaled_completes),
		cmocka_unit_test(a_queue_pair_may_signal_all),
		cmocka_unit_test(immediates_arrive),
		cmocka_unit_test(notifications_come_as_asked),
		cmocka_unit_test(asking_for_any_is_not_weakened),
		cmocka_unit_test(garbage_is_an_error),
		cmocka_unit_test(requests_may_be_rewritten),
		cmocka_unit_test(datagrams_cannot_become_anything_else),
		cmocka_unit_test(random_garbage_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
