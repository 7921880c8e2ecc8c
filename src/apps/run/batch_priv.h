/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of pages on their way out, as it is posted to an agent. */
#ifndef AQ_RUN_BATCH_PRIV_H
#define AQ_RUN_BATCH_PRIV_H

#include "run_channel.h"
#include "run_limits.h"

struct pager;
struct space;

enum batch_kind {
	BATCH_FAR,    /* to a buffer, and from there to far memory */
	BATCH_PROBE,  /* the same with pages that were held */
	BATCH_SAMPLE, /* slow pages, to a buffer of sample.c */
	BATCH_DEMOTE, /* top pages to the slow node, mapped all the time */
};

/* A batch under way, as posted to the agent. */
struct leaving {
	enum batch_kind kind;
	uint32_t buffer;
	uint32_t count;
	uint32_t stretch_count;
	uint64_t guarded;	    /* bit i: page[i] is protected */
	uint64_t guarded_stretches; /* bit i: stretch[i] is */
	uint64_t page[RUN_BATCH_PAGES];
	struct run_stretch stretch[RUN_BATCH_PAGES];
};

/* batch.c */
/* The stretches of the pages that were picked. Between two pages that leave
 * there may be others in one stretch only if dropping it loses nothing. */
void run_batch_build(const struct space *s, struct leaving *l, bool can_move);
/* Whether a batch under way may drop the page. */
bool run_batch_covers(const struct space *s, uint64_t page);
/* The same, and *end is no further than where that changes. */
bool run_batch_span(const struct space *s, uint64_t page, uint64_t *end);
/* Pages in batches under way, without those that are not to be far. */
uint64_t run_batches_pages(const struct pager *p);

#endif
