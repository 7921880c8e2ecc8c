/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Managed queue pairs: the NIC takes their requests from the application's
 * memory when it executes them; WAIT and ENABLE order them (chain*.c).
 */
#ifndef AQ_NIC_CHAIN_H
#define AQ_NIC_CHAIN_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "base/list.h"

struct nic;
struct nic_chain_attr;
struct nic_cq;
struct nic_qp;
struct send_op;
struct wire_pkt;
union chain_wqe;

enum {
	CHAIN_WQE_BLOCKS_MAX = 10, /* 32 pieces behind the longest head */
	CHAIN_CQ_MAX = 8,	   /* CQs that one queue may wait for */
};

/* Memory of the application that the NIC reads by itself. */
struct chain_memory {
	uint64_t addr;
	uint64_t bytes; /* 0: there is none */
	uint32_t lkey;
	uint32_t epoch; /* of the keys when `host` was found; 0: never */
	uint8_t *host;
	bool writable;
};

/* How many of a counting CQ's completions a queue got fuel for already. */
struct chain_paid {
	uint32_t number; /* of the CQ */
	uint32_t counted;
	uint32_t external_count;
};

/* What the clock said about a queue's next request; see chain_clock.c. */
enum chain_pause {
	CHAIN_FREE,   /* the clock was not asked */
	CHAIN_PAUSED, /* the request is not due yet */
	CHAIN_PAID,   /* the request is due */
};

struct chain {
	/* The send queue. */
	struct chain_memory sq;
	uint32_t blocks;  /* of the ring */
	uint32_t fetched; /* blocks executed, or at least begun */
	uint32_t place;	  /* of the next one, in the ring */
	uint32_t enabled;
	uint32_t flags; /* enum nic_chain_flags */
	uint32_t max_steps;
	bool own_address; /* the peer has an address of this NIC */
	/* Requests that may still be executed; see chain_fuel.c. */
	uint64_t fuel;
	/* The WAIT that is being executed; NULL: none. */
	struct nic_cq *wait_cq;
	uint32_t wait_index;
	bool wait_signaled;
	enum chain_pause pause;
	struct list waiting; /* on its CQ's list */
	struct nic_qp *qp;
	/* The receive queue. */
	struct chain_memory rq;
	struct chain_memory dbr;
	uint32_t paid_count;
	struct chain_paid paid[CHAIN_CQ_MAX];
};

/* ---- chain.c ------------------------------------------------------------ */

int chain_create(struct nic_qp *qp,
		 const struct nic_chain_attr *attr) MUST_CHECK;
void chain_release(struct nic_qp *qp);
/* The sizes of the queue that requests are copied to. */
void chain_cap(const struct nic_chain_attr *attr, struct ibv_qp_cap *cap);
/* The queue pair failed or is reset: it waits for nothing. */
void chain_stop(struct nic_qp *qp);
void chain_reset(struct nic_qp *qp);
/* requester_run for a managed send queue. */
bool chain_run(struct nic_qp *qp);
bool chain_has_work(const struct nic_qp *qp);
/* Where the memory is, if its key covers it; NULL: it does not.
 * chain_memory_host calls it when keys have changed. */
uint8_t *chain_memory_find(const struct nic_qp *qp, struct chain_memory *m);
/* The queue has something to do: nic_flush gives it a turn. */
void chain_wake(struct nic_qp *qp);

/* ---- chain_order.c: WAIT and ENABLE -------------------------------------- */

/* 1: done; 0: the queue waits; -EINVAL, -EFAULT: the request cannot be
 * executed. `at` is the request's place in memory. */
int chain_order(struct nic_qp *qp, uint8_t opcode, const void *segment,
		uint8_t *at) MUST_CHECK;
struct wqe_order;
/* The CQ of a WAIT, and what it must have counted; NULL: there is none. */
struct nic_cq *chain_wait_target(const struct nic *nic,
				 const struct wqe_order *order,
				 uint32_t *index);
/* The WAIT that is being executed is over. */
bool chain_wait_is_over(struct nic_qp *qp);

/* ---- chain_clock.c ------------------------------------------------------- */

/* With a clock: may the next request be executed, may the current WAIT end? */
bool chain_clock_go(struct nic_qp *qp);
bool chain_clock_wait(struct nic_qp *qp);

/* ---- chain_recv.c -------------------------------------------------------- */

/* Is there a receive to take? A queue pair whose memory is gone fails. */
bool chain_recv_ready(struct nic_qp *qp);
void chain_recv_fail(struct nic_qp *qp);
/* Takes a SEND of one packet whole. False: nothing happened, because it needs
 * the general path. */
bool chain_recv_call(struct nic_qp *qp, const struct wire_pkt *pkt);

/* ---- chain_loop.c -------------------------------------------------------- */

/* The other end, if it is on this NIC and takes requests; else NULL. */
struct nic_qp *chain_near_peer(const struct nic_qp *qp);
/* Executes a READ, WRITE or FAA of one block and one piece between the two.
 * False: nothing happened: another kind, or not permitted. */
bool chain_loop_quick(struct nic_qp *qp, struct nic_qp *peer,
		      const union chain_wqe *wqe, enum ibv_wc_status *status);
/* Executes a one-sided request between the two. */
enum ibv_wc_status chain_loop(struct nic_qp *qp, struct nic_qp *peer,
			      const struct send_op *op);

/* ---- chain_fuel.c -------------------------------------------------------- */

void chain_pay(struct chain *ch, uint64_t requests);
/* The queue is about to wait for `cq`. False: it would be one CQ more than a
 * queue may wait for. */
bool chain_may_wait(struct chain *ch, const struct nic_cq *cq) MUST_CHECK;
/* It has waited and goes on. */
void chain_pay_wait(struct chain *ch, const struct nic_cq *cq);

/* ---- cq_count.c: completion queues that count ---------------------------- */

/* The numbers of counting CQs. */
struct cq_numbers {
	struct nic_cq **cqs; /* by the low 16 bits */
	uint32_t size;
	uint32_t next;
	uint32_t generation;
};

struct nic_cq *cq_by_number(const struct nic *nic, uint32_t number);
void cq_number_release(struct nic_cq *cq);
void cq_numbers_release(struct nic *nic);
/* A success of `qp`: a receive, or a send. */
void cq_counted(struct nic_cq *cq, const struct nic_qp *qp, bool is_recv);

#endif
