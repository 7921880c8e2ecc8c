/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs commands, and keeps what they printed in a folder, a file each, so that
 * a run which was stopped goes on where it was. The file has the command, how
 * long it took, its exit code and the JSON that it printed; what it wrote for
 * people is in a .log beside it.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "claims_priv.h"

enum {
	WORDS_MAX = 16,
	WORD_BYTES = 256, /* of a whole command */
	STOP_S = 20,	  /* for a command to end by itself */
};

/* STATE/sim-offload---figure-8SUFFIX */
static int path_of(const struct claims_run *r, const struct claims_command *c,
		   const char *suffix, char path[PATH_MAX])
{
	size_t at = strlen(r->state) + 1;
	int n = snprintf(path, PATH_MAX, "%s/%s%s", r->state, c->is->words,
			 suffix);

	if (n >= PATH_MAX)
		return error_set(-ENAMETOOLONG, "--state: path too long");
	for (char *p = path + at; *p; p++)
		if (*p == ' ' || *p == '/')
			*p = '-';
	return 0;
}

static void forget(struct claims_command *c)
{
	json_decref(c->result);
	c->result = NULL;
	c->exit_code = 0;
	c->seconds = 0;
}

/* What cannot be read, or is another command's, counts as not run. */
static void load(struct claims_run *r, struct claims_command *c)
{
	char path[PATH_MAX];
	json_t *kept, *result;
	const char *words;

	if (path_of(r, c, ".json", path))
		return;
	kept = json_load_file(path, 0, NULL);
	words = json_string_value(json_object_get(kept, "command"));
	result = json_object_get(kept, "result");
	if (words && !strcmp(words, c->is->words)) {
		c->result = json_is_object(result) ? json_incref(result) : NULL;
		c->exit_code = (int)json_integer_value(
			json_object_get(kept, "exit_code"));
		c->seconds =
			json_number_value(json_object_get(kept, "seconds"));
	}
	json_decref(kept);
}

static int save(struct claims_run *r, const struct claims_command *c)
{
	char path[PATH_MAX], whole[PATH_MAX];
	json_t *kept;
	int rc = path_of(r, c, ".new", path);

	if (!rc)
		rc = path_of(r, c, ".json", whole);
	if (rc)
		return rc;
	kept = json_pack("{s:s, s:f, s:i, s:O?}", "command", c->is->words,
			 "seconds", c->seconds, "exit_code", c->exit_code,
			 "result", c->result);
	if (!kept || json_dump_file(kept, path, JSON_INDENT(1)) < 0 ||
	    rename(path, whole) < 0)
		rc = error_set(-EIO, "cannot write %s", whole);
	json_decref(kept);
	return rc;
}

/* Blocked, and looked for while a command runs: no signal can come between a
 * look and a wait, or while a file is written. */
static sigset_t awaited(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGCHLD);
	return set;
}

int claims_state_open(struct claims_run *r)
{
	sigset_t set = awaited();

	sigprocmask(SIG_BLOCK, &set, &r->mask);
	if ((mkdir(r->state, 0777) && errno != EEXIST) ||
	    access(r->state, W_OK | X_OK))
		return error_set(-errno, "--state %s: %s", r->state,
				 strerror(errno));
	for (size_t i = 0; i < r->count; i++)
		load(r, &r->command[i]);
	return 0;
}

void claims_state_close(struct claims_run *r)
{
	for (size_t i = 0; i < r->count; i++)
		forget(&r->command[i]);
	sigprocmask(SIG_SETMASK, &r->mask, NULL);
}

/* ---- running --------------------------------------------------------------
 */

/* aquifer-sim or aquifer-bench, which stand beside each other, and the rest of
 * the command; the words point into `text`. */
static int split(const struct claims_command *c, char text[WORD_BYTES],
		 char program[PATH_MAX], char *argv[WORDS_MAX])
{
	ssize_t n = readlink("/proc/self/exe", program, PATH_MAX - 32);
	unsigned count = 0;
	char *slash;

	if (n < 0)
		return error_set(-errno, "/proc/self/exe cannot be read");
	program[n] = 0;
	slash = strrchr(program, '/');
	ASSERT(slash && strlen(c->is->words) < WORD_BYTES);
	strcpy(text, c->is->words);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		ASSERT(count < WORDS_MAX - 2);
		argv[count++] = word;
	}
	argv[count++] = "--json";
	argv[count] = NULL;
	sprintf(slash, "/aquifer-%s", argv[0]);
	return 0;
}

/* In a process group of its own, so that all that it starts can be stopped. */
static void become(const char *program, char *argv[], const char *out,
		   const char *log)
{
	int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	int log_fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (out_fd < 0 || log_fd < 0 || dup2(out_fd, STDOUT_FILENO) < 0 ||
	    dup2(log_fd, STDERR_FILENO) < 0)
		_exit(126);
	execv(program, argv);
	fprintf(stderr, "%s: %s\n", program, strerror(errno));
	_exit(127);
}

/* The command may have a rack to take down; who does not end is ended. */
static int end_group(pid_t pid)
{
	int status = 0;

	kill(-pid, SIGINT);
	for (unsigned i = 0; i < STOP_S * 20; i++) {
		if (waitpid(pid, &status, WNOHANG) == pid)
			return -EINTR;
		nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
	}
	kill(-pid, SIGKILL);
	(void)waitpid(pid, &status, 0);
	return -EINTR;
}

static int wait_for(pid_t pid, int *exit_code)
{
	const struct timespec second = {.tv_sec = 1};
	sigset_t set = awaited();
	int status = 0, got = 0;

	while (waitpid(pid, &status, WNOHANG) != pid) {
		if (got == SIGINT || got == SIGTERM)
			return end_group(pid);
		got = sigtimedwait(&set, NULL, &second);
	}
	*exit_code = WIFEXITED(status) ? WEXITSTATUS(status)
				       : 128 + WTERMSIG(status);
	return 0;
}

static int run(const struct claims_run *r, struct claims_command *c,
	       const char *out, const char *log)
{
	char text[WORD_BYTES], program[PATH_MAX], *argv[WORDS_MAX];
	pid_t pid;
	int rc = split(c, text, program, argv);

	if (rc)
		return rc;
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		setpgid(0, 0);
		sigprocmask(SIG_SETMASK, &r->mask, NULL);
		become(program, argv, out, log);
	}
	if (pid < 0)
		return error_set(-errno, "fork: %s", strerror(errno));
	setpgid(pid, pid); /* whoever of the two is first */
	return wait_for(pid, &c->exit_code);
}

/* A benchmark that failed says what it has measured; a figure with a wrong
 * point says nothing. */
static bool counts(const struct claims_command *c)
{
	return !c->exit_code || !strncmp(c->is->words, "bench ", 6);
}

int claims_state_run(struct claims_run *r, struct claims_command *c)
{
	char out[PATH_MAX], log[PATH_MAX];
	struct timespec begin, end;
	int rc = path_of(r, c, ".out", out);

	if (!rc)
		rc = path_of(r, c, ".log", log);
	if (rc)
		return rc;
	forget(c);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	rc = run(r, c, out, log);
	clock_gettime(CLOCK_MONOTONIC, &end);
	c->seconds = (double)(end.tv_sec - begin.tv_sec) +
		     (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
	if (!rc && counts(c))
		c->result = json_load_file(out, 0, NULL);
	/* A command that says nothing that can be read has failed, too. */
	if (!rc && !c->result && !c->exit_code)
		c->exit_code = 1;
	if (!rc)
		rc = save(r, c);
	else
		forget(c);
	(void)unlink(out);
	return rc;
}
