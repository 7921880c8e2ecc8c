/* SPDX-License-Identifier: Apache-2.0 */
/* Beats that wait for orders, without a thread each. The caller has the lock of
 * the core. */
#ifndef AQ_CD_WAIT_H
#define AQ_CD_WAIT_H

#include "controld.h"

struct ctl_server;

enum {
	/* A node has one that waits, and some whose answers wait for the
	 * disk. */
	CD_WAITS_MAX = 4 * CD_NODES_MAX,
};

/* Zero-initialised. */
struct cd_waits {
	unsigned count;
	struct cd_wait {
		uint64_t id; /* of ctl_hold; 0: none is here */
		struct cd_held held;
		bool has_reply; /* which waits for the commit */
		uint64_t mark;
		struct ctl_reply reply;
	} wait[CD_WAITS_MAX];
};

/* False: it cannot wait, and has to be answered now. */
bool cd_waits_hold(struct cd_waits *w, const struct ctl_request *request,
		   const struct cd_held *held);
/* Its sender has hung up; whether it was one of these. */
bool cd_waits_gone(struct cd_waits *w, struct cd_core *core, uint64_t id);
/* Answers those for which there is something to say, and which may leave. */
void cd_waits_answer(struct cd_waits *w, struct cd_core *core,
		     struct ctl_server *http);

#endif
