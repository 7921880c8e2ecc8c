/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection to the page server, and what it asks for. A request
 * is received into a slot; the slot is received into again when its answer has
 * been acknowledged, so a guest never has more than `depth` of either. Pages
 * leave right from their page frames. What a guest may reach, keys and page
 * frames alike, belongs to its space and not to the guest: others of the space
 * know of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/plant.h"
#include "pframe_server_priv.h"

/* ---- life --------------------------------------------------------------- */

/*
 * Twice what its client may have under way: the client asks again as soon as
 * it has an answer, and its NIC acknowledges several answers together. With
 * one slot for each, that request came before the slot was free, and the
 * client's NIC was told to wait (RNR, 640 us): with 16 under way, 50,000 pages
 * per second instead of 290,000.
 */
static uint32_t slot_count(const struct pframe_space *s)
{
	return 2 * s->depth;
}

static uint32_t slot_bytes(const struct pframe_space *s)
{
	return (uint32_t)align_up(sizeof(struct page_request) +
					  (s->is_pieces
						   ? sizeof(struct page_piece)
						   : s->pool->pframe_bytes),
				  CACHE_LINE);
}

uint64_t pframe_guest_bytes(const struct pframe_space *s)
{
	return (uint64_t)slot_count(s) *
	       (slot_bytes(s) + sizeof(struct pframe_slot));
}

static int make_memory(struct pframe_guest *g)
{
	const struct pframe_pool *p = g->space->pool;

	g->slot_bytes = slot_bytes(g->space);
	g->buf_bytes = (size_t)g->slot_bytes * g->depth;
	g->buf = mmap(NULL, g->buf_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->buf == MAP_FAILED) {
		g->buf = NULL;
		return -ENOMEM;
	}
	g->slot = calloc(g->depth, sizeof(*g->slot));
	g->buf_mr = ibv_reg_mr(g->space->pd, g->buf, g->buf_bytes,
			       IBV_ACCESS_LOCAL_WRITE);
	g->pframes_mr =
		ibv_reg_mr(g->space->pd, p->pframes, p->pframes_bytes, 0);
	return g->slot && g->buf_mr && g->pframes_mr ? 0 : -ENOMEM;
}

static int make_qp(struct pframe_guest *g)
{
	struct ibv_qp_init_attr init = {
		.send_cq = g->line->cq,
		.recv_cq = g->line->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = g->depth,
			.max_recv_wr = g->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	g->qp = ibv_create_qp(g->space->pd, &init);
	return g->qp ? 0 : -errno;
}

static void release(struct pframe_guest *g)
{
	if (g->qp)
		(void)ibv_destroy_qp(g->qp);
	if (g->line)
		pframe_server_dismiss(g);
	if (g->pframes_mr)
		(void)ibv_dereg_mr(g->pframes_mr);
	if (g->buf_mr)
		(void)ibv_dereg_mr(g->buf_mr);
	if (g->buf)
		(void)munmap(g->buf, g->buf_bytes);
	free(g->slot);
	free(g);
}

int pframe_guest_create(struct pframe_server *server,
			struct pframe_space *space, struct pframe_guest **out)
{
	struct pframe_guest *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return error_set(-ENOMEM, "no memory for a guest");
	g->server = server;
	g->space = space;
	g->depth = slot_count(space);
	err = pframe_server_admit(g);
	if (!err) {
		err = make_memory(g);
		if (!err)
			err = make_qp(g);
		if (err)
			(void)error_set(err, "the page server has no room: %s",
					strerror(-err));
	}
	if (err) {
		release(g);
		return err;
	}
	*out = g;
	return 0;
}

void pframe_guest_destroy(struct pframe_guest *g)
{
	pframe_server_forget(g);
	release(g); /* what of it is left in the queue finds nobody */
}

struct ibv_qp *pframe_guest_qp(const struct pframe_guest *g)
{
	return g->qp;
}

/* The queue pair is gone, and with it whatever it still had to send. */
void pframe_guest_settle(struct pframe_guest *g)
{
	for (uint32_t i = 0; g->slot && i < g->depth; i++) {
		if (!g->slot[i].is_load)
			continue;
		g->slot[i].is_load = false;
		pframe_load_end(g->space, g->slot[i].phase);
	}
}

/* ---- requests ----------------------------------------------------------- */

static uint8_t *slot_at(struct pframe_guest *g, uint32_t slot)
{
	return g->buf + (size_t)slot * g->slot_bytes;
}

static int receive(struct pframe_guest *g, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)slot_at(g, slot),
			      .length = g->slot_bytes,
			      .lkey = g->buf_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)g->id << 32 | slot,
				       .sg_list = &sge,
				       .num_sge = 1};

	return -ibv_post_recv(g->qp, &wr, &bad);
}

