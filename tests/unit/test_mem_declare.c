/* SPDX-License-Identifier: Apache-2.0 */
/* What a node tells the switch, with a switch that does as the test wants: it
 * hangs, refuses, or has given the node's shared connection up. */
#include "mem_fixture.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
	LINES = 1024,
	LINE_BYTES = 512,
};

/* What the thread and the test share is under the lock, but for `stops`. */
struct fake {
	struct mem_fixture f;
	char path[108];
	int fd;
	pthread_t thread;
	atomic_bool stops;
	pthread_mutex_t lock;
	bool hangs;
	unsigned given_up; /* shared connections */
	bool is_dead;	   /* ours is one */
	char server[64], qpn[16];
	const char *busy; /* lines with this in them are refused for now */
	const char *run;
	unsigned count;
	char line[LINES][LINE_BYTES];
};

/* ---- the switch ---------------------------------------------------------- */

/* The word behind "NAME=" of a line. */
static void word(const char *line, const char *name, char *out, size_t bytes)
{
	const char *at = strstr(line, name);

	assert_non_null(at);
	at += strlen(name);
	snprintf(out, bytes, "%.*s", (int)strcspn(at, " "), at);
}

static void reply(struct fake *s, const char *line, char *out, size_t bytes)
{
	if (strstr(line, "swordbox server")) {
		word(line, " ip=", s->server, sizeof(s->server));
		word(line, " qpn=", s->qpn, sizeof(s->qpn));
		s->is_dead = false;
	}
	if (strcmp(line, "hello") == 0)
		snprintf(out, bytes,
			 "{\"run\":\"%s\",\"programs\":[{\"name\":\"swordbox\","
			 "\"shared_dead\":%u},{\"name\":\"steer\"},"
			 "{\"name\":\"walk\"}]}",
			 s->run, s->given_up);
	else if (strstr(line, "show"))
		snprintf(out, bytes,
			 "{\"servers\":[{\"ip\":\"%s\",\"qpn\":%s,"
			 "\"dead\":%s}]}",
			 s->server, s->qpn, s->is_dead ? "true" : "false");
	else if (s->busy && strstr(line, s->busy))
		snprintf(out, bytes, "{\"error\":\"on their way\"}");
	else
		snprintf(out, bytes, "{}");
}

static void serve_one(struct fake *s, int fd)
{
	char line[LINE_BYTES] = "", out[512];
	bool hangs;

	if (recv(fd, line, sizeof(line) - 1, 0) <= 0)
		return;
	pthread_mutex_lock(&s->lock);
	assert_true(s->count < LINES);
	snprintf(s->line[s->count++], LINE_BYTES, "%s", line);
	reply(s, line, out, sizeof(out));
	hangs = s->hangs;
	pthread_mutex_unlock(&s->lock);
	/* One that hangs says nothing until the caller has given up. */
	if (hangs)
		(void)recv(fd, line, sizeof(line), 0);
	else
		(void)send(fd, out, strlen(out), MSG_NOSIGNAL);
}

static void *serve(void *arg)
{
	struct fake *s = arg;
	struct pollfd p = {.fd = s->fd, .events = POLLIN};

	while (!atomic_load(&s->stops)) {
		int fd;

		if (poll(&p, 1, 10) <= 0)
			continue;
		fd = accept(s->fd, NULL, NULL);
		if (fd < 0)
			continue;
		serve_one(s, fd);
		close(fd);
	}
	return NULL;
}

static int start(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct fake *s = calloc(1, sizeof(*s));
	char dir[] = "/tmp/aq-declare-XXXXXX";

	assert_non_null(s);
	assert_non_null(mkdtemp(dir));
	snprintf(s->path, sizeof(s->path), "%s/ctl", dir);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", s->path);
	pthread_mutex_init(&s->lock, NULL);
	s->run = "one";
	s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(s->fd >= 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(s->fd, 8), 0);
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
	s->f.config.switch_path = s->path;
	fixture_start(&s->f);
	*state = s;
	return 0;
}

static int stop(void **state)
{
	struct fake *s = *state;

	fixture_stop(&s->f);
	atomic_store(&s->stops, true);
	pthread_join(s->thread, NULL);
	close(s->fd);
	unlink(s->path);
	*strrchr(s->path, '/') = '\0';
	rmdir(s->path);
	pthread_mutex_destroy(&s->lock);
	free(s);
	return 0;
}

