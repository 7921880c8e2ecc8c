/* SPDX-License-Identifier: Apache-2.0 */
/* The cable to a switch process; see uplink.c. Belongs to the lock's holder. */
#ifndef AQ_UPLINK_H
#define AQ_UPLINK_H

#include "os_priv.h"

struct uplink {
	struct env_path path; /* what queue pairs have; outlives cables */
	struct cable *cable;  /* NULL: none; else counted as one user */
	uint64_t retry_ns;    /* not before */
};

/* h->cfg.interface names the switch, which must be there. */
int uplink_open(struct os_host *h, struct uplink **out) MUST_CHECK;
void uplink_close(struct uplink *u);

#endif
