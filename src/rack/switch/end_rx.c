/* SPDX-License-Identifier: Apache-2.0 */
/* An end of the switch that is asked: what comes next, and what is said. */
#include "end_rx.h"

#include <string.h>

void end_rx_hear(struct end_rx *r, const struct wire_pkt *w, uint32_t qpn)
{
	memcpy(r->header.src_ip, w->dst_ip, sizeof(w->dst_ip));
	memcpy(r->header.dst_ip, w->src_ip, sizeof(w->src_ip));
	memcpy(r->header.src_mac, w->dst_mac, sizeof(w->dst_mac));
	memcpy(r->header.dst_mac, w->src_mac, sizeof(w->src_mac));
	r->header.tos = w->tos;
	r->header.ttl = w->ttl;
	r->header.ip_id = w->ip_id;
	r->header.src_port = w->src_port;
	r->header.mig_req = w->mig_req;
	r->header.pkey = w->pkey;
	r->header.dest_qpn = qpn;
}

/* ---- answers ------------------------------------------------------------- */

struct wire_pkt end_rx_packet(const struct end_rx *r, uint8_t opcode,
			      uint32_t psn, uint32_t msn, uint8_t syndrome)
{
	struct wire_pkt w = r->header;

	w.opcode = opcode;
	w.psn = psn;
	w.msn = msn;
	w.syndrome = syndrome;
	w.ack_req = w.solicited = false;
	w.pad = 0;
	w.payload = NULL;
	w.payload_len = 0;
	return w;
}

void end_rx_say(const struct end_rx *r, const struct wire_pkt *w)
{
	if (r->is_guise)
		tor_emit(r->self, NULL, w);
	else
		tor_emit_end(r->self, NULL, w);
}

void end_rx_ack(const struct end_rx *r, uint32_t psn, uint32_t msn,
		uint8_t syndrome)
{
	struct wire_pkt w = end_rx_packet(r, WIRE_RC_ACK, psn, msn, syndrome);

	if (r->naks && !wire_syndrome_is_ack(syndrome))
		++*r->naks;
	end_rx_say(r, &w);
}

void end_rx_data(const struct end_rx *r, uint32_t psn, uint32_t msn,
		 const uint8_t *bytes, uint32_t len_bytes, uint32_t mtu)
{
	struct wire_pkt w = end_rx_packet(r, WIRE_RC_READ_RESP_ONLY, psn, msn,
					  WIRE_ACK_UNLIMITED);
	uint32_t at = 0;

	do {
		uint32_t n = u32_min(mtu, len_bytes - at);
		bool is_first = at == 0, is_last = at + n == len_bytes;

		if (is_first && is_last)
			w.opcode = WIRE_RC_READ_RESP_ONLY;
		else if (is_first)
			w.opcode = WIRE_RC_READ_RESP_FIRST;
		else if (is_last)
			w.opcode = WIRE_RC_READ_RESP_LAST;
		else
			w.opcode = WIRE_RC_READ_RESP_MIDDLE;
		w.payload = bytes + at;
		w.payload_len = n;
		end_rx_say(r, &w);
		w.psn = wire_psn_add(w.psn, 1);
		at += n;
	} while (at < len_bytes);
}

/* ---- what comes next ----------------------------------------------------- */

void end_rx_gap(struct end_rx *r)
{
	if (r->incomplete) {
		r->refused = true;
		r->refused_psn = r->next_psn;
	} else if (!r->asked) {
		r->asked = true;
		end_rx_ack(r, r->next_psn, r->next_msn, WIRE_NAK_PSN);
	}
}

void end_rx_take(struct end_rx *r, uint32_t packets, bool is_whole)
{
	r->next_psn = wire_psn_add(r->next_psn, packets);
	r->next_msn = (r->next_msn + is_whole) & 0xffffff;
	r->asked = false;
	if (r->refused && wire_psn_diff(r->refused_psn, r->next_psn) < 0)
		r->refused = false;
}

void end_rx_refuse(struct end_rx *r, uint32_t psn)
{
	if (r->refused && wire_psn_diff(psn, r->refused_psn) >= 0)
		return;
	r->refused = true;
	r->refused_psn = psn;
}

void end_rx_invite(struct end_rx *r)
{
	if (r->refused && !r->incomplete)
		end_rx_ack(r, r->next_psn, r->next_msn, WIRE_NAK_PSN);
	r->refused = false;
}

void end_rx_done(struct end_rx *r, uint32_t psn, uint32_t msn)
{
	r->incomplete--;
	if (!r->refused || r->incomplete)
		return;
	r->refused = false;
	/* What is missing must be the next one. */
	if (r->refused_psn == wire_psn_add(psn, 1))
		end_rx_ack(r, r->refused_psn, msn, WIRE_NAK_PSN);
}

/* ---- messages of several packets ----------------------------------------- */

static void open_message(struct end_rx_message *m, const struct wire_pkt *w)
{
	m->is_open = true;
	m->kind = wire_opcodes[w->opcode].kind;
	m->got_bytes = 0;
	m->len_bytes = w->dma_len;
	m->rkey = w->rkey;
	m->va = w->va;
}

enum end_rx_part end_rx_part(struct end_rx_message *m, const struct wire_pkt *w,
			     uint32_t mtu, uint32_t max_bytes)
{
	const struct wire_opcode *op = &wire_opcodes[w->opcode];
	bool is_first = op->flags & WIRE_OP_FIRST;
	bool is_last = op->flags & WIRE_OP_LAST;

	if ((op->kind != WIRE_SEND && op->kind != WIRE_WRITE) ||
	    op->flags & (WIRE_OP_IMM | WIRE_OP_INV) || is_first == m->is_open)
		return END_RX_WRONG;
	if (is_first)
		open_message(m, w);
	if (m->kind != op->kind || w->payload_len > mtu ||
	    (!is_last && w->payload_len != mtu) ||
	    w->payload_len > max_bytes - m->got_bytes)
		return END_RX_WRONG;
	if (w->payload_len)
		memcpy(m->bytes + m->got_bytes, w->payload, w->payload_len);
	m->got_bytes += w->payload_len;
	if (!is_last)
		return END_RX_PART;
	m->is_open = false;
	return m->kind == WIRE_WRITE && m->got_bytes != m->len_bytes
		       ? END_RX_WRONG
		       : END_RX_WHOLE;
}