/* How many lines since the last call have this in them. */
static unsigned told(struct fake *s, const char *what)
{
	unsigned n = 0;

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->count; i++)
		n += strstr(s->line[i], what) != NULL;
	s->count = 0;
	pthread_mutex_unlock(&s->lock);
	return n;
}

#define SET(s, member, value)                     \
	do {                                      \
		pthread_mutex_lock(&(s)->lock);   \
		(s)->member = (value);            \
		pthread_mutex_unlock(&(s)->lock); \
	} while (0)

/* ---- the node ------------------------------------------------------------ */

static unsigned open_conn(struct fake *s, unsigned qpn, char id[32])
{
	char body[256];
	unsigned status;

	snprintf(
		body, sizeof(body),
		"{\"proto\":\"1.0\",\"qpn\":%u,\"psn\":5,\"patience_ms\":60000,"
		"\"gid\":\"00000000000000000000ffff7f000009\"}",
		qpn);
	status = ask(&s->f, "POST /v1/connect", body);
	if (status == 200)
		snprintf(id, 32, "%s", answer_text(&s->f, "connection"));
	return status;
}

static void close_conn(struct fake *s, const char *id)
{
	char line[96];

	snprintf(line, sizeof(line), "DELETE /v1/connections/%.31s", id);
	assert_int_equal(ask(&s->f, line, NULL), 204);
}

static void tick(struct fake *s)
{
	s->f.clock_ns += MEM_SWITCH_LOOK_MS * 1000000ull;
	mem_node_tick(s->f.node);
}

static uint64_t wall_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* A switch that hangs costs one wait, however much there is to tell, and is
 * told all of it in the end. */
static void test_hangs(void **state)
{
	struct fake *s = *state;
	char id[20][32], other[32];
	uint64_t before;

	for (unsigned i = 0; i < 20; i++)
		assert_int_equal(open_conn(s, 100 + i, id[i]), 200);
	(void)told(s, "");
	SET(s, hangs, true);
	before = wall_ms();
	for (unsigned i = 0; i < 20; i++)
		close_conn(s, id[i]);
	assert_int_not_equal(open_conn(s, 500, other), 200);
	assert_true(wall_ms() - before < 3000);
	assert_int_equal(told(s, ""), 1);
	SET(s, hangs, false);
	tick(s);
	assert_int_equal(told(s, " end "), 40);
	assert_int_equal(open_conn(s, 500, other), 200);
}

/* More ends than are kept: it is told everything anew, and nothing stays. */
static void test_too_much(void **state)
{
	struct fake *s = *state;
	char id[MEM_LATE_MAX / 2 + 1][32];

	for (unsigned i = 0; i < ARRAY_LEN(id); i++)
		assert_int_equal(open_conn(s, 100 + i, id[i]), 200);
	SET(s, busy, " end ");
	for (unsigned i = 0; i < ARRAY_LEN(id); i++)
		close_conn(s, id[i]);
	(void)told(s, "");
	SET(s, busy, NULL);
	tick(s);
	assert_int_equal(told(s, "swordbox server"), 1);
	tick(s);
	assert_int_equal(told(s, "tell"), 0); /* once */
}

/* The shared connection was given up: the node makes another one, and its
 * connections, of whose operations nobody knows, end. */
static void test_given_up(void **state)
{
	struct fake *s = *state;
	char id[32], line[96], before[16];

	assert_int_equal(open_conn(s, 100, id), 200);
	SET(s, given_up, 1); /* somebody else's */
	tick(s);
	assert_int_equal(told(s, "swordbox server"), 1); /* at the start */
	snprintf(line, sizeof(line), "POST /v1/connections/%.31s/heartbeat",
		 id);
	assert_int_equal(ask(&s->f, line, NULL), 204);
	snprintf(before, sizeof(before), "%s", s->qpn);
	SET(s, is_dead, true);
	SET(s, given_up, 2);
	tick(s);
	assert_int_equal(told(s, "swordbox server"), 1);
	assert_string_not_equal(s->qpn, before);
	assert_int_not_equal(ask(&s->f, line, NULL), 204);
	assert_int_equal(open_conn(s, 100, id), 200);
}

