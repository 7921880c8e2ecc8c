/* SPDX-License-Identifier: Apache-2.0 */
#include "stock.h"

#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/env.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/thread.h"

enum {
	SHELVES = 4, /* sizes at a time */
	SPAN_S = 1,  /* that demand is counted over */
	PIECES_MAX = 1024,
};

#define SECOND_NS 1000000000ull

/* Memory of one size. */
struct shelf {
	uint64_t size_bytes; /* 0: it is free */
	struct memory *ready;
	unsigned count, room;
	unsigned used; /* the last ones of them; to be cleared */
	/* Taken in the span that began then, and in the busiest one before. */
	uint64_t span_ns;
	unsigned taken, most;
};

struct mem_stock {
	struct mem_node *of;
	uint64_t limit_bytes;
	uint64_t bytes; /* what is on shelves, and on its way there */
	struct shelf shelf[SHELVES];
	uint64_t taken_ns; /* the last time */
	pthread_cond_t wake;
	bool stops, has_thread;
	bool sleeps; /* until somebody wakes it */
	pthread_t thread;
};

/* ---- demand -------------------------------------------------------------- */

static bool is_idle(const struct shelf *f, uint64_t now_ns)
{
	return now_ns - f->span_ns > STOCK_IDLE_S * SECOND_NS;
}

static void turn_span(struct shelf *f, uint64_t now_ns)
{
	uint64_t age_ns = now_ns - f->span_ns;

	if (age_ns < SPAN_S * SECOND_NS)
		return;
	f->most = is_idle(f, now_ns) ? 0 : u32_max(f->most, f->taken);
	f->taken = 0;
	f->span_ns = now_ns;
}

static unsigned wanted(const struct shelf *f)
{
	return u32_min(u32_max(f->taken, f->most), PIECES_MAX);
}

/* ---- shelves ------------------------------------------------------------- */

static unsigned ready_count(const struct shelf *f)
{
	return f->count - f->used;
}

/* The one that is ready and was touched last: caches may have it. */
static struct memory pop_ready(struct mem_stock *s, struct shelf *f)
{
	unsigned at = ready_count(f) - 1;
	struct memory m = f->ready[at];

	f->ready[at] = f->ready[--f->count];
	s->bytes -= f->size_bytes;
	return m;
}

static struct memory pop(struct mem_stock *s, struct shelf *f)
{
	s->bytes -= f->size_bytes;
	f->used -= f->used > 0;
	return f->ready[--f->count];
}

static void give_one(struct mem_stock *s, struct shelf *f)
{
	struct memory m = pop(s, f);

	memory_free(s->of, &m);
}

static struct shelf *find_shelf(struct mem_stock *s, uint64_t size_bytes)
{
	for (unsigned i = 0; i < SHELVES; i++)
		if (s->shelf[i].size_bytes == size_bytes)
			return &s->shelf[i];
	return NULL;
}

/* That of the size, or one that may have it. NULL: all are in use. */
static struct shelf *shelf_of(struct mem_stock *s, uint64_t size_bytes,
			      uint64_t now_ns)
{
	struct shelf *other = find_shelf(s, size_bytes);

	if (other)
		return other;
	for (unsigned i = 0; i < SHELVES; i++) {
		struct shelf *f = &s->shelf[i];

		if (!f->count && (!f->size_bytes || is_idle(f, now_ns)))
			other = f;
	}
	if (other) {
		other->size_bytes = size_bytes;
		other->taken = other->most = 0;
		other->span_ns = now_ns;
	}
	return other;
}

static void wake(struct mem_stock *s)
{
	if (s->sleeps)
		pthread_cond_signal(&s->wake);
}

bool mem_stock_take(struct mem_stock *s, uint64_t size_bytes,
		    struct memory *out, bool *is_used)
{
	uint64_t now_ns;
	struct shelf *f;

	if (!s || !s->limit_bytes)
		return false;
	lock_assert_mutex_held(&s->of->lock);
	now_ns = env_now_ns(s->of->env);
	f = shelf_of(s, size_bytes, now_ns);
	if (!f)
		return false;
	turn_span(f, now_ns);
	f->taken++;
	s->taken_ns = now_ns;
	wake(s);
	if (!f->count)
		return false;
	*is_used = !ready_count(f);
	*out = *is_used ? pop(s, f) : pop_ready(s, f);
	return true;
}

