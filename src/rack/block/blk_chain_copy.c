/* SPDX-License-Identifier: Apache-2.0 */
/* What goes to the next member of a chain in pieces: values of changes, and a
 * copy of the block for one that has joined. */
#include "base/error.h"
#include "base/log.h"
#include "blk_chain_priv.h"

bool blk_chain_send(struct blk_chain *c, int step, struct blk_link_message *m)
{
	const struct blk_chain_config *f = &c->config;
	const struct blk_member *to = &f->member[(int)f->at + step];

	m->epoch = f->epoch;
	m->from = f->member[f->at].generation;
	m->to = to->generation;
	m->index = to->index;
	return c->carrier.send(c->carrier.ctx, to, m);
}

/* ---- sending ------------------------------------------------------------- */

static void set_request(const struct blk_chain *c, struct blk_link_message *m)
{
	const struct blk_request *r = &c->request;

	m->type = BLK_LINK_OP;
	m->flags = c->was_answered ? BLK_LINK_ANSWERED : 0;
	m->position = c->position + 1;
	m->opcode = r->opcode;
	m->acked = r->acked;
	m->sequence = r->sequence;
	m->arg = r->arg;
	m->length = r->length;
	m->inside_room = r->inside_room;
	m->buffer_bytes = r->buffer_bytes;
	memcpy(m->session, c->session, sizeof(m->session));
}

void blk_chain_pump(struct blk_chain *c, uint64_t now_ns)
{
	struct blk_stream *s = &c->stream;
	bool is_first = s->sent == 0;

	/* A change without a value is one message, too. */
	while (s->is_open && (is_first || s->sent < s->total) &&
	       s->sent - s->got < BLK_CHAIN_WINDOW * BLK_LINK_DATA) {
		struct blk_link_message m = {.offset = s->sent,
					     .total = s->total};

		is_first = false;
		if (c->is_copying) {
			m.type = BLK_LINK_COPY;
			m.position = c->position;
			m.stamp = c->position + c->is_kept;
			m.data = blk_state_at(&c->state, s->sent, BLK_LINK_DATA,
					      &m.bytes);
		} else {
			set_request(c, &m);
			m.bytes = (uint32_t)u64_min(BLK_LINK_DATA,
						    s->total - s->sent);
			m.data = m.bytes ? c->place + s->sent : NULL;
		}
		if (!blk_chain_send(c, 1, &m))
			return; /* again when the clock says so */
		s->sent += m.bytes;
	}
}

void blk_chain_copy_begin(struct blk_chain *c, uint64_t now_ns)
{
	if (c->is_copying || c->is_coming || c->next_is_ready ||
	    !c->has_state || c->carrier.is_held(c->carrier.ctx) ||
	    now_ns >= c->consent_ns)
		return;
	c->is_copying = true;
	c->has_copied = true;
	c->stream = (struct blk_stream){
		.is_open = true,
		.total = blk_state_begin(&c->state, c->block),
		.moved_ns = now_ns};
	blk_chain_pump(c, now_ns);
}

/* ---- taking -------------------------------------------------------------- */

static void got(struct blk_chain *c, const struct blk_link_message *m,
		uint64_t have)
{
	(void)blk_chain_send(
		c, -1,
		&(struct blk_link_message){.type = BLK_LINK_GOT,
					   .flags = BLK_LINK_OF_COPY,
					   .position = m->position,
					   .offset = have});
}

void blk_chain_copy_hear(struct blk_chain *c, const struct blk_link_message *m,
			 uint64_t now_ns)
{
	int err;

	if (c->has_state) {
		if (m->position == c->position)
			got(c, m, m->total);
		return;
	}
	if (!m->offset)
		c->state_have = 0;
	if (m->offset != c->state_have || m->bytes > m->total - m->offset) {
		got(c, m, c->state_have);
		return;
	}
	err = blk_state_take(&c->state, c->block, m->offset, m->data, m->bytes);
	c->state_have = err ? 0 : c->state_have + m->bytes;
	if (!err && c->state_have == m->total)
		err = blk_state_end(&c->state, c->block, m->total);
	if (err) {
		log_warn("block", "%s", error_last());
		c->state_have = 0;
		return;
	}
	if (c->state_have == m->total) {
		c->has_state = true;
		c->position = m->position;
		c->whole_at = m->stamp;
		c->told = c->block->watch.serial;
	}
	got(c, m, c->state_have);
}
