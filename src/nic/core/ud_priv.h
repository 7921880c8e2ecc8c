/* SPDX-License-Identifier: Apache-2.0 */
/* Datagrams: address handles, and the paths that they take. */
#ifndef AQ_NIC_UD_PRIV_H
#define AQ_NIC_UD_PRIV_H

#include <infiniband/verbs.h>

#include "base/env.h"

struct nic;
struct nic_pd;
struct nic_qp;
struct send_op;
struct send_slot;
struct wire_pkt;

struct nic_ah {
	struct nic *nic;
	struct nic_pd *pd;
	uint32_t refs;
	struct env_addr dst;
	uint8_t sgid_index;
	uint8_t tos;
	uint8_t ttl;
};

struct ud_path {
	uint8_t ip[16];
	uint32_t slot;
	struct env_path *path;
};

int ah_fill(struct nic *nic, const struct ibv_ah_attr *attr,
	    struct nic_ah *ah) MUST_CHECK;
void ah_get(struct nic_ah *ah);
void ah_put(struct nic_ah *ah);
/* Sends one datagram: 1 sent, 0 the path is full, or -errno. */
int ud_send(struct nic_qp *qp, struct send_slot *slot,
	    const struct send_op *op);
void ud_input(struct nic_qp *qp, const struct wire_pkt *pkt,
	      const uint8_t *frame);
/* The way of datagrams to that queue pair; NULL: nobody is there. */
struct env_path *ud_path_to(struct nic *nic, const struct env_addr *dst,
			    uint32_t qpn);
void ud_paths_close(struct nic *nic);
void ud_path_down(struct nic *nic, struct env_path *path);

#endif
