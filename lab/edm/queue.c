/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring holds every event whose bucket is less than BUCKETS ahead of the
 * cursor; the heap holds the rest and hands them over as the cursor moves, so
 * the ring's events are always earlier than the heap's, and events of one time
 * keep their order.
 *
 * Why not the 4-ary heap of the simulator's event queue: events there are
 * embedded in their owners, and a message has several at once. The ring is also
 * faster: 35 against 22 million events per second with 3,000 waiting, 32
 * against 18 with 10,000 (delays up to 150 ns, one core of the same machine).
 */
#include <errno.h>
#include <stdlib.h>

#include "edm_queue.h"

enum {
	BUCKET_BITS = 15,
	BUCKETS = 1 << BUCKET_BITS,
	POOL_FIRST = 4096,
	NONE = 0, /* index 0 of the pool is never used */
	SHIFT_MAX = 20,
};

#define HORIZON_PS                                                 \
	UINT64_C(250000) /* longer than one crossing of the fabric \
			  */

struct far {
	uint64_t at_ps;
	uint64_t order;
	uint32_t node;
};

struct edm_queue {
	uint64_t now_ps;
	uint64_t cursor; /* number of the current bucket since time 0 */
	unsigned shift;	 /* a bucket is 2^shift ps wide */
	uint32_t free;
	uint64_t count;
	uint64_t popped;
	struct edm_event *pool;
	uint32_t pool_used, pool_size;
	struct far *far;
	uint32_t far_count, far_size;
	uint64_t order;
	uint64_t bits[BUCKETS / 64];
	uint32_t head[BUCKETS];
	uint32_t tail[BUCKETS];
};

int edm_queue_create(uint64_t spacing_ps, struct edm_queue **out)
{
	struct edm_queue *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	/* About two events per bucket, but never a horizon so short that
	 * ordinary crossings end in the heap. */
	while (q->shift < SHIFT_MAX &&
	       ((UINT64_C(1) << q->shift) < 2 * spacing_ps ||
		((uint64_t)BUCKETS << q->shift) < HORIZON_PS))
		q->shift++;
	q->pool_size = POOL_FIRST;
	q->pool_used = 1;
	q->pool = malloc(POOL_FIRST * sizeof(*q->pool));
	q->far_size = POOL_FIRST;
	q->far = malloc(POOL_FIRST * sizeof(*q->far));
	if (!q->pool || !q->far) {
		edm_queue_destroy(q);
		return -ENOMEM;
	}
	*out = q;
	return 0;
}

void edm_queue_destroy(struct edm_queue *q)
{
	if (!q)
		return;
	free(q->pool);
	free(q->far);
	free(q);
}

uint64_t edm_queue_now(const struct edm_queue *q)
{
	return q->now_ps;
}

uint64_t edm_queue_count(const struct edm_queue *q)
{
	return q->count;
}

uint64_t edm_queue_popped(const struct edm_queue *q)
{
	return q->popped;
}

static uint32_t node_get(struct edm_queue *q)
{
	uint32_t n = q->free;

	if (n) {
		q->free = q->pool[n].next;
		return n;
	}
	if (q->pool_used == q->pool_size) {
		/* A simulation without memory has no way to go on. */
		q->pool_size *= 2;
		q->pool = realloc(q->pool, q->pool_size * sizeof(*q->pool));
		ASSERT(q->pool);
	}
	return q->pool_used++;
}

/* Behind every event that is not later. */
static void ring_insert(struct edm_queue *q, uint32_t n)
{
	struct edm_event *e = &q->pool[n];
	uint32_t slot = (uint32_t)(e->at_ps >> q->shift) & (BUCKETS - 1);
	uint32_t at = q->head[slot], prev = NONE;

	e->next = NONE;
	if (!at) {
		q->head[slot] = q->tail[slot] = n;
		q->bits[slot / 64] |= UINT64_C(1) << (slot % 64);
		return;
	}
	if (q->pool[q->tail[slot]].at_ps <= e->at_ps) {
		q->pool[q->tail[slot]].next = n;
		q->tail[slot] = n;
		return;
	}
	while (q->pool[at].at_ps <= e->at_ps) {
		prev = at;
		at = q->pool[at].next;
	}
	e->next = at;
	if (prev)
		q->pool[prev].next = n;
	else
		q->head[slot] = n;
}

