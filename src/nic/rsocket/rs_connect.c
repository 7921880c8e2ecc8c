/* SPDX-License-Identifier: Apache-2.0 */
/* The side that asks, and what happens to connections of both sides. */
#include <string.h>

#include "base/log.h"
#include "rs_priv.h"

/* ---- steps, in the service thread ---------------------------------------- */

static int ask(struct rsock *rs)
{
	uint8_t hello[RS_HELLO_BYTES];
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.retry_count = 7,
		.rnr_retry_count = 7, /* for ever: the peer may be slow */
	};
	int err = rs_stream_open(rs);

	if (err)
		return err;
	rs_stream_hello(rs, hello);
	return rdma_connect(rs->id, &param) ? -errno : 0;
}

static int answered(struct rsock *rs, const struct rdma_cm_event *event)
{
	struct rs_hello peer;
	int err = rs_hello_parse(event->param.conn.private_data,
				 event->param.conn.private_data_len, &peer);

	if (err)
		return err;
	rs_stream_start(rs, &peer);
	return 0;
}

static void connected(struct rsock *rs)
{
	rs->state = RS_CONNECTED;
	/* The second half of the ring can be given at once. */
	(void)rs_stream_progress(rs);
	rs_kick(rs);
}

static int error_of(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED)
		return ECONNREFUSED;
	if (event->event == RDMA_CM_EVENT_UNREACHABLE)
		return ETIMEDOUT;
	return event->status < 0 ? -event->status : EHOSTUNREACH;
}

static int asking_step(struct rsock *rs, const struct rdma_cm_event *event)
{
	int err;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED)
		return rdma_resolve_route(rs->id, RS_RESOLVE_MS) ? -errno : 0;
	if (event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		return ask(rs);
	if (event->event != RDMA_CM_EVENT_ESTABLISHED)
		return -error_of(event);
	err = answered(rs, event);
	if (err) {
		log_warn("rsocket", "the peer is no rsocket");
		(void)rdma_disconnect(rs->id); /* it failed already */
		return -ECONNREFUSED;
	}
	connected(rs);
	return 0;
}

static void ended(struct rsock *rs)
{
	/* The peer's last words came before its request to disconnect. */
	(void)rs_stream_progress(rs);
	if (rs->state == RS_CONNECTED && !rs->peer_gone && !rs->said_bye)
		rs_stream_fail(rs, ECONNRESET);
	rs->peer_gone = rs->peer_done = true;
	rs_kick(rs);
}

/* A connection that raccept has not given out yet. */
static struct rsock *accepting_event(struct rsock *rs,
				     const struct rdma_cm_event *event)
{
	struct rsock *listener = rs->listener;

	list_remove(&rs->accept_node);
	if (event->event == RDMA_CM_EVENT_ESTABLISHED) {
		pthread_mutex_lock(&rs->lock);
		connected(rs);
		pthread_mutex_unlock(&rs->lock);
		list_append(&listener->accepted, &rs->accept_node);
		pthread_mutex_lock(&listener->lock);
		listener->acceptable++;
		rs_kick(listener);
		pthread_mutex_unlock(&listener->lock);
		return NULL;
	}
	rs->listener = NULL;
	listener->accept_count--;
	return rs;
}

struct rsock *rs_connect_event(const struct rdma_cm_event *event)
{
	struct rsock *rs, *done = NULL;
	bool accepting;

	pthread_mutex_lock(&rs_accept_mutex);
	rs = event->id->context;
	/* A request that waits, or is refused, has its listener's context. */
	if (event->id != rs->id) {
		pthread_mutex_unlock(&rs_accept_mutex);
		return NULL;
	}
	accepting = rs->listener && rs->state == RS_CONNECTING;
	if (accepting)
		done = accepting_event(rs, event);
	pthread_mutex_unlock(&rs_accept_mutex);
	if (accepting)
		return done;
	pthread_mutex_lock(&rs->lock);
	if (rs->state == RS_CONNECTING && !rs->closed) {
		int err = asking_step(rs, event);

		if (err)
			rs_stream_fail(rs, -err);
	} else if (event->event == RDMA_CM_EVENT_DISCONNECTED) {
		ended(rs);
	}
	pthread_mutex_unlock(&rs->lock);
	return NULL;
}

/* ---- the application's call ---------------------------------------------- */

static int outcome(struct rsock *rs)
{
	if (rs->state != RS_FAILED)
		return 0;
	rs->so_error = 0;
	return rs_fail(rs->err);
}

static int wait_connected(struct rsock *rs)
{
	int err = rs_wait(rs, rs_is_settled,
			  rs_deadline(rs->opt.send_timeout_ns));

	if (err == -ETIMEDOUT)
		return rs_fail(EINPROGRESS);
	return err ? rs_fail(err) : outcome(rs);
}

static int connect_stream(struct rsock *rs, const struct sockaddr *addr)
{
	switch (rs->state) {
	case RS_NEW:
		break;
	case RS_CONNECTING:
		return rs_fail(EALREADY);
	case RS_CONNECTED:
	case RS_LISTENING:
		return rs_fail(EISCONN);
	case RS_FAILED:
		return rs->so_error ? outcome(rs) : rs_fail(ECONNABORTED);
	}
	rs->state = RS_CONNECTING;
	if (rdma_resolve_addr(rs->id, NULL, (struct sockaddr *)addr,
			      RS_RESOLVE_MS)) {
		int err = errno;

		rs->state = RS_NEW;
		return rs_fail(err == ENODEV ? ENETUNREACH : err);
	}
	if (rs->nonblocking)
		return rs_fail(EINPROGRESS);
	return wait_connected(rs);
}

RS_EXPORT int rconnect(int socket, const struct sockaddr *addr,
		       socklen_t addrlen)
{
	struct rsock *rs = rs_get(socket);
	int ret;

	if (!rs)
		return -1;
	if (!addr || addrlen < sizeof(addr->sa_family))
		ret = rs_fail(EINVAL);
	else if (rs->dgram)
		ret = rs_dgram_connect(rs, addr, addrlen);
	else if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		ret = rs_fail(EAFNOSUPPORT);
	else if (addrlen < (addr->sa_family == AF_INET
				    ? sizeof(struct sockaddr_in)
				    : sizeof(struct sockaddr_in6)))
		ret = rs_fail(EINVAL);
	else
		ret = connect_stream(rs, addr);
	rs_leave(rs);
	return ret;
}
