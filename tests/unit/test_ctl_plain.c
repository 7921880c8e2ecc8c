/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of a unix socket: requests that come in pieces or several at
 * once, replies that nobody takes, callers that hang up, and answers by other
 * threads while more comes. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
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

#include "control/ctl_http.h"
#include "control/ctl_server.h"
#include "control/head_priv.h"

enum {
	LARGE = 1 << 20, /* bytes: more than a socket takes */
	CALLERS = 8,
	TIMES = 400,
	HELD_MAX = 4096,
};

struct fixture {
	char dir[32], path[64];
	struct ctl_server *server;
	pthread_t answerer;
	pthread_mutex_t lock;
	pthread_cond_t more;
	uint64_t held[HELD_MAX];
	unsigned held_count;
	bool ends;
};

static void reply_with(struct ctl_reply *r, const char *body, size_t bytes)
{
	char *text = malloc(bytes + 1);

	memcpy(text, body, bytes);
	text[bytes] = 0;
	ctl_reply_text(r, text, bytes, "text/plain");
	r->status = 200;
}

/* On a worker: the path, or the body where there is one. */
static void handle(void *ctx, const struct ctl_request *q, struct ctl_reply *r)
{
	if (strcmp(q->path, "/large") == 0) {
		char *text = malloc(LARGE);

		memset(text, 'x', LARGE);
		ctl_reply_text(r, text, LARGE, "text/plain");
		r->status = 200;
	} else if (q->body) {
		reply_with(r, q->body, q->body_bytes);
	} else {
		reply_with(r, q->path, strlen(q->path));
	}
}

/* "/now" is answered by the thread that reads, "/held" by another one. */
static bool quick(void *ctx, const struct ctl_request *q, struct ctl_reply *r)
{
	struct fixture *f = ctx;
	uint64_t id;

	if (strcmp(q->path, "/now") == 0) {
		reply_with(r, q->path, strlen(q->path));
		return true;
	}
	if (strcmp(q->path, "/held") != 0)
		return false;
	pthread_mutex_lock(&f->lock);
	assert_int_equal(ctl_hold_briefly(q, &id), 0);
	f->held[f->held_count++] = id;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	return true;
}