int pframe_guest_arm(struct pframe_guest *g)
{
	int err = 0;

	for (uint32_t i = 0; i < g->depth && !err; i++)
		err = receive(g, i);
	return err;
}

/* False: the queue pair takes no answer. It is broken; memnode finds that
 * out. */
static bool answer(struct pframe_guest *g, uint32_t slot, uint64_t from,
		   uint32_t lkey, uint32_t bytes, enum page_wire_end end)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	struct ibv_sge sge = {.addr = from, .length = bytes, .lkey = lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = (uint64_t)g->id << 32 | PFRAME_WR_SEND | slot,
			.opcode = bytes ? IBV_WR_RDMA_WRITE_WITH_IMM
					: IBV_WR_SEND_WITH_IMM,
			.send_flags = IBV_SEND_SIGNALED,
			.imm_data =
				htobe32(page_wire_imm(be32_get(r->tag), end)),
			.sg_list = &sge,
			.num_sge = bytes ? 1 : 0,
			.wr.rdma = {.remote_addr = be64_get(r->buf),
				    .rkey = be32_get(r->rkey)},
		};

	return ibv_post_send(g->qp, &wr, &bad) == 0;
}

static void answer_end(struct pframe_guest *g, uint32_t slot,
		       enum page_wire_end end)
{
	(void)answer(g, slot, 0, 0, 0, end);
}

static enum page_wire_end end_of(int err)
{
	switch (err) {
	case 0:
		return PAGE_WIRE_OK;
	case -ENOSPC:
		return PAGE_WIRE_NO_SPACE;
	case -EDQUOT:
		return PAGE_WIRE_NO_BUDGET;
	default:
		return PAGE_WIRE_BAD;
	}
}

static void load(struct pframe_guest *g, uint32_t slot, uint64_t index)
{
	struct pframe_slot *s = &g->slot[slot];
	uint64_t pframe =
		g->space->is_pieces ? 0 : pframe_space_find(g->space, index);

	if (!pframe) {
		answer_end(g, slot, PAGE_WIRE_NO_DATA);
		return;
	}
	s->is_load = answer(g, slot, pframe, g->pframes_mr->lkey,
			    g->space->pool->pframe_bytes, PAGE_WIRE_OK);
	if (s->is_load)
		s->phase = pframe_load_begin(g->space);
}

static void store(struct pframe_guest *g, uint32_t slot, uint64_t index,
		  uint32_t bytes)
{
	uint32_t page_bytes = g->space->pool->pframe_bytes;
	uint64_t pframe;
	int err = -EINVAL;

	/* The whole page, so that nothing of its last owner is left. */
	if (!g->space->is_pieces &&
	    bytes == sizeof(struct page_request) + page_bytes)
		err = pframe_space_map(g->space, index, &pframe);
	if (!err)
		memcpy((void *)(uintptr_t)pframe,
		       slot_at(g, slot) + sizeof(struct page_request),
		       page_bytes);
	answer_end(g, slot, end_of(err));
}

/* The key belongs to the space: whichever guest asks gets the same one, and
 * none is left when the piece is given back. */
static int register_piece(struct pframe_space *s, uint64_t index,
			  uint64_t pframe)
{
	/* Chains put page frames into the queue as they are. */
	if (!PLANTED(not_cleared))
		memset((void *)(uintptr_t)pframe, 0, s->pool->pframe_bytes);
	s->piece[index] = ibv_reg_mr(
		s->pd, (void *)(uintptr_t)pframe, s->pool->pframe_bytes,
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_WRITE);
	if (s->piece[index])
		return 0;
	pframe = pframe_space_take(s, index);
	if (pframe) /* no answer is read from pieces, so it need not wait */
		pframe_space_give(s, pframe);
	return -ENOSPC;
}

