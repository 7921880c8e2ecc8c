/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a queue pair of this process to one of a node, through the node's HTTP
 * interface. Whose queue pair it is, lane or link, does not matter here. */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/config.h"
#include "base/error.h"
#include "client_priv.h"

enum {
	PORT = 1,
	HOP_LIMIT = 64,
	/* 4.096 us * 2^16 = 268 ms, eight times: a node that is only starved
	 * of CPU is not given up; a dead one is reported by the heartbeat. */
	ACK_TIMEOUT = 16,
	ACK_TIMEOUT_MAX = 31,
	RETRY_COUNT = 7,
	RNR_TIMER = 12,
	PSN_MASK = 0xffffff,
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

static bool has_cap(const json_t *reply, const char *name)
{
	const json_t *cap;
	size_t i;

	json_array_foreach(json_object_get(reply, "caps"), i, cap)
	{
		const char *s = json_string_value(cap);

		if (s && strcmp(s, name) == 0)
			return true;
	}
	return false;
}

static int parse_far(const json_t *reply, struct client_bond *bond,
		     struct client_far *far)
{
	uint64_t qpn, psn, mtu, rd_atomic, beat_ms, timeout = ACK_TIMEOUT;
	int err = parse_gid(reply, &far->gid);

	if (!err)
		err = client_json_word(reply, "connection", bond->id,
				       sizeof(bond->id));
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
	/* Only from nodes that know of patience. */
	if (!err && json_object_get(reply, "ack_timeout"))
		err = client_json_u64(reply, "ack_timeout", ACK_TIMEOUT_MAX,
				      &timeout);
	if (err)
		return err;
	far->qpn = (uint32_t)qpn;
	far->psn = (uint32_t)psn;
	far->mtu = mtu_code(mtu);
	far->rd_atomic = (uint8_t)rd_atomic;
	/* Zero would be for ever. */
	far->ack_timeout = (uint8_t)u64_max(timeout, ACK_TIMEOUT);
	far->beat_ms = u32_max((uint32_t)beat_ms, 10);
	far->has_masked_atomics = has_cap(reply, "masked_atomics");
	return 0;
}

static int ask(struct client_thread *t, struct ibv_qp *qp, uint32_t psn,
	       uint32_t rd_atomic, json_t *more, uint64_t deadline_ns,
	       struct client_bond *bond, struct client_far *far)
{
	struct aq_rack *rack = t->rack;
	char gid_text[33], who[32];
	union ibv_gid gid;
	json_t *reply = NULL, *body;
	unsigned i;
	int err;

	if (rack->verbs->query_gid(rack->context, PORT, rack->verbs->gid_index,
				   &gid))
		return error_set(-ENODEV, "the NIC has no RoCEv2 address");
	for (i = 0; i < 16; i++)
		snprintf(gid_text + 2 * i, 3, "%02x", gid.raw[i]);
	snprintf(who, sizeof(who), "%.31s", program_invocation_short_name);
	body = json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:[], s:s}",
			 "proto", "1.0", "gid", gid_text, "qpn",
			 (int)qp->qp_num, "psn", (int)psn, "mtu",
			 client_verbs_mtu(rack->verbs, rack->context),
			 "rd_atomic", (int)rd_atomic, "access", "rw", "caps",
			 "client", who);
	client_auth_offer(rack->verbs, body);
	if (more)
		(void)json_object_update(body, more);
	err = client_thread_call(t, bond->node, "POST", "/v1/connect", body,
				 deadline_ns, &reply);
	if (!err)
		err = parse_far(reply, bond, far);
	if (!err)
		err = client_auth_parse(rack, reply, "node", &far->auth);
	json_decref(reply);
	return err;
}

static int start(const struct client_verbs *v, struct ibv_qp *qp,
		 const struct client_far *far, uint32_t psn, uint32_t rd_atomic)
{
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
		.timeout = far->ack_timeout,
		.retry_cnt = RETRY_COUNT,
		.rnr_retry = RETRY_COUNT,
		.max_rd_atomic = (uint8_t)u32_min(far->rd_atomic, rd_atomic),
	};
	int err;

	err = v->modify_qp(qp, &rtr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER);
	if (!err)
		err = v->modify_qp(qp, &rts,
				   IBV_QP_STATE | IBV_QP_SQ_PSN |
					   IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
					   IBV_QP_RNR_RETRY |
					   IBV_QP_MAX_QP_RD_ATOMIC);
	return err ? error_set(-err, "the queue pair cannot be connected") : 0;
}

int client_join_init(const struct client_verbs *v, struct ibv_qp *qp,
		     unsigned access)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
				   .port_num = PORT,
				   .qp_access_flags = access};
	int err = v->modify_qp(qp, &init,
			       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				       IBV_QP_ACCESS_FLAGS);

	return err ? error_set(-err, "the queue pair cannot be set up") : 0;
}

int client_join(struct client_thread *t, struct ibv_qp *qp, uint32_t rd_atomic,
		json_t *more, bool beats, uint64_t deadline_ns,
		struct client_bond *bond, struct client_far *far)
{
	uint32_t psn;
	int err;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return error_set(-EIO, "the kernel gives no random numbers");
	psn &= PSN_MASK;
	err = ask(t, qp, psn, rd_atomic, more, deadline_ns, bond, far);
	if (!err)
		err = client_auth_use(t->rack->verbs, qp, &far->auth);
	if (!err)
		err = start(t->rack->verbs, qp, far, psn, rd_atomic);
	if (!err && beats)
		err = client_bond_add(t->rack, bond, far->beat_ms);
	return err;
}

void client_join_end(struct client_thread *t, struct client_bond *bond)
{
	char path[CLIENT_PATH_MAX];

	/* A node that has forgotten us need not be told; it would find out by
	 * itself anyway, but later. */
	if (bond->id[0] && !client_bond_is_lost(bond)) {
		snprintf(path, sizeof(path), "/v1/connections/%s", bond->id);
		client_thread_tell(t, bond->node, "DELETE", path,
				   client_rack_now_ns(t->rack) +
					   CLIENT_BEAT_TIMEOUT_MS * 1000000ull);
	}
	bond->id[0] = '\0';
}
