/* SPDX-License-Identifier: Apache-2.0 */
/* What a process needs before it becomes a program of a group. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/config.h"
#include "base/error.h"
#include "base/fds.h"
#include "coherent/channel.h"
#include "coherent/server.h"
#include "sharedd.h"
#include "wire/coherence_wire.h"

enum {
	GROUP_MAX = 15,
	COPIES_MAX = 2,
	SOCKET_PATH_MAX = 108,
	PATIENCE_MS = 10000, /* with a server that is busy */
};

/* A filter looks at 32 bits at a time: the upper half of an address of the
 * window begins with this. */
#define WINDOW_UPPER (COHERENCE_BASE >> 32)
#define WINDOW_MASK  (~(uint32_t)((COHERENCE_WINDOW >> 32) - 1))

STATIC_ASSERT(COHERENCE_BASE % COHERENCE_WINDOW == 0,
	      "a mask decides whether an address is in the window");

static int check_group(const struct shd_group *group)
{
	const char *name = group->name;
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	if (!group->copies || group->copies > COPIES_MAX)
		return error_set(-EINVAL, "shared memory has 1 or %d copies",
				 COPIES_MAX);
	return n && n <= GROUP_MAX && !name[n] && name[0] != '-'
		       ? 0
		       : error_set(-EINVAL,
				   "a group's name has 1 to %d letters, "
				   "digits, '-' and '_', and does not begin "
				   "with '-'",
				   GROUP_MAX);
}

/* Hands over futex calls whose first argument is in the window. The descriptor
 * on which they come, or -errno. */
static int make_filter(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 6),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, args) + 4),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, WINDOW_MASK),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, WINDOW_UPPER, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = ARRAY_LEN(code), .filter = code};
	int fd;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -errno;
	fd = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER,
			  SECCOMP_FILTER_FLAG_NEW_LISTENER |
				  SECCOMP_FILTER_FLAG_SPEC_ALLOW,
			  &program);
	return fd < 0 ? -errno : fd;
}

/* A filter with a listener above us is one of ours where we are a program of a
 * group already: it does the same. */
static int listen_for(int sock)
{
	uint64_t word[2] = {0, 0};
	struct coherent_ask ask = {.magic = COHERENT_MAGIC,
				   .kind = COHERENT_LISTEN,
				   .va = (uint64_t)(uintptr_t)word};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	struct coherent_answer a;
	unsigned count;
	int fd = make_filter(), err;

	if (fd == -EBUSY && getenv(COHERENT_ENV))
		return 0;
	if (fd < 0)
		return error_set(fd,
				 "no filter of system calls (%s), so threads "
				 "could not sleep on shared memory",
				 strerror(-fd));
	err = fds_send(sock, &ask, sizeof(ask), &fd, 1, 0);
	(void)close(fd);
	if (!err && poll(&p, 1, PATIENCE_MS) != 1)
		err = -ETIMEDOUT;
	if (!err)
		err = fds_receive(sock, &a, sizeof(a), NULL, 0, &count, 0);
	if (!err)
		err = a.err;
	return err ? error_set(err,
			       "the cache server cannot look into this "
			       "program (%s), so threads could not sleep on "
			       "shared memory",
			       strerror(-err))
		   : 0;
}

static int name_place(const char *rack, const struct shd_group *group)
{
	char path[SOCKET_PATH_MAX], text[SOCKET_PATH_MAX + GROUP_MAX + 4];
	int err = coherent_server_path(rack, path, sizeof(path));

	if (err)
		return err;
	(void)snprintf(text, sizeof(text), "%s %s %u", path, group->name,
		       group->copies);
	return setenv(COHERENT_ENV, text, 1) == 0 ? 0 : -errno;
}

static int join(const char *rack, const struct shd_group *group)
{
	int sock, err = coherent_server_connect(rack, &sock);

	if (err)
		return err;
	err = listen_for(sock);
	(void)close(sock);
	return err ? err : name_place(rack, group);
}

int shd_launch_join(const struct shd_group *group)
{
	struct config *config;
	int err = check_group(group);

	if (!err)
		err = config_open(NULL, &config);
	if (err)
		return err;
	err = join(config_string(config, "rack", "name"), group);
	config_destroy(config);
	return err;
}
