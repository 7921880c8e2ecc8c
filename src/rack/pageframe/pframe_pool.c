/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pools of page frames and their queue. Chains take places by adding to `head`
 * and `tail` and never look whether there is something; so the processor must
 * live with places that were taken in vain (holes). The queue has more than
 * twice as many places as there are page frames, so a hole is mended long
 * before its place comes round again.
 *
 * What a pool reserves are addresses. Page frames are added for who comes and
 * withdrawn when it goes, at once or as they become free: all page frames are
 * alike, so it does not matter which.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/node_bind.h"
#include "base/size.h"
#include "pframe_priv.h"

enum {
	QUEUE_PAGE = 4096,
	PLACES_BYTES_MIN = 4096,
	BATCH = 1024,
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

static int make_queue(struct pframe_pool *p)
{
	uintptr_t start;

	p->places_bytes = power_above((2 * p->max + 2) * PFRAME_PLACE_BYTES);
	p->queue_map_bytes = 2 * p->places_bytes + QUEUE_PAGE;
	p->queue_map = map_pages(p->queue_map_bytes);
	if (!p->queue_map)
		return -ENOMEM;
	start = align_up((uintptr_t)p->queue_map + QUEUE_PAGE, p->places_bytes);
	p->places = (_Atomic uint64_t *)start;
	p->queue = (struct pframe_queue *)(start - QUEUE_PAGE);
	atomic_init(&p->queue->head, start);
	atomic_init(&p->queue->tail, start);
	return 0;
}

/* Which page frames are not in circulation any more, and how many of each page
 * of the machine are. */
static int make_lists(struct pframe_pool *p)
{
	p->spare_bytes = align_up(p->max * sizeof(*p->spare), QUEUE_PAGE);
	p->spare = map_pages(p->spare_bytes);
	p->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	p->live_bytes = align_up((p->pframes_bytes / p->page_bytes + 1) *
					 sizeof(*p->live),
				 QUEUE_PAGE);
	p->live = map_pages(p->live_bytes);
	return p->spare && p->live ? 0 : -ENOMEM;
}

int pframe_pool_reserve(uint64_t bytes, uint32_t pframe_bytes, bool is_pinned,
			struct pframe_pool **out)
{
	struct pframe_pool *p;
	int err;

	if (pframe_bytes < PFRAME_BYTES_MIN ||
	    pframe_bytes > PFRAME_BYTES_MAX ||
	    (pframe_bytes & (pframe_bytes - 1)) || bytes < pframe_bytes)
		return error_set(
			-EINVAL,
			"page frames have %d to %d bytes, a power of two, "
			"and a pool has at least one",
			PFRAME_BYTES_MIN, PFRAME_BYTES_MAX);
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(-ENOMEM, "no memory for a pool");
	pthread_mutex_init(&p->lock, NULL);
	p->pframe_bytes = pframe_bytes;
	p->is_pinned = is_pinned;
	p->max = bytes / pframe_bytes;
	p->pframes_bytes = p->max * pframe_bytes;
	p->pframes = map_pages(p->pframes_bytes);
	err = p->pframes ? make_queue(p) : -ENOMEM;
	if (!err)
		err = make_lists(p);
	if (err) {
		pframe_pool_destroy(p);
		return error_set(-ENOMEM, "no memory for %s", SIZE_TEXT(bytes));
	}
	*out = p;
	return 0;
}

int pframe_pool_bind(struct pframe_pool *p, uint32_t node)
{
	int err = node_bind_memory(p->pframes, p->pframes_bytes, node);

	if (err)
		return error_set(err, "page frames cannot be on NUMA node %u",
				 node);
	p->is_bound = true;
	p->node = node;
	return 0;
}

int pframe_pool_create(uint64_t bytes, uint32_t pframe_bytes,
		       struct pframe_pool **out)
{
	int err = pframe_pool_reserve(bytes, pframe_bytes, false, out);

