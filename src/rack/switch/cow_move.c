/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests, and the parts that they are moved in: READ where the bytes are, and
 * the answer is the WRITE where they go. A part is one packet. The application
 * is not trusted: every request is checked before anything is sent for it.
 */
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "cow.h"

bool cow_request_take(struct cow_session *s, uint64_t pos,
		      const struct offload_meta *m)
{
	int kind = offload_request_kind(m), bad;
	struct cow_request *r = cow_slot(s, pos);

	if (kind < 0)
		return false;
	bad = offload_request_check(m, &s->map, s->region, s->region_count);
	if (!bad)
		bad = -s->region[m->region].err;
	*r = (struct cow_request){
		.pos = pos,
		.far = kind == OFFLOAD_WR ? m->resp_addr : m->req_addr,
		.near = (uint32_t)(kind == OFFLOAD_WR ? m->req_addr
						      : m->resp_addr),
		.len_bytes = m->len_bytes,
		.region = m->region,
		.kind = (uint8_t)kind,
		.state = COW_KNOWN,
		.err = (uint8_t)bad,
	};
	return true;
}

/* ---- where a part is ------------------------------------------------------
 */

static struct offload_spot part_spot(const struct cow_session *s,
				     const struct cow_request *r, uint64_t at)
{
	return offload_region_spot(&s->region[r->region], r->far + at,
				   r->len_bytes - at);
}

static const struct offload_piece_config *part_piece(
	const struct cow_session *s, const struct cow_request *r,
	const struct offload_spot *spot)
{
	return &s->region[r->region].piece[spot->piece];
}

/* READs a part where it is; `psn`, if it is not NULL, is that of the WRITE. */
static void read_part(struct cow_session *s, const struct cow_request *r,
		      uint32_t at, uint32_t len_bytes, const uint32_t *psn)
{
	struct offload_spot spot = part_spot(s, r, at);
	const struct offload_piece_config *piece = part_piece(s, r, &spot);
	struct cow_end *far = s->node[piece->node].end[r->kind];
	bool is_read = r->kind == OFFLOAD_RD;
	struct cow_end *from = is_read ? far : s->ring;
	struct cow_out *o = cow_out_next(from, COW_SOURCE);

	o->pos = r->pos;
	o->at = at;
	o->to = is_read ? s->ring : far;
	o->again = psn;
	o->psn = psn ? *psn : 0;
	o->va = is_read ? piece->addr + spot.offset
			: s->ring_addr + s->map.wdata_at + r->near + at;
	o->rkey = is_read ? piece->read_rkey : s->ring_rkey;
	if (!psn)
		o->to->promised++;
	cow_out_send(from, WIRE_RC_READ_REQ, len_bytes);
}

/* The WRITE that its bytes become. */
static void write_part(struct cow_session *s, const struct cow_request *r,
		       const struct cow_out *source)
{
	struct offload_spot spot = part_spot(s, r, source->at);
	const struct offload_piece_config *piece = part_piece(s, r, &spot);
	bool is_read = r->kind == OFFLOAD_RD;
	struct cow_out *o = cow_out_next(source->to, COW_PART);

	o->pos = r->pos;
	o->at = source->at;
	o->va = is_read ? s->ring_addr + s->map.rdata_at + r->near + source->at
			: piece->addr + spot.offset;
	o->rkey = is_read ? s->ring_rkey : piece->write_rkey;
	cow_out_send(source->to, WIRE_RC_WRITE_ONLY, source->len_bytes);
}

/* ---- completion -----------------------------------------------------------
 */

/* Packets of a write at each node, which count as behind it no more. */
static void pass_write(struct cow_session *s, const struct cow_request *r)
{
	struct offload_spot spot;

	for (uint64_t at = 0; !r->is_refused && at < r->len_bytes;
	     at += spot.len_bytes) {
		struct cow_node *n;

		spot = part_spot(s, r, at);
		n = &s->node[part_piece(s, r, &spot)->node];
		if (!n->err && r->seq > n->seq)
			n->ahead -= (spot.len_bytes + s->mtu - 1) / s->mtu;
	}
	for (unsigned i = 0; i < s->node_count; i++)
		s->node[i].seq = u64_max(s->node[i].seq, r->seq);
}

