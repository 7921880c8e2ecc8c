/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server: what a handler gets to see, sizes, sockets, its end. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/error.h"
#include "control/ctl_http.h"
#include "control/ctl_server.h"

/* Says what it saw. */
static void echo(void *ctx, const struct ctl_request *q, struct ctl_reply *r)
{
	ctl_reply_json(r, 200,
		       json_pack("{s:s, s:s, s:s?, s:I, s:b}", "method",
				 ctl_method_name(q->method), "path", q->path,
				 "token", q->token, "bytes",
				 (json_int_t)q->body_bytes, "local",
				 q->is_local));
}

struct fixture {
	char dir[32];
	char path[64];
	struct ctl_server *server;
};

static void start(struct fixture *f, const char *address)
{
	struct ctl_server_config c = {
		.unix_path = f->path, .listen = address, .handle = echo};

	assert_int_equal(ctl_server_start(&c, &f->server), 0);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->dir, sizeof(f->dir), "/tmp/aquifer-http.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->server)
		ctl_server_stop(f->server);
	assert_int_not_equal(access(f->path, F_OK), 0);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static int dial_unix(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(a.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static int dial_tcp(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Sends `head`, then `body_bytes` of a body; returns the whole answer. */
static char *talk(int fd, const char *head, size_t body_bytes)
{
	static char answer[8192];
	char block[4096] = {0};
	size_t got = 0;
	ssize_t n;

	assert_int_equal(write(fd, head, strlen(head)), strlen(head));
	while (body_bytes) {
		n = send(fd, block, u64_min(body_bytes, sizeof(block)),
			 MSG_NOSIGNAL);
		assert_true(n > 0);
		body_bytes -= (size_t)n;
	}
	do {
		n = read(fd, answer + got, sizeof(answer) - 1 - got);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	answer[got] = 0;
	close(fd);
	return answer;
}

static void test_unix(void **state)
{
	struct fixture *f = *state;
	char head[256];
	char *answer, bytes[32];

	start(f, NULL);
	assert_int_equal(ctl_server_port(f->server), 0);
	answer = talk(dial_unix(f->path),
		      "PATCH /a%20b?q=1 HTTP/1.1\r\nHost: x\r\n"
		      "Authorization: bearer abc\r\nConnection: close\r\n"
		      "Content-Length: 5\r\n\r\n12345",
		      0);
	assert_non_null(strstr(answer, "HTTP/1.1 200"));
	assert_non_null(strstr(answer,
			       "{\"method\":\"PATCH\",\"path\":\"/a%20b\","
			       "\"token\":\"abc\",\"bytes\":5,"
			       "\"local\":true}"));
	answer = talk(dial_unix(f->path),
		      "PUT / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic x\r\n"
		      "Connection: close\r\nContent-Length: 0\r\n\r\n",
		      0);
	assert_non_null(strstr(answer, "\"method\":\"OTHER\""));
	assert_non_null(strstr(answer, "\"token\":null"));
	/* The largest body that is kept, and one that is not. */
	snprintf(head, sizeof(head),
		 "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: %d\r\n\r\n",
		 CTL_BODY_MAX);
	answer = talk(dial_unix(f->path), head, CTL_BODY_MAX);
	snprintf(bytes, sizeof(bytes), "\"bytes\":%d", CTL_BODY_MAX);
	assert_non_null(strstr(answer, bytes));
	snprintf(head, sizeof(head),
		 "POST / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
		 "Content-Length: %d\r\n\r\n",
		 10 * CTL_BODY_MAX);
	answer = talk(dial_unix(f->path), head, 10 * CTL_BODY_MAX);
	snprintf(bytes, sizeof(bytes), "\"bytes\":%d", CTL_BODY_MAX + 1);
	assert_non_null(strstr(answer, bytes));
}

static void test_rubbish(void **state)
{
	struct fixture *f = *state;
	char *answer;

	start(f, NULL);
	answer = talk(dial_unix(f->path), "\x01\x02 rubbish\r\n\r\n", 0);
	assert_null(strstr(answer, " 200 "));
	close(dial_unix(f->path)); /* says nothing at all */
	answer = talk(dial_unix(f->path),
		      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		      0);
	assert_non_null(strstr(answer, " 200 "));
}

static void test_tcp(void **state)
{
	struct fixture *f = *state;
	char *answer;

	start(f, "127.0.0.1:0");
	assert_int_not_equal(ctl_server_port(f->server), 0);
	answer = talk(dial_tcp(ctl_server_port(f->server)),
		      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		      0);
	assert_non_null(strstr(answer, "\"local\":false"));
}

/* While it runs; and what comes there is told everything but where a held
 * request is. */
static void opens_the_loopback_later(void **state)
{
	struct fixture *f = *state;
	static const char get[] =
		"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
	uint16_t port = 0, taken = 0, next = 0;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	start(f, NULL);
	/* Somebody else has the port. */
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	taken = ntohs(a.sin_port);
	assert_int_equal(ctl_server_open_loopback(f->server, taken, 1, &next),
			 -EADDRINUSE);
	assert_int_equal(next, 0);
	close(fd);
	assert_int_equal(ctl_server_open_loopback(f->server, 0, 1, &port), 0);
	assert_int_not_equal(port, 0);
	assert_int_equal(ctl_server_port(f->server), 0);
	for (unsigned i = 0; i < 3; i++)
		assert_non_null(strstr(talk(dial_tcp(port), get, 0),
				       "\"local\":false"));
	assert_non_null(
		strstr(talk(dial_unix(f->path), get, 0), "\"local\":true"));
}

static void test_refusals(void **state)
{
	struct fixture *f = *state;
	struct ctl_server_config c = {.unix_path = f->path, .handle = echo};
	static const char *const bad[] = {
		"",	      "127.0.0.1",	 ":80",
		"127.0.0.1:", "127.0.0.1:http:", "300.1.1.1:80"};
	char long_path[256];
	FILE *plain;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		c.listen = bad[i];
		assert_int_equal(ctl_server_start(&c, &f->server), -EINVAL);
	}
	c.listen = "127.0.0.1:0";
	c.tls_cert = "/nonexistent";
	assert_int_equal(ctl_server_start(&c, &f->server), -EINVAL);
	c.tls_key = "/nonexistent";
	assert_int_equal(ctl_server_start(&c, &f->server), -ENOENT);
	c.tls_cert = c.tls_key = "/etc/hostname"; /* no PEM */
	assert_int_equal(ctl_server_start(&c, &f->server), -EINVAL);
	c.tls_cert = c.tls_key = NULL;
	c.tls_ca = "/etc/hostname"; /* without TLS */
	assert_int_equal(ctl_server_start(&c, &f->server), -EINVAL);
	c.tls_ca = NULL;

	c = (struct ctl_server_config){.unix_path = long_path, .handle = echo};
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = 0;
	assert_int_equal(ctl_server_start(&c, &f->server), -ENAMETOOLONG);
	/* A file that is no socket is somebody's; it stays. */
	plain = fopen(f->path, "w");
	fclose(plain);
	c.unix_path = f->path;
	assert_int_equal(ctl_server_start(&c, &f->server), -EEXIST);
	assert_int_equal(unlink(f->path), 0);
	f->server = NULL;
}

static void others_are_served_with_tls_or_if_told_so(void **state)
{
	static const char *const open_to_all[] = {"0.0.0.0:0", "[::]:0",
						  "192.0.2.1:0"};
	struct fixture *f = *state;
	struct ctl_server_config c = {.unix_path = f->path, .handle = echo};

	for (size_t i = 0; i < ARRAY_LEN(open_to_all); i++) {
		c.listen = open_to_all[i];
		assert_int_equal(ctl_server_start(&c, &f->server), -EPERM);
		assert_non_null(strstr(error_last(), "--insecure"));
	}
	c.listen = "0.0.0.0:0";
	c.is_insecure = true;
	assert_int_equal(ctl_server_start(&c, &f->server), 0);
	assert_int_equal(ctl_server_reload(f->server), 0); /* nothing to do */
}

static void test_stale_socket(void **state)
{
	struct fixture *f = *state;
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char *answer;

	strcpy(a.sun_path, f->path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd); /* the name stays, as after kill -9 */
	start(f, NULL);
	answer = talk(dial_unix(f->path),
		      "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		      0);
	assert_non_null(strstr(answer, " 200 "));
	ctl_server_quiesce(f->server);
	assert_int_not_equal(access(f->path, F_OK), 0);
}

/* ---- answers on the thread that reads ------------------------------------ */

struct quick_seen {
	atomic_uint handled, quick; /* relaxed: read when all is over */
};

static void handle_counted(void *ctx, const struct ctl_request *q,
			   struct ctl_reply *r)
{
	struct quick_seen *seen = ctx;

	atomic_fetch_add_explicit(&seen->handled, 1, memory_order_relaxed);
	echo(NULL, q, r);
}

/* "/quick" is answered at once, with 401 where there is a token. */
static bool answer_quick(void *ctx, const struct ctl_request *q,
			 struct ctl_reply *r)
{
	struct quick_seen *seen = ctx;

	if (strcmp(q->path, "/quick") != 0)
		return false;
	atomic_fetch_add_explicit(&seen->quick, 1, memory_order_relaxed);
	if (q->token) {
		ctl_reply_error(r, -EACCES, "not known");
		r->status = 401;
	} else {
		echo(NULL, q, r);
	}
	return true;
}

static void some_are_answered_at_once(void **state)
{
	static const struct {
		const char *head, *status;
		unsigned handled, quick;
	} row[] = {
		{"POST /quick HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
		 "Connection: close\r\n\r\nabc",
		 " 200 ", 0, 1},
		{"GET /other HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
		 " 200 ", 1, 1},
		/* Some of these are delayed, so not on that thread. */
		{"GET /quick HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
		 "a\r\nConnection: close\r\n\r\n",
		 " 401 ", 1, 2},
		{"GET /quick HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "
		 "b\r\nConnection: close\r\n\r\n",
		 " 401 ", 1, 3},
	};
	struct fixture *f = *state;
	struct quick_seen seen = {0};
	const struct ctl_server_config c = {.unix_path = f->path,
					    .handle = handle_counted,
					    .quick = answer_quick,
					    .ctx = &seen};

	assert_int_equal(ctl_server_start(&c, &f->server), 0);
	for (unsigned i = 0; i < ARRAY_LEN(row); i++) {
		const char *answer = talk(dial_unix(f->path), row[i].head, 0);

		assert_non_null(strstr(answer, row[i].status));
		assert_int_equal(seen.handled, row[i].handled);
		assert_int_equal(seen.quick, row[i].quick);
		if (!i)
			assert_non_null(strstr(answer, "\"bytes\":3"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_unix, setup, teardown),
		cmocka_unit_test_setup_teardown(test_rubbish, setup, teardown),
		cmocka_unit_test_setup_teardown(test_tcp, setup, teardown),
		cmocka_unit_test_setup_teardown(opens_the_loopback_later, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
		cmocka_unit_test_setup_teardown(some_are_answered_at_once,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			others_are_served_with_tls_or_if_told_so, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_stale_socket, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
