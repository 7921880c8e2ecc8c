/* SPDX-License-Identifier: Apache-2.0 */
/* A memory node of coherent shared memory: an arena, and the connection by
 * which the switch reads and writes it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "coh_machine.h"
#include "pair/pair.h"

enum {
	NODE_QPN = 0x8000,
	NODE_READS = 8,
};

int rig_coh_node_init(struct rig_coh_node *n, struct rig_stage *stage,
		      uint64_t size_bytes)
{
	int err = rig_host_add(stage, "memory", &n->host);

	return err ? err
		   : rig_region_create(n->host, size_bytes, false, &n->arena);
}

void rig_coh_node_release(struct rig_coh_node *n)
{
	if (n->qp)
		(void)ibv_destroy_qp(n->qp);
	n->qp = NULL;
}

static int open_qp(struct rig_coh_node *n, const struct pair_end *end)
{
	struct rig_host *h = n->host;
	struct ibv_qp_init_attr attr = {.send_cq = h->cq,
					.recv_cq = h->cq,
					.qp_type = IBV_QPT_RC,
					.cap = {1, 1, 1, 1, 0}};
	int err;

	rig_coh_node_release(n);
	n->qp = ibv_create_qp(h->pd, &attr);
	if (!n->qp)
		return -ENOMEM;
	err = pair_init(ibv_modify_qp, n->qp,
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	return err ? err : pair_receive(ibv_modify_qp, n->qp, end);
}

int rig_coh_node_connect(struct rig_coh_node *n, struct rig_tor *tor,
			 unsigned number, uint32_t turn, uint32_t psn,
			 enum ibv_mtu mtu)
{
	uint32_t own_qpn = NODE_QPN + turn * 4 + number;
	struct pair_end end = {.qpn = own_qpn,
			       .psn = psn,
			       .mtu = mtu,
			       .reads_in = NODE_READS,
			       .rnr_timer = PAIR_RNR_TIMER};
	char ip[INET6_ADDRSTRLEN], own[INET6_ADDRSTRLEN];
	int err = 0;

	memcpy(end.gid.raw, n->host->gid.raw, 16);
	end.gid.raw[15] = RIG_COH_OWN_HOST;
	rig_ip_text(n->host->gid.raw, ip);
	rig_ip_text(end.gid.raw, own);
	/* A dead one is told all the same: it does not answer. */
	if (!n->is_dead)
		err = open_qp(n, &end);
	return err ? err
		   : rig_tor_tell(tor,
				  "coherence node node=%u ip=%s own_ip=%s "
				  "qpn=%u own_qpn=%u psn=%u mtu=%u rkey=%u "
				  "addr=%" PRIu64 " size=%" PRIu64 " reads=%u",
				  number, ip, own, n->qp ? n->qp->qp_num : 1,
				  own_qpn, psn, 128u << mtu, n->arena->rkey,
				  n->arena->addr, n->arena->size_bytes,
				  NODE_READS);
}
