/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages leave by moving (UFFDIO_MOVE, Linux 6.8): from the program's mapping
 * into a staging area of the agent's, from where they are copied to a buffer.
 * The kernel takes a page atomically, and not while a device or another process
 * has it pinned: so nobody can write to it any more when it is copied.
 *
 * The staging area has a userfaultfd of its own, because the kernel wants the
 * destination of a move to have one. Nobody ever waits for it, and it reports
 * nothing, so emptying the area is not told to the pager.
 *
 * EBUSY has two reasons: the page is pinned, or it is not the process's alone
 * (after fork, until one of the two writes). Reading one byte by
 * process_vm_readv pins the page for a moment, and the kernel pins no page that
 * is shared: it gives us one of our own. What is busy then is pinned.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "agent_priv.h"
#include "preload_raw.h"

/* Newer than Debian's headers. */
struct move {
	uint64_t dst;
	uint64_t src;
	uint64_t len;
	uint64_t mode;
	int64_t moved; /* out: bytes, where it stopped in the middle */
};
#define IOCTL_MOVE     _IOWR(UFFDIO, 0x05, struct move)
#define IOCTL_MOVE_BIT (1ull << 0x05)

enum {
	MOVE_DONTWAKE = 1, /* UFFDIO_MOVE_MODE_DONTWAKE */
	USER_ONLY = 1,	   /* UFFD_USER_MODE_ONLY: everybody may have that */
	STAGING_BYTES = RUN_BATCH_PAGES * RUN_PAGE_BYTES,
	TRIES = 3, /* of a page that the kernel is just changing */
	PAUSES = 1000,
};

static void close_move(struct agent *a)
{
	(void)raw(SYS_close, a->move_fd);
	a->move_fd = -EOPNOTSUPP;
}

void agent_move_open(struct agent *a)
{
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register reg = {.mode = UFFDIO_REGISTER_MODE_MISSING};
	long mem = raw(SYS_mmap, 0, STAGING_BYTES, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	a->move_fd = -ENOMEM;
	if (mem < 0 && mem > -4096)
		return;
	/* A fork while pages are here: its pages are in the buffer then. */
	if (raw(SYS_madvise, mem, STAGING_BYTES, MADV_DONTFORK) != 0)
		return;
	(void)raw(SYS_madvise, mem, STAGING_BYTES, MADV_NOHUGEPAGE);
	(void)raw(SYS_madvise, mem, STAGING_BYTES, MADV_DONTDUMP);
	a->move_fd = raw(SYS_userfaultfd, O_CLOEXEC | USER_ONLY);
	if (a->move_fd < 0)
		return;
	a->staging = a->p->agent_staging = (uint8_t *)mem;
	reg.range.start = (uint64_t)mem;
	reg.range.len = STAGING_BYTES;
	if (raw(SYS_ioctl, a->move_fd, UFFDIO_API, &api) != 0 ||
	    raw(SYS_ioctl, a->move_fd, UFFDIO_REGISTER, &reg) != 0 ||
	    !(reg.ioctls & IOCTL_MOVE_BIT))
		close_move(a);
}

/* ---- taking -------------------------------------------------------------- */

/* What the kernel said, a bit per page; the rest is in the outcome. */
struct taking {
	uint64_t taken;
	uint64_t busy;
	uint64_t unmovable;
	struct run_outcome *out;
};

/* The page and up to n - 1 that follow; returns how many, or -errno for the
 * first. */
static long move_some(const struct agent *a, const struct run_batch *b,
		      uint32_t first, uint32_t n)
{
	struct move m = {
		.dst = (uint64_t)(uintptr_t)a->staging +
		       (uint64_t)first * RUN_PAGE_BYTES,
		.src = b->page[first],
		.len = (uint64_t)n * RUN_PAGE_BYTES,
		.mode = MOVE_DONTWAKE,
	};
	long err = raw(SYS_ioctl, a->move_fd, IOCTL_MOVE, &m);

	if (err == 0)
		return (long)n;
	return m.moved > 0 ? (long)(m.moved / RUN_PAGE_BYTES) : err;
}

static void end_move(struct run_channel *c)
{
	/* RUN-M2 */
	atomic_store_explicit(&c->is_moving, 0, memory_order_release);
}

/* Afterwards the pager waits for us before it lets the program go on. It may
 * only just be reading: a few microseconds. */
static bool begin_move(struct run_channel *c)
{
	for (unsigned i = 0; i < PAUSES; i++) {
		/* RUN-M1 */
		atomic_store_explicit(&c->is_moving, 1, memory_order_seq_cst);
		if (!atomic_load_explicit(&c->is_changing,
					  memory_order_seq_cst))
			return true;
		end_move(c);
		__asm__ __volatile__("pause");
	}
	return false;
}

static long move_patiently(const struct agent *a, const struct run_batch *b,
			   uint32_t first, uint32_t n)
{
	long got = -EAGAIN;

	for (unsigned i = 0; i < TRIES && got == -EAGAIN; i++)
		got = move_some(a, b, first, n);
	/* The kernel takes no range that the program's advice or rights have
	 * cut into several mappings. */
	if (got == -EINVAL && n > 1)
		got = move_some(a, b, first, 1);
	return got;
}

static void take_run(const struct agent *a, const struct run_batch *b,
		     uint32_t first, uint32_t n, struct taking *t)
{
	struct run_channel *c = a->p->channel;

	while (n > 0) {
		long got;
		uint32_t done;
		uint64_t bits;

		if (t->out->spared || !begin_move(c)) {
			t->out->spared |= agent_bits(first, n);
			return;
		}
		got = move_patiently(a, b, first, n);
		end_move(c);
		done = got > 0 ? (uint32_t)got : 1;
		bits = agent_bits(first, done);

		if (got > 0)
			t->taken |= bits;
		else if (got == -ENOENT)
			t->out->zero |= bits; /* dropped, unknown to us */
		else if (got == -EBUSY)
			t->busy |= bits;
		else if (got == -EINVAL)
			t->unmovable |= bits;
		else
			t->out->failed |= bits;
		first += done;
		n -= done;
	}
}

static void take(const struct agent *a, const struct run_batch *b,
		 uint64_t mask, uint32_t count, struct taking *t)
{
	uint32_t n;

	for (uint32_t i = 0; i < count; i += n) {
		n = 1;
		if (!(mask >> i & 1))
			continue;
		n = agent_run(b, mask, i, count);
		take_run(a, b, i, n, t);
	}
}

/* Gives the process pages of its own where it shares them. */
static void unshare_pages(const struct agent *a, const struct run_batch *b,
			  uint64_t mask, uint32_t count)
{
	struct iovec remote[RUN_BATCH_PAGES], local;
	uint8_t bytes[RUN_BATCH_PAGES];
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++)
		if (mask >> i & 1) {
			remote[n].iov_base = (void *)(uintptr_t)b->page[i];
			remote[n++].iov_len = 1;
		}
	local.iov_base = bytes;
	local.iov_len = n;
	/* What it does not reach is found busy again, and stays. */
	(void)raw(SYS_process_vm_readv, a->pid, &local, 1, remote, n);
}

