/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections whose packets carry a MAC, where they go over a network: nobody
 * without the key can add a packet, change one, or send an old one again.
 *
 * A packet number has 24 bits and comes back. The MAC is over 64: the ends
 * count how often it did. Requests and responses have numbers of their own, and
 * each direction has a key of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth_priv.h"
#include "base/siphash.h"
#include "qp_priv.h"

enum auth_kind {
	AUTH_REQUEST,
	AUTH_RESPONSE,
	AUTH_KINDS,
};

struct auth_way {
	struct siphash_key key;
	uint64_t newest[AUTH_KINDS]; /* number that was sent, or believed */
};

struct nic_auth {
	uint8_t key[NIC_AUTH_KEY_BYTES];
	bool on; /* the way is a network */
	struct auth_way tx, rx;
	uint8_t payload[WIRE_MTU_MAX]; /* what was checked is what is used */
};

/* ---- life --------------------------------------------------------------- */

int nic_qp_set_auth(struct nic_qp *qp, const uint8_t *key, size_t len_bytes)
{
	if (qp->type != IBV_QPT_RC || len_bytes != NIC_AUTH_KEY_BYTES ||
	    (qp->state != IBV_QPS_RESET && qp->state != IBV_QPS_INIT))
		return -EINVAL;
	if (!qp->auth)
		qp->auth = calloc(1, sizeof(*qp->auth));
	if (!qp->auth)
		return -ENOMEM;
	memcpy(qp->auth->key, key, len_bytes);
	return 0;
}

/* The numbers of the next connection start anew, so its key must be new. */
void auth_forget(struct nic_qp *qp)
{
	if (qp->auth)
		explicit_bzero(qp->auth, sizeof(*qp->auth));
	free(qp->auth);
	qp->auth = NULL;
	qp->out.has_mac = false;
}

bool auth_is_on(const struct nic_qp *qp)
{
	return qp->auth && qp->auth->on;
}

/* One of the two ends, the same one for both, has the first half of the key. */
static bool is_first(const struct nic_qp *qp)
{
	int order = memcmp(qp->out.src_ip, qp->out.dst_ip, 16);

	return order < 0 || (order == 0 && qp->qpn < qp->dest_qpn);
}

/* In the second round: what comes before it is not below zero. */
static uint64_t first_number(uint32_t psn)
{
	return (uint64_t)psn + WIRE_PSN_MASK + 1;
}

void auth_start(struct nic_qp *qp, int mask)
{
	struct nic_auth *a = qp->auth;
	unsigned own = is_first(qp) ? 0 : SIPHASH_KEY_BYTES;

	STATIC_ASSERT(NIC_AUTH_KEY_BYTES == 2 * SIPHASH_KEY_BYTES,
		      "a half each");
	a->on = qp->from == NIC_FROM_NET;
	qp->out.has_mac = a->on;
	a->tx.key = siphash_key(a->key + own);
	a->rx.key = siphash_key(a->key + SIPHASH_KEY_BYTES - own);
	if (mask & IBV_QP_RQ_PSN)
		a->rx.newest[AUTH_REQUEST] = a->tx.newest[AUTH_RESPONSE] =
			first_number(qp->rsp.epsn);
	if (mask & IBV_QP_SQ_PSN)
		a->tx.newest[AUTH_REQUEST] = a->rx.newest[AUTH_RESPONSE] =
			first_number(qp->req.next_psn);
}

/* ---- packets ------------------------------------------------------------ */

static enum auth_kind kind_of(const struct wire_pkt *pkt)
{
	return wire_opcodes[pkt->opcode].flags & WIRE_OP_RESPONSE
		       ? AUTH_RESPONSE
		       : AUTH_REQUEST;
}

/* The number that the 24 bits stand for: the nearest to the newest. No more
 * than half of the circle is ever under way. */
static uint64_t number_of(const struct auth_way *way,
			  const struct wire_pkt *pkt)
{
	uint64_t newest = way->newest[kind_of(pkt)];

	return newest + (uint64_t)(int64_t)wire_psn_diff(
				pkt->psn, (uint32_t)newest & WIRE_PSN_MASK);
}

static void learn_number(struct auth_way *way, const struct wire_pkt *pkt,
			 uint64_t number)
{
	uint64_t *newest = &way->newest[kind_of(pkt)];

	*newest = u64_max(*newest, number);
}

static uint64_t mac_of(const struct siphash_key *key,
		       const struct wire_pkt *pkt, uint64_t number,
		       const uint8_t *payload)
{
	uint8_t head[WIRE_MAC_HEAD_MAX];
	size_t head_bytes = wire_mac_head(pkt, number, head);

	return siphash(key, head, head_bytes, payload, pkt->payload_len);
}

void auth_sign(struct nic_qp *qp, const uint8_t *frame)
{
	struct auth_way *tx = &qp->auth->tx;
	struct wire_pkt *out = &qp->out;
	const uint8_t *payload = out->payload;
	uint64_t number = number_of(tx, out);

	if (!payload)
		payload = frame + wire_header_bytes(out->opcode,
						    wire_is_ipv4(out->dst_ip));
	out->mac = mac_of(&tx->key, out, number, payload);
	learn_number(tx, out, number);
}

bool auth_check(struct nic_qp *qp, struct wire_pkt *pkt)
{
	struct nic_auth *a = qp->auth;
	uint64_t number = number_of(&a->rx, pkt);

	/* The frame may lie where somebody else can still write. */
	memcpy(a->payload, pkt->payload, pkt->payload_len);
	pkt->payload = a->payload;
	if (mac_of(&a->rx.key, pkt, number, a->payload) != pkt->mac)
		return false;
	learn_number(&a->rx, pkt, number);
	return true;
}