/* Of memory that is one piece already, as many pages as there is room for. */
static uint32_t take_run(struct pframe_space *s, uint64_t index, uint32_t count)
{
	uint64_t pframe;
	uint32_t i = 0;

	while (i < count && pframe_space_map(s, index + i, &pframe) == 0) {
		pframe_sparse_take(s, pframe);
		i++;
	}
	return i;
}

static void allocate(struct pframe_guest *g, uint32_t slot, uint64_t index)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	struct page_piece *out =
		(void *)(slot_at(g, slot) + sizeof(struct page_request));
	struct pframe_space *s = g->space;
	uint32_t more = u32_min(be32_get(r->length), PAGE_WIRE_RUN_MAX), n = 1;
	uint64_t pframe;
	int err = s->is_pieces ? pframe_space_map(s, index, &pframe) : -EINVAL;

	if (!err && s->sparse) {
		pframe_sparse_take(s, pframe);
		n += more > 1 ? take_run(s, index + 1, more - 1) : 0;
	} else if (!err && !s->piece[index]) {
		err = register_piece(s, index, pframe);
	}
	if (err) {
		answer_end(g, slot, end_of(err));
		return;
	}
	out->addr = be64_put(s->sparse ? pframe_sparse_at(s, index) : pframe);
	out->rkey = be32_put(s->sparse ? s->sparse_mr->rkey
				       : s->piece[index]->rkey);
	out->count = be32_put(n);
	(void)answer(g, slot, (uintptr_t)out, g->buf_mr->lkey, sizeof(*out),
		     PAGE_WIRE_OK);
}

/* The key, or the memory, ends first. */
static void give_back(struct pframe_guest *g, uint32_t slot, uint64_t index)
{
	if (g->space->sparse)
		pframe_sparse_drop(g->space, index);
	if (index < g->space->entries)
		pframe_space_end_key(g->space, index);
	switch (pframe_leave(g->space, index, g, slot)) {
	case PFRAME_LEFT:
		answer_end(g, slot, PAGE_WIRE_OK);
		break;
	case PFRAME_NONE:
		answer_end(g, slot, PAGE_WIRE_NO_DATA);
		break;
	case PFRAME_STAYS:
		answer_end(g, slot, PAGE_WIRE_NO_SPACE);
		break;
	case PFRAME_LEAVES:
		break;
	}
}

void pframe_guest_gone_back(struct pframe_guest *g, uint32_t slot)
{
	answer_end(g, slot, PAGE_WIRE_OK);
}

void pframe_guest_serve(struct pframe_guest *g, uint32_t slot, uint32_t bytes)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	uint64_t index = be64_get(r->index);

	if (bytes < sizeof(*r)) {
		memset(slot_at(g, slot), 0, sizeof(*r));
		answer_end(g, slot, PAGE_WIRE_BAD);
		return;
	}
	switch (be32_get(r->kind)) {
	case PAGE_WIRE_LOAD:
		load(g, slot, index);
		break;
	case PAGE_WIRE_STORE:
		store(g, slot, index, bytes);
		break;
	case PAGE_WIRE_ALLOCATE:
		allocate(g, slot, index);
		break;
	case PAGE_WIRE_INVALIDATE:
	case PAGE_WIRE_FREE:
		give_back(g, slot, index);
		break;
	default:
		answer_end(g, slot, PAGE_WIRE_BAD);
	}
}

void pframe_guest_answered(struct pframe_guest *g, uint32_t slot, bool is_ok)
{
	struct pframe_slot *s = &g->slot[slot];

	/* One that failed is not sent again either. */
	if (s->is_load) {
		s->is_load = false;
		pframe_load_end(g->space, s->phase);
	}
	if (is_ok)
		(void)receive(g, slot); /* a broken queue pair has ended */
}
