/* SPDX-License-Identifier: Apache-2.0 */
/* A member of a chain: what it may do, and its clock. */
#include "blk_chain_priv.h"

#include "base/plant.h"

bool blk_chain_is_head(const struct blk_chain *c)
{
	return c->config.epoch && c->config.at == 0;
}

/* ---- reading ------------------------------------------------------------- */

static bool has_lease(const struct blk_chain *c, uint64_t now_ns)
{
	if (blk_chain_rests(c, now_ns) ||
	    (c->config.at && now_ns >= c->lease_ns))
		return false;
	/* The former reader may have shown what is only kept here. */
	if (c->is_kept && c->is_old)
		return false;
	return blk_chain_is_end(c) || now_ns < c->consent_ns;
}

void blk_chain_tell_state(struct blk_chain *c, uint64_t now_ns)
{
	bool joins = c->config.at >= c->config.full;

	if (!blk_chain_send(
		    c, -1,
		    &(struct blk_link_message){
			    .type = BLK_LINK_STATE,
			    .flags = c->has_state ? BLK_LINK_HAS_STATE : 0,
			    .position = c->position,
			    .stamp = blk_chain_is_reader(c) ? now_ns : c->asked,
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
	if (!c->config.epoch || !c->has_state || !blk_chain_is_reader(c))
		return false;
	if (PLANTED(chain_no_lease))
		return true;
	c->wanted_ns = now_ns;
	if (has_lease(c, now_ns))
		return true;
	if (c->config.at &&
	    now_ns - c->told_ns >= BLK_CHAIN_HELLO_MS * BLK_CHAIN_MS_NS)
		blk_chain_tell_state(c, now_ns);
	return false;
}

uint32_t blk_chain_watch(const struct blk_chain *c, uint64_t serial,
			 uint32_t events, uint8_t *out, uint32_t room_bytes,
			 bool *has_some)
{
	const struct blk_block *b = c->block;
	struct blk_watch before;

	if (c->told == b->watch.serial)
		return blk_watch_read(&b->watch, serial, events, b->flags, out,
				      room_bytes, has_some);
	before = blk_watch_before(&b->watch, c->told);
	return blk_watch_read(
		&before, serial, events,
		b->flags & ~(uint32_t)(BLOCK_IS_SEALED | BLOCK_IS_LAST), out,
		room_bytes, has_some);
}

/* ---- changes ------------------------------------------------------------- */

bool blk_chain_is_open(const struct blk_chain *c)
{
	return blk_chain_is_head(c) && c->has_state && !c->is_kept &&
	       (blk_chain_is_end(c) || c->next_is_ready ||
		(c->is_copying && PLANTED(chain_no_rest)));
}

/* ---- executing ----------------------------------------------------------- */

static void execute(struct blk_chain *c)
{
	struct blk_answer a = {.status = BLOCK_OK};

	if (c->was_answered)
		a = c->answer;
	else if (c->request.opcode == BLOCK_BYE && c->request.arg)
		blk_give_back(c->block, c->session);
	else if (c->request.opcode == BLOCK_BYE)
		blk_leave(c->block, c->session);
	else
		blk_finish(c->block, &c->request, &a);
	c->position++;
	c->told = c->block->watch.serial;
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
void blk_chain_proceed(struct blk_chain *c, uint64_t now_ns)
{
	if (c->is_kept && c->is_copying && PLANTED(chain_no_rest))
		execute(c);
	if (!c->is_kept || c->is_copying || blk_chain_rests(c, now_ns))
		return;
	if (blk_chain_is_end(c) || c->next_position > c->position) {
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
	blk_chain_proceed(c, now_ns);
	if (PLANTED(chain_early) && c->is_kept)
		execute(c);
}

/* What a change does before it is refused: what its client has acknowledged is
 * forgotten, a block without room is sealed, and one that has no room for slots
 * decides that they do not come. */
struct before {
	uint32_t flags;
	uint32_t sessions;
	uint64_t acked;
	uint64_t batch, staged;
};

static struct before look(struct blk_block *b, const struct blk_request *r)
{
	struct before out = {.flags = b->flags, .sessions = b->session_count};
	uint32_t at;

	if (!blk_session_find(b, r->session, false, &at))
		out.acked = b->session[at].acked;
	if (b->kind->id == BLOCK_EKV) {
		out.batch = b->ekv.in.batch;
		out.staged = b->ekv.in.staged;
	}
	return out;
}

static bool is_same(const struct before *a, const struct before *b)
{
	return a->flags == b->flags && a->sessions == b->sessions &&
	       a->acked == b->acked && a->batch == b->batch &&
	       a->staged == b->staged;
}

enum blk_chain_step blk_chain_change(struct blk_chain *c,
				     const struct blk_request *r,
				     struct blk_answer *a, uint8_t **place,
				     uint64_t now_ns)
{
	struct before was = look(c->block, r), is;
	enum blk_prepared p = blk_prepare(c->block, r, a, place);

	is = look(c->block, r);
	if (p == BLK_ANSWERED && is_same(&was, &is))
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
		struct blk_request r = {
			.session = s->id, .opcode = BLOCK_BYE, .arg = !s->ends};

		if (!s->is_used || (!s->ends && !s->returns))
			continue;
		blk_chain_take(c, &r, BLK_READY, none, NULL, now_ns);
		return true;
	}
	return false;
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
	if (blk_chain_is_reader(c) && c->echo_ns)
		c->echo_rest_ns =
			c->echo_ns + BLK_LEASE_REST_MS * BLK_CHAIN_MS_NS;
	c->echo_ns = blk_chain_is_reader(c) ? 0 : c->echo_ns;
	if (blk_chain_is_reader(c) && c->passed_ns)
		c->rest_ns = c->passed_ns + BLK_LEASE_REST_MS * BLK_CHAIN_MS_NS;
	if (!was_head && c->config.at == 0)
		become_head(c);
	if (c->config.at)
		blk_chain_tell_state(c, now_ns);
	blk_chain_proceed(c, now_ns);
	c->carrier.freed(c->carrier.ctx);
}

void blk_chain_tick(struct blk_chain *c, uint64_t now_ns)
{
	bool is_wanted =
		c->config.at >= c->config.full ||
		(blk_chain_is_reader(c) &&
		 now_ns - c->wanted_ns < BLK_LEASE_WANTED_MS * BLK_CHAIN_MS_NS);
	uint64_t ask_ns = (!c->was_heard ? BLK_CHAIN_HELLO_MS
			   : is_wanted	 ? BLK_LEASE_ASK_MS
					 : BLK_CHAIN_IDLE_MS) *
			  BLK_CHAIN_MS_NS;

	if (!c->config.epoch)
		return;
	if (c->config.at && now_ns - c->told_ns >= ask_ns)
		blk_chain_tell_state(c, now_ns);
	if (c->is_coming &&
	    now_ns - c->came_ns >= BLK_CHAIN_STUCK_MS * BLK_CHAIN_MS_NS) {
		c->is_coming = false; /* nothing has happened */
		c->carrier.freed(c->carrier.ctx);
	}
	if (c->stream.is_open && now_ns - c->stream.moved_ns >=
					 BLK_CHAIN_AGAIN_MS * BLK_CHAIN_MS_NS) {
		c->stream.sent = c->stream.got = c->stream.said;
		c->stream.moved_ns = now_ns;
		blk_chain_pump(c, now_ns);
	}
	blk_chain_proceed(c, now_ns);
}
