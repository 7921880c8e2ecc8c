/* SPDX-License-Identifier: Apache-2.0 */
/* The real transport: a NIC, one completion queue per thread, one RC queue pair
 * per lane, connected through the node's HTTP interface. */
#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client_priv.h"
#include "error.h"

enum {
	PORT = 1,
	HOP_LIMIT = 64,
	RD_ATOMIC = 16,
	MTU_BYTES = 4096,
	/* 4.096 us * 2^16 = 268 ms, eight times: a node that is only starved
	 * of CPU is not given up; a dead one is reported by the heartbeat. */
	ACK_TIMEOUT = 16,
	RETRY_COUNT = 7,
	RNR_TIMER = 12,
	PSN_MASK = 0xffffff,
	STAGING_BYTES = CLIENT_SLOT_COUNT * CLIENT_SLOT_BYTES,
};

static uint64_t verbs_now_ns(void *ctx)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static void verbs_relax(void *ctx)
{
	sched_yield();
}

/* ---- the device and the thread's part ----------------------------------- */

/* Under the rack's lock. */
static int open_device(struct aq_rack *rack)
{
	const struct client_verbs *v = client_verbs_choose();
	struct ibv_device **list;

	if (rack->context)
		return 0;
	list = v->get_device_list(NULL);
	if (list && list[0])
		rack->context = v->open_device(list[0]);
	if (list)
		v->free_device_list(list);
	if (!rack->context)
		return error_prefix(-ENODEV,
				    "the %s NIC cannot be opened: ", v->name);
	rack->pd = v->alloc_pd(rack->context);
	if (!rack->pd) {
		(void)v->close_device(rack->context);
		rack->context = NULL;
		return error_set(-ENOMEM, "no protection domain");
	}
	rack->verbs = v;
	return 0;
}

static void close_device(struct aq_rack *rack)
{
	if (!rack->context)
		return;
	/* All that hung on them is gone, so neither can fail. */
	(void)rack->verbs->dealloc_pd(rack->pd);
	(void)rack->verbs->close_device(rack->context);
}

static int thread_open(struct client_thread *t)
{
	struct aq_rack *rack = t->rack;
	int err;

	pthread_mutex_lock(&rack->lock);
	err = open_device(rack);
	pthread_mutex_unlock(&rack->lock);
	if (err)
		return err;
	t->staging = aligned_alloc(4096, STAGING_BYTES);
	if (!t->staging)
		return error_set(-ENOMEM, "no memory for transfers");
	memset(t->staging, 0, STAGING_BYTES);
	t->mr = rack->verbs->reg_mr(rack->pd, t->staging, STAGING_BYTES,
				    IBV_ACCESS_LOCAL_WRITE);
	if (!t->mr)
		goto err_free;
	t->cq = rack->verbs->create_cq(rack->context,
				       2 * CLIENT_SLOT_COUNT * CLIENT_NODE_MAX,
				       NULL, NULL, 0);
	if (!t->cq)
		goto err_dereg;
	return 0;

err_dereg:
	(void)rack->verbs->dereg_mr(t->mr);
err_free:
	free(t->staging);
	t->staging = NULL;
	return error_set(-ENOMEM, "the NIC has no more queues or keys");
}

static void thread_close(struct client_thread *t)
{
	(void)t->rack->verbs->destroy_cq(t->cq);
	(void)t->rack->verbs->dereg_mr(t->mr);
	free(t->staging);
}

/* ---- connecting --------------------------------------------------------- */

/* What the node says about its end. */
struct far_end {
	union ibv_gid gid;
	uint32_t qpn;
	uint32_t psn;
	enum ibv_mtu mtu;
	uint8_t rd_atomic;
	uint32_t beat_ms;
};

static enum ibv_mtu mtu_code(uint64_t bytes)
{
	return bytes >= 4096   ? IBV_MTU_4096
	       : bytes >= 2048 ? IBV_MTU_2048
	       : bytes >= 1024 ? IBV_MTU_1024
	       : bytes >= 512  ? IBV_MTU_512
			       : IBV_MTU_256;
}

static int parse_gid(const json_t *reply, union ibv_gid *gid)
{
	const char *s = json_string_value(json_object_get(reply, "gid"));
	unsigned i, byte;

	if (!s || strlen(s) != 32 || strspn(s, "0123456789abcdefABCDEF") != 32)
		return error_set(-EPROTO,
				 "the node's answer has no usable 'gid'");
	for (i = 0; i < 16; i++) {
		(void)sscanf(s + 2 * i, "%2x", &byte);
		gid->raw[i] = (uint8_t)byte;
	}
	return 0;
}

