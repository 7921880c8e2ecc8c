/* SPDX-License-Identifier: Apache-2.0 */
/* The states of a connection. Who may send what when is IBA 12.9.7; where that
 * leaves a choice we do what Linux does, so that both can talk. */
#include "cm_conn.h"

#include <errno.h>
#include <string.h>

#include "cm_limits.h"

static const uint64_t NEVER = UINT64_MAX;

/* ---- sending ------------------------------------------------------------ */

static void message_init(const struct cm_conn *c, uint16_t kind,
			 struct wire_cm_msg *m)
{
	memset(m, 0, sizeof(*m));
	m->kind = kind;
	m->tid = c->tid;
	m->local_id = c->local_id;
	m->remote_id = c->remote_id;
}

static void send_bare(struct cm_conn *c, uint16_t kind)
{
	struct wire_cm_msg m;

	message_init(c, kind, &m);
	c->ops->send(c, &m);
}

static void send_rej(struct cm_conn *c, uint16_t reason, const void *data,
		     uint8_t len_bytes)
{
	struct wire_cm_msg m;

	message_init(c, WIRE_CM_REJ, &m);
	m.about = c->state == CM_REQ_RCVD   ? WIRE_CM_ABOUT_REQ
		  : c->state == CM_REP_RCVD ? WIRE_CM_ABOUT_REP
					    : WIRE_CM_ABOUT_OTHER;
	m.reason = reason;
	m.private_len = len_bytes;
	if (len_bytes)
		memcpy(m.private_data, data, len_bytes);
	c->ops->send(c, &m);
}

/* Sends c->kept, and again until something stops it. */
static void send_kept(struct cm_conn *c, uint64_t now_ns)
{
	c->sends_left = CM_SENDS - 1;
	c->interval_ns = CM_INTERVAL_MIN_NS;
	c->ops->send(c, &c->kept);
	c->ops->set_timer(c, now_ns + c->interval_ns);
}

static void enter(struct cm_conn *c, enum cm_state state)
{
	c->state = state;
	c->ops->set_timer(c, NEVER);
}

static void establish(struct cm_conn *c, uint64_t now_ns)
{
	c->state = CM_ESTABLISHED;
	c->silent = 0;
	c->ops->set_timer(c, c->probe_ns ? now_ns + c->probe_ns : NEVER);
}

/* The end of a connection that both sides knew: packets of it may still be on
 * the way, and are gone after the time that one is waited for. */
static void rest(struct cm_conn *c, uint64_t now_ns)
{
	c->state = CM_TIMEWAIT;
	c->ops->set_timer(c, now_ns + (4096ull << c->req.path.ack_timeout));
}

/* ---- the application's wishes ------------------------------------------- */

void cm_conn_init(struct cm_conn *c, const struct cm_conn_ops *ops,
		  uint32_t local_id)
{
	memset(c, 0, sizeof(*c));
	c->ops = ops;
	c->local_id = local_id;
}

/* Both directions of a message say the same things about a side. */
static void side_read(struct cm_side *s, const struct wire_cm_msg *m)
{
	s->qpn = m->qpn;
	s->qkey = m->qkey;
	s->psn = m->psn;
	s->responder_resources = m->responder_resources;
	s->initiator_depth = m->initiator_depth;
	s->rnr_retry_count = m->rnr_retry_count;
	s->flow_control = m->flow_control;
	s->srq = m->srq;
}

int cm_conn_connect(struct cm_conn *c, const struct wire_cm_msg *req,
		    uint64_t now_ns)
{
	if (c->state != CM_IDLE)
		return -EINVAL;
	c->tid = (uint64_t)c->local_id << 32 | req->kind;
	c->req = *req;
	c->req.tid = c->tid;
	c->req.local_id = c->local_id;
	c->kept = c->req;
	side_read(&c->local, req);
	c->state = req->kind == WIRE_CM_REQ ? CM_REQ_SENT : CM_SIDR_SENT;
	send_kept(c, now_ns);
	return 0;
}

