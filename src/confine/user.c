/* SPDX-License-Identifier: Apache-2.0 */
/* Becomes another user, with that user's groups and no way back. */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "confine_priv.h"
#include "error.h"

int confine_user_find(const char *name, uint32_t *uid, uint32_t *gid)
{
	const struct passwd *pw;

	errno = 0;
	pw = getpwnam(name);
	if (!pw)
		return error_set(errno ? -errno : -ENOENT,
				 "there is no user '%.64s'; 'systemd-sysusers' "
				 "or 'adduser --system %.64s' makes one",
				 name, name);
	*uid = pw->pw_uid;
	*gid = pw->pw_gid;
	return 0;
}

int user_become(const char *name)
{
	uint32_t uid, gid;
	int err = confine_user_find(name, &uid, &gid);

	if (err)
		return err;
	if (geteuid() == uid && getuid() == uid)
		return 0;
	if (geteuid() != 0)
		return error_set(-EPERM, "only root can become user %s", name);
	/* The capabilities would be gone with the user id; capability_limit
	 * decides what becomes of them. libc does it for all threads. */
	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 ||
	    initgroups(name, gid) != 0 || setresgid(gid, gid, gid) != 0 ||
	    setresuid(uid, uid, uid) != 0 ||
	    prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0) != 0)
		return error_set(-errno, "cannot become user %s: %s", name,
				 strerror(errno));
	/* Who could go back has not left. */
	if (uid != 0 && (setresuid(0, 0, 0) == 0 || geteuid() != uid))
		return error_set(-EPERM, "cannot become user %s for good",
				 name);
	return 0;
}
