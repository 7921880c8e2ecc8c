/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side that is asked. The service thread answers requests as they come, as
 * many as the backlog allows; more of them wait, unanswered, until raccept has
 * made room. All lists here are guarded by rs_accept_mutex.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "rs_priv.h"

struct deferred {
	struct list node;
	struct rdma_cm_event *event;
};

bool rs_accept_ready(struct rsock *rs)
{
	return rs->acceptable;
}

/* ---- requests ------------------------------------------------------------ */

static void refuse(struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;

	(void)rdma_reject(id, NULL, 0); /* else the peer's patience ends it */
	(void)rdma_ack_cm_event(event);
	(void)rdma_destroy_id(id);
}

static int answer(struct rsock *rs, const struct rs_hello *peer)
{
	uint8_t hello[RS_HELLO_BYTES];
	struct rdma_conn_param param = {
		.private_data = hello,
		.private_data_len = sizeof(hello),
		.flow_control = 1,
		.rnr_retry_count = 7,
	};
	int err = rs_stream_open(rs);

	if (err)
		return err;
	rs_stream_start(rs, peer);
	rs_stream_hello(rs, hello);
	return rdma_accept(rs->id, &param) ? -errno : 0;
}

/* A new socket for the request; it owns the identifier. */
static int take(struct rsock *listener, struct rdma_cm_event *event)
{
	struct rdma_cm_id *id = event->id;
	struct rs_options opt;
	struct rs_hello peer;
	struct rsock *rs;
	int err = rs_hello_parse(event->param.conn.private_data,
				 event->param.conn.private_data_len, &peer);

	if (err)
		return err;
	pthread_mutex_lock(&listener->lock);
	opt = listener->opt;
	pthread_mutex_unlock(&listener->lock);
	rs = rs_new(listener->domain, listener->type, &opt);
	if (!rs)
		return -ENOMEM;
	rs->state = RS_CONNECTING;
	rs->id = id;
	id->context = rs;
	err = answer(rs, &peer);
	if (err) {
		/* The request is still to be refused. */
		rs_stream_close(rs);
		id->context = listener;
		rs->id = NULL;
		rs_put(rs);
		return err;
	}
	rs->listener = listener;
	list_append(&listener->accepting, &rs->accept_node);
	listener->accept_count++;
	return 0;
}

static int take_or_log(struct rsock *listener, struct rdma_cm_event *event)
{
	int err = take(listener, event);

	if (err)
		log_warn_limited(&listener->refused, clock_mono_ns(), "rsocket",
				 "a request is refused: %s", strerror(-err));
	return err;
}

/* Without the mutex: who is destroyed waits until the service thread, which
 * takes it, has acknowledged its events. */
static void finish(struct rdma_cm_event *event, int err)
{
	if (err)
		refuse(event);
	else
		(void)rdma_ack_cm_event(event); /* it is one of ours */
}

static bool defer(struct rsock *listener, struct rdma_cm_event *event)
{
	struct deferred *d;

	if (listener->deferred_count >= RS_DEFERRED_MAX)
		return false;
	d = malloc(sizeof(*d));
	if (!d)
		return false;
	d->event = event;
	list_append(&listener->deferred, &d->node);
	listener->deferred_count++;
	return true;
}

void rs_accept_request(struct rsock *listener, struct rdma_cm_event *event)
{
	bool deferred = false;
	int err = 0;

	pthread_mutex_lock(&rs_accept_mutex);
	/* A backlog of 0 is set by rs_accept_end. */
	if (!listener->backlog)
		err = -ECONNABORTED;
	else if (listener->accept_count < listener->backlog)
		err = take_or_log(listener, event);
	else if (defer(listener, event))
		deferred = true;
	else
		err = -EAGAIN;
	pthread_mutex_unlock(&rs_accept_mutex);
	if (!deferred)
		finish(event, err);
}

static struct rdma_cm_event *next_deferred(struct rsock *listener)
{
	struct rdma_cm_event *event;
	struct deferred *d;

	if (list_is_empty(&listener->deferred))
		return NULL;
	d = container_of(listener->deferred.next, struct deferred, node);
	event = d->event;
	list_remove(&d->node);
	listener->deferred_count--;
	free(d);
	return event;
}

/* ---- the end of a listener ----------------------------------------------- */

static void drop_all(struct list *from, struct list *to)
{
	while (!list_is_empty(from)) {
		struct rsock *rs =
			container_of(from->next, struct rsock, accept_node);

		list_remove(&rs->accept_node);
		rs->listener = NULL;
		list_append(to, &rs->accept_node);
	}
}