static uint64_t pool_left(const struct mem_stock *s)
{
	const struct mem_node *n = s->of;

	return n->pool_bytes > n->used_bytes ? n->pool_bytes - n->used_bytes
					     : 0;
}

void mem_stock_yield(struct mem_stock *s, uint64_t bytes)
{
	if (!s)
		return;
	lock_assert_mutex_held(&s->of->lock);
	for (unsigned i = 0; i < SHELVES; i++)
		while (s->shelf[i].count && bytes + s->bytes > pool_left(s))
			give_one(s, &s->shelf[i]);
}

/* A part of the pool stays free for others. */
static bool fits(const struct mem_stock *s, uint64_t bytes,
		 uint64_t limit_bytes)
{
	return s->bytes + bytes <= limit_bytes &&
	       s->bytes + bytes + s->of->pool_bytes / STOCK_POOL_PART <=
		       pool_left(s);
}

static int make_room(struct shelf *f)
{
	unsigned room = f->room ? 2 * f->room : 8;
	struct memory *more;

	if (f->count < f->room)
		return 0;
	more = realloc(f->ready, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	f->ready = more;
	f->room = room;
	return 0;
}

bool mem_stock_give(struct mem_stock *s, const struct memory *m)
{
	uint64_t now_ns;
	struct shelf *f;

	if (!s || !s->limit_bytes || !m->from_aqdv || m->is_spilled)
		return false;
	lock_assert_mutex_held(&s->of->lock);
	now_ns = env_now_ns(s->of->env);
	f = find_shelf(s, m->size_bytes);
	if (!f || is_idle(f, now_ns) ||
	    !fits(s, m->size_bytes, s->limit_bytes) ||
	    aqdv_alloc_private(s->of->context, m->addr) != 1 || make_room(f))
		return false;
	s->bytes += m->size_bytes;
	f->ready[f->count++] = *m;
	f->used++;
	wake(s);
	return true;
}

uint64_t mem_stock_bytes(const struct mem_stock *s)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; s && i < SHELVES; i++)
		bytes += s->shelf[i].count * s->shelf[i].size_bytes;
	return bytes;
}

/* ---- the thread ---------------------------------------------------------- */

static struct shelf *find_empty(struct mem_stock *s, uint64_t now_ns)
{
	struct shelf *best = NULL;

	for (unsigned i = 0; i < SHELVES; i++) {
		struct shelf *f = &s->shelf[i];

		/* The one that lacks most of what it wants. */
		if (!is_idle(f, now_ns) && f->count < wanted(f) &&
		    fits(s, f->size_bytes, s->limit_bytes / STOCK_FRESH_PART) &&
		    (!best || (uint64_t)f->count * wanted(best) <
				      (uint64_t)best->count * wanted(f)))
			best = f;
	}
	return best;
}

static struct shelf *find_used(struct mem_stock *s)
{
	for (unsigned i = 0; i < SHELVES; i++)
		if (s->shelf[i].used)
			return &s->shelf[i];
	return NULL;
}

/* Unless others want its room by now, or the shelf. */
static int put(struct mem_stock *s, struct shelf *f, struct memory *m)
{
	bool is_wanted = !s->stops && s->bytes <= pool_left(s) &&
			 f->size_bytes == m->size_bytes && !make_room(f);

	if (!is_wanted) {
		s->bytes -= m->size_bytes;
		memory_free(s->of, m);
		return -ENOSPC;
	}
	/* Before those that are to be cleared. */
	f->ready[f->count] = f->ready[ready_count(f)];
	f->ready[ready_count(f)] = *m;
	f->count++;
	return 0;
}

/* Both let the lock go meanwhile; what they work on is on no shelf. */
static void clear_one(struct mem_stock *s, struct shelf *f)
{
	struct memory m = pop(s, f);

	s->bytes += m.size_bytes;
	pthread_mutex_unlock(&s->of->lock);
	memset(m.addr, 0, m.size_bytes);
	pthread_mutex_lock(&s->of->lock);
	(void)!put(s, f, &m); /* then it is gone */
}

