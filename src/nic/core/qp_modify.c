/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue pair states: which changes exist, which attributes each needs and may
 * have (IBA 11.2.5.2, table 91), and what they set.
 */
#include <errno.h>
#include <string.h>

#include "auth_priv.h"
#include "qp_priv.h"

#define M_ANY (IBV_QP_STATE | IBV_QP_CUR_STATE)

/* Flags that have a name, and those that whoever does not know them ignores. */
#define QP_ACCESS (((IBV_ACCESS_HUGETLB << 1) - 1) | IBV_ACCESS_OPTIONAL_RANGE)

#define M_RTS_OPT                                                       \
	(IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH | \
	 IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT)

struct transition {
	bool legal;
	int need;
	int may;
};

struct transitions {
	struct transition rc;
	struct transition ud;
};

/* By present and next state; to RESET and ERR is always possible. */
static const struct transitions table[IBV_QPS_ERR + 1][IBV_QPS_ERR + 1] = {
	[IBV_QPS_RESET][IBV_QPS_INIT] =
		{
			.rc = {true,
			       IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS,
			       0},
			.ud = {true,
			       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
			       0},
		},
	[IBV_QPS_INIT][IBV_QPS_INIT] =
		{
			.rc = {true, 0,
			       IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS},
			.ud = {true, 0,
			       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
		},
	[IBV_QPS_INIT][IBV_QPS_RTR] =
		{
			.rc = {true,
			       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				       IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER,
			       IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS |
				       IBV_QP_ALT_PATH},
			.ud = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
		},
	[IBV_QPS_RTR][IBV_QPS_RTS] =
		{
			.rc = {true,
			       IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_QP_RD_ATOMIC,
			       M_RTS_OPT},
			.ud = {true, IBV_QP_SQ_PSN,
			       IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
		},
	[IBV_QPS_RTS][IBV_QPS_RTS] =
		{
			.rc = {true, 0, M_RTS_OPT},
			.ud = {true, 0, IBV_QP_QKEY | IBV_QP_RATE_LIMIT},
		},
	[IBV_QPS_RTS][IBV_QPS_SQD] =
		{
			.rc = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
			.ud = {true, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
		},
	[IBV_QPS_SQD][IBV_QPS_SQD] =
		{
			.rc = {true, 0,
			       IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS | IBV_QP_AV |
				       IBV_QP_MAX_QP_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER | IBV_QP_ALT_PATH |
				       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				       IBV_QP_RNR_RETRY |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_PATH_MIG_STATE},
			.ud = {true, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
		},
	[IBV_QPS_SQD][IBV_QPS_RTS] =
		{
			.rc = {true, 0, M_RTS_OPT},
			.ud = {true, 0, IBV_QP_QKEY},
		},
	[IBV_QPS_SQE][IBV_QPS_RTS] =
		{
			.rc = {false, 0, 0},
			.ud = {true, 0, IBV_QP_QKEY},
		},
};

static int check_mask(const struct nic_qp *qp, enum ibv_qp_state next, int mask)
{
	const struct transitions *both = &table[qp->state][next];
	const struct transition *t =
		qp->type == IBV_QPT_UD ? &both->ud : &both->rc;

	if (next == IBV_QPS_RESET || next == IBV_QPS_ERR)
		return mask & ~M_ANY ? -EINVAL : 0;
	if (!t->legal || (mask & t->need) != t->need ||
	    (mask & ~(t->need | t->may | M_ANY)))
		return -EINVAL;
	return 0;
}

static int check_values(const struct nic_qp *qp, const struct ibv_qp_attr *a,
			int mask)
{
	if ((mask & IBV_QP_PORT) && a->port_num != 1)
		return -EINVAL;
	if ((mask & IBV_QP_PKEY_INDEX) && a->pkey_index != 0)
		return -EINVAL;
	if ((mask & IBV_QP_ACCESS_FLAGS) &&
	    (a->qp_access_flags & ~(unsigned)QP_ACCESS))
		return -EINVAL;
	if ((mask & IBV_QP_PATH_MTU) && (a->path_mtu < IBV_MTU_256 ||
					 a->path_mtu > nic_active_mtu(qp->nic)))
		return -EINVAL;
	if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
	    a->max_rd_atomic > NIC_RD_ATOMIC_MAX)
		return -EINVAL;
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
	    a->max_dest_rd_atomic > NIC_RD_ATOMIC_MAX)
		return -EINVAL;
	/* Answers that are owed would be forgotten. */
	if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && qp->rsp.res_pending)
		return -EBUSY;
	if ((mask & IBV_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return -EINVAL;
	if ((mask & IBV_QP_TIMEOUT) && a->timeout > 31)
		return -EINVAL;
	if ((mask & IBV_QP_RETRY_CNT) && a->retry_cnt > 7)
		return -EINVAL;
	if ((mask & IBV_QP_RNR_RETRY) && a->rnr_retry > 7)
		return -EINVAL;
	if ((mask & IBV_QP_DEST_QPN) && a->dest_qp_num > WIRE_QPN_MASK)
		return -EINVAL;
	if (mask &
	    (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_RATE_LIMIT))
		return -EOPNOTSUPP;
	return 0;
}

/* The source port spreads flows over paths; it stays the same for one QP. */
static uint16_t source_port(const struct nic_qp *qp)
{
	uint32_t h = (qp->qpn ^ qp->dest_qpn) * 2654435761u;

	return nic_src_port(qp->nic, qp->path, (uint16_t)(0xc000 | h >> 18));
}

/*
 * Programs that know only LIDs (qperf) leave the global address out. RoCE has
 * no LIDs, so the one peer they can mean is on this machine.
 */
static struct ibv_ah_attr make_global(const struct nic *nic,
				      const struct ibv_ah_attr *attr)
{
	struct ibv_ah_attr to = *attr;

	if (!to.is_global) {
		unsigned last = nic->cfg.gid_count - 1;

		to.is_global = 1;
		to.grh = (struct ibv_global_route){
			.sgid_index = (uint8_t)last,
		};
		memcpy(to.grh.dgid.raw, nic->cfg.gids[last].ip, 16);
	}
	return to;
}

/* The fields of outgoing packets that the address decides. */
static int connect(struct nic_qp *qp, const struct ibv_qp_attr *a,
		   uint32_t dest_qpn)
{
	struct nic *nic = qp->nic;
	struct ibv_ah_attr to = make_global(nic, &a->ah_attr);
	struct nic_ah ah;
	struct env_path *path;
	const struct env_addr *src;
	int err = ah_fill(nic, &to, &ah);

	if (err)
		return err;
	err = nic->env->ops->path_open(nic->env, &ah.dst, dest_qpn, &path);
	if (err)
		return err;
	if (qp->path)
		nic->env->ops->path_close(nic->env, qp->path);
	qp->path = path;
	src = &nic->cfg.gids[ah.sgid_index];
	memcpy(qp->out.src_ip, src->ip, 16);
	memcpy(qp->out.dst_ip, ah.dst.ip, 16);
	memcpy(qp->out.src_mac, src->mac, 6);
	memcpy(qp->out.dst_mac, ah.dst.mac, 6);
	qp->out.tos = ah.tos;
	qp->out.ttl = ah.ttl;
	qp->out.pkey = 0xffff;
	qp->out.mig_req = true;
	if (qp->chain)
		qp->chain->own_address = nic_is_ours(nic, ah.dst.ip);
	return 0;
}

/*
 * A managed queue that is connected to itself has its requests executed inside
 * the NIC: no packet is ever its own.
 */
static uint16_t find_from(const struct nic_qp *qp)
{
	struct nic *nic = qp->nic;
	const struct env_ops *ops = nic->env->ops;

	if (qp->managed_sq && qp->chain->own_address && qp->dest_qpn == qp->qpn)
		return (uint16_t)nic->cfg.slot;
	return (uint16_t)(ops->path_from ? ops->path_from(nic->env, qp->path)
					 : NIC_FROM_NET);
}

static void copy_attr(struct nic_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	struct ibv_qp_attr *mine = &qp->attr;

	if (mask & IBV_QP_ACCESS_FLAGS) {
		/* What a walk under way may do was found by both. */
		if (qp->access & ~a->qp_access_flags)
			key_changed(&qp->nic->keys);
		qp->access = mine->qp_access_flags = a->qp_access_flags;
	}
	if (mask & IBV_QP_PORT)
		mine->port_num = a->port_num;
	if (mask & IBV_QP_QKEY)
		qp->qkey = mine->qkey = a->qkey;
	if (mask & IBV_QP_AV)
		mine->ah_attr = a->ah_attr;
	if (mask & IBV_QP_PATH_MTU) {
		mine->path_mtu = a->path_mtu;
		qp->mtu = 128u << a->path_mtu;
	}
	if (mask & IBV_QP_TIMEOUT)
		qp->timeout = mine->timeout = a->timeout;
	if (mask & IBV_QP_RETRY_CNT)
		mine->retry_cnt = qp->retry_cnt = qp->req.retry_left =
			a->retry_cnt;
	if (mask & IBV_QP_RNR_RETRY)
		mine->rnr_retry = qp->rnr_retry = qp->req.rnr_left =
			a->rnr_retry;
	if (mask & IBV_QP_RQ_PSN)
		mine->rq_psn = qp->rsp.epsn = a->rq_psn & WIRE_PSN_MASK;
	if (mask & IBV_QP_SQ_PSN) {
		mine->sq_psn = a->sq_psn & WIRE_PSN_MASK;
		qp->req.next_psn = qp->req.una_psn = mine->sq_psn;
	}
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
		qp->max_rd_atomic = mine->max_rd_atomic = a->max_rd_atomic;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		mine->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & IBV_QP_MIN_RNR_TIMER)
		mine->min_rnr_timer = a->min_rnr_timer;
	if (mask & IBV_QP_DEST_QPN) {
		qp->dest_qpn = mine->dest_qp_num = a->dest_qp_num;
		qp->out.src_port = source_port(qp);
		qp->born = ++qp->nic->guess.births;
	}
	if (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY)
		qp->sqd_notify = a->en_sqd_async_notify;
}

/* Whether the path loses and marks, and how much may be on it. */
static void watch_path(struct nic_qp *qp)
{
	struct env *env = qp->nic->env;
	uint32_t bytes = 0;

	if (qp->path && env->ops->path_window_bytes)
		bytes = env->ops->path_window_bytes(env, qp->path);
	congestion_init(&qp->cc,
			bytes ? u32_min(bytes / qp->mtu + 1, NIC_WINDOW_PACKETS)
			      : 0,
			qp->req.next_psn);
	qp->lossy = qp->cc.on;
	if (qp->lossy)
		qp->out.tos =
			(uint8_t)((qp->out.tos & ~WIRE_ECN_MASK) | WIRE_ECT0);
}

/* What can fail comes before anything changes. */
static int prepare(struct nic_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	int err;

	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC) {
		err = responder_init(qp, a->max_dest_rd_atomic);
		if (err)
			return err;
	}
	if (mask & IBV_QP_AV)
		return connect(qp, a,
			       mask & IBV_QP_DEST_QPN ? a->dest_qp_num
						      : qp->dest_qpn);
	return 0;
}

static void enter(struct nic_qp *qp, enum ibv_qp_state next)
{
	enum ibv_qp_state old = qp->state;

	if (next == IBV_QPS_ERR) {
		qp_fail(qp);
		qp->state = IBV_QPS_ERR; /* also from RESET */
		return;
	}
	qp->state = next;
	if (next == IBV_QPS_SQD && old == IBV_QPS_RTS && qp_is_drained(qp) &&
	    qp->sqd_notify) {
		qp->sqd_notify = false;
		qp_event(qp, IBV_EVENT_SQ_DRAINED);
	}
	if (next == IBV_QPS_RTS) {
		qp->sqd_notify = false;
		if (qp->managed_sq)
			chain_pay(qp->chain, 1);
		nic_qp_kick(qp);
	}
}

int nic_qp_modify(struct nic_qp *qp, const struct ibv_qp_attr *attr, int mask)
{
	enum ibv_qp_state next =
		mask & IBV_QP_STATE ? attr->qp_state : qp->state;
	int err;

	if ((unsigned)next > IBV_QPS_ERR)
		return -EINVAL;
	if ((mask & IBV_QP_CUR_STATE) && attr->cur_qp_state != qp->state)
		return -EINVAL;
	err = check_mask(qp, next, mask);
	if (!err)
		err = check_values(qp, attr, mask);
	if (err)
		return err;
	if (next == IBV_QPS_RESET) {
		qp_forget(qp);
		qp->state = IBV_QPS_RESET;
		return 0;
	}
	err = prepare(qp, attr, mask);
	if (err)
		return err;
	if (mask & IBV_QP_ACCESS_FLAGS)
		qp_end_reach(qp);
	copy_attr(qp, attr, mask);
	if (qp->type == IBV_QPT_RC && (mask & (IBV_QP_AV | IBV_QP_SQ_PSN)))
		watch_path(qp);
	if (qp->type == IBV_QPT_RC && qp->path) {
		qp->from = find_from(qp);
		if (qp->auth)
			auth_start(qp, mask);
		/* Stamps know nothing of MACs. */
		qp->flow = auth_is_on(qp) ? 0
					  : wire_stamps_flow(&qp->nic->stamps,
							     &qp->out);
	}
	enter(qp, next);
	return 0;
}

void nic_qp_query(const struct nic_qp *qp, struct ibv_qp_attr *attr)
{
	*attr = qp->attr;
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->path_mig_state = IBV_MIG_MIGRATED;
	attr->rq_psn = qp->rsp.epsn;
	attr->sq_psn = qp->req.next_psn;
	attr->cap = qp->cap;
	attr->sq_draining = qp->state == IBV_QPS_SQD && !qp_is_drained(qp);
}
