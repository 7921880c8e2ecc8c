/* SPDX-License-Identifier: Apache-2.0 */
/* Joins a queue pair of this process to one of a node, through the node's HTTP
 * interface. Whose queue pair it is, connection or link, does not matter
 * here. */
#include <aquifer/aqdv.h>
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hex.h"
#include "client_priv.h"
#include "pair/pair.h"
#include "reach.h"

enum {
	/* 4.096 us * 2^16 = 268 ms, eight times: a node that is only starved
	 * of CPU is not given up; a dead one is reported by the heartbeat. */
	ACK_TIMEOUT = 16,
	ACK_TIMEOUT_MAX = 31,
};

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
	uint64_t qpn, psn, mtu, rd_atomic, heartbeat_ms, timeout = ACK_TIMEOUT;
	int err;

	if (!hex_read(json_string_value(json_object_get(reply, "gid")),
		      far->gid.raw, sizeof(far->gid.raw)))
		return error_set(-EPROTO,
				 "the node's answer has no usable 'gid'");
	err = client_json_word(reply, "connection", bond->id, sizeof(bond->id));
	if (!err)
		err = client_json_u64(reply, "qpn", PAIR_PSN_MASK, &qpn);
	if (!err)
		err = client_json_u64(reply, "psn", PAIR_PSN_MASK, &psn);
	if (!err)
		err = client_json_u64(reply, "mtu", 4096, &mtu);
	if (!err)
		err = client_json_u64(reply, "rd_atomic", 128, &rd_atomic);
	if (!err)
		err = client_json_u64(reply, "heartbeat_ms", 60000,
				      &heartbeat_ms);
	/* Only from nodes that know of patience. */
	if (!err && json_object_get(reply, "ack_timeout"))
		err = client_json_u64(reply, "ack_timeout", ACK_TIMEOUT_MAX,
				      &timeout);
	if (err)
		return err;
	far->qpn = (uint32_t)qpn;
	far->psn = (uint32_t)psn;
	far->mtu = pair_mtu(mtu);
	far->rd_atomic = (uint8_t)rd_atomic;
	/* Zero would be for ever. */
	far->ack_timeout = (uint8_t)u64_max(timeout, ACK_TIMEOUT);
	far->heartbeat_ms = u32_max((uint32_t)heartbeat_ms, 10);
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
	int err;

	if (rack->verbs->query_gid(rack->context, PAIR_PORT,
				   rack->verbs->gid_index, &gid))
		return error_set(-ENODEV, "the NIC has no RoCEv2 address");
	hex_write(gid_text, gid.raw, sizeof(gid.raw));
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
	const struct pair_end end = {
		.gid = far->gid,
		.gid_index = (uint8_t)v->gid_index,
		.qpn = far->qpn,
		.psn = far->psn,
		.own_psn = psn,
		.mtu = far->mtu,
		.reads_in = 1,
		.reads_out = (uint8_t)u32_min(far->rd_atomic, rd_atomic),
		.timeout = far->ack_timeout,
		.retries = PAIR_RETRIES,
		.rnr_timer = PAIR_RNR_TIMER,
	};
	int err = pair_connect(v->modify_qp, qp, &end);

	return err ? error_set(err, "the queue pair cannot be connected") : 0;
}

int client_join_init(const struct client_verbs *v, struct ibv_qp *qp,
		     unsigned access)
{
	int err = pair_init(v->modify_qp, qp, access);

	return err ? error_set(err, "the queue pair cannot be set up") : 0;
}

int client_join(struct client_thread *t, struct ibv_qp *qp, uint32_t rd_atomic,
		json_t *more, bool has_heartbeat, uint64_t deadline_ns,
		struct client_bond *bond, struct client_far *far)
{
	uint32_t psn;
	int err = pair_psn(&psn);

	if (err)
		return error_set(err, "the kernel gives no random numbers");
	err = ask(t, qp, psn, rd_atomic, more, deadline_ns, bond, far);
	if (!err)
		err = client_auth_use(t->rack->verbs, qp, &far->auth);
	if (!err)
		err = start(t->rack->verbs, qp, far, psn, rd_atomic);
	if (!err && has_heartbeat)
		err = client_bond_add(t->rack, bond, far->heartbeat_ms);
	return err;
}

void client_join_peer(const struct aq_rack *rack, const struct client_far *far,
		      char peer[CLIENT_PEER_MAX])
{
	static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
	bool is_v4 = memcmp(far->gid.raw, v4, sizeof(v4)) == 0;

	if (!client_reach_is_udp(rack) ||
	    !inet_ntop(is_v4 ? AF_INET : AF_INET6, far->gid.raw + 12 * is_v4,
		       peer, CLIENT_PEER_MAX))
		peer[0] = '\0';
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
					   CLIENT_HEARTBEAT_TIMEOUT_MS *
						   1000000ull);
	}
	bond->id[0] = '\0';
}
