/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains: their memory, keys and queues, and what is left to do when one stops
 * in the middle. The work queue executes one request after the other, and each
 * is counted; so the count says which slot's program was under way and how far
 * it got, whatever made it stop.
 */
#include "pframe_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "pframe_priv.h"

enum {
	ALL_RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	CQ_DEPTH = 16, /* successes are only counted */
};

const char *pframe_chain_name(enum page_chain kind)
{
	static const char *const names[PAGE_CHAIN_COUNT] = {
		[PAGE_CHAIN_LOAD] = "load",
		[PAGE_CHAIN_MAPPED] = "mapped",
		[PAGE_CHAIN_UNMAPPED] = "unmapped",
		[PAGE_CHAIN_INVALIDATE] = "invalidate",
	};

	return kind < PAGE_CHAIN_COUNT ? names[kind] : "?";
}

/* ---- memory and keys ---------------------------------------------------- */

static size_t take(size_t *at, size_t bytes)
{
	size_t start = *at;

	*at = align_up(start + bytes, CACHE_LINE);
	return start;
}

static int make_memory(struct pframe_chain *c)
{
	bool stores =
		c->kind == PAGE_CHAIN_MAPPED || c->kind == PAGE_CHAIN_UNMAPPED;
	size_t n = c->ring, at = 0;
	size_t work = take(&at, n * c->blocks * sizeof(*c->work));
	size_t front = take(&at, n * CHAIN_FRONT_BLOCKS * sizeof(*c->front));
	size_t recv = take(&at, n * c->recv_segs * sizeof(*c->recv));
	size_t slot = take(&at, n * sizeof(*c->slot));
	size_t pages = take(&at, stores ? n * c->space->pool->pframe_bytes : 0);

	c->memory_bytes = align_up(at, 4096);
	c->memory = mmap(NULL, c->memory_bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->memory == MAP_FAILED) {
		c->memory = NULL;
		return -ENOMEM;
	}
	c->work = (void *)(c->memory + work);
	c->front = (void *)(c->memory + front);
	c->recv = (void *)(c->memory + recv);
	c->slot = (void *)(c->memory + slot);
	c->pages = stores ? c->memory + pages : NULL;
	return 0;
}

/* The client names an entry of its table by its distance from the first, so
 * the table has a key of its own that begins at 0, and the page frames whose
 * addresses come out of it have one, too. */
static struct ibv_mr *make_table_key(struct pframe_chain *c, struct ibv_pd *pd)
{
	const struct pframe_space *s = c->space;
	size_t bytes = s->entries * sizeof(*s->table);

	/* A chain that is told distances has a beginning to add to them. */
	if (c->without & PAGE_WITHOUT_ADDRESS)
		return ibv_reg_mr_iova(pd, s->table, bytes, CHAIN_TABLE_BASE,
				       ALL_RIGHTS);
	return ibv_reg_mr(pd, s->table, bytes,
			  ALL_RIGHTS | IBV_ACCESS_ZERO_BASED);
}

static int make_keys(struct pframe_chain *c, struct ibv_pd *pd)
{
	struct pframe_pool *p = c->space->pool;
	size_t queue_bytes = (size_t)((uint8_t *)p->places + p->places_bytes -
				      (uint8_t *)p->queue);

	c->memory_mr = ibv_reg_mr(pd, c->memory, c->memory_bytes, ALL_RIGHTS);
	c->table_mr = make_table_key(c, pd);
	c->pframes_mr =
		ibv_reg_mr(pd, p->pframes, p->pframes_bytes, ALL_RIGHTS);
	c->queue_mr = ibv_reg_mr(pd, p->queue, queue_bytes, ALL_RIGHTS);
	c->zero_mr = ibv_reg_mr(pd, c->slot, 8,
				IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ZERO_BASED);
	return c->memory_mr && c->table_mr && c->pframes_mr && c->queue_mr &&
			       c->zero_mr
		       ? 0
		       : -errno;
}

/* ---- queues ------------------------------------------------------------- */

static int make_cqs(struct pframe_chain *c, struct ibv_context *context)
{
	c->trigger_cq = ibv_create_cq(context, CQ_DEPTH, NULL, NULL, 0);
	c->done_cq = ibv_create_cq(context, CQ_DEPTH, NULL, NULL, 0);
	c->front_cq = ibv_create_cq(context, CQ_DEPTH, NULL, NULL, 0);
	if (!c->trigger_cq || !c->done_cq || !c->front_cq)
		return -errno;
	if (aqdv_count_cq(c->trigger_cq, &c->trigger) ||
	    aqdv_count_cq(c->done_cq, &c->done_number) ||
	    aqdv_count_cq(c->front_cq, &c->front_number))
		return -EOPNOTSUPP;
	return 0;
}

