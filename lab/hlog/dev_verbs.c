/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far memory by one-sided verbs: the calling thread posts READs and WRITEs and
 * polls for their completions, one by one or in batches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "hlog_device.h"
#include "hlog_limits.h"
#include "slots.h"

enum {
	RD_ATOMIC = 128, /* as many as the far end allows */
	WC_MAX = 128,
	PAGE = 4096,
};

struct verbs_device {
	struct hlog_device base;
	struct hlog_verbs_options opt;
};

struct verbs_slot {
	uint64_t token;
	bool is_read;
};

struct verbs_done {
	uint32_t slot;
	int err;
};

struct verbs_queue {
	struct hlog_queue base;
	const struct hlog_verbs_options *opt;
	struct client_link *link;
	struct ibv_mr *mr;	 /* of the slots */
	struct ibv_mr *write_mr; /* of what is written from */
	uint8_t *memory;
	uint32_t slot_bytes;
	struct verbs_slot *slot;
	struct slots slots;
	/* Requests that are not posted yet: one list. */
	struct ibv_send_wr *wr;
	struct ibv_sge *sge;
	uint32_t unsent;
	/* Requests under way, oldest first: a ring of slot numbers. */
	uint32_t *order;
	uint32_t order_mask;
	uint32_t order_head;
	uint32_t order_tail;
	/* Completions that poll has not handed out yet. */
	struct verbs_done *done;
	uint32_t done_head;
	uint32_t done_tail;
	int err; /* for ever: the queue pair is broken */
};

static void verbs_queue_close(struct hlog_queue *base)
{
	struct verbs_queue *q = container_of(base, struct verbs_queue, base);
	const struct client_verbs *v = q->link ? q->link->verbs : NULL;

	/* The queue pair first: nobody writes to the slots after that. The
	 * memory regions belong to a domain that outlives it. */
	if (q->link) {
		struct ibv_mr *mr = q->mr, *write_mr = q->write_mr;

		q->opt->links.close(q->opt->links.ctx, q->link);
		if (mr)
			(void)v->dereg_mr(mr);
		if (write_mr)
			(void)v->dereg_mr(write_mr);
	}
	slots_release(&q->slots);
	free(q->memory);
	free(q->slot);
	free(q->wr);
	free(q->sge);
	free(q->order);
	free(q->done);
	free(q);
}

static int alloc_queue(struct verbs_queue *q,
		       const struct hlog_queue_options *opt)
{
	uint32_t ring = u32_pow2_ceil(opt->depth);

	q->slot_bytes = (uint32_t)align_up(opt->read_max, CACHE_LINE);
	q->memory = aligned_alloc(
		PAGE, align_up((uint64_t)opt->depth * q->slot_bytes, PAGE));
	q->slot = calloc(opt->depth, sizeof(*q->slot));
	q->wr = calloc(q->opt->batch, sizeof(*q->wr));
	q->sge = calloc(q->opt->batch, sizeof(*q->sge));
	q->order = calloc(ring, sizeof(*q->order));
	q->done = calloc(ring, sizeof(*q->done));
	q->order_mask = ring - 1;
	if (!q->memory || !q->slot || !q->wr || !q->sge || !q->order ||
	    !q->done || slots_init(&q->slots, opt->depth) < 0)
		return -ENOMEM;
	memset(q->memory, 0, (size_t)opt->depth * q->slot_bytes);
	return 0;
}

static int register_memory(struct verbs_queue *q,
			   const struct hlog_queue_options *opt)
{
	const struct client_verbs *v = q->link->verbs;

	q->mr = v->reg_mr(q->link->pd, q->memory,
			  (size_t)opt->depth * q->slot_bytes,
			  IBV_ACCESS_LOCAL_WRITE);
	if (q->mr && opt->write_from_bytes)
		q->write_mr = v->reg_mr(q->link->pd, opt->write_from,
					opt->write_from_bytes, 0);
	if (!q->mr || (opt->write_from_bytes && !q->write_mr))
		return error_set(-ENOMEM, "the NIC has no more keys");
	return 0;
}

