/* SPDX-License-Identifier: Apache-2.0 */
/* Whether an assertion of the product ends the process, which is a child. */
#ifndef AQ_TEST_DIES_H
#define AQ_TEST_DIES_H

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static bool dies(void (*assert_it)(void *), void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		static const struct rlimit none = {0};

		(void)setrlimit(RLIMIT_CORE, &none);
		(void)signal(SIGABRT, SIG_DFL);
		(void)close(STDERR_FILENO);
		assert_it(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

#endif
