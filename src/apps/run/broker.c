/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of the broker's socket. */
#include "broker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fds.h"
#include "confine/confine.h"
#include "pager_priv.h"
#include "peer.h"
#include "rights.h"
#include "uffd.h"

/* Of the broker, which has no others but 0 to 2. */
enum {
	SOCK_FD = 3,
	DIR_FD, /* of the run */
	PAGER_FD,
	FREE_FD,
};

enum {
	LOOKS = 3,
};

enum ask {
	ASK_ENABLE, /* with a userfaultfd */
	ASK_OWNER,
	ASK_STACK,
	ASK_SMAPS,
	ASK_EXE,
	ASK_KILL,
	ASK_REMOVE_PLACE,
};

struct question {
	uint32_t ask; /* enum ask, or anything from who took the pager over */
	int32_t pid;
	int32_t signal;
};

struct answer {
	int32_t err;
	uint64_t value;
};

/* ---- in the broker ------------------------------------------------------- */

/* As run_peer_is_allowed; but root has more processes than those of the run.
 * Without a supervisor only the user tells. */
static bool is_ours(const struct run_start *start, pid_t pid)
{
	uid_t user = start->options->user->uid;
	struct stat st;
	char path[32];

	/* Who loses its parent meanwhile has another one by now. */
	for (unsigned i = 0; i < LOOKS; i++)
		if (run_peer_is_below(pid, start->supervisor))
			return true;
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return user != 0 && stat(path, &st) == 0 && st.st_uid == user;
}

static bool has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

/* What is asked about a process of the run. *fd gets a descriptor to send. */
static int look(const struct run_start *start, const struct question *q,
		int pidfd, uint64_t *value, int *fd)
{
	const struct run_user *user = start->options->user;
	char path[40];

	switch ((enum ask)q->ask) {
	case ASK_OWNER:
		*fd = fcntl(pidfd, F_DUPFD_CLOEXEC, 0);
		return *fd < 0 ? -errno : 0;
	case ASK_STACK:
		*value = run_peer_stack(q->pid);
		return 0;
	case ASK_SMAPS:
		(void)snprintf(path, sizeof(path), "/proc/%d/smaps",
			       (int)q->pid);
		*fd = open(path, O_RDONLY | O_CLOEXEC);
		return *fd < 0 ? -errno : 0;
	case ASK_EXE:
		(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)q->pid);
		*value = exe_look(path, user->uid, user->gid);
		return 0;
	case ASK_KILL:
		if (q->signal != SIGKILL && q->signal != SIGBUS)
			return -EINVAL;
		return syscall(SYS_pidfd_send_signal, pidfd, q->signal, NULL,
			       0) == 0
			       ? 0
			       : -errno;
	case ASK_ENABLE:
	case ASK_REMOVE_PLACE:
		break;
	}
	return -EINVAL;
}

/* A number may be another process's as soon as this one has ended; so it must
 * still live after what was learnt by its number. */
static int about_process(const struct run_start *start,
			 const struct question *q, uint64_t *value, int *fd)
{
	int pidfd = (int)syscall(SYS_pidfd_open, q->pid, 0);
	int err = 0;

	if (pidfd < 0)
		return -errno;
	if (!is_ours(start, q->pid) || has_ended(pidfd))
		err = -ESRCH;
	if (!err)
		err = look(start, q, pidfd, value, fd);
	if (!err && q->ask != ASK_KILL && has_ended(pidfd))
		err = -ESRCH;
	(void)close(pidfd);
	return err;
}

static int do_it(const struct run_start *start, const struct question *q,
		 int with, uint64_t *value, int *fd)
{
	if (q->ask == ASK_ENABLE)
		return with < 0 ? -EPROTO : run_uffd_enable(with);
	if (q->ask != ASK_REMOVE_PLACE)
		return about_process(start, q, value, fd);
	run_place_remove(&start->place);
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		(void)close(fd); /* the other end has its own */
}

static int serve_one(const struct run_start *start)
{
	struct answer a = {0};
	struct question q;
	unsigned count;
	int with = -1, fd = -1;
	int err = fds_receive(SOCK_FD, &q, sizeof(q), &with, 1, &count,
			      MSG_DONTWAIT);

	if (err)
		return err;
	a.err = do_it(start, &q, with, &a.value, &fd);
	close_fd(with);
	err = fds_send(SOCK_FD, &a, sizeof(a), &fd, !a.err && fd >= 0, 0);
	close_fd(fd);
	return err;
}

