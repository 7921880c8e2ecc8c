/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs see: hits beside plain shared memory, a word between two
 * programs of one machine, faults beside those of `aquifer run`, and who gets
 * how much of a word that two machines want. In turns, round by round; a ratio
 * is the median over the rounds.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mind_bench.h"
#include "run_bench.h"
#include "stats.h"

enum {
	A,
	B,
	A2, /* a second program of machine A */
	PROGRAMS,
	/* Pages of the segment. */
	AT_HITS = 0,
	AT_PASS = MIND_PLAIN_PAGES,
	AT_ADD = AT_PASS + MIND_APART,
	AT_FAULTS = AT_ADD + MIND_APART,
	FAULTS = 96, /* of a round and kind */
	/* Of aquifer run: what is touched, what may be here. */
	RUN_BYTES = 12 << 20,
	RUN_LOCAL = 6 << 20,
	RUN_FAULTS = 256,
	ADD_MS = 2000,
	ADD_MS_QUICK = 200,
};

struct bed {
	struct bench *b;
	struct mind_rack *rack;
	struct mind_program program[PROGRAMS];
	void *plain;
	uint32_t at; /* pages before it were used for faults */
	double ratio[CONDUCT_ROUNDS_MAX], ours[CONDUCT_ROUNDS_MAX];
	double peer[CONDUCT_ROUNDS_MAX];
};

static unsigned machine_of(unsigned program)
{
	return program == B;
}

static int tell(struct bed *bed, unsigned who, const struct mind_order *o,
		double *out)
{
	return mind_program_do(bed->b, &bed->program[who], o, out);
}

/* Two at the same time; `peer` gets what the second one says. */
static int tell_both(struct bed *bed, unsigned one, unsigned other,
		     const struct mind_order *o, double *ours, double *peer)
{
	struct mind_order second = *o;
	int err;

	second.side = 1;
	err = mind_program_order(bed->b, &bed->program[one], o);
	if (!err)
		err = mind_program_order(bed->b, &bed->program[other], &second);
	if (!err)
		err = mind_program_result(bed->b, &bed->program[one], ours);
	return err ? err
		   : mind_program_result(bed->b, &bed->program[other], peer);
}

/* ---- one round of each
 * -------------------------------------------------------- */

static int hit(struct bed *bed, double *ours, double *peer)
{
	struct mind_order o = {.verb = MIND_STORE,
			       .page = AT_HITS,
			       .count = MIND_PLAIN_PAGES,
			       .step = 1,
			       .ms = bed->b->window_ms};
	int err = tell(bed, A, &o, ours); /* from here on they are cached */

	o.verb = MIND_HITS;
	o.count--; /* it looks a little beyond */
	if (!err)
		err = tell(bed, A, &o, ours);
	o.is_plain = true;
	return err ? err : tell(bed, A, &o, peer);
}

static void clear(_Atomic uint64_t *words)
{
	for (unsigned i = 0; i < 4096 / 8; i++)
		atomic_store_explicit(&words[i], 0, memory_order_relaxed);
}

static int same_host(struct bed *bed, double *ours, double *peer)
{
	struct mind_order zero = {.verb = MIND_ZERO, .page = AT_PASS};
	struct mind_order o = {
		.verb = MIND_PASS, .page = AT_PASS, .ms = bed->b->window_ms};
	double ignored;
	int err = tell(bed, A, &zero, &ignored);

	if (!err)
		err = tell_both(bed, A, A2, &o, ours, &ignored);
	o.page = 0;
	o.is_plain = true;
	clear(bed->plain);
	return err ? err : tell_both(bed, A, A2, &o, peer, &ignored);
}

/* A far fault of `aquifer run` through the same switch, ns. */
static int far_fault(struct bed *bed, uint64_t seed, double *out)
{
	struct run_work w = {.kind = RUN_WORK_FAULT,
			     .bytes = RUN_BYTES,
			     .count = RUN_FAULTS,
			     .seed = seed};
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	uint64_t ns = 0;
	int err = run_work_spawn_counted(&w, RUN_PLACE_CABLE, RUN_LOCAL, null,
					 &ns);

	(void)close(null);
	*out = (double)ns;
	return err ? bench_fail(bed->b, err, "aquifer run does not run") : 0;
}

/* The next pages that nobody has touched since they were filled. */
static struct mind_order fresh(struct bed *bed, enum mind_verb verb)
{
	struct mind_order o = {.verb = verb,
			       .page = bed->at,
			       .count = FAULTS,
			       .step = MIND_APART};

	bed->at += FAULTS * MIND_APART;
	return o;
}

static int fault(struct bed *bed, double *ours, double *peer)
{
	struct mind_order o = fresh(bed, MIND_LOAD);
	int err = tell(bed, A, &o, ours);

	return err ? err : far_fault(bed, bed->at, peer);
}

