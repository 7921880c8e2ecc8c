/* SPDX-License-Identifier: Apache-2.0 */
/* A member of a chain: changes on their way down and back, and the lease. */
#include "blk_chain.h"

#include "base/plant.h"

static const uint64_t ms_ns = 1000000;

static bool is_last(const struct blk_chain *c)
{
	return c->config.at + 1 >= c->config.count;
}

static bool is_reader(const struct blk_chain *c)
{
	return c->config.at + 1 == c->config.full;
}

/* A joiner without a copy is not waited for. */
static bool is_alone(const struct blk_chain *c)
{
	return is_reader(c) && c->config.is_fresh && !c->has_copied;
}

/* Whether it executes without asking those behind it. */
static bool is_end(const struct blk_chain *c)
{
	return is_last(c) || is_alone(c);
}

static bool rests(const struct blk_chain *c, uint64_t now_ns)
{
	return now_ns < c->rest_ns || now_ns < c->echo_rest_ns;
}

bool blk_chain_is_head(const struct blk_chain *c)
{
	return c->config.epoch && c->config.at == 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool has_lease(const struct blk_chain *c, uint64_t now_ns)
{
	if (rests(c, now_ns) || (c->config.at && now_ns >= c->lease_ns))
		return false;
	/* The former reader may have shown what is only kept here. */
	if (c->is_kept && c->is_old)
		return false;
	return is_end(c) || now_ns < c->consent_ns;
}

static void tell_state(struct blk_chain *c, uint64_t now_ns)
{
	bool joins = c->config.at >= c->config.full;

	if (!blk_chain_send(
		    c, -1,
		    &(struct blk_link_message){
			    .type = BLK_LINK_STATE,
			    .flags = c->has_state ? BLK_LINK_HAS_STATE : 0,
			    .position = c->position,
			    .stamp = is_reader(c) ? now_ns : c->asked,
			    .total = joins ? c->echo : 0}))
		return;
	c->told_ns = now_ns;
	if (joins && c->echo) {
		c->echo_ns = now_ns;
		c->echo_to = c->config.member[c->config.at - 1].generation;
	}
}

bool blk_chain_may_read(struct blk_chain *c, uint64_t now_ns)
{
	if (!c->config.epoch || !c->has_state || !is_reader(c))
		return false;
	if (PLANTED(chain_no_lease))
		return true;
	c->wanted_ns = now_ns;
	if (has_lease(c, now_ns))
		return true;
	if (c->config.at && now_ns - c->told_ns >= BLK_CHAIN_HELLO_MS * ms_ns)
		tell_state(c, now_ns);
	return false;
}

/* ---- changes ------------------------------------------------------------- */

bool blk_chain_is_open(const struct blk_chain *c)
{
	return blk_chain_is_head(c) && c->has_state && !c->is_kept &&
	       (is_end(c) || c->next_is_ready ||
		(c->is_copying && PLANTED(chain_no_rest)));
}

/* ---- executing ----------------------------------------------------------- */

static void execute(struct blk_chain *c)
{
	struct blk_answer a = {.status = BLOCK_OK};

	if (c->was_answered)
		a = c->answer;
	else if (c->request.opcode == BLOCK_BYE)
		blk_leave(c->block, c->session);
	else
		blk_finish(c->block, &c->request, &a);
	c->position++;
	c->is_kept = false;
	c->stream.is_open = false;
	if (c->config.at)
		(void)blk_chain_send(
			c, -1,
			&(struct blk_link_message){.type = BLK_LINK_ACK,
						   .position = c->position});
	else
		c->carrier.done(c->carrier.ctx, &a);
	c->carrier.freed(c->carrier.ctx);
}

/* What is kept goes on, as far as it can now. */
static void proceed(struct blk_chain *c, uint64_t now_ns)
{
	if (c->is_kept && c->is_copying && PLANTED(chain_no_rest))
		execute(c);
	if (!c->is_kept || c->is_copying || rests(c, now_ns))
		return;
	if (is_end(c) || c->next_position > c->position) {
		execute(c);
		return;
	}
	if (!c->next_is_ready || c->stream.is_open)
		return;
	c->stream =
		(struct blk_stream){.is_open = true,
				    .total = c->place ? c->request.length : 0,
				    .moved_ns = now_ns};
	blk_chain_pump(c, now_ns);
}

void blk_chain_take(struct blk_chain *c, const struct blk_request *r,
		    enum blk_prepared prepared, uint8_t *place,
		    const struct blk_answer *a, uint64_t now_ns)
{
	ASSERT(blk_chain_is_open(c));
	c->request = *r;
	memcpy(c->session, r->session, sizeof(c->session));
	c->request.session = c->session;
	c->request.value = NULL;
	c->place = place;
	c->was_answered = prepared == BLK_ANSWERED;
	if (c->was_answered)
		c->answer = *a;
	c->is_kept = true;
	c->is_old = false;
	c->kept_ns = now_ns;
	proceed(c, now_ns);
	if (PLANTED(chain_early) && c->is_kept)
		execute(c);
}

/* What a change does before it is refused: what its client has acknowledged is
 * forgotten, and a block without room is sealed. */
struct before {
	uint32_t flags;
	uint32_t sessions;
	uint64_t acked;
};

static struct before look(struct blk_block *b, const struct blk_request *r)
{
	struct before out = {.flags = b->flags, .sessions = b->session_count};
	uint32_t at;

	if (!blk_session_find(b, r->session, false, &at))
		out.acked = b->session[at].acked;
	return out;
}

enum blk_chain_step blk_chain_change(struct blk_chain *c,
				     const struct blk_request *r,
				     struct blk_answer *a, uint8_t **place,
				     uint64_t now_ns)
{
	struct before was = look(c->block, r), is;
	enum blk_prepared p = blk_prepare(c->block, r, a, place);

	is = look(c->block, r);
	if (p == BLK_ANSWERED && was.flags == is.flags &&
	    was.sessions == is.sessions && was.acked == is.acked)
		return BLK_CHAIN_ANSWER;
	if (p == BLK_READY && *place && r->length && !r->value)
		return BLK_CHAIN_FETCH;
	if (p == BLK_READY && *place && r->length)
		memcpy(*place, r->value, r->length);
	blk_chain_take(c, r, p, *place, a, now_ns);
	return BLK_CHAIN_TAKEN;
}

bool blk_chain_end_session(struct blk_chain *c, uint64_t now_ns)
{
	uint8_t *none = NULL;

	if (!blk_chain_is_open(c) || c->carrier.is_held(c->carrier.ctx))
		return false;
	for (uint32_t i = 0; i < c->block->session_room; i++) {
		struct blk_session *s = &c->block->session[i];
		struct blk_request r = {.session = s->id, .opcode = BLOCK_BYE};

		if (!s->is_used || !s->ends)
			continue;
		blk_chain_take(c, &r, BLK_READY, none, NULL, now_ns);
		return true;
	}
	return false;
}

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
	proceed(c, now_ns);
}

