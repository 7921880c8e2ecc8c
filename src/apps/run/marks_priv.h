/* SPDX-License-Identifier: Apache-2.0 */
/* What programs have said of their pages. */
#ifndef AQ_RUN_MARKS_PRIV_H
#define AQ_RUN_MARKS_PRIV_H

#include "base/base.h"

struct pager;
struct space;

/* marks.c */
/* Pages that must not leave; -ENOMEM: more than may be kept. */
int run_marks_keep(struct pager *p, struct space *s, uint64_t page,
		   uint64_t pages) MUST_CHECK;
void run_marks_unkeep(struct pager *p, struct space *s, uint64_t page,
		      uint64_t pages);
/* All that is touched, and brings it; with `later`, also what will be. */
int run_marks_keep_all(struct pager *p, struct space *s, bool later) MUST_CHECK;
/* The program has locked pages past libc, so many as the mask has bits: says so
 * once. */
void run_marks_locked(struct pager *p, const struct space *s, uint64_t mask);
/* Clears the marks of a mapping that ends. */
void run_marks_clear(struct pager *p, struct space *s, uint64_t page,
		     uint64_t pages);

#endif
