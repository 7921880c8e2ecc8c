/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a switch that is not there, that hangs, and what answers say. */
#include <errno.h>
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

#include "base/clock.h"
#include "base/error.h"
#include "control/ctl_switch.h"

static void the_path_is_that_of_the_socket(void **state)
{
	char out[CTL_SWITCH_PATH_MAX], deep[200];

	assert_int_equal(ctl_switch_path("/run/x", "s1", out), 0);
	assert_string_equal(out, "/run/x/switch-s1.ctl");
	memset(deep, 'a', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	assert_int_equal(ctl_switch_path(deep, "s1", out), -ENAMETOOLONG);
}

static void no_switch_is_said_so(void **state)
{
	struct ctl_switch w = {.path = "/nonexistent/switch-s1.ctl"};

	assert_int_equal(ctl_switch_ask(&w, "hello", NULL), -ENOENT);
	assert_non_null(strstr(error_last(), w.path));
	assert_int_equal(ctl_switch_tell(&w, "tell %s", "x"), -EAGAIN);
}

/* The first call waits, the others do not. */
static void one_that_hangs_is_waited_for_once(void **state)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/aq-switch-XXXXXX";
	struct ctl_switch w = {0};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	uint64_t began_ms;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(ctl_switch_path(dir, "s1", w.path), 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", w.path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 4), 0);
	assert_int_equal(ctl_switch_tell(&w, "tell x"), -EAGAIN);
	assert_non_null(strstr(error_last(), "does not answer"));
	/* A switch that nobody runs would be waited for 100 s else. */
	began_ms = clock_mono_ms();
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(ctl_switch_tell(&w, "tell x"), -EAGAIN);
	assert_true(clock_mono_ms() - began_ms < 50000);
	close(fd);
	unlink(w.path);
	rmdir(dir);
}

static void answers_are_read(void **state)
{
	json_t *hello =
		json_loads("{\"run\":\"ab\",\"programs\":[{\"name\":\"fault\"},"
			   "{\"name\":\"cowbird\",\"reads\":7}]}",
			   0, NULL);
	json_t *odd = json_loads("{\"run\":\"0123456789012345678901234\","
				 "\"programs\":[1,{\"name\":2}]}",
				 0, NULL);
	const json_t *p = ctl_switch_program(hello, "cowbird");

	assert_string_equal(ctl_switch_run(hello), "ab");
	assert_int_equal(json_integer_value(json_object_get(p, "reads")), 7);
	assert_null(ctl_switch_program(hello, "swordbox"));
	assert_null(ctl_switch_run(odd));
	assert_null(ctl_switch_run(NULL));
	assert_null(ctl_switch_program(odd, "fault"));
	json_decref(hello);
	json_decref(odd);
}

static void ends_have_the_kind_of_their_peer(void **state)
{
	static const uint8_t v4[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
	static const uint8_t v6[16] = {0xfd, [15] = 1};

	assert_memory_equal(ctl_switch_ip(v4), v4, 12);
	assert_memory_not_equal(ctl_switch_ip(v6), v4, 12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_path_is_that_of_the_socket),
		cmocka_unit_test(no_switch_is_said_so),
		cmocka_unit_test(one_that_hangs_is_waited_for_once),
		cmocka_unit_test(answers_are_read),
		cmocka_unit_test(ends_have_the_kind_of_their_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
