/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: a process that takes pages out of the program and puts them into
 * buffers, because only who has the program's memory for its own may do that.
 *
 * It shares that memory (CLONE_VM) and nothing else. So a program with one
 * thread has one: it may enter a user namespace, its last thread's end is its
 * end, and no debugger meets a thread that libc does not know. It is no child
 * of the program either, but of whoever adopts orphans here, mostly the
 * supervisor: the program, or what it executes next, would be told of its end.
 *
 * It has no thread-local storage of its own and so may call nothing of libc:
 * every instruction that it executes is in this file, agent_move.c,
 * agent_copy.c and agent_demote.c, which are built without stack protector.
 * agent_start.c starts it.
 *
 * The memory lives as long as somebody has it. So the agent ends when the pager
 * says that the process has ended or executed something else, and by itself
 * when both supervisor and pager are gone.
 *
 * A program that gives up rights does not reach the agent; but who then takes
 * the program over can write the agent's stack. So the agent must never have a
 * right that the program could give up. Before its first batch it leaves all
 * capabilities and groups, and becomes a user of its own, a random number that
 * nobody else has: not one of the well-known ones, whose processes could trace
 * it. Where it lacks the right to do that, so does the program. It needs no
 * rights for what it does. Its table of descriptors is its own and empty, but
 * for two files in /proc and the userfaultfd of agent_move.c.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

#include "agent_priv.h"
#include "preload_raw.h"

enum {
	AGENT_RUSH = 512, /* slices without a yield, among strangers */
	LONG_YIELD_NS = 500000,
	UNSHARE_FILES = 2, /* CLOSE_RANGE_UNSHARE */
	LOOK_SECONDS = 1,  /* between looks at whether anybody is there */
	SILENT_LOOKS = 3,  /* of the pager, with the supervisor gone */
};

struct core_set {
	uint64_t word[16];
};

static bool set_caps(struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};

	return raw(SYS_capset, &head, caps) == 0;
}

/* A change of user also changes who may look at the process as a whole: that is
 * the program's to decide, so it is put back. The program does not run until
 * we are done. */
static void give_up_rights(const struct preload *p)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[2];
	uint32_t change = 1u << CAP_SETUID | 1u << CAP_SETGID;
	long dumpable = raw(SYS_prctl, PR_GET_DUMPABLE, 0);
	long uid = p->agent_uid, gid = p->agent_gid;

	if (raw(SYS_capget, &head, caps) == 0) {
		caps[0].effective |= caps[0].permitted & change;
		(void)set_caps(caps);
	}
	(void)raw(SYS_setgroups);
	if (p->agent_gid != UINT32_MAX)
		(void)raw(SYS_setresgid, gid, gid, gid);
	if (p->agent_uid != UINT32_MAX)
		(void)raw(SYS_setresuid, uid, uid, uid);
	for (unsigned i = 0; i < 2; i++)
		caps[i].effective = caps[i].permitted = caps[i].inheritable = 0;
	(void)set_caps(caps);
	(void)raw(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
	if (dumpable == 1)
		(void)raw(SYS_prctl, PR_SET_DUMPABLE, 1);
}

/* A table of descriptors of its own: the program's would not be closed when the
 * program ends. Kernels that cannot do that (before 5.9) have no agent. */
static bool leave_files(void)
{
	return raw(SYS_close_range, 0, UINT32_MAX, UNSHARE_FILES) == 0;
}

static void own_files(struct agent *a)
{
	static const char mem[] = "/proc/self/mem";
	static const char status[] = "/proc/self/status";

	a->move_fd = -EBADF;
	a->mem_fd = raw(SYS_open, mem, O_RDONLY | O_CLOEXEC);
	a->status_fd = raw(SYS_open, status, O_RDONLY | O_CLOEXEC);
	if (a->p->channel->may_move)
		agent_move_open(a);
}

