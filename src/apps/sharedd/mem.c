/* SPDX-License-Identifier: Apache-2.0 */
/* A memfd, and who has mapped it. */
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/uffd_new.h"
#include "run/uffd.h"

enum {
	PAGE = COHERENCE_PAGE_BYTES,
	WORD_BITS = 64,
	COPIED = 1,
};

static uint64_t at(uint32_t page)
{
	return (uint64_t)page << COHERENCE_PAGE_SHIFT;
}

static bool is_view(const struct shd_mem *m, const struct list *l)
{
	return l != &m->views;
}

static struct shd_view *view_of(struct list *l)
{
	return container_of(l, struct shd_view, node);
}

static uint64_t place(const struct shd_view *v, uint32_t page)
{
	return v->base + at(page);
}

static bool shows(const struct shd_view *v, uint32_t page)
{
	return !v->is_gone && page - v->first < v->count;
}

/* What an ioctl on one page said. A view whose memory is gone is none; and
 * where a page is not mapped any more, nobody can use it. */
static int noted(struct shd_view *v, int err)
{
	if (err == -ESRCH)
		v->is_gone = true;
	return v->is_gone || err == -ENOENT ? 0 : err;
}

/* Also where a part of it is not mapped any more. */
static int protect_run(struct shd_view *v, uint32_t page, uint32_t count)
{
	int err = run_uffd_protect(v->uffd, place(v, page), at(count));

	if (err != -ENOENT || count == 1)
		return noted(v, err);
	for (err = 0; !err && !v->is_gone && count; count--, page++)
		err = noted(v, run_uffd_protect(v->uffd, place(v, page), PAGE));
	return err;
}

/* ---- what is in the file ------------------------------------------------- */

bool shd_mem_has(const struct shd_mem *m, uint32_t page)
{
	return m->here[page / WORD_BITS] >> page % WORD_BITS & 1;
}

static void set_here(struct shd_mem *m, uint32_t page, bool is_here)
{
	uint64_t bit = 1ull << page % WORD_BITS;

	if (shd_mem_has(m, page) == is_here)
		return;
	m->here[page / WORD_BITS] ^= bit;
	m->here_count += is_here ? 1 : -1;
}

/* The next run of pages that are here, from *page on and before `end`; returns
 * its length, 0: none. */
static uint32_t next_run(const struct shd_mem *m, uint32_t *page, uint32_t end)
{
	uint32_t i = *page, n = 0;

	while (i < end && !shd_mem_has(m, i))
		i = i % WORD_BITS == 0 && !m->here[i / WORD_BITS]
			    ? i + WORD_BITS
			    : i + 1;
	*page = i;
	while (i + n < end && shd_mem_has(m, i + n))
		n++;
	return n;
}

/* ---- views --------------------------------------------------------------- */

/* Protects the pages of the range that are here. */
static int protect_view(const struct shd_mem *m, struct shd_view *v,
			uint32_t page, uint32_t end)
{
	uint32_t n;
	int err = 0;

	page = u32_max(page, v->first);
	end = u32_min(end, v->first + v->count);
	for (; !err && !v->is_gone && (n = next_run(m, &page, end)); page += n)
		err = protect_run(v, page, n);
	return err;
}

int shd_mem_add(struct shd_mem *m, struct shd_view *v, int uffd, uint64_t start,
		uint32_t first, uint32_t count)
{
	int err = run_uffd_enable_file(uffd);

	*v = (struct shd_view){.uffd = uffd,
			       .base = start - at(first),
			       .first = first,
			       .count = count};
	list_init(&v->node);
	/* Whoever sent it, we do not wait in it. */
	if (!err && fcntl(uffd, F_SETFL, O_NONBLOCK) != 0)
		err = -errno;
	if (!err)
		err = run_uffd_register(uffd, start, at(count));
	if (!err)
		err = protect_view(m, v, first, first + count);
	if (!err && v->is_gone)
		err = -ENOENT;
	if (!err)
		list_append(&m->views, &v->node);
	return err;
}

void shd_mem_look(struct shd_view *v)
{
	/* A page that is not registered anywhere: the question unprotects. */
	v->is_gone |= !run_uffd_is_alive(v->uffd, COHERENCE_BASE - PAGE);
}

void shd_mem_drop(struct shd_mem *m, struct shd_view *v)
{
	(void)m;
	list_remove(&v->node);
	(void)close(v->uffd);
	v->uffd = -1;
}

