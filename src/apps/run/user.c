/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a program runs as. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/trust.h"
#include "run.h"

/* Those that the user has after a login; a user without a name has one. */
static int find_groups(const char *name, struct run_user *u)
{
	int n = 0;

	if (name)
		(void)getgrouplist(name, u->gid, NULL, &n);
	n = n > 0 ? n : 1;
	u->groups = calloc((size_t)n, sizeof(*u->groups));
	if (!u->groups)
		return error_set(-ENOMEM, "no memory for groups");
	u->groups[0] = u->gid;
	u->group_count = n;
	if (name && getgrouplist(name, u->gid, u->groups, &u->group_count) < 0)
		return error_set(-EAGAIN, "the groups of %s change", name);
	return 0;
}

static int find_named(const char *name, struct run_user *u)
{
	const struct passwd *pw = getpwnam(name);
	uint32_t uid;

	if (!pw && trust_id_parse(name, &uid))
		pw = getpwuid(uid);
	if (!pw)
		return error_set(-ENOENT, "there is no user '%s'", name);
	u->uid = pw->pw_uid;
	u->gid = pw->pw_gid;
	if (u->uid == geteuid())
		return 0;
	if (geteuid() != 0)
		return error_set(-EPERM, "only root can run a program as %s",
				 name);
	u->is_other = true;
	return find_groups(pw->pw_name, u);
}

/* A variable that cannot be understood is an error: the alternative is root. */
static int find_sudo(const char *text, struct run_user *u)
{
	const char *gid = secure_getenv("SUDO_GID");
	const struct passwd *pw;

	if (!trust_id_parse(text, &u->uid))
		return error_set(-EINVAL, "SUDO_UID=%s is no user's number",
				 text);
	if (u->uid == 0)
		return 0;
	u->is_other = true;
	pw = getpwuid(u->uid);
	if (pw)
		u->gid = pw->pw_gid;
	if (gid ? !trust_id_parse(gid, &u->gid) : !pw)
		return error_set(-EINVAL, "SUDO_GID=%s is no group's number",
				 gid ? gid : "");
	return find_groups(pw ? pw->pw_name : NULL, u);
}

int run_user_find(const char *name, struct run_user *out)
{
	const char *sudo = secure_getenv("SUDO_UID");
	struct run_user u = {.uid = geteuid(), .gid = getegid()};
	int err = 0;

	if (name)
		err = find_named(name, &u);
	else if (sudo && getuid() == 0 && geteuid() == 0)
		err = find_sudo(sudo, &u);
	if (err)
		run_user_release(&u);
	else
		*out = u;
	return err;
}

void run_user_release(struct run_user *u)
{
	free(u->groups);
	u->groups = NULL;
}

int run_user_become(const struct run_user *u)
{
	uid_t r, e, s;

	if (!u->is_other)
		return 0;
	/* Capabilities go with the last uid of root. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (prctl(PR_SET_KEEPCAPS, 0) != 0 ||
	    setgroups((size_t)u->group_count, u->groups) != 0 ||
	    setresgid(u->gid, u->gid, u->gid) != 0 ||
	    setresuid(u->uid, u->uid, u->uid) != 0 ||
	    getresuid(&r, &e, &s) != 0)
		return -errno;
	/* Not trusted blindly: the program would be root. */
	if (r != u->uid || e != u->uid || s != u->uid || setuid(0) == 0)
		return -EPERM;
	return 0;
}
