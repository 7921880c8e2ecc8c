// SPDX-License-Identifier: Apache-2.0
/*
 * The calls of <rdma/rsocket.h>, both ends in one process, linked with Debian's
 * librdmacm like any program. Usage: rs_calls CASE; "all" runs every case.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rsocket.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(cond)                                                         \
	do {                                                                \
		if (!(cond)) {                                              \
			fprintf(stderr, "%s:%d: %s (errno %s)\n", __FILE__, \
				__LINE__, #cond, strerror(errno));          \
			exit(1);                                            \
		}                                                           \
	} while (0)

/* The call fails, and says why. */
#define FAILS(call, why) CHECK((errno = 0, (call)) == -1 && errno == (why))

struct pair {
	int listener, a, b; /* a asked, b was accepted */
};

static struct sockaddr_in loopback(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return in;
}

static int listen_at(struct sockaddr_in *in, int backlog, int iomaps)
{
	socklen_t len = sizeof(*in);
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);

	*in = loopback();
	CHECK(fd >= 0);
	CHECK(!rsetsockopt(fd, SOL_RDMA, RDMA_IOMAPSIZE, &iomaps,
			   sizeof(iomaps)));
	CHECK(!rbind(fd, (struct sockaddr *)in, sizeof(*in)));
	CHECK(!rlisten(fd, backlog));
	CHECK(!rgetsockname(fd, (struct sockaddr *)in, &len));
	CHECK(in->sin_port && len == sizeof(*in));
	return fd;
}

static struct pair connect_pair(void)
{
	struct sockaddr_in in, peer;
	socklen_t len = sizeof(peer);
	struct pair p = {.listener = listen_at(&in, 5, 4)};

	p.a = rsocket(AF_INET, SOCK_STREAM, IPPROTO_TCP);
	CHECK(p.a >= 0);
	/* As with TCP: it succeeds before anybody has called raccept. */
	CHECK(!rconnect(p.a, (struct sockaddr *)&in, sizeof(in)));
	p.b = raccept(p.listener, (struct sockaddr *)&peer, &len);
	CHECK(p.b >= 0);
	CHECK(len == sizeof(peer) && peer.sin_family == AF_INET);
	return p;
}

static void close_pair(struct pair *p)
{
	CHECK(!rclose(p->a));
	CHECK(!rclose(p->b));
	CHECK(!rclose(p->listener));
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 13 + (i >> 9));
}

/* ---- cases --------------------------------------------------------------- */

static void case_names(void)
{
	struct sockaddr_in x, y;
	struct pair p = connect_pair();
	socklen_t len = sizeof(x);

	CHECK(!rgetpeername(p.a, (struct sockaddr *)&x, &len));
	CHECK(!rgetsockname(p.b, (struct sockaddr *)&y, &len));
	CHECK(x.sin_port == y.sin_port &&
	      x.sin_addr.s_addr == y.sin_addr.s_addr);
	CHECK(!rgetsockname(p.a, (struct sockaddr *)&x, &len));
	CHECK(!rgetpeername(p.b, (struct sockaddr *)&y, &len));
	CHECK(x.sin_port == y.sin_port);
	FAILS(rgetpeername(p.listener, (struct sockaddr *)&x, &len), ENOTCONN);
	close_pair(&p);
}

static void case_flags(void)
{
	struct pair p = connect_pair();
	struct iovec out[3] = {{"he", 2}, {NULL, 0}, {"llo", 3}};
	char buf[16];
	struct iovec in[2] = {{buf, 1}, {buf + 1, 15}};
	struct msghdr msg = {.msg_iov = in, .msg_iovlen = 2};

	FAILS(rrecv(p.b, buf, 1, MSG_DONTWAIT), EAGAIN);
	CHECK(rwritev(p.a, out, 3) == 5);
	CHECK(rrecv(p.b, buf, sizeof(buf), MSG_PEEK) == 5);
	CHECK(rrecv(p.b, buf, 2, MSG_PEEK) == 2);
	CHECK(rreadv(p.b, in, 2) == 5 && !memcmp(buf, "hello", 5));
	CHECK(rsendto(p.a, "abc", 3, MSG_NOSIGNAL, NULL, 0) == 3);
	CHECK(rsend(p.a, "def", 3, 0) == 3);
	CHECK(rrecv(p.b, buf, 6, MSG_WAITALL) == 6 &&
	      !memcmp(buf, "abcdef", 6));
	CHECK(rwrite(p.b, "xyz", 3) == 3);
	CHECK(rrecvmsg(p.a, &msg, 0) == 3 && !memcmp(buf, "xyz", 3));
	FAILS(rsend(p.a, "x", 1, MSG_OOB), EOPNOTSUPP);
	CHECK(rsend(p.a, NULL, 0, 0) == 0);
	CHECK(rrecv(p.a, NULL, 0, 0) == 0);
	FAILS(rsend(p.a, NULL, 3, 0), EFAULT);
	close_pair(&p);
}

