/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client and a node with managed queues, for tests of chains: `front` is
 * connected to the client, `work` to `back`, which is on the same NIC. All
 * rings lie in the node's memory, which one key covers.
 */
#ifndef AQ_TEST_CHAIN_RIG_H
#define AQ_TEST_CHAIN_RIG_H

#include <aquifer/aqdv_wqe.h>

#include "nic_pair.h"

enum {
	RIG_SLOTS = 8,
	RIG_WORK = 0x0,	    /* ring of `work` */
	RIG_FRONT = 0x4000, /* ring of `front` */
	RIG_RECVS = 0x8000, /* its receives */
	RIG_DBR = 0xa000,
	RIG_TABLE = 0xb000, /* page addresses, big-endian */
	RIG_HEAP = 0xc000,  /* for requests under test */
	RIG_PAGES = 0x10000,
	RIG_PAGE_BYTES = 4096,
	RIG_PAGE_COUNT = 32,
	RIG_BLOCK = (int)AQDV_WQE_BLOCK_BYTES,
};

struct rig {
	struct pair p;
	struct end client;
	struct end back; /* owns domain, memory and plain CQs of the node */
	struct end work;
	struct end front;
	struct nic_cq *trigger; /* counts messages of the client */
	struct nic_cq *done;	/* counts what `work` did */
	uint32_t trigger_no, done_no;
	struct owner trigger_o, done_o;
};

struct rig_shape {
	uint32_t work_blocks, work_flags, max_steps;
	uint32_t front_blocks, front_flags;
	uint32_t recvs, recv_segs;
	bool doorbell;
	bool plain_cq; /* `work` completes into a CQ that can be polled */
};

static inline uint64_t rig_at(const struct rig *r, uint32_t offset)
{
	return (uintptr_t)r->back.mem + offset;
}

static inline void *rig_ptr(const struct rig *r, uint32_t offset)
{
	return r->back.mem + offset;
}

static inline union aqdv_wqe *rig_work(const struct rig *r, uint32_t block)
{
	return (union aqdv_wqe *)rig_ptr(r, RIG_WORK) + block;
}

static inline union aqdv_wqe *rig_front(const struct rig *r, uint32_t block)
{
	return (union aqdv_wqe *)rig_ptr(r, RIG_FRONT) + block;
}

static inline void rig_qp(struct rig *r, struct end *e, struct nic_cq *scq,
			  struct nic_cq *rcq,
			  const struct nic_chain_attr *chain)
{
	struct nic_qp_attr attr = {
		.type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16},
		.send_cq = scq,
		.recv_cq = rcq,
		.chain = chain,
	};

	*e = r->back;
	memset(&e->qp_o, 0, sizeof(e->qp_o));
	attr.owner = &e->qp_o;
	e->scq = scq;
	e->rcq = rcq;
	assert_int_equal(nic_qp_create(e->pd, &attr, &e->qp), 0);
}

static inline void rig_init(struct rig *r, const struct rig_shape *s)
{
	struct nic_chain_attr work = {.flags = s->work_flags};
	struct nic_chain_attr front = {.flags = s->front_flags};

	memset(r, 0, sizeof(*r));
	pair_init(&r->p);
	end_init(&r->client, r->p.side[0].nic, IBV_QPT_RC);
	end_init(&r->back, r->p.side[1].nic, IBV_QPT_RC);
	assert_int_equal(
		nic_cq_create(r->back.nic, 16, &r->trigger_o, &r->trigger), 0);
	assert_int_equal(nic_cq_create(r->back.nic, 16, &r->done_o, &r->done),
			 0);
	assert_int_equal(nic_cq_make_counting(r->trigger), 0);
	if (!s->plain_cq)
		assert_int_equal(nic_cq_make_counting(r->done), 0);
	r->trigger_no = nic_cq_number(r->trigger);
	r->done_no = nic_cq_number(r->done);
	work.sq_addr = rig_at(r, RIG_WORK);
	work.sq_lkey = front.sq_lkey = front.rq_lkey = front.rq_dbr_lkey =
		r->back.key;
	work.sq_blocks = s->work_blocks;
	work.max_steps = s->max_steps;
	front.max_steps = s->max_steps;
	front.sq_addr = rig_at(r, RIG_FRONT);
	front.sq_blocks = s->front_blocks;
	front.rq_addr = rig_at(r, RIG_RECVS);
	front.rq_entries = s->recvs;
	front.rq_segs = s->recv_segs;
	front.rq_dbr_addr = s->doorbell ? rig_at(r, RIG_DBR) : 0;
	rig_qp(r, &r->work, r->done, r->back.rcq, &work);
	if (s->front_blocks || s->recvs)
		rig_qp(r, &r->front, r->done, r->trigger, &front);
	else
		rig_qp(r, &r->front, r->back.scq, r->trigger, NULL);
}

static inline void rig_connect(struct rig *r)
{
	end_connect(&r->client, &r->front, IBV_MTU_4096);
	end_connect(&r->front, &r->client, IBV_MTU_4096);
	end_connect(&r->back, &r->work, IBV_MTU_4096);
	end_connect(&r->work, &r->back, IBV_MTU_4096);
}

static inline void rig_release(struct rig *r)
{
	nic_qp_destroy(r->work.qp);
	nic_qp_destroy(r->front.qp);
	assert_int_equal(nic_cq_destroy(r->trigger), 0);
	assert_int_equal(nic_cq_destroy(r->done), 0);
	end_release(&r->client);
	end_release(&r->back);
	pair_release(&r->p);
}

static inline void rig_enable(struct rig *r, struct end *e, uint32_t index)
{
	assert_int_equal(nic_qp_enable_send(e->qp, index), 0);
	nic_qp_kick(e->qp);
	pair_run(&r->p);
}

/* Local and remote memory of the node: the same key. */
static inline void rig_rdma(const struct rig *r, union aqdv_wqe *w,
			    enum aqdv_wqe_opcode opcode, uint32_t remote,
			    uint32_t local, uint32_t len)
{
	aqdv_wqe_put_rdma(w, opcode, AQDV_WQE_CQE, rig_at(r, remote),
			  r->back.key, rig_at(r, local), r->back.key, len);
}

static inline uint64_t rig_word(const struct rig *r, uint32_t offset)
{
	uint64_t v;

	memcpy(&v, rig_ptr(r, offset), sizeof(v));
	return v;
}

static inline void rig_set_word(struct rig *r, uint32_t offset, uint64_t v)
{
	memcpy(rig_ptr(r, offset), &v, sizeof(v));
}

#endif
