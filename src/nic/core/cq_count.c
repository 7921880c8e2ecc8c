/* SPDX-License-Identifier: Apache-2.0 */
/* Completion queues that count successes for chains, and their numbers. */
#include <stdlib.h>

#include "nic_priv.h"

enum {
	NUMBERS_FIRST = 16,
	INDEX_BITS = 16,
};
STATIC_ASSERT(NIC_CQ_MAX <= 1 << INDEX_BITS, "every CQ can have a number");

static int grow(struct cq_numbers *n)
{
	uint32_t size = n->size ? 2 * n->size : NUMBERS_FIRST;
	struct nic_cq **cqs = realloc(n->cqs, size * sizeof(*cqs));

	if (!cqs)
		return -ENOMEM;
	memset(cqs + n->size, 0, (size - n->size) * sizeof(*cqs));
	n->cqs = cqs;
	n->next = n->size;
	n->size = size;
	return 0;
}

static bool find_free(const struct cq_numbers *n, uint32_t *index)
{
	uint32_t i;

	for (i = 0; i < n->size; i++) {
		*index = (n->next + i) & (n->size - 1);
		if (!n->cqs[*index])
			return true;
	}
	return false;
}

int nic_cq_make_counting(struct nic_cq *cq)
{
	struct cq_numbers *n = &cq->nic->counting;
	uint32_t i;
	int err;

	if (cq->counting)
		return 0;
	if (cq->users ||
	    atomic_load_explicit(&cq->produced, memory_order_relaxed))
		return -EBUSY;
	if (!find_free(n, &i)) {
		err = grow(n);
		if (err)
			return err;
		i = n->next;
	}
	n->next = i + 1;
	n->cqs[i] = cq;
	/* A number comes back only after all others did, and is never 0. */
	n->generation = n->generation % UINT16_MAX + 1;
	cq->number = n->generation << INDEX_BITS | i;
	cq->counting = true;
	return 0;
}

uint32_t nic_cq_number(const struct nic_cq *cq)
{
	return cq->number;
}

uint32_t nic_cq_counted(const struct nic_cq *cq)
{
	return cq->counted;
}

struct nic_cq *cq_by_number(const struct nic *nic, uint32_t number)
{
	uint32_t i = number & ((1u << INDEX_BITS) - 1);
	struct nic_cq *cq =
		i < nic->counting.size ? nic->counting.cqs[i] : NULL;

	return cq && cq->number == number ? cq : NULL;
}

void cq_number_release(struct nic_cq *cq)
{
	if (cq->counting)
		cq->nic->counting.cqs[cq->number & ((1u << INDEX_BITS) - 1)] =
			NULL;
}

void cq_numbers_release(struct nic *nic)
{
	free(nic->counting.cqs);
}

/* The chain that caused a completion, or NULL: it came from outside. */
static const struct chain *cause(const struct nic_qp *qp, bool is_recv)
{
	const struct nic_qp *from = qp;

	if (is_recv) {
		from = qp_find(qp->nic, qp->dest_qpn);
		if (!from || from->dest_qpn != qp->qpn)
			return NULL;
	}
	return from->managed_sq ? from->chain : NULL;
}

void cq_counted(struct nic_cq *cq, const struct nic_qp *qp, bool is_recv)
{
	const struct chain *ch = cause(qp, is_recv);
	struct list *l;

	count(cq->nic, NIC_C_completions);
	cq->counted++;
	if (!ch)
		cq->external_count++;
	cq->fuel = ch ? ch->fuel : 0;
	for (l = cq->waits.next; l != &cq->waits; l = l->next) {
		struct chain *w = container_of(l, struct chain, waiting);

		if ((int32_t)(cq->counted - w->wait_index) >= 0)
			chain_wake(w->qp);
	}
}
