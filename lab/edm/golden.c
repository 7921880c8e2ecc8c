/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the published simulator does with 64 B writes, told from its rules as a
 * model of its own, to explain its numbers. Time goes in slots of one block.
 * Its switch does not match ports: a receiver takes one more grant per slot
 * while no more than 256 bytes are granted to it and not through yet, else it
 * is locked, and so is the sender of its last grant. Data therefore queues at
 * the egress port. A message's time counts from its arrival, is divided by 80
 * slots, and never counts as less than 1; only messages that were through when
 * the last one began count at all.
 */
#include "edm_golden.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/rng.h"

enum {
	NODES = 144,
	BLOCKS = 8, /* of a message: payload and nothing else */
	HOP = 16,   /* slots: 10 ns */
	WINDOW = 256 / 8,
	DENOMINATOR = 80,
	SLOTS_MAX = 1 << 30,
	NOBODY = -1,
};

struct message {
	uint32_t arrival, done;
	uint16_t src, dst;
	uint8_t to_send, to_come; /* blocks: at its sender, at its receiver */
};

/* A block on a wire or in a queue: data of a message, a grant or a notice. */
struct block {
	uint32_t at; /* slot in which it is there */
	uint32_t message;
	bool data;
};

struct queue {
	struct block *block;
	uint32_t head, tail, size; /* size: a power of two */
};

struct node {
	struct queue up, down_wait, down;
	uint32_t *granted; /* messages that it may send */
	uint32_t granted_head, granted_tail;
	uint32_t *fresh; /* messages that it has not notified yet */
	uint32_t fresh_head, fresh_tail;
	int32_t in_flight; /* blocks granted to it as a receiver */
	int lock;	   /* the sender that it waits for */
};

struct world {
	struct message *m;
	uint32_t count, started, finished, next;
	struct node node[NODES];
	uint32_t *known; /* messages notified and not granted, in order */
	uint32_t known_count;
};

static void queue_put(struct queue *q, struct block b)
{
	if (q->tail - q->head == q->size) {
		uint32_t size = q->size ? 2 * q->size : 16;
		struct block *more = malloc(size * sizeof(*more));

		ASSERT(more);
		for (uint32_t i = 0; i < q->size; i++)
			more[i] = q->block[(q->head + i) & (q->size - 1)];
		free(q->block);
		q->block = more;
		q->tail -= q->head;
		q->head = 0;
		q->size = size;
	}
	q->block[q->tail++ & (q->size - 1)] = b;
}

/* The first block, if it is there by now. */
static bool queue_get(struct queue *q, uint32_t now, struct block *out)
{
	if (q->head == q->tail || q->block[q->head & (q->size - 1)].at > now)
		return false;
	*out = q->block[q->head++ & (q->size - 1)];
	return true;
}

static void switch_grant(struct world *w, uint32_t now)
{
	bool busy[NODES] = {false};
	uint32_t kept = 0;

	for (int i = 0; i < NODES; i++) {
		if (w->node[i].in_flight <= WINDOW)
			w->node[i].lock = NOBODY;
		else if (w->node[i].lock != NOBODY)
			busy[w->node[i].lock] = true;
	}
	for (uint32_t i = 0; i < w->known_count; i++) {
		struct message *m = &w->m[w->known[i]];
		struct node *to = &w->node[m->dst];

		if (to->lock != NOBODY || busy[m->src]) {
			w->known[kept++] = w->known[i];
			continue;
		}
		to->lock = m->src;
		to->in_flight += BLOCKS;
		busy[m->src] = true;
		queue_put(&w->node[m->src].down_wait,
			  (struct block){now, w->known[i], false});
	}
	w->known_count = kept;
}

/* One block: of a message that is granted, else a notification. */
static void host_send(struct world *w, struct node *n, uint32_t now)
{
	struct message *m;
	uint32_t i;

	if (n->granted_head != n->granted_tail) {
		i = n->granted[n->granted_head];
		m = &w->m[i];
		w->started += m->to_send == BLOCKS;
		if (!--m->to_send)
			n->granted_head++;
		queue_put(&n->up, (struct block){now + HOP, i, true});
	} else if (n->fresh_head != n->fresh_tail) {
		i = n->fresh[n->fresh_head++];
		queue_put(&n->up, (struct block){now + HOP, i, false});
	}
}

