/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion queues. One producer (the NIC, under the host's lock) and one
 * consumer (whoever polls) share a ring through two indices:
 *
 *   CQ-1  the producer stores `produced` with release after writing an entry,
 *	   the consumer loads it with acquire before reading one
 *   CQ-2  the consumer stores `consumed` with release after reading one, the
 *	   producer loads it with acquire before overwriting one
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cq_priv.h"

int nic_cq_create(struct nic *nic, uint32_t cqe_count, void *owner,
		  struct nic_cq **out)
{
	struct nic_cq *cq;

	if (cqe_count == 0 || cqe_count > NIC_CQE_MAX)
		return -EINVAL;
	if (nic->cq_count >= NIC_CQ_MAX)
		return -ENOMEM;
	cq = aligned_alloc(CACHE_LINE,
			   align_up(sizeof(struct nic_cq), CACHE_LINE));
	if (!cq)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->mask = u32_pow2_ceil(cqe_count) - 1;
	cq->size = cqe_count;
	cq->ring = calloc(cq->mask + 1u, sizeof(*cq->ring));
	if (!cq->ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->nic = nic;
	cq->owner = owner;
	list_init(&cq->waits);
	nic->cq_count++;
	*out = cq;
	return 0;
}

int nic_cq_destroy(struct nic_cq *cq)
{
	if (cq->users || !list_is_empty(&cq->waits))
		return -EBUSY;
	cq_number_release(cq);
	cq->nic->cq_count--;
	free(cq->ring);
	free(cq);
	return 0;
}

uint32_t nic_cq_size(const struct nic_cq *cq)
{
	return cq->size;
}

void nic_cq_enable_timestamps(struct nic_cq *cq)
{
	cq->timestamps = true;
}

/* The caller keeps the poller away. */
int nic_cq_resize(struct nic_cq *cq, uint32_t cqe_count)
{
	uint32_t produced =
		atomic_load_explicit(&cq->produced, memory_order_relaxed);
	uint32_t consumed =
		atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	uint32_t mask, i;
	struct nic_cqe *ring;

	if (cqe_count == 0 || cqe_count > NIC_CQE_MAX ||
	    cqe_count < produced - consumed)
		return -EINVAL;
	mask = u32_pow2_ceil(cqe_count) - 1;
	ring = calloc(mask + 1u, sizeof(*ring));
	if (!ring)
		return -ENOMEM;
	for (i = consumed; i != produced; i++)
		ring[i & mask] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = mask;
	cq->size = cqe_count;
	return 0;
}

void nic_cq_arm(struct nic_cq *cq, bool solicited_only)
{
	/* Asking for any completion includes the solicited ones. */
	if (!solicited_only)
		cq->arm = CQ_ARM_ANY;
	else if (cq->arm == CQ_ARM_NONE)
		cq->arm = CQ_ARM_SOLICITED;
}

static void notify(struct nic_cq *cq, const struct nic_cqe *cqe)
{
	if (cq->arm == CQ_ARM_SOLICITED && !cqe->solicited &&
	    cqe->status == IBV_WC_SUCCESS)
		return;
	cq->arm = CQ_ARM_NONE;
	if (cq->nic->up)
		cq->nic->up->cq_event(cq, cq->owner);
}

/* Test-only damage: this completion takes the place of the one before. */
static void swap_with_previous(struct nic_cq *cq, uint32_t produced)
{
	struct nic_cqe *a = &cq->ring[(produced - 1) & cq->mask];
	struct nic_cqe *b = &cq->ring[produced & cq->mask];
	struct nic_cqe t = *a;

	if (produced % 16 ||
	    produced ==
		    atomic_load_explicit(&cq->consumed, memory_order_relaxed) ||
	    a->qp_num != b->qp_num || a->is_recv != b->is_recv)
		return;
	*a = *b;
	*b = t;
}

COLD struct nic_cqe *cq_overflow(struct nic_cq *cq)
{
	struct nic *nic = cq->nic;

	if (cq->counting)
		return NULL;
	count(nic, NIC_C_cq_overflows);
	if (!cq->overflowed && nic->up)
		nic->up->async_event(cq->owner, IBV_EVENT_CQ_ERR);
	cq->overflowed = true;
	return NULL;
}

/* What is rare: timestamps, and test-only damage. */
void cq_end_slow(struct nic_cq *cq, struct nic_cqe *cqe)
{
	struct nic *nic = cq->nic;
	uint32_t produced =
		atomic_load_explicit(&cq->produced, memory_order_relaxed);

	if (cq->timestamps)
		cqe->timestamp_ns = env_now_ns(nic->env);
	if (PLANTED(swap_completions))
		swap_with_previous(cq, produced);
	cq_show(cq, produced);
	if (cq->arm != CQ_ARM_NONE)
		notify(cq, cqe);
	if (PLANTED(double_completion) && produced % 32 == 31) {
		cq->ring[(produced + 1) & cq->mask] = *cqe;
		/* CQ-1, as in cq_show. */
		atomic_store_explicit(&cq->produced, produced + 2,
				      memory_order_release);
	}
}

bool cq_push(struct nic_cq *cq, const struct nic_cqe *cqe)
{
	struct nic_cqe *room = cq_begin(cq);

	if (UNLIKELY(!room))
		return false;
	*room = *cqe;
	cq_end(cq, room);
	return true;
}

const struct nic_cqe *nic_cq_peek(struct nic_cq *cq)
{
	uint32_t i = atomic_load_explicit(&cq->consumed, memory_order_relaxed);

	for (;;) {
		const struct nic_cqe *cqe = &cq->ring[i & cq->mask];

		/* CQ-1: an entry is read when all of it is there. */
		if (i ==
		    atomic_load_explicit(&cq->produced, memory_order_acquire))
			return NULL;
		if (LIKELY(cqe->qp_owner))
			return cqe;
		/* CQ-2, as in nic_cq_pop. */
		atomic_store_explicit(&cq->consumed, ++i, memory_order_release);
	}
}

bool nic_cq_is_empty(const struct nic_cq *cq)
{
	return atomic_load_explicit(&cq->consumed, memory_order_relaxed) ==
	       atomic_load_explicit(&cq->produced, memory_order_relaxed);
}

void nic_cq_pop(struct nic_cq *cq)
{
	uint32_t i = atomic_load_explicit(&cq->consumed, memory_order_relaxed);

	/* CQ-2: the entry was copied before its place is free. */
	atomic_store_explicit(&cq->consumed, i + 1, memory_order_release);
}

/* The caller keeps the poller away: entries it may be reading change. */
void cq_purge(struct nic_cq *cq, const void *qp_owner)
{
	uint32_t produced =
		atomic_load_explicit(&cq->produced, memory_order_relaxed);
	uint32_t i;

	for (i = atomic_load_explicit(&cq->consumed, memory_order_relaxed);
	     i != produced; i++)
		if (cq->ring[i & cq->mask].qp_owner == qp_owner)
			cq->ring[i & cq->mask].qp_owner = NULL;
}
