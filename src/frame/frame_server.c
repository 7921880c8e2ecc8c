/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two-sided page server. A request is received into a slot; the slot is
 * received into again when its answer has been acknowledged, so a guest never
 * has more than `depth` of either. Pages leave right from their frames: a frame
 * is given back only when no answer of that guest is on its way, because an
 * answer that is lost is read from memory again.
 */
#include "frame_server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "error.h"
#include "frame_priv.h"

enum {
	BATCH = 32,
	CQ_DEPTH = 16384,
	WR_SEND = 1u << 31, /* in the low half of a wr_id; else a receive */
};

struct slot {
	uint32_t next; /* that waits to give a frame back */
};

struct frame_guest {
	struct frame_server *server;
	struct frame_space *space;
	uint32_t id;
	uint32_t depth;
	uint32_t slot_bytes;
	uint32_t sends; /* answers that are not acknowledged */
	uint32_t first_waiting, last_waiting;
	struct ibv_qp *qp;
	uint8_t *buf;
	size_t buf_bytes;
	struct ibv_mr *buf_mr;
	struct ibv_mr *frames_mr;
	struct ibv_mr **piece; /* by index, where pieces are given out */
	struct slot *slot;
};

struct frame_server {
	struct ibv_context *context;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	pthread_mutex_t lock; /* all below, and all guests */
	uint32_t next_id;
	struct frame_guest *guest[FRAME_GUESTS_MAX]; /* at id modulo that */
};

/* ---- life --------------------------------------------------------------- */

int frame_server_create(struct ibv_context *context, struct frame_server **out)
{
	struct frame_server *s = calloc(1, sizeof(*s));

	if (!s)
		return error_set(-ENOMEM, "no memory for a page server");
	pthread_mutex_init(&s->lock, NULL);
	s->context = context;
	s->channel = ibv_create_comp_channel(context);
	s->cq = s->channel
			? ibv_create_cq(context, CQ_DEPTH, NULL, s->channel, 0)
			: NULL;
	if (!s->cq) {
		frame_server_destroy(s);
		return error_set(-ENOMEM, "no completion queue is left");
	}
	*out = s;
	return 0;
}