static int write_fault(struct bed *bed, double *ours, double *peer)
{
	struct mind_order o = fresh(bed, MIND_LOAD);
	double ignored;
	int err = tell(bed, B, &o, &ignored);

	o.verb = MIND_STORE;
	if (!err)
		err = tell(bed, A, &o, ours);
	return err ? err : far_fault(bed, bed->at, peer);
}

static int fair(struct bed *bed, double *ours, double *peer)
{
	struct mind_order o = {.verb = MIND_ADD,
			       .page = AT_ADD,
			       .ms = bed->b->quick ? ADD_MS_QUICK : ADD_MS};
	double a, b;
	int err = tell_both(bed, A, B, &o, &a, &b);

	*ours = a < b ? a : b;
	*peer = a < b ? b : a;
	return err;
}

static const struct {
	const char *group, *ratio, *ours, *peer, *unit;
	int (*round)(struct bed *bed, double *ours, double *peer);
	bool is_seldom; /* each round takes long */
} parts[] = {
	{"hit", "coh_hit_vs_shm", "coh_hits", "shm_hits", "accesses/s", hit,
	 false},
	{"same_host", "coh_same_host_vs_shm", "coh_passes", "shm_passes",
	 "passes/s", same_host, false},
	{"fault", "coh_fault_vs_run_fault", "coh_fault", "run_fault", "ns",
	 fault, false},
	{"write_fault", "coh_write_fault_vs_run_fault", "coh_write_fault",
	 "run_fault", "ns", write_fault, false},
	{"fair", "coh_fair", "coh_fewer", "coh_more", "additions", fair, true},
};

/* ---- all rounds
 * ---------------------------------------------------------------- */

static int run_part(struct bed *bed, unsigned i)
{
	struct bench *b = bed->b;
	unsigned rounds = parts[i].is_seldom ? b->rounds / 3 + 1 : b->rounds;
	int err = 0;

	bench_progress(b, "%s", parts[i].group);
	for (unsigned k = 0; k < rounds && !err; k++) {
		err = parts[i].round(bed, &bed->ours[k], &bed->peer[k]);
		bed->ratio[k] = bed->ours[k] / bed->peer[k];
	}
	if (err)
		return err;
	(void)bench_row(b, parts[i].group, parts[i].ours,
			stats_median(bed->ours, rounds), parts[i].unit, "");
	(void)bench_row(b, parts[i].group, parts[i].peer,
			stats_median(bed->peer, rounds), parts[i].unit, "");
	bench_ratio_add(b, parts[i].ratio, stats_median(bed->ratio, rounds));
	return 0;
}

/* All pages have bytes, at the memory node and nowhere else. */
static int fill(struct bed *bed)
{
	struct mind_order o = {
		.verb = MIND_STORE, .count = MIND_SEGMENT_PAGES, .step = 1};
	int err = mind_rack_serve(bed->b, bed->rack, B);

	if (!err)
		err = mind_program_start(bed->b, B, NULL, &bed->program[B],
					 NULL);
	for (; o.page < MIND_SEGMENT_PAGES && !err; o.page += 4096)
		err = tell(bed, B, &o, NULL);
	mind_program_end(&bed->program[B]);
	mind_rack_leave(bed->rack, B);
	return err;
}

static int run_parts(struct bed *bed)
{
	int err = fill(bed);

	for (unsigned i = 0; i < MIND_MACHINES && !err; i++)
		err = mind_rack_serve(bed->b, bed->rack, i);
	for (unsigned i = 0; i < PROGRAMS && !err; i++)
		err = mind_program_start(bed->b, machine_of(i), bed->plain,
					 &bed->program[i], NULL);
	for (unsigned i = 0; i < ARRAY_LEN(parts) && !err; i++)
		if (bench_wants(bed->b, parts[i].group))
			err = run_part(bed, i);
	for (unsigned i = 0; i < PROGRAMS; i++)
		mind_program_end(&bed->program[i]);
	return err;
}

static bool is_wanted(const struct bench *b)
{
	for (unsigned i = 0; i < ARRAY_LEN(parts); i++)
		if (bench_wants(b, parts[i].group))
			return true;
	return false;
}

int mind_bench_programs(struct bench *b, struct mind_rack *r)
{
	struct bed *bed;
	int err;

	if (!is_wanted(b))
		return 0;
	bed = calloc(1, sizeof(*bed));
	if (!bed)
		return bench_fail(b, -ENOMEM, "no memory");
	bed->b = b;
	bed->rack = r;
	bed->at = AT_FAULTS;
	bed->plain =
		mmap(NULL, MIND_PLAIN_PAGES * 4096ull, PROT_READ | PROT_WRITE,
		     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	err = bed->plain == MAP_FAILED ? bench_fail(b, -errno, "no memory")
				       : run_parts(bed);
	if (bed->plain != MAP_FAILED)
		(void)munmap(bed->plain, MIND_PLAIN_PAGES * 4096ull);
	free(bed);
	return err;
}