void shd_mem_wake(struct shd_view *v, uint32_t page)
{
	if (shows(v, page))
		run_uffd_wake(v->uffd, place(v, page), PAGE);
}

int shd_mem_poison(struct shd_view *v, uint32_t page)
{
	uint64_t at_va = place(v, page);
	int err =
		!shows(v, page) ? 0 : noted(v, run_uffd_poison(v->uffd, at_va));

	/* A mark is left where the page was protected when it went. */
	if (err == -EEXIST)
		err = noted(v, run_uffd_unprotect(v->uffd, at_va, PAGE));
	if (!err && !v->is_gone)
		err = noted(v, run_uffd_poison(v->uffd, at_va));
	/* It is poison already. */
	if (err == -EEXIST)
		err = 0;
	shd_mem_wake(v, page);
	return err;
}

/* ---- pages --------------------------------------------------------------- */

/* COPIED, 0: there is no such place any more, or -errno. */
static int copy_into(struct shd_view *v, uint32_t page, const void *bytes,
		     bool may_write)
{
	uint64_t to = place(v, page);
	int n;

	do {
		n = may_write ? run_uffd_copy(v->uffd, to, bytes, 1)
			      : run_uffd_copy_protected(v->uffd, to, bytes);
	} while (n == -EAGAIN);
	return n < 0 ? noted(v, n) : COPIED;
}

static bool is_in_file(const struct shd_mem *m, uint32_t page)
{
	return lseek(m->fd, (off_t)at(page), SEEK_DATA) == (off_t)at(page);
}

int shd_mem_put(struct shd_mem *m, uint32_t page, const void *bytes,
		struct shd_view *v, bool may_write)
{
	int err = 0;

	ASSERT(page < m->page_count && !shd_mem_has(m, page));
	if (m->aside >= 0) {
		if (pwrite(m->aside, bytes, PAGE, (off_t)at(page)) != PAGE)
			return -EIO;
		set_here(m, page, true);
		return 0;
	}
	for (struct list *l = m->views.next; !err && is_view(m, l); l = l->next)
		if (view_of(l) != v && shows(view_of(l), page))
			err = protect_run(view_of(l), page, 1);
	if (err)
		return err;
	if (v && shows(v, page)) {
		err = copy_into(v, page, bytes, may_write);
		if (err < 0)
			return err;
		if (is_in_file(m, page)) {
			set_here(m, page, true);
			return 0;
		}
		/* A program that has mapped something else there got the bytes,
		 * and nobody else did. Or it is not mapped any more. */
		v->is_gone |= err == COPIED;
	}
	err = copy_into(&m->own, page, bytes, false);
	if (err < 0)
		return err;
	set_here(m, page, true);
	return 0;
}

void shd_mem_unprotect(struct shd_mem *m, struct shd_view *v, uint32_t page)
{
	ASSERT(shd_mem_has(m, page) && m->aside < 0);
	/* Fails only where there is no mapping any more. */
	if (shows(v, page))
		(void)noted(v,
			    run_uffd_unprotect(v->uffd, place(v, page), PAGE));
}

void shd_mem_again(struct shd_mem *m, struct shd_view *v, uint32_t page)
{
	static const uint8_t zeros[PAGE];

	ASSERT(shd_mem_has(m, page) && m->aside < 0);
	if (shows(v, page) && copy_into(v, page, zeros, false) == -EEXIST)
		shd_mem_wake(v, page);
}

int shd_mem_protect(struct shd_mem *m, uint32_t page, uint32_t count)
{
	int err = 0;

	for (struct list *l = m->views.next; !err && is_view(m, l); l = l->next)
		err = protect_view(m, view_of(l), page, page + count);
	return err;
}

int shd_mem_read(const struct shd_mem *m, uint32_t page, void *out)
{
	ssize_t n = pread(m->aside >= 0 ? m->aside : m->fd, out, PAGE,
			  (off_t)at(page));

	if (n == PAGE)
		return 0;
	return n < 0 ? -errno : -EIO;
}

static int punch_file(int fd, uint32_t page, uint32_t count)
{
	return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			 (off_t)at(page), (off_t)at(count));
}

int shd_mem_punch(struct shd_mem *m, uint32_t page, uint32_t count)
{
	uint32_t end = page + count, n;

	for (; (n = next_run(m, &page, end)); page += n) {
		if (punch_file(m->aside >= 0 ? m->aside : m->fd, page, n))
			return -errno;
		for (uint32_t i = 0; i < n; i++)
			set_here(m, page + i, false);
	}
	return 0;
}

