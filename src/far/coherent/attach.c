/* SPDX-License-Identifier: Apache-2.0 */
/* The program's half of attaching to the cache server. */
#include "attach.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/fds.h"
#include "base/uffd_new.h"
#include "server.h"

enum {
	PATIENCE_MS = 10000, /* with a server that is busy */
	TRIES = 3,
};

static int no_server(int err)
{
	return error_set(-EHOSTDOWN, "the cache server has ended (%s)",
			 strerror(-err));
}

/* ---- questions ----------------------------------------------------------- */

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

int coherent_ask(const struct coherent_mapping *m, enum coherent_ask_kind kind,
		 uint64_t va, uint64_t size_bytes, struct coherent_answer *out)
{
	struct coherent_ask ask = {
		.kind = kind, .va = va, .size_bytes = size_bytes};
	unsigned count;
	int err = send_ask(m->sock, &ask, -1);

	return err ? err : receive(m->sock, -1, out, NULL, 0, &count);
}

/* ---- mapping ------------------------------------------------------------- */

static int map(int file, const struct coherent_mapping *m, bool may_write)
{
	void *at = (void *)(uintptr_t)m->va;
	void *mem =
		mmap(at, m->size_bytes,
		     may_write ? PROT_READ | PROT_WRITE : PROT_READ,
		     MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, file, 0);

	if (mem == MAP_FAILED)
		return error_set(-errno,
				 errno == EEXIST
					 ? "something is at the segment's "
					   "address already"
					 : "the segment cannot be mapped");
	/* A child would have pages that nobody serves. And a dump would ask for
	 * all of it. */
	if (madvise(mem, m->size_bytes, MADV_DONTFORK) != 0 ||
	    madvise(mem, m->size_bytes, MADV_DONTDUMP) != 0) {
		(void)munmap(mem, m->size_bytes);
		return error_set(-EIO, "the segment cannot be mapped");
	}
	return 0;
}

/* Hands the userfaultfd over; from the answer on the memory is served. */
static int give_uffd(int sock, int device)
{
	struct coherent_ask ask = {.kind = COHERENT_MAPPED};
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

static int attach(struct coherent_mapping *m, uint64_t id, bool may_write)
{
	struct coherent_ask ask = {.kind = COHERENT_OPEN,
				   .va = m->va,
				   .size_bytes = m->size_bytes,
				   .id = id};
	struct coherent_answer a;
	int fd[2] = {-1, -1};
	unsigned count = 0;
	int err = send_ask(m->sock, &ask, -1);

	if (!err)
		err = receive(m->sock, PATIENCE_MS, &a, fd, 2, &count);
	if (!err && count != 1 + (a.has_device != 0))
		err = no_server(-EPROTO);
	if (!err)
		err = map(fd[0], m, may_write);
	if (!err) {
		err = give_uffd(m->sock, fd[1]);
		if (err)
			(void)munmap((void *)(uintptr_t)m->va, m->size_bytes);
	}
	for (unsigned i = 0; i < count && i < 2; i++)
		(void)close(fd[i]);
	return err;
}

int coherent_attach(const char *rack, uint64_t va, uint64_t size_bytes,
		    uint64_t id, bool may_write, struct coherent_mapping *out)
{
	struct coherent_mapping m = {.va = va, .size_bytes = size_bytes};
	int err = -EHOSTDOWN;

	/* A server that nobody uses ends, and may do so right now. */
	for (unsigned i = 0; i < TRIES && err == -EHOSTDOWN; i++) {
		err = coherent_server_connect(rack, &m.sock);
		if (err)
			return err;
		err = attach(&m, id, may_write);
		if (err)
			(void)close(m.sock);
	}
	if (!err)
		*out = m;
	return err;
}

void coherent_detach(struct coherent_mapping *m)
{
	/* Fails only if it is not mapped. */
	(void)munmap((void *)(uintptr_t)m->va, m->size_bytes);
	(void)close(m->sock);
}
