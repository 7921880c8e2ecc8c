/* SPDX-License-Identifier: Apache-2.0 */
/* Attaching to the pager: range, userfaultfd, channel, and again after fork. */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload.h"

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif

struct fds {
	int fd[2];
	unsigned count;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "<socket name> <token>" */
static int parse_env(const char *env)
{
	const char *space = strchr(env, ' ');
	size_t n;

	if (!space)
		return -EINVAL;
	n = (size_t)(space - env);
	if (n == 0 || n >= sizeof(preload.socket_name) ||
	    strlen(space + 1) != 2 * RUN_TOKEN_BYTES)
		return -EINVAL;
	memcpy(preload.socket_name, env, n);
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
	size_t n = strlen(preload.socket_name);
	struct timeval wait = {.tv_sec = 10};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int err;

	if (fd < 0)
		return -errno;
	memcpy(sa.sun_path + 1, preload.socket_name, n); /* abstract */
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
	if (connect(fd, (struct sockaddr *)&sa,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				n)) == 0)
		return fd;
	err = -errno;
	(void)close(fd);
	return err;
}

static int receive(int sock, struct run_welcome *w, struct fds *fds)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec iov = {w, sizeof(*w)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	struct cmsghdr *c;
	ssize_t n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);

	fds->count = 0;
	if (n != sizeof(*w) || w->magic != RUN_MAGIC)
		return n < 0 ? -errno : -EPROTO;
	c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS) {
		fds->count =
			(unsigned)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds->fd, CMSG_DATA(c), fds->count * sizeof(int));
	}
	return w->err;
}

