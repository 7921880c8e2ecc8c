/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Processes of this machine that we talk to. The socket over which one was
 * found, or found us, stays open: its end is how we learn that the process died
 * without a word. Other machines have no such thing: their processes are asked
 * for signs of life (cm_conn.c).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm_priv.h"
#include "wire/wire.h"

enum sock_state {
	SOCK_ASKED,    /* we called, no answer yet */
	SOCK_INCOMING, /* called us, did not say who it is */
	SOCK_KNOWN,
	SOCK_DEAD, /* hung up; the timer will tell its connections */
};

struct cm_sock {
	struct cm_watch watch;
	struct list node; /* cm.socks */
	enum sock_state state;
	bool called; /* by us; else the other end may hang up when it likes */
	struct timer timer;
	struct lease_port port; /* what we asked for */
	struct cm_addr peer;
	struct cm_device *device; /* on whose behalf we speak */
};

static void sock_ready(struct cm_watch *w);

static void sock_free(struct cm_sock *s)
{
	if (s->watch.fd >= 0) {
		cm_watch_remove(&s->watch);
		close(s->watch.fd);
	}
	cm_timer_set(&s->timer, UINT64_MAX);
	list_remove(&s->node);
	free(s);
}

static bool is_known(const struct cm_addr *peer, const struct cm_sock *but)
{
	for (struct list *n = cm.socks.next; n != &cm.socks; n = n->next) {
		struct cm_sock *s = container_of(n, struct cm_sock, node);

		if (s != but && s->state == SOCK_KNOWN &&
		    cm_addr_equal(&s->peer, peer))
			return true;
	}
	return false;
}

bool cm_peer_is_watched(const struct cm_addr *peer)
{
	return cm_device_by_gid(peer->gid.raw) && is_known(peer, NULL);
}

static bool has_called(const struct cm_addr *peer, const struct cm_sock *but)
{
	for (struct list *n = cm.socks.next; n != &cm.socks; n = n->next) {
		struct cm_sock *s = container_of(n, struct cm_sock, node);

		if (s != but && s->called && s->state == SOCK_KNOWN &&
		    cm_addr_equal(&s->peer, peer))
			return true;
	}
	return false;
}

static void lost(struct timer *t, uint64_t now_ns)
{
	struct cm_sock *s = container_of(t, struct cm_sock, timer);
	struct list *n, *next;

	if (!is_known(&s->peer, s)) {
		for (n = cm.ids.next; n != &cm.ids; n = next) {
			struct cm_id *id = container_of(n, struct cm_id, ids);

			next = n->next;
			if (cm_addr_equal(&id->peer, &s->peer))
				cm_conn_lost(&id->conn, now_ns);
		}
	}
	sock_free(s);
}

static struct cm_sock *sock_new(int fd, enum sock_state state,
				struct cm_device *device)
{
	struct cm_sock *s = calloc(1, sizeof(*s));

	if (!s) {
		close(fd);
		return NULL;
	}
	s->watch = (struct cm_watch){.fd = fd, .ready = sock_ready};
	s->state = state;
	s->device = device;
	timer_init(&s->timer, lost);
	list_append(&cm.socks, &s->node);
	if (cm_watch_add(&s->watch)) {
		sock_free(s);
		return NULL;
	}
	return s;
}

/* ---- answers ------------------------------------------------------------ */

/* As if the machine had answered that nobody listens. */
static void refuse(struct cm_id *id)
{
	struct wire_cm_msg m;

	memset(&m, 0, sizeof(m));
	if (cm_id_is_datagram(id)) {
		m.kind = WIRE_CM_SIDR_REP;
		m.status = WIRE_CM_SIDR_UNSUPPORTED;
	} else {
		m.kind = WIRE_CM_REJ;
		m.reason = WIRE_CM_REJ_SERVICE_ID;
	}
	cm_conn_input(&id->conn, &m, clock_mono_ns());
}

static void ask_again(struct timer *t, uint64_t now_ns)
{
	struct cm_id *id = container_of(t, struct cm_id, ask_timer);

	if (!id->peer.qpn && !id->asked)
		cm_peer_ask(id);
}

/*
 * There are servers that tell their client the port first and then listen;
 * with the kernel they get away with it, because resolving an address takes
 * milliseconds there. So a refusal is not said at once.
 */
static void nobody_there(struct cm_id *id)
{
	uint64_t now_ns = clock_mono_ns();

	if (!id->refuse_ns)
		id->refuse_ns = now_ns + CM_REFUSE_NS;
	if (now_ns >= id->refuse_ns) {
		refuse(id);
		return;
	}
	timer_init(&id->ask_timer, ask_again);
	cm_timer_set(&id->ask_timer, now_ns + CM_ASK_AGAIN_NS);
}

/* Everybody who waits for this answer has it now; NULL: there is none. */
static void tell(struct cm_sock *s, const struct cm_addr *peer)
{
	struct list *n, *next;

	for (n = cm.ids.next; n != &cm.ids; n = next) {
		struct cm_id *id = container_of(n, struct cm_id, ids);

		next = n->next;
		if (id->asked != s)
			continue;
		id->asked = NULL;
		if (peer) {
			id->peer = *peer;
			cm_conn_resend(&id->conn);
		} else {
			nobody_there(id);
		}
	}
}

