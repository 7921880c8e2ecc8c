/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thread of the engine: its own completion queue, its own engine of offload/,
 * and the sessions that it was given when they were opened. Threads share
 * nothing but the NIC, so none waits for another.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/relax.h"
#include "base/thread.h"
#include "client/verbs_api.h"
#include "eng_priv.h"

/* ---- locks ----------------------------------------------------------------
 */

void eng_enter(struct eng *eng)
{
	/* W0: the loops let their locks go soon. */
	atomic_fetch_add_explicit(&eng->waiting, 1, memory_order_relaxed);
	pthread_mutex_lock(&eng->lock);
	for (unsigned i = 0; i < eng->worker_count; i++)
		pthread_mutex_lock(&eng->worker[i].lock);
	atomic_fetch_sub_explicit(&eng->waiting, 1, memory_order_relaxed);
}

void eng_leave(struct eng *eng)
{
	for (unsigned i = eng->worker_count; i-- > 0;)
		pthread_mutex_unlock(&eng->worker[i].lock);
	pthread_mutex_unlock(&eng->lock);
}

static bool is_awaited(struct eng *eng)
{
	/* W1, pairs with W0; the locks order the rest. */
	return atomic_load_explicit(&eng->waiting, memory_order_relaxed) > 0;
}

/* ---- life -----------------------------------------------------------------
 */

static int open_worker(struct eng *eng, struct eng_worker *w,
		       struct offload_engine_config *c)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attr);
	pthread_condattr_destroy(&attr);
	w->eng = eng;
	eng->worker_count++;
	w->cq = ibv_create_cq(eng->context, ENG_CQ_DEPTH, NULL, NULL, 0);
	if (!w->cq)
		return error_set(-errno, "no completion queue: %s",
				 strerror(errno));
	c->cq = w->cq;
	/* Where others see them at once, unless threads would count there
	 * together. */
	c->counters = eng->is_shared ? w->counter : eng->counter;
	return offload_engine_create(c, &w->core);
}

int eng_workers_open(struct eng *eng, const struct eng_options *o)
{
	const uint32_t count = o->threads ? o->threads : 1;
	struct offload_engine_config c = {
		.clock = eng->clock,
		.verbs = client_verbs_choose(),
		.pd = eng->pd,
		.cq_depth = ENG_CQ_DEPTH,
		.sessions_max = ENG_SESSION_MAX,
		.post_walk = eng->can_gather ? aqdv_post_walk : NULL,
		.memory_bytes = o->memory_bytes / count,
		.batch = o->batch,
		.flush_ns = 1000ull * o->flush_us,
		.probe_max_ns = 1000ull * o->probe_max_us};
	int err = 0;

	eng->is_shared = count > 1;
	eng->worker = calloc(count, sizeof(*eng->worker));
	if (!eng->worker)
		return error_set(-ENOMEM, "no memory for an engine");
	for (uint32_t i = 0; i < count && !err; i++)
		err = open_worker(eng, &eng->worker[i], &c);
	return err;
}

void eng_workers_close(struct eng *eng)
{
	for (unsigned i = 0; i < eng->worker_count; i++) {
		struct eng_worker *w = &eng->worker[i];

		if (w->core)
			offload_engine_destroy(w->core);
		if (w->cq)
			(void)ibv_destroy_cq(w->cq); /* unused by now */
		pthread_cond_destroy(&w->wake);
		pthread_mutex_destroy(&w->lock);
	}
	free(eng->worker);
}

struct eng_worker *eng_worker_choose(struct eng *eng)
{
	struct eng_worker *best = eng->worker;

	for (unsigned i = 1; i < eng->worker_count; i++)
		if (eng->worker[i].session_count < best->session_count)
			best = &eng->worker[i];
	return best;
}

void eng_workers_count(struct eng *eng)
{
	for (unsigned c = 0; c < OFFLOAD_C_COUNT && eng->is_shared; c++) {
		uint64_t sum = 0;

		for (unsigned i = 0; i < eng->worker_count; i++)
			sum += eng->worker[i].counter[c];
		eng->counter[c] = sum;
	}
}

/* ---- the loop -------------------------------------------------------------
 */

/* Works until nothing is to be done. Returns when to come again: 0 means soon,
 * else a monotonic time in nanoseconds. */
static uint64_t run(struct eng_worker *w)
{
	struct eng *eng = w->eng;
	uint64_t next_ns;
	unsigned work = 0, i;

	pthread_mutex_lock(&w->lock);
	for (i = 0; i < ENG_STEPS && !is_awaited(eng); i++) {
		unsigned n = offload_engine_step(w->core);

		work += n;
		if (n == 0)
			break;
	}
	next_ns = work || is_awaited(eng) ? 0 : offload_engine_next_ns(w->core);
	if (next_ns == 0) {
		/* Requests are on the wire, or there was something to do. A
		 * peer that does not answer is not worth a whole processor. */
		w->idle = work ? 0 : w->idle + 1;
		if (w->idle > ENG_IDLE_YIELDS)
			next_ns = client_clock_now_ns(eng->clock) + ENG_NAP_NS;
	}
	pthread_mutex_unlock(&w->lock);
	if (is_awaited(eng))
		relax_briefly();
	return next_ns;
}

/* Until then, or until a session is started. */
static void sleep_until(struct eng_worker *w, uint64_t until_ns)
{
	struct timespec ts = {.tv_sec = (time_t)(until_ns / 1000000000),
			      .tv_nsec = (long)(until_ns % 1000000000)};

	pthread_mutex_lock(&w->lock);
	/* Whether time or a start ends it does not matter. */
	(void)pthread_cond_timedwait(&w->wake, &w->lock, &ts);
	pthread_mutex_unlock(&w->lock);
}

void eng_worker_loop(struct eng_worker *w, bool (*look)(void *ctx), void *ctx)
{
	struct eng *eng = w->eng;
	uint64_t look_ns = 0;

	for (;;) {
		uint64_t next_ns = run(w);
		uint64_t now_ns = client_clock_now_ns(eng->clock);

		if (now_ns >= look_ns) {
			look_ns = now_ns + ENG_TICK_MS * 1000000ull;
			if (!look(ctx))
				return;
		}
		if (next_ns == 0)
			client_clock_relax(eng->clock);
		else if (next_ns > now_ns)
			sleep_until(
				w, u64_min(next_ns, now_ns + ENG_SLEEP_MAX_NS));
	}
}

/* The other threads end soon after the first one said so. */
static bool goes_on(void *ctx)
{
	struct eng_worker *w = ctx;

	return !atomic_load_explicit(&w->eng->is_ending, memory_order_relaxed);
}

static void *thread_main(void *arg)
{
	eng_worker_loop(arg, goes_on, arg);
	return NULL;
}

int eng_workers_start(struct eng *eng)
{
	for (unsigned i = 1; i < eng->worker_count; i++) {
		struct eng_worker *w = &eng->worker[i];
		int err = thread_start(&w->thread, thread_main, w);

		if (err)
			return error_set(err, "no thread: %s", strerror(-err));
		w->has_thread = true;
	}
	return 0;
}

void eng_workers_join(struct eng *eng)
{
	atomic_store_explicit(&eng->is_ending, true, memory_order_relaxed);
	for (unsigned i = 1; i < eng->worker_count; i++)
		if (eng->worker[i].has_thread)
			(void)pthread_join(eng->worker[i].thread, NULL);
}
