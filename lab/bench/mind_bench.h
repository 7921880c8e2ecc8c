/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `bench mind`, and the processes that they need: a switch with
 * the program coherence, a memory node that leads, cache servers of two
 * machines, and programs that do on them what they are told.
 */
#ifndef AQ_BENCH_MIND_BENCH_H
#define AQ_BENCH_MIND_BENCH_H

#include <sys/types.h>

#include "bench.h"

#define MIND_SWITCH  "s1"
#define MIND_SEGMENT "words"
/* Of machines without programs: what they have written dies with them. */
#define MIND_SEGMENT_BARE "bare"

enum {
	MIND_MACHINES = 2,
	MIND_PATH_BYTES = 96,
	/* A region of the directory, until it is split: pages that have nothing
	 * to do with each other are so far apart. */
	MIND_APART = 4,
	MIND_SEGMENT_PAGES = 16384,
};

struct mind_rack {
	char dir[64];
	char name[32];
	char trace[MIND_PATH_BYTES];
	pid_t tor, memory, server[MIND_MACHINES];
};

/* ---- mind_rack.c ---------------------------------------------------------
 * Each 0, or -errno after bench_fail. */

/* Switch, memory node and a segment; the environment names this rack then. */
int mind_rack_start(struct bench *b, struct mind_rack *r,
		    bool is_traced) MUST_CHECK;
int mind_rack_serve(struct bench *b, struct mind_rack *r,
		    unsigned machine) MUST_CHECK;
/* Processes that are started from now on belong to that machine. */
void mind_rack_be(unsigned machine);
/* A server that gives everything back, and ends. */
void mind_rack_leave(struct mind_rack *r, unsigned machine);
/* The switch ends, and so its trace is whole. */
void mind_rack_end_switch(struct mind_rack *r);
void mind_rack_stop(struct mind_rack *r);

/* ---- mind_program.c: a program on one of the machines -------------------- */

enum mind_verb {
	MIND_OPEN,  /* result: where the segment is */
	MIND_LOAD,  /* the first word of pages; result: median ns of one */
	MIND_STORE, /* the same */
	MIND_HITS,  /* loads, stores and atomics; result: per second */
	MIND_PASS,  /* a word, with the other one; result: passes/s */
	MIND_ADD,   /* atomic additions to one word; result: how many */
	MIND_ZERO,  /* a page */
	MIND_REST,  /* so that everything under way has arrived */
	MIND_LEAVE,
};

struct mind_order {
	enum mind_verb verb;
	bool is_plain; /* on plain shared memory instead of the segment */
	uint8_t side;  /* PASS: who begins */
	uint32_t page, count, step;
	uint32_t ms; /* of what takes a time */
};

struct mind_program {
	pid_t pid;
	int fd;
};

/* `plain`: memory of MIND_PLAIN_PAGES that is shared with this process. */
enum {
	MIND_PLAIN_PAGES = 64,
};
/* *va: where the segment is; NULL: nobody asks. */
int mind_program_start(struct bench *b, unsigned machine, void *plain,
		       struct mind_program *out, double *va) MUST_CHECK;
void mind_program_end(struct mind_program *p);
/* Starts it; the result is waited for by the second. */
int mind_program_order(struct bench *b, struct mind_program *p,
		       const struct mind_order *o) MUST_CHECK;
int mind_program_result(struct bench *b, struct mind_program *p,
			double *out) MUST_CHECK;
/* Both. */
int mind_program_do(struct bench *b, struct mind_program *p,
		    const struct mind_order *o, double *out) MUST_CHECK;

/* ---- mind_trace.c: what passed the switch ---------------------------------
 */

struct mind_trace;

int mind_trace_read(const char *path, struct mind_trace **out) MUST_CHECK;
void mind_trace_free(struct mind_trace *t);
/*
 * How many frames follow from each other from the first get of the page at this
 * address by the machine that asks as number `nth` (from 0) to its answer. A
 * frame that comes in follows from all that went to its port since; one that
 * goes out from all that came in before it: so it is never too small. 0: there
 * is no such get, or no answer.
 */
unsigned mind_trace_hops(const struct mind_trace *t, uint64_t va, unsigned nth);
/* All frames from the first get of one page to its answer, both counted; or
 * those between the answer for one page and the get of another. */
int mind_trace_miss(const struct mind_trace *t, uint64_t va) MUST_CHECK;
int mind_trace_between(const struct mind_trace *t, uint64_t from_va,
		       uint64_t to_va) MUST_CHECK;

/* How many gets of the page at `va` there are from the first get of one page to
 * the first one of another; repeated packets count once. */
int mind_trace_gets(const struct mind_trace *t, uint64_t va, uint64_t from_va,
		    uint64_t to_va) MUST_CHECK;

/* ---- mind_pass.c: a turn that sleeping machines give each other ------------
 */

/* What this program is under `aquifer run --shared`: argv has the file for the
 * address of its memory, and the side. An exit status. */
int mind_pass_from(char **argv);
/* Both of them, on machines that have their servers; *va: their memory. */
int mind_pass_run(struct bench *b, const struct mind_rack *r,
		  uint64_t *va) MUST_CHECK;
void mind_pass_report(struct bench *b, const struct mind_trace *t, uint64_t va);

/* ---- parts; each 0, or -errno after bench_fail ----------------------------
 */

int mind_bench_count(struct bench *b) MUST_CHECK;
/* Gets of a machine without programs, beside READs through the same switch. */
int mind_bench_gets(struct bench *b) MUST_CHECK;
/* Programs: hits, a word of one machine, faults, fairness. */
int mind_bench_programs(struct bench *b, struct mind_rack *r) MUST_CHECK;

#endif
