/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies that come later: those of strangers, which are delayed, and those of
 * requests that a handler holds. Meanwhile the connection is suspended, and no
 * thread waits.
 *
 * The number of a held request says where it is: the socket, the place of its
 * connection, and how many were held before it. So one that was answered is
 * known by its number not being there, and nobody needs a pointer.
 */
#include <errno.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "base/error.h"
#include "listener_priv.h"

/* ---- delayed ------------------------------------------------------------- */

void held_delay(struct ctl_exchange *e, unsigned ms)
{
	struct listener *listener = e->listener;
	struct list *after;
	bool stops;

	e->due_ns = clock_mono_ns() + ms * 1000000ull;
	pthread_mutex_lock(&listener->lock);
	stops = listener->stops;
	if (!stops) {
		for (after = listener->delayed.prev;
		     after != &listener->delayed &&
		     container_of(after, struct ctl_exchange, link)->due_ns >
			     e->due_ns;
		     after = after->prev)
			;
		list_append(after->next, &e->link); /* before its next */
	}
	pthread_mutex_unlock(&listener->lock);
	if (stops)
		exchange_finish(e);
	else
		listener_wake(listener);
}

/* Those that are due, or all; the rest stays. */
static void take_due(struct listener *listener, uint64_t now_ns,
		     struct list *out)
{
	list_init(out);
	while (!list_is_empty(&listener->delayed)) {
		struct list *first = listener->delayed.next;

		if (container_of(first, struct ctl_exchange, link)->due_ns >
		    now_ns)
			break;
		list_remove(first);
		list_append(out, first);
	}
}

static void finish_all(struct list *l)
{
	while (!list_is_empty(l)) {
		struct list *first = l->next;

		list_remove(first);
		exchange_finish(container_of(first, struct ctl_exchange, link));
	}
}

int held_send_due(struct listener *listener, uint64_t now_ns)
{
	uint64_t next_ns = UINT64_MAX;
	struct list due;

	pthread_mutex_lock(&listener->lock);
	take_due(listener, now_ns, &due);
	if (!list_is_empty(&listener->delayed))
		next_ns = container_of(listener->delayed.next,
				       struct ctl_exchange, link)
				  ->due_ns;
	pthread_mutex_unlock(&listener->lock);
	finish_all(&due);
	return next_ns == UINT64_MAX
		       ? -1
		       : (int)((next_ns - now_ns + 999999) / 1000000);
}

/* ---- held ---------------------------------------------------------------- */

static uint32_t place_of(const struct listener *listener, uint64_t id)
{
	return (uint32_t)(id / 2 % listener->callers.room);
}

bool ctl_may_hold(const struct ctl_request *request)
{
	return request->exchange && !request->exchange->listener->is_never_held;
}

static int hold(const struct ctl_request *request, bool is_watched,
		uint64_t *id)
{
	struct ctl_exchange *e = request->exchange;
	struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT};
	struct listener *listener;
	uint32_t place;
	int err = 0;

	if (!ctl_may_hold(request))
		return error_set(-EOPNOTSUPP, "this request cannot be held");
	listener = e->listener;
	place = (uint32_t)(e->caller - listener->callers.caller);
	pthread_mutex_lock(&listener->lock);
	event.data.u64 =
		2 * (++listener->held_count * listener->callers.room + place) +
		!listener->is_local;
	if (listener->stops ||
	    (is_watched && epoll_ctl(listener->watch_fd, EPOLL_CTL_ADD,
				     e->caller->fd, &event) < 0))
		err = -EOPNOTSUPP;
	if (!err) {
		*e->is_held = true;
		/* Before anybody can answer it. */
		if (e->is_reading) {
			callers_phase(&listener->callers, e->caller,
				      CALLER_SERVED, clock_mono_ns());
			exchange_suspend(e);
		}
		ASSERT(!listener->held[place].id);
		listener->held[place] =
			(struct held){event.data.u64, e, is_watched};
		*id = event.data.u64;
	}
	pthread_mutex_unlock(&listener->lock);
	return err ? error_set(err, "this request cannot be held now") : 0;
}

int ctl_hold(const struct ctl_request *request, uint64_t *id)
{
	return hold(request, true, id);
}

int ctl_hold_briefly(const struct ctl_request *request, uint64_t *id)
{
	return hold(request, false, id);
}

/* NULL: somebody else was faster. */
static struct ctl_exchange *take(struct listener *listener, uint64_t id)
{
	struct ctl_exchange *e = NULL;
	struct held *held;

	if (!id || !listener->held)
		return NULL;
	held = &listener->held[place_of(listener, id)];
	pthread_mutex_lock(&listener->lock);
	if (held->id == id) {
		e = held->exchange;
		/* It was added, and is open while it is suspended. */
		if (held->is_watched)
			(void)epoll_ctl(listener->watch_fd, EPOLL_CTL_DEL,
					e->caller->fd, NULL);
		*held = (struct held){0};
	}
	pthread_mutex_unlock(&listener->lock);
	return e;
}

int held_answer(struct listener *listener, uint64_t id, struct ctl_reply *reply)
{
	struct ctl_exchange *e = take(listener, id);

	if (!e) {
		ctl_reply_release(reply);
		return error_set(-ENOENT, "whoever asked is gone");
	}
	e->reply = *reply;
	*reply = (struct ctl_reply){0};
	exchange_finish(e);
	return 0;
}

static void drop(struct listener *listener, uint64_t id, const char *why)
{
	struct ctl_exchange *e = take(listener, id);

	if (!e)
		return;
	ctl_reply_error(&e->reply, -ECANCELED, "%s", why);
	exchange_finish(e);
	if (listener->gone)
		listener->gone(listener->ctx, id);
}

void held_hang_up(struct listener *listener, uint64_t id)
{
	drop(listener, id, "the caller has hung up");
}

void held_end(struct listener *listener)
{
	struct list all;

	pthread_mutex_lock(&listener->lock);
	listener->stops = true;
	take_due(listener, UINT64_MAX, &all);
	pthread_mutex_unlock(&listener->lock);
	finish_all(&all);
	/* None is added any more; those that are answered meanwhile are 0. */
	for (uint32_t i = 0; listener->held && i < listener->callers.room;
	     i++) {
		uint64_t id;

		pthread_mutex_lock(&listener->lock);
		id = listener->held[i].id;
		pthread_mutex_unlock(&listener->lock);
		drop(listener, id, "the server ends");
	}
}
