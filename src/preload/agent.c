/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent: a thread that copies pages to the trays and drops them, because
 * only a thread of the process itself may drop its pages.
 *
 * It is made with clone, not pthread_create: libc does not know it, so a
 * program with one thread stays one for libc, and exit, exec and fork treat it
 * as the kernel does (it ends, it ends, it is not copied). It has no
 * thread-local storage of its own and so may call nothing of libc: every
 * instruction that it executes is in this file. The file is built without stack
 * protector.
 *
 * A program that gives up rights does so by libc, which does not reach the
 * agent; but who then takes the program over can write the agent's stack. So
 * the agent must never have a right that the program could give up. Before its
 * first batch it leaves all capabilities and groups, and becomes a user of its
 * own, a random number that nobody else has: not one of the well-known ones,
 * whose processes could trace it. Where it lacks the right to do that, so does
 * the program. It needs no rights for what it does: its own process's memory is
 * open to every thread. Its table of descriptors is its own and empty, but for
 * the process's memory file.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "preload.h"

enum {
	AGENT_STACK_BYTES = 16384,
	AGENT_SLICE = 8,	/* pages, some 6 us */
	SELF_PIDFD = -10000,	/* newer than Debian's headers */
	AGENT_TLS_BYTES = 4096, /* for instrumented code that looks at it */
	UNSHARE_FILES = 2,	/* CLOSE_RANGE_UNSHARE */
};

struct core_set {
	uint64_t word[16];
};

static long raw6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ __volatile__("syscall"
			     : "=a"(ret)
			     : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10),
			       "r"(r8), "r"(r9)
			     : "rcx", "r11", "memory");
	return ret;
}

/* What the agent has of its own. */
struct agent {
	struct preload *p;
	long pid;
	long mem_fd;	/* the memory file; -errno: none */
	bool can_batch; /* process_madvise takes what we give it */
};

static bool set_caps(struct __user_cap_data_struct caps[2])
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3};

	return raw6(SYS_capset, (long)&head, (long)caps, 0, 0, 0, 0) == 0;
}

static long agent_prctl(long what, long value)
{
	return raw6(SYS_prctl, what, value, 0, 0, 0, 0);
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
	long dumpable = agent_prctl(PR_GET_DUMPABLE, 0);
	long uid = p->agent_uid, gid = p->agent_gid;

	if (raw6(SYS_capget, (long)&head, (long)caps, 0, 0, 0, 0) == 0) {
		caps[0].effective |= caps[0].permitted & change;
		(void)set_caps(caps);
	}
	(void)raw6(SYS_setgroups, 0, 0, 0, 0, 0, 0);
	if (p->agent_gid != UINT32_MAX)
		(void)raw6(SYS_setresgid, gid, gid, gid, 0, 0, 0);
	if (p->agent_uid != UINT32_MAX)
		(void)raw6(SYS_setresuid, uid, uid, uid, 0, 0, 0);
	for (unsigned i = 0; i < 2; i++)
		caps[i].effective = caps[i].permitted = caps[i].inheritable = 0;
	(void)set_caps(caps);
	(void)agent_prctl(PR_SET_NO_NEW_PRIVS, 1);
	if (dumpable == 1)
		(void)agent_prctl(PR_SET_DUMPABLE, 1);
}

/* Older kernels cannot part with descriptors without having them first; the
 * program could then see the file come and go, so there is none. */
static long own_mem_file(void)
{
	static const char path[] = "/proc/self/mem";

	if (raw6(SYS_close_range, 0, UINT32_MAX, UNSHARE_FILES, 0, 0, 0) != 0)
		return -1;
	return raw6(SYS_open, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0, 0);
}

/* What the program may not read, its memory file gives all the same. */
static uint64_t copy_forced(const struct agent *a, uint8_t *to,
			    const struct run_batch *b, uint32_t first,
			    uint32_t n)
{
	uint64_t failed = 0;

	for (uint32_t i = first; i < first + n; i++)
		if (a->mem_fd < 0 ||
		    raw6(SYS_pread64, a->mem_fd,
			 (long)to + i * (long)RUN_PAGE_BYTES, RUN_PAGE_BYTES,
			 (long)b->page[i], 0, 0) != RUN_PAGE_BYTES)
			failed |= 1ull << i;
	return failed;
}

/* By system call: a page that the program protected is an error here and not
 * the program's death. */
static bool copy_some(long pid, uint8_t *to, const struct run_batch *b,
		      uint32_t first, uint32_t n)
{
	struct iovec remote[AGENT_SLICE];
	struct iovec local = {to + (size_t)first * RUN_PAGE_BYTES,
			      (size_t)n * RUN_PAGE_BYTES};

	for (uint32_t i = 0; i < n; i++) {
		remote[i].iov_base = (void *)(uintptr_t)b->page[first + i];
		remote[i].iov_len = RUN_PAGE_BYTES;
	}
	return raw6(SYS_process_vm_readv, pid, (long)&local, 1, (long)remote,
		    (long)n, 0) == (long)local.iov_len;
}