static void make_ready(struct cow_session *s, struct cow_request *r)
{
	unsigned kind = r->kind;

	if (r->state == COW_BEGUN)
		s->active--;
	if (kind == OFFLOAD_WR)
		cow_request_pass(s, r);
	r->state = COW_READY;
	if (s->ready_ns == 0)
		s->ready_ns = cow_now_ns(s);
	if (r->err)
		cow_count(s->cow, COW_C_errors, 1);
	else
		cow_count(s->cow,
			  kind == OFFLOAD_RD ? COW_C_read_bytes
					     : COW_C_write_bytes,
			  r->len_bytes);
	while (s->ready[kind] < s->seen[kind]) {
		uint32_t slot = s->order[kind][(s->ready[kind] + 1) & s->mask];

		r = &s->request[slot];
		if (r->state != COW_READY)
			break;
		s->ready[kind]++;
		if (kind == OFFLOAD_WR)
			pass_write(s, r);
	}
}

static void part_over(struct cow_session *s, struct cow_request *r)
{
	r->parts--;
	if (r->parts == 0 && r->is_sent)
		make_ready(s, r);
}

/* Its bytes were asked for by a WRITE that had to be made again; that may be
 * over, and its place another one's. */
static void came_again(struct cow_session *s, const struct cow_out *source)
{
	struct end_tx *tx = &source->to->tx;
	struct cow_out *o = &source->to->out[source->psn % END_TX_WINDOW];

	if (wire_psn_diff(source->psn, tx->una_psn) < 0 ||
	    wire_psn_diff(source->psn, tx->next_psn) >= 0 ||
	    o->what != COW_PART || o->pos != source->pos || o->at != source->at)
		return;
	o->is_awaited = false;
	s->payload_psn = source->psn;
	end_tx_again(tx, source->psn);
}

/* Its answer becomes a WRITE. A read is complete with the last of them: what
 * announces it comes behind them. */
void cow_source_came(struct cow_end *e, const struct cow_out *o,
		     const uint8_t *payload)
{
	struct cow_session *s = e->session;
	struct cow_request *r = cow_slot(s, o->pos);

	s->payload = payload;
	s->payload_end = o->to;
	if (o->again) {
		came_again(s, o);
	} else {
		o->to->promised--;
		s->payload_psn = o->to->tx.next_psn;
		write_part(s, r, o);
	}
	s->payload = NULL;
	s->payload_end = NULL;
	if (!o->again && r->kind == OFFLOAD_RD)
		part_over(s, r);
}

void cow_part_done(struct cow_end *e, const struct cow_out *o)
{
	struct cow_session *s = e->session;

	if (e == s->ring)
		return;
	s->node[e->node].ahead++;
	part_over(s, cow_slot(s, o->pos));
}

/* All that are behind it will be needed, too: they are asked for in one go, and
 * come back in their order. */
void cow_read_again(struct cow_end *to, uint32_t psn)
{
	struct cow_session *s = to->session;

	for (; psn != to->tx.next_psn; psn = wire_psn_add(psn, 1)) {
		struct cow_out *o = &to->out[psn % END_TX_WINDOW];
		const struct cow_request *r = cow_slot(s, o->pos);
		struct offload_spot spot;
		struct cow_end *from = s->ring;

		if (o->what != COW_PART || o->is_awaited)
			continue;
		spot = part_spot(s, r, o->at);
		if (to == s->ring)
			from = s->node[part_piece(s, r, &spot)->node]
				       .end[OFFLOAD_RD];
		if (!cow_end_has_room(from, true))
			return;
		o->is_awaited = true;
		cow_count(s->cow, COW_C_read_again, 1);
		read_part(s, r, o->at, o->len_bytes, &psn);
	}
}

/* ---- dispatch -------------------------------------------------------------
 */

