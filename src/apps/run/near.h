/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the run's processes that is not far: how much there was, of which
 * process, and why. It counts private pages (anonymous, as in smaps) in
 * mappings that no userfaultfd watches. So it never counts a far page, not even
 * one of a child that has its parent's memory until it calls exec, and no page
 * before it is used.
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
/* Whether it is worth a line: much, and a large part of what could be far. */
bool near_matters(uint64_t near_bytes, uint64_t far_bytes);
/* Makes a program's name fit for a line and for JSON. */
void near_clean(char *name);
/* "the memory is ...", after "because". */
const char *near_why(enum near_kind kind);

/* ---- near_look.c --------------------------------------------------------- */

struct pager;
/* Looks at the processes of the run, if it is time to. By the thread that maps
 * pages, with the lock: no far page comes meanwhile. */
void run_near_look(struct pager *p, uint64_t now_ns);

/* ---- strict.c ------------------------------------------------------------ */

/* With --strict: -EOPNOTSUPP, with words, for a program that the library
 * certainly cannot be loaded into. */
int run_strict_check(const struct run_options *options, const char *program,
		     char text[RUN_TEXT_MAX]) MUST_CHECK;
/* Says it when this process has not the rights that far memory takes. With
 * --strict: -EPERM, -EACCES or -ENOSYS, with words. */
int run_rights_check(const struct run_options *options,
		     char text[RUN_TEXT_MAX]) MUST_CHECK;
/* For a program that never attached and may have ended too soon to be looked
 * at: asks the kernel how much it had at most. */
void run_near_finish(const struct run_options *options,
		     struct run_shared *shared, const char *program,
		     uint64_t most_bytes);

#endif