static int make_qps(struct pframe_chain *c, struct ibv_pd *pd)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.send_cq = c->done_cq,
		.recv_cq = c->front_cq,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct aqdv_chain_attr work = {
		.flags = AQDV_CHAIN_ORDERED | AQDV_CHAIN_CYCLIC,
		.sq_addr = (uintptr_t)c->work,
		.sq_lkey = c->memory_mr->lkey,
		.sq_blocks = c->ring * c->blocks,
	};
	struct aqdv_chain_attr front = {
		.sq_addr = (uintptr_t)c->front,
		.sq_lkey = c->memory_mr->lkey,
		.sq_blocks = c->ring * CHAIN_FRONT_BLOCKS,
		.rq_addr = (uintptr_t)c->recv,
		.rq_lkey = c->memory_mr->lkey,
		.rq_entries = c->ring,
		.rq_segs = c->recv_segs,
	};

	c->work_qp = aqdv_create_chain_qp(pd, &init, &work);
	if (!c->work_qp)
		return -errno;
	init.send_cq = c->front_cq;
	init.recv_cq = c->trigger_cq;
	c->front_qp = aqdv_create_chain_qp(pd, &init, &front);
	if (!c->front_qp)
		return -errno;
	init.recv_cq = c->front_cq;
	c->back_qp = ibv_create_qp(pd, &init);
	return c->back_qp ? 0 : -errno;
}

/* ---- life --------------------------------------------------------------- */

static int build(struct pframe_chain *c, struct ibv_pd *pd)
{
	int err;

	chain_program_size(c);
	c->settled = c->counted; /* unless its program says otherwise */
	err = make_memory(c);
	if (!err)
		err = make_keys(c, pd);
	if (!err)
		err = make_cqs(c, pd->context);
	if (!err)
		err = make_qps(c, pd);
	if (!err)
		chain_program_write(c);
	return err;
}

/* The chain that gives pages back waits for the others' answers, so it must
 * know them: it comes last. One that has stopped is in nobody's way. */
static int check_order(const struct pframe_space *s, enum page_chain kind)
{
	const struct pframe_chain *back = s->chain[PAGE_CHAIN_INVALIDATE];

	if (kind == PAGE_CHAIN_INVALIDATE && !s->chain[PAGE_CHAIN_LOAD])
		return error_set(-EINVAL, "the load chain comes before the "
					  "one that gives pages back");
	if (kind == PAGE_CHAIN_MAPPED && back &&
	    !chain_qp_is_broken(back->work_qp))
		return error_set(-EINVAL, "the mapped chain comes before the "
					  "one that gives pages back");
	return 0;
}

int pframe_chain_create(struct pframe_space *space, struct ibv_pd *pd,
			enum page_chain kind, unsigned without,
			struct pframe_chain **out)
{
	struct aqdv_device_attr attr = {0};
	struct pframe_chain *c;
	int err;

	if (aqdv_query_device(pd->context, &attr) ||
	    !(attr.caps & AQDV_CAP_CHAINS))
		return error_set(-EOPNOTSUPP, "the NIC has no chains");
	if (space->guests)
		return error_set(-EBUSY,
				 "the processor works on these pages; chains "
				 "do not beside it");
	if (space->chain[kind])
		return error_set(-EEXIST, "there is a %s chain already",
				 pframe_chain_name(kind));
	if (without & PAGE_CLIENT_INDICES && without != PAGE_CLIENT_INDICES)
		return error_set(-EINVAL, "a chain whose indices the client "
					  "sends is optimised");
	err = check_order(space, kind);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c)
		return error_set(-ENOMEM, "no memory for a chain");
	c->space = space;
	c->kind = kind;
	c->without = kind == PAGE_CHAIN_UNMAPPED
			     ? without
			     : without & PAGE_CLIENT_INDICES;
	c->slots = u32_pow2_ceil(space->depth);
	c->ring = without & PAGE_CLIENT_INDICES ? 2 * c->slots : c->slots;
	c->recv_segs = without & PAGE_CLIENT_INDICES ? CHAIN_RECV_SEGS_MAX
						     : CHAIN_RECV_SEGS;
	ASSERT((uintptr_t)space->pool->pframes >= CHAIN_PFRAME_MIN);
	err = build(c, pd);
	space->chain[kind] = c;
	if (err) {
		pframe_chain_destroy(c);
		return error_set(err, "no %s chain: %s",
				 pframe_chain_name(kind), strerror(-err));
	}
	*out = c;
	return 0;
}

int pframe_chain_start(struct pframe_chain *c)
{
	int err = chain_close_loop(c);

	/* The first look at its WAIT. */
	if (!err)
		err = aqdv_enable_send(c->work_qp, 1);
	return err ? err : aqdv_enable_recv(c->front_qp, c->slots);
}

uint64_t pframe_chain_bytes(const struct pframe_chain *c)
{
	return c->memory_bytes;
}

