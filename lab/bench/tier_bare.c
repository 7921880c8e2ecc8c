/* SPDX-License-Identifier: Apache-2.0 */
/* Bare loops: one that follows pointers, and some that read. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base.h"
#include "base/clock.h"
#include "base/node_bind.h"
#include "base/rng.h"
#include "probe/probe.h"
#include "shield.h"
#include "stats.h"
#include "ticks.h"
#include "tier_bench.h"

enum {
	/* Loads that are timed together, as many as the probe has in a sample:
	 * the median of longer ones has a part of what interrupts take, and of
	 * what others do to the memory; that of shorter ones has none. */
	PIECE = 256,
	PIECES_MAX = 20000, /* of a window */
	CHUNK = 64 << 10, /* between looks at the clock, as the probe has it */
	THREADS_MAX = 64,
	WARM_MS = 20, /* threads read before anything counts */
};

static uint64_t thread_ns(void)
{
	return clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
}

/* Whether a window is measured again. */
static bool is_again(struct tier_bare *b, double share)
{
	if (share >= PROBE_SHARE_MIN || !b->again)
		return false;
	b->again--;
	return true;
}

static void *map(uint64_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Some containers forbid it; then it lies where this thread runs. */
	if (node_bind_memory(p, bytes, TIER_BARE_NODE) != 0)
		errno = 0;
	(void)madvise(p, bytes, MADV_HUGEPAGE); /* or it takes longer */
	return p;
}

/* ---- pointers ----------------------------------------------------------- */

struct cell {
	struct cell *next;
	uint8_t rest[CACHE_LINE - sizeof(struct cell *)];
};

/* A random order of all cells, joined at its ends. */
static int link_cells(struct cell *cells, uint64_t count, struct cell **first)
{
	uint32_t *order = malloc(count * sizeof(*order));
	struct rng rng;

	if (!order)
		return -ENOMEM;
	rng_init(&rng, 2);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t k = rng_below(&rng, i + 1);

		order[i] = k < i ? order[k] : (uint32_t)i;
		order[k] = (uint32_t)i;
	}
	for (uint64_t i = 0; i < count; i++)
		cells[order[i]].next = &cells[order[(i + 1) % count]];
	*first = &cells[order[0]];
	free(order);
	return 0;
}

/* The first processor that this thread may use, as the probe has it. */
static void stay_on_first(const cpu_set_t *allowed)
{
	for (int c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, allowed)) {
			(void)shield_pin(c); /* then it may move */
			return;
		}
}

static double share_since(uint64_t from_ns, uint64_t used_ns)
{
	return (double)(thread_ns() - used_ns) /
	       fmax((double)(bench_now_ns() - from_ns), 1);
}

static double follow(struct tier_bare *b, uint64_t window_ns, double *share)
{
	uint64_t begin_ns = bench_now_ns(), used_ns = thread_ns();
	uint64_t from_ns, to_ns;
	struct cell *at = b->at;
	size_t n = 0;

	do {
		from_ns = bench_now_ns();
		for (unsigned i = 0; i < PIECE; i++)
			at = at->next;
		/* The compiler must believe that somebody wants the last. */
		__asm__ volatile("" : : "r"(at));
		to_ns = bench_now_ns();
		b->sample[n++] = (double)(to_ns - from_ns) / PIECE;
	} while (to_ns < begin_ns + window_ns && n < PIECES_MAX);
	b->at = at;
	*share = share_since(begin_ns, used_ns);
	return stats_median(b->sample, n);
}

double tier_bare_chase(struct tier_bare *b, uint64_t window_ns)
{
	cpu_set_t before;
	double ns, share;

	CPU_ZERO(&before);
	(void)sched_getaffinity(0, sizeof(before), &before);
	stay_on_first(&before);
	do {
		share = 1;
		ns = follow(b, window_ns, &share);
	} while (is_again(b, share));
	b->share = fmin(b->share, share);
	if (CPU_COUNT(&before))
		(void)sched_setaffinity(0, sizeof(before), &before);
	return ns;
}

/* ---- reading ------------------------------------------------------------ */

static uint64_t sum_words(const void *from)
{
	const uint64_t *w = from;
	uint64_t sum = 0;

	for (size_t i = 0; i < CHUNK / sizeof(*w); i++)
		sum += w[i];
	return sum;
}

static uint64_t one_word_a_line(const void *from)
{
	const uint64_t *w = from;
	uint64_t sum = 0;

	for (size_t i = 0; i < CHUNK / sizeof(*w); i += CACHE_LINE / sizeof(*w))
		sum += w[i];
	return sum;
}

/* The widest loads that every processor has, a line at a time. */
typedef uint64_t vector __attribute__((vector_size(16)));

static uint64_t all_vectors(const void *from)
{
	const vector *v = from;
	vector a = {0}, b = a, c = a, d = a;

	for (size_t i = 0; i < CHUNK / sizeof(*v); i += 4) {
		a |= v[i];
		b |= v[i + 1];
		c |= v[i + 2];
		d |= v[i + 3];
	}
	a |= b | c | d;
	return a[0] | a[1];
}