static void case_options(void)
{
	struct pair p = connect_pair();
	struct timeval tv = {.tv_usec = 20000}, back;
	int v = 1, fd = rsocket(AF_INET, SOCK_STREAM, 0);
	struct linger linger = {1, 3};
	socklen_t len = sizeof(v);
	char c;

	CHECK(!rsetsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &v, len));
	CHECK(!rsetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, len));
	CHECK(!rsetsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	v = 100000;
	CHECK(!rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &v, len));
	CHECK(!rsetsockopt(fd, SOL_SOCKET, SO_SNDBUF, &v, len));
	CHECK(!rgetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &v, &len) && v >= 100000);
	v = 50;
	CHECK(!rsetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &v, len));
	CHECK(!rsetsockopt(fd, SOL_RDMA, RDMA_RQSIZE, &v, len));
	CHECK(!rsetsockopt(fd, SOL_RDMA, RDMA_INLINE, &v, len));
	v = 0;
	CHECK(!rgetsockopt(fd, SOL_RDMA, RDMA_SQSIZE, &v, &len) && v == 50);
	FAILS(rsetsockopt(fd, SOL_RDMA, RDMA_ROUTE, &v, len), EOPNOTSUPP);
	FAILS(rsetsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v, len), ENOPROTOOPT);
	FAILS(rsetsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, &v, len),
	      ENOPROTOOPT);
	FAILS(rsetsockopt(fd, SOL_SOCKET, SO_RCVBUF, &v, 1), EINVAL);
	CHECK(!rgetsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len) &&
	      v == SOCK_STREAM);
	CHECK(!rsetsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	len = sizeof(back);
	CHECK(!rgetsockopt(p.a, SOL_SOCKET, SO_RCVTIMEO, &back, &len));
	CHECK(back.tv_usec == 20000);
	FAILS(rrecv(p.a, &c, 1, 0), EAGAIN);
	CHECK(rfcntl(p.a, F_GETFL) == O_RDWR);
	CHECK(!rfcntl(p.a, F_SETFL, O_NONBLOCK));
	CHECK(rfcntl(p.a, F_GETFL) & O_NONBLOCK);
	FAILS(rfcntl(p.a, F_SETLK, NULL), EINVAL);
	CHECK(!rclose(fd));
	FAILS(rclose(fd), EBADF);
	FAILS(rsend(fd, "x", 1, 0), EBADF);
	FAILS(rsocket(AF_UNIX, SOCK_STREAM, 0), EAFNOSUPPORT);
	FAILS(rsocket(AF_INET, SOCK_RAW, 0), EPROTONOSUPPORT);
	close_pair(&p);
}

/* Nobody listens; and what SO_ERROR says of a connection made meanwhile. */
static void case_refused(void)
{
	struct sockaddr_in in;
	struct pollfd p = {.events = POLLOUT};
	int fd = listen_at(&in, 1, 0), v = 0;
	socklen_t len = sizeof(v);

	CHECK(!rclose(fd));
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	FAILS(rconnect(fd, (struct sockaddr *)&in, sizeof(in)), ECONNREFUSED);
	CHECK(!rclose(fd));
	p.fd = fd = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(fd, (struct sockaddr *)&in, sizeof(in)), EINPROGRESS);
	CHECK(rpoll(&p, 1, 20000) == 1 && p.revents & POLLERR);
	CHECK(!rgetsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len));
	CHECK(v == ECONNREFUSED);
	CHECK(!rclose(fd));
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	FAILS(rconnect(fd, (struct sockaddr *)&in, 3), EINVAL);
	FAILS(rsend(fd, "x", 1, 0), ENOTCONN);
	FAILS(rrecv(fd, &v, 1, 0), ENOTCONN);
	FAILS(raccept(fd, NULL, NULL), EINVAL);
	CHECK(!rclose(fd));
}

