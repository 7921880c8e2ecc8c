/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the server's end, and cuts its files. */
#include "keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "coherence/lease.h"

enum {
	LOOK_MS = 100,
	PATIENCE_MS = 1000,
};

/* Between the time at which the server hides everything by itself and the end
 * of the lease. */
#define CUT_NS (COH_LEASE_NS - 300000000ull)

static bool is_overdue(const struct shd_keeper *k)
{
	uint64_t sent_ns;

	/* KEEP-1, pairs with shd_member_lease: who sees that nothing is hidden
	 * any more must not see the beat from before. */
	if (atomic_load_explicit(&k->is_hidden, memory_order_acquire))
		return false;
	sent_ns = atomic_load_explicit(&k->sent_ns, memory_order_relaxed);
	return sent_ns && clock_mono_ns() - sent_ns >= CUT_NS;
}

static void cut_all(struct shd_keeper *k)
{
	for (unsigned i = 0; i < SHD_KEEPER_FILES; i++) {
		int fd =
			atomic_load_explicit(&k->file[i], memory_order_relaxed);

		/* Nothing can be done if the kernel does not do it. */
		if (fd)
			(void)!ftruncate(fd - 1, 0);
	}
}

struct question {
	int64_t pid;
	uint64_t addr, serial;
};

struct words {
	uint64_t word[2], serial;
	int64_t err;
};

static void answer(const struct shd_keeper *k)
{
	struct question q;
	struct words w = {{0}, 0, 0};
	struct iovec to = {w.word, sizeof(w.word)}, from;

	if (read(k->ask[0], &q, sizeof(q)) != sizeof(q))
		return;
	w.serial = q.serial;
	from = (struct iovec){(void *)(uintptr_t)q.addr, sizeof(w.word)};
	if (process_vm_readv((pid_t)q.pid, &to, 1, &from, 1, 0) !=
	    (ssize_t)sizeof(w.word))
		w.err = errno ? -errno : -EFAULT;
	(void)!write(k->reply[1], &w, sizeof(w));
}

/* The other process may have stopped in the middle of any call of the library,
 * so there are none here but system calls. */
static void keep(struct shd_keeper *k, int server)
{
	struct pollfd p[2] = {{.fd = server, .events = POLLIN},
			      {.fd = k->ask[0], .events = POLLIN}};

	do {
		p[0].revents = p[1].revents = 0;
		(void)poll(p, 2, LOOK_MS);
		if (p[1].revents)
			answer(k);
		if (is_overdue(k))
			cut_all(k);
	} while (!p[0].revents);
	cut_all(k);
	_exit(0);
}

int shd_keeper_read(struct shd_keeper *k, pid_t pid, uint64_t addr,
		    uint64_t out[2])
{
	struct question q = {.pid = pid, .addr = addr, .serial = ++k->serial};
	struct pollfd p = {.fd = k->reply[0], .events = POLLIN};
	struct words w;

	if (write(k->ask[1], &q, sizeof(q)) != sizeof(q))
		return -EIO;
	/* A keeper that is killed answers nothing, and a late answer is that to
	 * an earlier question. */
	do {
		if (poll(&p, 1, PATIENCE_MS) != 1 ||
		    read(k->reply[0], &w, sizeof(w)) != sizeof(w))
			return -EIO;
	} while (w.serial != q.serial);
	out[0] = w.word[0];
	out[1] = w.word[1];
	return (int)w.err;
}

int shd_keeper_start(struct shd_keeper **out, pid_t *pid)
{
	struct shd_keeper *k = mmap(NULL, sizeof(*k), PROT_READ | PROT_WRITE,
				    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	sigset_t all, former;
	pid_t child;

	if (k == MAP_FAILED || self < 0 || pipe2(k->ask, O_CLOEXEC) != 0 ||
	    pipe2(k->reply, O_CLOEXEC) != 0)
		return error_set(-errno, "a keeper: %s", strerror(errno));
	/* What ends the server must not end the keeper first. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, &former);
	child = (pid_t)syscall(SYS_clone, CLONE_FILES | SIGCHLD, NULL, NULL,
			       NULL, NULL);
	if (child == 0) {
		(void)prctl(PR_SET_NAME, "aq-keeper");
		(void)setsid();
		keep(k, self);
	}
	(void)sigprocmask(SIG_SETMASK, &former, NULL);
	if (child < 0)
		return error_set(-errno, "a keeper: %s", strerror(errno));
	*pid = child;
	*out = k;
	return 0;
}

int shd_keeper_add(struct shd_keeper *k, int file)
{
	for (unsigned i = 0; i < SHD_KEEPER_FILES; i++) {
		if (atomic_load_explicit(&k->file[i], memory_order_relaxed))
			continue;
		atomic_store_explicit(&k->file[i], file + 1,
				      memory_order_relaxed);
		return 0;
	}
	return error_set(-ENOSPC, "a machine uses up to %d segments",
			 SHD_KEEPER_FILES);
}

void shd_keeper_remove(struct shd_keeper *k, int file)
{
	for (unsigned i = 0; i < SHD_KEEPER_FILES; i++)
		if (atomic_load_explicit(&k->file[i], memory_order_relaxed) ==
		    file + 1)
			atomic_store_explicit(&k->file[i], 0,
					      memory_order_relaxed);
}
