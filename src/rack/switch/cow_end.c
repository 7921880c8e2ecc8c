/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of a session's ends: what each asks, and where its answer goes. */
#include "cow.h"

#include <errno.h>
#include <string.h>

#include "base/plant.h"

enum {
	GREEN_AT = offsetof(struct offload_preamble, green),
	STATE_AT = offsetof(struct offload_preamble, state),
	RED_AT = offsetof(struct offload_preamble, red),
};

STATIC_ASSERT(COW_C_end_dead - COW_C_coalesced == END_TX_C_dead &&
		      COW_C_end_naks - COW_C_coalesced == END_TX_C_naks,
	      "the counters of an end, in its order");

static struct cow_out *out_at(struct cow_end *e, uint32_t psn)
{
	return &e->out[psn % END_TX_WINDOW];
}

struct cow_out *cow_out_next(struct cow_end *e, enum cow_what what)
{
	struct cow_out *o = out_at(e, e->tx.next_psn);

	*o = (struct cow_out){.what = (uint8_t)what};
	return o;
}

void cow_out_send(struct cow_end *e, uint8_t opcode, uint32_t len_bytes)
{
	out_at(e, e->tx.next_psn)->len_bytes = len_bytes;
	if (e == e->session->ring && opcode == WIRE_RC_WRITE_ONLY) {
		cow_count(e->session->cow, COW_C_app_writes, 1);
		cow_count(e->session->cow, COW_C_app_bytes, len_bytes);
	}
	end_tx_send(&e->tx, opcode, len_bytes);
}

void cow_end_prefetch(const struct cow_end *e)
{
	const struct cow_out *o = &e->out[e->tx.next_psn % END_TX_WINDOW];

	end_tx_prefetch(&e->tx);
	PREFETCH_RW(&e->at);
	PREFETCH_RW(o);
	PREFETCH_RW((const uint8_t *)(o + 1) - 1);
}

bool cow_end_has_room(const struct cow_end *e, bool is_read)
{
	uint32_t used = (uint32_t)wire_psn_diff(e->tx.next_psn, e->tx.una_psn);

	return !e->tx.dead && used + e->promised < END_TX_WINDOW &&
	       (!is_read || e->tx.answers < e->reads);
}

/* ---- what a packet asks ---------------------------------------------------
 */

static void put_payload(struct cow_session *s, struct wire_pkt *w,
			const struct cow_out *o, const void *bytes)
{
	memcpy(s->bytes, bytes, o->len_bytes);
	w->payload = s->bytes;
	w->payload_len = o->len_bytes;
}

/* At the application: everything but parts. */
static uint64_t ring_at(struct cow_session *s, const struct cow_out *o,
			struct wire_pkt *w)
{
	struct offload_state state = {.epoch = s->epoch,
				      .err = (uint32_t)-s->err};
	struct offload_red red;

	switch ((enum cow_what)o->what) {
	case COW_GREEN:
		return GREEN_AT;
	case COW_SHOWN:
	case COW_METAS:
		return s->map.meta_at +
		       (o->pos & s->map.mask) * sizeof(struct offload_meta);
	case COW_STATUS:
		put_payload(s, w, o, &cow_slot(s, o->pos)->err);
		return s->map.status_at + (o->pos & s->map.mask);
	case COW_RED:
		cow_red_build(s, o->which, &red);
		put_payload(s, w, o, (uint8_t *)&red + cow_red_skip(s));
		return RED_AT + cow_red_skip(s);
	case COW_STATE:
		put_payload(s, w, o, &state);
		return STATE_AT;
	case COW_PREAMBLE:
	case COW_SOURCE:
	case COW_PART:
		break;
	}
	return 0;
}

static const uint8_t zeros[WIRE_MTU_MAX];

static bool describe(struct end_tx *tx, uint32_t psn, struct wire_pkt *w)
{
	struct cow_end *e = cow_end_of(tx);
	struct cow_session *s = e->session;
	const struct cow_out *o = out_at(e, psn);
	bool is_part = o->what == COW_SOURCE || o->what == COW_PART;
	bool is_here = s->payload_end == e && s->payload_psn == psn;

	w->dma_len = o->len_bytes;
	w->rkey = is_part ? o->rkey : s->ring_rkey;
	w->va = is_part ? o->va : s->ring_addr + ring_at(s, o, w);
	if (o->what != COW_PART)
		return true;
	if (!is_here && !PLANTED(other_bytes)) {
		cow_read_again(e, psn);
		return false;
	}
	w->payload = is_here ? s->payload : zeros;
	w->payload_len = o->len_bytes;
	return true;
}

/* ---- what its answer means ------------------------------------------------
 */

static void executed(struct end_tx *tx, uint32_t psn, const struct wire_pkt *w)
{
	struct cow_end *e = cow_end_of(tx);
	struct cow_session *s = e->session;
	/* Its place may be taken while it is handled. */
	struct cow_out o = *out_at(e, psn);

	if (s->state == COW_BROKEN)
		return;
	switch ((enum cow_what)o.what) {
	case COW_PREAMBLE:
		cow_preamble_came(s, w->payload);
		break;
	case COW_GREEN:
		cow_green_came(s, w->payload);
		break;
	case COW_SHOWN:
	case COW_METAS:
		cow_metas_came(s, &o, w->payload);
		break;
	case COW_SOURCE:
		cow_source_came(e, &o, w->payload);
		break;
	case COW_PART:
		cow_part_done(e, &o);
		break;
	case COW_RED:
		cow_red_told(s, o.which);
		break;
	case COW_STATUS:
	case COW_STATE:
		break;
	}
}

static void lost(struct end_tx *tx)
{
	struct cow_end *e = cow_end_of(tx);

	cow_session_break(e->session,
			  e == e->session->ring ? -ECONNRESET : -EHOSTDOWN);
}

static bool push(struct end_tx *tx)
{
	cow_session_run_soon(cow_end_of(tx)->session);
	return false;
}

void cow_end_stop(struct cow_end *e)
{
	tor_end_remove(&e->at);
	end_tx_stop(&e->tx);
}

int cow_end_init(struct cow_end *e, struct cow_session *s)
{
	static const struct end_tx_ops ops = {
		.describe = describe,
		.executed = executed,
		.lost = lost,
		.push = push,
	};

	e->session = s;
	e->tx.rto_ns = s->cow->opt.rto_ns;
	e->tx.patience_ns = s->patience_ns;
	end_tx_init(&e->tx, s->cow->self, &ops, &s->cow->c[COW_C_coalesced]);
	e->at.self = s->cow->self;
	e->at.packet = cow_end_packet;
	e->at.peer_qpn = e->tx.qpn;
	memcpy(e->at.own_ip, e->tx.header.src_ip, 16);
	memcpy(e->at.peer_ip, e->tx.header.dst_ip, 16);
	return tor_end_add(&e->at);
}
