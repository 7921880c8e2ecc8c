/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What responders did, as they say themselves, and what requesters may report
 * of it:
 *
 * - A packet of a request is executed once, in order, and never behind one that
 *   was refused.
 * - Success: all packets of the request were executed; those of a READ or walk,
 *   also answered.
 * - A remote error: the peer refused a packet of this very request, for this
 *   reason, so the request as a whole was not executed.
 * - No receive was there: the last packet was not executed.
 * - Out of retries: any fate, but a connection is lost for a reason. The peer
 *   failed by itself or crashed, or the way was cut, or since the request was
 *   posted a frame of the connection was lost, damaged or late. When the peer
 *   has refused one of our requests it has sent all that it will ever send, so
 *   that frame was one of its own.
 * - Flushed: any fate, but the queue pair failed for a reason: an earlier
 * error, the client's will, or a request of the peer that it refused.
 */
#include <string.h>

#include "verbs_priv.h"
#include "wire/wire.h"

enum {
	/* Simulated hosts speak IPv4. */
	QPN_AT = WIRE_ETH_BYTES + WIRE_IP4_BYTES + WIRE_UDP_BYTES + 5,
	DST_IP_AT = WIRE_ETH_BYTES + 16,
};

/* ---- deeds --------------------------------------------------------------- */

static void note_answer(struct vs_ep *to, uint32_t at)
{
	/* Late copies of what is complete are in no queue any more. */
	for (uint32_t i = to->sq_head; i != to->sq_tail; i++) {
		struct vs_op *op = to->sq[i % VS_SQ_MAX];

		if ((op->kind == VS_READ || op->kind == VS_WALK) &&
		    at - op->at < op->packets) {
			op->answered += at - op->at == op->answered;
			return;
		}
	}
}

void vs_record_saw(void *ctx, const struct nic_deed *deed)
{
	struct vs_node *node = ctx;
	struct vs *vs = node->vs;
	struct vs_ep *ep = vs_find_ep(node, deed->qpn);
	struct vs_record *rec;
	uint32_t at;

	if (!ep) {
		vs_fail(vs, "node %u: queue pair %u serves nobody", node->index,
			deed->qpn);
		return;
	}
	rec = &ep->rec;
	at = (deed->psn - rec->first_psn) & WIRE_PSN_MASK;
	switch (deed->kind) {
	case NIC_DEED_EXECUTED:
		if (rec->refused)
			vs_fail(vs,
				"%s: packet %u was executed after a refusal",
				ep->name, at);
		else if (at != rec->executed)
			vs_fail(vs,
				"%s: packet %u was executed twice or too soon",
				ep->name, at);
		rec->executed = at + deed->packets;
		vs->n->executed++;
		break;
	case NIC_DEED_READ:
		note_answer(ep->peer, at);
		break;
	case NIC_DEED_REFUSED:
		/* A READ that cannot be answered is refused after all; here no
		 * region goes while it is used. */
		if (rec->refused || at != rec->executed)
			vs_fail(vs,
				"%s: packet %u was refused, but not the next",
				ep->name, at);
		rec->refused = true;
		rec->refused_at = at;
		rec->syndrome = deed->syndrome;
		vs->n->refused++;
		break;
	}
}

void vs_record_harm(void *ctx, const uint8_t *frame, size_t len_bytes)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};
	struct vs_node *node;
	struct vs_ep *ep;

	if (len_bytes < QPN_AT + 3)
		return;
	memcpy(ip + 12, frame + DST_IP_AT, 4);
	node = vs_wire_node(ctx, ip);
	ep = node ? vs_find_ep(node, (uint32_t)frame[QPN_AT] << 16 |
					     (uint32_t)frame[QPN_AT + 1] << 8 |
					     frame[QPN_AT + 2])
		  : NULL;
	if (ep)
		ep->harmed++;
}

/* ---- requests ------------------------------------------------------------ */

void vs_record_begin(struct vs_ep *ep)
{
	ep->rec = (struct vs_record){.first_psn = ep->peer->psn};
	ep->next_at = 0;
}

void vs_record_post(struct vs_ep *ep, struct vs_op *op)
{
	uint32_t mtu = 128u << ep->s->mtu;

	op->at = ep->next_at;
	op->harmed = ep->harmed;
	op->peer_harmed = ep->peer->harmed;
	/* What is done or fails at home has no packets. */
	if (op->kind == VS_BIND || op->expect == VS_LOCAL_PROTECTION)
		return;
	op->packets = op->len > mtu ? (op->len + mtu - 1) / mtu : 1;
	ep->next_at += op->packets;
}

static void check_success(struct vs_ep *ep, const struct vs_op *op)
{
	const struct vs_record *rec = &ep->peer->rec;

	if (!op->packets)
		return;
	if (rec->executed < op->at + op->packets)
		vs_fail(ep->s->vs,
			"%s: request %lu succeeded, but its peer executed %u "
			"packets of %u",
			ep->name, op->id,
			rec->executed > op->at ? rec->executed - op->at : 0,
			op->packets);
	else if ((op->kind == VS_READ || op->kind == VS_WALK) &&
		 op->answered < op->packets)
		vs_fail(ep->s->vs,
			"%s: request %lu succeeded, but its peer answered %u "
			"packets of %u",
			ep->name, op->id, op->answered, op->packets);
}

static void check_refused(struct vs_ep *ep, const struct vs_op *op,
			  uint8_t syndrome)
{
	const struct vs_record *rec = &ep->peer->rec;

	if (!rec->refused || rec->refused_at - op->at >= op->packets ||
	    rec->syndrome != syndrome)
		vs_fail(ep->s->vs,
			"%s: request %lu ended as refused (%#x), but its peer "
			"did not",
			ep->name, op->id, syndrome);
}

void vs_record_check(struct vs_ep *ep, const struct vs_op *op,
		     enum ibv_wc_status status)
{
	if (status == IBV_WC_SUCCESS)
		check_success(ep, op);
	else if (status == IBV_WC_REM_ACCESS_ERR)
		check_refused(ep, op, WIRE_NAK_ACCESS);
	else if (status == IBV_WC_REM_INV_REQ_ERR)
		check_refused(ep, op, WIRE_NAK_INVALID);
	else if (status == IBV_WC_REM_OP_ERR)
		check_refused(ep, op, WIRE_NAK_OP);
	else if (status == IBV_WC_RNR_RETRY_EXC_ERR &&
		 ep->peer->rec.executed >= op->at + op->packets)
		vs_fail(ep->s->vs,
			"%s: request %lu found no receive, but was executed",
			ep->name, op->id);
}

void vs_record_explain(struct vs_ep *ep)
{
	const struct vs_ep *peer = ep->peer;
	struct vs *vs = ep->s->vs;

	/* What we put into error ourselves flushes; before that, something
	 * must have happened. */
	if (ep->flush_seen && !ep->failed_cause && !ep->rec.refused)
		vs_fail(vs, "%s: requests were flushed without a cause",
			ep->name);
	/* Another switch may lose what no tap sees. */
	if (!ep->gave_up || vs->tor || ep->s->was_cut || peer->failed_cause ||
	    peer->broke || peer->node->crashed)
		return;
	if (peer->rec.refused && ep->gave_up_whole)
		vs_fail(vs,
			"%s: out of retries, but the peer answered and refused "
			"(packet %u), and nothing of it was lost",
			ep->name, peer->rec.refused_at);
	else if (ep->gave_up_clean)
		vs_fail(vs, "%s: out of retries, but nothing was lost",
			ep->name);
}
