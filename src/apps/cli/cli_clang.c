/* SPDX-License-Identifier: Apache-2.0 */
/* Runs clang for a walk: finds it, collects what it says, reads what it made.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "cli_place.h"
#include "cli_walkc.h"
#include "walkc/walkc.h"

enum {
	OLDEST = 14,
	NEWEST = 24,
	ARGUMENTS_MAX = 24,
	SAID_MAX = 16384,
};

/* ---- finding it --------------------------------------------------------- */

/* Whether a folder of PATH has that program. */
static bool is_on_path(const char *name, char out[PATH_MAX])
{
	const char *path = getenv("PATH");

	while (path && *path) {
		size_t len = strcspn(path, ":");
		int n = snprintf(out, PATH_MAX, "%.*s/%s", (int)len, path,
				 name);

		if (len && n > 0 && n < PATH_MAX && access(out, X_OK) == 0)
			return true;
		path += len + (path[len] == ':');
	}
	return false;
}

static int find_clang(char out[PATH_MAX])
{
	char name[24];

	if (is_on_path("clang", out))
		return 0;
	for (int i = NEWEST; i >= OLDEST; i--) {
		(void)snprintf(name, sizeof(name), "clang-%d", i);
		if (is_on_path(name, out))
			return 0;
	}
	return error_set(-ENOENT,
			 "a walk in C is compiled by clang, and there is none "
			 "on PATH; install it ('apt install clang'), or build "
			 "from an object file that was compiled elsewhere with "
			 "'clang -O2 -target bpf -mcpu=v3 -g -c'");
}

/* ---- running it --------------------------------------------------------- */

/* In the child: stdout and stderr go to the pipe. */
static void become(char *const argv[], const int pipe_fds[2])
{
	int null = open("/dev/null", O_RDONLY);

	if (null >= 0)
		(void)dup2(null, 0); /* it reads nothing anyway */
	if (dup2(pipe_fds[1], 1) == 1 && dup2(pipe_fds[1], 2) == 2)
		(void)execv(argv[0], argv);
	_exit(127);
}

/* Reads until the other end is closed; keeps the first bytes. */
static void collect(int fd, char said[SAID_MAX])
{
	size_t len = 0;
	char rest[1024];

	for (;;) {
		bool is_full = len == SAID_MAX - 1;
		ssize_t n = is_full ? read(fd, rest, sizeof(rest))
				    : read(fd, said + len, SAID_MAX - 1 - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += is_full ? 0 : (size_t)n;
	}
	said[len] = '\0';
}

/* 0: it ended well. 1: it did not. */
static int run(char *const argv[], char said[SAID_MAX])
{
	int fds[2], status = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return error_set(-errno, "no pipe for clang");
	pid = fork();
	if (pid == 0)
		become(argv, fds);
	(void)close(fds[1]); /* the child has its own */
	if (pid > 0)
		collect(fds[0], said);
	(void)close(fds[0]); /* only read from */
	if (pid < 0)
		return error_set(-errno, "clang cannot be started");
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return error_set(-errno, "clang is lost");
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
}

/* The first line that says "error", or the first of all. */
static void first_error(const char *said, char line[ERROR_TEXT_MAX])
{
	const char *at = strstr(said, "error:");

	while (at && at > said && at[-1] != '\n')
		at--;
	if (!at)
		at = said;
	(void)snprintf(line, ERROR_TEXT_MAX, "%.*s", (int)strcspn(at, "\n"),
		       at);
}

/* The folder of <aquifer/walk_prog.h>: of the tree that this program was built
 * in, or of the prefix where it is installed. */
static bool find_header(char out[PATH_MAX])
{
	char bindir[PATH_MAX], file[PATH_MAX];
	int n, k;

	if (cli_place_bindir(bindir))
		return false;
	n = snprintf(out, PATH_MAX, "%s/../include", bindir);
	k = snprintf(file, PATH_MAX, "%s/../include/aquifer/walk_prog.h",
		     bindir);
	return n > 0 && n < PATH_MAX && k > 0 && k < PATH_MAX &&
	       access(file, R_OK) == 0;
}

static int compile(const char *source, const char *include, bool is_quiet,
		   const char *object)
{
	char clang[PATH_MAX], header[PATH_MAX], line[ERROR_TEXT_MAX];
	char said[SAID_MAX] = "";
	/* Memory functions stay calls, which are one instruction of a walk;
	 * tables for switches would be data; loops that are not unrolled are
	 * refused later, with better words. */
	const char *argv[ARGUMENTS_MAX] = {clang,
					   "-O2",
					   "-target",
					   "bpf",
					   "-mcpu=v3",
					   "-g",
					   "-c",
					   "-fno-builtin",
					   "-fno-jump-tables",
					   "-Wno-pass-failed",
					   "-o",
					   object};
	size_t n = 12;
	int err = find_clang(clang);

	if (err)
		return err;
	if (include) {
		argv[n++] = "-I";
		argv[n++] = include;
	}
	if (find_header(header)) {
		argv[n++] = "-I";
		argv[n++] = header;
	}
	argv[n++] = "--";
	argv[n++] = source;
	err = run((char *const *)argv, said);
	if (err < 0)
		return err;
	if (said[0] && !is_quiet)
		(void)fputs(said, stderr); /* the exit code says it, too */
	if (!err)
		return 0;
	first_error(said, line);
	return error_set(-EINVAL, "clang does not compile it: %.400s",
			 line[0] ? line : "it says nothing");
}

/* ---- files -------------------------------------------------------------- */

int cli_walkc_read(const char *path, size_t most, void **bytes, size_t *len)
{
	FILE *f = fopen(path, "re");
	struct stat st;
	int err = 0;

	if (!f)
		return error_set(-errno, "%s: %s; check the path", path,
				 strerror(errno));
	*bytes = NULL;
	if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode))
		err = error_set(-EISDIR, "%s is a folder", path);
	else if (!(*bytes = malloc(most + 1)))
		err = error_set(-ENOMEM, "no memory for %s", path);
	if (!err) {
		*len = fread(*bytes, 1, most + 1, f);
		if (ferror(f))
			err = error_set(-EIO, "%s cannot be read", path);
		else if (*len > most)
			err = error_set(-EFBIG, "%s has more than %zu bytes",
					path, most);
	}
	(void)fclose(f); /* only read from */
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

int cli_clang(const char *source, const char *include, bool is_quiet,
	      void **object, size_t *object_bytes)
{
	const char *tmp = getenv("TMPDIR");
	char folder[PATH_MAX], file[PATH_MAX + 8];
	int n = snprintf(folder, sizeof(folder), "%s/aquifer-walk-XXXXXX",
			 tmp && *tmp ? tmp : "/tmp");
	int err;

	if (access(source, R_OK))
		return error_set(-errno, "%s: %s", source, strerror(errno));
	if (n < 0 || (size_t)n >= sizeof(folder) || !mkdtemp(folder))
		return error_set(-errno, "no folder for clang's output in %s",
				 tmp && *tmp ? tmp : "/tmp");
	(void)snprintf(file, sizeof(file), "%s/walk.o", folder);
	err = compile(source, include, is_quiet, file);
	if (!err)
		err = cli_walkc_read(file, WALKC_BYTES_MAX, object,
				     object_bytes);
	(void)unlink(file);  /* there may be none */
	(void)rmdir(folder); /* and nothing else was put there */
	return err;
}