static bool far_before(const struct far *x, const struct far *y)
{
	return x->at_ps != y->at_ps ? x->at_ps < y->at_ps : x->order < y->order;
}

static void far_push(struct edm_queue *q, uint32_t n)
{
	struct far f = {q->pool[n].at_ps, q->order++, n};
	uint32_t i;

	if (q->far_count == q->far_size) {
		q->far_size *= 2;
		q->far = realloc(q->far, q->far_size * sizeof(*q->far));
		ASSERT(q->far);
	}
	i = q->far_count++;
	while (i && far_before(&f, &q->far[(i - 1) / 2])) {
		q->far[i] = q->far[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	q->far[i] = f;
}

static uint32_t far_pop(struct edm_queue *q)
{
	uint32_t n = q->far[0].node, i = 0;
	struct far last = q->far[--q->far_count];

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= q->far_count)
			break;
		if (c + 1 < q->far_count &&
		    far_before(&q->far[c + 1], &q->far[c]))
			c++;
		if (!far_before(&q->far[c], &last))
			break;
		q->far[i] = q->far[c];
		i = c;
	}
	q->far[i] = last;
	return n;
}

static void cursor_move(struct edm_queue *q, uint64_t bucket)
{
	q->cursor = bucket;
	while (q->far_count &&
	       q->far[0].at_ps >> q->shift < q->cursor + BUCKETS)
		ring_insert(q, far_pop(q));
}

HOT void edm_queue_push(struct edm_queue *q, uint64_t at_ps, uint16_t kind,
			uint16_t port, uint32_t a, uint32_t b)
{
	uint32_t n = node_get(q);

	q->pool[n] = (struct edm_event){
		.at_ps = u64_max(at_ps, q->now_ps),
		.kind = kind,
		.port = port,
		.a = a,
		.b = b,
	};
	q->count++;
	if (q->pool[n].at_ps >> q->shift < q->cursor + BUCKETS)
		ring_insert(q, n);
	else
		far_push(q, n);
}

/* The first bucket from the cursor on that is not empty; BUCKETS: none. */
static uint32_t ring_distance(const struct edm_queue *q)
{
	uint32_t start = (uint32_t)q->cursor & (BUCKETS - 1);
	uint32_t word = start / 64;
	uint64_t w = q->bits[word] & (UINT64_MAX << (start % 64));

	for (uint32_t i = 0; i <= BUCKETS / 64; i++) {
		if (w) {
			uint32_t slot =
				word * 64 + (uint32_t)__builtin_ctzll(w);

			return (slot - start) & (BUCKETS - 1);
		}
		word = (word + 1) % (BUCKETS / 64);
		w = q->bits[word];
	}
	return BUCKETS;
}

HOT bool edm_queue_pop(struct edm_queue *q, struct edm_event *out)
{
	uint32_t d, slot, n;

	if (!q->count)
		return false;
	d = ring_distance(q);
	if (d == BUCKETS) {
		cursor_move(q, q->far[0].at_ps >> q->shift);
		d = ring_distance(q);
	} else if (d) {
		cursor_move(q, q->cursor + d);
		d = 0;
	}
	slot = (uint32_t)(q->cursor + d) & (BUCKETS - 1);
	n = q->head[slot];
	*out = q->pool[n];
	q->head[slot] = out->next;
	if (!out->next)
		q->bits[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
	q->pool[n].next = q->free;
	q->free = n;
	q->count--;
	q->popped++;
	q->now_ps = out->at_ps;
	return true;
}

uint64_t edm_queue_next_ps(const struct edm_queue *q)
{
	uint32_t d;

	if (!q->count)
		return EDM_NEVER;
	d = ring_distance(q);
	if (d == BUCKETS)
		return q->far[0].at_ps;
	return q->pool[q->head[(q->cursor + d) & (BUCKETS - 1)]].at_ps;
}