void rs_accept_end(struct rsock *listener)
{
	struct rdma_cm_event *event;
	struct list dropped;

	list_init(&dropped);
	pthread_mutex_lock(&rs_accept_mutex);
	listener->backlog = 0;
	drop_all(&listener->accepting, &dropped);
	drop_all(&listener->accepted, &dropped);
	pthread_mutex_unlock(&rs_accept_mutex);
	/* Nobody adds to it any more. */
	while ((event = next_deferred(listener)))
		refuse(event);
	while (!list_is_empty(&dropped)) {
		struct rsock *rs =
			container_of(dropped.next, struct rsock, accept_node);

		list_remove(&rs->accept_node);
		pthread_mutex_lock(&rs->lock);
		rs->closed = true;
		pthread_mutex_unlock(&rs->lock);
		(void)rdma_disconnect(rs->id); /* it may be gone already */
		rs_put(rs);
	}
}

/* ---- calls --------------------------------------------------------------- */

/* One more than asked for, as in Linux. */
static unsigned backlog_of(int wanted)
{
	if (wanted < 0)
		return 1;
	return wanted < RS_BACKLOG_MAX ? 1 + (unsigned)wanted : RS_BACKLOG_MAX;
}

RS_EXPORT int rlisten(int socket, int backlog)
{
	struct rsock *rs = rs_get(socket);
	int ret = 0;

	if (!rs)
		return -1;
	if (rs->dgram) {
		ret = rs_fail(EOPNOTSUPP);
	} else if (rs->state != RS_NEW && rs->state != RS_LISTENING) {
		ret = rs_fail(EINVAL);
	} else {
		/* That of the lists comes first. */
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_lock(&rs_accept_mutex);
		rs->backlog = backlog_of(backlog);
		pthread_mutex_unlock(&rs_accept_mutex);
		pthread_mutex_lock(&rs->lock);
		if (rs->state == RS_NEW)
			ret = rdma_listen(rs->id, RS_BACKLOG_MAX);
		if (!ret)
			rs->state = RS_LISTENING;
	}
	rs_leave(rs);
	return ret;
}

/* Requests that waited take the room that raccept made. */
static void refill(struct rsock *listener)
{
	struct rdma_cm_event *event;
	int err = 0;

	for (;;) {
		pthread_mutex_lock(&rs_accept_mutex);
		event = listener->accept_count < listener->backlog
				? next_deferred(listener)
				: NULL;
		if (event)
			err = take_or_log(listener, event);
		pthread_mutex_unlock(&rs_accept_mutex);
		if (!event)
			return;
		finish(event, err);
	}
}

static struct rsock *next_accepted(struct rsock *listener)
{
	struct rsock *rs = NULL;

	pthread_mutex_lock(&rs_accept_mutex);
	if (!list_is_empty(&listener->accepted)) {
		rs = container_of(listener->accepted.next, struct rsock,
				  accept_node);
		list_remove(&rs->accept_node);
		rs->listener = NULL;
		listener->accept_count--;
		pthread_mutex_lock(&listener->lock);
		listener->acceptable--;
		pthread_mutex_unlock(&listener->lock);
	}
	pthread_mutex_unlock(&rs_accept_mutex);
	if (rs)
		refill(listener);
	return rs;
}

static struct rsock *accept_one(struct rsock *listener)
{
	uint64_t deadline_ns = rs_deadline(listener->opt.recv_timeout_ns);
	struct rsock *rs;
	int err;

	if (listener->state != RS_LISTENING) {
		errno = EINVAL;
		return NULL;
	}
	for (;;) {
		/* Without its lock: that of the lists comes first. */
		pthread_mutex_unlock(&listener->lock);
		rs = next_accepted(listener);
		pthread_mutex_lock(&listener->lock);
		if (rs)
			return rs;
		if (!rs_may_wait(listener, 0)) {
			errno = EAGAIN;
			return NULL;
		}
		err = rs_wait(listener, rs_accept_ready, deadline_ns);
		if (err) {
			errno = err == -ETIMEDOUT ? EAGAIN : -err;
			return NULL;
		}
	}
}

RS_EXPORT int raccept(int socket, struct sockaddr *addr, socklen_t *addrlen)
{
	struct rsock *listener = rs_get(socket);
	struct rsock *rs;
	int fd = -1, err;

	if (!listener)
		return -1;
	if (listener->dgram) {
		rs = NULL;
		errno = EOPNOTSUPP;
	} else {
		rs = accept_one(listener);
	}
	rs_leave(listener);
	if (!rs)
		return -1;
	err = rs_publish(rs);
	if (err) {
		(void)rdma_disconnect(rs->id); /* the first error counts */
		rs_put(rs);
		return rs_fail(err);
	}
	fd = rs->fd;
	if (addr && addrlen)
		(void)rgetpeername(fd, addr, addrlen); /* it is connected */
	return fd;
}
