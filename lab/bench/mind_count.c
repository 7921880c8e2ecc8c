/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted, not timed: frames in the switch's own trace for each change
 * of a region, made by programs on two machines. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mind_bench.h"
#include "stats.h"

enum {
	A,
	B,
	HITS_MS = 20,
};

/* Pages, each in a region of its own; a step is the machine that asks. */
static const struct {
	const char *name;
	/* What was done with the page before: by which machine, and how. */
	bool has_first;
	enum mind_verb first;
	unsigned who;
	enum mind_verb verb;
	const char *what;
} steps[] = {
	{"hops_i_s", false, MIND_LOAD, A, MIND_LOAD, "nobody has it; to read"},
	{"hops_s_s", true, MIND_LOAD, B, MIND_LOAD,
	 "another machine has read it; to read"},
	{"hops_i_m", false, MIND_LOAD, A, MIND_STORE,
	 "nobody has it; to write"},
	{"hops_s_m", true, MIND_LOAD, B, MIND_STORE,
	 "another machine has read it; to write"},
	{"hops_m_s", true, MIND_STORE, B, MIND_LOAD,
	 "another machine has written it; to read"},
	{"hops_m_m", true, MIND_STORE, B, MIND_STORE,
	 "another machine has written it; to write"},
};

enum {
	STEPS = ARRAY_LEN(steps),
	/* Pages that are asked for before hits, and after them; and the one
	 * that is hit meanwhile. */
	BEFORE = STEPS,
	HIT,
	AFTER,
	MISSES = 9, /* from AFTER on */
};

static struct mind_order touch(enum mind_verb verb, unsigned page)
{
	return (struct mind_order){
		.verb = verb, .page = page * MIND_APART, .count = 1, .step = 1};
}

static int tell(struct bench *b, struct mind_program *p, struct mind_order o)
{
	const struct mind_order rest = {.verb = MIND_REST};
	int err = mind_program_do(b, p, &o, NULL);

	/* What follows an answer (FIN, acknowledgements) must not be under way
	 * when the next thing is counted. */
	return err ? err : mind_program_do(b, p, &rest, NULL);
}

static int do_steps(struct bench *b, struct mind_program *p)
{
	struct mind_order hits = {.verb = MIND_HITS,
				  .page = HIT * MIND_APART,
				  .count = 1,
				  .ms = HITS_MS};
	int err = 0;

	for (unsigned i = 0; i < STEPS && !err; i++) {
		if (steps[i].has_first)
			err = tell(b, &p[!steps[i].who],
				   touch(steps[i].first, i));
		if (!err)
			err = tell(b, &p[steps[i].who],
				   touch(steps[i].verb, i));
	}
	if (!err)
		err = tell(b, &p[A], touch(MIND_STORE, HIT));
	if (!err)
		err = tell(b, &p[A], touch(MIND_LOAD, BEFORE));
	if (!err)
		err = tell(b, &p[A], hits);
	for (unsigned i = 0; i < MISSES && !err; i++)
		err = tell(b, &p[A], touch(MIND_LOAD, AFTER + i));
	return err;
}

/* On a machine that is slow at that moment NICs repeat a packet: the median. */
static double miss(const struct mind_trace *t, uint64_t va)
{
	double v[MISSES];

	for (unsigned i = 0; i < MISSES; i++)
		v[i] = mind_trace_miss(t, va + i * MIND_APART * 4096ull);
	return stats_median(v, MISSES);
}

static void report(struct bench *b, const struct mind_trace *t, uint64_t va)
{
	uint64_t apart = MIND_APART * 4096ull;
	int n;

	for (unsigned i = 0; i < STEPS; i++) {
		unsigned hops =
			mind_trace_hops(t, va + i * apart, steps[i].has_first);

		if (!hops) {
			bench_void(b, steps[i].name, "not in the trace");
			continue;
		}
		(void)bench_row(b, "count", steps[i].name, hops, "frames",
				steps[i].what);
		bench_ratio_add(b, steps[i].name, hops);
	}
	n = mind_trace_between(t, va + BEFORE * apart, va + AFTER * apart);
	if (n < 0)
		bench_void(b, "frames_hit", "not in the trace");
	else
		bench_ratio_add(b, "frames_hit", n);
	bench_ratio_add(b, "frames_read_miss", miss(t, va + AFTER * apart));
}

/* The trace is whole when the switch has ended. */
static int read_trace(struct bench *b, struct mind_rack *r, uint64_t va,
		      uint64_t pass_va)
{
	struct mind_trace *t = NULL;
	int err;

	mind_rack_end_switch(r);
	err = mind_trace_read(r->trace, &t);
	if (err)
		return bench_fail(b, err, "the trace cannot be read");
	report(b, t, va);
	mind_pass_report(b, t, pass_va);
	mind_trace_free(t);
	return 0;
}

int mind_bench_count(struct bench *b)
{
	struct mind_program p[MIND_MACHINES] = {{0}};
	struct mind_rack r;
	uint64_t pass_va = 0;
	double va = 0;
	int err = mind_rack_start(b, &r, true);

	for (unsigned i = 0; i < MIND_MACHINES && !err; i++)
		err = mind_rack_serve(b, &r, i);
	for (unsigned i = 0; i < MIND_MACHINES && !err; i++)
		err = mind_program_start(b, i, NULL, &p[i], &va);
	if (!err)
		err = do_steps(b, p);
	for (unsigned i = 0; i < MIND_MACHINES; i++)
		mind_program_end(&p[i]);
	if (!err)
		err = mind_pass_run(b, &r, &pass_va);
	for (unsigned i = 0; i < MIND_MACHINES; i++)
		mind_rack_leave(&r, i);
	if (!err)
		err = read_trace(b, &r, (uint64_t)va, pass_va);
	mind_rack_stop(&r);
	return err;
}
