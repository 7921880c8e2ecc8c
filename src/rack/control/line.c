/* SPDX-License-Identifier: Apache-2.0 */
/* One plain connection: its requests come in, their replies go out. */
#include <errno.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "head_priv.h"
#include "listener_priv.h"
#include "plain_priv.h"

enum {
	REPLY_HEAD_MAX = 4096,
	TURNS = 16, /* of one line, before others have theirs */
};

static void set_phase(struct line *l, enum caller_phase phase)
{
	callers_phase(&l->plain->listener->callers, l->caller, phase,
		      clock_mono_ns());
}

void line_end(struct line *l)
{
	struct plain *p = l->plain;

	pthread_mutex_lock(&p->lock);
	list_remove(&l->link);
	list_remove(&l->back);
	/* A child that was forked a moment ago may have the socket, too. */
	(void)epoll_ctl(p->epoll_fd, EPOLL_CTL_DEL, l->fd, NULL);
	pthread_mutex_unlock(&p->lock);
	callers_leave(&p->listener->callers, l->caller);
	(void)close(l->fd); /* nothing is waited for */
	exchange_destroy(l->exchange);
	free(l->early);
	free(l->late);
	free(l);
}

/* ---- replies ------------------------------------------------------------- */

/* False: it does not fit. */
static bool write_head(const struct line *l, const struct ctl_reply *r,
		       char out[REPLY_HEAD_MAX], size_t *bytes)
{
	size_t n = (size_t)snprintf(out, REPLY_HEAD_MAX, "HTTP/1.1 %u %s\r\n",
				    r->status,
				    MHD_get_reason_phrase_for(r->status));

#define FIELD(...)                                                         \
	do {                                                               \
		if (n < REPLY_HEAD_MAX)                                    \
			n += (size_t)snprintf(out + n, REPLY_HEAD_MAX - n, \
					      __VA_ARGS__);                \
	} while (0)
	if (l->closes)
		FIELD("Connection: close\r\n");
	if (r->status != 204)
		FIELD("Content-Length: %zu\r\n", r->body_bytes);
	if (r->content_type)
		FIELD("Content-Type: %s\r\n", r->content_type);
	if (r->status == 401)
		FIELD("WWW-Authenticate: Bearer\r\n");
	for (const struct ctl_header *h = r->headers; h && h->name; h++)
		FIELD("%s: %s\r\n", h->name, h->value);
	if (r->retry_s)
		FIELD("Retry-After: %u\r\n", r->retry_s);
	FIELD("\r\n");
#undef FIELD
	*bytes = n;
	return n < REPLY_HEAD_MAX;
}

/* What was not taken waits in the line. */
static void keep_late(struct line *l, const char *head, size_t head_bytes,
		      const struct ctl_reply *r, size_t body_bytes, size_t sent)
{
	size_t all = head_bytes + body_bytes;

	if (sent == all)
		return;
	l->late = malloc(all);
	if (!l->late) {
		l->closes = true;
		return;
	}
	memcpy(l->late, head, head_bytes);
	if (body_bytes)
		memcpy(l->late + head_bytes, r->body, body_bytes);
	l->late_bytes = all;
	l->late_sent = sent;
}

static void send_reply(struct line *l, const struct ctl_reply *r)
{
	char head[REPLY_HEAD_MAX];
	size_t body_bytes = l->has_no_body || !r->body ? 0 : r->body_bytes;
	struct iovec part[2] = {{.iov_base = head},
				{.iov_base = r->body, .iov_len = body_bytes}};
	const struct msghdr message = {.msg_iov = part, .msg_iovlen = 2};
	ssize_t n;

	if (!write_head(l, r, head, &part[0].iov_len)) {
		l->closes = true;
		return;
	}
	n = sendmsg(l->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		l->closes = true;
		return;
	}
	keep_late(l, head, part[0].iov_len, r, body_bytes,
		  n > 0 ? (size_t)n : 0);
}