static void case_nonblocking(void)
{
	static uint8_t block[1 << 16];
	struct pair p;
	struct sockaddr_in in;
	struct pollfd fd = {.events = POLLIN};
	size_t sent = 0, got = 0;
	ssize_t n;
	int v = 1;
	socklen_t len = sizeof(v);

	p.listener = listen_at(&in, 5, 0);
	CHECK(!rfcntl(p.listener, F_SETFL, O_NONBLOCK));
	FAILS(raccept(p.listener, NULL, NULL), EAGAIN);
	p.a = rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	FAILS(rconnect(p.a, (struct sockaddr *)&in, sizeof(in)), EINPROGRESS);
	fd.fd = p.listener;
	CHECK(rpoll(&fd, 1, 10000) == 1 && fd.revents == POLLIN);
	p.b = raccept(p.listener, NULL, NULL);
	CHECK(p.b >= 0);
	fd = (struct pollfd){.fd = p.a, .events = POLLOUT};
	CHECK(rpoll(&fd, 1, 10000) == 1 && fd.revents == POLLOUT);
	CHECK(!rgetsockopt(p.a, SOL_SOCKET, SO_ERROR, &v, &len) && v == 0);
	/* Until nothing more fits; then it is not writable. */
	for (;;) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = pattern(sent + i);
		n = rsend(p.a, block, sizeof(block), 0);
		if (n < 0)
			break;
		sent += (size_t)n;
		CHECK(sent < 1 << 24);
	}
	CHECK(errno == EAGAIN && sent > 0);
	while (rpoll(&fd, 1, 50) == 1)
		CHECK(rsend(p.a, block, 0, 0) == 0 && fd.revents == POLLOUT &&
		      (n = rsend(p.a, &(uint8_t){pattern(sent)}, 1, 0)) == 1 &&
		      ++sent);
	while (got < sent) {
		n = rrecv(p.b, block, sizeof(block), MSG_DONTWAIT);
		CHECK(n > 0 || errno == EAGAIN);
		for (ssize_t i = 0; i < n; i++)
			CHECK(block[i] == pattern(got + (size_t)i));
		got += n > 0 ? (size_t)n : 0;
	}
	CHECK(rpoll(&fd, 1, 10000) == 1 && fd.revents == POLLOUT);
	close_pair(&p);
}

/* One thread writes and one reads, at both ends. */
enum {
	STREAM_BYTES = 3 << 20,
};

static void *write_all(void *arg)
{
	int fd = *(int *)arg;
	uint8_t buf[5000];
	size_t done = 0;

	while (done < STREAM_BYTES) {
		size_t n = 1 + (done * 7) % sizeof(buf);
		ssize_t sent;

		if (n > STREAM_BYTES - done)
			n = STREAM_BYTES - done;
		for (size_t i = 0; i < n; i++)
			buf[i] = pattern(done + i);
		sent = rsend(fd, buf, n, 0);
		CHECK(sent == (ssize_t)n);
		done += n;
	}
	CHECK(!rshutdown(fd, SHUT_WR));
	return NULL;
}

static void *read_all(void *arg)
{
	int fd = *(int *)arg;
	uint8_t buf[7001];
	size_t done = 0;
	ssize_t n;

	while ((n = rread(fd, buf, 1 + done % sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++)
			CHECK(buf[i] == pattern(done + (size_t)i));
		done += (size_t)n;
	}
	CHECK(n == 0 && done == STREAM_BYTES);
	return NULL;
}

static void case_threads(void)
{
	struct pair p = connect_pair();
	pthread_t t[4];

	CHECK(!pthread_create(&t[0], NULL, write_all, &p.a));
	CHECK(!pthread_create(&t[1], NULL, read_all, &p.a));
	CHECK(!pthread_create(&t[2], NULL, write_all, &p.b));
	CHECK(!pthread_create(&t[3], NULL, read_all, &p.b));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(t[i], NULL));
	FAILS(rsend(p.a, "x", 1, 0), EPIPE);
	close_pair(&p);
}

