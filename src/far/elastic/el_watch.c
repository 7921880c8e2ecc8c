/* SPDX-License-Identifier: Apache-2.0 */
#include <aquifer/aqdv.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/error.h"
#include "client/verbs_api.h"
#include "el_watch_priv.h"

enum {
	TICK_MS = 500, /* how soon a node that is gone is noticed */
	TICK_MIN_MS = 5,
	DOZE_US = 500, /* at most, on the next frame */
};

/* After an event the next one is often near. */
#define DOZY_NS 2000000ull

STATIC_ASSERT((int)AQ_EVENT_APPEND == (int)BLOCK_EVENT_APPEND &&
		      (int)AQ_EVENT_SEAL == (int)BLOCK_EVENT_SEAL,
	      "events have the same numbers");

const char *aq_event_name(enum aq_event_kind kind)
{
	static const char *const names[] = {
		[AQ_EVENT_APPEND] = "append", [AQ_EVENT_PUT] = "put",
		[AQ_EVENT_GET] = "get",	      [AQ_EVENT_ACK] = "ack",
		[AQ_EVENT_BACK] = "back",     [AQ_EVENT_SET] = "set",
		[AQ_EVENT_DELETE] = "delete", [AQ_EVENT_ADD] = "add",
		[AQ_EVENT_SEAL] = "seal",     [AQ_EVENT_LOST] = "lost",
	};
	const char *name =
		(unsigned)kind < ARRAY_LEN(names) ? names[kind] : NULL;

	return name ? name : "other";
}

/* ---- life ---------------------------------------------------------------- */

static int set_timer(struct aq_watch *w, uint64_t period_ms)
{
	uint64_t ns = period_ms * 1000000;
	struct itimerspec t = {
		.it_value = {.tv_sec = (time_t)(ns / 1000000000),
			     .tv_nsec = (long)(ns % 1000000000)},
	};

	t.it_interval = t.it_value;
	if (w->tick_ns == ns)
		return 0;
	w->tick_ns = ns;
	return timerfd_settime(w->timer, 0, &t, NULL) ? -errno : 0;
}

static int make_fds(struct aq_watch *w)
{
	struct epoll_event on = {.events = EPOLLIN};

	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (w->epoll < 0 || w->timer < 0 ||
	    epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->timer, &on) ||
	    set_timer(w, TICK_MS))
		return error_set(-errno, "no descriptor to wait on: %s",
				 strerror(errno));
	return 0;
}

int aq_watch_open(struct aq_rack *rack, const char *path,
		  const struct aq_watch_options *options, struct aq_watch **out)
{
	struct aq_watch *w = calloc(1, sizeof(*w));
	int err;

	error_clear();
	if (!w)
		return error_set(-ENOMEM, "no memory for a watch");
	w->epoll = w->timer = -1;
	w->events = options && options->events ? options->events : UINT32_MAX;
	err = make_fds(w);
	if (!err)
		err = el_open(&w->object, rack, path, 0, NULL);
	w->object.has_channels = true;
	if (!err)
		err = el_tails_start(w, el_deadline_ns(&w->object));
	/* From now on nothing is missed, also while nobody calls. */
	if (!err)
		err = el_ears_ask(w);
	if (err) {
		aq_watch_close(w);
		return err;
	}
	el_ears_arm(w);
	*out = w;
	return 0;
}

void aq_watch_close(struct aq_watch *w)
{
	if (!w)
		return;
	el_ears_free(w);
	el_tails_free(w);
	el_close(&w->object);
	if (w->timer >= 0)
		(void)close(w->timer);
	if (w->epoll >= 0)
		(void)close(w->epoll);
	free(w);
}

int aq_watch_fd(const struct aq_watch *w)
{
	return w->epoll;
}

/* ---- events -------------------------------------------------------------- */

static void fill(const struct block_told *told, struct aq_event *event)
{
	*event = (struct aq_event){
		.kind = told->what ? (enum aq_event_kind)told->what
				   : AQ_EVENT_LOST,
		.value = told->what ? told->value : told->lost,
		.length_bytes = told->length,
		.data = told->inside ? told->bytes : NULL,
		.data_bytes = told->inside,
		.block = told->tail->number,
	};
}

