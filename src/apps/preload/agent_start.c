/* SPDX-License-Identifier: Apache-2.0 */
/* Starting the agent, in a thread of the program. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "preload.h"
#include "preload_raw.h"

enum {
	AGENT_STACK_BYTES = 16384,
	MAKER_STACK_BYTES = 4096,
	AGENT_TLS_BYTES = 4096, /* for instrumented code that looks at it */
	LOOK_NS = 20000000,	/* between looks at whether the agent lives */
};

/* A number that is nobody's, out of the upper quarter of those that there are
 * here (uid_map(5): "first outside count" in each line); UINT32_MAX: there is
 * no choice, and so none for the program. */
static uint32_t pick_id(const char *map)
{
	char text[512] = "0 0 4294967295\n";
	int fd = open(map, O_RDONLY | O_CLOEXEC);
	uint64_t first = 0, count = 0, random;
	uint32_t id;

	if (fd >= 0) {
		ssize_t n = read(fd, text, sizeof(text) - 1);

		if (n > 0)
			text[n] = '\0';
		(void)close(fd);
	}
	for (char *at = text, *end; *at; at = end) {
		uint64_t start = strtoull(at, &end, 10), n;

		(void)strtoull(end, &end, 10);
		n = strtoull(end, &end, 10);
		if (end == at)
			break;
		if (n > count) {
			first = start;
			count = n;
		}
	}
	if (count < 4 || getrandom(&random, sizeof(random), 0) < 0)
		return UINT32_MAX;
	id = (uint32_t)(first + count - 1 - random % (count / 4));
	return id == 65534 ? id - 1 : id; /* where strangers are shown */
}

/* It says what it is before it can be of use, unless it is killed first: the
 * program's own filter of system calls may do that. */
static int await_bare(struct preload *p)
{
	struct timespec look = {.tv_nsec = LOOK_NS};
	uint32_t bare;

	/* RUN-G1 */
	while (!(bare = atomic_load_explicit(&p->agent_is_bare,
					     memory_order_acquire))) {
		if (!atomic_load_explicit(&p->channel->agent_tid,
					  memory_order_relaxed))
			return -ECHILD;
		(void)raw(SYS_futex, &p->agent_is_bare, FUTEX_WAIT_PRIVATE, 0,
			  &look);
	}
	return bare == 1 ? 0 : -ENOSYS;
}

/* In between is a process that makes the agent and ends, so that the agent is
 * not our child. We do not run meanwhile (CLONE_VFORK), and nobody is told of
 * that child's end but us. */
static int make_agent(struct preload *p, uint8_t *stack_top)
{
	uint64_t all = ~0ull, old;
	long maker;

	/* The agent inherits the mask: all signals are the program's. */
	(void)raw(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, &all, &old, 8);
	maker = raw_clone(CLONE_VM | CLONE_FILES | CLONE_VFORK |
				  CLONE_UNTRACED | CLONE_SETTLS,
			  stack_top, NULL, p->agent_tls, preload_agent_make, p);
	if (maker > 0)
		(void)raw(SYS_wait4, maker, 0, __WALL);
	(void)raw(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, &old, 0, 8);
	if (maker < 0)
		return (int)maker;
	return p->agent_made < 0 ? (int)p->agent_made : 0;
}

int preload_agent_start(struct preload *p)
{
	size_t bytes = AGENT_STACK_BYTES + MAKER_STACK_BYTES + AGENT_TLS_BYTES;
	uint8_t *mem = preload_new(bytes);
	uint8_t *tls;
	int err;

	if (!mem)
		return -ENOMEM;
	tls = mem + AGENT_STACK_BYTES + MAKER_STACK_BYTES;
	p->agent_uid = pick_id("/proc/self/uid_map");
	p->agent_gid = pick_id("/proc/self/gid_map");
	p->agent_stack_top = mem + AGENT_STACK_BYTES;
	p->agent_tls = tls;
	p->agent_made = -ECHILD; /* until who makes it says otherwise */
	atomic_store_explicit(&p->agent_is_bare, 0, memory_order_relaxed);
	atomic_store_explicit(&p->channel->agent_tid, RUN_AGENT_COMES,
			      memory_order_relaxed);
	*(void **)(void *)tls = tls; /* what fs:0 has to be */
	*(void **)(void *)(tls + 16) = tls;
	err = make_agent(p, tls);
	if (err) {
		(void)preload_sys_munmap(mem, bytes);
		return err;
	}
	return await_bare(p);
}