static bool is_zero(const uint8_t *bytes)
{
	const uint64_t *w = (const uint64_t *)(const void *)bytes;
	uint64_t any = w[0];

	/* The first word decides for almost every page that has something. */
	for (unsigned i = 1; i < RUN_PAGE_BYTES / 8 && !any; i++)
		any = w[i];
	return !any;
}

static uint64_t look_at(const uint8_t *bytes, struct run_batch *b,
			uint32_t first, uint32_t n)
{
	uint64_t zero = 0;

	bytes += (size_t)first * RUN_PAGE_BYTES;
	for (uint32_t i = first; i < first + n; i++, bytes += RUN_PAGE_BYTES) {
		XXH128_hash_t h;

		if (is_zero(bytes)) {
			zero |= 1ull << i;
			continue;
		}
		h = XXH3_128bits(bytes, RUN_PAGE_BYTES);
		b->hash[i] = (struct run_hash){{h.low64, h.high64}};
	}
	return zero;
}

/* Copies the pages and looks at them, a few at a time: on this core there may
 * be somebody who answers faults. */
static uint64_t copy_pages(const struct agent *a, uint8_t *to,
			   struct run_batch *b, uint32_t count)
{
	uint64_t zero = 0, failed = 0;

	for (uint32_t i = 0; i < count; i += AGENT_SLICE) {
		uint32_t n = count - i < AGENT_SLICE ? count - i : AGENT_SLICE;

		if (i)
			(void)raw6(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
		if (!copy_some(a->pid, to, b, i, n))
			failed |= copy_forced(a, to, b, i, n);
		zero |= look_at(to, b, i, n);
	}
	b->zero = zero;
	return failed;
}

static bool drop(uint64_t start, uint64_t bytes)
{
	return raw6(SYS_madvise, (long)start, (long)bytes, MADV_DONTNEED, 0, 0,
		    0) == 0;
}

/* One call and one flush of the other cores for all stretches, where the kernel
 * lets a process advise itself that way (6.15); *known: whether it does. */
static bool drop_all(const struct run_batch *b, uint32_t stretches, bool *known)
{
	struct iovec iov[RUN_BATCH_PAGES];
	uint64_t bytes = 0;

	if (stretches < 2 || !*known)
		return false;
	for (uint32_t i = 0; i < stretches; i++) {
		iov[i].iov_base = (void *)(uintptr_t)b->stretch[i].start;
		iov[i].iov_len = b->stretch[i].bytes;
		bytes += b->stretch[i].bytes;
	}
	*known = raw6(SYS_process_madvise, SELF_PIDFD, (long)iov,
		      (long)stretches, MADV_DONTNEED, 0, 0) == (long)bytes;
	return *known;
}

static void obey(struct agent *a, struct run_batch *b)
{
	const struct preload *p = a->p;
	/* Read once: the pager is trusted, the program's own stray writes are
	 * not made worse. */
	uint32_t count = b->page_count, stretches = b->stretch_count;
	uint8_t *to = p->trays + (uint64_t)b->tray_page * RUN_PAGE_BYTES;
	uint64_t failed;
	uint32_t at = 0;

	if (count > RUN_BATCH_PAGES || stretches > RUN_BATCH_PAGES ||
	    ((uint64_t)b->tray_page + count) * RUN_PAGE_BYTES > p->tray_bytes) {
		b->failed = ~0ull;
		return;
	}
	failed = copy_pages(a, to, b, count);
	if (failed) {
		/* What was not copied stays, so no stretch as a whole. */
		for (uint32_t i = 0; i < count; i++)
			if (!(failed >> i & 1) &&
			    !drop(b->page[i], RUN_PAGE_BYTES))
				failed |= 1ull << i;
		b->failed = failed;
		return;
	}
	if (drop_all(b, stretches, &a->can_batch))
		stretches = 0;
	for (uint32_t i = 0; i < stretches; i++) {
		struct run_stretch s = b->stretch[i];
		bool ok = drop(s.start, s.bytes);

		for (; at < count && b->page[at] < s.start + s.bytes; at++)
			if (!ok)
				failed |= 1ull << at;
	}
	b->failed = failed;
}

static void agent_sleep(struct run_channel *c, uint32_t seen)
{
	atomic_store_explicit(&c->is_asleep, 1, memory_order_seq_cst);
	/* The pager adds to `posted` first and then looks at is_asleep; both
	 * sequentially consistent, so one of us sees the other. */
	if (atomic_load_explicit(&c->posted, memory_order_seq_cst) == seen)
		(void)raw6(SYS_futex, (long)&c->posted, FUTEX_WAIT, (long)seen,
			   0, 0, 0);
	atomic_store_explicit(&c->is_asleep, 0, memory_order_relaxed);
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
		(void)raw6(SYS_sched_setaffinity, 0, sizeof(set), (long)&set, 0,
			   0, 0);
}

__attribute__((noreturn, used)) void preload_agent_main(struct preload *p);
void preload_agent_main(struct preload *p)
{
	struct run_channel *c = p->channel;
	struct agent a = {.p = p,
			  .pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0),
			  .mem_fd = own_mem_file(),
			  .can_batch = true};
	uint32_t done = atomic_load_explicit(&c->done, memory_order_relaxed);
	struct core_set all = {{0}};
	uint32_t hint_seen = 0;