/* One of them for each line. */
static uint64_t one_vector_a_line(const void *from)
{
	const vector *v = from;
	vector a = {0}, b = a;

	for (size_t i = 0; i < CHUNK / sizeof(*v); i += 8) {
		a |= v[i];
		b |= v[i + 4];
	}
	a |= b;
	return a[0] | a[1];
}

/* The C library's own loop: it looks at every byte. */
static uint64_t look_for(const void *from)
{
	return memchr(from, 0xa5, CHUNK) != NULL;
}

static const struct {
	const char *name;
	uint64_t (*read)(const void *from);
} loops[] = {{"sum", sum_words},
	     {"word a line", one_word_a_line},
	     {"vectors", all_vectors},
	     {"vector a line", one_vector_a_line},
	     {"memchr", look_for}};

STATIC_ASSERT(ARRAY_LEN(loops) == TIER_BARE_LOOPS, "loops");

const char *tier_bare_loop_name(unsigned loop)
{
	return loops[loop].name;
}

struct reader {
	pthread_t thread;
	const uint8_t *memory; /* its part */
	uint64_t bytes;
	int cpu;
	uint64_t (*read)(const void *from);
	uint64_t window_ns;
	double gbs;
	double share;
};

/* Reads on until then; how much. */
static uint64_t read_until(const struct reader *r, uint64_t *at,
			   uint64_t end_ns, uint64_t *now_ns)
{
	uint64_t done = 0;

	do {
		uint64_t got = r->read(r->memory + *at);

		__asm__ volatile("" : : "r"(got));
		done += CHUNK;
		*at = *at + 2ull * CHUNK > r->bytes ? 0 : *at + CHUNK;
		*now_ns = bench_now_ns();
	} while (*now_ns < end_ns);
	return done;
}

static void *run_reader(void *arg)
{
	struct reader *r = arg;
	uint64_t start_ns, now_ns, used_ns, at = 0, done;

	(void)shield_pin(r->cpu); /* then it may move */
	(void)read_until(r, &at, bench_now_ns() + WARM_MS * 1000000ull,
			 &start_ns);
	used_ns = thread_ns();
	done = read_until(r, &at, start_ns + r->window_ns, &now_ns);
	r->share = share_since(start_ns, used_ns);
	r->gbs = (double)done / (double)(now_ns - start_ns);
	return NULL;
}

static int read_once(const struct tier_bare *b, unsigned loop,
		     uint64_t window_ns, double *gbs, double *share)
{
	struct reader r[THREADS_MAX] = {{0}};
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t part = b->read_bytes / b->threads / CHUNK * CHUNK;
	uint32_t started = 0;
	int rc = 0;

	for (; started < b->threads && !rc; started += !rc) {
		r[started] = (struct reader){
			.cpu = (int)(started % (uint32_t)(cpus > 0 ? cpus : 1)),
			.memory = b->memory + started * part,
			.bytes = part,
			.read = loops[loop].read,
			.window_ns = window_ns};
		rc = -pthread_create(&r[started].thread, NULL, run_reader,
				     &r[started]);
	}
	*gbs = 0;
	for (uint32_t i = 0; i < started; i++) {
		(void)pthread_join(r[i].thread, NULL);
		*gbs += r[i].gbs;
		*share = fmin(*share, r[i].share);
	}
	return rc;
}

int tier_bare_read(struct tier_bare *b, unsigned loop, uint64_t window_ns,
		   double *gbs)
{
	double share;
	int rc;

	do {
		share = 1;
		rc = read_once(b, loop, window_ns, gbs, &share);
	} while (!rc && is_again(b, share));
	b->share = fmin(b->share, share);
	return rc;
}

/* ---- memory -------------------------------------------------------------- */

int tier_bare_open(struct tier_bare *b, uint64_t chase_bytes,
		   uint64_t read_bytes, uint32_t threads)
{
	int rc = -ENOMEM;

	*b = (struct tier_bare){.threads = u32_min(threads, THREADS_MAX),
				.chase_bytes = chase_bytes,
				.read_bytes = read_bytes};
	if (read_bytes / b->threads < CHUNK)
		return -EINVAL;
	b->cells = map(chase_bytes);
	b->memory = map(read_bytes);
	b->sample = malloc(PIECES_MAX * sizeof(*b->sample));
	if (b->cells && b->memory && b->sample)
		rc = link_cells(b->cells, chase_bytes / sizeof(struct cell),
				&b->at);
	if (rc)
		tier_bare_close(b);
	else
		memset(b->memory, 1, read_bytes);
	return rc;
}

void tier_bare_close(struct tier_bare *b)
{
	if (b->cells)
		(void)munmap(b->cells, b->chase_bytes);
	if (b->memory)
		(void)munmap(b->memory, b->read_bytes);
	free(b->sample);
	b->sample = NULL;
	b->cells = NULL;
	b->memory = NULL;
}
