/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the processes of a batch, collects what they report. */
#include "batch.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Before the result's bytes in the stream. */
struct head {
	uint64_t seed;
	int64_t err;
};

struct job {
	pid_t pid;
	int fd;
	uint64_t seed; /* the one it is at */
};

/* Writes, or reads: true when all of it went; false at the end of the stream.
 */
static bool move_all(int fd, void *data, size_t len, bool writes)
{
	uint8_t *p = data;

	while (len) {
		ssize_t n = writes ? write(fd, p, len) : read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static void __attribute__((noreturn))
child(const struct sim_batch *b, unsigned index, int fd)
{
	void *result = malloc(b->result_bytes);

	for (uint64_t seed = b->from + index; result && seed <= b->to;
	     seed += b->jobs) {
		struct head h = {.seed = seed};

		memset(result, 0, b->result_bytes);
		h.err = b->run(b->ctx, seed, result);
		if (!move_all(fd, &h, sizeof(h), true) ||
		    !move_all(fd, result, b->result_bytes, true))
			_exit(1);
	}
	_exit(result ? 0 : 1);
}

static int start(const struct sim_batch *b, unsigned index, struct job *jobs)
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

static void violated(struct sim_batch_sum *sum, uint64_t seed,
		     const char *words)
{
	if (!sum->violated || seed < sum->first_seed) {
		sum->first_seed = seed;
		snprintf(sum->first, sizeof(sum->first), "%s", words);
	}
	sum->violated++;
}

static void take_report(const struct sim_batch *b, const struct head *h,
			const void *result, struct sim_batch_sum *sum)
{
	char words[64];
	const char *found = b->add(b->ctx, h->seed, result);

	sum->runs++;
	if (h->err) {
		snprintf(words, sizeof(words),
			 "the run could not be made: error %" PRId64, -h->err);
		violated(sum, h->seed, words);
	} else if (found) {
		violated(sum, h->seed, found);
	}
}

static void died(struct sim_batch_sum *sum, uint64_t seed, int status)
{
	char words[64];

	snprintf(words, sizeof(words), "the process died: %s %d",
		 WIFSIGNALED(status) ? "signal" : "exit code",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	violated(sum, seed, words);
}

static void collect(const struct sim_batch *b, struct job *jobs, unsigned count,
		    void *result, struct sim_batch_sum *sum)
{
	struct pollfd fds[SIM_BATCH_JOBS_MAX];
	unsigned open = count;

	for (unsigned i = 0; i < count; i++)
		fds[i] = (struct pollfd){.fd = jobs[i].fd, .events = POLLIN};
	while (open) {
		if (poll(fds, count, -1) < 0 && errno != EINTR)
			return;
		for (unsigned i = 0; i < count; i++) {
			struct head h;

			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			if (move_all(fds[i].fd, &h, sizeof(h), false) &&
			    move_all(fds[i].fd, result, b->result_bytes,
				     false)) {
				take_report(b, &h, result, sum);
				jobs[i].seed = h.seed + b->jobs;
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

static int run_one(const struct sim_batch *b, struct sim_batch_sum *sum)
{
	void *result = calloc(1, b->result_bytes);
	const char *words;
	int err = result ? b->run(b->ctx, b->from, result) : -ENOMEM;

	*sum = (struct sim_batch_sum){.runs = 1, .first_seed = b->from};
	words = err ? NULL : b->add(b->ctx, b->from, result);
	if (words) {
		sum->violated = 1;
		snprintf(sum->first, sizeof(sum->first), "%s", words);
	}
	free(result);
	return err;
}

int sim_batch_run(const struct sim_batch *b, struct sim_batch_sum *sum)
{
	struct job jobs[SIM_BATCH_JOBS_MAX];
	unsigned count = 0;
	void *result;
	int err = 0;

	if (b->one)
		return run_one(b, sum);
	memset(sum, 0, sizeof(*sum));
	if (!b->jobs || b->jobs > SIM_BATCH_JOBS_MAX || b->to < b->from)
		return -EINVAL;
	result = malloc(b->result_bytes);
	if (!result)
		return -ENOMEM;
	for (; !err && count < b->jobs; count += !err)
		err = start(b, count, jobs);
	collect(b, jobs, count, result, sum);
	for (unsigned i = 0; i < count; i++) {
		int status = 0;

		close(jobs[i].fd);
		waitpid(jobs[i].pid, &status, 0);
		if (status && !(b->stop_at_first && sum->violated))
			died(sum, jobs[i].seed, status);
	}
	free(result);
	return err;
}

unsigned sim_batch_jobs(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return cpus > 0 ? (unsigned)u64_min((uint64_t)cpus, SIM_BATCH_JOBS_MAX)
			: 1;
}

bool sim_batch_parse_u64(const char *text, uint64_t *out)
{
	char *end;

	errno = 0;
	*out = strtoull(text, &end, 0);
	return *text && *text != '-' && !errno && *end == '\0';
}

bool sim_batch_parse_range(const char *text, uint64_t *from, uint64_t *to)
{
	const char *dots = strstr(text, "..");
	char first[32];

	*from = 1;
	if (!dots)
		return sim_batch_parse_u64(text, to) && *to >= 1;
	if ((size_t)(dots - text) >= sizeof(first))
		return false;
	memcpy(first, text, (size_t)(dots - text));
	first[dots - text] = '\0';
	return sim_batch_parse_u64(first, from) &&
	       sim_batch_parse_u64(dots + 2, to) && *from <= *to;
}
