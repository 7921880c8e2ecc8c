/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to the pager: range, userfaultfd, channel, and again after fork. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fds.h"
#include "base/uffd_new.h"
#include "preload.h"

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<path of the socket> <token>[ strict]" */
static int parse_env(const char *env)
{
	const char *space = strchr(env, ' ');
	size_t n;

	if (!space)
		return -EINVAL;
	n = (size_t)(space - env);
	if (n == 0 || n >= sizeof(preload.socket_path) ||
	    strlen(space + 1) < 2 * RUN_TOKEN_BYTES)
		return -EINVAL;
	preload.is_strict = strcmp(space + 1 + 2 * RUN_TOKEN_BYTES,
				   " " RUN_ENV_STRICT) == 0;
	if (!preload.is_strict && space[1 + 2 * RUN_TOKEN_BYTES])
		return -EINVAL;
	memcpy(preload.socket_path, env, n);
	for (unsigned i = 0; i < RUN_TOKEN_BYTES; i++) {
		int hi = hex_digit(space[1 + 2 * i]);
		int lo = hex_digit(space[2 + 2 * i]);

		if (hi < 0 || lo < 0)
			return -EINVAL;
		preload.token[i] = (uint8_t)(hi << 4 | lo);
	}
	return 0;
}

static int connect_pager(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	struct timeval wait = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	memcpy(sa.sun_path, preload.socket_path, strlen(preload.socket_path));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	/* To connect, too: the pager may be long in taking us in. */
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	err = -errno;
	(void)close(fd);
	return err;
}

/* The pager's answer, and up to two descriptors of it; -1 where there is none.
 */
static int receive(int sock, struct run_welcome *w, int fd[FDS_MAX])
{
	unsigned count;
	int err;

	fd[0] = fd[1] = -1;
	err = fds_receive(sock, w, sizeof(*w), fd, FDS_MAX, &count, 0);
	if (err) {
		fd[0] = fd[1] = -1;
		return err;
	}
	return w->magic == RUN_MAGIC ? w->err : -EPROTO;
}

static void close_both(const int fd[FDS_MAX])
{
	for (unsigned i = 0; i < FDS_MAX; i++)
		if (fd[i] >= 0)
			(void)close(fd[i]);
}

/* Shows the token; what is given for it is the caller's to close. */
static int say_hello(int sock, enum run_hello_kind kind, struct run_welcome *w,
		     int fd[FDS_MAX])
{
	struct run_hello hello = {.magic = RUN_MAGIC, .kind = kind};
	int err;

	fd[0] = fd[1] = -1;
	memcpy(hello.token, preload.token, RUN_TOKEN_BYTES);
	err = fds_send(sock, &hello, sizeof(hello), NULL, 0, 0);
	if (!err)
		err = receive(sock, w, fd);
	return !err && fd[0] < 0 ? -EPROTO : err;
}

/* A dump would have holes for all that is far, and take as long as the range is
 * large. */
void preload_plain(void *start, size_t bytes)
{
	(void)preload_sys_madvise(start, bytes, MADV_NOHUGEPAGE);
	(void)preload_sys_madvise(start, bytes, MADV_DONTDUMP);
}

static uint8_t *make_range(void)
{
	size_t bytes = RUN_RANGE_BYTES + RUN_RANGE_ALIGN;
	uint8_t *mem = preload_new(bytes);
	uint8_t *start;

	if (!mem)
		return NULL;
	start = (uint8_t *)align_up((uintptr_t)mem, RUN_RANGE_ALIGN);
	if (start != mem)
		(void)preload_sys_munmap(mem, (size_t)(start - mem));
	(void)preload_sys_munmap(
		start + RUN_RANGE_BYTES,
		(size_t)(mem + bytes - (start + RUN_RANGE_BYTES)));
	preload_plain(start, RUN_RANGE_BYTES);
	return start;
}

/* Also in a child: at a new place, since others may be at the old one. */
static int map_share(int fd, const struct run_welcome *w)
{
	size_t bytes = RUN_CHANNEL_BYTES + w->buffer_bytes;
	void *mem = preload_sys_mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				     MAP_SHARED, fd, 0);

	if (mem == MAP_FAILED)
		return -ENOMEM;
	if (preload_sys_madvise(mem, bytes, MADV_DONTFORK) != 0) {
		(void)preload_sys_munmap(mem, bytes);
		return -ENOMEM;
	}
	(void)preload_sys_madvise(mem, bytes, MADV_DONTDUMP);
	preload.channel = mem;
	preload.buffers = (uint8_t *)mem + RUN_CHANNEL_BYTES;
	preload.buffer_bytes = w->buffer_bytes;
	preload.min_bytes = w->min_bytes;
	return 0;
}

static int make_mark(void)
{
	void *mem = preload_new(RUN_PAGE_BYTES);

	if (!mem ||
	    preload_sys_madvise(mem, RUN_PAGE_BYTES, MADV_WIPEONFORK) != 0)
		return -ENOMEM;
	preload.is_attached = mem;
	return 0;
}

static void set_mark(void)
{
	atomic_store_explicit(preload.is_attached, 1, memory_order_relaxed);
}

static int make_tables(void)
{
	size_t set_bytes = RUN_MAPS_BYTES >> RUN_PAGE_SHIFT >> 3;

	preload.maps_used = preload_new(set_bytes);
	if (!preload.maps_used)
		return -ENOMEM;
	preload.range = make_range();
	return preload.range ? make_mark() : -ENOMEM;
}

static int give_range(int sock, int dev)
{
	struct run_range range = {.magic = RUN_MAGIC,
				  .start = (uint64_t)(uintptr_t)preload.range};
	struct run_welcome w;
	int none[FDS_MAX];
	int uffd = uffd_new(dev);
	int err;

	if (uffd < 0)
		return uffd;
	err = fds_send(sock, &range, sizeof(range), &uffd, 1, 0);
	if (!err) {
		err = receive(sock, &w, none);
		close_both(none);
	}
	(void)close(uffd);
	return err;
}

static int attach(enum run_hello_kind kind)
{
	struct run_welcome w;
	int fd[FDS_MAX];
	int sock = connect_pager();
	int err;

	if (sock < 0)
		return sock;
	err = say_hello(sock, kind, &w, fd);
	if (!err)
		err = map_share(fd[0], &w);
	if (!err && kind == RUN_HELLO_NEW) {
		err = make_tables();
		if (!err)
			err = give_range(sock, w.has_uffd_dev ? fd[1] : -1);
	}
	close_both(fd);
	if (!err)
		set_mark();
	if (!err && kind == RUN_HELLO_FORKED)
		err = w.bell_page < RUN_BELL_PAGES
			      ? preload_call_self(w.bell_page)
			      : -EPROTO;
	if (!err)
		err = preload_agent_start(&preload);
	(void)close(sock);
	return err;
}

int preload_attach(const char *env)
{
	int err = parse_env(env);

	return err ? err : attach(RUN_HELLO_NEW);
}

int preload_attach_forked(void)
{
	return attach(RUN_HELLO_FORKED);
}
