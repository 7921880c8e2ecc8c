/* SPDX-License-Identifier: Apache-2.0 */
/* userfaultfd as the pager uses it: one page or a few, 0 or -errno.
 *	-EAGAIN	 the process forks or changes its mappings; read its event first
 *	-EEXIST	 the page is there
 *	-ESRCH	 the process is gone
 *	-ENOENT	 the address is not registered any more */
#ifndef AQ_RUN_UFFD_H
#define AQ_RUN_UFFD_H

#include "base/base.h"

/* Sets a new one up for faults of threads and of system calls, writes to
 * protected pages, children made by fork, and all that takes pages away or
 * moves them. -EPERM without CAP_SYS_PTRACE, -EOPNOTSUPP; -EPROTO: it is none.
 */
int run_uffd_enable(int fd) MUST_CHECK;
/* Sets a new one up for memory that is a file which others map, too: faults and
 * writes to protected pages, also such that are not there (Linux 5.19). */
int run_uffd_enable_file(int fd) MUST_CHECK;
/* For a range of its process; more than once does no harm. */
int run_uffd_register(int fd, uint64_t start, uint64_t bytes) MUST_CHECK;
/* Makes it ordinary memory again; threads that wait there go on. */
void run_uffd_unregister(int fd, uint64_t start, uint64_t bytes);
/* Up to `pages` pages, and stops at the first that is there; returns how many,
 * or -errno for the first. */
int run_uffd_copy(int fd, uint64_t to, const void *from,
		  unsigned pages) MUST_CHECK;
/* The same for one page, and writes to it wait. */
int run_uffd_copy_protected(int fd, uint64_t to, const void *from) MUST_CHECK;
/* Maps zeros at up to `pages` pages and stops at the first that is there;
 * returns how many, or -errno for the first. */
int run_uffd_zero(int fd, uint64_t to, unsigned pages) MUST_CHECK;
int run_uffd_protect(int fd, uint64_t start, uint64_t bytes) MUST_CHECK;
/* Also wakes threads that wait there. */
int run_uffd_unprotect(int fd, uint64_t start, uint64_t bytes) MUST_CHECK;
void run_uffd_wake(int fd, uint64_t start, uint64_t bytes);
/* Every access is SIGBUS from now on; -EINVAL: not in this kernel. */
int run_uffd_poison(int fd, uint64_t page) MUST_CHECK;
/* Whether something could be done at all: 0, -EAGAIN, -ESRCH. */
int run_uffd_ask(int fd, uint64_t start) MUST_CHECK;
/* Whether this kernel moves pages (UFFDIO_MOVE, Linux 6.8) for unprivileged
 * processes, as agents are. */
bool run_uffd_can_move(void);
/* Whether the memory that it is for still exists. */
bool run_uffd_is_alive(int fd, uint64_t start);

#endif
