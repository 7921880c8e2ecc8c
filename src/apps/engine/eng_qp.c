/* SPDX-License-Identifier: Apache-2.0 */
/* Queue pairs of the engine: towards applications and towards memory nodes. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "eng_priv.h"
#include "pair/pair.h"

enum {
	RD_ATOMIC = 128, /* where the devices can */
	/* 4.096 us * 2^15 = 134 ms, eight times: a peer that is only starved of
	 * CPU is not given up, a dead one is after about a second. */
	ACK_TIMEOUT = 15,
	ACK_TIMEOUT_MIN = 10, /* 34 ms for all tries */
};

int eng_qp_open(struct eng *eng, struct ibv_cq *cq, uint32_t depth,
		struct eng_qp *out)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = IBV_QPT_RC,
					.cap = {.max_send_wr = depth,
						.max_recv_wr = 1,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct eng_qp q = {0};
	int err = pair_psn(&q.psn);

	if (err)
		return error_set(err, "the kernel gives no random numbers");
	q.qp = ibv_create_qp(eng->pd, &init);
	if (!q.qp)
		return error_set(-errno, "no queue pair: %s", strerror(errno));
	/* Nobody may touch the engine's memory. */
	err = pair_init(ibv_modify_qp, q.qp, 0);
	if (err) {
		eng_qp_close(&q);
		return error_set(err, "the queue pair cannot be set up");
	}
	q.qpn = q.qp->qp_num;
	*out = q;
	return 0;
}

void eng_qp_close(struct eng_qp *q)
{
	if (q->qp)
		(void)ibv_destroy_qp(q->qp); /* nothing refers to it */
	q->qp = NULL;
}

/* The longest timer with which all tries end within that time. */
static uint8_t ack_timeout(uint64_t within_ms)
{
	uint8_t t = ACK_TIMEOUT;

	while (within_ms && t > ACK_TIMEOUT_MIN &&
	       (4096ull << t) * (PAIR_RETRIES + 1) > within_ms * 1000000)
		t--;
	return t;
}

int eng_qp_connect(struct eng *eng, struct eng_qp *q, const struct eng_far *far,
		   uint64_t within_ms)
{
	struct pair_end end = {
		.gid = far->gid,
		.qpn = far->qpn,
		.psn = far->psn,
		.own_psn = q->psn,
		.mtu = far->mtu,
		.reads_in = 1,
		.reads_out = (uint8_t)u32_min(far->rd_atomic, RD_ATOMIC),
		.timeout = ack_timeout(within_ms),
		.retries = PAIR_RETRIES,
		.rnr_timer = PAIR_RNR_TIMER,
	};
	union ibv_gid own;
	int err = pair_gid(eng->context, &far->gid, &end.gid_index, &own);

	if (err)
		return error_set(err, "the NIC has no RoCEv2 address");
	if (far->has_auth)
		err = aqdv_qp_set_auth(q->qp, far->auth_key,
				       sizeof(far->auth_key));
	if (err)
		return error_set(err, "this NIC cannot authenticate packets");
	err = pair_connect(ibv_modify_qp, q->qp, &end);
	return err ? error_set(err, "the queue pair cannot be connected to %u",
			       far->qpn)
		   : 0;
}
