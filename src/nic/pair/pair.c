/* SPDX-License-Identifier: Apache-2.0 */
/* The three steps of a queue pair from made to connected. */
#include "pair.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum {
	HOP_LIMIT = 64,
};

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(gid->raw, v4, sizeof(v4)) == 0;
}

static bool is_link_local(const union ibv_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/* How well an address of ours goes with the peer's: of the same kind, and of
 * the same reach. Who is not known may be anywhere. */
static int fit(const union ibv_gid *own, const union ibv_gid *peer)
{
	bool is_near = peer && is_link_local(peer);
	bool is_same = !peer || is_ipv4(peer) == is_ipv4(own);

	return 2 * is_same + (is_link_local(own) == is_near);
}

int pair_gid(struct ibv_context *context, const union ibv_gid *peer,
	     uint8_t *index, union ibv_gid *own)
{
	struct ibv_gid_entry row;
	int best = -1;

	for (unsigned i = 0; i < UINT8_MAX; i++) {
		if (ibv_query_gid_ex(context, PAIR_PORT, i, &row, 0) ||
		    row.gid_type != IBV_GID_TYPE_ROCE_V2 ||
		    fit(&row.gid, peer) <= best)
			continue;
		best = fit(&row.gid, peer);
		*index = (uint8_t)i;
		*own = row.gid;
	}
	return best < 0 ? -ENODEV : 0;
}

int pair_psn(uint32_t *psn)
{
	if (getrandom(psn, sizeof(*psn), 0) != sizeof(*psn))
		return -EIO;
	*psn &= PAIR_PSN_MASK;
	return 0;
}

enum ibv_mtu pair_mtu(uint64_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_4096;

	while (mtu > IBV_MTU_256 && 128ull << mtu > bytes)
		mtu--;
	return mtu;
}

int pair_init(pair_modify_fn modify, struct ibv_qp *qp, unsigned access)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
				   .port_num = PAIR_PORT,
				   .qp_access_flags = access};

	return -modify(qp, &attr,
		       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			       IBV_QP_ACCESS_FLAGS);
}

int pair_receive(pair_modify_fn modify, struct ibv_qp *qp,
		 const struct pair_end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = end->mtu,
		.dest_qp_num = end->qpn,
		.rq_psn = end->psn,
		.max_dest_rd_atomic = end->reads_in,
		.min_rnr_timer = end->rnr_timer,
		.ah_attr = {.is_global = 1,
			    .port_num = PAIR_PORT,
			    .grh = {.dgid = end->gid,
				    .sgid_index = end->gid_index,
				    .hop_limit = HOP_LIMIT}},
	};

	return -modify(qp, &attr,
		       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			       IBV_QP_MAX_DEST_RD_ATOMIC |
			       IBV_QP_MIN_RNR_TIMER);
}

int pair_connect(pair_modify_fn modify, struct ibv_qp *qp,
		 const struct pair_end *end)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = end->own_psn,
		.timeout = end->timeout,
		.retry_cnt = end->retries,
		.rnr_retry = end->retries,
		.max_rd_atomic = end->reads_out,
	};
	int err = pair_receive(modify, qp, end);

	return err ? err
		   : -modify(qp, &attr,
			     IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				     IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}