static int64_t agent_now_ns(void)
{
	struct timespec t = {0};

	(void)raw(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* On this core there may be somebody who answers faults. Among strangers it
 * takes a slice of each of them, while faults wait for these pages to leave:
 * then we are done sooner without. */
void agent_yield(struct agent *a)
{
	int64_t before_ns;

	if (a->rush) {
		a->rush--;
		return;
	}
	before_ns = agent_now_ns();
	(void)raw(SYS_sched_yield);
	if (agent_now_ns() - before_ns > LONG_YIELD_NS)
		a->rush = AGENT_RUSH;
}

static void obey(struct agent *a, struct run_batch *b)
{
	const struct preload *p = a->p;
	/* Read once: the pager is trusted, the program's own stray writes are
	 * not made worse. */
	uint32_t count = b->page_count, stretches = b->stretch_count;
	uint8_t *buffer =
		p->buffers + (uint64_t)b->buffer_page * RUN_PAGE_BYTES;
	struct run_outcome r = {.failed = 0};
	uint64_t all, left, guarded;

	if (b->to_node) {
		agent_demote(b);
		return;
	}
	if (count > RUN_BATCH_PAGES || stretches > RUN_BATCH_PAGES ||
	    ((uint64_t)b->buffer_page + count) * RUN_PAGE_BYTES >
		    p->buffer_bytes)
		return; /* all have failed, as the pager has it */
	left = all = agent_bits(0, count);
	guarded = b->guarded & all;
	if (a->move_fd >= 0)
		left = agent_move(a, buffer, b, count, &r);
	if (left & guarded)
		agent_copy(a, buffer, b, left & guarded,
			   (left & guarded) == all ? stretches : 0, &r);
	r.refused = left & ~guarded;
	r.failed |= r.refused;
	b->out = r;
}

static _Noreturn void leave(void)
{
	for (;;)
		(void)raw(SYS_exit_group);
}

/* Who is nobody's, and hears nothing of the pager, is of no use. */
static void look_around(struct agent *a, const struct run_channel *c)
{
	uint32_t heartbeats =
		atomic_load_explicit(&c->heartbeats, memory_order_relaxed);

	if (heartbeats != a->heartbeats || raw(SYS_getppid) == a->guardian)
		a->silent = 0;
	else if (++a->silent >= SILENT_LOOKS)
		leave();
	a->heartbeats = heartbeats;
}

static void agent_sleep(struct agent *a, struct run_channel *c, uint32_t seen)
{
	struct timespec look = {.tv_sec = LOOK_SECONDS};
	long err = 0;

	/* RUN-P2: the pager wishes first and then looks at is_asleep. */
	atomic_store_explicit(&c->is_asleep, 1, memory_order_seq_cst);
	if (atomic_load_explicit(&c->posted, memory_order_seq_cst) == seen &&
	    !atomic_load_explicit(&c->quits, memory_order_seq_cst))
		err = raw(SYS_futex, &c->posted, FUTEX_WAIT, seen, &look);
	atomic_store_explicit(&c->is_asleep, 0, memory_order_relaxed);
	if (err == -ETIMEDOUT)
		look_around(a, c);
}

/* Not on the core where the program faults and the pager answers: there it
 * would be in both their ways. But where all cores are busy, only there: the
 * program does not run meanwhile, so no other core has to forget its pages. */
static void go_to_core(const struct core_set *all, uint32_t hint)
{
	uint32_t core = (hint & ~RUN_HINT_HERE) - 1;
	struct core_set set = *all;
	uint64_t any = 0;

	if (core >= 64 * ARRAY_LEN(set.word))
		return;
	if (hint & RUN_HINT_HERE) {
		set = (struct core_set){{0}};
		set.word[core / 64] = 1ull << core % 64;
	} else {
		set.word[core / 64] &= ~(1ull << core % 64);
	}
	for (unsigned i = 0; i < ARRAY_LEN(set.word); i++)
		any |= set.word[i];
	if (any)
		(void)raw(SYS_sched_setaffinity, 0, sizeof(set), &set);
}

/* Who made us ends at once, so that somebody adopts us. */
static long await_guardian(const struct preload *p)
{
	long parent = raw(SYS_getppid);

	for (; parent == p->agent_maker; parent = raw(SYS_getppid))
		(void)raw(SYS_sched_yield);
	return parent;
}

/* Nothing of the program's is held: no directory, no name that others count. */
static void be_apart(void)
{
	static const char root[] = "/", name[] = RUN_AGENT_NAME;

	(void)raw(SYS_chdir, root);
	(void)raw(SYS_prctl, PR_SET_NAME, name);
}

static void obey_next(struct agent *a, struct run_channel *c,
		      const struct core_set *all, uint32_t *hint_seen,
		      uint32_t done)
{
	/* A hint: any value that was ever true will do. */
	uint32_t hint =
		atomic_load_explicit(&c->core_hint, memory_order_relaxed);

	if (hint != *hint_seen)
		go_to_core(all, hint);
	*hint_seen = hint;
	obey(a, &c->batch[done % RUN_BATCHES]);
	/* RUN-D1 */
	atomic_store_explicit(&c->done, done + 1, memory_order_release);
}

static void agent_main(void *arg)
{
	struct preload *p = arg;
	struct run_channel *c = p->channel;
	struct agent a = {.p = p,
			  .pid = raw(SYS_getpid),
			  .can_batch = agent_can_batch(),
			  .guardian = await_guardian(p)};
	uint32_t done = atomic_load_explicit(&c->done, memory_order_relaxed);
	uint32_t bare = leave_files() ? 1 : 2;
	struct core_set all = {{0}};
	uint32_t hint_seen = 0;

	be_apart();
	own_files(&a);
	give_up_rights(p);
	/* Not before: who is killed on the way here has had no batch. */
	atomic_store_explicit(&c->had_agent, 1, memory_order_relaxed);
	/* RUN-G1: who sees it never sees the agent with rights. */
	atomic_store_explicit(&p->agent_is_bare, bare, memory_order_release);
	(void)raw(SYS_futex, &p->agent_is_bare, FUTEX_WAKE_PRIVATE, 1);
	(void)raw(SYS_sched_getaffinity, 0, sizeof(all), &all);
	/* RUN-W1 */
	atomic_store_explicit(&c->way,
			      a.move_fd >= 0 ? RUN_WAY_MOVE : RUN_WAY_COPY,
			      memory_order_release);
	while (bare == 1 &&
	       !atomic_load_explicit(&c->quits, memory_order_relaxed)) {
		/* RUN-P1 */
		uint32_t posted =
			atomic_load_explicit(&c->posted, memory_order_acquire);

		if (posted == done)
			agent_sleep(&a, c, posted);
		else
			obey_next(&a, c, &all, &hint_seen, done++);
	}
	leave();
}

void preload_agent_make(void *arg)
{
	struct preload *p = arg;

	p->agent_maker = raw(SYS_getpid);
	p->agent_made = raw_clone(CLONE_VM | CLONE_FILES | CLONE_UNTRACED |
					  CLONE_SETTLS | CLONE_CHILD_SETTID |
					  CLONE_CHILD_CLEARTID | SIGCHLD,
				  p->agent_stack_top, &p->channel->agent_tid,
				  p->agent_tls, agent_main, p);
	leave();
}
