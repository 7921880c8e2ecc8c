/* SPDX-License-Identifier: Apache-2.0 */
/* A program on one of the machines, which does what it is told. */
#include <aquifer/shared.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mind_bench.h"
#include "place.h"
#include "side.h"
#include "stats.h"
#include "ticks.h"

enum {
	PAGE_WORDS = 4096 / 8,
	TIMES_MAX = 4096,
	TRY_US = 5000,
	REST_US = 100000,
	BURST = 4096, /* operations between two looks at the clock */
	LOOKS = 100,  /* at a word, before the processor is given up */
	/* Words of a page: each is on a line of its own. */
	WORD_SUM = 0,
	WORD_PASS = 64,
	WORD_STOP = 128,
};

#define PATIENCE_NS 60000000000ull

typedef _Atomic uint64_t word;

struct program {
	struct aq_rack *rack;
	struct aq_shared *shared;
	word *words;
	word *plain;
	double ticks_per_ns;
	uint32_t times[TIMES_MAX];
};

/* What comes back. */
struct answer {
	int32_t err;
	char why[SIDE_WHY_BYTES];
	double value;
};

/* Its machine's server may be starting. */
static int open_segment(struct program *p)
{
	uint64_t end_ns = bench_now_ns() + PATIENCE_NS;
	int err = place_rack(&p->rack);

	while (!err) {
		err = aq_shared_open(p->rack, MIND_SEGMENT, 0, &p->shared);
		if (!err || bench_now_ns() > end_ns)
			break;
		(void)usleep(TRY_US);
		err = 0;
	}
	if (!err)
		p->words = aq_shared_addr(p->shared);
	return err;
}

/* The median of the times of single loads or stores, each to another page. */
static double touch(struct program *p, const struct mind_order *o)
{
	uint32_t n = 0;
	uint64_t sum = 0;

	for (; n < o->count && n < TIMES_MAX; n++) {
		word *w = p->words +
			  ((uint64_t)o->page + n * o->step) * PAGE_WORDS;
		uint64_t start = bench_ticks();

		if (o->verb == MIND_STORE)
			atomic_store_explicit(w, n + 1, memory_order_relaxed);
		else
			sum += atomic_load_explicit(w, memory_order_relaxed);
		p->times[n] = (uint32_t)(bench_ticks() - start);
	}
	/* The sum is used, so that no load can be left out. */
	return stats_quantile_u32(p->times, n, 0.5) / p->ticks_per_ns +
	       (sum == UINT64_MAX);
}

static double hits(struct program *p, const struct mind_order *o)
{
	word *m = o->is_plain ? p->plain : p->words;
	uint64_t start = bench_now_ns();
	uint64_t end = start + o->ms * 1000000ull, done = 0, sum = 0;

	m += (uint64_t)o->page * PAGE_WORDS;
	while (bench_now_ns() < end) {
		for (uint64_t i = 0; i < BURST; i += 4, done += 4) {
			word *w = m + (done * 67) %
					      ((uint64_t)o->count * PAGE_WORDS);

			sum += atomic_load_explicit(w, memory_order_relaxed);
			sum += atomic_load_explicit(w + 1,
						    memory_order_relaxed);
			atomic_store_explicit(w + 2, sum, memory_order_relaxed);
			atomic_fetch_add_explicit(w + 3, 1,
						  memory_order_relaxed);
		}
	}
	return (double)done * 1e9 / (double)(bench_now_ns() - start);
}

/* A word goes back and forth until the time of the side that begins is over;
 * an odd value is the other's turn. */
static double pass(struct program *p, const struct mind_order *o)
{
	word *m = (o->is_plain ? p->plain : p->words) +
		  (uint64_t)o->page * PAGE_WORDS;
	uint64_t start = bench_now_ns();
	uint64_t end = start + o->ms * 1000000ull, done = 0;

	for (;;) {
		uint64_t v;
		unsigned looks = 0;

		/* MP-1, pairs with the store below, of the other side. */
		while (((v = atomic_load_explicit(&m[WORD_PASS],
						  memory_order_acquire)) &
			1) != o->side)
			if (++looks % LOOKS == 0)
				(void)sched_yield();
		if (atomic_load_explicit(&m[WORD_STOP], memory_order_relaxed))
			break;
		if (o->side == 0 && bench_now_ns() >= end)
			atomic_store_explicit(&m[WORD_STOP], 1,
					      memory_order_relaxed);
		/* MP-1, pairs with the load above: whether to stop is known
		 * before. */
		atomic_store_explicit(&m[WORD_PASS], v + 1,
				      memory_order_release);
		done++;
		if (o->side == 0 && bench_now_ns() >= end)
			break;
	}
	return (double)done * 1e9 / (double)(bench_now_ns() - start);
}

