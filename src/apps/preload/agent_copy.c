/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages leave by copying: the pager has protected them from writes, the agent
 * copies and drops them. That is right only for pages that nobody has pinned
 * for writing: a device does not meet the protection. agent_move.c knows that
 * of each page. Here it is only known of the process, by what its status file
 * calls VmPin: while that is not 0, nothing is dropped.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "agent_priv.h"
#include "preload_raw.h"

enum {
	SELF_PIDFD = -10000, /* newer than Debian's headers */
};

/* What the program may not read, its memory file gives all the same. */
static uint64_t copy_forced(const struct agent *a, uint8_t *to,
			    const struct run_batch *b, uint32_t first,
			    uint32_t n)
{
	uint64_t failed = 0;

	for (uint32_t i = first; i < first + n; i++)
		if (a->mem_fd < 0 ||
		    raw(SYS_pread64, a->mem_fd,
			(long)to + i * (long)RUN_PAGE_BYTES, RUN_PAGE_BYTES,
			(long)b->page[i]) != RUN_PAGE_BYTES)
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
	return raw(SYS_process_vm_readv, pid, &local, 1, remote, n) ==
	       (long)local.iov_len;
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

bool agent_look(const uint8_t *page, struct run_hash *hash)
{
	XXH128_hash_t h;

	if (is_zero(page))
		return true;
	h = XXH3_128bits(page, RUN_PAGE_BYTES);
	*hash = (struct run_hash){{h.low64, h.high64}};
	return false;
}

/* Copies the pages and looks at them, a few at a time: on this core there may
 * be somebody who answers faults. Returns those that it could not copy. */
static uint64_t copy_pages(struct agent *a, uint8_t *to, struct run_batch *b,
			   uint64_t mask, uint64_t *zero)
{
	uint64_t failed = 0;
	uint32_t n;

	for (uint32_t i = 0; i < RUN_BATCH_PAGES; i += n) {
		n = 1;
		if (!(mask >> i & 1))
			continue;
		while (n < AGENT_SLICE && i + n < RUN_BATCH_PAGES &&
		       mask >> (i + n) & 1)
			n++;
		if (i)
			agent_yield(a);
		if (!copy_some(a->pid, to, b, i, n))
			failed |= copy_forced(a, to, b, i, n);
		for (uint32_t k = i; k < i + n; k++)
			if (!(failed >> k & 1) &&
			    agent_look(to + (size_t)k * RUN_PAGE_BYTES,
				       &b->hash[k]))
				*zero |= 1ull << k;
	}
	return failed;
}

/* ---- pins ---------------------------------------------------------------- */

/* Looks for "VmPin:" and the digits after it, byte by byte: the lines before it
 * may be of any length. */
static bool has_pin(uint8_t c, unsigned *matched)
{
	static const char name[] = "VmPin:";

	if (*matched < sizeof(name) - 1) {
		if (c == (uint8_t)name[*matched])
			(*matched)++;
		else
			*matched = c == (uint8_t)name[0];
		return false;
	}
	return c >= '1' && c <= '9';
}

/* A process whose pins cannot be known is taken to have some. */
static bool may_have_pins(const struct agent *a)
{
	static const unsigned whole = sizeof("VmPin:") - 1;
	uint8_t text[512];
	unsigned matched = 0;
	long at = 0, n;

	if (a->status_fd < 0)
		return true;
	while ((n = raw(SYS_pread64, a->status_fd, text, sizeof(text), at)) >
	       0) {
		for (long i = 0; i < n; i++) {
			if (has_pin(text[i], &matched))
				return true;
			if (matched == whole && text[i] == '\n')
				return false;
		}
		at += n;
	}
	return true;
}

/* ---- dropping ------------------------------------------------------------ */

static long drop_many(const struct iovec *iov, uint32_t count)
{
	return raw(SYS_process_madvise, SELF_PIDFD, iov, count, MADV_DONTNEED);
}

/* Asked once, because later the same error also means locked memory. */
bool agent_can_batch(void)
{
	long page = raw(SYS_mmap, 0, RUN_PAGE_BYTES, PROT_READ,
			MAP_PRIVATE | MAP_ANONYMOUS, -1);
	struct iovec iov = {(void *)page, RUN_PAGE_BYTES};
	bool can;

	if (page < 0 && page > -4096)
		return false;
	can = drop_many(&iov, 1) == RUN_PAGE_BYTES;
	(void)raw(SYS_munmap, page, RUN_PAGE_BYTES);
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
			if (raw(SYS_madvise, b->stretch[i].start,
				b->stretch[i].bytes, MADV_DONTNEED) == -EINVAL)
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
 * The pages of the mask one by one: where something was not copied or has left
 * already, and where the program has locked memory, at which the kernel stops
 * (EINVAL). Nothing may be dropped twice, because the pager is told of each
 * time; so of the stretch `tried`, which failed in its middle, only what comes
 * after is. What is not mapped any more is gone, too.
 */
static void drop_singly(const struct run_batch *b, uint64_t mask,
			const struct run_stretch *tried, struct run_outcome *r)
{
	bool is_past = false;

	for (uint32_t at = 0; at < RUN_BATCH_PAGES; at++) {
		uint64_t page = b->page[at], bit = 1ull << at;

		if (!(mask & bit))
			continue;
		if (tried && !is_past && page - tried->start < tried->bytes) {
			is_past = raw(SYS_madvise, page, RUN_PAGE_BYTES,
				      MADV_COLD) == -EINVAL;
			if (!is_past) {
				r->dropped |= bit;
				continue;
			}
		}
		if (raw(SYS_madvise, page, RUN_PAGE_BYTES, MADV_DONTNEED) !=
		    -EINVAL) {
			r->dropped |= bit;
			continue;
		}
		r->failed |= bit;
		r->locked |= bit;
	}
}

static void drop(struct agent *a, const struct run_batch *b, uint64_t mask,
		 uint32_t stretches, struct run_outcome *r)
{
	uint32_t done;

	if (!stretches || a->has_locked) {
		r->is_single = true;
		drop_singly(b, mask, NULL, r);
		return;
	}
	done = drop_stretches(a, b, stretches);
	if (done == stretches) {
		r->dropped |= mask;
		return;
	}
	for (uint32_t at = 0; at < RUN_BATCH_PAGES && mask >> at & 1 &&
			      b->page[at] < b->stretch[done].start;
	     at++) {
		r->dropped |= 1ull << at;
		mask &= ~(1ull << at);
	}
	drop_singly(b, mask, &b->stretch[done], r);
	a->has_locked = r->locked != 0;
}

void agent_copy(struct agent *a, uint8_t *buffer, struct run_batch *b,
		uint64_t mask, uint32_t stretches, struct run_outcome *r)
{
	uint64_t failed = copy_pages(a, buffer, b, mask, &r->zero);

	r->failed |= failed;
	mask &= ~failed;
	/* RUN-M1: what was copied may be somebody else's by now. */
	if (atomic_load_explicit(&a->p->channel->is_changing,
				 memory_order_seq_cst)) {
		r->failed |= mask;
		r->spared |= mask;
		return;
	}
	if (may_have_pins(a)) {
		r->failed |= mask;
		return;
	}
	/* What was not copied stays, so no stretch as a whole. */
	drop(a, b, mask, failed ? 0 : stretches, r);
}