void cm_conn_take(struct cm_conn *c, const struct wire_cm_msg *req)
{
	ASSERT(c->state == CM_IDLE);
	c->tid = req->tid;
	c->req = *req;
	c->remote_id = req->local_id;
	side_read(&c->remote, req);
	c->state = req->kind == WIRE_CM_REQ ? CM_REQ_RCVD : CM_SIDR_RCVD;
}

static void sidr_answer(struct cm_conn *c, const struct wire_cm_msg *rep)
{
	c->kept = *rep;
	c->kept.tid = c->tid;
	c->kept.local_id = c->remote_id;
	c->kept.service_id = c->req.service_id;
	c->ops->send(c, &c->kept);
	enter(c, CM_SIDR_DONE);
}

int cm_conn_accept(struct cm_conn *c, const struct wire_cm_msg *rep,
		   uint64_t now_ns)
{
	if (c->state == CM_SIDR_RCVD && rep->kind == WIRE_CM_SIDR_REP) {
		sidr_answer(c, rep);
		return 0;
	}
	if (c->state != CM_REQ_RCVD || rep->kind != WIRE_CM_REP)
		return -EINVAL;
	c->kept = *rep;
	c->kept.tid = c->tid;
	c->kept.local_id = c->local_id;
	c->kept.remote_id = c->remote_id;
	side_read(&c->local, rep);
	c->state = CM_REP_SENT;
	send_kept(c, now_ns);
	return 0;
}

int cm_conn_establish(struct cm_conn *c, uint64_t now_ns)
{
	if (c->state != CM_REP_RCVD)
		return -EINVAL;
	send_bare(c, WIRE_CM_RTU);
	establish(c, now_ns);
	return 0;
}

int cm_conn_reject(struct cm_conn *c, uint16_t reason, const void *data,
		   uint8_t len_bytes)
{
	struct wire_cm_msg m;

	if (c->state == CM_SIDR_RCVD) {
		message_init(c, WIRE_CM_SIDR_REP, &m);
		if (len_bytes > wire_cm_private_bytes(m.kind))
			return -EINVAL;
		m.status = WIRE_CM_SIDR_REJECT;
		m.private_len = len_bytes;
		if (len_bytes)
			memcpy(m.private_data, data, len_bytes);
		sidr_answer(c, &m);
		return 0;
	}
	if (c->state != CM_REQ_RCVD && c->state != CM_REP_SENT &&
	    c->state != CM_REP_RCVD)
		return -EINVAL;
	if (len_bytes > wire_cm_private_bytes(WIRE_CM_REJ))
		return -EINVAL;
	send_rej(c, reason, data, len_bytes);
	enter(c, CM_CLOSED);
	return 0;
}

int cm_conn_disconnect(struct cm_conn *c, uint64_t now_ns)
{
	switch (c->state) {
	case CM_ESTABLISHED:
	case CM_REP_SENT:
		message_init(c, WIRE_CM_DREQ, &c->kept);
		c->kept.qpn = c->remote.qpn;
		c->state = CM_DREQ_SENT;
		send_kept(c, now_ns);
		return 0;
	case CM_DREQ_RCVD:
		send_bare(c, WIRE_CM_DREP);
		rest(c, now_ns);
		return 0;
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_CLOSED:
		return 0;
	case CM_IDLE:
	case CM_REQ_SENT:
	case CM_REQ_DELAYED:
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
	case CM_SIDR_SENT:
	case CM_SIDR_RCVD:
	case CM_SIDR_DONE:
		break;
	}
	return -EINVAL;
}

int cm_conn_notify(struct cm_conn *c, uint64_t now_ns)
{
	if (c->state != CM_REP_SENT)
		return c->state == CM_ESTABLISHED ? 0 : -EINVAL;
	establish(c, now_ns);
	c->ops->happened(c, CM_CONNECTED, 0, NULL);
	return 0;
}

