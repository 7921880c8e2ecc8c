/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of frames and their queue. Chains take places by adding to `head` and
 * `tail` and never look whether there is something; so the processor must live
 * with places that were taken in vain (holes). The queue has more than twice
 * as many places as there are frames, so a hole is mended long before its place
 * comes round again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "error.h"
#include "frame_priv.h"

enum {
	QUEUE_PAGE = 4096,
	PLACES_BYTES_MIN = 4096,
};

static void *map_pages(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

static uint64_t power_above(uint64_t v)
{
	uint64_t p = PLACES_BYTES_MIN;

	while (p < v)
		p *= 2;
	return p;
}

static int make_queue(struct frame_pool *p)
{
	uintptr_t start;

	p->places_bytes = power_above((2 * p->count + 2) * FRAME_PLACE_BYTES);
	p->queue_map_bytes = 2 * p->places_bytes + QUEUE_PAGE;
	p->queue_map = map_pages(p->queue_map_bytes);
	if (!p->queue_map)
		return -ENOMEM;
	start = align_up((uintptr_t)p->queue_map + QUEUE_PAGE, p->places_bytes);
	p->places = (_Atomic uint64_t *)start;
	p->queue = (struct frame_queue *)(start - QUEUE_PAGE);
	atomic_init(&p->queue->head, start);
	atomic_init(&p->queue->tail, start);
	return 0;
}

int frame_pool_create(uint64_t bytes, uint32_t frame_bytes,
		      struct frame_pool **out)
{
	struct frame_pool *p;
	int err;

	if (frame_bytes < FRAME_BYTES_MIN || frame_bytes > FRAME_BYTES_MAX ||
	    (frame_bytes & (frame_bytes - 1)) || bytes < frame_bytes)
		return error_set(-EINVAL,
				 "frames have %d to %d bytes, a power of two, "
				 "and a pool has at least one",
				 FRAME_BYTES_MIN, FRAME_BYTES_MAX);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(-ENOMEM, "no memory for a pool");
	pthread_mutex_init(&p->lock, NULL);
	p->frame_bytes = frame_bytes;
	p->count = bytes / frame_bytes;
	p->frames_bytes = p->count * frame_bytes;
	p->frames = map_pages(p->frames_bytes);
	err = p->frames ? make_queue(p) : -ENOMEM;
	if (err) {
		frame_pool_destroy(p);
		return error_set(-ENOMEM, "no memory for %" PRIu64 " bytes",
				 bytes);
	}
	for (uint64_t i = 0; i < p->count; i++)
		frame_pool_push(p, (uintptr_t)p->frames + i * frame_bytes);
	*out = p;
	return 0;
}

void frame_pool_destroy(struct frame_pool *p)
{
	if (p->frames)
		(void)munmap(p->frames, p->frames_bytes);
	if (p->queue_map)
		(void)munmap(p->queue_map, p->queue_map_bytes);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

void frame_pool_plant(struct frame_pool *p, enum frame_bug bug)
{
	p->bug = bug;
}

uint64_t frame_pool_count(const struct frame_pool *p)
{
	return p->count;
}

uint32_t frame_pool_frame_bytes(const struct frame_pool *p)
{
	return p->frame_bytes;
}

bool frame_pool_has(const struct frame_pool *p, uint64_t frame)
{
	uint64_t at = frame - (uintptr_t)p->frames;

	return at < p->frames_bytes && at % p->frame_bytes == 0;
}

uint64_t frame_pool_free(const struct frame_pool *p)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < p->places_bytes / FRAME_PLACE_BYTES; i++)
		n += atomic_load_explicit(&p->places[i],
					  memory_order_relaxed) != 0;
	return n;
}

static uint64_t next_place(const struct frame_pool *p, uint64_t place)
{
	uint64_t mask = p->places_bytes - 1;

	return (place & ~mask) | ((place + FRAME_PLACE_BYTES) & mask);
}

/* The words may be counted up by a chain at any time, so nothing but an atomic
 * instruction will do; the NIC uses the same ones. */
static _Atomic uint64_t *word_at(uint64_t place)
{
	return (_Atomic uint64_t *)(uintptr_t)place;
}

uint64_t frame_pool_pop(struct frame_pool *p)
{
	uint64_t place =
		atomic_load_explicit(&p->queue->head, memory_order_acquire);

	do {
		/* Q1, pairs with Q0: who sees the frame may use it. */
		if (!atomic_load_explicit(word_at(place), memory_order_acquire))
			return 0;
	} while (!atomic_compare_exchange_weak_explicit(
		&p->queue->head, &place, next_place(p, place),
		memory_order_acq_rel, memory_order_acquire));
	return frame_swap(atomic_exchange_explicit(word_at(place), 0,
						   memory_order_acq_rel));
}

void frame_pool_push(struct frame_pool *p, uint64_t frame)
{
	uint64_t place =
		atomic_load_explicit(&p->queue->tail, memory_order_relaxed);

	while (!atomic_compare_exchange_weak_explicit(
		&p->queue->tail, &place, next_place(p, place),
		memory_order_acq_rel, memory_order_relaxed))
		;
	/* Q0, pairs with Q1. */
	atomic_store_explicit(word_at(place), frame_swap(frame),
			      memory_order_release);
}

static bool is_place(const struct frame_pool *p, uint64_t place)
{
	uint64_t at = place - (uintptr_t)p->places;

	return at < p->places_bytes && at % FRAME_PLACE_BYTES == 0;
}

void frame_pool_hole(struct frame_pool *p, uint64_t place)
{
	if (!is_place(p, place))
		return;
	pthread_mutex_lock(&p->lock);
	/* A chain that finds nothing is stopped, so there are never more holes
	 * than clients; with that many the queue only loses a frame. */
	if (p->hole_count < FRAME_HOLES_MAX)
		p->hole[p->hole_count++] = place;
	pthread_mutex_unlock(&p->lock);
	(void)frame_pool_mend(p); /* it may be filled already */
}

void frame_pool_fill(struct frame_pool *p, uint64_t place, uint64_t frame)
{
	if (!is_place(p, place)) { /* what a chain leaves behind is checked */
		frame_pool_push(p, frame);
		return;
	}
	/* Q0: who took it in vain meanwhile has left a hole. */
	atomic_store_explicit(word_at(place), frame_swap(frame),
			      memory_order_release);
}

unsigned frame_pool_mend(struct frame_pool *p)
{
	unsigned i = 0, left;

	pthread_mutex_lock(&p->lock);
	while (i < p->hole_count) {
		uint64_t frame = atomic_exchange_explicit(
			word_at(p->hole[i]), 0, memory_order_acq_rel);

		if (!frame) {
			i++;
			continue;
		}
		p->hole[i] = p->hole[--p->hole_count];
		frame_pool_push(p, frame_swap(frame));
	}
	left = p->hole_count;
	pthread_mutex_unlock(&p->lock);
	return left;
}
