/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues. */
#ifndef AQ_NIC_CQ_PRIV_H
#define AQ_NIC_CQ_PRIV_H

#include <stdatomic.h>

#include "base/plant.h"
#include "nic_priv.h"

enum cq_arm {
	CQ_ARM_NONE,
	CQ_ARM_SOLICITED,
	CQ_ARM_ANY,
};

struct nic_cq {
	struct nic *nic;
	void *owner;
	struct nic_cqe *ring;
	uint32_t mask;
	uint32_t size; /* what the user may count on */
	uint32_t users;
	enum cq_arm arm;
	bool timestamps;
	bool overflowed;
	bool counting;	 /* successes are counted and not shown */
	uint32_t number; /* what WAIT calls it */
	uint32_t counted;
	uint32_t external_count; /* in `counted`, not caused by a chain */
	uint64_t fuel;		 /* of the chain that caused the last one */
	struct list waits;	 /* chains that wait for it */
	CACHE_ALIGNED atomic_uint produced; /* written by the NIC */
	CACHE_ALIGNED atomic_uint consumed; /* written by the poller */
};

struct nic_cqe *cq_overflow(struct nic_cq *cq);
void cq_end_slow(struct nic_cq *cq, struct nic_cqe *cqe);
/* cq_begin and cq_end at once; false when the queue overflowed. */
bool cq_push(struct nic_cq *cq, const struct nic_cqe *cqe);
void cq_purge(struct nic_cq *cq, const void *qp_owner);

/* Appends a completion: room for it, or NULL when the queue overflowed; to be
 * filled in completely and shown with cq_end. */
static inline struct nic_cqe *cq_begin(struct nic_cq *cq)
{
	uint32_t produced =
		atomic_load_explicit(&cq->produced, memory_order_relaxed);
	/* CQ-2, with nic_cq_pop: no entry is overwritten while it is read. */
	uint32_t consumed =
		atomic_load_explicit(&cq->consumed, memory_order_acquire);

	if (UNLIKELY(produced - consumed > cq->mask))
		return cq_overflow(cq);
	return &cq->ring[produced & cq->mask];
}

static inline void cq_show(struct nic_cq *cq, uint32_t produced)
{
	count(cq->nic, NIC_C_completions);
	/* CQ-1, with nic_cq_peek: the poller never sees half an entry. */
	atomic_store_explicit(&cq->produced, produced + 1,
			      memory_order_release);
}

static inline void cq_end(struct nic_cq *cq, struct nic_cqe *cqe)
{
	if (UNLIKELY(cq->timestamps || PLANTED_ANY() || cq->arm != CQ_ARM_NONE))
		cq_end_slow(cq, cqe);
	else
		cq_show(cq, atomic_load_explicit(&cq->produced,
						 memory_order_relaxed));
}

#endif
