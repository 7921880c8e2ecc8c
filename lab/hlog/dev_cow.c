/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far memory through the asynchronous interface: a request is a few local
 * stores, and an engine elsewhere executes it (Cowbird).
 */
#include <errno.h>
#include <stdlib.h>

#include <aquifer/aquifer.h>

#include "base/error.h"
#include "hlog_device.h"
#include "slots.h"

enum {
	PIECE_BYTES = 64 << 10, /* of a page, in one request */
	DATA_BYTES_MIN = 1 << 20,
	LEND_US = 5,
};

struct cow_device {
	struct hlog_device base;
	struct aq_rack *rack;
	struct aq_region *region;
	struct aq_async_options opt;
};

struct cow_slot {
	uint64_t token;
	int64_t id; /* of the last piece */
};

/* Slots in the order of their requests; each kind ends in that order. */
struct cow_order {
	uint32_t *ring;
	uint32_t head;
	uint32_t tail;
};

/* A page of which not all pieces are in the rings yet. */
struct cow_rest {
	const uint8_t *data; /* NULL: none */
	uint64_t offset;
	uint32_t len_bytes;
	uint32_t slot;
};

struct cow_queue {
	struct hlog_queue base;
	struct aq_async *async;
	struct aq_poll *group; /* the read that is waited for */
	bool is_fresh;	       /* something was issued since the last poll */
	uint32_t region;       /* its number there */
	uint32_t mask;
	uint8_t *memory;
	uint32_t slot_bytes;
	struct cow_slot *slot;
	struct slots slots;
	struct cow_order reads;
	struct cow_order writes;
	struct cow_rest rest;
};

static void cow_queue_close(struct hlog_queue *base)
{
	struct cow_queue *q = container_of(base, struct cow_queue, base);

	aq_poll_destroy(q->group);
	aq_async_close(q->async);
	slots_release(&q->slots);
	free(q->memory);
	free(q->slot);
	free(q->reads.ring);
	free(q->writes.ring);
	free(q);
}

static int alloc_queue(struct cow_queue *q,
		       const struct hlog_queue_options *opt)
{
	uint32_t ring = u32_pow2_ceil(opt->depth);

	q->mask = ring - 1;
	q->slot_bytes = (uint32_t)align_up(opt->read_max, CACHE_LINE);
	q->memory =
		aligned_alloc(CACHE_LINE, (size_t)opt->depth * q->slot_bytes);
	q->slot = calloc(opt->depth, sizeof(*q->slot));
	q->reads.ring = calloc(ring, sizeof(uint32_t));
	q->writes.ring = calloc(ring, sizeof(uint32_t));
	if (!q->memory || !q->slot || !q->reads.ring || !q->writes.ring)
		return -ENOMEM;
	return slots_init(&q->slots, opt->depth);
}

static int cow_queue_open(struct hlog_device *dev,
			  const struct hlog_queue_options *opt,
			  struct hlog_queue **out)
{
	struct cow_device *d = container_of(dev, struct cow_device, base);
	struct cow_queue *q = calloc(1, sizeof(*q));
	struct aq_async_options ao = d->opt;
	int rc;

	if (!q)
		return -ENOMEM;
	q->base.device = dev;
	rc = alloc_queue(q, opt);
	if (!ao.requests)
		ao.requests = u32_max(64, u32_pow2_ceil(2 * opt->depth));
	if (!ao.read_bytes)
		ao.read_bytes = u64_max(DATA_BYTES_MIN,
					2ull * u32_pow2_ceil(opt->depth) *
						u32_pow2_ceil(opt->read_max));
	if (rc == 0)
		rc = aq_async_open(d->rack, &ao, &q->async);
	if (rc == 0) {
		rc = aq_async_add(q->async, d->region);
		q->region = (uint32_t)rc;
	}
	if (rc >= 0)
		rc = aq_poll_create(q->async, &q->group);
	if (rc < 0) {
		cow_queue_close(&q->base);
		return rc;
	}
	*out = &q->base;
	return 0;
}

static void order_push(struct cow_queue *q, struct cow_order *o, uint32_t i)
{
	o->ring[o->tail++ & q->mask] = i;
}

static int cow_read(struct hlog_queue *base, uint64_t offset,
		    uint32_t len_bytes, uint64_t token)
{
	struct cow_queue *q = container_of(base, struct cow_queue, base);
	uint32_t i = slots_get(&q->slots);
	int64_t id;

	if (i == SLOTS_NONE)
		return -EAGAIN;
	id = len_bytes > q->slot_bytes
		     ? -EMSGSIZE
		     : aq_async_read(q->async, q->region, offset,
				     q->memory + (size_t)i * q->slot_bytes,
				     len_bytes);
	if (id < 0) {
		slots_put(&q->slots, i);
		return (int)id;
	}
	q->is_fresh = true;
	q->slot[i] = (struct cow_slot){.token = token, .id = id};
	order_push(q, &q->reads, i);
	return 0;
}

