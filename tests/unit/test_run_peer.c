/* SPDX-License-Identifier: Apache-2.0 */
/* Who may attach to a pager: by user, or as a descendant of the supervisor. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "run/peer.h"

enum {
	USER = 1000,
	STRANGER = 65534,
};

/* A child and a grandchild of ours that wait; returns the grandchild. */
static pid_t start_two(pid_t *child)
{
	pid_t grandchild;
	int told[2];

	assert_int_equal(pipe(told), 0);
	*child = fork();
	assert_true(*child >= 0);
	if (*child == 0) {
		grandchild = fork();
		if (grandchild == 0)
			for (;;)
				(void)pause();
		(void)!write(told[1], &grandchild, sizeof(grandchild));
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(told[0], &grandchild, sizeof(grandchild)),
			 sizeof(grandchild));
	(void)close(told[0]);
	(void)close(told[1]);
	return grandchild;
}

static void strangers_may_only_come_as_descendants(void **state)
{
	pid_t child, grandchild = start_two(&child), us = getpid();
	const struct {
		uid_t uid;
		pid_t pid, supervisor;
		bool may;
	} row[] = {
		{USER, 1, us, true},
		{0, 1, us, true},
		{STRANGER, child, us, true},
		{STRANGER, grandchild, us, true},
		{STRANGER, grandchild, child, true},
		/* Beside, above and at the supervisor, and nobody at all. */
		{STRANGER, grandchild, grandchild, false},
		{STRANGER, child, grandchild, false},
		{STRANGER, us, child, false},
		{STRANGER, us, us, false},
		{STRANGER, 1, us, false},
		{STRANGER, 0, us, false},
		{STRANGER, -1, us, false},
		{(uid_t)-1, INT32_MAX, us, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(row); i++)
		assert_int_equal(run_peer_is_allowed(row[i].uid, row[i].pid,
						     USER, row[i].supervisor),
				 row[i].may);
	assert_int_equal(kill(grandchild, SIGKILL), 0);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strangers_may_only_come_as_descendants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
