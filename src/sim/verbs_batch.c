/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many seeds in several processes: a run sets the process's verbs provider, so
 * runs beside each other need processes of their own. A run that crashes takes
 * only its process along, and the seed is known.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_cmd.h"

enum {
	JOBS_MAX = 64,
};

struct report {
	uint64_t seed;
	int64_t err;
	struct sim_verbs_result res;
};

struct job {
	pid_t pid;
	int fd;
	uint64_t seed; /* the one it is at */
};

static bool write_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* True when a whole report came; false at the end of the stream. */
static bool read_all(int fd, void *data, size_t len)
{
	uint8_t *p = data;

	while (len) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static void child(const struct sim_verbs_batch *b, unsigned index, int fd)
{
	static struct report rep;

	for (uint64_t seed = b->from + index; seed <= b->to; seed += b->jobs) {
		struct sim_verbs_options opt = {
			.seed = seed, .bug = b->bug, .scale = b->scale};

		rep.seed = seed;
		rep.err = sim_verbs_run(&opt, &rep.res);
		if (!write_all(fd, &rep, sizeof(rep)))
			_exit(1);
	}
	_exit(0);
}

static int start(const struct sim_verbs_batch *b, unsigned index,
		 struct job *jobs)
{
	int fds[2];
	pid_t pid;

	if (pipe(fds))
		return -errno;
	fflush(NULL);
	pid = fork();
	if (pid < 0) {
		int err = -errno;

		close(fds[0]);
		close(fds[1]);
		return err;
	}
	if (pid == 0) {
		close(fds[0]);
		for (unsigned i = 0; i < index; i++)
			close(jobs[i].fd);
		child(b, index, fds[1]);
	}
	close(fds[1]);
	jobs[index] = (struct job){pid, fds[0], b->from + index};
	return 0;
}

static void add_counts(struct sim_verbs_counts *sum,
		       const struct sim_verbs_counts *c)
{
#define ADD(name, help) sum->name += c->name;
	SIM_VERBS_COUNTS(ADD)
#undef ADD
}

static void add_report(struct sim_verbs_sum *sum, const struct report *rep)
{
	const struct sim_verbs_result *res = &rep->res;
	const struct sim_verbs_counts *c = &res->counts;

	sum->runs++;
	add_counts(&sum->counts, c);
	/* Reports come in any order; the sum must not depend on it. */
	sum->hash += res->hash * (2 * rep->seed + 1);
	if (!res->violations &&
	    (!c->lost || !c->duplicated || !c->reordered || !c->corrupted))
		sum->missing_kind++;
	if (!res->violations && !rep->err)
		return;
	if (!sum->violated || rep->seed < sum->first_seed) {
		sum->first_seed = rep->seed;
		if (rep->err)
			snprintf(sum->first, sizeof(sum->first),
				 "the run could not be made: error %" PRId64,
				 -rep->err);
		else
			memcpy(sum->first, res->first, sizeof(sum->first));
	}
	sum->violated++;
}

static void died(struct sim_verbs_sum *sum, uint64_t seed, int status)
{
	if (!sum->violated || seed < sum->first_seed) {
		sum->first_seed = seed;
		snprintf(sum->first, sizeof(sum->first),
			 "the process died: %s %d",
			 WIFSIGNALED(status) ? "signal" : "exit code",
			 WIFSIGNALED(status) ? WTERMSIG(status)
					     : WEXITSTATUS(status));
	}
	sum->violated++;
}

static void collect(const struct sim_verbs_batch *b, struct job *jobs,
		    unsigned count, struct sim_verbs_sum *sum)
{
	static struct report rep;
	struct pollfd fds[JOBS_MAX];
	unsigned open = count;

	for (unsigned i = 0; i < count; i++)
		fds[i] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
	while (open) {
		if (poll(fds, count, -1) < 0 && errno != EINTR)
			return;
		for (unsigned i = 0; i < count; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			if (read_all(fds[i].fd, &rep, sizeof(rep))) {
				add_report(sum, &rep);
				jobs[i].seed = rep.seed + b->jobs;
				if (!b->stop_at_first || !sum->violated)
					continue;
				kill(jobs[i].pid, SIGKILL);
			}
			fds[i].fd = -1;
			open--;
		}
		if (b->stop_at_first && sum->violated) {
			for (unsigned i = 0; i < count; i++)
				kill(jobs[i].pid, SIGKILL);
		}
	}
}

int sim_verbs_run_batch(const struct sim_verbs_batch *batch,
			struct sim_verbs_sum *sum)
{
	struct sim_verbs_batch b = *batch;
	struct job jobs[JOBS_MAX];
	unsigned count = 0;
	int err = 0;

	memset(sum, 0, sizeof(*sum));
	if (!b.jobs || b.jobs > JOBS_MAX || b.to < b.from)
		return -EINVAL;
	for (; !err && count < b.jobs; count += !err)
		err = start(&b, count, jobs);
	collect(&b, jobs, count, sum);
	for (unsigned i = 0; i < count; i++) {
		int status = 0;

		close(jobs[i].fd);
		waitpid(jobs[i].pid, &status, 0);
		if (status && !(b.stop_at_first && sum->violated))
			died(sum, jobs[i].seed, status);
	}
	return err;
}