static double add(struct program *p, const struct mind_order *o)
{
	word *w = p->words + (uint64_t)o->page * PAGE_WORDS + WORD_SUM;
	uint64_t end = bench_now_ns() + o->ms * 1000000ull, done = 0;

	while (bench_now_ns() < end) {
		atomic_fetch_add_explicit(w, 1, memory_order_relaxed);
		done++;
	}
	return (double)done;
}

static void obey(struct program *p, const struct mind_order *o,
		 struct answer *out)
{
	switch (o->verb) {
	case MIND_OPEN:
		out->err = open_segment(p);
		out->value = (double)(uintptr_t)p->words;
		break;
	case MIND_LOAD:
	case MIND_STORE:
		out->value = touch(p, o);
		break;
	case MIND_HITS:
		out->value = hits(p, o);
		break;
	case MIND_PASS:
		out->value = pass(p, o);
		break;
	case MIND_ADD:
		out->value = add(p, o);
		break;
	case MIND_ZERO:
		for (uint32_t i = 0; i < PAGE_WORDS; i++)
			p->words[(uint64_t)o->page * PAGE_WORDS + i] = 0;
		break;
	case MIND_REST:
		(void)usleep(REST_US);
		break;
	case MIND_LEAVE:
		break;
	}
	if (out->err)
		(void)snprintf(out->why, sizeof(out->why), "%s",
			       aq_last_error());
}

static void be_program(int fd, void *plain)
{
	struct program *p = calloc(1, sizeof(*p));
	struct mind_order o;

	if (!p)
		_exit(1);
	p->plain = plain;
	p->ticks_per_ns = bench_ticks_per_ns();
	while (side_recv(fd, &o, sizeof(o)) == 0 && o.verb != MIND_LEAVE) {
		struct answer a = {0};

		obey(p, &o, &a);
		if (side_send(fd, &a, sizeof(a)))
			break;
	}
	aq_shared_close(p->shared);
	aq_rack_close(p->rack);
	_exit(0);
}

int mind_program_start(struct bench *b, unsigned machine, void *plain,
		       struct mind_program *out, double *va)
{
	int fds[2];

	(void)fflush(NULL);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return bench_fail(b, -errno, "no socket");
	out->pid = fork();
	if (out->pid < 0)
		return bench_fail(b, -errno, "no process");
	if (out->pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)close(fds[0]);
		mind_rack_be(machine);
		be_program(fds[1], plain);
	}
	(void)close(fds[1]);
	out->fd = fds[0];
	return mind_program_do(b, out, &(struct mind_order){.verb = MIND_OPEN},
			       va);
}

void mind_program_end(struct mind_program *p)
{
	const struct mind_order leave = {.verb = MIND_LEAVE};

	if (p->pid <= 0)
		return;
	(void)!side_send(p->fd, &leave, sizeof(leave)); /* or it has ended */
	(void)close(p->fd);
	(void)waitpid(p->pid, NULL, 0);
	p->pid = 0;
}

int mind_program_order(struct bench *b, struct mind_program *p,
		       const struct mind_order *o)
{
	int err = side_send(p->fd, o, sizeof(*o));

	return err ? bench_fail(b, err, "a program has ended") : 0;
}

int mind_program_result(struct bench *b, struct mind_program *p, double *out)
{
	struct answer a;
	int err = side_recv(p->fd, &a, sizeof(a));

	if (err)
		return bench_fail(b, err, "a program has ended");
	if (a.err)
		return bench_fail(b, a.err, "shared memory: %s", a.why);
	if (out)
		*out = a.value;
	return 0;
}

int mind_program_do(struct bench *b, struct mind_program *p,
		    const struct mind_order *o, double *out)
{
	int err = mind_program_order(b, p, o);

	return err ? err : mind_program_result(b, p, out);
}