/* Puts more pieces of a page into the rings; -EAGAIN: not all of them. */
static int send_rest(struct cow_queue *q)
{
	struct cow_rest *r = &q->rest;

	while (r->data) {
		uint32_t len = u32_min(r->len_bytes, PIECE_BYTES);
		int64_t id = aq_async_write(q->async, q->region, r->offset,
					    r->data, len);

		if (id < 0)
			return (int)id;
		r->data += len;
		r->offset += len;
		r->len_bytes -= len;
		if (r->len_bytes == 0) {
			q->slot[r->slot].id = id;
			order_push(q, &q->writes, r->slot);
			r->data = NULL;
		}
	}
	return 0;
}

static int cow_write(struct hlog_queue *base, uint64_t offset, const void *data,
		     uint32_t len_bytes, uint64_t token)
{
	struct cow_queue *q = container_of(base, struct cow_queue, base);
	uint32_t i;
	int rc;

	if (q->rest.data)
		return -EAGAIN;
	i = slots_get(&q->slots);
	if (i == SLOTS_NONE)
		return -EAGAIN;
	q->slot[i] = (struct cow_slot){.token = token};
	q->rest = (struct cow_rest){
		.data = data,
		.offset = offset,
		.len_bytes = len_bytes,
		.slot = i,
	};
	rc = send_rest(q);
	if (rc < 0 && rc != -EAGAIN) {
		/* Pieces that went out do no harm: the page is written anew or
		 * given up as a whole. */
		q->rest.data = NULL;
		slots_put(&q->slots, i);
		return rc;
	}
	return 0;
}

/* Requests of one kind that ended, oldest first. */
static unsigned take(struct cow_queue *q, struct cow_order *o, bool is_read,
		     struct hlog_io *done, unsigned max)
{
	unsigned n = 0;

	while (n < max && o->head != o->tail) {
		uint32_t i = o->ring[o->head & q->mask];
		int rc = aq_async_done(q->async, q->slot[i].id);

		if (rc == 0)
			break;
		o->head++;
		done[n++] = (struct hlog_io){
			.token = q->slot[i].token,
			.err = rc < 0 ? rc : 0,
			.data = is_read ? q->memory + (size_t)i * q->slot_bytes
					: NULL,
		};
		slots_hand(&q->slots, i);
	}
	return n;
}

/*
 * A caller that polls again without having issued anything has nothing else to
 * do: for a moment it lends its thread to the NIC, which then needs no other to
 * serve the engine.
 */
static void lend(struct cow_queue *q)
{
	uint32_t i = q->reads.ring[q->reads.head & q->mask];
	struct aq_response r;

	/* It may be there since the last time. */
	(void)aq_poll_add(q->group, q->slot[i].id);
	(void)aq_poll_wait(q->group, &r, 1, LEND_US);
}

static int cow_poll(struct hlog_queue *base, struct hlog_io *done, unsigned max)
{
	struct cow_queue *q = container_of(base, struct cow_queue, base);
	unsigned n;

	slots_recycle(&q->slots);
	n = take(q, &q->reads, true, done, max);
	if (n == 0 && !q->is_fresh && q->reads.head != q->reads.tail) {
		lend(q);
		n = take(q, &q->reads, true, done, max);
	}
	q->is_fresh = false;
	if (UNLIKELY(q->writes.head != q->writes.tail))
		n += take(q, &q->writes, false, done + n, max - n);
	if (UNLIKELY(q->rest.data != NULL) && n < max) {
		int rc = send_rest(q);

		if (rc < 0 && rc != -EAGAIN) {
			q->rest.data = NULL;
			slots_hand(&q->slots, q->rest.slot);
			done[n++] = (struct hlog_io){
				.token = q->slot[q->rest.slot].token,
				.err = rc};
		}
	}
	return (int)n;
}

int hlog_device_cow_create(struct aq_rack *rack, struct aq_region *region,
			   const struct aq_async_options *async,
			   struct hlog_device **out)
{
	static const struct hlog_device_ops ops = {
		.queue_open = cow_queue_open,
		.queue_close = cow_queue_close,
		.read = cow_read,
		.write = cow_write,
		.poll = cow_poll,
	};
	struct cow_device *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->rack = rack;
	d->region = region;
	if (async)
		d->opt = *async;
	d->base = (struct hlog_device){.ops = &ops,
				       .name = "cowbird",
				       .size_bytes = aq_region_size(region),
				       .clock = hlog_clock_real};
	*out = &d->base;
	return 0;
}
