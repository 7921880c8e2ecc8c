/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are answered later, handlers that take long, and what many
 * connections cost. */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "control/ctl_http.h"
#include "control/ctl_server.h"

enum {
	MANY = 200,
	IDLE = 4000,
	IDLE_MIB_MAX = 64,
};

struct fixture {
	char dir[32], path[64];
	struct ctl_server *server;
	pthread_mutex_t lock;
	uint64_t held[MANY], gone[MANY];
	unsigned held_count, gone_count;
	sem_t go; /* of slow handlers */
	atomic_uint slow_count;
};

static void handle(void *ctx, const struct ctl_request *q, struct ctl_reply *r)
{
	struct fixture *f = ctx;
	uint64_t id;

	if (strcmp(q->path, "/hold") == 0) {
		pthread_mutex_lock(&f->lock);
		assert_int_equal(ctl_hold(q, &id), 0);
		f->held[f->held_count++] = id;
		pthread_mutex_unlock(&f->lock);
		return;
	}
	if (strcmp(q->path, "/slow") == 0) {
		atomic_fetch_add(&f->slow_count, 1);
		sem_wait(&f->go);
	}
	if (q->token) {
		ctl_reply_error(r, -EACCES, "who is that");
		r->status = 401;
		return;
	}
	ctl_reply_json(
		r, 200,
		json_pack("{s:s, s:s}", "path", q->path, "origin", q->origin));
}

/* On the thread that reads requests. */
static bool quick(void *ctx, const struct ctl_request *q, struct ctl_reply *r)
{
	struct fixture *f = ctx;
	uint64_t id;

	if (strcmp(q->path, "/quick") == 0) {
		ctl_reply_json(r, 200, json_object());
		return true;
	}
	if (strcmp(q->path, "/brief") != 0)
		return false;
	assert_true(ctl_may_hold(q));
	pthread_mutex_lock(&f->lock);
	assert_int_equal(ctl_hold_briefly(q, &id), 0);
	f->held[f->held_count++] = id;
	pthread_mutex_unlock(&f->lock);
	return true;
}