static void case_ends(void)
{
	struct pair p = connect_pair();
	struct linger reset = {1, 0};
	struct pollfd fd = {.events = POLLIN};
	char buf[8];

	/* Half closed: the other direction still works. */
	CHECK(rsend(p.a, "bye", 3, 0) == 3);
	CHECK(!rshutdown(p.a, SHUT_WR));
	CHECK(rrecv(p.b, buf, sizeof(buf), MSG_WAITALL) == 3);
	CHECK(rrecv(p.b, buf, sizeof(buf), 0) == 0);
	CHECK(rsend(p.b, "more", 4, 0) == 4);
	CHECK(rrecv(p.a, buf, sizeof(buf), 0) == 4);
	/* Closed with data on the way: it arrives, then the end. */
	CHECK(rsend(p.b, "last", 4, 0) == 4);
	CHECK(!rclose(p.b));
	fd.fd = p.a;
	CHECK(rpoll(&fd, 1, 10000) == 1 && fd.revents == POLLIN);
	CHECK(rrecv(p.a, buf, sizeof(buf), 0) == 4 && !memcmp(buf, "last", 4));
	CHECK(rrecv(p.a, buf, sizeof(buf), 0) == 0);
	CHECK(!rclose(p.a));
	CHECK(!rclose(p.listener));
	/* Closed without patience: a reset. */
	p = connect_pair();
	CHECK(!rsetsockopt(p.b, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)));
	CHECK(!rclose(p.b));
	FAILS(rrecv(p.a, buf, sizeof(buf), 0), ECONNRESET);
	FAILS(rsend(p.a, buf, 1, 0), ECONNRESET);
	CHECK(!rclose(p.a));
	CHECK(!rclose(p.listener));
}

static void *close_later(void *arg)
{
	struct timespec ts = {.tv_nsec = 50000000};

	nanosleep(&ts, NULL);
	CHECK(!rclose(*(int *)arg));
	return NULL;
}

/* Who sleeps in a call learns that another thread closed the socket. */
static void case_close_wakes(void)
{
	struct pair p = connect_pair();
	struct pollfd fd = {.fd = p.listener, .events = POLLIN};
	pthread_t t;
	char c;

	CHECK(!pthread_create(&t, NULL, close_later, &p.a));
	CHECK(rrecv(p.a, &c, 1, 0) <= 0);
	CHECK(!pthread_join(t, NULL));
	CHECK(!pthread_create(&t, NULL, close_later, &p.listener));
	CHECK(rpoll(&fd, 1, 20000) == 1 && fd.revents & POLLNVAL);
	CHECK(!pthread_join(t, NULL));
	CHECK(!rclose(p.b));
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Sockets and other descriptors, in one call; and many of them. */
static void case_poll(void)
{
	struct pair p = connect_pair();
	struct pollfd fds[40];
	struct timeval tv = {.tv_usec = 20000};
	fd_set r, w;
	int pipe_fds[2];
	double busy;
	char c = 'x';

	CHECK(!pipe(pipe_fds));
	for (int i = 0; i < 40; i++)
		fds[i] = (struct pollfd){.fd = i % 2 ? -1 : pipe_fds[0],
					 .events = POLLIN};
	fds[7] = (struct pollfd){.fd = p.b, .events = POLLIN};
	/* Who waits sleeps. */
	busy = cpu_seconds();
	CHECK(rpoll(fds, 40, 300) == 0);
	CHECK(cpu_seconds() - busy < 0.1);
	CHECK(rsend(p.a, &c, 1, 0) == 1);
	CHECK(rpoll(fds, 40, 10000) == 1 && fds[7].revents == POLLIN);
	CHECK(write(pipe_fds[1], &c, 1) == 1);
	CHECK(rpoll(fds, 40, 10000) == 21);
	CHECK(rrecv(p.b, &c, 1, 0) == 1);
	CHECK(rpoll(fds, 40, 10000) == 20 && !fds[7].revents);
	CHECK(rpoll(fds + 7, 1, 0) == 0);
	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(p.b, &r);
	FD_SET(p.b, &w);
	CHECK(rselect(p.b + 1, &r, &w, NULL, &tv) == 1);
	CHECK(!FD_ISSET(p.b, &r) && FD_ISSET(p.b, &w));
	FD_SET(p.b, &r);
	CHECK(rselect(p.b + 1, &r, NULL, NULL, &tv) == 0);
	fds[0] = (struct pollfd){.fd = 900, .events = POLLIN};
	CHECK(rpoll(fds, 1, 0) == 1 && fds[0].revents == POLLNVAL);
	close_pair(&p);
}

/* More clients than the backlog: they wait, and none is refused. */
enum {
	CROWD = 8,
};

static void *visit(void *arg)
{
	int fd = rsocket(AF_INET, SOCK_STREAM, 0);
	char c;

	CHECK(!rconnect(fd, arg, sizeof(struct sockaddr_in)));
	CHECK(rrecv(fd, &c, 1, 0) == 1 && c == '!');
	CHECK(!rclose(fd));
	return NULL;
}

static void case_backlog(void)
{
	struct timespec ts = {.tv_nsec = 100000000};
	struct sockaddr_in in;
	int fd = listen_at(&in, 1, 0);
	pthread_t t[CROWD];

	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_create(&t[i], NULL, visit, &in));
	nanosleep(&ts, NULL);
	for (int i = 0; i < CROWD; i++) {
		int b = raccept(fd, NULL, NULL);

		CHECK(b >= 0 && rsend(b, "!", 1, 0) == 1 && !rclose(b));
	}
	for (int i = 0; i < CROWD; i++)
		CHECK(!pthread_join(t[i], NULL));
	CHECK(!rclose(fd));
}

