/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports: a connection to a node, in the object's session, with one message
 * under way. A message that is not answered, because the connection broke, is
 * sent again by the next one; the node knows by the session what it has
 * executed already.
 */
#include <aquifer/aqdv.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hex.h"
#include "client/verbs_api.h"
#include "el_priv.h"

enum {
	MESSAGE_AT = 0,
	REPLY_AT = BLOCK_MESSAGE_MAX,
	STAGING_AT = REPLY_AT + BLOCK_REPLY_MAX,
	BUF_BYTES = STAGING_AT + EL_STAGING_BYTES,
	QUEUE_DEPTH = 16,
	LOOKS = 256, /* between two looks at the clock */
	SLEEP_MS = 100,
};

uint8_t *el_staging(struct el_object *o)
{
	return o->buf + STAGING_AT;
}

struct ibv_mr *el_register(const struct el_object *o, void *data,
			   size_t len_bytes)
{
	return o->verbs->reg_mr(o->mr->pd, data, len_bytes,
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_READ |
					IBV_ACCESS_REMOTE_WRITE);
}

void el_unregister(const struct el_object *o, struct ibv_mr *mr)
{
	(void)o->verbs->dereg_mr(mr); /* nothing is under way */
}

/* ---- life ---------------------------------------------------------------- */

static int make_buf(struct el_object *o, const struct client_link *link)
{
	if (!o->buf)
		o->buf = aligned_alloc(4096, align_up(BUF_BYTES, 4096));
	if (!o->buf)
		return error_set(-ENOMEM, "no memory for messages");
	if (o->mr)
		return 0;
	o->verbs = link->verbs;
	o->mr = link->verbs->reg_mr(link->pd, o->buf, BUF_BYTES,
				    IBV_ACCESS_LOCAL_WRITE |
					    IBV_ACCESS_REMOTE_READ |
					    IBV_ACCESS_REMOTE_WRITE);
	return o->mr ? 0 : error_set(-ENOMEM, "memory cannot be registered");
}

void el_port_hang_up(struct el_port *p)
{
	client_link_close(p->link);
	p->link = NULL;
}

int el_port_find(struct el_object *o, const char *name, struct el_port **out)
{
	struct el_port *p;
	uint32_t node;
	int err;

	for (unsigned i = 0; i < o->port_count; i++)
		if (strcmp(o->port[i]->name, name) == 0) {
			*out = o->port[i];
			return 0;
		}
	err = client_control_node(o->rack, name, &node);
	if (err)
		return err;
	p = o->port_count < CLIENT_NODE_MAX ? calloc(1, sizeof(*p)) : NULL;
	if (!p)
		return error_set(-ENOMEM, "no memory for a connection");
	p->node = node;
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
	o->port[o->port_count++] = p;
	*out = p;
	return 0;
}

static int dial(struct el_object *o, struct el_port *p)
{
	struct client_link_options options = {
		.recv_depth = QUEUE_DEPTH,
		.send_depth = QUEUE_DEPTH,
		.cq_depth = 4 * QUEUE_DEPTH,
		.accepts_writes = true,
		.accepts_reads = true,
		.has_channel = o->has_channels,
	};
	char session[2 * BLOCK_SESSION_BYTES + 1];
	int err;

	hex_write(session, o->session, sizeof(o->session));
	options.connect_more =
		json_pack("{s:{s:i, s:s}}", "blocks", "version",
			  BLOCK_WIRE_VERSION, "session", session);
	err = client_link_join(o->rack, p->node, &options, &p->link);
	json_decref(options.connect_more);
	if (!err)
		err = make_buf(o, p->link);
	if (err)
		el_port_hang_up(p);
	return err;
}

/* ---- one message --------------------------------------------------------- */

static int broken(const struct el_port *p, enum ibv_wc_status status)
{
	int err = client_wc_errno(status);

	return error_set(err == -ESTALE ? err : -EHOSTDOWN,
			 "the connection to node %s broke", p->name);
}

/* For an answer that may take long; not for longer than a look at the clock and
 * the connection can wait. */