void cm_conn_close(struct cm_conn *c)
{
	struct wire_cm_msg m;

	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REQ_DELAYED:
		send_rej(c, WIRE_CM_REJ_TIMEOUT, NULL, 0);
		break;
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		send_rej(c, WIRE_CM_REJ_CONSUMER, NULL, 0);
		break;
	case CM_SIDR_RCVD:
		(void)cm_conn_reject(c, 0, NULL, 0); /* legal here */
		break;
	case CM_ESTABLISHED:
		message_init(c, WIRE_CM_DREQ, &m);
		m.qpn = c->remote.qpn;
		c->ops->send(c, &m);
		break;
	case CM_DREQ_RCVD:
		send_bare(c, WIRE_CM_DREP);
		break;
	case CM_IDLE:
	case CM_DREQ_SENT:
	case CM_TIMEWAIT:
	case CM_SIDR_SENT:
	case CM_SIDR_DONE:
	case CM_CLOSED:
		break;
	}
	enter(c, CM_CLOSED);
}

/* ---- messages ----------------------------------------------------------- */

static void on_rep(struct cm_conn *c, const struct wire_cm_msg *m)
{
	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REQ_DELAYED:
		c->remote_id = m->local_id;
		side_read(&c->remote, m);
		enter(c, CM_REP_RCVD);
		c->ops->happened(c, CM_RESPONSE, 0, m);
		break;
	case CM_ESTABLISHED:
		send_bare(c, WIRE_CM_RTU); /* the first one was lost */
		break;
	case CM_IDLE:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
	case CM_DREQ_SENT:
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
	case CM_SIDR_SENT:
	case CM_SIDR_RCVD:
	case CM_SIDR_DONE:
	case CM_CLOSED:
		break;
	}
}

/*
 * Our packets are too long for the other side, which says what is not: asked
 * again so. An answer to a request that we no longer make, because of the same
 * words, says nothing new.
 */
static bool is_narrowed(struct cm_conn *c, const struct wire_cm_msg *m,
			uint64_t now_ns)
{
	if (m->reason != WIRE_CM_REJ_MTU ||
	    (c->state != CM_REQ_SENT && c->state != CM_REQ_DELAYED))
		return false;
	if (m->tid != c->tid)
		return true;
	if (!m->ari_len || !m->ari[0] || m->ari[0] >= c->req.mtu)
		return false;
	c->tid++;
	c->req.tid = c->tid;
	c->req.mtu = m->ari[0];
	c->kept = c->req;
	c->state = CM_REQ_SENT;
	send_kept(c, now_ns);
	return true;
}

static void on_rej(struct cm_conn *c, const struct wire_cm_msg *m,
		   uint64_t now_ns)
{
	switch (c->state) {
	case CM_REQ_SENT:
	case CM_REQ_DELAYED:
	case CM_REQ_RCVD:
	case CM_REP_SENT:
	case CM_REP_RCVD:
		if (is_narrowed(c, m, now_ns))
			break;
		enter(c, CM_CLOSED);
		c->ops->happened(c, CM_REFUSED, m->reason, m);
		break;
	case CM_ESTABLISHED:
	case CM_DREQ_SENT:
		/* The peer does not know this connection any more. */
		rest(c, now_ns);
		c->ops->happened(c, CM_DISCONNECTED, 0, NULL);
		break;
	case CM_IDLE:
	case CM_DREQ_RCVD:
	case CM_TIMEWAIT:
	case CM_SIDR_SENT:
	case CM_SIDR_RCVD:
	case CM_SIDR_DONE:
	case CM_CLOSED:
		break;
	}
}