/* ---- all of it ----------------------------------------------------------- */

static int copy_aside(const struct shd_mem *m, int aside, uint32_t page)
{
	uint8_t bytes[PAGE];
	int err = shd_mem_read(m, page, bytes);

	if (err)
		return err;
	return pwrite(aside, bytes, PAGE, (off_t)at(page)) == PAGE ? 0 : -EIO;
}

int shd_mem_hide(struct shd_mem *m)
{
	int aside = memfd_create("aquifer-hidden", MFD_CLOEXEC);
	int err;

	ASSERT(m->aside < 0);
	if (aside < 0)
		return -errno;
	err = ftruncate(aside, (off_t)at(m->page_count)) ? -errno : 0;
	if (!err)
		err = shd_mem_protect(m, 0, m->page_count);
	for (uint32_t i = 0; !err && i < m->page_count; i++)
		if (shd_mem_has(m, i))
			err = copy_aside(m, aside, i);
	if (!err && punch_file(m->fd, 0, m->page_count))
		err = -errno;
	if (err)
		(void)close(aside);
	else
		m->aside = aside;
	return err;
}

int shd_mem_unhide(struct shd_mem *m)
{
	int aside = m->aside, err = 0;
	uint8_t bytes[PAGE];

	ASSERT(aside >= 0);
	m->aside = -1;
	for (uint32_t i = 0; !err && i < m->page_count; i++) {
		if (!shd_mem_has(m, i))
			continue;
		set_here(m, i, false);
		err = pread(aside, bytes, PAGE, (off_t)at(i)) == PAGE
			      ? shd_mem_put(m, i, bytes, NULL, false)
			      : -EIO;
	}
	(void)close(aside);
	return err;
}

void shd_mem_cut(struct shd_mem *m)
{
	/* Nothing can be done if the kernel does not do it. */
	(void)!ftruncate(m->fd, 0);
	memset(m->here, 0, (m->page_count + WORD_BITS - 1) / WORD_BITS * 8);
	m->here_count = 0;
}

int shd_mem_own_uffd(void)
{
	int uffd = uffd_new_plain();
	int err = uffd < 0 ? uffd : run_uffd_enable_file(uffd);

	if (!err)
		return uffd;
	if (uffd >= 0)
		(void)close(uffd);
	return error_set(
		err, "userfaultfd for shared memory: %s%s", strerror(-err),
		err == -EOPNOTSUPP ? "; Linux 5.19 has what it needs" : "");
}

/* Our own mapping: nobody reads it, but pages can appear there. */
static int open_own(struct shd_mem *m, int uffd)
{
	void *mem = mmap(NULL, at(m->page_count), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_NORESERVE, m->fd, 0);
	int err;

	if (mem == MAP_FAILED)
		return error_set(-errno, "no room for %llu bytes of addresses",
				 (unsigned long long)at(m->page_count));
	m->own = (struct shd_view){.uffd = uffd,
				   .base = (uint64_t)(uintptr_t)mem,
				   .count = m->page_count};
	err = run_uffd_register(uffd, m->own.base, at(m->page_count));
	if (err) {
		(void)munmap(mem, at(m->page_count));
		return error_set(err, "userfaultfd for shared memory: %s",
				 strerror(-err));
	}
	return 0;
}

int shd_mem_init(struct shd_mem *m, uint32_t page_count, int own_uffd)
{
	size_t words = (page_count + WORD_BITS - 1) / WORD_BITS;
	int err;

	*m = (struct shd_mem){.page_count = page_count, .aside = -1};
	list_init(&m->views);
	m->here = calloc(words, sizeof(*m->here));
	if (!m->here)
		return error_set(-ENOMEM, "no memory for a segment's pages");
	m->fd = memfd_create("aquifer-shared", MFD_CLOEXEC);
	if (m->fd < 0 || ftruncate(m->fd, (off_t)at(page_count)) != 0)
		err = error_set(-errno, "memory for a segment: %s",
				strerror(errno));
	else
		err = open_own(m, own_uffd);
	if (!err)
		return 0;
	if (m->fd >= 0)
		(void)close(m->fd);
	free(m->here);
	return err;
}

void shd_mem_release(struct shd_mem *m)
{
	shd_mem_cut(m);
	(void)munmap((void *)(uintptr_t)m->own.base, at(m->page_count));
	(void)close(m->fd);
	if (m->aside >= 0)
		(void)close(m->aside);
	free(m->here);
}