static int sleep_briefly(struct el_port *p, uint64_t deadline_ns)
{
	const struct client_verbs *v = p->link->verbs;
	struct pollfd fd = {.fd = p->link->channel->fd, .events = POLLIN};
	uint64_t now_ns = el_now_ns();
	uint64_t ms =
		now_ns < deadline_ns ? (deadline_ns - now_ns) / 1000000 : 0;
	struct ibv_cq *cq;
	void *user;

	/* Armed already: what has come since the last look is seen now, and
	 * whatever comes later ends the sleep. */
	if (!p->is_armed) {
		p->is_armed = true;
		return ibv_req_notify_cq(p->link->cq, 1);
	}
	p->is_armed = false;
	if (poll(&fd, 1, (int)u64_min(ms, SLEEP_MS)) == 1 &&
	    v->get_cq_event(p->link->channel, &cq, &user) == 0)
		v->ack_cq_events(cq, 1);
	return 0;
}

/* Until a completion of that kind, whose immediate value is the tag. */
int el_port_await(struct el_port *p, unsigned kind, uint32_t tag,
		  uint64_t deadline_ns)
{
	struct ibv_wc wc;

	for (unsigned look = 1;; look++) {
		int n = ibv_poll_cq(p->link->cq, 1, &wc);

		if (n < 0)
			return error_set(-EIO, "the NIC failed");
		if (n && wc.status != IBV_WC_SUCCESS)
			return broken(p, wc.status);
		if (n && wc.wr_id == kind &&
		    (kind != EL_WR_RECEIVE || be32toh(wc.imm_data) == tag))
			return 0;
		if (n)
			continue;
		client_clock_polled(p->link->clock);
		if (look % LOOKS)
			continue;
		if (p->sleeps && sleep_briefly(p, deadline_ns))
			return error_set(-EIO, "the NIC failed");
		if (client_link_is_lost(p->link))
			return error_set(-EHOSTDOWN, "node %s does not answer",
					 p->name);
		if (el_now_ns() >= deadline_ns)
			return error_set(-ETIMEDOUT,
					 "node %s did not answer in time",
					 p->name);
	}
}

int el_port_post(struct ibv_qp *qp, const struct ibv_mr *mr, const uint8_t *at,
		 size_t bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)at,
			      .length = (uint32_t)bytes,
			      .lkey = mr->lkey};
	struct ibv_send_wr *bad_send, send = {.wr_id = EL_WR_SEND,
					      .opcode = IBV_WR_SEND,
					      .send_flags = IBV_SEND_SIGNALED,
					      .sg_list = &sge,
					      .num_sge = 1};
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = EL_WR_RECEIVE};

	return ibv_post_recv(qp, &recv, &bad_recv) ||
			       ibv_post_send(qp, &send, &bad_send)
		       ? -EHOSTDOWN
		       : 0;
}

int el_port_send(struct el_object *o, struct el_port *p,
		 const struct el_mail *at, const struct block_op *ops,
		 unsigned count, uint64_t acked)
{
	struct block_message m = {
		.tag = ++p->tag,
		.acked = acked,
		.reply_at = (uintptr_t)at->buf + REPLY_AT,
		.reply_key = at->mr->rkey,
		.reply_bytes = BLOCK_REPLY_MAX,
	};
	struct block_writer w;
	int err = 0;

	memcpy(m.session, o->session, sizeof(m.session));
	block_message_begin(&w, at->buf + MESSAGE_AT, BLOCK_MESSAGE_MAX);
	for (unsigned i = 0; i < count && !err; i++)
		err = block_message_add(&w, &ops[i]);
	ASSERT(err == 0); /* who packs them sees to it */
	return el_port_post(p->link->qp, at->mr, at->buf + MESSAGE_AT,
			    block_message_end(&w, &m))
		       ? error_set(-EHOSTDOWN,
				   "the connection to node %s broke", p->name)
		       : 0;
}

int el_port_receive(struct el_port *p, const struct el_mail *at, unsigned count,
		    struct block_result *results, uint64_t deadline_ns)
{
	const struct block_reply_wire *reply =
		(const void *)(at->buf + REPLY_AT);
	unsigned got = 0;
	uint32_t tag = 0;
	int err = el_port_await(p, EL_WR_RECEIVE, p->tag, deadline_ns);

	if (err)
		return err;
	err = block_reply_parse(
		reply, u32_min(be32_get(reply->bytes), BLOCK_REPLY_MAX), &tag,
		results, &got);
	if (err || tag != p->tag || got != count)
		return error_set(-EPROTO, "node %s answered something else",
				 p->name);
	return 0;
}

