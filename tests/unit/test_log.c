/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: form, level, errno, and the limit for what peers trigger. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

static char captured[16384];

/* Runs fn in a child whose stderr is a pipe: the setting is per process. */
static void capture(void (*fn)(void))
{
	size_t used = 0;
	int fds[2], status;
	pid_t pid;
	ssize_t n;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(fds[1], STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		fn();
		_exit(0);
	}
	close(fds[1]);
	while ((n = read(fds[0], captured + used,
			 sizeof(captured) - 1 - used)) > 0)
		used += (size_t)n;
	captured[used] = 0;
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void say_text(void)
{
	log_setup(LOG_LEVEL_INFO, false);
	log_err("nic", "no %s", "memory");
	log_warn("os", "two\nlines\x1b[1m");
	log_info("base", "%d", 7);
	log_debug("base", "hidden");
}

static void test_text(void **state)
{
	capture(say_text);
	assert_string_equal(captured, "err nic: no memory\n"
				      "warn os: two lines [1m\n"
				      "info base: 7\n");
}

static void say_time(void)
{
	log_setup(LOG_LEVEL_INFO, false);
	log_show_time();
	log_warn("os", "now");
	unsetenv("JOURNAL_STREAM");
}

/* A daemon's lines begin with the time: 2026-01-31T12:00:00.000000Z. */
static void test_time(void **state)
{
	static const char form[] = "dddd-dd-ddTdd:dd:dd.ddddddZ warn os: now\n";

	capture(say_time);
	assert_int_equal(strlen(captured), strlen(form));
	for (size_t i = 0; form[i]; i++)
		assert_true(form[i] == 'd' && i < 26
				    ? captured[i] >= '0' && captured[i] <= '9'
				    : captured[i] == form[i]);
}

static void say_json(void)
{
	log_setup(LOG_LEVEL_DEBUG, true);
	log_debug("nic", "say \"hi\"\n");
}

static void test_json(void **state)
{
	capture(say_json);
	assert_memory_equal(captured, "{\"level\":\"debug\",\"room\":\"nic\",",
			    30);
	assert_non_null(strstr(captured, ",\"msg\":\"say \\\"hi\\\"\\n\"}\n"));
}

static void say_long(void)
{
	char big[8000];

	memset(big, '"', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	log_setup(LOG_LEVEL_ERR, true);
	log_err("nic", "%s", big);
	log_setup(LOG_LEVEL_ERR, false);
	log_err("nic", "%s", big);
}

/* Cut, but each still one whole line. */
static void test_long(void **state)
{
	char *second;

	capture(say_long);
	second = strchr(captured, '\n');
	assert_non_null(second);
	assert_memory_equal(second - 2, "\"}\nerr nic: ", 12);
	assert_int_equal(captured[strlen(captured) - 1], '\n');
}

static void say_env(void)
{
	setenv("AQUIFER_LOG", "debug", 1);
	log_debug("base", "seen");
	if (log_level_env() != LOG_LEVEL_DEBUG)
		_exit(1);
	setenv("AQUIFER_LOG", "shout", 1);
	if (log_level_env() != LOG_LEVEL_WARN)
		_exit(1);
}

static void test_env(void **state)
{
	capture(say_env);
	assert_string_equal(captured, "debug base: seen\n");
}

static void say_errno(void)
{
	struct log_limit limit = {0};

	log_setup(LOG_LEVEL_WARN, false);
	errno = ENOSPC;
	close(STDERR_FILENO);
	log_warn("base", "cannot be written");
	log_warn_limited(&limit, 1, "base", "neither can this");
	_exit(errno == ENOSPC ? 0 : 1);
}

static void test_errno(void **state)
{
	capture(say_errno);
}

static void say_percent_m(void)
{
	errno = ENOSPC;
	log_warn("base", "%m"); /* the first event also reads the setting */
}

static void test_percent_m(void **state)
{
	capture(say_percent_m);
	assert_string_equal(captured, "warn base: No space left on device\n");
}

static void say_limited(void)
{
	struct log_limit limit = {0};
	unsigned i;

	log_setup(LOG_LEVEL_WARN, false);
	for (i = 0; i < 100; i++)
		log_warn_limited(&limit, 1000 + i, "nic", "bad key");
	log_warn_limited(&limit, 1000 + LOG_LIMIT_WINDOW_NS, "nic", "again");
}

static void test_limited(void **state)
{
	capture(say_limited);
	assert_string_equal(captured,
			    "warn nic: bad key\nwarn nic: bad key\n"
			    "warn nic: bad key\nwarn nic: bad key\n"
			    "warn nic: bad key\n"
			    "warn nic: 95 similar events were not logged\n"
			    "warn nic: again\n");
}

static void test_level_parse(void **state)
{
	enum log_level level = LOG_LEVEL_INFO;

	assert_int_equal(log_level_parse("err", &level), 0);
	assert_int_equal(level, LOG_LEVEL_ERR);
	assert_int_equal(log_level_parse("", &level), -EINVAL);
	assert_int_equal(log_level_parse("Debug", &level), -EINVAL);
	assert_int_equal(level, LOG_LEVEL_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_env),
		cmocka_unit_test(test_errno),
		cmocka_unit_test(test_percent_m),
		cmocka_unit_test(test_limited),
		cmocka_unit_test(test_level_parse),
	};

	/* Inherited settings would change what the cases expect. */
	unsetenv("AQUIFER_LOG");
	unsetenv("AQUIFER_LOG_JSON");
	unsetenv("JOURNAL_STREAM");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