static void case_iomap(void)
{
	static char target[8192];
	struct pair p = connect_pair();
	char buf[4] = "abcd", c;
	off_t at;

	/* b accepts mappings of a's buffers: its listener said so. */
	at = riomap(p.a, target, sizeof(target), PROT_WRITE, 0, -1);
	CHECK(at != -1);
	CHECK(riomap(p.a, target + 4096, 100, PROT_WRITE, 0, 4096) == 4096);
	CHECK(rsend(p.a, "!", 1, 0) == 1 && rrecv(p.b, &c, 1, 0) == 1);
	CHECK(riowrite(p.b, buf, 4, at + 10, 0) == 4);
	CHECK(riowrite(p.b, buf, 4, 4096 + 96, 0) == 4);
	CHECK(riowrite(p.b, buf, 4, 4096 + 98, 0) == 2); /* up to its end */
	FAILS((ssize_t)riowrite(p.b, buf, 4, 4096 + 100, 0), EINVAL);
	FAILS((ssize_t)riowrite(p.b, buf, 4, 12345, 0), EINVAL);
	CHECK(rsend(p.b, "!", 1, 0) == 1 && rrecv(p.a, &c, 1, 0) == 1);
	CHECK(!memcmp(target + 10, buf, 4));
	CHECK(!memcmp(target + 4096 + 96, "abab", 4));
	CHECK(!riounmap(p.a, target + 4096, 100));
	FAILS(riounmap(p.a, target + 4096, 100), EINVAL);
	CHECK(rsend(p.a, "!", 1, 0) == 1 && rrecv(p.b, &c, 1, 0) == 1);
	FAILS((ssize_t)riowrite(p.b, buf, 4, 4096, 0), EINVAL);
	/* a said nothing of mappings. */
	FAILS(riomap(p.b, target, 64, PROT_WRITE, 0, -1), ENOSPC);
	FAILS(riomap(p.a, target, 64, PROT_READ, 0, -1), EINVAL);
	close_pair(&p);
}

/* The connections are the parent's; a child makes its own. */
static void case_fork(void)
{
	struct pair p = connect_pair(), own;
	int status;
	pid_t pid;
	char c;

	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		FAILS(rsend(p.a, "x", 1, 0), EBADF);
		CHECK(!rclose(p.a));
		FAILS(rclose(p.a), EBADF);
		own = connect_pair();
		CHECK(rsend(own.a, "x", 1, 0) == 1);
		CHECK(rrecv(own.b, &c, 1, 0) == 1);
		close_pair(&own);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(rsend(p.a, "y", 1, 0) == 1);
	CHECK(rrecv(p.b, &c, 1, 0) == 1 && c == 'y');
	close_pair(&p);
}