void line_reply(struct line *l)
{
	struct ctl_exchange *e = l->exchange;

	l->closes |= l->is_last;
	send_reply(l, &e->reply);
	l->exchange = NULL;
	exchange_destroy(e);
	set_phase(l, l->late ? CALLER_READS : CALLER_IDLE);
}

/* Whether its thread is told when there is room for more. Also if there is by
 * now. */
static void be_patient(struct line *l, bool is_patient)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET |
					      (is_patient ? EPOLLOUT : 0),
				    .data.ptr = l};
	int err = 0;

	if (is_patient != l->is_patient)
		err = epoll_ctl(l->plain->epoll_fd, EPOLL_CTL_MOD, l->fd,
				&event);
	ASSERT(err == 0); /* it was added, and is open */
	l->is_patient = is_patient;
}

/* True: all of it is written, or never will be. */
static bool send_late(struct line *l)
{
	while (l->late_sent < l->late_bytes) {
		ssize_t n = send(l->fd, l->late + l->late_sent,
				 l->late_bytes - l->late_sent,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			be_patient(l, true);
			return false;
		}
		if (n < 0) {
			l->closes = true;
			break;
		}
		l->late_sent += (size_t)n;
	}
	free(l->late);
	l->late = NULL;
	l->late_bytes = l->late_sent = 0;
	be_patient(l, false);
	set_phase(l, CALLER_IDLE);
	return true;
}

/* ---- requests ------------------------------------------------------------ */

/* True: it was answered at once, or cannot be. False: it is somebody else's. */
static bool serve(struct line *l)
{
	/* What follows is ordered by the locks of who takes the request. */
	atomic_store_explicit(&l->state, LINE_SERVED, memory_order_relaxed);
	if (!listener_serve(l->exchange))
		return false;
	line_reply(l);
	/* Nobody else has seen it. */
	atomic_store_explicit(&l->state, LINE_READS, memory_order_relaxed);
	return true;
}

/* What cannot be understood is answered, and nothing more is read. */
static void refuse(struct line *l, unsigned status)
{
	struct ctl_reply r = {0};

	ctl_reply_last_error(&r, -EINVAL);
	r.status = status;
	l->closes = true;
	l->has_no_body = false;
	send_reply(l, &r);
	ctl_reply_release(&r);
}

static bool has_more_body(const struct line *l)
{
	return l->is_chunked ? l->chunks.at != CHUNK_AT_END : l->body_left > 0;
}

/* How much of it was taken; 0: it is wrong, and the line ends. */
static size_t take_body(struct line *l, const char *data, size_t bytes)
{
	const char *piece = data;
	size_t piece_bytes = u64_min(bytes, l->body_left);
	ssize_t n = (ssize_t)piece_bytes;

	if (l->is_chunked)
		n = chunks_take(&l->chunks, data, bytes, &piece, &piece_bytes);
	else
		l->body_left -= piece_bytes;
	if (n < 0) {
		refuse(l, 400);
		return 0;
	}
	if (piece_bytes)
		exchange_take_body(l->exchange, piece, piece_bytes);
	return (size_t)n;
}

static bool say_continue(struct line *l)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	/* The last reply is written, so there is room. */
	return send(l->fd, text, sizeof(text) - 1,
		    MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(text) - 1;
}

/* A request begins; false: the line ends. */
static bool begin(struct line *l, const char *data, size_t head_bytes)
{
	char *text = malloc(head_bytes);
	struct head h;
	unsigned status;

	if (!text)
		return false;
	memcpy(text, data, head_bytes);
	status = head_parse(text, head_bytes, &h);
	if (status) {
		refuse(l, status);
		free(text);
		return false;
	}
	l->is_last = h.closes;
	l->has_no_body = strcmp(h.method, "HEAD") == 0;
	l->body_left = h.body_bytes;
	l->is_chunked = h.is_chunked;
	l->chunks = (struct chunks){.at = CHUNK_AT_SIZE};
	l->exchange = listener_begin(l->plain->listener, l, &h, text);
	return l->exchange &&
	       (!h.continues || !has_more_body(l) || say_continue(l));
}

