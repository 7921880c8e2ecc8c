/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel tells about a space. */
#ifndef AQ_RUN_EVENT_PRIV_H
#define AQ_RUN_EVENT_PRIV_H

#include <linux/userfaultfd.h>

#include "fault_priv.h"

/* What the kernel told about a space and is not done yet: in order, when no
 * batch is under way. */
struct events {
	struct uffd_msg *msg;
	unsigned count, room;
};

/* event.c */
/* Reads what userfaultfd has to say. All but faults is done or, in order, kept
 * until it can be; then come the faults, of which w[] gets those that there
 * are. Returns how many, or -1: nothing was said. The first thread only. */
int run_events_read(struct pager *p, struct space *s,
		    struct fault w[RUN_EVENTS]);
/* Reads only, and does nothing: for a caller to whom the kernel says EAGAIN. */
void run_events_note(struct pager *p, struct space *s);
/* The same where agents are at work, for who waits for them: they wait for
 * that.
 */
void run_events_meanwhile(struct pager *p);
/* Does what can be done by now; false: something is left. */
bool run_events_settle(struct pager *p, struct space *s);
/* The space ends: what was told is done whatever its batches may be at. */
void run_events_end(struct pager *p, struct space *s);
/* move.c */
/* The program moved bytes of its memory: what is not here moves along, or comes
 * where it goes outside of the range. */
void run_move(struct pager *p, struct space *s, uint64_t from, uint64_t to,
	      uint64_t bytes);

#endif