static void note_gone(void *ctx, uint64_t id)
{
	struct fixture *f = ctx;

	pthread_mutex_lock(&f->lock);
	f->gone[f->gone_count++] = id;
	pthread_mutex_unlock(&f->lock);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct ctl_server_config c = {.unix_path = f->path,
				      .listen = "127.0.0.1:0",
				      .handle = handle,
				      .quick = quick,
				      .gone = note_gone,
				      .ctx = f};

	pthread_mutex_init(&f->lock, NULL);
	sem_init(&f->go, 0, 0);
	snprintf(f->dir, sizeof(f->dir), "/tmp/aquifer-held.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	snprintf(f->path, sizeof(f->path), "%s/s", f->dir);
	assert_int_equal(ctl_server_start(&c, &f->server), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	if (f->server)
		ctl_server_stop(f->server);
	assert_int_equal(rmdir(f->dir), 0);
	sem_destroy(&f->go);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}

/* Sends a request and does not wait for the answer. */
static void send_request(int fd, const char *path, const char *header)
{
	char text[256];
	int n = snprintf(text, sizeof(text),
			 "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, header);

	assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
}

static int ask(struct fixture *f, const char *path, const char *header)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(ctl_server_port(f->server)),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	send_request(fd, path, header);
	return fd;
}

static int ask_unix(struct fixture *f, const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	strcpy(a.sun_path, f->path);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	send_request(fd, path, "");
	return fd;
}

/* Waits for the answer's status; 0: it hung up. */
static unsigned answer(int fd)
{
	char text[1024];
	unsigned status = 0;
	ssize_t n = recv(fd, text, sizeof(text) - 1, 0);

	text[n > 0 ? n : 0] = 0;
	(void)sscanf(text, "HTTP/1.1 %u", &status);
	return status;
}

static unsigned count(struct fixture *f, const unsigned *what)
{
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = *what;
	pthread_mutex_unlock(&f->lock);
	return n;
}

/* The program's own time limit ends what never happens. */
static void wait_count(struct fixture *f, const unsigned *what, unsigned n)
{
	const struct timespec nap = {.tv_nsec = 1000000};

	while (count(f, what) < n)
		nanosleep(&nap, NULL);
}

static unsigned thread_count(void)
{
	DIR *dir = opendir("/proc/self/task");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 2;
}

static void reply_to(struct fixture *f, uint64_t id, int want)
{
	struct ctl_reply r = {0};

	ctl_reply_json(&r, 201, json_pack("{s:s}", "late", "yes"));
	assert_int_equal(ctl_server_answer(f->server, id, &r), want);
	assert_null(r.body);
}

static void a_held_request_is_answered_once(void **state)
{
	struct fixture *f = *state;
	int fd = ask(f, "/hold", "");

	wait_count(f, &f->held_count, 1);
	reply_to(f, f->held[0] + 2, -ENOENT);
	reply_to(f, 0, -ENOENT);
	reply_to(f, 1, -ENOENT);
	reply_to(f, f->held[0], 0);
	assert_int_equal(answer(fd), 201);
	reply_to(f, f->held[0], -ENOENT);
	assert_int_equal(f->gone_count, 0);
	close(fd);
}

static void the_connection_goes_on_after_it(void **state)
{
	struct fixture *f = *state;
	static const char more[] = "GET /hold HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = ask(f, "/hold", "");

	for (unsigned i = 1; i <= 3; i++) {
		wait_count(f, &f->held_count, i);
		reply_to(f, f->held[i - 1], 0);
		assert_int_equal(answer(fd), 201);
		assert_true(send(fd, more, sizeof(more) - 1, 0) > 0);
	}
	wait_count(f, &f->held_count, 4);
	reply_to(f, f->held[3], 0);
	assert_int_equal(answer(fd), 201);
	close(fd);
}

static void who_hangs_up_is_told(void **state)
{
	struct fixture *f = *state;
	int fd = ask(f, "/hold", ""), other = ask(f, "/hold", "");
	uint64_t first;

	wait_count(f, &f->held_count, 2);
	close(fd);
	wait_count(f, &f->gone_count, 1);
	first = f->gone[0];
	assert_true(first == f->held[0] || first == f->held[1]);
	reply_to(f, first, -ENOENT);
	/* The other one is not disturbed. */
	reply_to(f, f->held[0] == first ? f->held[1] : f->held[0], 0);
	assert_int_equal(answer(other), 201);
	assert_int_equal(count(f, &f->gone_count), 1);
	close(other);
}

static void what_was_read_is_held_without_another_thread(void **state)
{
	struct fixture *f = *state;
	static const char more[] = "GET /brief HTTP/1.1\r\nHost: x\r\n\r\n";
	int fd = ask(f, "/brief", ""), other = ask_unix(f, "/quick");

	assert_int_equal(answer(other), 200);
	for (unsigned i = 1; i <= 3; i++) {
		wait_count(f, &f->held_count, i);
		reply_to(f, f->held[i - 1], 0);
		reply_to(f, f->held[i - 1], -ENOENT);
		assert_int_equal(answer(fd), 201);
		assert_true(send(fd, more, sizeof(more) - 1, 0) > 0);
	}
	/* Nobody watches it: it can be answered, and that is all. */
	wait_count(f, &f->held_count, 4);
	close(fd);
	reply_to(f, f->held[3], 0);
	send_request(other, "/brief", "");
	wait_count(f, &f->held_count, 5);
	assert_int_equal(count(f, &f->gone_count), 0);
	ctl_server_stop(f->server);
	f->server = NULL;
	assert_int_equal(f->gone_count, 1);
	assert_true(f->gone[0] == f->held[4]);
	close(other);
}

static void the_end_answers_what_is_held(void **state)
{
	struct fixture *f = *state;
	int fd = ask(f, "/hold", "");

	wait_count(f, &f->held_count, 1);
	ctl_server_stop(f->server);
	f->server = NULL;
	assert_int_equal(f->gone_count, 1);
	assert_true(f->gone[0] == f->held[0]);
	/* 503, unless the connection was closed before it was sent. */
	(void)answer(fd);
	close(fd);
}

static void held_and_delayed_requests_cost_no_thread(void **state)
{
	struct fixture *f = *state;
	int fd[MANY], wrong[16];
	unsigned threads;

	for (unsigned i = 0; i < MANY; i++)
		fd[i] = ask(f, "/hold", "");
	wait_count(f, &f->held_count, MANY);
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++)
		wrong[i] = ask(f, "/", "Authorization: Bearer 1\r\n");
	threads = thread_count();
	if (threads > 32)
		fail_msg("%u threads", threads);
	for (unsigned i = 0; i < MANY; i++)
		reply_to(f, f->held[i], 0);
	for (unsigned i = 0; i < MANY; i++) {
		assert_int_equal(answer(fd[i]), 201);
		close(fd[i]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_int_equal(answer(wrong[i]), 401);
		close(wrong[i]);
	}
}

static void slow_handlers_hold_up_nobody(void **state)
{
	struct fixture *f = *state;
	int slow[40], fd;

	for (unsigned i = 0; i < ARRAY_LEN(slow); i++)
		slow[i] = ask(f, "/slow", "");
	fd = ask(f, "/quick", "");
	assert_int_equal(answer(fd), 200);
	close(fd);
	for (unsigned i = 0; i < ARRAY_LEN(slow); i++)
		sem_post(&f->go);
	for (unsigned i = 0; i < ARRAY_LEN(slow); i++) {
		assert_int_equal(answer(slow[i]), 200);
		close(slow[i]);
	}
	assert_int_equal(atomic_load(&f->slow_count), ARRAY_LEN(slow));
}

/* What the process has in memory, in KiB. */
static unsigned long resident_kib(void)
{
	FILE *file = fopen("/proc/self/statm", "re");
	unsigned long all = 0, resident = 0;

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &all, &resident), 2);
	fclose(file);
	return resident * (unsigned long)(sysconf(_SC_PAGESIZE) / 1024);
}

