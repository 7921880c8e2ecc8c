/* SPDX-License-Identifier: Apache-2.0 */
/* Faults, and what they bring along. */
#ifndef AQ_RUN_FAULT_PRIV_H
#define AQ_RUN_FAULT_PRIV_H

#include "base/base.h"
#include "run_limits.h"

struct pager;
struct space;

/* How a fault ends. */
enum fault_end {
	FAULT_MAPPED, /* the page is there, and its thread goes on */
	FAULT_WAITS,  /* it cannot be served yet */
	FAULT_OVER,   /* nothing to map, or the process is gone */
};

struct fault {
	struct space *space;
	uint64_t page;
	uint32_t tid;
	bool is_wp;
};

/* fault.c */
void run_fault_serve(struct pager *p, const struct fault *f);
void run_fault_retry(struct pager *p);
void run_fault_later(struct pager *p, const struct fault *f);
/* Brings a page that has left, if it has. */
void run_fault_bring(struct pager *p, struct space *s, uint64_t page);
/* Whether an agent waits for it; it is then served at once. */
bool run_fault_is_agents(const struct fault *f);
/* Interprets the result of an ioctl that maps a page which the table does not
 * know; `err` may also be a number of pages. */
enum fault_end run_fault_answered(const struct space *s, uint64_t page,
				  int err);
/* call.c */
/* A touch of a bell page, which carries a call. */
enum fault_end run_call_answer(struct pager *p, const struct fault *f);

/* prefetch.c */
/* The pages that a fault brings; the wanted page is the first. */
struct fetch {
	uint64_t far[RUN_PREFETCH_MAX + 1];
	unsigned far_count;
	uint64_t staged[RUN_PREFETCH_MAX + 1];
	unsigned staged_count;
};

void run_prefetch_choose(const struct pager *p, const struct fault *f,
			 struct fetch *c);

#endif
