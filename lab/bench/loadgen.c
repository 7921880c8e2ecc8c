/* SPDX-License-Identifier: Apache-2.0 */
/* Kept connections that ask again as soon as they are answered. */
#include "loadgen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "ticks.h"

enum {
	ANSWER_MS = 10000, /* that all may be silent */
};

/* ---- answers ------------------------------------------------------------ */

int loadgen_whole_pong(const char *reply, unsigned reply_bytes)
{
	static const char pong[] = "+PONG\r\n";
	unsigned want = sizeof(pong) - 1;

	if (reply_bytes < want)
		return 0;
	return memcmp(reply, pong, want) == 0 ? (int)want : -EPROTO;
}

int loadgen_whole_http(const char *reply, unsigned reply_bytes)
{
	static const char begin[] = "HTTP/1.1 200";
	static const char field[] = "\r\nContent-Length:";
	const char *end = memmem(reply, reply_bytes, "\r\n\r\n", 4);
	unsigned long body = 0;

	if (!end)
		return 0;
	if (strncmp(reply, begin, sizeof(begin) - 1) != 0)
		return -EPROTO;
	for (const char *at = reply; at < end; at++)
		if (*at == '\r' &&
		    strncasecmp(at, field, sizeof(field) - 1) == 0)
			body = strtoul(at + sizeof(field) - 1, NULL, 10);
	end += 4;
	if (body > LOADGEN_REPLY_MAX)
		return -EPROTO;
	return reply_bytes >= end - reply + body ? (int)(end - reply + body)
						 : 0;
}

/* ---- lines -------------------------------------------------------------- */

/* Where lines go to. */
union place {
	struct sockaddr any;
	struct sockaddr_in in;
	struct sockaddr_un un;
};

static int dial(const union place *to, int *out)
{
	int fd = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (fd < 0)
		return error_set(-errno, "no socket: %s", strerror(errno));
	*out = fd;
	if (connect(fd, &to->any,
		    to->any.sa_family == AF_UNIX ? sizeof(to->un)
						 : sizeof(to->in)) != 0)
		return error_set(-errno, "cannot connect: %s", strerror(errno));
	/* Requests are whole; without it a later one could wait. */
	if (to->any.sa_family == AF_INET)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one,
				 sizeof(one));
	return 0;
}

static int open_lines(struct loadgen *g, const union place *to, unsigned count,
		      loadgen_whole_fn whole)
{
	int err = 0;

	g->whole = whole;
	g->count = 0;
	g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll_fd < 0)
		return error_set(-errno, "no epoll: %s", strerror(errno));
	while (!err && g->count < count) {
		struct loadgen_line *l = &g->line[g->count++];
		struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};

		*l = (struct loadgen_line){.fd = -1};
		err = dial(to, &l->fd);
		if (!err && epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, l->fd, &e))
			err = error_set(-errno, "epoll: %s", strerror(errno));
	}
	return err;
}

int loadgen_open(struct loadgen *g, uint16_t port, unsigned count,
		 loadgen_whole_fn whole)
{
	const union place to = {
		.in = {.sin_family = AF_INET,
		       .sin_port = htons(port),
		       .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};

	return open_lines(g, &to, count, whole);
}

int loadgen_open_unix(struct loadgen *g, const char *path, unsigned count,
		      loadgen_whole_fn whole)
{
	union place to = {.un = {.sun_family = AF_UNIX}};

	if ((size_t)snprintf(to.un.sun_path, sizeof(to.un.sun_path), "%s",
			     path) >= sizeof(to.un.sun_path))
		return error_set(-ENAMETOOLONG, "%s is too long", path);
	return open_lines(g, &to, count, whole);
}

void loadgen_close(struct loadgen *g)
{
	for (unsigned i = 0; i < g->count; i++)
		if (g->line[i].fd >= 0)
			(void)close(g->line[i].fd);
	if (g->count)
		(void)close(g->epoll_fd);
	g->count = 0;
}

/* ---- a run -------------------------------------------------------------- */

static void count_up(char *digits, unsigned count)
{
	while (count-- && digits[count]++ == '9')
		digits[count] = '0';
}

/* The socket has room for one request. */
static int ask(struct loadgen_line *l, uint64_t now_ns)
{
	ssize_t n;

	if (l->digits)
		count_up(l->digits, l->digit_count);
	n = send(l->fd, l->request, l->request_bytes, MSG_NOSIGNAL);

	l->since_ns = now_ns;
	l->reply_bytes = 0;
	return n == (ssize_t)l->request_bytes
		       ? 0
		       : error_set(n < 0 ? -errno : -EIO,
				   "a request cannot be sent");
}

/* 1: it has been answered; 0: not yet. */
static int hear(const struct loadgen *g, struct loadgen_line *l)
{
	ssize_t n = recv(l->fd, l->reply + l->reply_bytes,
			 sizeof(l->reply) - l->reply_bytes, MSG_DONTWAIT);
	int len;

	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return error_set(n < 0 ? -errno : -EPIPE,
				 "a connection has ended");
	l->reply_bytes += (unsigned)n;
	len = g->whole(l->reply, l->reply_bytes);
	if (len < 0 || (len && (unsigned)len != l->reply_bytes) ||
	    (!len && l->reply_bytes == sizeof(l->reply)))
		return error_set(-EPROTO, "answered with %.*s",
				 (int)u64_min(l->reply_bytes, 80), l->reply);
	return len > 0;
}

int loadgen_run(struct loadgen *g, uint64_t window_ns,
		struct loadgen_result *out)
{
	struct epoll_event event[LOADGEN_LINES_MAX];
	uint64_t start = bench_now_ns(), now = start;
	unsigned waiting = 0;
	int err = 0;

	out->answers = 0;
	hist_init(&out->latency_ns);
	for (; waiting < g->count && !err; waiting++)
		err = ask(&g->line[waiting], now);
	while (!err && waiting) {
		int n = epoll_wait(g->epoll_fd, event, LOADGEN_LINES_MAX,
				   ANSWER_MS);

		if (n <= 0)
			err = error_set(-ETIMEDOUT, "no answer");
		for (int i = 0; i < n && !err; i++) {
			struct loadgen_line *l = event[i].data.ptr;
			int heard = hear(g, l);

			err = heard < 0 ? heard : 0;
			if (heard <= 0)
				continue;
			now = bench_now_ns();
			hist_record(&out->latency_ns, now - l->since_ns);
			out->answers++;
			if (now - start < window_ns)
				err = ask(l, now);
			else
				waiting--;
		}
	}
	out->elapsed_ns = now - start;
	return err;
}
