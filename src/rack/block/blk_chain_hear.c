/* SPDX-License-Identifier: Apache-2.0 */
/* What a member of a chain hears: changes and leases from above, where the next
 * one is from below. */
#include "base/plant.h"
#include "blk_chain_priv.h"

/* ---- from above ---------------------------------------------------------- */

static void request_of(struct blk_chain *c, const struct blk_link_message *m)
{
	memcpy(c->session, m->session, sizeof(c->session));
	c->request = (struct blk_request){
		.session = c->session,
		.acked = m->acked,
		.opcode = (enum block_opcode)m->opcode,
		.sequence = m->sequence,
		.arg = m->arg,
		.length = m->length,
		.inside_room = m->inside_room,
		.buffer_bytes = m->buffer_bytes,
	};
}

/* The first piece; false: it cannot be taken now, and comes again. */
static bool begin(struct blk_chain *c, const struct blk_link_message *m)
{
	enum blk_prepared p = BLK_READY;

	request_of(c, m);
	c->place = NULL;
	c->have = 0;
	c->is_coming = false;
	if (m->opcode != BLOCK_BYE)
		p = blk_prepare(c->block, &c->request, &c->answer, &c->place);
	c->was_answered = p == BLK_ANSWERED;
	/* Bytes that leave for a reader take room here that others have. */
	if (c->was_answered != !!(m->flags & BLK_LINK_ANSWERED))
		return false;
	c->is_coming = true;
	return true;
}

static void got(struct blk_chain *c, uint64_t have)
{
	(void)blk_chain_send(
		c, -1,
		&(struct blk_link_message){.type = BLK_LINK_GOT,
					   .position = c->position + 1,
					   .offset = have});
}

static void hear_op(struct blk_chain *c, const struct blk_link_message *m,
		    uint64_t now_ns)
{
	if (!c->has_state)
		return;
	if (m->position <= c->position) {
		(void)blk_chain_send(
			c, -1,
			&(struct blk_link_message){.type = BLK_LINK_ACK,
						   .position = c->position});
		return;
	}
	if (m->position != c->position + 1 || c->is_copying || c->is_kept ||
	    c->carrier.is_held(c->carrier.ctx))
		return;
	if (!m->offset && !begin(c, m))
		return;
	if (!c->is_coming || m->offset != c->have) {
		got(c, c->is_coming ? c->have : 0);
		return;
	}
	if (m->bytes > (c->place ? c->request.length - c->have : 0))
		return;
	if (m->bytes)
		memcpy(c->place + c->have, m->data, m->bytes);
	c->have += m->bytes;
	c->came_ns = now_ns;
	if (c->place && c->have < c->request.length) {
		got(c, c->have);
		return;
	}
	c->is_coming = false;
	c->is_kept = true;
	c->is_old = false;
	c->kept_ns = now_ns;
	blk_chain_proceed(c, now_ns);
}

static void grant(struct blk_chain *c, uint64_t now_ns)
{
	bool counts = c->config.at + 1 < c->config.full;
	uint64_t stamp = c->config.at ? c->granted : c->asked;

	if (blk_chain_send(
		    c, 1,
		    &(struct blk_link_message){
			    .type = BLK_LINK_GRANT,
			    .stamp = counts ? stamp : 0,
			    .total = blk_chain_is_reader(c) ? now_ns : 0}) &&
	    counts && stamp)
		c->passed_ns = now_ns;
}

static void hear_grant(struct blk_chain *c, const struct blk_link_message *m,
		       uint64_t now_ns)
{
	c->was_heard = true;
	c->echo = u64_max(c->echo, m->total);
	if (m->stamp <= c->granted)
		return;
	c->granted = m->stamp;
	if (blk_chain_is_reader(c))
		c->lease_ns = m->stamp + BLK_LEASE_MS * BLK_CHAIN_MS_NS;
	else if (!blk_chain_is_last(c))
		grant(c, now_ns);
}

/* ---- from below ---------------------------------------------------------- */

static void next_is_at(struct blk_chain *c, uint64_t position, uint64_t now_ns)
{
	c->next_position = u64_max(c->next_position, position);
	blk_chain_proceed(c, now_ns);
}

static void hear_state(struct blk_chain *c, const struct blk_link_message *m,
		       uint64_t now_ns)
{
	bool is_new = m->stamp > c->asked && !blk_chain_is_reader(c);

	if (is_new)
		c->asked = m->stamp;
	if (m->total && blk_chain_is_reader(c))
		c->consent_ns =
			u64_max(c->consent_ns,
				m->total + BLK_LEASE_MS * BLK_CHAIN_MS_NS);
	if (is_new && c->config.at)
		blk_chain_tell_state(c, now_ns);
	grant(c, now_ns);
	if (!(m->flags & BLK_LINK_HAS_STATE)) {
		blk_chain_copy_begin(c, now_ns);
		return;
	}
	if (!c->next_is_ready) {
		c->next_is_ready = true;
		next_is_at(c, m->position, now_ns);
		c->carrier.freed(c->carrier.ctx);
	} else {
		next_is_at(c, m->position, now_ns);
	}
}

static void hear_got(struct blk_chain *c, const struct blk_link_message *m,
		     uint64_t now_ns)
{
	struct blk_stream *s = &c->stream;
	bool of_copy = m->flags & BLK_LINK_OF_COPY;

	if (!s->is_open || of_copy != c->is_copying ||
	    m->position != c->position + !of_copy || m->offset > s->total)
		return;
	s->said = m->offset; /* less than before: it begins anew there */
	if (m->offset <= s->got)
		return;
	s->got = m->offset;
	s->sent = u64_max(s->sent, s->got);
	s->moved_ns = now_ns;
	if (c->is_copying && s->got == s->total) {
		s->is_open = false;
		c->is_copying = false;
		c->next_is_ready = true;
		next_is_at(c, c->position, now_ns);
		c->carrier.freed(c->carrier.ctx);
		return;
	}
	blk_chain_pump(c, now_ns);
}

/* ---- both ---------------------------------------------------------------- */

void blk_chain_hear(struct blk_chain *c, const struct blk_link_message *m,
		    uint64_t now_ns)
{
	const struct blk_chain_config *f = &c->config;
	bool from_above = f->at && f->member[f->at - 1].generation == m->from;
	bool from_below = !blk_chain_is_last(c) &&
			  f->member[f->at + 1].generation == m->from;

	if (PLANTED(chain_any_epoch) && f->epoch) {
		from_above |= f->at > 0 && m->epoch < f->epoch;
		from_below |= !blk_chain_is_last(c) && m->epoch < f->epoch;
	} else if (!f->epoch || m->epoch != f->epoch) {
		return;
	}
	if (from_above && m->from == c->echo_to)
		c->echo_rest_ns = 0; /* it reads no more */
	if (from_above && m->type == BLK_LINK_OP)
		hear_op(c, m, now_ns);
	else if (from_above && m->type == BLK_LINK_GRANT)
		hear_grant(c, m, now_ns);
	else if (from_above && m->type == BLK_LINK_COPY)
		blk_chain_copy_hear(c, m, now_ns);
	else if (from_below && m->type == BLK_LINK_STATE)
		hear_state(c, m, now_ns);
	else if (from_below && m->type == BLK_LINK_GOT)
		hear_got(c, m, now_ns);
	else if (from_below && m->type == BLK_LINK_ACK && c->next_is_ready)
		next_is_at(c, m->position, now_ns);
}