static int fill_one(struct mem_stock *s, struct shelf *f)
{
	uint64_t bytes = f->size_bytes;
	struct memory m;
	int err;

	s->bytes += bytes;
	pthread_mutex_unlock(&s->of->lock);
	err = memory_prepare(s->of, bytes, &m);
	pthread_mutex_lock(&s->of->lock);
	if (err)
		s->bytes -= bytes;
	else
		err = put(s, f, &m);
	return err;
}

/* When nobody wants any more; true: there is more of it. */
static bool clear_some(struct mem_stock *s, uint64_t now_ns)
{
	bool has_more = false;

	for (unsigned i = 0; i < SHELVES; i++) {
		struct shelf *f = &s->shelf[i];

		if (f->count && is_idle(f, now_ns))
			give_one(s, f);
		has_more |= f->count && is_idle(f, now_ns);
	}
	return has_more;
}

static void sleep_ms(struct mem_stock *s, uint64_t ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(ms / 1000);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)pthread_cond_timedwait(&s->wake, &s->of->lock, &until);
}

/* One step of what there is to do; false: nothing. */
static bool work(struct mem_stock *s, uint64_t now_ns, bool *has_failed)
{
	struct shelf *f = find_used(s);

	if (f) {
		clear_one(s, f);
		return true;
	}
	f = *has_failed ? NULL : find_empty(s, now_ns);
	if (f)
		*has_failed = fill_one(s, f) != 0;
	return f || clear_some(s, now_ns);
}

/* While blocks are taken it stays out of the way: it would want the processor,
 * and the lock of the process's memory, at the same time. */
static void *run(void *arg)
{
	struct mem_stock *s = arg;
	bool has_failed = false;

	(void)pthread_setname_np(pthread_self(), "aq-stock");
	pthread_mutex_lock(&s->of->lock);
	while (!s->stops) {
		uint64_t now_ns = env_now_ns(s->of->env);

		if (now_ns - s->taken_ns < STOCK_QUIET_MS * 1000000ull) {
			sleep_ms(s, STOCK_QUIET_MS);
		} else if (!work(s, now_ns, &has_failed)) {
			has_failed = false;
			s->sleeps = true;
			/* What is there goes some time. */
			if (s->bytes)
				sleep_ms(s, SPAN_S * 1000);
			else
				(void)pthread_cond_wait(&s->wake, &s->of->lock);
			s->sleeps = false;
		}
	}
	pthread_mutex_unlock(&s->of->lock);
	return NULL;
}

/* ---- life ---------------------------------------------------------------- */

int mem_stock_create(struct mem_node *node, uint64_t limit_bytes,
		     struct mem_stock **out)
{
	struct mem_stock *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	int err = 0;

	if (!s)
		return error_set(-ENOMEM, "no memory for a stock");
	s->of = node;
	s->limit_bytes =
		u64_min(limit_bytes, node->pool_bytes / STOCK_POOL_PART);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	if (s->limit_bytes)
		err = thread_start(&s->thread, run, s);
	s->has_thread = s->limit_bytes && !err;
	if (err) {
		mem_stock_destroy(s);
		return error_set(err, "no thread for memory: %s",
				 strerror(-err));
	}
	*out = s;
	return 0;
}

void mem_stock_stop(struct mem_stock *s)
{
	if (!s || !s->has_thread)
		return;
	pthread_mutex_lock(&s->of->lock);
	s->stops = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->of->lock);
	(void)pthread_join(s->thread, NULL);
	s->has_thread = false;
}

void mem_stock_destroy(struct mem_stock *s)
{
	if (!s)
		return;
	mem_stock_stop(s);
	for (unsigned i = 0; i < SHELVES; i++) {
		while (s->shelf[i].count)
			give_one(s, &s->shelf[i]);
		free(s->shelf[i].ready);
	}
	pthread_cond_destroy(&s->wake);
	free(s);
}
