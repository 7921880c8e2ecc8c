/* SPDX-License-Identifier: Apache-2.0 */
/* The connection of a chain to itself, over which its requests go. */
#include <errno.h>
#include <sys/random.h>

#include "base/plant.h"
#include "frame_priv.h"

enum {
	PORT = 1,
	HOP_LIMIT = 64,
	GIDS_MAX = 255,
	PSN_MASK = 0xffffff,
	RIGHTS = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_ATOMIC,
};

static int find_gid(struct ibv_context *context, union ibv_gid *gid,
		    uint8_t *index)
{
	struct ibv_gid_entry row;

	for (uint32_t i = 0; i < GIDS_MAX; i++) {
		if (ibv_query_gid_ex(context, PORT, i, &row, 0) ||
		    row.gid_type != IBV_GID_TYPE_ROCE_V2)
			continue;
		*gid = row.gid;
		*index = (uint8_t)i;
		return 0;
	}
	return -ENODEV;
}

static int connect_to(struct ibv_qp *qp, uint32_t dest, unsigned rights,
		      uint32_t rq_psn, uint32_t sq_psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = rights,
	};
	int err = ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS);

	if (err)
		return -err;
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = dest,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.max_dest_rd_atomic = 1,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.hop_limit = HOP_LIMIT}},
		.max_rd_atomic = 1,
	};
	err = find_gid(qp->context, &attr.ah_attr.grh.dgid,
		       &attr.ah_attr.grh.sgid_index);
	if (err)
		return err;
	err = ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	if (!err)
		err = ibv_modify_qp(qp, &attr,
				    IBV_QP_STATE | IBV_QP_TIMEOUT |
					    IBV_QP_RETRY_CNT |
					    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
					    IBV_QP_MAX_QP_RD_ATOMIC);
	return -err;
}

/*
 * The two ends of the loop. Requests go one way, so only one end grants rights.
 * They are executed inside the NIC and never move the packet numbers on; so
 * these must be nobody's guess, or one packet from outside would end the chain.
 */
int chain_close_loop(struct frame_chain *c)
{
	uint32_t psn[2];
	int err;

	if (getrandom(psn, sizeof(psn), 0) != sizeof(psn))
		return -EIO;
	psn[0] &= PSN_MASK;
	psn[1] &= PSN_MASK;
	if (PLANTED(any_inner))
		psn[0] = psn[1] = 0;
	err = connect_to(c->back_qp, c->work_qp->qp_num, RIGHTS, psn[0],
			 psn[1]);
	if (!err)
		err = connect_to(c->work_qp, c->back_qp->qp_num, 0, psn[1],
				 psn[0]);
	return err;
}
