/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Poll groups. Requests of one kind complete in order, so a group is two lists
 * of ids in that order, and what is complete is always at their heads.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "async_priv.h"
#include "base/error.h"
#include "client/link.h"

struct queue {
	uint32_t head;
	uint32_t tail;
	int64_t *id;   /* a ring of mask + 1 */
	uint64_t last; /* the newest sequence that was ever here */
};

struct aq_poll {
	struct aq_async *async;
	uint32_t mask;
	struct queue queue[OFFLOAD_KINDS];
};

int aq_poll_create(struct aq_async *async, struct aq_poll **poll)
{
	uint32_t entries = async->ring.map.entries;
	struct aq_poll *p = calloc(1, sizeof(*p));
	bool ok = p != NULL;

	for (unsigned k = 0; ok && k < OFFLOAD_KINDS; k++) {
		p->queue[k].id = calloc(entries, sizeof(int64_t));
		ok = p->queue[k].id != NULL;
	}
	if (!ok) {
		aq_poll_destroy(p);
		return error_set(-ENOMEM, "no memory for a poll group");
	}
	p->async = async;
	p->mask = entries - 1;
	*poll = p;
	return 0;
}

void aq_poll_destroy(struct aq_poll *poll)
{
	if (!poll)
		return;
	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		free(poll->queue[k].id);
	free(poll);
}

/* Not the newest one: its place is found from the end. */
static COLD int insert(struct aq_poll *p, int64_t id)
{
	unsigned kind = offload_id_kind(id);
	uint64_t seq = offload_id_seq(id);
	struct queue *q = &p->queue[kind];
	uint32_t at = q->tail;

	if (id <= 0 || seq == 0 || seq > p->async->ring.issued[kind])
		return -EINVAL;
	if (q->tail - q->head > p->mask)
		return -ENOSPC;
	while (at != q->head && offload_id_seq(q->id[(at - 1) & p->mask]) > seq)
		at--;
	if (at != q->head && q->id[(at - 1) & p->mask] == id)
		return -EEXIST;
	for (uint32_t i = q->tail; i != at; i--)
		q->id[i & p->mask] = q->id[(i - 1) & p->mask];
	q->id[at & p->mask] = id;
	q->tail++;
	return 0;
}

HOT int aq_poll_add(struct aq_poll *p, int64_t id)
{
	const unsigned kind = offload_id_kind(id);
	const uint64_t seq = offload_id_seq(id);
	struct queue *q = &p->queue[kind];
	const uint32_t tail = q->tail;

	/* An error has more in the place of its sequence than was issued. */
	if (UNLIKELY(seq <= q->last || seq > p->async->ring.issued[kind] ||
		     tail - q->head > p->mask))
		return insert(p, id);
	q->last = seq;
	q->tail = tail + 1;
	q->id[tail & p->mask] = id;
	return 0;
}

int aq_poll_remove(struct aq_poll *p, int64_t id)
{
	struct queue *q = &p->queue[offload_id_kind(id)];

	for (uint32_t i = q->head; i != q->tail; i++) {
		if (q->id[i & p->mask] != id)
			continue;
		for (; i + 1 != q->tail; i++)
			q->id[i & p->mask] = q->id[(i + 1) & p->mask];
		q->tail--;
		return 0;
	}
	return -ENOENT;
}

/* Takes what is complete from one list; how many. */
static inline unsigned collect_kind(struct aq_poll *p, unsigned kind,
				    struct aq_response *out, unsigned max)
{
	const struct offload_ring *r = &p->async->ring;
	struct queue *q = &p->queue[kind];
	const uint64_t done = r->done[kind];
	const int64_t *ids = q->id;
	const uint32_t mask = p->mask, head = q->head;
	const unsigned count = u32_min(max, q->tail - head);
	unsigned n;

	for (n = 0; n < count; n++) {
		int64_t id = ids[(head + n) & mask];

		if (offload_id_seq(id) > done)
			break;
		out[n] = (struct aq_response){.id = id};
	}
	q->head = head + n;
	for (unsigned i = 0; UNLIKELY(r->failures) && i < n; i++) {
		int result = offload_ring_result(r, out[i].id);

		out[i].err = result < 0 ? result : 0;
	}
	return n;
}

static inline unsigned collect(struct aq_poll *p, struct aq_response *out,
			       unsigned max)
{
	unsigned n = 0;

	for (unsigned k = 0; k < OFFLOAD_KINDS; k++)
		n += collect_kind(p, k, out + n, max - n);
	return n;
}

static bool is_empty(const struct aq_poll *p)
{
	return p->queue[OFFLOAD_RD].head == p->queue[OFFLOAD_RD].tail &&
	       p->queue[OFFLOAD_WR].head == p->queue[OFFLOAD_WR].tail;
}

/* Not all is there yet: waits, as everywhere first awake, then with naps. */
static COLD int wait_more(struct aq_poll *p, struct aq_response *out,
			  unsigned max, unsigned n, uint32_t timeout_us)
{
	const struct timespec nap = {.tv_nsec = ASYNC_NAP_NS};
	const struct client_clock *clock = client_clock_real();
	uint64_t end_ns = client_clock_now_ns(clock) + 1000ull * timeout_us;
	unsigned idle = 0, more;
	struct ibv_wc wc;
	int err;

	while (n < max && !is_empty(p)) {
		err = offload_ring_look(&p->async->ring);
		if (err)
			return n ? (int)n : err;
		more = collect(p, out + n, max - n);
		n += more;
		if (more) {
			idle = 0;
			continue;
		}
		if (client_clock_now_ns(clock) >= end_ns)
			break;
		if (++idle < ASYNC_IDLE_YIELDS) {
			/* Nothing ever completes here, but whoever polls lends
			 * the NIC its thread: the engine's packets need not
			 * wait for another one to wake up. */
			(void)ibv_poll_cq(p->async->cq, 1, &wc);
			client_clock_relax(clock);
			continue;
		}
		(void)nanosleep(&nap, NULL);
		/* E1, pairs with E0. */
		err = atomic_load_explicit(&p->async->lost,
					   memory_order_relaxed);
		if (err)
			return n ? (int)n
				 : error_set(err,
					     "no engine serves this context; "
					     "`aquifer status` says more");
	}
	return (int)n;
}

HOT int aq_poll_wait(struct aq_poll *p, struct aq_response *responses,
		     unsigned max_count, uint32_t timeout_us)
{
	unsigned n;
	int err;

	err = LIKELY(async_is_own(p->async))
		      ? offload_ring_look(&p->async->ring)
		      : -ESTALE;
	if (UNLIKELY(err))
		return err;
	n = collect(p, responses, max_count);
	if (n == max_count || timeout_us == 0)
		return (int)n;
	return wait_more(p, responses, max_count, n, timeout_us);
}
