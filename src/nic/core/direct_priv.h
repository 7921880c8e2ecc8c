/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are executed on mapped memory. */
#ifndef AQ_NIC_DIRECT_PRIV_H
#define AQ_NIC_DIRECT_PRIV_H

#include "qp_priv.h"

/* Executes the request on mapped memory. 1: done; 2: by the system, which took
 * as long as its packets would; 0: not possible, send it; -EINPROGRESS: it may
 * be done or not; another -errno: it failed like a remote access. */
int direct_execute(struct nic_qp *qp, const struct send_op *op);
/*
 * Whether a request should wait until all before it are answered, to be
 * executed by the system then: it and the one before it are large, so what
 * follows will mostly be, too, and need not wait any more.
 */
bool direct_is_worth_waiting(struct nic_qp *qp, const struct send_op *op);
/* Fetches into the cache what the next READs in the queue will copy. */
void direct_foretell(struct nic_qp *qp);

enum {
	DIRECT_FAR_SURE = 64,	   /* times without a mapping, then ... */
	DIRECT_FAR_ASK_EVERY = 16, /* ... one in so many asks */
};

/*
 * Asking for a mapping of memory that is not granted costs a cache miss or two,
 * so after the env had none for a while it is asked only now and then. One
 * request may lead here twice, hence the two chances in a row.
 */
static inline bool direct_is_far(struct nic_qp *qp, uint32_t rkey)
{
	return qp->req.far_key == rkey &&
	       qp->req.far_misses >= DIRECT_FAR_SURE &&
	       ++qp->req.far_misses % DIRECT_FAR_ASK_EVERY >= 2;
}

#endif
