/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_workers.h"

#include <aquifer/aquifer.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "place.h"
#include "shield.h"

/* Of one task, over the pipes. */
struct ask {
	elastic_task_fn fn;
	unsigned task;
};
struct outcome {
	int err;
	char why[200];
};

/* ---- in a worker --------------------------------------------------------- */

static void work(void *shared, int in, int out)
{
	struct elastic_work w = {.shared = shared};
	struct ask a;

	while (read(in, &a, sizeof(a)) == sizeof(a)) {
		struct outcome o = {.err = w.rack ? 0 : place_rack(&w.rack)};

		w.task = a.task;
		if (!o.err && a.fn)
			o.err = a.fn(&w);
		if (o.err)
			(void)snprintf(o.why, sizeof(o.why), "%s",
				       error_last()[0] ? error_last()
						       : strerror(-o.err));
		if (write(out, &o, sizeof(o)) != sizeof(o))
			break;
	}
	_exit(0);
}

/* ---- in the benchmark ---------------------------------------------------- */

static int start_one(struct elastic_workers *w, unsigned i)
{
	struct elastic_worker *k = &w->worker[i];
	int to[2], from[2];

	if (pipe(to) < 0 || pipe(from) < 0)
		return -errno;
	k->pid = fork();
	if (k->pid == 0) {
		/* The ends of others, so that each sees when we are gone. */
		for (unsigned n = 0; n < i; n++) {
			(void)close(w->worker[n].to);
			(void)close(w->worker[n].from);
		}
		(void)close(to[1]);
		(void)close(from[0]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)shield_pin((int)i % 2 ? SHIELD_CPU_SERVER
					    : SHIELD_CPU_CLIENT);
		(void)shield_enter_nice();
		work(w->shared, to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	k->to = to[1];
	k->from = from[0];
	return k->pid < 0 ? -errno : 0;
}

int elastic_workers_start(struct elastic_workers *w)
{
	int err = 0;

	*w = (struct elastic_workers){0};
	w->shared = mmap(NULL, ELASTIC_WORK_BYTES, PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w->shared == MAP_FAILED)
		err = -errno;
	for (unsigned i = 0; i < ELASTIC_WORKERS && !err; i++)
		err = start_one(w, i);
	return err ? error_set(err, "no process for tasks: %s", strerror(-err))
		   : 0;
}

void elastic_workers_end(struct elastic_workers *w)
{
	for (unsigned i = 0; i < ELASTIC_WORKERS; i++) {
		struct elastic_worker *k = &w->worker[i];

		if (k->pid <= 0)
			continue;
		(void)close(k->to);
		(void)close(k->from);
		if (kill(k->pid, SIGKILL) == 0)
			(void)waitpid(k->pid, NULL, 0);
	}
	if (w->shared && w->shared != MAP_FAILED)
		(void)munmap(w->shared, ELASTIC_WORK_BYTES);
	*w = (struct elastic_workers){0};
}

static int give(const struct elastic_worker *k, elastic_task_fn fn,
		unsigned task)
{
	struct ask a;

	memset(&a, 0, sizeof(a));
	a.fn = fn;
	a.task = task;
	return write(k->to, &a, sizeof(a)) == sizeof(a)
		       ? 0
		       : error_set(-EIO, "a process for tasks is gone");
}

static int take(const struct elastic_worker *k)
{
	struct outcome o;

	if (read(k->from, &o, sizeof(o)) != sizeof(o))
		return error_set(-EIO, "a process for tasks is gone");
	return o.err ? error_set(o.err, "%.*s", (int)sizeof(o.why) - 1, o.why)
		     : 0;
}

/* Waits for those that are busy, and gives the next task to each. */
static int run_some(struct elastic_workers *w, elastic_task_fn fn,
		    unsigned count, unsigned at_once)
{
	struct pollfd fd[ELASTIC_WORKERS];
	unsigned next = 0, busy = 0;
	int err = 0, one;

	for (unsigned i = 0; i < at_once; i++)
		fd[i] = (struct pollfd){.fd = -1, .events = POLLIN};
	for (; next < at_once && next < count && !err; next++, busy++) {
		err = give(&w->worker[next], fn, next);
		fd[next].fd = w->worker[next].from;
	}
	while (busy && poll(fd, at_once, -1) > 0)
		for (unsigned i = 0; i < at_once; i++) {
			if (fd[i].fd < 0 || !fd[i].revents)
				continue;
			one = take(&w->worker[i]);
			err = err ? err : one;
			if (!err && next < count) {
				err = give(&w->worker[i], fn, next++);
			} else {
				fd[i].fd = -1;
				busy--;
			}
		}
	return err;
}

int elastic_workers_run(struct elastic_workers *w, elastic_task_fn fn,
			unsigned count, unsigned at_once)
{
	ASSERT(at_once && at_once <= ELASTIC_WORKERS);
	return run_some(w, fn, count, at_once);
}
