/* SPDX-License-Identifier: Apache-2.0 */
/* Programs that cannot be far: known before they start, or told at the end. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/complaint.h"
#include "exe.h"
#include "near.h"
#include "uffd.h"

/* NULL: nothing is known against it. */
static const char *why_not(const struct run_options *o, const char *program)
{
	char path[PATH_MAX];

	if (!exe_find(program, path, sizeof(path)))
		return NULL;
	return exe_why(exe_look(path, o->user->uid, o->user->gid));
}

int run_strict_check(const struct run_options *options, const char *program,
		     char text[RUN_TEXT_MAX])
{
	const char *why = options->is_strict ? why_not(options, program) : NULL;

	if (!why)
		return 0;
	(void)snprintf(text, RUN_TEXT_MAX,
		       "--strict: '%.60s' would have local memory only, "
		       "because %s; run it without --strict, or in a cgroup "
		       "with a limit",
		       program, why);
	return -EOPNOTSUPP;
}

/* ---- rights ------------------------------------------------------------- */

/* 0, or why no userfaultfd as ours is to be had. */
static int try_uffd(void)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? -errno : run_uffd_enable(fd);

	if (fd >= 0)
		(void)close(fd); /* was not used */
	return err;
}

static bool may_trace(void)
{
	struct __user_cap_header_struct h = {
		.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct d[2] = {{0}};

	return syscall(SYS_capget, &h, d) == 0 &&
	       (d[0].effective & 1u << CAP_SYS_PTRACE);
}

int run_rights_check(const struct run_options *options, char text[RUN_TEXT_MAX])
{
	int err = try_uffd();

	if (err != -EPERM && err != -EACCES && err != -ENOSYS)
		return 0; /* it works, or fails for a reason that is told */
	(void)snprintf(text, RUN_TEXT_MAX, "%s%s",
		       options->is_strict ? "--strict: " : "",
		       may_trace() || err == -ENOSYS
			       ? "a filter of system calls, or this kernel, "
				 "forbids userfaultfd, so memory stays local; "
				 "allow it in the container's seccomp profile"
			       : "CAP_SYS_PTRACE is missing, so memory stays "
				 "local and the limit is not kept; use 'sudo "
				 "aquifer run ...', the program stays yours "
				 "(vm.unprivileged_userfaultfd is not enough)");
	if (options->is_strict)
		return err;
	complain(0, "run: %s", text);
	text[0] = '\0';
	return 0;
}

void run_near_finish(const struct run_options *options,
		     struct run_shared *shared, const char *program,
		     uint64_t most_bytes)
{
	struct run_near *near = &shared->near;
	const char *why;

	if (atomic_load_explicit(&shared->stats.spaces_ever,
				 memory_order_relaxed) ||
	    most_bytes <= near->bytes)
		return;
	why = why_not(options, program);
	near->bytes = most_bytes;
	(void)snprintf(near->text, sizeof(near->text),
		       "of '%.60s' was not far, because %s", program,
		       why ? why : near_why(NEAR_UNATTACHED));
	near_clean(near->text);
}