/* Until the pager ends. Its end of the socket may stay open longer, because the
 * supervisor has the same table of descriptors; and a confined process does not
 * reach us by a signal when it dies. */
static void serve(const struct run_start *start)
{
	struct pollfd p[] = {{.fd = SOCK_FD, .events = POLLIN},
			     {.fd = PAGER_FD, .events = POLLIN}};
	int err = 0;

	while (!err || err == -EINTR || err == -EAGAIN) {
		if (poll(p, ARRAY_LEN(p), -1) < 0)
			err = -errno;
		else if (p[0].revents)
			err = serve_one(start);
		else
			return;
	}
}

/* The pager's descriptors are not for it, but for the run's directory. */
static int keep_descriptors(struct run_start *start, int sock, pid_t pager)
{
	int from[] = {fcntl(sock, F_DUPFD, FREE_FD),
		      fcntl(start->place.dir_fd, F_DUPFD, FREE_FD),
		      fcntl((int)syscall(SYS_pidfd_open, pager, 0), F_DUPFD,
			    FREE_FD)};

	for (unsigned i = 0; i < ARRAY_LEN(from); i++)
		if (from[i] < 0 || dup2(from[i], SOCK_FD + (int)i) < 0)
			return -errno;
	start->place.dir_fd = DIR_FD;
	return syscall(SYS_close_range, FREE_FD, ~0u, 0) == 0 ? 0 : -errno;
}

static void be_broker(const struct run_start *start, int sock, pid_t pager)
{
	struct run_start own = *start;

	(void)prctl(PR_SET_NAME, "aquifer-broker");
	if (keep_descriptors(&own, sock, pager) || getppid() != pager ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0 ||
	    confine_thread(RUN_CAPS_BROKER))
		_exit(1);
	serve(&own);
	_exit(0);
}

/* ---- in the pager -------------------------------------------------------- */

int run_broker_start(const struct run_start *start, int *sock)
{
	pid_t pager = getpid(), pid;
	int pair[2], err = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	(void)fflush(NULL);
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		be_broker(start, pair[1], pager);
	}
	if (pid < 0)
		err = -errno;
	(void)close(pair[1]);
	if (err)
		(void)close(pair[0]);
	else
		*sock = pair[0];
	return err;
}

/* *fd: a descriptor to send, then the one that came, or -1. */
static int ask(int sock, struct question q, uint64_t *value, int *fd)
{
	struct answer a;
	unsigned count;
	int err = fds_send(sock, &q, sizeof(q), fd, *fd >= 0, 0);

	*fd = -1;
	while (!err) {
		err = fds_receive(sock, &a, sizeof(a), fd, 1, &count, 0);
		if (!err)
			break;
		err = err == -EINTR ? 0 : -EPIPE;
	}
	if (err)
		return err;
	*value = a.value;
	return a.err;
}

int run_broker_enable(int sock, int uffd)
{
	uint64_t none;

	return ask(sock, (struct question){.ask = ASK_ENABLE}, &none, &uffd);
}

/* A descriptor of a process, or -errno. */
static int ask_fd(int sock, enum ask what, pid_t pid)
{
	struct question q = {.ask = what, .pid = pid};
	uint64_t none;
	int fd = -1, err = ask(sock, q, &none, &fd);

	return err ? err : fd >= 0 ? fd : -EPROTO;
}

int run_broker_owner(int sock, pid_t pid)
{
	return ask_fd(sock, ASK_OWNER, pid);
}

int run_broker_smaps(int sock, pid_t pid)
{
	return ask_fd(sock, ASK_SMAPS, pid);
}

uint64_t run_broker_stack(int sock, pid_t pid)
{
	struct question q = {.ask = ASK_STACK, .pid = pid};
	uint64_t stack = 0;
	int fd = -1;

	return ask(sock, q, &stack, &fd) ? 0 : stack;
}

enum exe_kind run_broker_exe(int sock, pid_t pid)
{
	struct question q = {.ask = ASK_EXE, .pid = pid};
	uint64_t kind = 0;
	int fd = -1;

	return ask(sock, q, &kind, &fd) ? EXE_UNKNOWN : (enum exe_kind)kind;
}

void run_broker_kill(int sock, pid_t pid, int signal)
{
	struct question q = {.ask = ASK_KILL, .pid = pid, .signal = signal};
	uint64_t none;
	int fd = -1;

	(void)ask(sock, q, &none, &fd);
}

void run_broker_remove_place(int sock)
{
	uint64_t none;
	int fd = -1;

	(void)ask(sock, (struct question){.ask = ASK_REMOVE_PLACE}, &none, &fd);
}
