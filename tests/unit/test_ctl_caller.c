/* SPDX-License-Identifier: Apache-2.0 */
/* The table of connections: who is ended when, for whom; and wrong tokens. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "control/caller_priv.h"
#include "control/stranger_priv.h"

#define MS 1000000ull

static void make_pair(int fd[2])
{
	assert_int_equal(
		socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fd), 0);
}

/* Over TCP, where bytes that came can be counted. */
static void make_tcp_pair(int fd[2])
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);
	int l = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(l, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(l, 1), 0);
	assert_int_equal(getsockname(l, (struct sockaddr *)&a, &len), 0);
	fd[1] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(fd[1], (struct sockaddr *)&a, sizeof(a)), 0);
	fd[0] = accept(l, NULL, NULL);
	assert_true(fd[0] >= 0);
	close(l);
}

static bool is_open(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 &&
	       errno == EAGAIN;
}

static void a_request_has_a_deadline(void **state)
{
	struct callers t;
	struct caller *c;
	int fd[2];

	assert_int_equal(callers_init(&t, 4), 0);
	make_tcp_pair(fd);
	assert_int_equal(callers_admit(&t, fd[0], 0, &c), 0);
	assert_ptr_equal(callers_link(&t, fd[0]), c);
	assert_null(callers_link(&t, fd[0]));
	callers_tick(&t, CALLER_REQUEST_MS * MS);
	assert_true(is_open(fd[1]));
	/* Who is served is left alone, and has time for the answer. */
	callers_phase(&t, c, CALLER_SERVED, CALLER_REQUEST_MS * MS);
	callers_tick(&t, 1000000 * MS);
	callers_phase(&t, c, CALLER_READS, 1000000 * MS);
	callers_tick(&t, (1000000 + CALLER_REPLY_MS) * MS);
	callers_phase(&t, c, CALLER_IDLE, 2000000 * MS);
	callers_tick(&t, (2000000 + CALLER_REQUEST_MS + 1) * MS);
	assert_true(is_open(fd[1]));
	/* The first byte of the next request starts the clock again, and more
	 * bytes do not. */
	assert_int_equal(send(fd[1], "G", 1, 0), 1);
	callers_tick(&t, 2020000 * MS);
	assert_int_equal(c->phase, CALLER_SENDS);
	assert_int_equal(send(fd[1], "E", 1, 0), 1);
	callers_tick(&t, (2020000 + CALLER_REQUEST_MS) * MS);
	assert_true(is_open(fd[1]));
	callers_tick(&t, (2020001 + CALLER_REQUEST_MS) * MS);
	assert_false(is_open(fd[1]));
	assert_int_equal(t.ended_late, 1);
	callers_leave(&t, c);
	close(fd[0]);
	close(fd[1]);
	callers_destroy(&t);
}

static void the_oldest_half_request_makes_room(void **state)
{
	enum {
		MAX = 8,
		PER_KEY = MAX / 2,
	};
	struct callers t;
	struct caller *c[MAX], *more;
	int fd[MAX][2], extra[2];

	assert_int_equal(callers_init(&t, MAX), 0);
	for (unsigned i = 0; i < PER_KEY; i++) {
		make_pair(fd[i]);
		assert_int_equal(callers_admit(&t, fd[i][0], i, &c[i]), 0);
	}
	/* The first has finished a request: the second goes before it. */
	callers_phase(&t, c[0], CALLER_IDLE, 1);
	make_pair(extra);
	assert_int_equal(callers_admit(&t, extra[0], 100, &more), 0);
	assert_true(is_open(fd[0][1]));
	assert_false(is_open(fd[1][1]));
	assert_true(is_open(fd[2][1]));
	callers_leave(&t, c[1]);
	/* All of them are being served: nobody can make room. */
	for (unsigned i = 0; i < PER_KEY; i++)
		if (i != 1)
			callers_phase(&t, c[i], CALLER_SERVED, 200);
	callers_phase(&t, more, CALLER_SERVED, 200);
	assert_int_equal(callers_admit(&t, fd[1][0], 300, &c[1]), -EAGAIN);
	assert_false(callers_spare(&t));
	/* Somebody else still finds a place. */
	make_tcp_pair(fd[4]);
	assert_int_equal(callers_admit(&t, fd[4][0], 300, &c[4]), 0);
	assert_true(callers_spare(&t));
	assert_false(is_open(fd[4][1]));
	for (unsigned i = 0; i <= PER_KEY; i++) {
		close(fd[i][0]);
		close(fd[i][1]);
	}
	close(extra[0]);
	close(extra[1]);
	callers_destroy(&t);
}

static void keys_are_hosts_and_users(void **state)
{
	struct caller_key unix_key, tcp_key;
	char text[CALLER_TEXT];
	int fd[2];

	make_pair(fd);
	assert_int_equal(caller_key_of(fd[0], &unix_key, text), 0);
	assert_int_equal(strncmp(text, "uid ", 4), 0);
	close(fd[0]);
	close(fd[1]);
	make_tcp_pair(fd);
	assert_int_equal(caller_key_of(fd[0], &tcp_key, text), 0);
	assert_int_equal(strncmp(text, "127.0.0.1:", 10), 0);
	assert_true(caller_key_is_loopback(&tcp_key));
	assert_true(caller_key_equal(&tcp_key, &tcp_key));
	assert_false(caller_key_equal(&tcp_key, &unix_key));
	close(fd[0]);
	close(fd[1]);
}

static void wrong_tokens_are_answered_later_and_later(void **state)
{
	struct caller_key bad = {.bytes = {1}}, other = {.bytes = {2}};
	struct strangers s = {0};
	unsigned last = 0, ms = 0;

	strangers_init(&s);
	for (unsigned i = 0; i < STRANGER_FREE_TRIES; i++)
		assert_int_equal(strangers_count(&s, &bad, 1), 0);
	for (unsigned i = 0; i < 20; i++) {
		ms = strangers_count(&s, &bad, 1);
		assert_true(ms > last || ms == STRANGER_DELAY_MAX_MS);
		last = ms;
	}
	assert_int_equal(ms, STRANGER_DELAY_MAX_MS);
	/* Nobody else pays, also when the table is full of others. */
	for (unsigned i = 0; i < 2 * STRANGERS_MAX; i++) {
		memcpy(other.bytes + 4, &i, sizeof(i));
		assert_int_equal(strangers_count(&s, &other, 1), 0);
	}
	assert_int_equal(strangers_count(&s, &bad, 1), STRANGER_DELAY_MAX_MS);
	/* After a while it is forgotten. */
	assert_int_equal(strangers_count(&s, &bad, 10 * STRANGER_HALF_MS * MS),
			 0);
	strangers_destroy(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_has_a_deadline),
		cmocka_unit_test(the_oldest_half_request_makes_room),
		cmocka_unit_test(keys_are_hosts_and_users),
		cmocka_unit_test(wrong_tokens_are_answered_later_and_later),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
