/* SPDX-License-Identifier: Apache-2.0 */
/* `aquifer ns hold`: a lease is renewed for as long as a command runs. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli.h"
#include "cli_ns.h"

enum {
	AGAIN_MS = 500, /* after a renewal that failed */
};

/* 0, or -errno with words; *period_ms is how long it holds. */
static int renew(struct cli_admin *m, const char *path, uint64_t *period_ms)
{
	json_t *reply = NULL;
	int err = cli_admin_ask(m, 0, "POST", "/v1/renew",
				json_pack("{s:[s]}", "paths", path), &reply);

	if (!err && json_array_size(json_object_get(reply, "unknown")))
		err = error_set(-ENOENT, "there is no %s, or its lease is over",
				path);
	if (!err)
		err = client_json_u64(reply, "period_ms", UINT32_MAX,
				      period_ms);
	json_decref(reply);
	/* Another one may lead by now. */
	if (err == -EHOSTDOWN && cli_admin_find_leader(m) == 0)
		error_clear();
	return err;
}

static void start(char **command, const sigset_t *mask)
{
	(void)sigprocmask(SIG_SETMASK, mask, NULL);
	(void)execvp(command[0], command);
	cli_error("cannot start '%s': %s", command[0], strerror(errno));
	_exit(errno == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

/* As a shell says it. */
static int code_of(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status)
				   : WEXITSTATUS(status);
}

/* Signals that end us are for the command, whose end is ours. */
static void wait_for(pid_t pid, const sigset_t *signals, uint64_t ms)
{
	const struct timespec limit = {(time_t)(ms / 1000),
				       (long)(ms % 1000) * 1000000};
	int signal = sigtimedwait(signals, NULL, &limit);

	if (signal > 0 && signal != SIGCHLD)
		(void)kill(pid, signal); /* if it has ended, waitpid says so */
}

static int watch(struct cli_admin *m, const char *path, pid_t pid,
		 const sigset_t *signals, uint64_t period_ms)
{
	uint64_t next_ms = clock_mono_ms() + period_ms / 3;
	bool failed = false;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		uint64_t now = clock_mono_ms();
		int err;

		if (now < next_ms) {
			wait_for(pid, signals, next_ms - now);
			continue;
		}
		err = renew(m, path, &period_ms);
		/* Once in words; the command goes on with what it has. */
		if (err && !failed)
			cli_error("the lease is not renewed: %s", error_last());
		failed = err != 0;
		next_ms = clock_mono_ms() +
			  (err ? u64_min(AGAIN_MS, period_ms / 3)
			       : period_ms / 3);
	}
	return code_of(status);
}

int cli_ns_hold(const char *path, char **command)
{
	uint64_t period_ms = 0;
	struct cli_admin m;
	sigset_t signals, before;
	pid_t pid;
	int code;

	if (cli_admin_open_names(&m))
		return CLI_FAILED;
	if (renew(&m, path, &period_ms)) {
		cli_error("%s", error_last());
		cli_admin_close(&m);
		return CLI_FAILED;
	}
	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, &before);
	pid = fork();
	if (pid == 0)
		start(command, &before);
	if (pid < 0) {
		cli_error("cannot start a process: %s", strerror(errno));
		code = CLI_FAILED;
	} else {
		code = watch(&m, path, pid, &signals, period_ms);
	}
	(void)sigprocmask(SIG_SETMASK, &before, NULL);
	cli_admin_close(&m);
	return code;
}
