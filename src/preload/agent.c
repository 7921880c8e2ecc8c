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
 * protector. agent_start.c starts it.
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
#include <sys/syscall.h>
#include <sys/uio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "preload.h"
#include "preload_raw.h"

enum {
	AGENT_SLICE = 8,     /* pages, some 6 us */
	SELF_PIDFD = -10000, /* newer than Debian's headers */
	UNSHARE_FILES = 2,   /* CLOSE_RANGE_UNSHARE */
};

struct core_set {
	uint64_t word[16];
};

/* What the agent has of its own. */
struct agent {
	struct preload *p;
	long pid;
	long mem_fd;	 /* the memory file; -errno: none */
	bool can_batch;	 /* process_madvise takes what we give it */
	bool has_locked; /* the program has, so pages go one by one */
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

static long advise(uint64_t start, uint64_t bytes, long advice)
{
	return raw6(SYS_madvise, (long)start, (long)bytes, advice, 0, 0, 0);
}

static long drop_many(const struct iovec *iov, uint32_t count)
{
	return raw6(SYS_process_madvise, SELF_PIDFD, (long)iov, (long)count,
		    MADV_DONTNEED, 0, 0);
}

/* Whether the kernel lets a process advise itself that way (6.15): asked here,
 * because later the same error also means locked memory. */
static bool can_drop_many(void)
{
	long page = raw6(SYS_mmap, 0, RUN_PAGE_BYTES, PROT_READ,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov = {(void *)page, RUN_PAGE_BYTES};
	bool can;

	if (page < 0 && page > -4096)
		return false;
	can = drop_many(&iov, 1) == RUN_PAGE_BYTES;
	(void)raw6(SYS_munmap, page, RUN_PAGE_BYTES, 0, 0, 0, 0);
	return can;
}

/* How many stretches went, one call and one flush of the other cores for all of
 * them if possible. The next one then failed, maybe in its middle. */
static uint32_t drop_stretches(const struct agent *a, const struct run_batch *b,
			       uint32_t count)
{
	struct iovec iov[RUN_BATCH_PAGES];
	uint32_t i;
	long done;

	if (count < 2 || !a->can_batch) {
		for (i = 0; i < count; i++)
			if (advise(b->stretch[i].start, b->stretch[i].bytes,
				   MADV_DONTNEED) == -EINVAL)
				break;
		return i;
	}
	for (i = 0; i < count; i++) {
		iov[i].iov_base = (void *)(uintptr_t)b->stretch[i].start;
		iov[i].iov_len = b->stretch[i].bytes;
	}
	done = drop_many(iov, count);
	for (i = 0; i < count && done >= (long)iov[i].iov_len; i++)
		done -= (long)iov[i].iov_len;
	return i;
}

/*
 * The pages from `at` on, one by one: where something was not copied, and where
 * the program has locked memory, at which the kernel stops (EINVAL). Nothing
 * may be dropped twice, because the pager is told of each time; so of the
 * stretch `tried`, which failed in its middle, only what comes after is. What
 * is not mapped any more is gone, too.
 */
static void drop_singly(struct run_batch *b, uint32_t at, uint32_t count,
			const struct run_stretch *tried)
{
	bool is_past = false;

	for (; at < count; at++) {
		uint64_t page = b->page[at], bit = 1ull << at;

		if (b->failed & bit)
			continue;
		if (tried && !is_past && page - tried->start < tried->bytes) {
			is_past = advise(page, RUN_PAGE_BYTES, MADV_COLD) ==
				  -EINVAL;
			if (!is_past) {
				b->dropped |= bit;
				continue;
			}
		}
		if (advise(page, RUN_PAGE_BYTES, MADV_DONTNEED) != -EINVAL) {
			b->dropped |= bit;
			continue;
		}
		b->failed |= bit;
		b->locked |= bit;
	}
}

static void obey(struct agent *a, struct run_batch *b)
{
	const struct preload *p = a->p;
	/* Read once: the pager is trusted, the program's own stray writes are
	 * not made worse. */
	uint32_t count = b->page_count, stretches = b->stretch_count;
	uint8_t *to = p->trays + (uint64_t)b->tray_page * RUN_PAGE_BYTES;
	uint32_t at = 0, done;

	if (count > RUN_BATCH_PAGES || stretches > RUN_BATCH_PAGES ||
	    ((uint64_t)b->tray_page + count) * RUN_PAGE_BYTES > p->tray_bytes) {
		b->failed = ~0ull;
		return;
	}
	b->failed = copy_pages(a, to, b, count);
	/* What was copied may be somebody else's by now. */
	if (atomic_load_explicit(&p->channel->is_changing,
				 memory_order_relaxed)) {
		b->failed = ~0ull;
		return;
	}
	/* What was not copied stays, so no stretch as a whole. */
	if (b->failed || a->has_locked) {
		b->is_single = 1;
		drop_singly(b, 0, count, NULL);
		return;
	}
	done = drop_stretches(a, b, stretches);
	if (done == stretches) {
		b->dropped = ~0ull;
		return;
	}
	for (; at < count && b->page[at] < b->stretch[done].start; at++)
		b->dropped |= 1ull << at;
	drop_singly(b, at, count, &b->stretch[done]);
	a->has_locked = b->locked != 0;
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

void preload_agent_main(struct preload *p)
{
	struct run_channel *c = p->channel;
	struct agent a = {.p = p,
			  .pid = raw6(SYS_getpid, 0, 0, 0, 0, 0, 0),
			  .mem_fd = own_mem_file(),
			  .can_batch = can_drop_many()};
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