/* One round: 1: there is an event; 0: there is none. */
static int look(struct aq_watch *w, struct aq_event *event)
{
	struct block_told told;
	bool has_more = true;
	int err, heard = 1;

	while (heard || has_more) {
		if (block_reader_next(&w->reader, &told)) {
			fill(&told, event);
			return 1;
		}
		if (w->err)
			return w->err;
		err = el_tails_follow(w, &has_more);
		if (err == -ESTALE) {
			/* What is known of it is told first. */
			w->err = err;
			for (unsigned i = 0; i < w->reader.count; i++)
				block_tail_end(w->reader.tail[i], false, 0);
			continue;
		}
		if (!err) {
			el_tails_sweep(w);
			err = el_ears_ask(w);
		}
		heard = err ? err : el_ears_hear(w);
		if (heard < 0)
			return heard;
	}
	return 0;
}

/* Events of the channels that woke us; of the timer. */
static void settle(struct aq_watch *w, const struct epoll_event *on)
{
	struct el_ear *e = on->data.ptr;
	struct ibv_cq *cq;
	uint64_t ticks;
	void *user;

	if (!e) {
		if (read(w->timer, &ticks, sizeof(ticks)) < 0)
			return; /* somebody else has read it */
	} else if (e->link && e->link->verbs->get_cq_event(e->link->channel,
							   &cq, &user) == 0) {
		e->link->verbs->ack_cq_events(cq, 1);
	}
}

/* Woken by the frame itself: one wake-up instead of two. False: there has been
 * no event for a while, or it cannot be. */
static bool doze(struct aq_watch *w, uint64_t wait_ns)
{
	uint64_t now_ns = el_now_ns();
	const struct ibv_mr *mr = w->object.mr;

	uint64_t us = (wait_ns - now_ns) / 1000 + 1;
	bool is_soon = now_ns - w->heard_ns < DOZY_NS && !w->map_ns;

	if (mr && is_soon && now_ns < wait_ns) {
		w->dozes = aqdv_doze(mr->context,
				     (uint32_t)u64_min(us, DOZE_US)) == 0;
		return w->dozes;
	}
	/* From now on its channel wakes it. */
	if (w->dozes)
		(void)aqdv_doze(mr->context, 0);
	w->dozes = false;
	return false;
}

static int sleep_until(struct aq_watch *w, uint64_t wait_ns)
{
	struct epoll_event on[16];
	uint64_t now_ns = el_now_ns();
	int n, ms = now_ns >= wait_ns
			    ? 0
			    : (int)u64_min((wait_ns - now_ns) / 1000000 + 1,
					   INT32_MAX);

	(void)set_timer(w, w->map_ns ? TICK_MIN_MS : TICK_MS);
	n = epoll_wait(w->epoll, on, ARRAY_LEN(on), ms);
	if (n < 0 && errno == EINTR)
		return error_set(-EINTR, "a signal came");
	for (int i = 0; i < n; i++)
		settle(w, &on[i]);
	return n < 0 ? error_set(-errno, "epoll: %s", strerror(errno)) : 0;
}

int aq_watch_next(struct aq_watch *w, struct aq_event *event,
		  uint32_t timeout_ms)
{
	uint64_t wait_ns = el_now_ns() + timeout_ms * 1000000ull;
	int n, err;

	error_clear();
	for (;;) {
		n = look(w, event);
		if (!n && doze(w, wait_ns))
			continue;
		if (!n) {
			el_ears_arm(w);
			n = look(w, event);
		}
		if (n == 1) {
			w->heard_ns = el_now_ns();
			return 0;
		}
		if (n < 0)
			return n == -ESTALE ? el_error(&w->object, BLOCK_STALE)
					    : n;
		err = sleep_until(w, wait_ns);
		if (err)
			return err;
		if (el_now_ns() >= wait_ns) {
			n = look(w, event);
			if (n == 1)
				return 0;
			if (n == 0) {
				el_ears_arm(w);
				n = look(w, event);
			}
			return n == 1 ? 0
			       : n    ? n
				      : error_set(-EAGAIN,
						  "nothing happened to %s",
						  w->object.path);
		}
	}
}
