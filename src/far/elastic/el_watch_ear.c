/* SPDX-License-Identifier: Apache-2.0 */
/* Messages that wait at nodes for events. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "el_watch_priv.h"

enum {
	REPLY_AT = BLOCK_MESSAGE_MAX,
	/* A message that ends the wait of the other one, and its answer, which
	 * nobody reads. */
	KICK_AT = REPLY_AT + BLOCK_REPLY_MAX,
	KICK_REPLY_AT = KICK_AT + 2048,
	KICK_REPLY_BYTES = 2048,
	BUF_BYTES = KICK_REPLY_AT + KICK_REPLY_BYTES,
	TAGS = 1u << 31, /* those of el_port are smaller */
};

int el_ear_find(struct aq_watch *w, const char *node, struct el_ear **out)
{
	struct el_port *p;
	struct el_ear *e;
	int err = el_port_find(&w->object, node, &p);

	if (err)
		return err;
	for (unsigned i = 0; i < w->ear_count; i++)
		if (w->ear[i]->port == p) {
			*out = w->ear[i];
			return 0;
		}
	e = calloc(1, sizeof(*e));
	if (e)
		e->buf = aligned_alloc(4096, BUF_BYTES);
	if (!e || !e->buf) {
		free(e);
		return error_set(-ENOMEM, "no memory for a connection");
	}
	e->port = p;
	w->ear[w->ear_count++] = e;
	*out = e;
	return 0;
}

/* ---- asking -------------------------------------------------------------- */

static int get_ready(struct aq_watch *w, struct el_ear *e)
{
	struct el_object *o = &w->object;
	struct epoll_event on = {.events = EPOLLIN};
	/* Another member may have taken the place of one that is silent. */
	uint64_t patience_ns = o->copies > 1 ? EL_MEMBER_MS * 1000000ull
					     : UINT32_MAX * 1000000ull;
	int err = el_port_ready(
		o, e->port, false,
		u64_min(el_deadline_ns(o), el_now_ns() + patience_ns));

	if (!err && !e->mr) {
		e->mr = el_register(o, e->buf, BUF_BYTES);
		if (!e->mr)
			err = error_set(-ENOMEM, "memory cannot be registered");
	}
	if (!err && e->link != e->port->link) {
		on.data.ptr = e;
		if (epoll_ctl(w->epoll, EPOLL_CTL_ADD,
			      e->port->link->channel->fd, &on))
			err = error_set(-errno, "epoll: %s", strerror(errno));
		else
			e->link = e->port->link;
	}
	return err;
}

static void add_tail(struct aq_watch *w, struct el_ear *e, struct el_tail *t,
		     struct block_writer *out)
{
	struct block_watch_ask_wire ask = {
		.serial = be64_put(t->tail.next),
		.events = be32_put(w->events),
		.flags = be32_put(BLOCK_WATCH_HOLD),
	};
	struct block_op op = {
		.opcode = BLOCK_WATCH,
		.handle = e->port->handle,
		.index = t->block.reader.index,
		.generation = t->block.reader.generation,
		.length = sizeof(ask),
		.value = (const uint8_t *)&ask,
	};
	int err = block_message_add(out, &op);

	ASSERT(err == 0); /* as many as there may be fit */
	e->asked[e->count++] = t;
}

static bool is_due(const struct aq_watch *w, const struct el_tail *t,
		   const struct el_ear *e)
{
	/* A sealed block of a file has nothing more to tell. */
	return t->ear == e && !t->tail.is_gone && !t->is_away &&
	       t->tail.at == t->tail.end &&
	       !(t->tail.is_sealed && w->object.kind == BLOCK_FILE);
}

static int ask(struct aq_watch *w, struct el_ear *e)
{
	struct block_message m = {
		.tag = TAGS | ++e->tag,
		.reply_at = (uintptr_t)e->buf + REPLY_AT,
		.reply_bytes = BLOCK_REPLY_MAX,
	};
	struct block_writer out;
	int err;

	e->count = 0;
	block_message_begin(&out, e->buf, BLOCK_MESSAGE_MAX);
	for (unsigned i = 0; i < w->reader.count; i++) {
		/* Another one first each time: the first has most room. */
		unsigned at = (e->tag + i) % w->reader.count;
		struct el_tail *t =
			container_of(w->reader.tail[at], struct el_tail, tail);

		if (is_due(w, t, e) && e->count == BLOCK_OPS_MAX)
			return error_set(-E2BIG,
					 "%s has more than %d blocks with "
					 "events at node %s; larger blocks "
					 "help",
					 w->object.path, BLOCK_OPS_MAX,
					 e->port->name);
		if (is_due(w, t, e) && e->count == 0) {
			err = get_ready(w, e);
			if (err)
				return err;
		}
		if (is_due(w, t, e))
			add_tail(w, e, t, &out);
	}
	if (!e->count)
		return 0;
	m.reply_key = e->mr->rkey;
	memcpy(m.session, w->object.session, sizeof(m.session));
	err = el_port_post(e->link->qp, e->mr, e->buf,
			   block_message_end(&out, &m));
	e->is_asked = !err;
	e->is_kicked = false;
	return err;
}

static bool is_asked_for(const struct el_ear *e, const struct el_tail *t)
{
	for (unsigned i = 0; i < e->count; i++)
		if (e->asked[i] == t)
			return true;
	return false;
}

/* A tail that the waiting message does not ask for: any other message makes the
 * node answer that one, and the next one asks for all. */
