/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, finds and ends background processes by pid and start time. */
#include "cli_proc.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"

extern char **environ;

/* *owner: of the file, if wanted. */
static int read_small(const char *path, char *buf, size_t size_bytes,
		      uid_t *owner)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fstat(fd, &st) < 0 ? -1 : read(fd, buf, size_bytes - 1);
	close(fd);
	if (n < 0)
		return -EIO;
	if (owner)
		*owner = st.st_uid;
	buf[n] = '\0';
	return 0;
}

/* The start time; -ESRCH when there is no such process, or only its ashes. */
static int start_ticks_of(pid_t pid, uint64_t *ticks)
{
	char path[64], text[1024];
	const char *p;
	char state;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_small(path, text, sizeof(text), NULL))
		return -ESRCH;
	/* The name in parentheses may hold anything. */
	p = strrchr(text, ')');
	if (!p || sscanf(p,
			 ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
			 "%*u %*d %*d %*d %*d %*d %*d %" SCNu64,
			 &state, ticks) != 2)
		return -ESRCH;
	return state == 'Z' || state == 'X' ? -ESRCH : 0;
}

static bool is_alive(const struct cli_proc *p)
{
	uint64_t ticks;

	return start_ticks_of(p->pid, &ticks) == 0 && ticks == p->start_ticks;
}

static void path_of(char out[PATH_MAX], const char *rundir, const char *node,
		    const char *suffix)
{
	snprintf(out, PATH_MAX, "%s/%s.%s", rundir, node, suffix);
}

/* Members of rack.group can write such a file, too, and name any process in it:
 * it counts if its owner could end that process, without us. */
static bool is_believed(uid_t owner, pid_t pid)
{
	char path[64];
	struct stat st;

	if (owner == geteuid() || owner == 0)
		return true;
	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 && st.st_uid == owner;
}

int cli_proc_find(const char *rundir, const char *node, struct cli_proc *out)
{
	char path[PATH_MAX], text[64];
	struct cli_proc p;
	uid_t owner;
	int pid;

	path_of(path, rundir, node, "pid");
	if (read_small(path, text, sizeof(text), &owner))
		return -ENOENT;
	if (sscanf(text, "%d %" SCNu64, &pid, &p.start_ticks) != 2 || pid <= 1)
		return -ESRCH;
	p.pid = pid;
	if (!is_believed(owner, pid) || !is_alive(&p))
		return -ESRCH;
	*out = p;
	return 0;
}

static int write_pid_file(const char *rundir, const char *node,
			  const struct cli_proc *p)
{
	char path[PATH_MAX], fresh[PATH_MAX], text[64];
	int fd, n, err = 0;

	path_of(path, rundir, node, "pid");
	path_of(fresh, rundir, node, "pid.new");
	(void)unlink(fresh); /* of one that was killed over it */
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(-errno, "%s: %s", fresh, strerror(errno));
	n = snprintf(text, sizeof(text), "%d %" PRIu64 "\n", (int)p->pid,
		     p->start_ticks);
	if (write(fd, text, (size_t)n) != n)
		err = -EIO;
	close(fd);
	if (!err && rename(fresh, path) != 0)
		err = -errno;
	return err ? error_set(err, "%s cannot be written", path) : 0;
}

/* A log holds many starts; each begins with its time. */
static void note_start(const char *log, const char *node)
{
	int fd = rundir_file_open(log, O_WRONLY | O_CREAT | O_APPEND);
	time_t now = time(NULL);
	char when[32];
	struct tm tm;

	if (fd < 0)
		return; /* spawn() says so */
	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	(void)dprintf(fd, "%s start of %s\n", when, node);
	close(fd);
}

static int spawn(const char *log, char *const argv[], pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	int err, out = rundir_file_open(log, O_WRONLY | O_CREAT | O_APPEND);
	sigset_t none;

	if (out < 0)
		return error_prefix(out, "no log: ");
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr,
				 POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK);
	err = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY,
					       0);
	for (int fd = 1; !err && fd <= 2; fd++)
		err = posix_spawn_file_actions_adddup2(&files, out, fd);
	if (!err)
		err = posix_spawn(pid, argv[0], &files, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	close(out);
	return err ? error_set(-err, "%s cannot be started: %s", argv[0],
			       strerror(err))
		   : 0;
}

int cli_proc_start(const char *rundir, const char *node, char *const argv[],
		   struct cli_proc *out)
{
	char log[PATH_MAX];
	struct cli_proc p;
	int err;

	path_of(log, rundir, node, "log");
	note_start(log, node);
	err = spawn(log, argv, &p.pid);
	if (err)
		return err;
	err = start_ticks_of(p.pid, &p.start_ticks);
	if (err) {
		(void)waitpid(p.pid, NULL, WNOHANG);
		return error_set(err, "it ended at once; see %s", log);
	}
	err = write_pid_file(rundir, node, &p);
	if (err) {
		(void)kill(p.pid, SIGTERM);
		return err;
	}
	*out = p;
	return 0;
}

/* A handle on the process itself; -ESRCH when the number is another's now. */
static int open_pidfd(const struct cli_proc *p)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);

	if (fd < 0)
		return -errno;
	if (is_alive(p))
		return fd;
	close(fd);
	return -ESRCH;
}

static int send_signal(const struct cli_proc *p, int sig)
{
	int fd = open_pidfd(p);
	int err = 0;

	if (fd < 0)
		return fd;
	if (syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0) != 0)
		err = -errno;
	close(fd);
	return err;
}

int cli_proc_end(const struct cli_proc *p)
{
	int err = send_signal(p, SIGTERM);

	return err == -ESRCH ? 0 : err;
}

static bool wait_end(const struct cli_proc *p, uint32_t timeout_ms)
{
	struct pollfd pfd = {.fd = open_pidfd(p), .events = POLLIN};
	bool is_over;

	if (pfd.fd < 0)
		return true;
	is_over = poll(&pfd, 1, (int)timeout_ms) == 1;
	close(pfd.fd);
	return is_over;
}

int cli_proc_wait(const struct cli_proc *p, uint32_t timeout_ms)
{
	enum {
		KILL_WAIT_MS = 5000
	};
	int err;

	if (wait_end(p, timeout_ms))
		return 0;
	err = send_signal(p, SIGKILL);
	if (err && err != -ESRCH)
		return err;
	return wait_end(p, KILL_WAIT_MS) ? 1 : -ETIMEDOUT;
}

void cli_proc_forget(const char *rundir, const char *node)
{
	char path[PATH_MAX];

	path_of(path, rundir, node, "pid");
	(void)unlink(path);
	path_of(path, rundir, node, "sock");
	(void)unlink(path);
	path_of(path, rundir, node, "engine.sock");
	(void)unlink(path);
}
