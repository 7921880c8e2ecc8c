/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happens when far memory takes no more pages: pages without a place there
 * stay in local memory, above the limit if necessary. Pure: time and pages in,
 * decisions out.
 *
 * A page has a place once it was stored; it may leave and come back at any
 * time. While far memory is full, pages without one leave only as many as were
 * given back since, and once in a while a batch that finds out whether there is
 * room again.
 */
#ifndef AQ_RUN_OVERFLOW_H
#define AQ_RUN_OVERFLOW_H

#include "base/base.h"

#define OVERFLOW_NO_LIMIT UINT64_MAX

struct overflow {
	bool is_full;	    /* the last page that needed a place found none */
	bool is_trying;	    /* sent more than there is known room for */
	uint64_t room;	    /* places given back since */
	uint64_t credit;    /* pages that may be sent to find out */
	uint64_t pause_ns;  /* between tries; grows when they fail */
	uint64_t retry_ns;  /* the next one */
	uint64_t extra;	    /* pages above the limit that may be resident now */
	uint64_t extra_max; /* that the user allows */
	uint64_t step;	    /* pages by which `extra` grows */
};

void overflow_init(struct overflow *o, uint64_t limit_pages,
		   uint64_t extra_max);
/* Whether it is time for a try; then a batch may go. */
bool overflow_is_due(struct overflow *o, uint64_t now_ns);
/* How many pages without a place may be sent out now; the caller says with
 * overflow_sent how many of them were. */
uint64_t overflow_budget(const struct overflow *o);
void overflow_sent(struct overflow *o, uint64_t pages);
/* Of the pages sent, `placed` have got a place and `refused` have not. */
void overflow_result(struct overflow *o, uint64_t now_ns, uint64_t placed,
		     uint64_t refused);
/* A place is free again. */
void overflow_freed(struct overflow *o);

/*
 * No page can leave although too much is resident: raises the limit. By more
 * than one page, because every search for pages that can leave takes time.
 */
void overflow_raise(struct overflow *o, uint64_t limit_pages,
		    uint64_t resident);
/* Lowers the limit again where it is not needed; call it from time to time. */
void overflow_settle(struct overflow *o, uint64_t limit_pages,
		     uint64_t resident);
/* Whether one more page would be above all that is allowed. */
bool overflow_is_spent(const struct overflow *o, uint64_t limit_pages,
		       uint64_t resident);

#endif