static int verbs_queue_open(struct hlog_device *dev,
			    const struct hlog_queue_options *opt,
			    struct hlog_queue **out)
{
	struct verbs_device *d = container_of(dev, struct verbs_device, base);
	struct client_link_options lo = {.send_depth = opt->depth,
					 .cq_depth = opt->depth,
					 .rd_atomic = RD_ATOMIC,
					 .rights = d->opt.rights};
	struct verbs_queue *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	q->base.device = dev;
	q->opt = &d->opt;
	rc = alloc_queue(q, opt);
	if (rc == 0)
		rc = d->opt.links.open(d->opt.links.ctx, &lo, &q->link);
	if (rc == 0)
		rc = register_memory(q, opt);
	if (rc == 0 && q->link->size_bytes < dev->size_bytes)
		rc = error_set(-EINVAL, "the far memory is smaller than asked");
	if (rc < 0) {
		verbs_queue_close(&q->base);
		return rc;
	}
	*out = &q->base;
	return 0;
}

/* ---- posting ------------------------------------------------------------ */

/* A request that was refused ends with the queue's error, in poll. */
static void post(struct verbs_queue *q)
{
	struct ibv_send_wr *bad;
	int rc;

	if (!q->unsent)
		return;
	q->wr[q->unsent - 1].next = NULL;
	q->wr[q->unsent - 1].send_flags = IBV_SEND_SIGNALED;
	rc = -ibv_post_send(q->link->qp, q->wr, &bad);
	q->unsent = 0;
	if (rc < 0 && !q->err)
		q->err = rc;
}

static void add(struct verbs_queue *q, uint32_t i, enum ibv_wr_opcode op,
		uint64_t offset, const struct ibv_sge *sge)
{
	uint32_t n = q->unsent++;
	struct ibv_send_wr *wr = &q->wr[n];

	q->sge[n] = *sge;
	*wr = (struct ibv_send_wr){
		.wr_id = i,
		.next = wr + 1,
		.sg_list = &q->sge[n],
		.num_sge = 1,
		.opcode = op,
		.send_flags = q->opt->is_quiet ? 0 : IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = q->link->addr + offset,
			    .rkey = q->link->rkey},
	};
	q->order[q->order_tail++ & q->order_mask] = i;
	if (q->unsent == q->opt->batch)
		post(q);
}

static int begin(struct verbs_queue *q, uint64_t offset, uint32_t len_bytes,
		 uint32_t *i)
{
	uint64_t size = q->base.device->size_bytes;

	if (q->err)
		return q->err;
	if (offset > size || len_bytes > size - offset)
		return -ERANGE;
	*i = slots_get(&q->slots);
	return *i == SLOTS_NONE ? -EAGAIN : 0;
}

/* ---- completions -------------------------------------------------------- */

static void finish(struct verbs_queue *q, uint32_t i, int err)
{
	q->done[q->done_tail++ & q->order_mask] =
		(struct verbs_done){.slot = i, .err = err};
}

static int wc_errno(enum ibv_wc_status status)
{
	switch ((int)status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_REM_ACCESS_ERR:
		return -ESTALE;
	case IBV_WC_RETRY_EXC_ERR:
	case IBV_WC_RESP_TIMEOUT_ERR:
		return -EHOSTDOWN;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	default:
		return -EREMOTEIO;
	}
}

static uint32_t oldest(struct verbs_queue *q)
{
	return q->order[q->order_head++ & q->order_mask];
}

/* Completions come in the order of posting, and one stands for all before it
 * that were not to tell. Answers how many came, or -errno. */
static int reap(struct verbs_queue *q)
{
	struct ibv_wc wc[WC_MAX];
	int n = ibv_poll_cq(q->link->cq, WC_MAX, wc);

	if (n < 0 && !q->err)
		q->err = -EIO;
	for (int k = 0; k < n; k++) {
		int err = wc_errno(wc[k].status);
		int before = q->err;

		if (err && !q->err)
			q->err = err;
		while (q->order_head != q->order_tail) {
			uint32_t i = oldest(q);

			finish(q, i, i == wc[k].wr_id ? err : before);
			if (i == wc[k].wr_id)
				break;
		}
	}
	/* A broken queue pair flushes; what was never posted ends here. */
	if (n <= 0 && q->err)
		while (q->order_head != q->order_tail)
			finish(q, oldest(q), q->err);
	return n;
}

