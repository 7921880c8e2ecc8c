/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Event channels. The descriptor that applications poll is a counting eventfd:
 * one count per event, and whoever takes a count takes an event, if it is still
 * there.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cm_priv.h"

CM_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct cm_channel *ch = calloc(1, sizeof(*ch));

	if (!ch)
		return NULL;
	ch->pub.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
	if (ch->pub.fd < 0) {
		free(ch);
		return NULL;
	}
	list_init(&ch->events);
	return &ch->pub;
}

CM_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(channel->fd);
	free(to_channel(channel));
}

/* ---- events in ---------------------------------------------------------- */

struct cm_event *cm_event_new(struct cm_id *id, enum rdma_cm_event_type type,
			      int status)
{
	struct cm_event *ev = calloc(1, sizeof(*ev));

	if (!ev) {
		log_err("cm", "no memory for an event: %s is lost",
			rdma_event_str(type));
		return NULL;
	}
	ev->pub.id = &id->pub;
	ev->pub.event = type;
	ev->pub.status = status;
	ev->owner = id;
	list_init(&ev->node);
	return ev;
}

void cm_event_private(struct cm_event *ev, const uint8_t *data, uint8_t bytes)
{
	memcpy(ev->private_data, data, bytes);
	if (cm_id_is_datagram(to_id(ev->pub.id))) {
		ev->pub.param.ud.private_data = ev->private_data;
		ev->pub.param.ud.private_data_len = bytes;
	} else {
		ev->pub.param.conn.private_data = ev->private_data;
		ev->pub.param.conn.private_data_len = bytes;
	}
}

static void count_up(struct cm_channel *ch)
{
	uint64_t one = 1;

	/* It cannot overflow: there is not so much memory. */
	(void)!write(ch->pub.fd, &one, sizeof(one));
}

/* Never waits, whatever the program has made of the descriptor: the lock is
 * held, and another thread may have taken the count and not the lock yet. It
 * will find no event, and wait again. */
static void count_down(struct cm_channel *ch)
{
	uint64_t one;
	struct iovec v = {&one, sizeof(one)};

	(void)!preadv2(ch->pub.fd, &v, 1, -1, RWF_NOWAIT);
}

void cm_event_post(struct cm_event *ev)
{
	struct cm_channel *ch = to_channel(ev->owner->pub.channel);

	list_append(&ch->events, &ev->node);
	count_up(ch);
}

void cm_events_drop(struct cm_id *id)
{
	struct cm_channel *ch = to_channel(id->pub.channel);
	struct list *n, *next;

	for (n = ch->events.next; n != &ch->events; n = next) {
		struct cm_event *ev = container_of(n, struct cm_event, node);
		struct cm_id *child = to_id(ev->pub.id);

		next = n->next;
		if (ev->owner != id)
			continue;
		list_remove(n);
		count_down(ch);
		free(ev);
		if (child == id)
			continue;
		/* A request that nobody will see, and what came after it. */
		cm_events_drop(child);
		cm_id_free(child);
		next = ch->events.next;
	}
}

void cm_events_move(struct cm_id *id, struct cm_channel *to)
{
	struct cm_channel *from = to_channel(id->pub.channel);
	struct list *n, *next;

	for (n = from->events.next; n != &from->events; n = next) {
		struct cm_event *ev = container_of(n, struct cm_event, node);

		next = n->next;
		if (ev->owner != id)
			continue;
		list_remove(n);
		count_down(from);
		list_append(&to->events, &ev->node);
		count_up(to);
	}
}

/* ---- events out --------------------------------------------------------- */

static void become(struct cm_event *ev, enum rdma_cm_event_type type, int err)
{
	ev->pub.event = type;
	ev->pub.status = err;
}

/* The library connects the queue pairs that it created; for others the
 * application does it and then calls rdma_establish. */
