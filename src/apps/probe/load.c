/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One window of a measurement: threads that read and write blocks, with a wait
 * between two of them if that is wanted, and the calling thread, which follows
 * cells meanwhile. Each has a processor of its own while there are enough.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/thread.h"
#include "probe_priv.h"

enum {
	SAMPLES_MIN = 16, /* before a window may end, however slow they are */
	SPIN_MS = 50,
	WARM_MS = 20, /* loads run before anything counts */
};

/* Threads wait for START, and end by themselves at the window's end. */
struct window {
	struct probe_load *load;
	_Atomic uint64_t start_ns, end_ns; /* 0: not yet */
};

struct worker {
	struct window *window;
	unsigned index;
	pthread_t thread;
	double gbs;
	double share;
	int err;
};

/* ---- processors --------------------------------------------------------- */

/* The n-th of the set, again from the first when there are fewer. */
static void stay_on(const cpu_set_t *cpus, unsigned n)
{
	int count = CPU_COUNT(cpus);
	cpu_set_t one;

	if (count == 0)
		return;
	n %= (unsigned)count;
	CPU_ZERO(&one);
	for (unsigned c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, cpus) && n-- == 0) {
			CPU_SET(c, &one);
			break;
		}
	(void)sched_setaffinity(0, sizeof(one), &one); /* then it may move */
}

static uint64_t thread_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* ---- threads that load -------------------------------------------------- */

static void wait_until(uint64_t ns)
{
	while (clock_mono_ns() < ns)
		;
}

/* The part of the blocks that is this thread's. */
struct slice {
	uint64_t first, count;
};

static struct slice slice_of(const struct worker *w)
{
	const struct probe_load *l = w->window->load;
	uint64_t count = u64_max(l->port->block_count / l->threads, 1);

	return (struct slice){w->index * count % l->port->block_count, count};
}

/* When the window began, 0: it has not yet; and when it will end. */
static uint64_t begun_ns(struct window *win, uint64_t *end_ns)
{
	/* LOAD-1: a thread that sees the start must not see the end as 0. */
	uint64_t start_ns =
		atomic_load_explicit(&win->start_ns, memory_order_acquire);

	*end_ns = atomic_load_explicit(&win->end_ns, memory_order_relaxed);
	return start_ns;
}

/* Moves blocks until the end; counts those after the start. */
static void move_blocks(struct worker *w)
{
	const struct probe_load *l = w->window->load;
	struct slice s = slice_of(w);
	uint64_t now_ns, start_ns = 0, end_ns = 0, used_ns = 0, blocks = 0;

	for (uint64_t i = 0;; i++) {
		now_ns = clock_mono_ns();
		if (!start_ns) {
			start_ns = begun_ns(w->window, &end_ns);
			used_ns = thread_ns();
			blocks = 0;
		}
		/* A thread that got no processor moves one late block. */
		if (w->err || (start_ns && now_ns >= end_ns && blocks))
			break;
		w->err = l->port->move(l->port, s.first + i % s.count,
				       !tier_ratio_is_top(&l->mix, i));
		blocks++;
		if (l->wait_ns)
			wait_until(clock_mono_ns() + l->wait_ns);
	}
	if (!start_ns || now_ns <= start_ns)
		return; /* it failed before anything counted */
	w->share =
		(double)(thread_ns() - used_ns) / (double)(now_ns - start_ns);
	w->gbs = (double)blocks * l->port->block_bytes /
		 (double)(now_ns - start_ns);
}

static void *work(void *arg)
{
	struct worker *w = arg;

	/* The first processor is the one that chases, if somebody does. */
	stay_on(&w->window->load->port->cpus,
		w->index + w->window->load->has_chase);
	move_blocks(w);
	return NULL;
}

