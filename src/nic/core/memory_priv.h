/* SPDX-License-Identifier: Apache-2.0 */
/* Protection domains, regions, windows and device memory. */
#ifndef AQ_NIC_MEMORY_PRIV_H
#define AQ_NIC_MEMORY_PRIV_H

#include <infiniband/verbs.h>

#include "base/list.h"
#include "key_priv.h"

struct wqe_bind;

struct nic_pd {
	struct nic *nic;
	uint32_t users;
	struct nic_pd *turns; /* whose turns its QPs have: mostly its own */
	struct list ready; /* QPs with something to send that have its turns */
	struct list turn;  /* on nic->ready while there are some */
	uint32_t debt;	   /* what it did beyond its last turn */
	uint32_t used;	   /* what it did lately, in sixteenths ... */
	uint32_t used_flush;   /* ... and when that was */
	struct list walks;     /* of its QPs that wait for the walker */
	struct list walk_turn; /* on nic->walk_waits while there are some */
};

struct nic_mr {
	struct nic_key key;
	uint32_t windows; /* bound to it */
	struct nic_dm *dm;
};

struct nic_mw {
	struct nic_key key;
	enum ibv_mw_type type;
	struct nic_mr *mr; /* bound to; NULL: not bound */
};

struct nic_dm {
	struct nic *nic;
	uint64_t length;
	uint32_t users;
	uint8_t *bytes;
};

int mw_bind(struct nic_qp *qp, const struct wqe_bind *bind) MUST_CHECK;
/* Ends a window of type 2 that is bound to this queue pair. */
int key_invalidate(struct nic_qp *qp, uint32_t key) MUST_CHECK;
void mw_end_all(struct nic_qp *qp); /* all windows of type 2 bound to it */

#endif