/* Regions that end are ended there, too, of both kinds. */
static void test_regions(void **state)
{
	struct fake *s = *state;

	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"w\",\"size\":4096,"
			     "\"switch\":\"atomics\"}"),
			 201);
	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"v\",\"size\":65536,"
			     "\"switch\":\"store\",\"nodes_at\":4096,"
			     "\"nodes\":64,\"node_bytes\":128}"),
			 201);
	(void)told(s, "");
	assert_int_equal(ask(&s->f, "DELETE /v1/regions/w", NULL), 204);
	assert_int_equal(told(s, "swordbox gone"), 1);
	assert_int_equal(ask(&s->f, "DELETE /v1/regions/v", NULL), 204);
	assert_int_equal(told(s, "steer gone"), 1);
}

/* Pieces of striped regions are where walks may go on; one that the switch
 * does not take is tried again. */
static void test_pieces(void **state)
{
	struct fake *s = *state;

	assert_int_equal(told(s, "walk node name="), 1);
	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"plain\",\"size\":4096}"),
			 201);
	assert_int_equal(told(s, "walk piece"), 0);
	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"list.1-2-c\",\"size\":65536}"),
			 201);
	assert_int_equal(
		told(s, " index=1 count=2 shift=12 of=default/list token="), 1);
	/* With another size it has another key. */
	assert_int_equal(
		ask(&s->f, "PATCH /v1/regions/list.1-2-c", "{\"size\":131072}"),
		200);
	assert_int_equal(told(s, "walk piece"), 1);
	tick(s);
	assert_int_equal(told(s, "tell"), 0);

	SET(s, busy, "of=default/tree");
	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"tree.0-2-c\",\"size\":65536}"),
			 201);
	assert_int_equal(told(s, "walk piece"), 1);
	/* It has no number there, so there is nothing to take back. */
	assert_int_equal(ask(&s->f, "DELETE /v1/regions/tree.0-2-c", NULL),
			 204);
	assert_int_equal(told(s, "walk gone"), 0);
	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"tree.0-2-c\",\"size\":65536}"),
			 201);
	tick(s);
	assert_int_equal(told(s, "walk piece"), 2);
	SET(s, busy, NULL);
	tick(s);
	assert_int_equal(told(s, "walk piece"), 1);
	tick(s);
	assert_int_equal(told(s, "tell"), 0);

	/* Another run knows nothing. */
	SET(s, run, "two");
	tick(s);
	assert_int_equal(told(s, "walk piece"), 2);
	assert_int_equal(ask(&s->f, "DELETE /v1/regions/list.1-2-c", NULL),
			 204);
	assert_int_equal(told(s, "walk gone"), 1);
}

/* Many that the switch never takes do not keep another from being tried. */
static void test_many_refused(void **state)
{
	struct fake *s = *state;
	unsigned tries = 0;
	char body[96];

	SET(s, busy, "walk piece");
	for (unsigned i = 0; i < 40; i++) {
		snprintf(body, sizeof(body),
			 "{\"name\":\"r%u.0-2-c\",\"size\":4096}", i);
		assert_int_equal(ask(&s->f, "POST /v1/regions", body), 201);
	}
	assert_int_equal(told(s, "of=default/r39 "), 1);
	for (unsigned i = 0; i < 3; i++) {
		tick(s);
		tries += told(s, "of=default/r39 ");
	}
	assert_int_equal(tries, 1);
}

/* Another switch is told everything, one thing that it refuses or not. */
static void test_restarted(void **state)
{
	struct fake *s = *state;

	assert_int_equal(ask(&s->f, "POST /v1/regions",
			     "{\"name\":\"w\",\"size\":4096,"
			     "\"switch\":\"atomics\"}"),
			 201);
	(void)told(s, "");
	SET(s, run, "two");
	SET(s, busy, "swordbox region");
	tick(s);
	assert_int_equal(told(s, "swordbox region"), 1);
	tick(s);
	assert_int_equal(told(s, "tell"), 0); /* once */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hangs, start, stop),
		cmocka_unit_test_setup_teardown(test_too_much, start, stop),
		cmocka_unit_test_setup_teardown(test_given_up, start, stop),
		cmocka_unit_test_setup_teardown(test_regions, start, stop),
		cmocka_unit_test_setup_teardown(test_pieces, start, stop),
		cmocka_unit_test_setup_teardown(test_many_refused, start, stop),
		cmocka_unit_test_setup_teardown(test_restarted, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