	if (!err)
		(void)pframe_pool_add(*out, (*out)->max);
	return err;
}

void pframe_pool_destroy(struct pframe_pool *p)
{
	if (p->pframes)
		(void)munmap(p->pframes, p->pframes_bytes);
	if (p->queue_map)
		(void)munmap(p->queue_map, p->queue_map_bytes);
	if (p->spare)
		(void)munmap(p->spare, p->spare_bytes);
	if (p->live)
		(void)munmap(p->live, p->live_bytes);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint64_t pframe_pool_count(const struct pframe_pool *p)
{
	return atomic_load_explicit(&p->count, memory_order_relaxed);
}

uint64_t pframe_pool_owed(const struct pframe_pool *p)
{
	return atomic_load_explicit(&p->owed, memory_order_relaxed);
}

uint32_t pframe_pool_each_bytes(const struct pframe_pool *p)
{
	return p->pframe_bytes;
}

bool pframe_pool_has(const struct pframe_pool *p, uint64_t pframe)
{
	uint64_t at = pframe - (uintptr_t)p->pframes;

	return at < p->pframes_bytes && at % p->pframe_bytes == 0;
}

uint64_t pframe_pool_free(const struct pframe_pool *p)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < p->places_bytes / PFRAME_PLACE_BYTES; i++)
		n += atomic_load_explicit(&p->places[i],
					  memory_order_relaxed) != 0;
	return n;
}

static uint64_t next_place(const struct pframe_pool *p, uint64_t place)
{
	uint64_t mask = p->places_bytes - 1;

	return (place & ~mask) | ((place + PFRAME_PLACE_BYTES) & mask);
}

/* The words may be counted up by a chain at any time, so nothing but an atomic
 * instruction will do; the NIC uses the same ones. */
static _Atomic uint64_t *word_at(uint64_t place)
{
	return (_Atomic uint64_t *)(uintptr_t)place;
}

uint64_t pframe_pool_pop(struct pframe_pool *p)
{
	/* POOL-2, with the exchange below in other threads and the chains' own
	 * steps in the NIC: a place is taken by one of them. */
	uint64_t place =
		atomic_load_explicit(&p->queue->head, memory_order_acquire);

	do {
		/* POOL-1, with pframe_pool_push: who sees the page frame may
		 * use
		 * it. */
		if (!atomic_load_explicit(word_at(place), memory_order_acquire))
			return 0;
		/* POOL-2 */
	} while (!atomic_compare_exchange_weak_explicit(
		&p->queue->head, &place, next_place(p, place),
		memory_order_acq_rel, memory_order_acquire));
	/* POOL-1: the place is empty before anybody fills it again. */
	return pframe_be64(atomic_exchange_explicit(word_at(place), 0,
						    memory_order_acq_rel));
}

void pframe_pool_push(struct pframe_pool *p, uint64_t pframe)
{
	uint64_t place =
		atomic_load_explicit(&p->queue->tail, memory_order_relaxed);

	/* POOL-2, for the tail. */
	while (!atomic_compare_exchange_weak_explicit(
		&p->queue->tail, &place, next_place(p, place),
		memory_order_acq_rel, memory_order_relaxed))
		;
	/* POOL-1: nobody finds a page frame that is still in use. */
	atomic_store_explicit(word_at(place), pframe_be64(pframe),
			      memory_order_release);
}

static bool is_place(const struct pframe_pool *p, uint64_t place)
{
	uint64_t at = place - (uintptr_t)p->places;

	return at < p->places_bytes && at % PFRAME_PLACE_BYTES == 0;
}

void pframe_pool_hole(struct pframe_pool *p, uint64_t place)
{
	if (!is_place(p, place))
		return;
	pthread_mutex_lock(&p->lock);
	/* A chain that finds nothing is stopped, so there are never more holes
	 * than clients; with that many the queue only loses a page frame. */
	if (p->hole_count < PFRAME_HOLES_MAX)
		p->hole[p->hole_count++] = place;
	pthread_mutex_unlock(&p->lock);
	(void)pframe_pool_mend(p); /* it may be filled already */
}

