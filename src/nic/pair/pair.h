/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connecting a reliable queue pair to another one by the numbers that their
 * owners have told each other. Clients, nodes, engines and the laboratory do it
 * here, through the API of the NIC, so a soft NIC and an adapter are connected
 * the same way:
 *
 *	pair_psn(&psn)			before the peer is told
 *	pair_init(modify, qp, access)
 *	pair_connect(modify, qp, &end)	when the peer has answered
 *
 * All return 0 or -errno; words are left to the caller, who knows the peer.
 */
#ifndef AQ_PAIR_H
#define AQ_PAIR_H

#include <infiniband/verbs.h>

#include "base/base.h"

enum {
	PAIR_PORT = 1,
	PAIR_PSN_MASK = 0xffffff, /* the same for queue pair numbers */
	PAIR_RETRIES = 7,	  /* after the first try */
	PAIR_RNR_TIMER = 12,	  /* 640 us */
};

/* ibv_modify_qp, or that of another libibverbs. */
typedef int (*pair_modify_fn)(struct ibv_qp *qp, struct ibv_qp_attr *attr,
			      int mask);

/* The peer, and what this end grants and expects. */
struct pair_end {
	union ibv_gid gid; /* the peer's address */
	uint8_t gid_index; /* of our own address on that path */
	uint32_t qpn;	   /* the peer's */
	uint32_t psn;	   /* the first packet number that the peer sends */
	uint32_t own_psn;  /* the first packet number that this end sends */
	enum ibv_mtu mtu;  /* of the path */
	uint8_t reads_in;  /* READs and atomics of the peer at a time */
	uint8_t reads_out; /* READs and atomics of this end at a time */
	uint8_t timeout;   /* 4.096 us << timeout until a repetition; 0: none */
	uint8_t retries;   /* of lost packets, and of a peer not ready */
	uint8_t rnr_timer; /* code of the pause that a peer is told to make */
};

/* Our first RoCEv2 address, of the peer's family and reach if there is one, and
 * its index; NULL: of any family, and not of this link alone if there is
 * another. -ENODEV: there is none. */
int pair_gid(struct ibv_context *context, const union ibv_gid *peer,
	     uint8_t *index, union ibv_gid *own) MUST_CHECK;
/* An unpredictable packet number. -EIO: the kernel has no randomness. */
int pair_psn(uint32_t *psn) MUST_CHECK;
/* The largest code that the bytes have room for, IBV_MTU_256 at least. */
enum ibv_mtu pair_mtu(uint64_t bytes);

/* INIT, with what the peer may do (IBV_ACCESS_*). */
int pair_init(pair_modify_fn modify, struct ibv_qp *qp,
	      unsigned access) MUST_CHECK;
/* RTR: the queue pair only responds. */
int pair_receive(pair_modify_fn modify, struct ibv_qp *qp,
		 const struct pair_end *end) MUST_CHECK;
/* RTR and RTS. */
int pair_connect(pair_modify_fn modify, struct ibv_qp *qp,
		 const struct pair_end *end) MUST_CHECK;

#endif