/* Waits for everything that is under way. */
static void wait_all(struct verbs_queue *q)
{
	const struct client_clock *c = q->link->clock;
	uint64_t deadline_ns = 0;
	unsigned idle = 0;

	while (q->order_head != q->order_tail) {
		int n = reap(q);

		if (n < 0 && !q->err)
			q->err = n;
		if (n > 0)
			continue;
		c->relax(c->ctx);
		/* A look at the clock now and then is enough. */
		if (++idle % 1024)
			continue;
		if (!deadline_ns)
			deadline_ns =
				c->now_ns(c->ctx) + HLOG_DRAIN_MS * 1000000ull;
		/* The request ends with the queue, not with this call. */
		if (c->now_ns(c->ctx) > deadline_ns && !q->err)
			q->err = -ETIMEDOUT;
	}
}

static int verbs_read(struct hlog_queue *base, uint64_t offset,
		      uint32_t len_bytes, uint64_t token)
{
	struct verbs_queue *q = container_of(base, struct verbs_queue, base);
	struct ibv_sge sge = {.length = len_bytes};
	uint32_t i;
	int rc;

	if (len_bytes > q->slot_bytes)
		return -EMSGSIZE;
	rc = begin(q, offset, len_bytes, &i);
	if (rc < 0)
		return rc;
	q->slot[i].token = token;
	q->slot[i].is_read = true;
	sge.addr = (uintptr_t)q->memory + (uint64_t)i * q->slot_bytes;
	sge.lkey = q->mr->lkey;
	add(q, i, IBV_WR_RDMA_READ, offset, &sge);
	if (q->opt->is_sync)
		wait_all(q);
	return 0;
}

static int verbs_write(struct hlog_queue *base, uint64_t offset,
		       const void *data, uint32_t len_bytes, uint64_t token)
{
	struct verbs_queue *q = container_of(base, struct verbs_queue, base);
	struct ibv_sge sge = {.addr = (uintptr_t)data, .length = len_bytes};
	uint32_t i;
	int rc = q->write_mr ? begin(q, offset, len_bytes, &i) : -EINVAL;

	if (rc < 0)
		return rc;
	q->slot[i].token = token;
	q->slot[i].is_read = false;
	sge.lkey = q->write_mr->lkey;
	add(q, i, IBV_WR_RDMA_WRITE, offset, &sge);
	if (q->opt->is_sync)
		wait_all(q);
	return 0;
}

static int verbs_poll(struct hlog_queue *base, struct hlog_io *done,
		      unsigned max)
{
	struct verbs_queue *q = container_of(base, struct verbs_queue, base);
	unsigned n = 0;

	slots_recycle(&q->slots);
	/* A batch waits until it is full, while another is under way. */
	if (q->order_tail - q->order_head == q->unsent)
		post(q);
	if (q->done_head == q->done_tail && q->order_head != q->order_tail) {
		int rc = reap(q);

		if (rc < 0)
			return rc;
	}
	while (n < max && q->done_head != q->done_tail) {
		struct verbs_done d = q->done[q->done_head++ & q->order_mask];
		uint8_t *data = q->memory + (size_t)d.slot * q->slot_bytes;

		done[n++] = (struct hlog_io){
			.token = q->slot[d.slot].token,
			.err = d.err,
			.data = q->slot[d.slot].is_read ? data : NULL,
		};
		slots_hand(&q->slots, d.slot);
	}
	return (int)n;
}

int hlog_device_verbs_create(const struct hlog_verbs_options *opt,
			     struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = verbs_queue_open,
		.queue_close = verbs_queue_close,
		.read = verbs_read,
		.write = verbs_write,
		.poll = verbs_poll,
	};
	struct verbs_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->opt = *opt;
	d->opt.batch = opt->is_sync ? 1 : u32_max(opt->batch, 1);
	d->base = (struct hlog_device){.ops = &ops,
				       .name = opt->is_sync ? "sync" : "async",
				       .size_bytes = opt->size_bytes,
				       .clock = hlog_clock_real};
	*out = &d->base;
	return 0;
}