/* A process that ends without closing has still sent what it sent. */
static void case_exit(void)
{
	struct sockaddr_in in;
	int fd = listen_at(&in, 5, 0), b, status;
	char buf[1000];
	size_t got = 0;
	ssize_t n;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		int a = rsocket(AF_INET, SOCK_STREAM, 0);

		CHECK(!rconnect(a, (struct sockaddr *)&in, sizeof(in)));
		for (int i = 0; i < 100; i++)
			CHECK(rsend(a, buf, sizeof(buf), 0) == sizeof(buf));
		exit(0);
	}
	b = raccept(fd, NULL, NULL);
	CHECK(b >= 0);
	while ((n = rrecv(b, buf, sizeof(buf), 0)) > 0)
		got += (size_t)n;
	CHECK(n == 0 && got == 100 * sizeof(buf));
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(!rclose(b) && !rclose(fd));
}

/* A child that connects, says so with a byte, and waits for its end. */
static pid_t doomed_client(struct sockaddr_in *in)
{
	pid_t pid = fork();
	int fd;

	CHECK(pid >= 0);
	if (pid)
		return pid;
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(!rconnect(fd, (struct sockaddr *)in, sizeof(*in)));
	CHECK(rsend(fd, "!", 1, 0) == 1);
	for (;;)
		pause();
}

/* One that listens, accepts, and does the same. */
static pid_t doomed_server(struct sockaddr_in *in)
{
	int pipe_fds[2], fd;
	pid_t pid;

	CHECK(!pipe(pipe_fds));
	pid = fork();
	CHECK(pid >= 0);
	if (pid) {
		CHECK(read(pipe_fds[0], in, sizeof(*in)) == sizeof(*in));
		return pid;
	}
	fd = listen_at(in, 1, 0);
	CHECK(write(pipe_fds[1], in, sizeof(*in)) == sizeof(*in));
	fd = raccept(fd, NULL, NULL);
	CHECK(fd >= 0 && rsend(fd, "!", 1, 0) == 1);
	for (;;)
		pause();
}

/* A peer that is killed without a word, seen by a reader and by a writer. */
static void case_killed(void)
{
	static char block[100000];
	struct sockaddr_in in;
	int fd = listen_at(&in, 5, 0), b;
	pid_t pid = doomed_client(&in);
	ssize_t n;
	char c;

	b = raccept(fd, NULL, NULL);
	CHECK(b >= 0 && rrecv(b, &c, 1, 0) == 1);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	FAILS(rrecv(b, &c, 1, 0), ECONNRESET);
	FAILS(rsend(b, &c, 1, 0), ECONNRESET);
	CHECK(!rclose(b) && !rclose(fd));

	pid = doomed_server(&in);
	fd = rsocket(AF_INET, SOCK_STREAM, 0);
	CHECK(!rconnect(fd, (struct sockaddr *)&in, sizeof(in)));
	CHECK(rrecv(fd, &c, 1, 0) == 1);
	while (rsend(fd, block, sizeof(block), MSG_DONTWAIT) > 0)
		;
	CHECK(errno == EAGAIN);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
	/* What the dead one's NIC had still granted may be used up first. */
	while ((n = rsend(fd, block, sizeof(block), 0)) > 0)
		;
	CHECK(n == -1 && errno == ECONNRESET);
	CHECK(!rclose(fd));
}