static int kick(struct aq_watch *w, struct el_ear *e)
{
	struct block_message m = {
		.reply_at = (uintptr_t)e->buf + KICK_REPLY_AT,
		.reply_key = e->mr->rkey,
		.reply_bytes = KICK_REPLY_BYTES,
	};
	struct block_op op = {.opcode = BLOCK_STAT,
			      .handle = e->port->handle,
			      .index = e->asked[0]->block.reader.index,
			      .generation =
				      e->asked[0]->block.reader.generation};
	bool is_new = false;
	struct block_writer out;
	int err;

	for (unsigned i = 0; i < w->reader.count; i++) {
		const struct el_tail *t =
			container_of(w->reader.tail[i], struct el_tail, tail);

		is_new |= is_due(w, t, e) && !is_asked_for(e, t);
	}
	if (!is_new || e->is_kicked)
		return 0;
	memcpy(m.session, w->object.session, sizeof(m.session));
	block_message_begin(&out, e->buf + KICK_AT, KICK_REPLY_AT - KICK_AT);
	err = block_message_add(&out, &op);
	ASSERT(err == 0);
	err = el_port_post(e->link->qp, e->mr, e->buf + KICK_AT,
			   block_message_end(&out, &m));
	e->is_kicked = !err;
	return err;
}

static void hang_up(struct aq_watch *w, struct el_ear *e)
{
	el_port_hang_up(e->port);
	e->link = NULL;
	e->is_asked = false;
	for (unsigned i = 0; i < w->reader.count; i++) {
		struct el_tail *t =
			container_of(w->reader.tail[i], struct el_tail, tail);

		if (t->ear == e && t->block.is_chained)
			el_tail_lose(w, t);
	}
}

/* A node that cannot be reached is tried again at the next tick. */
int el_ears_ask(struct aq_watch *w)
{
	for (unsigned i = 0; i < w->ear_count; i++) {
		struct el_ear *e = w->ear[i];
		int err = e->is_asked ? kick(w, e) : ask(w, e);

		if (err == -EHOSTDOWN || err == -ETIMEDOUT) {
			hang_up(w, e);
			err = 0;
		}
		if (err)
			return err;
	}
	return 0;
}

/* ---- hearing ------------------------------------------------------------- */

/* A member that does not count any more knows nothing of what came later. */
static bool is_sent_away(const struct el_tail *t, const struct block_result *r)
{
	return t->block.is_chained &&
	       (r->status == BLOCK_ELSEWHERE || r->status == BLOCK_BUSY ||
		(r->status == BLOCK_STALE && !r->length));
}

static int take(struct aq_watch *w, struct el_ear *e)
{
	const struct block_reply_wire *reply =
		(const void *)(e->buf + REPLY_AT);
	struct block_result r[BLOCK_OPS_MAX];
	unsigned count = 0;
	uint32_t tag = 0;
	int err = block_reply_parse(
		reply, u32_min(be32_get(reply->bytes), BLOCK_REPLY_MAX), &tag,
		r, &count);

	if (err || tag != (TAGS | e->tag) || count != e->count)
		return error_set(-EPROTO, "node %s answered something else",
				 e->port->name);
	for (unsigned i = 0; i < count && !err; i++) {
		struct block_tail *t = &e->asked[i]->tail;

		if (r[i].status == BLOCK_OK && r[i].data) {
			err = block_tail_take(t, r[i].data, r[i].length);
			w->map_tries = 0;
		} else if (is_sent_away(e->asked[i], &r[i])) {
			el_tail_lose(w, e->asked[i]);
		} else if (r[i].status == BLOCK_STALE) {
			block_tail_end(t, r[i].length, r[i].value);
			w->map_ns = 1; /* is it all gone? */
		} else if (r[i].status == BLOCK_DENIED) {
			/* The ticket has ended. */
			err = el_refresh(&w->object,
					 el_deadline_ns(&w->object));
			hang_up(w, e);
		}
	}
	return err;
}

static int hear(struct aq_watch *w, struct el_ear *e, unsigned *heard)
{
	struct ibv_wc wc;
	int n, err;

	while (e->is_asked && (n = ibv_poll_cq(e->link->cq, 1, &wc)) != 0) {
		if (n < 0 || wc.status != IBV_WC_SUCCESS) {
			hang_up(w, e);
			return 0;
		}
		if (wc.wr_id != EL_WR_RECEIVE ||
		    be32toh(wc.imm_data) != (TAGS | e->tag))
			continue;
		e->is_asked = false;
		++*heard;
		err = take(w, e);
		if (err)
			return err;
	}
	if (e->is_asked && client_link_is_lost(e->link))
		hang_up(w, e);
	return 0;
}

int el_ears_hear(struct aq_watch *w)
{
	unsigned heard = 0;

	for (unsigned i = 0; i < w->ear_count; i++) {
		int err = hear(w, w->ear[i], &heard);

		if (err)
			return err;
	}
	return (int)heard;
}

void el_ears_arm(struct aq_watch *w)
{
	for (unsigned i = 0; i < w->ear_count; i++)
		if (w->ear[i]->link)
			(void)ibv_req_notify_cq(w->ear[i]->link->cq, 1);
}

void el_ears_free(struct aq_watch *w)
{
	for (unsigned i = 0; i < w->ear_count; i++) {
		struct el_ear *e = w->ear[i];

		hang_up(w, e);
		if (e->mr)
			el_unregister(&w->object, e->mr);
		free(e->buf);
		free(e);
	}
}