static bool keep_early(struct line *l, const char *data, size_t bytes,
		       bool is_part)
{
	l->early = malloc(bytes);
	if (!l->early)
		return false;
	memcpy(l->early, data, bytes);
	l->early_bytes = bytes;
	l->is_part = is_part;
	return true;
}

enum took {
	TOOK_ALL,   /* and more may come */
	TOOK_ENDS,  /* nothing more is read */
	TOOK_GIVEN, /* the line is somebody else's */
};

/* The head of a request, if it is there; 0: TOOK_ALL or TOOK_ENDS. */
static size_t take_head(struct line *l, const char *data, size_t bytes,
			enum took *took)
{
	size_t n = head_length(data, u64_min(bytes, HEAD_MAX));

	set_phase(l, CALLER_SENDS);
	*took = TOOK_ENDS;
	if (n)
		return begin(l, data, n) ? n : 0;
	if (bytes >= HEAD_MAX) {
		(void)error_set(-E2BIG,
				"the head of a request has more than %d bytes",
				HEAD_MAX);
		refuse(l, 431);
	} else if (keep_early(l, data, bytes, true)) {
		*took = TOOK_ALL;
	}
	return 0;
}

/* Takes what has come: a part of a request, one, or several. */
static enum took take(struct line *l, const char *data, size_t bytes)
{
	while (bytes) {
		enum took took = TOOK_ENDS;
		size_t n = l->exchange ? take_body(l, data, bytes)
				       : take_head(l, data, bytes, &took);

		if (!n)
			return took;
		data += n;
		bytes -= n;
		if (has_more_body(l))
			continue;
		/* Before anybody else has it. */
		if (bytes && !keep_early(l, data, bytes, false))
			return TOOK_ENDS;
		return serve(l) ? TOOK_ALL : TOOK_GIVEN;
	}
	return TOOK_ALL;
}

/* Something was kept that was not looked at. */
static bool has_more(const struct line *l)
{
	return l->early && !l->is_part;
}

/* Into the scratch, behind what was kept: how much is there. Negative: nothing
 * has come; 0: nothing will. */
static ssize_t read_some(struct line *l)
{
	char *scratch = l->plain->scratch;
	size_t kept = l->early_bytes, room = PLAIN_SCRATCH - kept;
	bool is_enough = has_more(l);
	ssize_t n = 0;

	if (l->early)
		memcpy(scratch, l->early, kept);
	while (!is_enough) {
		n = recv(l->fd, scratch + kept, room, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN)
			return -1;
		if (n == 0 || (n < 0 && errno != EINTR))
			return 0;
		if (n > 0)
			break;
	}
	/* Less than there was room for is all that there is, and epoll tells of
	 * more. */
	if (is_enough || (size_t)n == room)
		l->reads_on = true;
	free(l->early);
	l->early = NULL;
	l->early_bytes = 0;
	l->is_part = false;
	return (ssize_t)kept + n;
}

void line_go_on(struct line *l, bool reads_on)
{
	l->reads_on |= reads_on;
	for (unsigned turn = 0;; turn++) {
		enum took took;
		ssize_t n;

		if (l->late && !send_late(l))
			return;
		if (l->closes)
			break;
		if (turn == TURNS) {
			plain_later(l);
			return;
		}
		n = read_some(l);
		if (n < 0) {
			l->reads_on = false;
			return;
		}
		if (n == 0)
			break;
		took = take(l, l->plain->scratch, (size_t)n);
		if (took == TOOK_GIVEN)
			return;
		l->closes |= took == TOOK_ENDS;
		if (!l->closes && !l->late && !l->reads_on && !has_more(l))
			return;
	}
	line_end(l);
}