static void switch_send(struct node *n, uint32_t now)
{
	struct block b;

	if (!queue_get(&n->down_wait, now, &b))
		return;
	if (b.data)
		n->in_flight--;
	b.at = now + HOP;
	queue_put(&n->down, b);
}

static void arrive(struct world *w, struct node *n, uint32_t now)
{
	struct block b;

	/* Data is queued at its output in the slot behind this one. */
	while (queue_get(&n->up, now, &b)) {
		struct message *m = &w->m[b.message];

		if (b.data)
			queue_put(&w->node[m->dst].down_wait,
				  (struct block){now + 1, b.message, true});
		else
			w->known[w->known_count++] = b.message;
	}
	while (queue_get(&n->down, now, &b)) {
		struct message *m = &w->m[b.message];

		if (!b.data) {
			n->granted[n->granted_tail++] = b.message;
		} else if (!--m->to_come) {
			m->done = now;
			w->finished++;
		}
	}
}

static void step(struct world *w, uint32_t now)
{
	for (; w->next < w->count && w->m[w->next].arrival <= now; w->next++) {
		struct node *n = &w->node[w->m[w->next].src];

		n->fresh[n->fresh_tail++] = w->next;
	}
	switch_grant(w, now);
	for (int i = 0; i < NODES; i++)
		host_send(w, &w->node[i], now);
	for (int i = 0; i < NODES; i++)
		switch_send(&w->node[i], now);
	for (int i = 0; i < NODES; i++)
		arrive(w, &w->node[i], now);
}

static void messages_draw(struct world *w, double load, uint64_t seed)
{
	double at = 0, gap = BLOCKS / load / NODES;
	struct rng r;

	rng_init(&r, seed);
	for (uint32_t i = 0; i < w->count; i++) {
		uint32_t src = (uint32_t)rng_below(&r, NODES);

		at += -log(1 - rng_double(&r)) * gap;
		w->m[i] = (struct message){
			.arrival = (uint32_t)at,
			.src = (uint16_t)src,
			.dst = (uint16_t)((src + 1 + rng_below(&r, NODES - 1)) %
					  NODES),
			.to_send = BLOCKS,
			.to_come = BLOCKS,
		};
	}
}

static int world_make(struct world *w)
{
	w->m = calloc(w->count, sizeof(*w->m));
	w->known = calloc(w->count, sizeof(*w->known));
	for (int i = 0; i < NODES; i++) {
		struct node *n = &w->node[i];

		n->lock = NOBODY;
		n->granted = calloc(w->count, sizeof(*n->granted));
		n->fresh = calloc(w->count, sizeof(*n->fresh));
		if (!n->granted || !n->fresh)
			return -ENOMEM;
	}
	return w->m && w->known ? 0 : -ENOMEM;
}

static void world_free(struct world *w)
{
	for (int i = 0; i < NODES; i++) {
		struct node *n = &w->node[i];

		free(n->granted);
		free(n->fresh);
		free(n->up.block);
		free(n->down.block);
		free(n->down_wait.block);
	}
	free(w->m);
	free(w->known);
	free(w);
}

/* `last`: the slot in which the last message began. */
static void sum_up(const struct world *w, uint32_t last, struct edm_golden *out)
{
	double sum = 0, all = 0;

	*out = (struct edm_golden){0};
	for (uint32_t i = 0; i < w->count; i++) {
		double slots = (double)w->m[i].done - w->m[i].arrival;

		all += slots;
		if (w->m[i].done > last)
			continue;
		sum += fmax(1, slots / DENOMINATOR);
		out->counted++;
	}
	out->slowdown = out->counted ? sum / out->counted : 0;
	out->mean_slots = all / w->count;
}

int edm_golden_run(double payload_load, uint32_t messages, uint64_t seed,
		   struct edm_golden *out)
{
	struct world *w = calloc(1, sizeof(*w));
	uint32_t last = 0;
	int rc;

	if (!w)
		return -ENOMEM;
	w->count = messages;
	rc = world_make(w);
	if (!rc) {
		messages_draw(w, payload_load, seed);
		for (uint32_t now = 0; w->finished < messages; now++) {
			/* Overload ends, too: arrivals do. */
			ASSERT(now < SLOTS_MAX);
			step(w, now);
			if (!last && w->started == messages)
				last = now;
		}
		sum_up(w, last, out);
	}
	world_free(w);
	return rc;
}