static void four_thousand_idle_connections_are_cheap(void **state)
{
	struct fixture *f = *state;
	static int fd[IDLE];
	struct rlimit files;
	unsigned long before, used;

	/* Both ends are here. One socket has a quarter of the files at most,
	 * and one party half of that, so there are two of each. */
	getrlimit(RLIMIT_NOFILE, &files);
	if (files.rlim_cur < 4 * IDLE) {
		print_message("not tried: %lu files may be open\n",
			      (unsigned long)files.rlim_cur);
		return;
	}
	before = resident_kib();
	for (unsigned i = 0; i < IDLE; i++) {
		fd[i] = i % 2 ? ask(f, "/", "") : ask_unix(f, "/");
		assert_int_equal(answer(fd[i]), 200);
	}
	used = resident_kib() - before;
	print_message("%u idle connections: %lu KiB, %u threads\n", IDLE, used,
		      thread_count());
	assert_true(thread_count() < 16);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	assert_true(used < IDLE_MIB_MAX * 1024ul);
#endif
	for (unsigned i = 0; i < IDLE; i++)
		close(fd[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_held_request_is_answered_once),
		TEST(the_connection_goes_on_after_it),
		TEST(who_hangs_up_is_told),
		TEST(what_was_read_is_held_without_another_thread),
		TEST(the_end_answers_what_is_held),
		TEST(held_and_delayed_requests_cost_no_thread),
		TEST(slow_handlers_hold_up_nobody),
		TEST(four_thousand_idle_connections_are_cheap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