/* Whether it must wait for requests of the other kind. */
static bool must_wait(const struct cow_session *s, const struct cow_request *r)
{
	if (PLANTED(no_order))
		return false;
	if (s->filter)
		return offload_filter_conflicts(s->filter, r->kind, r->region,
						r->far, r->len_bytes);
	return r->kind == OFFLOAD_RD
		       ? s->ready[OFFLOAD_WR] < s->seen[OFFLOAD_WR]
		       : s->told_reads < s->seen[OFFLOAD_RD];
}

void cow_request_pass(struct cow_session *s, struct cow_request *r)
{
	if (r->is_filtered)
		offload_filter_remove(s->filter, r->kind, r->region, r->far,
				      r->len_bytes);
	r->is_filtered = false;
}

/* Begins the next request. False: not yet. */
static bool open_request(struct cow_session *s)
{
	struct cow_request *r = cow_slot(s, s->next);
	unsigned kind = r->kind;
	bool was_done = s->seen[kind] < s->published[kind];

	r->is_refused = r->err;
	s->is_held = !was_done && !r->err && must_wait(s, r);
	if (s->is_held)
		return false;
	r->seq = ++s->seen[kind];
	s->order[kind][r->seq & s->mask] = (uint32_t)s->next & s->mask;
	s->part_at = 0;
	s->is_open = true;
	r->state = was_done ? COW_READY : COW_BEGUN;
	s->active += !was_done;
	if (was_done)
		return true;
	cow_count(s->cow, kind == OFFLOAD_RD ? COW_C_reads : COW_C_writes, 1);
	r->is_filtered = s->filter && !r->is_refused;
	if (r->is_filtered)
		offload_filter_add(s->filter, kind, r->region, r->far,
				   r->len_bytes);
	return true;
}

static bool has_room_for_part(const struct cow_session *s,
			      const struct cow_end *from,
			      const struct cow_end *to)
{
	uint32_t used =
		(uint32_t)wire_psn_diff(to->tx.next_psn, to->tx.una_psn);

	return cow_end_has_room(from, true) &&
	       used + to->promised + (to == s->ring ? COW_RING_KEPT : 0) <
		       END_TX_WINDOW;
}

/* Begins the next part of the open request. False: there is no room. */
static bool begin_part(struct cow_session *s, struct cow_request *r)
{
	struct offload_spot spot = part_spot(s, r, s->part_at);
	struct cow_node *n = &s->node[part_piece(s, r, &spot)->node];
	struct cow_end *far = n->end[r->kind];
	bool is_read = r->kind == OFFLOAD_RD;
	uint64_t skip = 0;
	uint32_t len;

	if (n->err)
		r->err = (uint8_t)-n->err;
	else if (!is_read && r->seq <= n->past.unknown_seq)
		r->err = EREMOTEIO;
	else if (!is_read && !PLANTED(no_skip))
		skip = offload_past_skip(&n->past, r->seq, spot.len_bytes);
	/* One that failed at a node that is gone is executed at the others, as
	 * a successor will think. */
	if (n->err || (!is_read && r->seq <= n->past.unknown_seq))
		skip = spot.len_bytes;
	else if (skip == spot.len_bytes)
		cow_count(s->cow, COW_C_skipped, 1);
	s->part_at += skip;
	if (skip == spot.len_bytes)
		return true;
	if (!has_room_for_part(s, is_read ? far : s->ring,
			       is_read ? s->ring : far))
		return false;
	len = (uint32_t)u64_min(spot.len_bytes - skip, s->mtu);
	r->parts++;
	read_part(s, r, (uint32_t)s->part_at, len, NULL);
	s->part_at += len;
	return true;
}

void cow_dispatch(struct cow_session *s)
{
	while (s->next < s->fetched) {
		struct cow_request *r = cow_slot(s, s->next);

		if (!s->is_open && !open_request(s)) {
			cow_count(s->cow, COW_C_held, 1);
			return;
		}
		while (r->state == COW_BEGUN && !r->is_refused &&
		       s->part_at < r->len_bytes)
			if (!begin_part(s, r))
				return;
		s->is_open = false;
		s->next++;
		r->is_sent = true;
		if (r->state == COW_BEGUN &&
		    (r->parts == 0 ||
		     (r->kind == OFFLOAD_WR && PLANTED(early_ack))))
			make_ready(s, r);
	}
}
