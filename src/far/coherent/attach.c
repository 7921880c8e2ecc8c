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

#include "base/config.h"
#include "base/error.h"
#include "base/fds.h"
#include "base/rack_socket.h"
#include "base/trust.h"
#include "base/uffd_new.h"

enum {
	PATIENCE_MS = 10000, /* with a server that is busy */
};

static int no_server(int err)
{
	return error_set(-EHOSTDOWN,
			 "this machine has no cache server for the rack (%s): "
			 "start 'aquifer shared serve'",
			 strerror(-err));
}

/* What it sends we would map and believe. */
static int check_server(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);
	struct trust trust;
	int err = trust_load(&trust);

	if (err)
		return err;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0 ||
	    !trust_serves(&trust, cred.uid))
		return error_set(-EPERM, "the cache server is another user's");
	return 0;
}

int coherent_socket_name(char name[COHERENT_SOCKET_MAX])
{
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	(void)snprintf(name, COHERENT_SOCKET_MAX, "%.60s:shared",
		       config_string(config, "nic", "address"));
	config_destroy(config);
	return 0;
}

static int connect_server(const char *rack, int *out)
{
	char name[COHERENT_SOCKET_MAX];
	struct rack_sockets r;
	int fd = -1, err = coherent_socket_name(name);

	if (!err)
		err = rack_sockets_open(rack, &r);
	if (err)
		return err;
	err = rack_socket_connect(&r, name, &fd);
	rack_sockets_close(&r);
	if (err)
		return no_server(err);
	err = check_server(fd);
	if (err)
		(void)close(fd);
	else
		*out = fd;
	return err;
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
	int err = connect_server(rack, &m.sock);

	if (err)
		return err;
	err = attach(&m, id, may_write);
	if (err)
		(void)close(m.sock);
	else
		*out = m;
	return err;
}

void coherent_detach(struct coherent_mapping *m)
{
	/* Fails only if it is not mapped. */
	(void)munmap((void *)(uintptr_t)m->va, m->size_bytes);
	(void)close(m->sock);
}
