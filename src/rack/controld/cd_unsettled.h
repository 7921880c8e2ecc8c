/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that wait for the commit of what they tell of, without a thread each:
 * however many callers wait, the next transaction takes all that they changed.
 * The caller has the lock of the core. */
#ifndef AQ_CD_UNSETTLED_H
#define AQ_CD_UNSETTLED_H

#include "controld.h"

struct ctl_server;
struct cd_unsettled;

/* In the order in which they were staged. Zero-initialised. */
struct cd_unsettleds {
	struct cd_unsettled *first, *last;
};

/* Takes the reply over, which leaves when all that is staged now is settled.
 * False: it cannot wait (no connection, no memory), and nothing was done. */
bool cd_unsettled_hold(struct cd_unsettleds *u, const struct cd_core *core,
		       const struct ctl_request *request,
		       const struct cd_held *held, struct ctl_reply *reply);
/* Takes out those that are settled. `is_stalled`: also the others, whose end is
 * not known, because the ledger does not answer. */
void cd_unsettled_take(struct cd_unsettleds *u, struct cd_core *core,
		       bool is_stalled, struct cd_unsettleds *out);
/* Sends those that were taken out, and writes the audit log's lines for them.
 * This needs no lock. */
void cd_unsettled_send(struct cd_unsettleds *u, struct cd_core *core,
		       struct ctl_server *http);
void cd_unsettled_free(struct cd_unsettleds *u);

#endif
