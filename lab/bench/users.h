/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `bench paging` that are other people's programs, as users run
 * them: nothing is bound to a core, and everything counts from start to end. */
#ifndef AQ_BENCH_USERS_H
#define AQ_BENCH_USERS_H

#include "bench.h"

enum {
	USERS_PROGRAMS = 10,
	USERS_PATH_MAX = 128,
};

struct users_program {
	const char *name;
	const char *command; /* for sh, in the folder of the inputs */
};

extern const struct users_program users_programs[USERS_PROGRAMS];
/* Writes what the programs read. 0 or -errno. */
int users_write_inputs(const char *dir, bool quick) MUST_CHECK;

enum users_place {
	USERS_PLAIN,	 /* without Aquifer */
	USERS_ALL,	 /* with it, and all of the heap may stay here */
	USERS_HALF,	 /* half of the heap may */
	USERS_ZRAM_HALF, /* the kernel swaps instead */
	USERS_QUARTER,
	USERS_ZRAM_QUARTER,
	USERS_PLACES,
};

/* What a program needs; known after it has run plain and with all of it. */
struct users_size {
	uint64_t heap_bytes; /* what could be far */
	uint64_t rss_bytes;  /* all that it had here, plain */
};

struct users_run {
	uint64_t ns;
	uint64_t output; /* a hash of what it printed */
	uint64_t loads;	 /* faults that waited for far memory */
	struct users_size size;
};

/* One run. 0 or -errno; *why says what is missing. */
int users_spawn(const char *command, const char *dir, enum users_place place,
		const struct users_size *size, struct users_run *out,
		const char **why) MUST_CHECK;

/* Measures the programs and judges their ratios. 0, or -errno after
 * bench_fail. */
int users_rows(struct bench *b) MUST_CHECK;

#endif
