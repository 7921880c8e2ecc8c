/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at the processes of a run. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "broker.h"
#include "exe.h"
#include "near.h"
#include "pager_priv.h"
#include "proc.h"

enum {
	LOOK_MS = 200,
	COST_PART = 50,	 /* of the time, at most one part */
	TASKS_MAX = 512, /* faults wait meanwhile */
	DEPTH_MAX = 64,
	STRICT_BYTES = 16 << 20,
};

static const struct space *space_of(const struct pager *p, pid_t pid)
{
	for (const struct space *s = p->spaces; s; s = s->next)
		if (s->pid == pid && !s->is_dead)
			return s;
	return NULL;
}

/* Of /proc/PID/status; 0 where there is no such line. */
static uint64_t read_bytes(pid_t pid, const char *key)
{
	unsigned long long kib = 0;
	size_t len = strlen(key);
	FILE *f = run_proc_open("%d/status", (int)pid);
	char line[128];

	if (!f)
		return 0;
	while (!kib && fgets(line, sizeof(line), f))
		if (strncmp(line, key, len) == 0)
			kib = strtoull(line + len, NULL, 10);
	(void)fclose(f);
	return (uint64_t)kib << 10;
}

static bool read_smaps(const struct pager *p, pid_t pid, struct near_count *c)
{
	int fd = run_broker_smaps(p->broker, pid);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char line[512];

	if (!f) {
		if (fd >= 0)
			(void)close(fd); /* only read */
		return false;
	}
	while (fgets(line, sizeof(line), f))
		near_read_line(c, line);
	(void)fclose(f);
	return true;
}

/* Why a process is not attached: its file says it, or nobody knows. */
static const char *why_unattached(const struct pager *p, pid_t pid)
{
	const char *why = exe_why(run_broker_exe(p->broker, pid));

	return why ? why : near_why(NEAR_UNATTACHED);
}

static void note(struct pager *p, pid_t pid, uint64_t bytes, const char *why)
{
	struct run_near *near = &p->shared->near;
	char name[20];

	if (bytes <= near->bytes)
		return;
	if (!run_proc_name(pid, name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "?");
	near_clean(name);
	near->bytes = bytes;
	(void)snprintf(near->text, sizeof(near->text),
		       "of '%s' (process %d) was not far, because %s", name,
		       (int)pid, why);
}

/* Than what is known already, and by so much that it is worth a look. */
static bool is_more(const struct pager *p, uint64_t bytes)
{
	return near_matters(bytes, 0) &&
	       bytes > p->shared->near.bytes + p->shared->near.bytes / 32;
}

static void look_attached(struct pager *p, const struct space *s)
{
	uint64_t far = s->resident_count << RUN_PAGE_SHIFT;
	uint64_t all = read_bytes(s->pid, "RssAnon:");
	struct near_count c = {0};

	/* The kernel's sum is not exact, and smaps takes long. */
	if (all < far || !is_more(p, all - far))
		return;
	if (read_smaps(p, s->pid, &c))
		note(p, s->pid, near_total(&c), near_why(near_main_kind(&c)));
}

static void look_unattached(struct pager *p, pid_t pid)
{
	uint64_t bytes = read_bytes(pid, "RssAnon:");
	struct near_count c = {0};
	const char *why;

	if (!near_matters(bytes, 0) ||
	    (!is_more(p, bytes) && !p->options.is_strict) ||
	    !read_smaps(p, pid, &c))
		return;
	/* It has an attached one's memory: a thread of its that is a process,
	 * or a child until it calls exec. */
	if (c.has_far)
		return;
	bytes = near_total(&c);
	why = why_unattached(p, pid);
	note(p, pid, bytes, why);
	if (!p->options.is_strict || bytes <= STRICT_BYTES)
		return;
	(void)fprintf(stderr,
		      "aquifer: run: --strict: process %d has %" PRIu64
		      "M of local memory that is not bounded, because %s; it "
		      "is killed\n",
		      (int)pid, bytes >> 20, why);
	run_broker_kill(p->broker, pid, SIGKILL);
}

static void look_below(struct pager *p, unsigned *tasks, pid_t pid,
		       unsigned depth);

static void look_children(struct pager *p, unsigned *tasks, pid_t pid,
			  const char *tid, unsigned depth)
{
	FILE *f = run_proc_open("%d/task/%.16s/children", (int)pid, tid);
	int child;

	if (!f)
		return;
	while (fscanf(f, "%d", &child) == 1)
		look_below(p, tasks, child, depth + 1);
	(void)fclose(f);
}

/* The process itself and all that it and its threads have started. */
static void look_below(struct pager *p, unsigned *tasks, pid_t pid,
		       unsigned depth)
{
	const struct space *s = space_of(p, pid);
	const struct dirent *e;
	char path[64];
	DIR *dir;

	if (pid == p->self || depth > DEPTH_MAX)
		return;
	if (s)
		look_attached(p, s);
	else if (pid != p->start->supervisor)
		look_unattached(p, pid);
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && *tasks < TASKS_MAX && (e = readdir(dir)) != NULL) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(*tasks)++;
		look_children(p, tasks, pid, e->d_name, depth);
	}
	if (dir)
		(void)closedir(dir);
}

void run_near_look(struct pager *p, uint64_t now_ns)
{
	unsigned tasks = 0;
	uint64_t took_ns;

	if (now_ns < p->near_ns)
		return;
	/* Of this thread: while others run, it costs nothing. */
	took_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	look_below(p, &tasks, p->start->supervisor, 0);
	took_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - took_ns;
	p->near_ns =
		now_ns + u64_max(LOOK_MS * 1000000ull, COST_PART * took_ns);
}
