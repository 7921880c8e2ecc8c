/* SPDX-License-Identifier: Apache-2.0 */
/* Becomes another user, with that user's groups and no way back. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/error.h"
#include "base/trust.h"
#include "confine_priv.h"

enum {
	GROUPS_MAX = 256,
};

/* errno tells a broken database from a missing entry. */
static struct passwd *find(const char *name)
{
	uint32_t uid;

	errno = 0;
	return trust_id_parse(name, &uid) ? getpwuid(uid) : getpwnam(name);
}

int confine_user_find(const char *name, uint32_t *uid, uint32_t *gid)
{
	const struct passwd *pw = find(name);

	if (!pw)
		return error_set(errno ? -errno : -ENOENT,
				 "there is no user '%.64s'; 'systemd-sysusers' "
				 "or 'adduser --system %.64s' makes one",
				 name, name);
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return 0;
}

static int find_group(const char *name, uint32_t *gid)
{
	const struct group *gr;

	if (trust_id_parse(name, gid))
		return 0;
	errno = 0;
	gr = getgrnam(name);
	if (!gr)
		return error_set(errno ? -errno : -ENOENT,
				 "there is no group '%.64s'", name);
	*gid = gr->gr_gid;
	return 0;
}

/* As root: without capabilities it is a user like others, who reaches what is
 * a group's as a member only. */
int user_join(const char *group)
{
	gid_t groups[GROUPS_MAX + 1];
	uint32_t gid;
	int err = find_group(group, &gid);
	int n = getgroups(GROUPS_MAX, groups);

	if (err || geteuid() != 0)
		return err;
	for (int i = 0; i < n; i++)
		if (groups[i] == gid)
			return 0;
	if (n >= 0) {
		groups[n] = gid;
		n = setgroups((size_t)n + 1, groups);
	}
	return n < 0 ? error_set(-errno, "cannot join group %s: %s", group,
				 strerror(errno))
		     : 0;
}

int user_become(const char *name)
{
	const struct passwd *pw;
	uint32_t uid, gid;
	int err = confine_user_find(name, &uid, &gid);

	if (err)
		return err;
	if (geteuid() == uid && getuid() == uid)
		return 0;
	if (geteuid() != 0)
		return error_set(-EPERM, "only root can become user %s", name);
	pw = find(name);
	/* The capabilities would be gone with the user id; capability_limit
	 * decides what becomes of them. libc does it for all threads. */
	if (!pw || prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    initgroups(pw->pw_name, gid) != 0 ||
	    setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0 ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0)
		return error_set(-errno, "cannot become user %s: %s", name,
				 strerror(errno));
	/* Who could go back has not left. */
	if (uid != 0 && (setresuid(0, 0, 0) == 0 || geteuid() != uid))
		return error_set(-EPERM, "cannot become user %s for good",
				 name);
	return 0;
}
