// SPDX-License-Identifier: Apache-2.0
/*
 * An ordinary TCP program, which knows nothing of RDMA: a server that echoes
 * what comes, and a client with one thread that writes and one that reads.
 * Usage: rs_echo serve|fork|ask PORT; fork: a child echoes.
 */
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	BYTES = 1000000,
	CHUNK = 3001,
};

__attribute__((noreturn)) static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 11 + (i >> 10));
}

static void write_some(int fd, size_t from, size_t to)
{
	uint8_t buf[CHUNK];

	while (from < to) {
		size_t want = to - from < CHUNK ? to - from : CHUNK;
		ssize_t n;

		for (size_t i = 0; i < want; i++)
			buf[i] = pattern(from + i);
		n = send(fd, buf, want, MSG_NOSIGNAL);
		if (n <= 0)
			die("send");
		from += (size_t)n;
	}
}

static void *write_rest(void *arg)
{
	int fd = *(int *)arg;

	write_some(fd, 1, BYTES);
	if (shutdown(fd, SHUT_WR))
		die("shutdown");
	return NULL;
}

static int ask(int fd, const struct sockaddr_in *in)
{
	uint8_t buf[4096];
	size_t got = 0;
	pthread_t writer;
	ssize_t n;

	if (connect(fd, (const struct sockaddr *)in, sizeof(*in)))
		die("connect");
	/* The preload library makes its connection with the first byte if forks
	 * are to work, and does not expect two threads then. */
	write_some(fd, 0, 1);
	if (pthread_create(&writer, NULL, write_rest, &fd))
		die("pthread_create");
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};

		if (poll(&p, 1, 20000) != 1)
			die("poll");
		n = read(fd, buf, sizeof(buf));
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != pattern(got + (size_t)i)) {
				fprintf(stderr, "wrong byte %zu\n", got);
				return 1;
			}
		}
		got += (size_t)n;
	}
	if (n < 0)
		die("read");
	pthread_join(writer, NULL);
	printf("%zu bytes came back\n", got);
	return got == BYTES ? 0 : 1;
}

static int echo(int fd)
{
	uint8_t buf[4096];
	ssize_t n;

	while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
		for (ssize_t done = 0; done < n;) {
			ssize_t sent =
				write(fd, buf + done, (size_t)(n - done));

			if (sent <= 0)
				die("write");
			done += sent;
		}
	}
	if (n < 0)
		die("recv");
	return close(fd);
}

static int serve(int fd, const struct sockaddr_in *in, int forks)
{
	int one = 1, conn, status;

	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (const struct sockaddr *)in, sizeof(*in)) || listen(fd, 5))
		die("listen");
	conn = accept(fd, NULL, NULL);
	if (conn < 0)
		die("accept");
	if (!forks)
		return echo(conn) || close(fd);
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		exit(echo(conn));
	}
	if (close(conn) || wait(&status) < 0)
		die("wait");
	return status;
}

int main(int argc, char **argv)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd;

	if (argc != 3)
		return 2;
	in.sin_port = htons((uint16_t)atoi(argv[2]));
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0)
		die("socket");
	if (!strcmp(argv[1], "ask"))
		return ask(fd, &in);
	return serve(fd, &in, !strcmp(argv[1], "fork"));
}