void frame_server_destroy(struct frame_server *s)
{
	if (s->cq)
		(void)ibv_destroy_cq(s->cq);
	if (s->channel)
		(void)ibv_destroy_comp_channel(s->channel);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static int make_memory(struct frame_guest *g)
{
	const struct frame_pool *p = g->space->pool;

	g->slot_bytes = (uint32_t)align_up(
		sizeof(struct page_request) +
			(g->space->is_pieces ? sizeof(struct page_piece)
					     : p->frame_bytes),
		CACHE_LINE);
	g->buf_bytes = (size_t)g->slot_bytes * g->depth;
	g->buf = mmap(NULL, g->buf_bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (g->buf == MAP_FAILED) {
		g->buf = NULL;
		return -ENOMEM;
	}
	g->slot = calloc(g->depth, sizeof(*g->slot));
	g->piece = calloc(g->space->entries, sizeof(*g->piece));
	g->buf_mr = ibv_reg_mr(g->space->pd, g->buf, g->buf_bytes,
			       IBV_ACCESS_LOCAL_WRITE);
	g->frames_mr = ibv_reg_mr(g->space->pd, p->frames, p->frames_bytes, 0);
	return g->slot && g->piece && g->buf_mr && g->frames_mr ? 0 : -ENOMEM;
}

static int make_qp(struct frame_guest *g)
{
	struct ibv_qp_init_attr init = {
		.send_cq = g->server->cq,
		.recv_cq = g->server->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = g->depth,
			.max_recv_wr = g->depth,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	g->qp = ibv_create_qp(g->space->pd, &init);
	return g->qp ? 0 : -errno;
}

static int admit(struct frame_guest *g)
{
	struct frame_server *s = g->server;
	int err = -EAGAIN;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < FRAME_GUESTS_MAX; i++) {
		uint32_t id = s->next_id++ & INT32_MAX;

		if (s->guest[id % FRAME_GUESTS_MAX])
			continue;
		g->id = id;
		s->guest[id % FRAME_GUESTS_MAX] = g;
		err = 0;
		break;
	}
	pthread_mutex_unlock(&s->lock);
	return err;
}

static void release(struct frame_guest *g)
{
	if (g->qp)
		(void)ibv_destroy_qp(g->qp);
	for (uint64_t i = 0; g->piece && i < g->space->entries; i++)
		if (g->piece[i])
			(void)ibv_dereg_mr(g->piece[i]);
	if (g->frames_mr)
		(void)ibv_dereg_mr(g->frames_mr);
	if (g->buf_mr)
		(void)ibv_dereg_mr(g->buf_mr);
	if (g->buf)
		(void)munmap(g->buf, g->buf_bytes);
	free(g->piece);
	free(g->slot);
	free(g);
}

int frame_guest_create(struct frame_server *server, struct frame_space *space,
		       struct frame_guest **out)
{
	struct frame_guest *g = calloc(1, sizeof(*g));
	int err;

	if (!g)
		return error_set(-ENOMEM, "no memory for a guest");
	g->server = server;
	g->space = space;
	g->depth = space->depth;
	g->first_waiting = g->last_waiting = UINT32_MAX;
	err = make_memory(g);
	if (!err)
		err = make_qp(g);
	if (!err)
		err = admit(g);
	if (err) {
		release(g);
		return error_set(err, "the page server has no room: %s",
				 strerror(-err));
	}
	*out = g;
	return 0;
}

void frame_guest_destroy(struct frame_guest *g)
{
	struct frame_server *s = g->server;

	pthread_mutex_lock(&s->lock);
	s->guest[g->id % FRAME_GUESTS_MAX] = NULL;
	pthread_mutex_unlock(&s->lock);
	release(g); /* what of it is left in the queue finds nobody */
}

struct ibv_qp *frame_guest_qp(const struct frame_guest *g)
{
	return g->qp;
}

/* ---- requests ----------------------------------------------------------- */

static int receive(struct frame_guest *g, uint32_t slot)
{
	struct ibv_sge sge = {.addr = (uintptr_t)g->buf +
				      (size_t)slot * g->slot_bytes,
			      .length = g->slot_bytes,
			      .lkey = g->buf_mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = (uint64_t)g->id << 32 | slot,
				       .sg_list = &sge,
				       .num_sge = 1};

	return -ibv_post_recv(g->qp, &wr, &bad);
}

int frame_guest_arm(struct frame_guest *g)
{
	int err = 0;

	for (uint32_t i = 0; i < g->depth && !err; i++)
		err = receive(g, i);
	return err;
}

static uint8_t *slot_at(struct frame_guest *g, uint32_t slot)
{
	return g->buf + (size_t)slot * g->slot_bytes;
}

/* A queue pair that takes no answer is broken; memnode finds that out. */
static void answer(struct frame_guest *g, uint32_t slot, uint64_t from,
		   uint32_t lkey, uint32_t bytes, enum page_wire_end end)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	struct ibv_sge sge = {.addr = from, .length = bytes, .lkey = lkey};
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = (uint64_t)g->id << 32 | WR_SEND | slot,
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

	if (ibv_post_send(g->qp, &wr, &bad) == 0)
		g->sends++;
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
	case -ENODATA:
		return PAGE_WIRE_NO_DATA;
	default:
		return PAGE_WIRE_BAD;
	}
}

static void load(struct frame_guest *g, uint32_t slot, uint64_t index)
{
	uint64_t frame =
		g->space->is_pieces ? 0 : frame_space_find(g->space, index);

	answer(g, slot, frame, g->frames_mr->lkey,
	       frame ? g->space->pool->frame_bytes : 0,
	       frame ? PAGE_WIRE_OK : PAGE_WIRE_NO_DATA);
}

static void store(struct frame_guest *g, uint32_t slot, uint64_t index,
		  uint32_t bytes)
{
	uint32_t page_bytes = g->space->pool->frame_bytes;
	uint64_t frame;
	int err = -EINVAL;

	/* The whole page, so that nothing of its last owner is left. */
	if (!g->space->is_pieces &&
	    bytes == sizeof(struct page_request) + page_bytes)
		err = frame_space_map(g->space, index, &frame);
	if (!err)
		memcpy((void *)(uintptr_t)frame,
		       slot_at(g, slot) + sizeof(struct page_request),
		       page_bytes);
	answer(g, slot, 0, 0, 0, end_of(err));
}

static int register_piece(struct frame_guest *g, uint64_t index, uint64_t frame)
{
	uint32_t bytes = g->space->pool->frame_bytes;

	memset((void *)(uintptr_t)frame, 0, bytes);
	g->piece[index] =
		ibv_reg_mr(g->space->pd, (void *)(uintptr_t)frame, bytes,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_WRITE);
	if (g->piece[index])
		return 0;
	return frame_space_unmap(g->space, index) ? -EINVAL : -ENOSPC;
}

