/* SPDX-License-Identifier: Apache-2.0 */
/* Receive queues, shared or not. */
#ifndef AQ_NIC_RECVQ_PRIV_H
#define AQ_NIC_RECVQ_PRIV_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "nic_limits.h"

struct nic;
struct nic_pd;
struct nic_qp;

struct recvq {
	uint8_t *wqes;	  /* count x stride bytes, struct wqe_data each */
	uint64_t *wr_ids; /* NULL: managed, they are counted */
	uint32_t count;	  /* power of two */
	uint32_t limit;	  /* what the user may post */
	uint32_t max_sge;
	uint32_t stride;
	uint32_t head; /* next to post */
	uint32_t tail; /* next to use */
};

/* A receive request that a message is being written to. */
struct recv_op {
	bool active;
	uint64_t wr_id;
	uint32_t sge_count;
	uint32_t imm_count; /* places for the immediate: managed queues */
	uint64_t capacity;  /* bytes */
	struct ibv_sge imm[NIC_RECV_IMMS];
	struct ibv_sge sge[NIC_SGE_MAX];
};

struct nic_srq {
	struct nic *nic;
	struct nic_pd *pd;
	void *owner;
	uint32_t number;
	uint32_t users;
	uint32_t low_mark; /* armed limit; 0: none */
	struct recvq q;
};

int recvq_init(struct nic *nic, struct recvq *q, uint32_t wr_count,
	       uint32_t max_sge) MUST_CHECK;
/* For a managed queue pair, whose entries are in the application's memory. */
void recvq_init_managed(struct recvq *q, uint32_t wr_count, uint32_t max_sge);
void recvq_release(struct nic *nic, struct recvq *q);
int recvq_post(struct recvq *q, const struct ibv_recv_wr *wr) MUST_CHECK;
/* Takes the oldest request of the QP's queue; false when there is none. A
 * request with room for less than `need` bytes stays in the queue, and *op is
 * then not active. */
bool recvq_take_if(struct nic_qp *qp, struct recv_op *op, uint32_t need);

static inline bool recvq_take(struct nic_qp *qp, struct recv_op *op)
{
	return recvq_take_if(qp, op, 0);
}

/* Writes a piece of a message into the receive in progress. */
int recv_scatter(struct nic_qp *qp, uint32_t offset, const uint8_t *src,
		 uint32_t len_bytes) MUST_CHECK;

#endif