static void *answer_held(void *arg)
{
	struct fixture *f = arg;

	pthread_mutex_lock(&f->lock);
	while (!f->ends || f->held_count) {
		struct ctl_reply r = {0};
		uint64_t id;

		if (!f->held_count) {
			pthread_cond_wait(&f->more, &f->lock);
			continue;
		}
		id = f->held[--f->held_count];
		pthread_mutex_unlock(&f->lock);
		reply_with(&r, "held", 4);
		(void)!ctl_server_answer(f->server, id, &r); /* or it is gone */
		pthread_mutex_lock(&f->lock);
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ctl_server_config c = {.unix_path = f->path,
				      .handle = handle,
				      .quick = quick,
				      .ctx = f};

	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->more, NULL);
	snprintf(f->dir, sizeof(f->dir), "/tmp/aquifer-plain.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	assert_int_equal(ctl_server_start(&c, &f->server), 0);
	assert_int_equal(pthread_create(&f->answerer, NULL, answer_held, f), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	pthread_mutex_lock(&f->lock);
	f->ends = true;
	pthread_cond_signal(&f->more);
	pthread_mutex_unlock(&f->lock);
	pthread_join(f->answerer, NULL);
	ctl_server_stop(f->server);
	assert_int_equal(rmdir(f->dir), 0);
	pthread_cond_destroy(&f->more);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

static int dial(const struct fixture *f)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(a.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void say(int fd, const char *text, size_t bytes)
{
	assert_int_equal(send(fd, text, bytes, MSG_NOSIGNAL), bytes);
}

static void say_all(int fd, const char *text)
{
	say(fd, text, strlen(text));
}

/* Reads one reply; its status, and its body. 0: the line has ended. */
static unsigned hear(int fd, char *body, size_t *body_bytes)
{
	char head[1024], *length;
	size_t n = 0;
	unsigned status = 0;

	while (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0) {
		assert_true(n < sizeof(head) - 1);
		if (recv(fd, head + n, 1, 0) != 1)
			return 0;
		n++;
	}
	head[n] = 0;
	assert_int_equal(sscanf(head, "HTTP/1.1 %u", &status), 1);
	length = strstr(head, "Content-Length: ");
	*body_bytes = length ? strtoul(length + 16, NULL, 10) : 0;
	if (*body_bytes)
		assert_int_equal(recv(fd, body, *body_bytes, MSG_WAITALL),
				 *body_bytes);
	body[*body_bytes] = 0;
	return status;
}

static void expect(int fd, unsigned status, const char *want)
{
	char body[4096];
	size_t bytes;

	assert_int_equal(hear(fd, body, &bytes), status);
	assert_string_equal(body, want);
}

static void a_request_comes_byte_by_byte(void **state)
{
	static const char text[] = "POST /a HTTP/1.1\r\nHost: x\r\n"
				   "Content-Length: 4\r\n\r\nbodyGET /b "
				   "HTTP/1.1\r\n\r\n";
	int fd = dial(*state);

	for (size_t i = 0; i < sizeof(text) - 1; i++)
		say(fd, text + i, 1);
	expect(fd, 200, "body");
	expect(fd, 200, "/b");
	close(fd);
}

/* Answered in their order, whoever answers them; more than is read at once. */
static void many_at_once(struct fixture *f, const char *const path[3])
{
	char text[200000], line[64];
	size_t bytes = 0;
	int fd = dial(f);

	for (unsigned i = 0; i < TIMES; i++) {
		/* Lines of padding, so that they meet all places. */
		int n = snprintf(text + bytes, sizeof(text) - bytes,
				 "GET %s HTTP/1.1\r\nx: %*d\r\n\r\n",
				 path[i % 3], (int)(i % 100) + 1, 7);

		bytes += (size_t)n;
	}
	say(fd, text, bytes);
	for (unsigned i = 0; i < TIMES; i++) {
		snprintf(line, sizeof(line), "%s",
			 path[i % 3] + (strcmp(path[i % 3], "/held") == 0));
		expect(fd, 200, line);
	}
	close(fd);
}

static void many_requests_come_at_once(void **state)
{
	static const char *const path[][3] = {{"/now", "/held", "/worker"},
					      {"/now", "/now", "/now"},
					      {"/held", "/now", "/held"},
					      {"/worker", "/now", "/now"}};

	for (size_t i = 0; i < ARRAY_LEN(path); i++)
		many_at_once(*state, path[i]);
}

/* The next request comes while this one is served, or at that very moment. */
static void requests_meet_replies(void **state)
{
	static const char held[] = "GET /held HTTP/1.1\r\n\r\n";
	struct fixture *f = *state;
	struct pollfd p[CALLERS];
	unsigned got[CALLERS] = {0}, left = CALLERS * TIMES;

	for (unsigned i = 0; i < CALLERS; i++) {
		p[i] = (struct pollfd){.fd = dial(f), .events = POLLIN};
		say(p[i].fd, held, sizeof(held) - 1);
	}
	while (left) {
		assert_true(poll(p, CALLERS, -1) > 0);
		for (unsigned i = 0; i < CALLERS; i++) {
			if (!(p[i].revents & POLLIN))
				continue;
			/* Half of it before the answer is read. */
			if (got[i] + 1 < TIMES)
				say(p[i].fd, held, 9);
			expect(p[i].fd, 200, "held");
			if (++got[i] < TIMES)
				say(p[i].fd, held + 9, sizeof(held) - 10);
			left--;
		}
	}
	for (unsigned i = 0; i < CALLERS; i++)
		close(p[i].fd);
}

/* It waits in the server, and nobody else waits for it. */
static void a_large_reply_is_taken_slowly(void **state)
{
	static const char text[] = "GET /large HTTP/1.1\r\n\r\n"
				   "GET /after HTTP/1.1\r\n"
				   "Connection: close\r\n\r\n";
	struct fixture *f = *state;
	char *body = malloc(LARGE + 1);
	size_t bytes;
	int fd = dial(f), other = dial(f);

	say_all(fd, text);
	say_all(other, "GET /now HTTP/1.1\r\n\r\n");
	expect(other, 200, "/now");
	assert_int_equal(hear(fd, body, &bytes), 200);
	assert_int_equal(bytes, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		assert_int_equal(body[i], 'x');
	expect(fd, 200, "/after");
	assert_int_equal(recv(fd, body, 1, 0), 0);
	/* Whole, also if it is the last one. */
	close(fd);
	fd = dial(f);
	say_all(fd, "GET /large HTTP/1.0\r\n\r\n");
	assert_int_equal(hear(fd, body, &bytes), 200);
	assert_int_equal(bytes, LARGE);
	assert_int_equal(recv(fd, body, 1, 0), 0);
	close(fd);
	close(other);
	free(body);
}

/* Who says that nothing more comes gets what he has asked for. */
static void half_closed_lines_are_answered(void **state)
{
	static const char *const path[] = {"/now", "/held", "/worker"};

	for (unsigned i = 0; i < 3; i++) {
		char text[128], c;
		int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n\r\n",
				 path[i]);
		int fd = dial(*state);

		say(fd, text, (size_t)n);
		assert_int_equal(shutdown(fd, SHUT_WR), 0);
		expect(fd, 200, i == 1 ? "held" : path[i]);
		assert_int_equal(recv(fd, &c, 1, 0), 0);
		close(fd);
	}
}

/* At any point, with the reply under way or not. */
static void callers_hang_up(void **state)
{
	static const char *const text[] = {
		"",
		"GET",
		"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nab",
		"GET /held HTTP/1.1\r\n\r\n",
		"GET /large HTTP/1.1\r\n\r\n",
		"GET /held HTTP/1.1\r\n\r\nGET /held HTTP/1.1\r\n\r\n"};
	struct fixture *f = *state;
	int fd;

	for (unsigned i = 0; i < 300; i++) {
		const char *t = text[i % ARRAY_LEN(text)];

		fd = dial(f);
		say(fd, t, strlen(t));
		close(fd);
	}
	fd = dial(f);
	say_all(fd, "GET /held HTTP/1.1\r\n\r\n");
	expect(fd, 200, "held");
	close(fd);
}

static void what_is_wrong_is_told_and_ends_the_line(void **state)
{
	char large[HEAD_MAX + 1], body[4096];
	size_t bytes;
	int fd = dial(*state);

	say_all(fd, "GET /now HTTP/1.1\r\n\r\nGET / HTTP/3\r\n\r\nGET /");
	expect(fd, 200, "/now");
	assert_int_equal(hear(fd, body, &bytes), 505);
	assert_non_null(strstr(body, "HTTP/1.1"));
	assert_int_equal(hear(fd, body, &bytes), 0);
	close(fd);
	/* A head without an end. */
	memset(large, 'a', sizeof(large));
	fd = dial(*state);
	say(fd, large, sizeof(large));
	assert_int_equal(hear(fd, body, &bytes), 431);
	assert_int_equal(hear(fd, body, &bytes), 0);
	close(fd);
}

static void bodies_are_waited_for(void **state)
{
	static const char head[] = "POST /a HTTP/1.1\r\nExpect: 100-continue"
				   "\r\nContent-Length: 3\r\n\r\n";
	char text[64];
	int fd = dial(*state);

	say(fd, head, sizeof(head) - 1);
	assert_int_equal(recv(fd, text, sizeof(text), 0), 25);
	assert_memory_equal(text, "HTTP/1.1 100 Continue\r\n\r\n", 25);
	say_all(fd, "abc");
	expect(fd, 200, "abc");
	say_all(fd, "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "2\r\nab\r\n1\r\nc\r\n0\r\n\r\nGET /d HTTP/1.1\r\n\r\n");
	expect(fd, 200, "abc");
	expect(fd, 200, "/d");
	/* HEAD is not a method of ours, and its answer has no body. */
	say_all(fd, "HEAD /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\n\r\n");
	assert_int_equal(recv(fd, text, 15, MSG_WAITALL), 15);
	assert_memory_equal(text, "HTTP/1.1 200 OK", 15);
	while (recv(fd, text, 4, MSG_PEEK | MSG_WAITALL) == 4 &&
	       memcmp(text, "\r\n\r\n", 4) != 0)
		assert_int_equal(recv(fd, text, 1, 0), 1);
	assert_int_equal(recv(fd, text, 4, 0), 4);
	expect(fd, 200, "/c");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_request_comes_byte_by_byte,
						setup, teardown),
		cmocka_unit_test_setup_teardown(many_requests_come_at_once,
						setup, teardown),
		cmocka_unit_test_setup_teardown(requests_meet_replies, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_large_reply_is_taken_slowly,
						setup, teardown),
		cmocka_unit_test_setup_teardown(half_closed_lines_are_answered,
						setup, teardown),
		cmocka_unit_test_setup_teardown(callers_hang_up, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			what_is_wrong_is_told_and_ends_the_line, setup,
			teardown),
		cmocka_unit_test_setup_teardown(bodies_are_waited_for, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