static int send_hello(int sock, struct run_hello *hello, const int *fd,
		      unsigned count)
{
	union {
		char bytes[CMSG_SPACE(2 * sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {hello, sizeof(*hello)};
	struct msghdr msg = {.msg_iov = &iov,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = CMSG_SPACE(count * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	hello->magic = RUN_MAGIC;
	memcpy(hello->token, preload.token, RUN_TOKEN_BYTES);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fd, count * sizeof(int));
	if (sendmsg(sock, &msg, MSG_NOSIGNAL) != sizeof(*hello))
		return -EIO;
	return 0;
}

static int uffd_new(int dev)
{
	int fd = dev >= 0 ? ioctl(dev, USERFAULTFD_IOC_NEW, O_CLOEXEC) : -1;

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* Faults of system calls must be served too, and children made by fork: both
 * are privileges, and without them far memory would not be safe. */
static int uffd_open(int dev, uint64_t *features)
{
	struct uffdio_api api = {.api = UFFD_API};
	uint64_t need = UFFD_FEATURE_EVENT_FORK | UFFD_FEATURE_THREAD_ID |
			UFFD_FEATURE_PAGEFAULT_FLAG_WP;
	struct uffdio_register reg = {
		.range = {(uint64_t)(uintptr_t)preload.range, RUN_RANGE_BYTES},
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_WP};
	int fd = uffd_new(dev);
	int err;

	if (fd < 0)
		return fd;
	/* A first handshake without features tells all that there are. */
	if (ioctl(fd, UFFDIO_API, &api) != 0)
		goto err_errno;
	*features = api.features;
	err = -EOPNOTSUPP;
	if ((api.features & need) != need)
		goto err_close;
	(void)close(fd);
	fd = uffd_new(dev);
	if (fd < 0)
		return fd;
	api = (struct uffdio_api){.api = UFFD_API, .features = need};
	if (ioctl(fd, UFFDIO_API, &api) != 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &reg) != 0)
		goto err_errno;
	err = -EOPNOTSUPP;
	if (!(reg.ioctls & (1ull << _UFFDIO_WRITEPROTECT)))
		goto err_close;
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
err_errno:
	err = -errno;
err_close:
	(void)close(fd);
	return err;
}

static uint8_t *make_range(void)
{
	size_t bytes = RUN_RANGE_BYTES + RUN_RANGE_ALIGN;
	uint8_t *mem = preload_sys_mmap(
		NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	uint8_t *start;

	if (mem == MAP_FAILED)
		return NULL;
	start = (uint8_t *)align_up((uintptr_t)mem, RUN_RANGE_ALIGN);
	if (start != mem)
		(void)preload_sys_munmap(mem, (size_t)(start - mem));
	(void)preload_sys_munmap(
		start + RUN_RANGE_BYTES,
		(size_t)(mem + bytes - (start + RUN_RANGE_BYTES)));
	(void)preload_sys_madvise(start, RUN_RANGE_BYTES, MADV_NOHUGEPAGE);
	(void)preload_sys_madvise(start, RUN_RANGE_BYTES, MADV_DONTDUMP);
	return start;
}

/* The channel at its old place or, with NULL, at a new one; -errno or its
 * descriptor. */
static int make_channel(void)
{
	void *at = preload.channel;
	int fd = memfd_create("aquifer-run-channel", MFD_CLOEXEC);
	void *mem;

	if (fd < 0)
		return -errno;
	if (ftruncate(fd, RUN_CHANNEL_BYTES) != 0)
		goto err_close;
	mem = preload_sys_mmap(at, RUN_CHANNEL_BYTES, PROT_READ | PROT_WRITE,
			       MAP_SHARED | (at ? MAP_FIXED : 0), fd, 0);
	if (mem == MAP_FAILED)
		goto err_close;
	preload.channel = mem;
	return fd;
err_close:
	(void)close(fd);
	return -ENOMEM;
}

static int map_trays(int fd, const struct run_welcome *w)
{
	size_t set_bytes = RUN_MAPS_BYTES >> RUN_PAGE_SHIFT >> 3;

	preload.tray_bytes = w->tray_bytes;
	preload.min_bytes = w->min_bytes;
	preload.trays = preload_sys_mmap(
		NULL, w->tray_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	preload.maps_used = preload_sys_mmap(
		NULL, 2 * set_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	preload.maps_foreign = preload.maps_used + set_bytes / 8;
	preload.range = make_range();
	if (preload.trays == MAP_FAILED || preload.maps_used == MAP_FAILED ||
	    !preload.range)
		return -ENOMEM;
	return 0;
}

static int say_hello(int sock, int dev)
{
	struct run_hello hello = {.kind = RUN_HELLO_NEW};
	struct run_welcome w;
	struct fds none;
	int fd[2];
	int err;

	fd[0] = uffd_open(dev, &hello.features);
	if (fd[0] < 0)
		return fd[0];
	fd[1] = make_channel();
	err = fd[1];
	if (err < 0)
		goto out_uffd;
	hello.range_start = (uint64_t)(uintptr_t)preload.range;
	err = send_hello(sock, &hello, fd, 2);
	if (!err)
		err = receive(sock, &w, &none);
	(void)close(fd[1]);
out_uffd:
	(void)close(fd[0]);
	return err;
}

int preload_attach(const char *env)
{
	struct run_welcome w;
	struct fds fds;
	int err = parse_env(env);
	int sock;

	if (err)
		return err;
	sock = connect_pager();
	if (sock < 0)
		return sock;
	err = receive(sock, &w, &fds);
	if (!err && fds.count == 2)
		err = map_trays(fds.fd[0], &w);
	else if (!err)
		err = -EPROTO;
	if (!err)
		err = say_hello(sock, w.has_uffd_dev ? fds.fd[1] : -1);
	if (!err)
		err = preload_agent_start(&preload);
	for (unsigned i = 0; i < fds.count; i++)
		(void)close(fds.fd[i]);
	(void)close(sock);
	return err;
}

int preload_attach_forked(void)
{
	struct run_hello hello = {.kind = RUN_HELLO_FORKED,
				  .range_start =
					  (uint64_t)(uintptr_t)preload.range};
	struct run_welcome w;
	struct fds fds;
	int sock = connect_pager();
	int channel, err;

	if (sock < 0)
		return sock;
	err = receive(sock, &w, &fds);
	for (unsigned i = 0; i < fds.count; i++)
		(void)close(fds.fd[i]);
	channel = err ? err : make_channel();
	if (channel < 0) {
		err = channel;
		goto out;
	}
	err = send_hello(sock, &hello, &channel, 1);
	if (!err)
		err = receive(sock, &w, &fds);
	(void)close(channel);
	if (!err)
		err = preload_call(RUN_CALL_SELF, NULL, 0);
	if (!err)
		err = preload_agent_start(&preload);
out:
	(void)close(sock);
	return err;
}
