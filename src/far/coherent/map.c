/* SPDX-License-Identifier: Apache-2.0 */
/* The program's half of a mapping. */
#include "map.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fds.h"
#include "base/uffd_new.h"

enum {
	PATIENCE_MS = 10000, /* with a server that is busy */
};

static int no_server(int err)
{
	return error_set(-EHOSTDOWN, "the cache server has ended (%s)",
			 strerror(-err));
}

static int send_ask(int sock, struct coherent_ask *ask, int fd)
{
	ask->magic = COHERENT_MAGIC;
	return fds_send(sock, ask, sizeof(*ask), &fd, fd >= 0, 0)
		       ? no_server(-EPIPE)
		       : 0;
}

/* wait_ms: -1: as long as it lives. */
static int receive(int sock, int wait_ms, struct coherent_answer *a, int *fd,
		   unsigned max, unsigned *count)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int err;

	do {
		int n = poll(&p, 1, wait_ms);

		if (n == 0)
			return error_set(-EHOSTDOWN,
					 "the cache server does not answer");
		err = n < 0 ? -errno
			    : fds_receive(sock, a, sizeof(*a), fd, max, count,
					  MSG_DONTWAIT);
	} while (err == -EAGAIN || err == -EINTR);
	if (err || a->magic != COHERENT_MAGIC)
		return no_server(err ? err : -EPROTO);
	return a->err ? error_set(a->err, "the cache server: %s",
				  error_text(a->err))
		      : 0;
}

int coherent_question(int sock, struct coherent_ask *ask, int wait_ms,
		      struct coherent_answer *out, int *fd, unsigned max,
		      unsigned *count)
{
	int err = send_ask(sock, ask, -1);

	return err ? err : receive(sock, wait_ms, out, fd, max, count);
}

/* The system calls themselves: in an unmodified program the names of libc are
 * our own. */
static void unmap(const struct coherent_range *r)
{
	(void)syscall(SYS_munmap, r->at, r->size_bytes);
}

static int map_file(int file, const struct coherent_range *r)
{
	long at =
		syscall(SYS_mmap, r->at, r->size_bytes, r->prot,
			MAP_SHARED | MAP_NORESERVE |
				(r->is_fixed ? MAP_FIXED : MAP_FIXED_NOREPLACE),
			file, r->offset);

	if (at == -1)
		return error_set(-errno,
				 errno == EEXIST
					 ? "something is at the segment's "
					   "address already"
					 : "the segment cannot be mapped");
	/* A child would have pages that nobody serves. And a dump would ask for
	 * all of it. */
	if (syscall(SYS_madvise, at, r->size_bytes, MADV_DONTFORK) != 0 ||
	    syscall(SYS_madvise, at, r->size_bytes, MADV_DONTDUMP) != 0) {
		unmap(r);
		return error_set(-EIO, "the segment cannot be mapped");
	}
	return 0;
}

/* Hands the userfaultfd over; from the answer on the memory is served. */
static int give_uffd(int sock, int device, const struct coherent_range *r)
{
	struct coherent_ask ask = {.kind = COHERENT_MAPPED,
				   .va = r->at,
				   .offset = r->offset,
				   .size_bytes = r->size_bytes,
				   .flags = r->stays ? COHERENT_STAYS : 0};
	struct coherent_answer a;
	unsigned count;
	int uffd = uffd_new(device);
	int err;

	if (uffd < 0)
		return error_set(uffd == -EPERM ? -EACCES : uffd,
				 "no userfaultfd (%s); 'aquifer doctor' says "
				 "more",
				 strerror(-uffd));
	err = send_ask(sock, &ask, uffd);
	(void)close(uffd);
	return err ? err : receive(sock, PATIENCE_MS, &a, NULL, 0, &count);
}

int coherent_map(int sock, const struct coherent_range *r)
{
	struct coherent_ask ask = {.kind = COHERENT_OPEN,
				   .va = r->va,
				   .size_bytes = r->reserved_bytes,
				   .id = r->id};
	struct coherent_answer a;
	int fd[2] = {-1, -1};
	unsigned count = 0;
	int err = coherent_question(sock, &ask, PATIENCE_MS, &a, fd, 2, &count);

	if (!err && count != 1 + (a.has_device != 0))
		err = no_server(-EPROTO);
	if (!err)
		err = map_file(fd[0], r);
	if (!err) {
		err = give_uffd(sock, fd[1], r);
		if (err)
			unmap(r);
	}
	for (unsigned i = 0; i < count && i < 2; i++)
		(void)close(fd[i]);
	return err;
}