	give_up_rights(p);
	/* G1: who sees it sees what came before. */
	atomic_store_explicit(&p->agent_is_bare, 1, memory_order_release);
	(void)raw6(SYS_futex, (long)&p->agent_is_bare, FUTEX_WAKE_PRIVATE, 1, 0,
		   0, 0);
	(void)raw6(SYS_sched_getaffinity, 0, sizeof(all), (long)&all, 0, 0, 0);
	/* Before the first batch, so that the pager knows whose faults must not
	 * wait. */
	c->agent_tid = (uint32_t)raw6(SYS_gettid, 0, 0, 0, 0, 0, 0);
	for (;;) {
		/* Pairs with P1. */
		uint32_t posted =
			atomic_load_explicit(&c->posted, memory_order_acquire);
		uint32_t hint;

		if (posted == done) {
			agent_sleep(c, posted);
			continue;
		}
		/* A hint: any value that was ever true will do. */
		hint = atomic_load_explicit(&c->core_hint,
					    memory_order_relaxed);
		if (hint != hint_seen)
			go_to_core(&all, hint);
		hint_seen = hint;
		obey(&a, &c->batch[done % RUN_BATCHES]);
		done++;
		/* D1 */
		atomic_store_explicit(&c->done, done, memory_order_release);
	}
}

/* clone returns twice; in the child on the new stack, where no frame of ours
 * is, so the child's path must be here. */
static long clone_agent(unsigned long flags, void *stack_top, void *tls,
			struct preload *p)
{
	register void *r8 __asm__("r8") = tls;
	register long r10 __asm__("r10") = 0;
	register struct preload *r12 __asm__("r12") = p;
	long ret;

	__asm__ __volatile__("syscall\n\t"
			     "test %%rax, %%rax\n\t"
			     "jnz 1f\n\t"
			     "xor %%ebp, %%ebp\n\t"
			     "mov %%r12, %%rdi\n\t"
			     "call preload_agent_main\n\t"
			     "hlt\n"
			     "1:"
			     : "=a"(ret)
			     : "a"(SYS_clone), "D"(flags), "S"(stack_top),
			       "d"(0), "r"(r10), "r"(r8), "r"(r12)
			     : "rcx", "r11", "memory");
	return ret;
}

/* ---- starting it, in a thread of the program ---------------------------- */

static uint64_t parse_number(const char **text)
{
	uint64_t v = 0;

	while (**text == ' ')
		(*text)++;
	for (; **text >= '0' && **text <= '9'; (*text)++)
		v = v * 10 + (uint64_t)(**text - '0');
	return v;
}

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
	for (const char *at = text; *at; at++) {
		uint64_t start = parse_number(&at), n;

		(void)parse_number(&at);
		n = parse_number(&at);
		if (n > count) {
			first = start;
			count = n;
		}
		if (!*at)
			break;
	}
	if (count < 4 || getrandom(&random, sizeof(random), 0) < 0)
		return UINT32_MAX;
	id = (uint32_t)(first + count - 1 - random % (count / 4));
	return id == 65534 ? id - 1 : id; /* where strangers are shown */
}

/* G1 */
static void await_bare(struct preload *p)
{
	while (!atomic_load_explicit(&p->agent_is_bare, memory_order_acquire))
		(void)raw6(SYS_futex, (long)&p->agent_is_bare,
			   FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
}

int preload_agent_start(struct preload *p)
{
	size_t bytes = AGENT_STACK_BYTES + AGENT_TLS_BYTES;
	uint8_t *mem = preload_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t all = ~0ull, old;
	uint8_t *tls = mem + AGENT_STACK_BYTES;
	long tid;

	if (mem == MAP_FAILED)
		return -ENOMEM;
	p->agent_uid = pick_id("/proc/self/uid_map");
	p->agent_gid = pick_id("/proc/self/gid_map");
	atomic_store_explicit(&p->agent_is_bare, 0, memory_order_relaxed);
	*(void **)(void *)tls = tls; /* what fs:0 has to be */
	*(void **)(void *)(tls + 16) = tls;
	/* The agent inherits the mask: all signals are the program's. */
	(void)raw6(SYS_rt_sigprocmask, 0 /* SIG_BLOCK */, (long)&all,
		   (long)&old, 8, 0, 0);
	tid = clone_agent(CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
				  CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS,
			  mem + AGENT_STACK_BYTES, tls, p);
	(void)raw6(SYS_rt_sigprocmask, 2 /* SIG_SETMASK */, (long)&old, 0, 8, 0,
		   0);
	if (tid < 0) {
		(void)preload_sys_munmap(mem, bytes);
		return (int)tid;
	}
	await_bare(p);
	return 0;
}
