/* SPDX-License-Identifier: Apache-2.0 */
/* The server's end of a connection whose other end is in the switch. */
#include "tor_sword.h"

#include <errno.h>
#include <string.h>

int scenario_sword_shared(struct scenario_host *h, const uint8_t own_ip[16],
			  uint32_t own_qpn, uint32_t psn, struct ibv_qp **out)
{
	struct ibv_qp *qp;
	struct ibv_qp_init_attr attr = {.send_cq = h->cq,
					.recv_cq = h->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = 1,
				   .qp_access_flags = IBV_ACCESS_REMOTE_READ |
						      IBV_ACCESS_REMOTE_WRITE |
						      IBV_ACCESS_REMOTE_ATOMIC};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
				  .path_mtu = IBV_MTU_1024,
				  .dest_qp_num = own_qpn,
				  .rq_psn = psn,
				  .max_dest_rd_atomic = 16,
				  .min_rnr_timer = 12,
				  .ah_attr = {.is_global = 1,
					      .port_num = 1,
					      .grh = {.hop_limit = 64}}};
	int err;

	memcpy(rtr.ah_attr.grh.dgid.raw, own_ip, 16);
	qp = ibv_create_qp(h->pd, &attr);
	if (!qp)
		return -errno;
	err = ibv_modify_qp(qp, &init,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS);
	if (!err)
		err = ibv_modify_qp(qp, &rtr,
				    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
					    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					    IBV_QP_MAX_DEST_RD_ATOMIC |
					    IBV_QP_MIN_RNR_TIMER);
	if (err)
		(void)ibv_destroy_qp(qp);
	else
		*out = qp;
	return -err;
}