static int parse_far_end(const json_t *reply, struct client_lane *lane,
			 struct far_end *far)
{
	uint64_t qpn, psn, mtu, rd_atomic, beat_ms;
	int err = parse_gid(reply, &far->gid);

	if (!err)
		err = client_json_word(reply, "connection", lane->id,
				       sizeof(lane->id));
	if (!err)
		err = client_json_u64(reply, "qpn", PSN_MASK, &qpn);
	if (!err)
		err = client_json_u64(reply, "psn", PSN_MASK, &psn);
	if (!err)
		err = client_json_u64(reply, "mtu", 4096, &mtu);
	if (!err)
		err = client_json_u64(reply, "rd_atomic", 128, &rd_atomic);
	if (!err)
		err = client_json_u64(reply, "heartbeat_ms", 60000, &beat_ms);
	if (err)
		return err;
	far->qpn = (uint32_t)qpn;
	far->psn = (uint32_t)psn;
	far->mtu = mtu_code(mtu);
	far->rd_atomic = (uint8_t)rd_atomic;
	far->beat_ms = u32_max((uint32_t)beat_ms, 10);
	return 0;
}

static int ask_connect(struct client_lane *lane, uint32_t psn,
		       uint64_t deadline_ns, struct far_end *far)
{
	struct aq_rack *rack = lane->thread->rack;
	char gid_text[33], who[32];
	union ibv_gid gid;
	json_t *reply = NULL;
	unsigned i;
	int err;

	if (rack->verbs->query_gid(rack->context, PORT, rack->verbs->gid_index,
				   &gid))
		return error_set(-ENODEV, "the NIC has no RoCEv2 address");
	for (i = 0; i < 16; i++)
		snprintf(gid_text + 2 * i, 3, "%02x", gid.raw[i]);
	snprintf(who, sizeof(who), "%.31s", program_invocation_short_name);
	err = client_thread_call(
		lane->thread, lane->node, "POST", "/v1/connect",
		json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:[], s:s}",
			  "proto", "1.0", "gid", gid_text, "qpn",
			  (int)lane->qp->qp_num, "psn", (int)psn, "mtu",
			  MTU_BYTES, "rd_atomic", RD_ATOMIC, "access", "rw",
			  "caps", "client", who),
		deadline_ns, &reply);
	if (!err)
		err = parse_far_end(reply, lane, far);
	json_decref(reply);
	return err;
}

static int make_qp(struct client_lane *lane)
{
	struct client_thread *t = lane->thread;
	struct ibv_qp_init_attr attr = {
		.send_cq = t->cq,
		.recv_cq = t->cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 2 * CLIENT_SLOT_COUNT,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = PORT};
	int err;

	lane->qp = t->rack->verbs->create_qp(t->rack->pd, &attr);
	if (!lane->qp)
		return error_set(-ENOMEM, "the NIC has no queue pair left");
	err = t->rack->verbs->modify_qp(lane->qp, &init,
					IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						IBV_QP_PORT |
						IBV_QP_ACCESS_FLAGS);
	return err ? error_set(-err, "the queue pair cannot be set up") : 0;
}

