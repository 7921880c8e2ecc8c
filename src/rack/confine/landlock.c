/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files, by landlock: what every daemon reads (libraries that libc loads later,
 * names of hosts, certificates, /proc and /sys) and what the caller names. No
 * rule allows a program to be executed.
 *
 * The numbers are the kernel's; Debian's header is older than they are.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "confine_priv.h"

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule	    445
#define SYS_landlock_restrict_self  446
#endif

enum {
	CREATE_VERSION = 1,
	RULE_PATH_BENEATH = 1,
};

enum access {
	EXECUTE = 1u << 0,
	WRITE_FILE = 1u << 1,
	READ_FILE = 1u << 2,
	READ_DIR = 1u << 3,
	REMOVE_DIR = 1u << 4,
	REMOVE_FILE = 1u << 5,
	MAKE_CHAR = 1u << 6,
	MAKE_DIR = 1u << 7,
	MAKE_REG = 1u << 8,
	MAKE_SOCK = 1u << 9,
	MAKE_FIFO = 1u << 10,
	MAKE_BLOCK = 1u << 11,
	MAKE_SYM = 1u << 12,
	REFER = 1u << 13,     /* version 2 */
	TRUNCATE = 1u << 14,  /* version 3 */
	IOCTL_DEV = 1u << 15, /* version 5 */

	ACCESS_FIRST = REFER - 1,
	ACCESS_FILE = WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV,
};

enum scope { /* version 6 */
	SCOPE_ABSTRACT_SOCKET = 1u << 0,
	SCOPE_SIGNAL = 1u << 1,
};

struct ruleset {
	uint64_t files;
	uint64_t net;	 /* version 4 */
	uint64_t scoped; /* version 6 */
};

struct rule {
	uint64_t allowed;
	int32_t parent_fd;
} __attribute__((packed));

static const struct confine_path common[] = {
	{CONFINE_READ, "/usr"},
	{CONFINE_READ, "/lib"},
	{CONFINE_READ, "/lib64"},
	{CONFINE_READ, "/etc/ld.so.cache"},
	{CONFINE_READ, "/etc/hosts"},
	{CONFINE_READ, "/etc/host.conf"},
	{CONFINE_READ, "/etc/resolv.conf"},
	{CONFINE_READ, "/etc/nsswitch.conf"},
	{CONFINE_READ, "/etc/gai.conf"},
	{CONFINE_READ, "/etc/services"},
	{CONFINE_READ, "/etc/passwd"},
	{CONFINE_READ, "/etc/group"},
	{CONFINE_READ, "/etc/localtime"},
	{CONFINE_READ, "/etc/ssl"},
	{CONFINE_READ, "/etc/gnutls"},
	{CONFINE_READ, "/etc/ca-certificates"},
	{CONFINE_READ, "/etc/libibverbs.d"},
	{CONFINE_READ, "/proc"},
	{CONFINE_READ, "/sys"},
	{CONFINE_READ, "/dev/urandom"},
	{CONFINE_DEVICE, "/dev/null"},
	{CONFINE_DEVICE, "/dev/infiniband"},
	{CONFINE_READ, CONFINE_SANITIZED ? "/" : "/etc/aquifer"},
};

static uint64_t access_of(enum confine_use use)
{
	switch (use) {
	case CONFINE_READ:
		return READ_FILE | READ_DIR;
	case CONFINE_DEVICE:
		return READ_FILE | READ_DIR | WRITE_FILE | IOCTL_DEV;
	case CONFINE_WRITE:
		return READ_FILE | READ_DIR | WRITE_FILE | TRUNCATE | MAKE_REG |
		       MAKE_SOCK | MAKE_DIR | REMOVE_FILE | REMOVE_DIR | REFER;
	case CONFINE_SOCKET:
		return MAKE_SOCK | REMOVE_FILE;
	case CONFINE_LIST:
		return READ_DIR;
	}
	return 0;
}

int confine_landlock_version(void)
{
	long version =
		syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_VERSION);

	return version > 0 ? (int)version : 0;
}

static uint64_t known_files(int version)
{
	return ACCESS_FIRST | (version >= 2 ? REFER : 0) |
	       (version >= 3 ? TRUNCATE : 0) | (version >= 5 ? IOCTL_DEV : 0);
}

static int add(int ruleset_fd, uint64_t known, const struct confine_path *p)
{
	struct rule rule = {.allowed = access_of(p->use) & known};
	struct stat st;
	int err = 0;

	rule.parent_fd = open(p->path, O_PATH | O_CLOEXEC);
	if (rule.parent_fd < 0) /* what is not there cannot be opened */
		return errno == ENOENT || errno == EACCES || errno == ENOTDIR
			       ? 0
			       : error_set(-errno, "%s: %s", p->path,
					   strerror(errno));
	if (fstat(rule.parent_fd, &st) == 0 && !S_ISDIR(st.st_mode))
		rule.allowed &= ACCESS_FILE;
	if (syscall(SYS_landlock_add_rule, ruleset_fd, RULE_PATH_BENEATH, &rule,
		    0) != 0)
		err = error_set(-errno, "landlock: %s: %s", p->path,
				strerror(errno));
	(void)close(rule.parent_fd); /* only a name */
	return err;
}

int landlock_start(const struct confine *c)
{
	int version = confine_landlock_version(), fd, err = 0;
	struct ruleset set = {.files = known_files(version),
			      .scoped = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL};
	/* Old kernels refuse bytes that they do not know. */
	size_t len = version >= 6   ? sizeof(set)
		     : version >= 4 ? offsetof(struct ruleset, scoped)
				    : offsetof(struct ruleset, net);

	if (!version)
		return error_set(-EOPNOTSUPP, "the kernel has none, or it is "
					      "switched off");
	fd = (int)syscall(SYS_landlock_create_ruleset, &set, len, 0);
	if (fd < 0)
		return error_set(-errno, "landlock: %s", strerror(errno));
	for (unsigned i = 0; !err && i < ARRAY_LEN(common); i++)
		err = add(fd, set.files, &common[i]);
	for (unsigned i = 0; !err && i < c->path_count; i++)
		err = add(fd, set.files, &c->paths[i]);
	if (!err && syscall(SYS_landlock_restrict_self, fd, 0) != 0)
		err = error_set(-errno, "landlock: %s", strerror(errno));
	(void)close(fd); /* the rules are in force without it */
	return err;
}