struct ibv_qp *pframe_chain_qp(const struct pframe_chain *c)
{
	return c->front_qp;
}

uint64_t chain_steps(struct pframe_chain *c)
{
	uint32_t now;

	if (c->done_cq && aqdv_cq_count(c->done_cq, &now) == 0)
		c->done += (uint32_t)(now - (uint32_t)c->done);
	return c->done;
}

uint64_t pframe_chain_runs(struct pframe_chain *c)
{
	return (chain_steps(c) + c->counted - c->settled) / c->counted;
}

bool chain_qp_is_broken(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return qp && ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0 &&
	       attr.qp_state == IBV_QPS_ERR;
}

bool pframe_chain_is_broken(struct pframe_chain *c)
{
	return chain_qp_is_broken(c->work_qp) ||
	       chain_qp_is_broken(c->front_qp);
}

/* ---- the end ------------------------------------------------------------ */

static void stop(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	if (qp)
		(void)ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* What the chain had in its hands: nothing moves any more. */
static void recover(struct pframe_chain *c)
{
	struct pframe_pool *p = c->space->pool;
	uint64_t n = chain_steps(c), pframe, place;
	uint32_t left = (uint32_t)(n % c->counted);
	uint32_t slot = (uint32_t)(n / c->counted) & (c->ring - 1);

	chain_program_left(c, slot, left, &pframe, &place);
	if (c->kind == PAGE_CHAIN_UNMAPPED) {
		if (pframe_pool_has(p, pframe))
			pframe_pool_push(p, pframe);
		else if (place)
			pframe_pool_hole(p, place);
	} else if (pframe_pool_has(p, pframe)) {
		if (place)
			pframe_pool_fill(p, place, pframe);
		else
			pframe_pool_push(p, pframe);
	}
}

/* A chain that decides by itself does not show how often it took one. */
static int64_t count_mapped(const struct pframe_space *s)
{
	struct pframe_chain *back = s->chain[PAGE_CHAIN_INVALIDATE];
	int64_t n = 0;

	for (uint64_t i = 0; i < s->entries; i++)
		n += pframe_space_is_mapped(s, i);
	return n - s->used - s->past_used +
	       (back ? (int64_t)pframe_chain_runs(back) : 0);
}

static int64_t balance(struct pframe_chain *c)
{
	if (c->kind == PAGE_CHAIN_UNMAPPED &&
	    c->without & PAGE_WITHOUT_DECISION)
		return count_mapped(c->space);
	if (c->kind == PAGE_CHAIN_UNMAPPED)
		return (int64_t)pframe_chain_runs(c);
	if (c->kind == PAGE_CHAIN_INVALIDATE)
		return -(int64_t)pframe_chain_runs(c);
	return 0;
}

static void destroy_mr(struct ibv_mr *mr)
{
	if (mr)
		(void)ibv_dereg_mr(mr);
}

static void destroy_cq(struct ibv_cq *cq)
{
	if (cq)
		(void)ibv_destroy_cq(cq);
}

void pframe_chain_destroy(struct pframe_chain *c)
{
	struct ibv_qp *qp[] = {c->front_qp, c->work_qp, c->back_qp};
	const struct pframe_chain *back =
		c->space->chain[PAGE_CHAIN_INVALIDATE];

	c->space->past_why[c->kind] = c->back_qp ? pframe_chain_why(c) : 0;
	/* It waits for this one's answers, and without it is of no use. */
	if ((c->kind == PAGE_CHAIN_LOAD || c->kind == PAGE_CHAIN_MAPPED) &&
	    back)
		stop(back->work_qp);
	/* First the end that takes messages. */
	for (unsigned i = 0; i < ARRAY_LEN(qp); i++)
		stop(qp[i]);
	if (c->back_qp) {
		recover(c);
		c->space->past_used += balance(c);
	}
	for (unsigned i = 0; i < ARRAY_LEN(qp); i++)
		if (qp[i])
			(void)ibv_destroy_qp(qp[i]);
	destroy_cq(c->trigger_cq);
	destroy_cq(c->done_cq);
	destroy_cq(c->front_cq);
	destroy_mr(c->memory_mr);
	destroy_mr(c->table_mr);
	destroy_mr(c->pframes_mr);
	destroy_mr(c->queue_mr);
	destroy_mr(c->zero_mr);
	if (c->memory)
		(void)munmap(c->memory, c->memory_bytes);
	c->space->chain[c->kind] = NULL;
	free(c);
}

uint64_t pframe_space_used(const struct pframe_space *s)
{
	int64_t n = s->used + s->past_used;

	for (unsigned i = 0; i < PAGE_CHAIN_COUNT; i++)
		if (s->chain[i])
			n += balance(s->chain[i]);
	return n > 0 ? (uint64_t)n : 0;
}