static int start_qp(struct client_lane *lane, const struct far_end *far,
		    uint32_t psn)
{
	const struct client_verbs *v = lane->thread->rack->verbs;
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = far->mtu,
		.dest_qp_num = far->qpn,
		.rq_psn = far->psn,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = RNR_TIMER,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.dgid = far->gid,
				    .sgid_index = (uint8_t)v->gid_index,
				    .hop_limit = HOP_LIMIT}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.sq_psn = psn,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRY_COUNT,
		.rnr_retry = RETRY_COUNT,
		.max_rd_atomic = (uint8_t)u32_min(far->rd_atomic, RD_ATOMIC),
	};
	int err;

	err = v->modify_qp(lane->qp, &rtr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
	if (!err)
		err = v->modify_qp(lane->qp, &rts,
				   IBV_QP_STATE | IBV_QP_SQ_PSN |
					   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	return err ? error_set(-err, "the queue pair cannot be connected") : 0;
}

/* Tells the node; it would find out by itself, but later. */
static void say_goodbye(struct client_lane *lane)
{
	struct client_thread *t = lane->thread;
	char path[CLIENT_PATH_MAX];

	/* L3: a node that has forgotten us need not be told. */
	if (!lane->id[0] ||
	    atomic_load_explicit(&lane->is_lost, memory_order_relaxed))
		return;
	snprintf(path, sizeof(path), "/v1/connections/%s", lane->id);
	client_thread_tell(t, lane->node, "DELETE", path,
			   client_rack_now_ns(t->rack) +
				   CLIENT_BEAT_TIMEOUT_MS * 1000000ull);
}

static void lane_close(struct client_lane *lane)
{
	if (lane->qp)
		(void)lane->thread->rack->verbs->destroy_qp(lane->qp);
	lane->qp = NULL;
	say_goodbye(lane);
	lane->id[0] = '\0';
}

static int lane_open(struct client_lane *lane, uint64_t deadline_ns)
{
	struct far_end far;
	uint32_t psn;
	int err;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return error_set(-EIO, "the kernel gives no random numbers");
	psn &= PSN_MASK;
	lane->id[0] = '\0';
	err = make_qp(lane);
	if (!err)
		err = ask_connect(lane, psn, deadline_ns, &far);
	if (!err)
		err = start_qp(lane, &far, psn);
	if (!err)
		err = client_beat_add(lane, far.beat_ms);
	if (err)
		lane_close(lane);
	return err;
}

/* ---- moving data -------------------------------------------------------- */

/* Completions may outlive their queue pair; the generation tells. */
static uint64_t wr_id_of(const struct client_lane *lane, uint32_t slot)
{
	return (uint64_t)lane->generation << 32 | lane->node << 8 | slot;
}

static int lane_post(struct client_lane *lane, const struct client_op *op)
{
	static const enum ibv_wr_opcode opcodes[] = {
		[CLIENT_READ] = IBV_WR_RDMA_READ,
		[CLIENT_WRITE] = IBV_WR_RDMA_WRITE,
		[CLIENT_CAS] = IBV_WR_ATOMIC_CMP_AND_SWP,
		[CLIENT_FAA] = IBV_WR_ATOMIC_FETCH_AND_ADD,
	};
	struct client_thread *t = lane->thread;
	struct ibv_sge sge = {
		.addr = (uintptr_t)t->staging +
			(uint64_t)op->slot * CLIENT_SLOT_BYTES,
		.length = op->len_bytes,
		.lkey = t->mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id_of(lane, op->slot),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcodes[op->kind],
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_send_wr *bad;
	int err;

	if (op->kind == CLIENT_READ || op->kind == CLIENT_WRITE) {
		wr.wr.rdma.remote_addr = op->remote_addr;
		wr.wr.rdma.rkey = op->rkey;
	} else {
		wr.wr.atomic.remote_addr = op->remote_addr;
		wr.wr.atomic.rkey = op->rkey;
		wr.wr.atomic.compare_add = op->compare_add;
		wr.wr.atomic.swap = op->swap;
	}
	err = ibv_post_send(lane->qp, &wr, &bad);
	return err ? error_set(-err, "the NIC refused a request") : 0;
}

static int thread_poll(struct client_thread *t, struct client_done *done,
		       unsigned max)
{
	struct ibv_wc wc[CLIENT_SLOT_COUNT];
	int i, count = 0;
	int n = ibv_poll_cq(t->cq, (int)u32_min(max, CLIENT_SLOT_COUNT), wc);

	if (n < 0)
		return error_set(-EIO, "the completion queue cannot be polled");
	for (i = 0; i < n; i++) {
		uint32_t node = wc[i].wr_id >> 8 & 0xff;
		struct client_lane *lane = &t->lane[node % CLIENT_NODE_MAX];

		if (!lane->is_open || lane->generation != wc[i].wr_id >> 32)
			continue;
		done[count].slot = wc[i].wr_id & 0xff;
		done[count++].err = client_wc_errno(wc[i].status);
	}
	return count;
}

const struct client_transport *client_transport_verbs(void)
{
	static const struct client_transport self = {
		.now_ns = verbs_now_ns,
		.relax = verbs_relax,
		.thread_open = thread_open,
		.thread_close = thread_close,
		.lane_open = lane_open,
		.lane_close = lane_close,
		.post = lane_post,
		.poll = thread_poll,
		.rack_close = close_device,
	};

	return &self;
}