/* ---- the thread that chases --------------------------------------------- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void summarize(double *sample, uint32_t count, struct probe_idle *out)
{
	*out = (struct probe_idle){.samples = count};
	if (!count)
		return;
	qsort(sample, count, sizeof(*sample), compare);
	out->p50_ns = sample[count / 2];
	out->p90_ns = sample[(uint64_t)count * 90 / 100];
	out->p99_ns = sample[(uint64_t)count * 99 / 100];
}

static int chase_cells(struct probe_load *l, uint64_t end_ns, double *sample)
{
	const uint32_t each = l->port->chase_count;
	uint64_t begin_ns = clock_mono_ns(), used_ns = thread_ns();
	uint64_t from_ns = begin_ns, to_ns = begin_ns;
	uint32_t count = 0;
	int err = 0;

	while (!err && count < PROBE_SAMPLES_MAX &&
	       (to_ns < end_ns || count < SAMPLES_MIN)) {
		from_ns = clock_mono_ns();
		err = l->port->chase(l->port, each);
		to_ns = clock_mono_ns();
		sample[count++] = (double)(to_ns - from_ns) / each;
	}
	summarize(sample, count, &l->idle);
	if (to_ns > begin_ns)
		l->share = fmin(l->share, (double)(thread_ns() - used_ns) /
						  (double)(to_ns - begin_ns));
	return err;
}

/* Sleeps, or measures, until the window is over. */
static int pass_window(struct probe_load *l, uint64_t end_ns)
{
	double *sample;
	int err;

	if (!l->has_chase) {
		const struct timespec t = clock_timespec(end_ns);

		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t,
				       NULL) == EINTR)
			;
		return 0;
	}
	sample = malloc(PROBE_SAMPLES_MAX * sizeof(*sample));
	if (!sample)
		return -ENOMEM;
	err = chase_cells(l, end_ns, sample);
	free(sample);
	return err;
}

/* ---- the window --------------------------------------------------------- */

static void rest(uint64_t ns)
{
	const struct timespec t = clock_timespec(ns);

	(void)nanosleep(&t, NULL); /* a shorter one does no harm */
}

static int measure(struct window *win)
{
	struct probe_load *l = win->load;
	uint64_t now_ns, end_ns;

	if (l->threads)
		rest(WARM_MS * 1000000ull);
	now_ns = clock_mono_ns();
	end_ns = now_ns + l->window_ns;
	atomic_store_explicit(&win->end_ns, end_ns, memory_order_relaxed);
	/* LOAD-1: see above. */
	atomic_store_explicit(&win->start_ns, now_ns, memory_order_release);
	return pass_window(l, end_ns);
}

static int collect(struct probe_load *l, struct worker *w, unsigned count)
{
	int err = 0;

	l->gbs = 0;
	for (unsigned i = 0; i < count; i++) {
		(void)pthread_join(w[i].thread, NULL); /* started here */
		l->gbs += w[i].gbs;
		l->share = fmin(l->share, w[i].share);
		err = err ? err : w[i].err;
	}
	return err;
}

int probe_load_run(struct probe_load *l)
{
	struct worker worker[PROBE_THREADS_MAX] = {{0}};
	struct window win = {.load = l};
	unsigned started = 0;
	cpu_set_t before;
	int err = 0, more;

	CPU_ZERO(&before);
	(void)sched_getaffinity(0, sizeof(before), &before);
	l->share = 1;
	if (l->has_chase)
		stay_on(&l->port->cpus, 0);
	for (; !err && started < l->threads; started += !err) {
		worker[started].window = &win;
		worker[started].index = started;
		err = thread_start(&worker[started].thread, work,
				   &worker[started]);
	}
	more = measure(&win);
	err = err ? err : more;
	more = collect(l, worker, started);
	if (CPU_COUNT(&before))
		(void)sched_setaffinity(0, sizeof(before), &before);
	return err ? err : more;
}

int probe_load_run_quiet(struct probe_load *l, uint32_t *again)
{
	int err = probe_load_run(l);

	while (!err && l->share < PROBE_SHARE_MIN && *again) {
		struct probe_load next = *l;

		(*again)--;
		err = probe_load_run(&next);
		if (next.share > l->share)
			*l = next;
	}
	return err;
}

double probe_load_spin(void)
{
	uint64_t begin_ns = clock_mono_ns(), used_ns = thread_ns();

	wait_until(begin_ns + SPIN_MS * 1000000ull);
	return (double)(thread_ns() - used_ns) /
	       (double)(clock_mono_ns() - begin_ns);
}