static void hang_up(struct cm_sock *s)
{
	if (s->state == SOCK_KNOWN) {
		cm_watch_remove(&s->watch);
		close(s->watch.fd);
		s->watch.fd = -1;
		s->state = SOCK_DEAD;
		cm_timer_set(&s->timer, clock_mono_ns() + CM_LOST_DELAY_NS);
		return;
	}
	tell(s, NULL);
	sock_free(s);
}

static int say_hello(int fd, const struct cm_device *dev)
{
	struct lease_msg m = {.kind = LEASE_HELLO};
	struct cm_addr own;

	cm_gsi_addr(dev, &own);
	m.qpn = own.qpn;
	memcpy(m.gid, own.gid.raw, sizeof(m.gid));
	return lease_send(fd, &m);
}

/* A request that another process received for this machine. */
static void hand_in(const struct lease_msg *m)
{
	struct cm_device *dev = cm_device_by_gid(m->local_gid);
	struct cm_addr from = {.qpn = m->qpn};
	struct wire_cm_msg msg;

	if (!dev || !dev->gsi || wire_cm_parse(m->mad, sizeof(m->mad), &msg) ||
	    (msg.kind != WIRE_CM_REQ && msg.kind != WIRE_CM_SIDR_REQ))
		return;
	memcpy(from.gid.raw, m->gid, sizeof(m->gid));
	cm_route_input(dev, &from, &msg);
}

/* To a process that called us we are the NIC that it can reach best: its own
 * address. */
static int introduce(struct cm_sock *s, const struct lease_msg *m)
{
	struct cm_device *dev = cm_device_by_gid(m->gid);

	if (!dev || !dev->gsi)
		dev = s->device;
	return say_hello(s->watch.fd, dev);
}

static void sock_ready(struct cm_watch *w)
{
	struct cm_sock *s = container_of(w, struct cm_sock, watch);
	struct lease_msg m;
	int err = lease_receive(w->fd, &m);

	if (err == -EAGAIN)
		return;
	if (!err && m.kind == LEASE_MAD && s->state == SOCK_INCOMING) {
		hand_in(&m);
		return; /* it hangs up now */
	}
	if (!err && m.kind != LEASE_HELLO)
		err = -EBADMSG;
	if (!err && s->state == SOCK_INCOMING)
		err = introduce(s, &m);
	else if (!err && s->state != SOCK_ASKED)
		err = -EBADMSG; /* both have introduced themselves */
	if (err) {
		hang_up(s);
		return;
	}
	s->peer.qpn = m.qpn;
	memcpy(s->peer.gid.raw, m.gid, sizeof(m.gid));
	if (s->state == SOCK_INCOMING) {
		s->state = SOCK_KNOWN;
		return;
	}
	tell(s, &s->peer);
	/* One sign of life per process is enough, but it must be ours to keep:
	 * two that call each other would both hang up, and so would one that
	 * calls itself, and then think that the other is dead. */
	if (has_called(&s->peer, s))
		sock_free(s);
	else
		s->state = SOCK_KNOWN;
}

/* ---- questions ---------------------------------------------------------- */

static struct cm_sock *find_asked(const struct lease_port *port)
{
	for (struct list *n = cm.socks.next; n != &cm.socks; n = n->next) {
		struct cm_sock *s = container_of(n, struct cm_sock, node);

		if (s->state == SOCK_ASKED && s->port.ps == port->ps &&
		    s->port.port == port->port &&
		    !memcmp(s->port.ip, port->ip, sizeof(port->ip)))
			return s;
	}
	return NULL;
}

void cm_peer_ask(struct cm_id *id)
{
	struct lease_port port = {.ps = (uint16_t)id->pub.ps,
				  .port = id->dst_port};
	int err, fd;

	if (!id->dst_local) {
		memcpy(id->peer.gid.raw, id->dst_ip, sizeof(id->dst_ip));
		id->peer.qpn = WIRE_GSI_QPN;
		cm_conn_resend(&id->conn);
		return;
	}
	memcpy(port.ip, id->dst_ip, sizeof(port.ip));
	id->asked = find_asked(&port);
	if (id->asked)
		return;
	err = lease_connect(&cm.sockets, &port, &fd);
	if (err == -ECONNREFUSED) {
		nobody_there(id);
		return;
	}
	if (err)
		return; /* the next repetition asks again */
	if (say_hello(fd, id->device)) {
		close(fd);
		return;
	}
	id->asked = sock_new(fd, SOCK_ASKED, id->device);
	if (id->asked) {
		id->asked->port = port;
		id->asked->called = true;
	}
}

void cm_peer_forget(struct cm_id *id)
{
	id->asked = NULL; /* the answer is good for others */
	cm_timer_set(&id->ask_timer, UINT64_MAX);
}

void cm_peer_accept(struct cm_watch *lease)
{
	struct cm_id *id = container_of(lease, struct cm_id, lease_watch);
	int fd = accept4(lease->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct cm_device *dev = id->device ? id->device : cm.devices[0];

	if (fd < 0)
		return;
	if (!sock_new(fd, SOCK_INCOMING, dev))
		log_warn("cm", "a connection request is lost: no memory");
}

void cm_peers_abandon(void)
{
	for (struct list *n = cm.socks.next; n != &cm.socks; n = n->next) {
		struct cm_sock *s = container_of(n, struct cm_sock, node);

		if (s->watch.fd >= 0)
			close(s->watch.fd);
	}
}
