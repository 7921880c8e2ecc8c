/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the run's processes that is not far: how much there was, of which
 * process, and why. Counted are pages that a process has for itself (anonymous,
 * as of smaps), in mappings that no userfaultfd watches: so no far page is ever
 * among them, also of a child that has its parent's memory until it calls exec,
 * and none is counted before it is used.
 */
#ifndef AQ_RUN_NEAR_H
#define AQ_RUN_NEAR_H

#include "run.h"

enum near_kind {
	NEAR_UNATTACHED, /* all that the process has */
	NEAR_STACK,
	NEAR_BRK,  /* memory from brk(2), which is not malloc's here */
	NEAR_FILE, /* private copies of files' pages */
	NEAR_EXEC, /* may be executed */
	NEAR_HUGE, /* in a mapping larger than what is made far */
	NEAR_OTHER,
	NEAR_KINDS,
};

struct near_count {
	uint64_t bytes[NEAR_KINDS];
	enum near_kind kind; /* of the mapping that is being read */
	uint64_t pending;    /* bytes of that */
	bool has_far;	     /* some mapping is watched */
};

/* One line of smaps. */
void near_read_line(struct near_count *c, const char *line);
uint64_t near_total(const struct near_count *c);
enum near_kind near_main_kind(const struct near_count *c);
/* Whether it is worth a line: much, and a good part of what could be far. */
bool near_matters(uint64_t near_bytes, uint64_t far_bytes);
/* What a program is called becomes fit for a line and for JSON. */
void near_clean(char *name);
/* "the memory is ...", after "because". */
const char *near_why(enum near_kind kind);

/* ---- near_look.c --------------------------------------------------------- */

struct pager;
/* Looks at the processes of the run, if it is time to. By the thread that maps
 * pages, with the lock: no far page comes meanwhile. */
void run_near_look(struct pager *p, uint64_t now_ns);

/* ---- strict.c ------------------------------------------------------------ */

/* With --strict: -EOPNOTSUPP, with words, for a program of which is known
 * before that the library does not get into it. */
int run_strict_check(const struct run_options *options, const char *program,
		     char text[RUN_TEXT_MAX]) MUST_CHECK;
/* A program that never attached, and was perhaps too short to be looked at: the
 * kernel knows how much it had at most. */
void run_near_finish(const struct run_options *options,
		     struct run_shared *shared, const char *program,
		     uint64_t most_bytes);

#endif
