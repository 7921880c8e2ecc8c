/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread of a litmus shape, on this machine or another one:
 *	coherent_shapes NAME SHAPE THREAD ROUNDS
 * All threads of the shape run at the same time, as processes; a round is a
 * batch of runs on words of their own, each variable on pages that are regions
 * of their own. Where a load follows a store there is a fence, so what a
 * processor with TSO promises is the order of some interleaving, which
 * lab/plays/mind_litmus.c knows. Without arguments but "list" it prints the
 * shapes and how many threads each has.
 */
#include <aquifer/shared.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "plays/mind_litmus.h"

enum {
	PAGE_WORDS = 4096 / 8,
	REGION_WORDS = 4 * PAGE_WORDS,
	BATCH = 64,
	/* Regions from here on; other tests use those before. */
	FIRST = 1024,
	AT_VARS = FIRST * REGION_WORDS,
	AT_SEEN = AT_VARS + MIND_LITMUS_VARS * REGION_WORDS,
	AT_MEET = AT_SEEN + MIND_LITMUS_THREADS * REGION_WORDS,
	VALUES = 4,	  /* a word is its round times this, and the value */
	ROUNDS = 1 << 20, /* of a shape; numbers only grow from one to next */
};

typedef _Atomic uint64_t word;

static void on_sigbus(int signal_number)
{
	_exit(128 + signal_number);
}

/* Those who look at each other must leave the processor to those who carry the
 * pages. */
static void await(word *w, uint64_t value)
{
	const struct timespec nap = {.tv_nsec = 20000};
	unsigned looks = 0;

	while (atomic_load_explicit(w, memory_order_acquire) < value)
		if (++looks % 64 == 0)
			(void)nanosleep(&nap, NULL);
}

static void meet(word *m, unsigned self, unsigned threads, uint64_t at)
{
	atomic_store_explicit(&m[AT_MEET + self * REGION_WORDS], at,
			      memory_order_release);
	for (unsigned t = 0; t < threads; t++)
		await(&m[AT_MEET + t * REGION_WORDS], at);
}

static word *variable(word *m, unsigned var, unsigned k)
{
	return &m[AT_VARS + var * REGION_WORDS + k];
}

/* Plain loads and stores; only the compiler must keep their order. */
static void run(word *m, const struct mind_litmus_step *step, unsigned count,
		uint64_t round, unsigned k, uint64_t *seen)
{
	for (unsigned i = 0; i < count; i++) {
		word *w = variable(m, step[i].var, k);

		if (step[i].is_store)
			atomic_store_explicit(w, round * VALUES + step[i].value,
					      memory_order_relaxed);
		else
			seen[i] = atomic_load_explicit(w, memory_order_relaxed);
		/* A fence of C11 is nothing that TSan can compile. */
		if (i + 1 < count && step[i].is_store && !step[i + 1].is_store)
			__sync_synchronize();
		else
			atomic_signal_fence(memory_order_seq_cst);
	}
}

/* What a word of an earlier round has is 0 in this one. */
static uint8_t value_in(uint64_t v, uint64_t round)
{
	return v / VALUES == round ? (uint8_t)(v % VALUES) : 0;
}

static int judge(word *m, const struct mind_litmus_shape *s, uint64_t round)
{
	unsigned threads = mind_litmus_threads(s);

	for (unsigned k = 0; k < BATCH; k++) {
		uint8_t end[MIND_LITMUS_REGS] = {0};

		for (unsigned r = 0; r < threads * MIND_LITMUS_STEPS; r++)
			end[r] = value_in(
				m[AT_SEEN +
				  r / MIND_LITMUS_STEPS * REGION_WORDS +
				  k * MIND_LITMUS_STEPS +
				  r % MIND_LITMUS_STEPS],
				round);
		for (unsigned v = 0; v < MIND_LITMUS_VARS; v++)
			end[MIND_LITMUS_REGS - MIND_LITMUS_VARS + v] =
				value_in(*variable(m, v, k), round);
		if (mind_litmus_allows(s, end))
			continue;
		printf("%s ended as no order of its steps does:", s->name);
		for (unsigned r = 0; r < MIND_LITMUS_REGS; r++)
			printf(" %u", end[r]);
		printf("\n");
		return 1;
	}
	return 0;
}

static int play(word *m, const struct mind_litmus_shape *s, unsigned self,
		uint64_t first, uint64_t rounds)
{
	unsigned threads = mind_litmus_threads(s);
	struct mind_litmus_step step[MIND_LITMUS_STEPS];
	unsigned count = mind_litmus_steps(s->threads[self], step);
	uint64_t seen[BATCH][MIND_LITMUS_STEPS] = {{0}};
	int bad = 0;

	for (uint64_t i = first; i < first + rounds; i++) {
		meet(m, self, threads, 3 * i);
		for (unsigned k = 0; k < BATCH; k++)
			run(m, step, count, i, k, seen[k]);
		for (unsigned k = 0; k < BATCH; k++)
			for (unsigned r = 0; r < MIND_LITMUS_STEPS; r++)
				m[AT_SEEN + self * REGION_WORDS +
				  k * MIND_LITMUS_STEPS + r] = seen[k][r];
		meet(m, self, threads, 3 * i + 1);
		if (self == 0)
			bad |= judge(m, s, i);
		meet(m, self, threads, 3 * i + 2);
	}
	return bad;
}

static int list(void)
{
	for (const struct mind_litmus_shape *s = mind_litmus_shapes; s->name;
	     s++)
		printf("%s %u\n", s->name, mind_litmus_threads(s));
	return 0;
}

int main(int argc, char **argv)
{
	const struct mind_litmus_shape *s = mind_litmus_shapes;
	struct aq_rack *rack;
	struct aq_shared *shared;
	unsigned self;
	int bad;

	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list();
	if (argc != 5 || signal(SIGBUS, on_sigbus) == SIG_ERR)
		return 2;
	while (s->name && strcmp(s->name, argv[2]) != 0)
		s++;
	self = (unsigned)atoi(argv[3]);
	if (!s->name || self >= mind_litmus_threads(s))
		return 2;
	if (aq_rack_open(NULL, &rack) ||
	    aq_shared_open(rack, argv[1], 0, &shared)) {
		fprintf(stderr, "%s\n", aq_last_error());
		return 1;
	}
	bad = play(aq_shared_addr(shared), s, self,
		   (uint64_t)(s - mind_litmus_shapes + 1) * ROUNDS,
		   strtoull(argv[4], NULL, 10));
	aq_shared_close(shared);
	aq_rack_close(rack);
	return bad;
}
