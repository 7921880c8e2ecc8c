/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a chain to itself, over which its requests go. */
#include <errno.h>

#include "base/plant.h"
#include "pair/pair.h"
#include "pframe_priv.h"

enum {
	RIGHTS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_ATOMIC,
};

static int connect_to(struct ibv_qp *qp, uint32_t dest, unsigned rights,
		      uint32_t rq_psn, uint32_t sq_psn)
{
	struct pair_end end = {
		.qpn = dest,
		.psn = rq_psn,
		.own_psn = sq_psn,
		.reads_in = 1,
		.reads_out = 1,
	};
	struct ibv_port_attr port;
	int err = pair_init(ibv_modify_qp, qp, rights);

	/* No packet is ever sent, but no queue pair may have more than its port
	 * has. */
	if (!err)
		err = -ibv_query_port(qp->context, 1, &port);
	if (!err)
		end.mtu = port.active_mtu;
	if (!err)
		err = pair_gid(qp->context, NULL, &end.gid_index, &end.gid);
	return err ? err : pair_connect(ibv_modify_qp, qp, &end);
}

/*
 * The two ends of the loop. Requests go one way, so only one end grants rights.
 * They are executed inside the NIC and never move the packet numbers on; so
 * these must be nobody's guess, or one packet from outside would end the chain.
 */
int chain_close_loop(struct pframe_chain *c)
{
	uint32_t psn[2];
	int err = pair_psn(&psn[0]);

	if (!err)
		err = pair_psn(&psn[1]);
	if (err)
		return err;
	if (PLANTED(any_inner))
		psn[0] = psn[1] = 0;
	err = connect_to(c->back_qp, c->work_qp->qp_num, RIGHTS, psn[0],
			 psn[1]);
	if (!err)
		err = connect_to(c->work_qp, c->back_qp->qp_num, 0, psn[1],
				 psn[0]);
	return err;
}
