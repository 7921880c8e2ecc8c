/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages for translated code, which are never writable and executable at once.
 * First by a file in memory, whose bytes are written by a system call and
 * mapped read-only: no mapping of them is ever writable, and a daemon that has
 * given up mprotect with PROT_EXEC still may. Where that is refused, by pages
 * that change from the one to the other.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "jit_priv.h"

static void *by_file(const uint8_t *bytes, size_t len)
{
	const int fd = memfd_create("aquifer-walk", MFD_CLOEXEC);
	void *pages = MAP_FAILED;
	ssize_t done;

	if (fd < 0)
		return MAP_FAILED;
	done = write(fd, bytes, len);
	if (done >= 0 && (size_t)done == len)
		pages = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd,
			     0);
	(void)close(fd); /* the mapping stays */
	return pages;
}

static void *by_change(const uint8_t *bytes, size_t len)
{
	void *pages = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED)
		return pages;
	memcpy(pages, bytes, len);
	if (mprotect(pages, len, PROT_READ | PROT_EXEC)) {
		const int err = errno;

		(void)munmap(pages, len); /* ours, and whole pages */
		errno = err;
		return MAP_FAILED;
	}
	return pages;
}

int jit_pages_make(const uint8_t *bytes, size_t len, struct walk_code *code)
{
	void *pages = by_file(bytes, len);

	if (pages == MAP_FAILED)
		pages = by_change(bytes, len);
	if (pages == MAP_FAILED)
		return error_set(-errno,
				 "the system gives no memory for code (%s)",
				 error_name(errno) ? error_name(errno) : "?");
	code->pages = pages;
	code->bytes = len;
	return 0;
}

void walk_jit_free(struct walk_code *code)
{
	if (code->pages)
		(void)munmap(code->pages, code->bytes); /* made above */
	code->pages = NULL;
}