static void allocate(struct frame_guest *g, uint32_t slot, uint64_t index)
{
	struct page_piece *out =
		(void *)(slot_at(g, slot) + sizeof(struct page_request));
	uint64_t frame;
	int err = g->space->is_pieces ? frame_space_map(g->space, index, &frame)
				      : -EINVAL;

	if (!err && g->space->sparse)
		frame_sparse_take(g->space, frame);
	else if (!err && !g->piece[index])
		err = register_piece(g, index, frame);
	if (err) {
		answer(g, slot, 0, 0, 0, end_of(err));
		return;
	}
	out->addr = be64_put(g->space->sparse ? frame_sparse_at(g->space, index)
					      : frame);
	out->rkey = be32_put(g->space->sparse ? g->space->sparse_mr->rkey
					      : g->piece[index]->rkey);
	out->number = be32_put((uint32_t)index);
	answer(g, slot, (uintptr_t)out, g->buf_mr->lkey, sizeof(*out),
	       PAGE_WIRE_OK);
}

/* The key, or the memory, ends first. */
static void give_back(struct frame_guest *g, uint32_t slot)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	uint64_t index = be64_get(r->index);

	if (g->space->sparse)
		frame_sparse_drop(g->space, index);
	if (index < g->space->entries && g->piece[index]) {
		(void)ibv_dereg_mr(g->piece[index]);
		g->piece[index] = NULL;
	}
	answer(g, slot, 0, 0, 0, end_of(frame_space_unmap(g->space, index)));
}

static void wait_to_give_back(struct frame_guest *g, uint32_t slot)
{
	if (!g->sends) {
		give_back(g, slot);
		return;
	}
	g->slot[slot].next = UINT32_MAX;
	if (g->first_waiting == UINT32_MAX)
		g->first_waiting = slot;
	else
		g->slot[g->last_waiting].next = slot;
	g->last_waiting = slot;
}

static void serve(struct frame_guest *g, uint32_t slot, uint32_t bytes)
{
	const struct page_request *r = (const void *)slot_at(g, slot);
	uint64_t index = be64_get(r->index);

	if (bytes < sizeof(*r)) {
		memset(slot_at(g, slot), 0, sizeof(*r));
		answer(g, slot, 0, 0, 0, PAGE_WIRE_BAD);
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
		wait_to_give_back(g, slot);
		break;
	default:
		answer(g, slot, 0, 0, 0, PAGE_WIRE_BAD);
	}
}

/* ---- the loop ----------------------------------------------------------- */

static void take_answered(struct frame_guest *g, uint32_t slot)
{
	uint32_t first;

	g->sends--;
	(void)receive(g, slot); /* a broken queue pair has ended anyway */
	if (g->sends)
		return;
	first = g->first_waiting;
	g->first_waiting = UINT32_MAX;
	while (first != UINT32_MAX) {
		uint32_t next = g->slot[first].next;

		give_back(g, first);
		first = next;
	}
}

static bool take(struct frame_server *s, const struct ibv_wc *wc)
{
	uint32_t id = (uint32_t)(wc->wr_id >> 32);
	uint32_t slot = (uint32_t)wc->wr_id & ~WR_SEND;
	struct frame_guest *g = s->guest[id % FRAME_GUESTS_MAX];

	if (!g || g->id != id || wc->status != IBV_WC_SUCCESS)
		return false;
	if ((uint32_t)wc->wr_id & WR_SEND) {
		take_answered(g, slot);
		return false;
	}
	serve(g, slot, wc->byte_len);
	return true;
}

unsigned frame_server_step(struct frame_server *s)
{
	struct ibv_wc wc[BATCH];
	unsigned served = 0;
	int n = ibv_poll_cq(s->cq, BATCH, wc);

	if (n <= 0)
		return 0;
	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < n; i++)
		served += take(s, &wc[i]);
	pthread_mutex_unlock(&s->lock);
	return served;
}

void frame_server_wait(struct frame_server *s, uint32_t timeout_ms)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *user;

	if (ibv_req_notify_cq(s->cq, 0) || frame_server_step(s))
		return;
	if (poll(&fd, 1, (int)timeout_ms) == 1 &&
	    ibv_get_cq_event(s->channel, &cq, &user) == 0)
		ibv_ack_cq_events(cq, 1);
}
