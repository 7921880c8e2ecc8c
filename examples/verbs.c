/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain verbs program, which knows nothing of Aquifer: two queue pairs, and
 * an RDMA WRITE from one to the other.
 *
 *	cc verbs.c -libverbs -o verbs && aquifer exec -- ./verbs
 */
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

/* From RESET to ready to send, towards the queue pair `peer` at `gid`. */
static void connect_to(struct ibv_qp *qp, uint32_t peer, union ibv_gid gid)
{
	struct ibv_qp_attr a = {.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE};

	a.qp_state = IBV_QPS_INIT;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	     "INIT");
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = peer;
	a.max_dest_rd_atomic = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.dgid = gid;
	a.ah_attr.grh.sgid_index = 1; /* RoCE v2 */
	a.ah_attr.grh.hop_limit = 1;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	     "RTR");
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.max_rd_atomic = 1;
	must(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	     "RTS");
}

int main(void)
{
	static char from[64] = "written by the NIC", to[64];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && *list ? ibv_open_device(*list) : NULL;
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED},
			   *bad;
	struct ibv_pd *pd = ctx ? ibv_alloc_pd(ctx) : NULL;
	struct ibv_mr *src, *dst;
	struct ibv_qp *a, *b;
	union ibv_gid gid;
	struct ibv_wc wc;
	int n;

	must(pd != NULL, "device");
	must(!ibv_query_gid(ctx, 1, 1, &gid), "address");
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	src = ibv_reg_mr(pd, from, sizeof(from), 0);
	dst = ibv_reg_mr(pd, to, sizeof(to),
			 IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	a = ibv_create_qp(pd, &init);
	b = ibv_create_qp(pd, &init);
	must(src && dst && a && b, "memory and queue pairs");
	connect_to(a, b->qp_num, gid);
	connect_to(b, a->qp_num, gid);
	wr.sg_list =
		&(struct ibv_sge){(uintptr_t)from, sizeof(from), src->lkey};
	wr.num_sge = 1;
	wr.wr.rdma.remote_addr = (uintptr_t)to;
	wr.wr.rdma.rkey = dst->rkey;
	must(!ibv_post_send(a, &wr, &bad), "post");
	while ((n = ibv_poll_cq(init.send_cq, 1, &wc)) == 0)
		;
	must(n == 1 && wc.status == IBV_WC_SUCCESS, "completion");
	printf("%s: %s\n", ibv_get_device_name(*list), to);
	return 0; /* the end of the process gives everything back */
}
