/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells about a space. */
#ifndef AQ_RUN_EVENT_PRIV_H
#define AQ_RUN_EVENT_PRIV_H

#include <linux/userfaultfd.h>

#include "fault_priv.h"

/* Events of a space that are not handled yet: they are handled in order, when
 * no batch is under way. */
struct events {
	struct uffd_msg *msg;
	unsigned count, room;
};

/* event.c */
/* Reads the events of a userfaultfd. All but faults are handled or, in order,
 * kept until they can be; then w[] gets the faults. Returns how many, or -1:
 * there was no event. Only the first thread calls it. */
int run_events_read(struct pager *p, struct space *s,
		    struct fault w[RUN_EVENTS]);
/* Only reads and keeps events, for a caller that got EAGAIN from the kernel. */
void run_events_note(struct pager *p, struct space *s);
/* The same for all spaces with working agents, for a caller that waits for
 * agents, because agents wait until events are read. */
void run_events_meanwhile(struct pager *p);
/* Handles the events that can be handled by now; false: some are left. */
bool run_events_settle(struct pager *p, struct space *s);
/* The space ends: handles its events regardless of its batches. */
void run_events_end(struct pager *p, struct space *s);
/* move.c */
/* The program moved memory: entries of pages that are not here move along;
 * pages that leave the range are brought. */
void run_move(struct pager *p, struct space *s, uint64_t from, uint64_t to,
	      uint64_t bytes);

#endif