void pframe_pool_fill(struct pframe_pool *p, uint64_t place, uint64_t pframe)
{
	if (!is_place(p, place)) { /* what a chain leaves behind is checked */
		pframe_pool_push(p, pframe);
		return;
	}
	/* POOL-1: who took it in vain meanwhile has left a hole. */
	atomic_store_explicit(word_at(place), pframe_be64(pframe),
			      memory_order_release);
}

unsigned pframe_pool_mend(struct pframe_pool *p)
{
	unsigned i = 0, left;

	pthread_mutex_lock(&p->lock);
	while (i < p->hole_count) {
		/* POOL-1, as in pframe_pool_pop. */
		uint64_t pframe = atomic_exchange_explicit(
			word_at(p->hole[i]), 0, memory_order_acq_rel);

		if (!pframe) {
			i++;
			continue;
		}
		p->hole[i] = p->hole[--p->hole_count];
		pframe_pool_push(p, pframe_be64(pframe));
	}
	left = p->hole_count;
	pthread_mutex_unlock(&p->lock);
	return left;
}

/* ---- how many there are -------------------------------------------------- */

/* Pages of the machine that nobody uses any more. */
struct vacant {
	unsigned count;
	uint64_t at[BATCH];
};

static int compare(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* They go back to the machine, which clears them: neighbours by one call, since
 * a program that ends waits for all of them. */
static void give_back(const struct pframe_pool *p, struct vacant *v)
{
	uint64_t each = u64_max(p->page_bytes, p->pframe_bytes);
	unsigned i, n;

	qsort(v->at, v->count, sizeof(v->at[0]), compare);
	for (i = 0; i < v->count; i += n) {
		for (n = 1; i + n < v->count; n++)
			if (v->at[i + n] != v->at[i] + n * each)
				break;
		(void)madvise(p->pframes + v->at[i], n * each, MADV_DONTNEED);
	}
	v->count = 0;
}

/*
 * The page frame is in nobody's hands: its memory goes back as soon as all page
 * frames of the page do. Memory that an RNIC has pinned stays where it is, and
 * is cleared here.
 */
static void release(struct pframe_pool *p, uint64_t pframe, struct vacant *v)
{
	uint64_t page = (pframe - (uintptr_t)p->pframes) / p->page_bytes;

	p->live[page]--;
	if (p->is_pinned)
		memset((void *)(uintptr_t)pframe, 0, p->pframe_bytes);
	else if (!p->live[page])
		v->at[v->count++] = page * p->page_bytes;
}

static uint64_t next_pframe(struct pframe_pool *p)
{
	uint64_t pframe = p->spare_count ? p->spare[--p->spare_count]
					 : (uintptr_t)p->pframes +
						   p->made++ * p->pframe_bytes;

	p->live[(pframe - (uintptr_t)p->pframes) / p->page_bytes]++;
	return pframe;
}

/* Many page frames take long, and others want the lock meanwhile. */
static void let_others_in(struct pframe_pool *p)
{
	pthread_mutex_unlock(&p->lock);
	(void)sched_yield();
	pthread_mutex_lock(&p->lock);
}

uint64_t pframe_pool_add(struct pframe_pool *p, uint64_t n)
{
	uint64_t added;

	pthread_mutex_lock(&p->lock);
	added = u64_min(n, p->owed);
	p->owed -= added;
	while (added < n && p->count < p->max) {
		pframe_pool_push(p, next_pframe(p));
		p->count++;
		if (++added % BATCH == 0)
			let_others_in(p);
	}
	pthread_mutex_unlock(&p->lock);
	return added;
}

void pframe_pool_withdraw(struct pframe_pool *p, uint64_t n)
{
	struct vacant v = {.count = 0};
	unsigned left = BATCH;
	uint64_t pframe;

	pthread_mutex_lock(&p->lock);
	p->owed += n;
	while (p->owed && (pframe = pframe_pool_pop(p)) != 0) {
		release(p, pframe, &v);
		p->spare[p->spare_count++] = pframe;
		p->count--;
		p->owed--;
		if (--left)
			continue;
		/* Before others can have them again. */
		give_back(p, &v);
		left = BATCH;
		let_others_in(p);
	}
	give_back(p, &v);
	pthread_mutex_unlock(&p->lock);
}