static void case_datagrams(void)
{
	struct sockaddr_in in = loopback(), from;
	struct pollfd fd = {.events = POLLIN};
	socklen_t len = sizeof(in);
	int a = rsocket(AF_INET, SOCK_DGRAM, 0);
	int b = rsocket(AF_INET, SOCK_DGRAM, IPPROTO_UDP);
	char buf[5000];

	CHECK(a >= 0 && b >= 0);
	CHECK(!rbind(b, (struct sockaddr *)&in, sizeof(in)));
	CHECK(!rgetsockname(b, (struct sockaddr *)&in, &len));
	FAILS(rsend(a, "x", 1, 0), EDESTADDRREQ);
	FAILS(rrecv(b, buf, 1, MSG_DONTWAIT), EAGAIN);
	FAILS(rlisten(b, 1), EOPNOTSUPP);
	fd.fd = b;
	CHECK(rpoll(&fd, 1, 20) == 0);
	/* The first goes over UDP, the others from queue pair to queue pair. */
	for (int i = 0; i < 50; i++) {
		int n = snprintf(buf, sizeof(buf), "number %d", i);

		CHECK(rsendto(a, buf, (size_t)n, 0, (struct sockaddr *)&in,
			      sizeof(in)) == n);
		memset(buf, 0, sizeof(buf));
		len = sizeof(from);
		CHECK(rpoll(&fd, 1, 10000) == 1);
		CHECK(rrecvfrom(b, buf, sizeof(buf), 0,
				(struct sockaddr *)&from, &len) == n);
		CHECK(atoi(buf + 7) == i && len == sizeof(from));
		CHECK(rsendto(b, buf, (size_t)n, 0, (struct sockaddr *)&from,
			      len) == n);
		CHECK(rrecv(a, buf, 3, 0) == 3); /* cut off, not kept */
	}
	FAILS(rsendto(a, buf, sizeof(buf), 0, (struct sockaddr *)&in,
		      sizeof(in)),
	      EMSGSIZE);
	CHECK(!rconnect(a, (struct sockaddr *)&in, sizeof(in)));
	CHECK(rsend(a, NULL, 0, 0) == 0);
	CHECK(rpoll(&fd, 1, 10000) == 1 && rrecv(b, buf, 10, 0) == 0);
	CHECK(!rclose(a) && !rclose(b));
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 1000; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Nothing is left of a socket, however often. */
static void case_cycles(void)
{
	struct pair p = connect_pair();
	int before;

	close_pair(&p);
	before = open_fds();
	for (int i = 0; i < 30; i++) {
		p = connect_pair();
		CHECK(rsend(p.a, "x", 1, 0) == 1);
		close_pair(&p);
	}
	CHECK(open_fds() <= before + 4); /* those of a lease may linger */
}

/* The largest and the smallest queues and buffers. */
static void case_sizes(void)
{
	static const int values[] = {1, 1 << 20};

	for (int i = 0; i < 2; i++) {
		int v = values[i], a, b, fd;
		static char buf[300000];
		struct sockaddr_in in;

		fd = listen_at(&in, 1, 0);
		a = rsocket(AF_INET, SOCK_STREAM, 0);
		for (int j = 0; j < 2; j++) {
			int s = j ? a : fd;

			CHECK(!rsetsockopt(s, SOL_SOCKET, SO_SNDBUF, &v, 4));
			CHECK(!rsetsockopt(s, SOL_SOCKET, SO_RCVBUF, &v, 4));
			CHECK(!rsetsockopt(s, SOL_RDMA, RDMA_SQSIZE, &v, 4));
			CHECK(!rsetsockopt(s, SOL_RDMA, RDMA_RQSIZE, &v, 4));
			CHECK(!rsetsockopt(s, SOL_RDMA, RDMA_INLINE, &v, 4));
		}
		CHECK(!rconnect(a, (struct sockaddr *)&in, sizeof(in)));
		b = raccept(fd, NULL, NULL);
		for (size_t sent = 0, got = 0; got < sizeof(buf);) {
			ssize_t n = rsend(a, buf + sent, sizeof(buf) - sent,
					  MSG_DONTWAIT);

			CHECK(n >= 0 || errno == EAGAIN);
			sent += n > 0 ? (size_t)n : 0;
			n = rrecv(b, buf, sizeof(buf), MSG_DONTWAIT);
			CHECK(n > 0 || (n < 0 && errno == EAGAIN));
			got += n > 0 ? (size_t)n : 0;
		}
		CHECK(!rclose(a) && !rclose(b) && !rclose(fd));
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"names", case_names},
	{"flags", case_flags},
	{"options", case_options},
	{"refused", case_refused},
	{"nonblocking", case_nonblocking},
	{"threads", case_threads},
	{"ends", case_ends},
	{"close_wakes", case_close_wakes},
	{"poll", case_poll},
	{"backlog", case_backlog},
	{"iomap", case_iomap},
	{"fork", case_fork},
	{"exit", case_exit},
	{"killed", case_killed},
	{"datagrams", case_datagrams},
	{"cycles", case_cycles},
	{"sizes", case_sizes},
};

int main(int argc, char **argv)
{
	int ran = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc != 2 ||
		    (strcmp(argv[1], cases[i].name) && strcmp(argv[1], "all")))
			continue;
		alarm(300); /* whatever hangs is a failure; others may have the
			       cores */
		cases[i].run();
		printf("ok: %s\n", cases[i].name);
		fflush(stdout);
		ran++;
	}
	if (!ran)
		fprintf(stderr, "usage: rs_calls CASE\n");
	return ran ? 0 : 2;
}