static void on_dreq(struct cm_conn *c, const struct wire_cm_msg *m,
		    uint64_t now_ns)
{
	switch (c->state) {
	case CM_REP_SENT: /* the RTU was lost */
	case CM_ESTABLISHED:
		enter(c, CM_DREQ_RCVD);
		c->ops->happened(c, CM_DISCONNECTED, 0, m);
		break;
	case CM_DREQ_SENT: /* both at once */
		send_bare(c, WIRE_CM_DREP);
		rest(c, now_ns);
		c->ops->happened(c, CM_DISCONNECTED, 0, m);
		break;
	case CM_TIMEWAIT:
	case CM_CLOSED:
		send_bare(c, WIRE_CM_DREP);
		break;
	case CM_IDLE:
	case CM_REQ_SENT:
	case CM_REQ_DELAYED:
	case CM_REQ_RCVD:
	case CM_REP_RCVD:
	case CM_DREQ_RCVD:
	case CM_SIDR_SENT:
	case CM_SIDR_RCVD:
	case CM_SIDR_DONE:
		break;
	}
}

/* The same request again: our answer was lost, or is not there yet. */
static void on_repeated(struct cm_conn *c)
{
	struct wire_cm_msg m;

	if (c->state == CM_REP_SENT || c->state == CM_SIDR_DONE) {
		c->ops->send(c, &c->kept);
	} else if (c->state == CM_REQ_RCVD) {
		message_init(c, WIRE_CM_MRA, &m);
		m.about = WIRE_CM_ABOUT_REQ;
		m.service_timeout = CM_SERVICE_TIMEOUT;
		c->ops->send(c, &m);
	}
}

static void on_mra(struct cm_conn *c, const struct wire_cm_msg *m,
		   uint64_t now_ns)
{
	uint64_t wait_ns = 4096ull << m->service_timeout;

	if (c->state != CM_REQ_SENT && c->state != CM_REP_SENT)
		return;
	if (c->state == CM_REQ_SENT)
		c->state = CM_REQ_DELAYED;
	c->sends_left = 1;
	c->ops->set_timer(c, now_ns + wait_ns);
}

static void on_sidr_rep(struct cm_conn *c, const struct wire_cm_msg *m)
{
	if (c->state != CM_SIDR_SENT)
		return;
	if (m->status != WIRE_CM_SIDR_OK) {
		enter(c, CM_CLOSED);
		c->ops->happened(c, CM_UNREACHABLE, m->status, m);
		return;
	}
	side_read(&c->remote, m);
	enter(c, CM_SIDR_DONE);
	c->ops->happened(c, CM_CONNECTED, 0, m);
}

/* Whoever speaks for the peer knows the number that it gave the connection, not
 * only ours: a stranger on its host, or one who writes its address, does not.
 */
static bool is_of_peer(const struct cm_conn *c, const struct wire_cm_msg *msg)
{
	return !c->remote_id || msg->kind == WIRE_CM_SIDR_REP ||
	       msg->local_id == c->remote_id;
}

void cm_conn_input(struct cm_conn *c, const struct wire_cm_msg *msg,
		   uint64_t now_ns)
{
	if (!is_of_peer(c, msg))
		return;
	switch ((enum wire_cm_kind)msg->kind) {
	case WIRE_CM_REQ:
	case WIRE_CM_SIDR_REQ:
		on_repeated(c);
		break;
	case WIRE_CM_MRA:
		on_mra(c, msg, now_ns);
		break;
	case WIRE_CM_REJ:
		on_rej(c, msg, now_ns);
		break;
	case WIRE_CM_REP:
		on_rep(c, msg);
		break;
	case WIRE_CM_RTU:
		if (c->state == CM_REP_SENT) {
			establish(c, now_ns);
			c->ops->happened(c, CM_CONNECTED, 0, msg);
		}
		break;
	case WIRE_CM_DREQ:
		on_dreq(c, msg, now_ns);
		break;
	case WIRE_CM_DREP:
		if (c->state == CM_DREQ_SENT) {
			rest(c, now_ns);
			c->ops->happened(c, CM_DISCONNECTED, 0, msg);
		}
		break;
	case WIRE_CM_SIDR_REP:
		on_sidr_rep(c, msg);
		break;
	}
}

/* ---- time and loss ------------------------------------------------------ */

static bool is_asking(const struct cm_conn *c)
{
	return c->state == CM_REQ_SENT || c->state == CM_REQ_DELAYED ||
	       c->state == CM_REP_SENT || c->state == CM_SIDR_SENT;
}

