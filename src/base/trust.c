/* SPDX-License-Identifier: Apache-2.0 */
/* Reads who is trusted; where it counts are rundir.c and the ends of cables. */
#include "trust.h"

#include <ctype.h>
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "error.h"

enum {
	NAME_MAX_CHARS = 64,
	ENTRY_BYTES = 1 << 16, /* a group may have many members */
};

bool trust_name_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz"
				"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@$");

	return n <= NAME_MAX_CHARS && name[n] == 0;
}

bool trust_id_parse(const char *text, uint32_t *id)
{
	unsigned long long v;
	char *end;

	if (!text || !isdigit((unsigned char)*text))
		return false;
	errno = 0;
	v = strtoull(text, &end, 10);
	/* The largest means "nobody in particular" to system calls. */
	if (errno || *end || v >= UINT32_MAX)
		return false;
	*id = (uint32_t)v;
	return true;
}

static int find_user(const char *name, char *room, uid_t *uid)
{
	struct passwd entry, *found = NULL;
	int err;

	if (trust_id_parse(name, uid))
		return 0;
	err = getpwnam_r(name, &entry, room, ENTRY_BYTES, &found);
	if (!found)
		return error_set(err ? -err : -ENOENT,
				 "rack.user is %s: there is no such user here",
				 name);
	*uid = found->pw_uid;
	return 0;
}

static int find_group(const char *name, char *room, gid_t *gid)
{
	struct group entry, *found = NULL;
	int err;

	if (trust_id_parse(name, gid))
		return 0;
	err = getgrnam_r(name, &entry, room, ENTRY_BYTES, &found);
	if (!found)
		return error_set(err ? -err : -ENOENT,
				 "rack.group is %s: there is no such group "
				 "here",
				 name);
	*gid = found->gr_gid;
	return 0;
}

static int find_both(const char *user, const char *group, struct trust *t)
{
	char *room = malloc(ENTRY_BYTES);
	int err = 0;

	if (!room)
		return -ENOMEM;
	t->has_user = user[0];
	t->has_group = group[0];
	if (t->has_user)
		err = find_user(user, room, &t->user);
	if (!err && t->has_group)
		err = find_group(group, room, &t->group);
	free(room);
	return err;
}

int trust_load(struct trust *out)
{
	struct trust t = {.self = geteuid()};
	const char *user, *group;
	struct config *config;
	int err = config_open(NULL, &config);

	if (err)
		return err;
	user = config_string(config, "rack", "user");
	group = config_string(config, "rack", "group");
	/* Who asks for nothing needs no look at the user database. */
	if (user[0] || group[0])
		err = find_both(user, group, &t);
	config_destroy(config);
	if (!err)
		*out = t;
	return err;
}

bool trust_serves(const struct trust *t, uid_t uid)
{
	return uid == t->self || uid == 0 || (t->has_user && uid == t->user);
}

bool trust_peer(const struct trust *t, uid_t uid)
{
	return trust_serves(t, uid) || t->has_group;
}
