/* SPDX-License-Identifier: Apache-2.0 */
/* Starts, drives and ends the processes of a trio. */
#include "trio.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ticks.h"

enum {
	SETUP_MS = 10000,
	SLACK_MS = 5000,
	NAP_NS = 1000000,
	END_MS = 2000,
};

void trio_nap(void)
{
	const struct timespec ts = {.tv_nsec = NAP_NS};

	nanosleep(&ts, NULL);
}

bool trio_awake(const struct trio *t)
{
	if (atomic_load_explicit(&t->page->awake, memory_order_relaxed))
		return true;
	trio_nap();
	return false;
}

void trio_ready(struct trio *t)
{
	atomic_fetch_add_explicit(&t->page->ready, 1, memory_order_release);
}

int trio_fail(struct trio *t, int rc, const char *what)
{
	snprintf(t->page->why, sizeof(t->page->why), "%s: %s", what,
		 strerror(-rc));
	atomic_store_explicit(&t->page->failed, 1, memory_order_release);
	return rc;
}

/* ---- the processes ------------------------------------------------------- */

static int client(struct trio *t)
{
	struct trio_page *p = t->page;
	unsigned done = 0;
	int rc = t->ops->setup ? t->ops->setup(t) : 0;

	if (rc < 0)
		return rc;
	trio_ready(t);
	while (!trio_quits(t)) {
		unsigned round =
			atomic_load_explicit(&p->round, memory_order_acquire);

		if (round == done) {
			trio_nap();
			continue;
		}
		/* The first tenth warms up. */
		rc = t->ops->measure(t, p->window_ns / 10, t->depth,
				     &p->result);
		if (rc == 0)
			rc = t->ops->measure(t, p->window_ns, t->depth,
					     &p->result);
		if (rc < 0)
			return rc;
		done = round;
		atomic_store_explicit(&p->done, done, memory_order_release);
	}
	return 0;
}

static pid_t spawn(struct trio *t, int (*run)(struct trio *t))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	/* Ends with the conductor, however that ends. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (t->ops->uses_switch) {
		char port[64];

		snprintf(port, sizeof(port), "switch:%s", t->switch_name);
		(void)setenv("AQUIFER_NIC_PORT", port, 1);
	}
	(void)setenv("AQUIFER_RACK_NAME", t->rack, 1);
	if (run(t) < 0)
		atomic_store_explicit(&t->page->failed, 1,
				      memory_order_release);
	_exit(0);
}

/* ---- the conductor ------------------------------------------------------- */

static bool await(struct trio *t, const atomic_uint *v, unsigned want,
		  unsigned ms)
{
	uint64_t end = bench_now_ns() + ms * 1000000ull;

	while (bench_now_ns() < end) {
		if (atomic_load_explicit(v, memory_order_acquire) == want)
			return true;
		if (atomic_load_explicit(&t->page->failed,
					 memory_order_acquire))
			return false;
		trio_nap();
	}
	if (!t->page->why[0])
		snprintf(t->page->why, sizeof(t->page->why),
			 "no answer in %u ms", ms);
	return false;
}

int trio_start(struct trio *t, const struct trio_ops *ops, uint32_t depth,
	       const char *rack, const char *switch_name)
{
	size_t bytes = sizeof(struct trio_page) + TRIO_SHARED_BYTES;
	int (*const run[3])(struct trio *) = {client, ops->forward, ops->serve};
	unsigned count = 0;
	void *m;

	*t = (struct trio){.ops = ops,
			   .depth = depth,
			   .rack = rack,
			   .switch_name = switch_name,
			   .ticks_per_ns = bench_ticks_per_ns()};
	m = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (m == MAP_FAILED)
		return -errno;
	t->page = m;
	t->shared = (uint8_t *)m + sizeof(struct trio_page);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, t->peer_fd) < 0)
		return -errno;
	for (unsigned i = 0; i < 3; i++) {
		if (!run[i])
			continue;
		t->pid[i] = spawn(t, run[i]);
		if (t->pid[i] < 0)
			return -errno;
		count++;
	}
	return await(t, &t->page->ready, count, SETUP_MS) ? 0 : -EIO;
}

int trio_round(struct trio *t, uint64_t window_ns, struct trio_result *out)
{
	struct trio_page *p = t->page;
	unsigned round =
		atomic_load_explicit(&p->round, memory_order_relaxed) + 1;
	bool ok;

	p->window_ns = window_ns;
	atomic_store_explicit(&p->awake, 1, memory_order_release);
	atomic_store_explicit(&p->round, round, memory_order_release);
	ok = await(t, &p->done, round,
		   SLACK_MS + (unsigned)(2 * window_ns / 1000000));
	atomic_store_explicit(&p->awake, 0, memory_order_release);
	if (!ok)
		return -EIO;
	*out = p->result;
	return 0;
}

static void end(pid_t pid)
{
	for (unsigned i = 0; i < END_MS; i++) {
		if (waitpid(pid, NULL, WNOHANG) != 0)
			return;
		trio_nap();
	}
	kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

void trio_stop(struct trio *t)
{
	if (!t->page)
		return;
	atomic_store_explicit(&t->page->quit, 1, memory_order_release);
	for (unsigned i = 0; i < 3; i++)
		if (t->pid[i] > 0)
			end(t->pid[i]);
	close(t->peer_fd[0]);
	close(t->peer_fd[1]);
	(void)munmap(t->page, sizeof(struct trio_page) + TRIO_SHARED_BYTES);
	t->page = NULL;
}