/*
 * Who is connected and says nothing is asked for a sign of life. Only silence
 * after each of many questions is a death: a peer that is slow, or stopped for
 * some seconds, is not dead. Should it live all the same, it hears that this
 * side has given up.
 */
static void look_for_life(struct cm_conn *c, uint64_t now_ns)
{
	struct wire_cm_msg m;

	c->silent = c->ops->is_silent(c) ? c->silent + 1 : 0;
	if (c->silent < CM_PROBES) {
		c->ops->set_timer(c, now_ns + c->probe_ns);
		return;
	}
	message_init(c, WIRE_CM_DREQ, &m);
	m.qpn = c->remote.qpn;
	c->ops->send(c, &m);
	rest(c, now_ns);
	c->ops->happened(c, CM_DISCONNECTED, -ETIMEDOUT, NULL);
}

/* What is asked for was asked for often enough. */
static void give_up(struct cm_conn *c, uint64_t now_ns)
{
	if (c->state == CM_DREQ_SENT) {
		rest(c, now_ns);
		c->ops->happened(c, CM_DISCONNECTED, -ETIMEDOUT, NULL);
		return;
	}
	if (c->state != CM_SIDR_SENT)
		send_rej(c, WIRE_CM_REJ_TIMEOUT, NULL, 0);
	enter(c, CM_CLOSED);
	c->ops->happened(c, CM_UNREACHABLE, -ETIMEDOUT, NULL);
}

void cm_conn_timeout(struct cm_conn *c, uint64_t now_ns)
{
	if (c->state == CM_ESTABLISHED) {
		look_for_life(c, now_ns);
	} else if (c->state == CM_TIMEWAIT) {
		enter(c, CM_CLOSED);
		c->ops->happened(c, CM_RESTED, 0, NULL);
	} else if (!is_asking(c) && c->state != CM_DREQ_SENT) {
		return;
	} else if (c->sends_left > 0) {
		c->sends_left--;
		c->interval_ns =
			u64_min(2 * c->interval_ns, CM_INTERVAL_MAX_NS);
		c->ops->send(c, &c->kept);
		c->ops->set_timer(c, now_ns + c->interval_ns);
	} else {
		give_up(c, now_ns);
	}
}

void cm_conn_resend(struct cm_conn *c)
{
	if (is_asking(c) || c->state == CM_DREQ_SENT)
		c->ops->send(c, &c->kept);
}

void cm_conn_lost(struct cm_conn *c, uint64_t now_ns)
{
	if (is_asking(c)) {
		enter(c, CM_CLOSED);
		c->ops->happened(c, CM_UNREACHABLE, -ECONNRESET, NULL);
	} else if (c->state == CM_REP_RCVD || c->state == CM_REQ_RCVD) {
		enter(c, CM_CLOSED);
		c->ops->happened(c, CM_REFUSED, WIRE_CM_REJ_TIMEOUT, NULL);
	} else if (c->state == CM_ESTABLISHED || c->state == CM_DREQ_SENT) {
		rest(c, now_ns);
		c->ops->happened(c, CM_DISCONNECTED, 0, NULL);
	} else if (c->state == CM_DREQ_RCVD) {
		rest(c, now_ns);
	}
}

bool cm_stray_answer(const struct wire_cm_msg *msg, struct wire_cm_msg *out)
{
	uint16_t kind;

	if (msg->kind == WIRE_CM_DREQ)
		kind = WIRE_CM_DREP;
	else if (msg->kind == WIRE_CM_REP)
		kind = WIRE_CM_REJ;
	else
		return false;
	memset(out, 0, sizeof(*out));
	out->kind = kind;
	out->tid = msg->tid;
	out->local_id = msg->remote_id;
	out->remote_id = msg->local_id;
	out->about = WIRE_CM_ABOUT_REP;
	out->reason = WIRE_CM_REJ_UNKNOWN_ID;
	return true;
}