static void finish_response(struct cm_event *ev)
{
	struct cm_id *id = ev->owner;
	int err;

	if (!id->pub.qp)
		return;
	err = cm_qp_connect(id);
	if (!err)
		err = cm_conn_establish(&id->conn, clock_mono_ns());
	if (!err) {
		become(ev, RDMA_CM_EVENT_ESTABLISHED, 0);
		return;
	}
	/* Too late or not, the peer is told. */
	(void)cm_conn_reject(&id->conn, WIRE_CM_REJ_CONSUMER, NULL, 0);
	become(ev, RDMA_CM_EVENT_CONNECT_ERROR, err);
}

static int migrate_request(struct cm_id *id)
{
	struct rdma_event_channel *ch = rdma_create_event_channel();

	if (!ch)
		return -errno;
	cm_events_move(id, to_channel(ch));
	id->pub.channel = ch;
	id->sync = true;
	return 0;
}

static void prepare(struct cm_event *ev)
{
	struct cm_id *child = to_id(ev->pub.id);

	if (ev->pub.event == RDMA_CM_EVENT_CONNECT_RESPONSE) {
		finish_response(ev);
	} else if (ev->pub.event == RDMA_CM_EVENT_REJECTED) {
		/* Without a queue pair of ours there is nothing to flush. */
		(void)cm_qp_error(ev->owner);
	} else if (ev->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		ev->owner->pending--;
		child->listener = NULL;
		if (ev->owner->sync && migrate_request(child))
			log_err("cm", "no event channel for a request");
	}
	ev->owner->delivered++;
}

CM_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				struct rdma_cm_event **event)
{
	struct cm_channel *ch = to_channel(channel);
	struct cm_event *ev = NULL;
	uint64_t one;

	if (!event)
		return cm_fail(EINVAL);
	while (!ev) {
		if (read(channel->fd, &one, sizeof(one)) < 0)
			return -1;
		cm_lock();
		if (!list_is_empty(&ch->events)) {
			ev = container_of(ch->events.next, struct cm_event,
					  node);
			list_remove(&ev->node);
			prepare(ev);
		}
		cm_unlock();
	}
	*event = &ev->pub;
	return 0;
}

CM_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	struct cm_event *ev;

	if (!event)
		return cm_fail(EINVAL);
	ev = container_of(event, struct cm_event, pub);
	cm_lock();
	ev->owner->acked++;
	pthread_cond_broadcast(&cm.acked);
	cm_unlock();
	free(ev);
	return 0;
}

int cm_complete(struct cm_id *id, bool sync, int err)
{
	struct rdma_cm_event *ev;

	if (err)
		return cm_fail(err);
	if (!sync)
		return 0;
	if (id->pub.event) {
		if (rdma_ack_cm_event(id->pub.event))
			return -1;
		id->pub.event = NULL;
	}
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -1;
	ev = id->pub.event;
	if (!ev->status)
		return 0;
	if (ev->event == RDMA_CM_EVENT_REJECTED)
		return cm_fail(ECONNREFUSED);
	return cm_fail(ev->status < 0 ? -ev->status : ECONNREFUSED);
}

/* ---- names -------------------------------------------------------------- */

CM_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
#define NAME(x) [RDMA_CM_EVENT_##x] = "RDMA_CM_EVENT_" #x
		NAME(ADDR_RESOLVED),   NAME(ADDR_ERROR),
		NAME(ROUTE_RESOLVED),  NAME(ROUTE_ERROR),
		NAME(CONNECT_REQUEST), NAME(CONNECT_RESPONSE),
		NAME(CONNECT_ERROR),   NAME(UNREACHABLE),
		NAME(REJECTED),	       NAME(ESTABLISHED),
		NAME(DISCONNECTED),    NAME(DEVICE_REMOVAL),
		NAME(MULTICAST_JOIN),  NAME(MULTICAST_ERROR),
		NAME(ADDR_CHANGE),     NAME(TIMEWAIT_EXIT),
#undef NAME
	};

	return (unsigned)event < ARRAY_LEN(names) ? names[event]
						  : "UNKNOWN EVENT";
}
