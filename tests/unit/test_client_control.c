/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to a controller, over connections that are kept. */
#include "client_fake.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
	LINES = 8,
	WAIT_MS = 60000,
};

/* A controller that answers everything, and counts who comes. */
static struct {
	pthread_t thread;
	int listener, end[2];
	int line[LINES];
	/* What becomes of the line that is asked next. */
	atomic_bool hangs_up_after, hangs_up_before;
	atomic_uint came, gone, asked;
} server;

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
			     "Content-Type: application/json\r\n\r\n{}";

static void hang_up(unsigned at)
{
	(void)close(server.line[at]);
	server.line[at] = -1;
	server.gone++;
}

/* Questions are short, and none comes before the answer to the last one. */
static void serve(unsigned at)
{
	char text[4096];
	ssize_t n = read(server.line[at], text, sizeof(text));

	if (n <= 0) {
		hang_up(at);
		return;
	}
	server.asked++;
	if (atomic_exchange(&server.hangs_up_before, false)) {
		hang_up(at);
		return;
	}
	(void)!write(server.line[at], answer, sizeof(answer) - 1);
	if (atomic_exchange(&server.hangs_up_after, false))
		hang_up(at);
}

static void *run(void *arg)
{
	for (;;) {
		struct pollfd fd[LINES + 2] = {
			{.fd = server.end[0], .events = POLLIN},
			{.fd = server.listener, .events = POLLIN},
		};

		for (unsigned i = 0; i < LINES; i++)
			fd[i + 2] = (struct pollfd){.fd = server.line[i],
						    .events = POLLIN};
		(void)poll(fd, LINES + 2, -1);
		if (fd[0].revents)
			return NULL;
		for (unsigned i = 0; i < LINES; i++)
			if (fd[i + 2].revents)
				serve(i);
		for (unsigned i = 0; fd[1].revents && i < LINES; i++)
			if (server.line[i] < 0) {
				server.line[i] =
					accept(server.listener, NULL, NULL);
				server.came++;
				break;
			}
	}
}

static int set_up(void **state)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	struct fake_rack *f;

	assert_int_equal(fake_setup(state), 0);
	f = *state;
	fake_write_file(f->dir, "rack.ini", "[rack]\ncontrol = c0\n");
	(void)snprintf(at.sun_path, sizeof(at.sun_path),
		       "%s/local/c0.control.sock", f->dir);
	memset(&server, 0, sizeof(server));
	memset(server.line, -1, sizeof(server.line));
	server.listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(
		bind(server.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(server.listener, LINES), 0);
	assert_int_equal(pipe(server.end), 0);
	assert_int_equal(pthread_create(&server.thread, NULL, run, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)close(server.end[1]);
	assert_int_equal(pthread_join(server.thread, NULL), 0);
	(void)close(server.end[0]);
	(void)close(server.listener);
	for (unsigned i = 0; i < LINES; i++)
		if (server.line[i] >= 0)
			(void)close(server.line[i]);
	return fake_teardown(state);
}

static struct aq_rack *open_rack(struct fake_rack *f)
{
	struct aq_rack *rack;

	assert_int_equal(client_rack_open(NULL, &fake_transport, f, &rack), 0);
	return rack;
}

static int ask(struct aq_rack *rack)
{
	json_t *reply = NULL;
	int err = client_control_call(
		rack, "POST", "/v1/blocks/x", json_pack("{s:i}", "most", 1),
		client_rack_now_ns(rack) + WAIT_MS * 1000000ull, &reply);

	json_decref(reply);
	return err;
}

static void a_connection_is_used_again(void **state)
{
	struct aq_rack *rack = open_rack(*state);

	for (unsigned i = 1; i <= 20; i++) {
		assert_int_equal(ask(rack), 0);
		assert_int_equal(server.asked, i);
	}
	assert_int_equal(server.came, 1);
	aq_rack_close(rack);
}

static void one_that_was_closed_is_replaced(void **state)
{
	struct aq_rack *rack = open_rack(*state);

	server.hangs_up_after = true;
	assert_int_equal(ask(rack), 0);
	while (!server.gone)
		(void)usleep(100);
	assert_int_equal(ask(rack), 0);
	assert_int_equal(server.came, 2);
	assert_int_equal(server.asked, 2);
	/* In the moment that it is used. */
	server.hangs_up_before = true;
	assert_int_equal(ask(rack), 0);
	assert_int_equal(server.came, 3);
	assert_int_equal(server.asked, 4);
	aq_rack_close(rack);
}

/* A new one: nobody is there, and the handle is good afterwards. */
static void one_that_is_refused_is_an_error(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	char path[128], away[128];

	assert_int_equal(ask(rack), 0);
	(void)snprintf(path, sizeof(path), "%s/local/c0.control.sock", f->dir);
	(void)snprintf(away, sizeof(away), "%s/local/away", f->dir);
	assert_int_equal(rename(path, away), 0);
	server.hangs_up_before = true;
	assert_int_equal(ask(rack), -EHOSTDOWN);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(ask(rack), 0);
	assert_int_equal(server.came, 2);
	aq_rack_close(rack);
}

static void a_child_does_not_use_its_parents(void **state)
{
	struct aq_rack *rack = open_rack(*state);
	int status;
	pid_t pid;

	assert_int_equal(ask(rack), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		bool is_ok = ask(rack) == 0 && ask(rack) == 0;

		aq_rack_close(rack);
		_exit(is_ok ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(server.came, 3);
	assert_int_equal(ask(rack), 0);
	assert_int_equal(server.came, 3);
	aq_rack_close(rack);
}

/* Of this process, to the controller. */
static unsigned lines_of(const char *dir, bool *is_inherited)
{
	unsigned count = 0;

	for (int fd = 3; fd < 256; fd++) {
		struct sockaddr_un at;
		socklen_t len = sizeof(at);

		memset(&at, 0, sizeof(at));
		if (getpeername(fd, (struct sockaddr *)&at, &len) ||
		    strncmp(at.sun_path, dir, strlen(dir)) != 0)
			continue;
		count++;
		*is_inherited |= !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	return count;
}

static void a_program_does_not_get_it(void **state)
{
	struct fake_rack *f = *state;
	struct aq_rack *rack = open_rack(f);
	bool is_inherited = false;

	assert_int_equal(ask(rack), 0);
	assert_int_equal(lines_of(f->dir, &is_inherited), 1);
	assert_false(is_inherited);
	aq_rack_close(rack);
	assert_int_equal(lines_of(f->dir, &is_inherited), 0);
}

static void *ask_often(void *arg)
{
	for (unsigned i = 0; i < 200; i++)
		if (ask(arg))
			return arg;
	return NULL;
}

static void threads_ask_at_once(void **state)
{
	struct aq_rack *rack = open_rack(*state);
	pthread_t thread[4];
	void *failed;

	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(
			pthread_create(&thread[i], NULL, ask_often, rack), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(pthread_join(thread[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(server.asked, 4 * 200);
	aq_rack_close(rack);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_connection_is_used_again,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_was_closed_is_replaced,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_is_refused_is_an_error,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			a_child_does_not_use_its_parents, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_program_does_not_get_it,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(threads_ask_at_once, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
