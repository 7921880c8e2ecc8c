/* SPDX-License-Identifier: Apache-2.0 */
/* What far memory does not take. */
#ifndef AQ_RUN_ROOM_PRIV_H
#define AQ_RUN_ROOM_PRIV_H

#include "base/base.h"

struct pager;
struct space;
struct wb_buffer;

/* room.c: what far memory does not take. */
/* At the beginning: a line if there is little room. */
void run_room_say(struct pager *p);
/* How many pages that need a new place may leave now. */
uint64_t run_room_budget(struct pager *p);
/* Results of stores: how many got a new place, and how many failed. */
void run_room_result(struct pager *p, uint64_t placed, uint64_t refused,
		     int err);
/* Tells the programs whether they may have more. */
void run_room_tell(struct pager *p);
/* Call it from time to time. */
void run_room_settle(struct pager *p);
void run_room_put_slot(struct pager *p, uint32_t slot);
/* Pages of the buffer that were not stored go back; false: some cannot yet. */
bool run_room_return(struct pager *p, struct wb_buffer *t);
/* A forked child's copy of a page that is in its parent's buffer only. */
void run_room_copy(struct pager *p, struct space *child, uint64_t page,
		   uint32_t buffer_page);
bool run_room_is_spent(const struct pager *p);
/* Logs that there is no room anywhere for a page that was never touched. */
void run_room_complain(struct pager *p, const struct space *s);

#endif