static void grant(struct blk_chain *c, uint64_t now_ns)
{
	bool counts = c->config.at + 1 < c->config.full;
	uint64_t stamp = c->config.at ? c->granted : c->asked;

	if (blk_chain_send(c, 1,
			   &(struct blk_link_message){
				   .type = BLK_LINK_GRANT,
				   .stamp = counts ? stamp : 0,
				   .total = is_reader(c) ? now_ns : 0}) &&
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
	if (is_reader(c))
		c->lease_ns = m->stamp + BLK_LEASE_MS * ms_ns;
	else if (!is_last(c))
		grant(c, now_ns);
}

/* ---- from below ---------------------------------------------------------- */

static void next_is_at(struct blk_chain *c, uint64_t position, uint64_t now_ns)
{
	c->next_position = u64_max(c->next_position, position);
	proceed(c, now_ns);
}

static void hear_state(struct blk_chain *c, const struct blk_link_message *m,
		       uint64_t now_ns)
{
	bool is_new = m->stamp > c->asked && !is_reader(c);

	if (is_new)
		c->asked = m->stamp;
	if (m->total && is_reader(c))
		c->consent_ns =
			u64_max(c->consent_ns, m->total + BLK_LEASE_MS * ms_ns);
	if (is_new && c->config.at)
		tell_state(c, now_ns);
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

/* ---- all ----------------------------------------------------------------- */

void blk_chain_init(struct blk_chain *c, struct blk_block *b, bool has_state,
		    const struct blk_chain_carrier *carrier)
{
	*c = (struct blk_chain){
		.block = b, .has_state = has_state, .carrier = *carrier};
}

/* A new head has sessions of clients that it has not seen yet. */
static void become_head(struct blk_chain *c)
{
	for (uint32_t i = 0; i < c->block->session_room; i++) {
		struct blk_session *s = &c->block->session[i];

		s->has_come = s->is_used;
		s->came_ns = 0;
		if (PLANTED(chain_no_dedupe))
			s->count = 0, s->last = 0;
	}
}

void blk_chain_configure(struct blk_chain *c,
			 const struct blk_chain_config *config, uint64_t now_ns)
{
	bool was_head = !c->config.epoch || c->config.at == 0;

	if (config->epoch <= c->config.epoch)
		return;
	c->config = *config;
	c->is_old = true;
	c->is_coming = false;
	c->is_copying = false;
	c->stream.is_open = false;
	c->next_is_ready = false;
	c->next_position = 0;
	c->asked = c->granted = c->lease_ns = 0;
	c->was_heard = false;
	c->has_copied = false;
	c->consent_ns = c->echo = 0;
	if (is_reader(c) && c->echo_ns)
		c->echo_rest_ns = c->echo_ns + BLK_LEASE_REST_MS * ms_ns;
	c->echo_ns = is_reader(c) ? 0 : c->echo_ns;
	if (is_reader(c) && c->passed_ns)
		c->rest_ns = c->passed_ns + BLK_LEASE_REST_MS * ms_ns;
	if (!was_head && c->config.at == 0)
		become_head(c);
	if (c->config.at)
		tell_state(c, now_ns);
	proceed(c, now_ns);
	c->carrier.freed(c->carrier.ctx);
}

void blk_chain_hear(struct blk_chain *c, const struct blk_link_message *m,
		    uint64_t now_ns)
{
	const struct blk_chain_config *f = &c->config;
	bool from_above = f->at && f->member[f->at - 1].generation == m->from;
	bool from_below =
		!is_last(c) && f->member[f->at + 1].generation == m->from;

	if (PLANTED(chain_any_epoch) && f->epoch) {
		from_above |= f->at > 0 && m->epoch < f->epoch;
		from_below |= !is_last(c) && m->epoch < f->epoch;
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

void blk_chain_tick(struct blk_chain *c, uint64_t now_ns)
{
	bool is_wanted = c->config.at >= c->config.full ||
			 (is_reader(c) &&
			  now_ns - c->wanted_ns < BLK_LEASE_WANTED_MS * ms_ns);
	uint64_t ask_ns = (!c->was_heard ? BLK_CHAIN_HELLO_MS
			   : is_wanted	 ? BLK_LEASE_ASK_MS
					 : BLK_CHAIN_IDLE_MS) *
			  ms_ns;

	if (!c->config.epoch)
		return;
	if (c->config.at && now_ns - c->told_ns >= ask_ns)
		tell_state(c, now_ns);
	if (c->is_coming && now_ns - c->came_ns >= BLK_CHAIN_STUCK_MS * ms_ns) {
		c->is_coming = false; /* nothing has happened */
		c->carrier.freed(c->carrier.ctx);
	}
	if (c->stream.is_open &&
	    now_ns - c->stream.moved_ns >= BLK_CHAIN_AGAIN_MS * ms_ns) {
		c->stream.sent = c->stream.got = c->stream.said;
		c->stream.moved_ns = now_ns;
		blk_chain_pump(c, now_ns);
	}
	proceed(c, now_ns);
}
