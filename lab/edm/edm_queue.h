/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The event queue of the cluster simulation: a ring of time buckets with a heap
 * behind it for the far future. Events are values, not embedded objects: one
 * message has many at once, and a run of a million messages has tens of
 * millions. Events of one time come out in the order in which they went in.
 * There is no cancel; an owner recognizes a stale event by its own state.
 */
#ifndef AQ_EDM_QUEUE_H
#define AQ_EDM_QUEUE_H

#include "edm_units.h"

struct edm_event {
	uint64_t at_ps;
	uint32_t next; /* the queue's own */
	uint16_t kind;
	uint16_t port;
	uint32_t a;
	uint32_t b;
};

STATIC_ASSERT(sizeof(struct edm_event) == 24, "an event is three words");

struct edm_queue;

/* spacing_ps: the expected time between two events, which sets the width of a
 * bucket; a wrong guess costs time only. */
int edm_queue_create(uint64_t spacing_ps, struct edm_queue **out) MUST_CHECK;
void edm_queue_destroy(struct edm_queue *q);

uint64_t edm_queue_now(const struct edm_queue *q);
uint64_t edm_queue_count(const struct edm_queue *q);  /* waiting */
uint64_t edm_queue_popped(const struct edm_queue *q); /* run so far */

/* A time in the past means now. */
void edm_queue_push(struct edm_queue *q, uint64_t at_ps, uint16_t kind,
		    uint16_t port, uint32_t a, uint32_t b);
/* The earliest event; sets the clock to it. False when there is none. */
bool edm_queue_pop(struct edm_queue *q, struct edm_event *out);
/* When the earliest event is due; EDM_NEVER when there is none. */
uint64_t edm_queue_next_ps(const struct edm_queue *q);

#endif
