/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a daemon gives things up. */
#include "confine.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/log.h"
#include "confine_priv.h"

int confine_add(struct confine *c, enum confine_use use, const char *path)
{
	if (!path || !path[0])
		return 0;
	if (c->path_count == CONFINE_PATH_MAX)
		return error_set(-ENOSPC, "more than %d files and directories",
				 CONFINE_PATH_MAX);
	c->paths[c->path_count++] = (struct confine_path){use, path};
	return 0;
}

/* An RDMA device pins memory; what root could without a limit must go on. */
static void keep_pinning(void)
{
	const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_MEMLOCK, &all); /* who may not has its limit */
}

int confine_become(const struct confine *c)
{
	uint64_t keep = confine_capabilities(c);
	int err;

	keep_pinning();
	err = capability_bound(keep);
	if (!err && c->user)
		err = user_become(c->user);
	if (!err && c->group)
		err = user_join(c->group);
	return err ? err : capability_limit(keep);
}

/* What the kernel does not have is no reason not to run. */
static int unless_missing(int err, const char *what)
{
	if (err == -EOPNOTSUPP) {
		log_debug("confine", "no %s: %s", what, error_last());
		return 0;
	}
	return err;
}

int confine_thread(uint64_t keep)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return error_set(-errno, "prctl: %s", strerror(errno));
	return capability_limit(keep);
}

/* A sanitizer's own thread does no harm. */
static bool has_threads(void)
{
	struct stat st;

	/* "." and "..", and one directory for each. */
	return !CONFINE_SANITIZED && stat("/proc/self/task", &st) == 0 &&
	       st.st_nlink > 3;
}

int confine_start(const struct confine *c)
{
	int err;

	if (has_threads())
		return error_set(-EBUSY, "a thread was started before the "
					 "process was confined");
	err = confine_become(c);
	if (err)
		return err;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_DUMPABLE, CONFINE_SANITIZED, 0, 0, 0) != 0)
		return error_set(-errno, "prctl: %s", strerror(errno));
	err = unless_missing(landlock_start(c), "landlock");
	return err ? err : unless_missing(seccomp_start(c), "seccomp");
}
