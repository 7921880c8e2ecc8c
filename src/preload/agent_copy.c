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

/* ---- pins --------------------------------------------------------------- */

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
	while ((n = raw6(SYS_pread64, a->status_fd, (long)text, sizeof(text),
			 at, 0, 0)) > 0) {
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

/* ---- dropping ----------------------------------------------------------- */

static long drop(uint64_t start, uint64_t bytes)
{
	return raw6(SYS_madvise, (long)start, (long)bytes, MADV_DONTNEED, 0, 0,
		    0);
}

/* One call and one flush of the other cores for all stretches, where the kernel
 * lets a process advise itself that way (6.15). */
static bool drop_at_once(struct agent *a, const struct run_batch *b,
			 uint32_t stretches)
{
	struct iovec iov[RUN_BATCH_PAGES];
	uint64_t bytes = 0;
	long got;

	if (stretches < 2 || !a->can_batch)
		return false;
	for (uint32_t i = 0; i < stretches; i++) {
		iov[i].iov_base = (void *)(uintptr_t)b->stretch[i].start;
		iov[i].iov_len = b->stretch[i].bytes;
		bytes += b->stretch[i].bytes;
	}
	got = raw6(SYS_process_madvise, SELF_PIDFD, (long)iov, (long)stretches,
		   MADV_DONTNEED, 0, 0);
	a->can_batch = got >= 0;
	return got == (long)bytes;
}

/* The whole batch: its stretches have pages in between that are not there. */
static bool drop_stretches(struct agent *a, const struct run_batch *b,
			   uint32_t stretches)
{
	bool ok = true;

	if (drop_at_once(a, b, stretches))
		return true;
	for (uint32_t i = 0; i < stretches && ok; i++) {
		struct run_stretch s = b->stretch[i];

		ok = drop(s.start, s.bytes) == 0;
	}
	return ok;
}

/* What the program has locked cannot be dropped. */
static void drop_run(const struct run_batch *b, uint32_t first, uint32_t n,
		     struct agent_result *r)
{
	if (drop(b->page[first], (uint64_t)n * RUN_PAGE_BYTES) == 0)
		return;
	for (uint32_t i = first; i < first + n; i++)
		if (drop(b->page[i], RUN_PAGE_BYTES) != 0)
			r->failed |= 1ull << i;
}

static void drop_pages(const struct run_batch *b, uint64_t mask,
		       struct agent_result *r)
{
	uint32_t n;

	for (uint32_t i = 0; i < RUN_BATCH_PAGES; i += n) {
		n = 1;
		if (!(mask >> i & 1))
			continue;
		n = agent_run(b, mask, i, RUN_BATCH_PAGES);
		drop_run(b, i, n, r);
	}
}

void agent_copy(struct agent *a, uint8_t *tray, struct run_batch *b,
		uint64_t mask, uint32_t stretches, struct agent_result *r)
{
	uint64_t failed = copy_pages(a, tray, b, mask, &r->zero);

	r->failed |= failed;
	mask &= ~failed;
	if (may_have_pins(a)) {
		r->failed |= mask;
		return;
	}
	if (failed || !stretches || !drop_stretches(a, b, stretches))
		drop_pages(b, mask, r);
}