/* ---- from the staging area to the buffer --------------------------------- */

/* libc's own is not ours to call. */
static void copy_page(uint8_t *to, const uint8_t *from)
{
	size_t n = RUN_PAGE_BYTES;

	__asm__ __volatile__("rep movsb"
			     : "+D"(to), "+S"(from), "+c"(n)
			     :
			     : "memory");
}

/* A few at a time: on this core there may be somebody who answers faults. */
static void stow(struct agent *a, uint8_t *buffer, struct run_batch *b,
		 uint64_t taken, uint32_t count, uint64_t *zero)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < count; i++) {
		size_t at = (size_t)i * RUN_PAGE_BYTES;

		if (!(taken >> i & 1))
			continue;
		if (n && n % AGENT_SLICE == 0)
			agent_yield(a);
		n++;
		if (agent_look(a->staging + at, &b->hash[i]))
			*zero |= 1ull << i;
		else
			copy_page(buffer + at, a->staging + at);
	}
}

static void empty_staging(struct agent *a)
{
	for (unsigned i = 0; i < 2; i++) {
		if (raw(SYS_madvise, a->staging, STAGING_BYTES,
			MADV_DONTNEED) == 0)
			return;
		/* The program has locked all of its memory; not this. */
		(void)raw(SYS_munlock, a->staging, STAGING_BYTES);
	}
	close_move(a); /* nothing leaves any more */
}

uint64_t agent_move(struct agent *a, uint8_t *buffer, struct run_batch *b,
		    uint32_t count, struct run_outcome *r)
{
	uint64_t all = agent_bits(0, count);
	struct taking t = {.out = r};
	uint64_t busy;

	take(a, b, all, count, &t);
	busy = t.busy;
	if (busy) {
		unshare_pages(a, b, busy, count);
		t.busy = 0;
		take(a, b, busy, count, &t);
	}
	if (t.taken) {
		stow(a, buffer, b, t.taken, count, &r->zero);
		empty_staging(a);
	}
	r->failed |= t.busy | r->spared;
	return t.unmovable;
}