int el_port_exchange(struct el_object *o, struct el_port *p,
		     const struct block_op *ops, unsigned count,
		     struct block_result *results, uint64_t acked,
		     uint64_t deadline_ns)
{
	const struct el_mail at = {o->buf, o->mr};
	int err = el_port_send(o, p, &at, ops, count, acked);

	return err ? err : el_port_receive(p, &at, count, results, deadline_ns);
}

int el_port_own(struct el_object *o, struct el_port *p)
{
	if (p->own.mr)
		return 0;
	p->own.buf = aligned_alloc(4096, STAGING_AT);
	p->own.mr = p->own.buf ? el_register(o, p->own.buf, STAGING_AT) : NULL;
	if (p->own.mr)
		return 0;
	free(p->own.buf);
	p->own.buf = NULL;
	return error_set(-ENOMEM, "no memory for messages");
}

/* ---- with a handle ------------------------------------------------------- */

/* -ESTALE: the node does not know any more what the session did. */
static int check_known(struct el_object *o, struct el_port *p, bool is_known,
		       bool is_repeat)
{
	bool was_used = p->has_changed;

	p->has_changed = false;
	if (is_known || !was_used)
		return 0;
	return is_repeat ? error_set(-ESTALE,
				     "node %s was away for too long: whether "
				     "the last change of %s happened is not "
				     "known",
				     p->name, o->path)
			 : 0;
}

static int present_ticket(struct el_object *o, struct el_port *p,
			  bool is_repeat, uint64_t deadline_ns)
{
	struct block_op op = {.opcode = BLOCK_OPEN,
			      .length = sizeof(o->ticket),
			      .value = o->ticket};
	struct block_result r;
	unsigned tries = 0;
	bool is_renewed = false;
	int err;

	for (;;) {
		err = el_port_exchange(o, p, &op, 1, &r, 0, deadline_ns);
		if (err)
			return err;
		if (r.status == BLOCK_OK)
			break;
		/* The node may not have heard of the key yet, or the ticket
		 * has ended. */
		if (r.status == BLOCK_DENIED && !is_renewed) {
			is_renewed = true;
			err = el_refresh(o, deadline_ns);
			if (err)
				return err;
		} else if (r.status != BLOCK_BUSY ||
			   !el_pause(&tries, deadline_ns)) {
			return el_error(o, r.status);
		}
	}
	p->handle = (uint32_t)r.value;
	err = check_known(o, p, r.value & BLOCK_OPEN_KNOWN, is_repeat);
	return err;
}

int el_port_ready(struct el_object *o, struct el_port *p, bool is_repeat,
		  uint64_t deadline_ns)
{
	bool was_used = p->has_changed;
	int err;

	if (p->link && client_link_is_lost(p->link))
		el_port_hang_up(p);
	if (p->link)
		return 0;
	err = dial(o, p);
	if (err)
		return err;
	err = present_ticket(o, p, is_repeat, deadline_ns);
	if (err)
		el_port_hang_up(p);
	else
		p->has_changed = was_used;
	return err;
}

/* ---- the end ------------------------------------------------------------- */

/* What was got and not acknowledged by a next message would wait at the node
 * for the session's end. */
static void say_bye(struct el_object *o, struct el_port *p)
{
	struct block_op op = {.opcode = BLOCK_BYE};
	struct block_result r;

	if (p->link && p->has_changed && !client_link_is_lost(p->link))
		(void)!el_port_exchange(o, p, &op, 1, &r, o->sequence,
					el_now_ns() + 1000000000ull);
}

void el_close(struct el_object *o)
{
	el_ahead_drop(o);
	for (unsigned i = 0; i < o->port_count; i++) {
		say_bye(o, o->port[i]);
		el_port_hang_up(o->port[i]);
		if (o->port[i]->own.mr)
			el_unregister(o, o->port[i]->own.mr);
		free(o->port[i]->own.buf);
		free(o->port[i]);
	}
	el_stage_drop(o);
	if (o->mr)
		(void)o->verbs->dereg_mr(o->mr);
	free(o->buf);
	free(o->block);
}

int el_error(const struct el_object *o, enum block_status status)
{
	int err = block_status_errno(status);

	if (status == BLOCK_STALE)
		return error_set(err,
				 "%s is gone: it was removed, or nobody "
				 "renewed its lease",
				 o->path);
	return error_set(err, "%s: %s", o->path, block_status_text(status));
}
