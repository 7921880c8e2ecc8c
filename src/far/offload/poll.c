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
	int64_t *id; /* a ring of mask + 1 */
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
static COLD int insert(struct aq_poll *p, struct queue *q, int64_t id)
{
	uint64_t seq = offload_id_seq(id);
	uint32_t at = q->tail;

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
	unsigned kind = offload_id_kind(id);
	uint64_t seq = offload_id_seq(id);
	struct queue *q = &p->queue[kind];

	if (UNLIKELY(id <= 0 || seq == 0 || seq > p->async->ring.issued[kind]))
		return -EINVAL;
	if (UNLIKELY(q->tail - q->head > p->mask))
		return -ENOSPC;
	if (UNLIKELY(q->tail != q->head &&
		     offload_id_seq(q->id[(q->tail - 1) & p->mask]) >= seq))
		return insert(p, q, id);
	q->id[q->tail++ & p->mask] = id;
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

static inline unsigned collect(struct aq_poll *p, struct aq_response *out,
			       unsigned max)
{
	const struct offload_ring *r = &p->async->ring;
	unsigned n = 0;

	for (unsigned k = 0; k < OFFLOAD_KINDS; k++) {
		struct queue *q = &p->queue[k];

		while (n < max && q->head != q->tail) {
			int64_t id = q->id[q->head & p->mask];
			int result;

			if (offload_id_seq(id) > r->done[k])
				break;
			q->head++;
			result = LIKELY(r->failures == 0)
					 ? 1
					 : offload_ring_result(r, id);
			out[n].id = id;
			out[n].err = result < 0 ? result : 0;
			out[n++].reserved = 0;
		}
	}
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

	offload_ring_expect(&p->async->ring);
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
