/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose processes may take part in a rack. One's own and root's always; root
 * trusts root alone. What crosses users is said in rack.ini: rack.user serves
 * the rack, and members of rack.group may use it.
 */
#ifndef AQ_TRUST_H
#define AQ_TRUST_H

#include <sys/types.h>

#include "base.h"

struct trust {
	uid_t self;
	bool has_user;
	uid_t user;
	bool has_group;
	gid_t group;
};

/* From the settings in effect; error_last() has the words. -ENOENT: there is no
 * such user or group here. */
int trust_load(struct trust *out) MUST_CHECK;

/* Whether a process of this user may be a peer. With a group everybody may who
 * got as far as the sockets: their directory is open to its members only. */
bool trust_peer(const struct trust *t, uid_t uid);

/* Whether what this user has put into the rack's directory is the rack's own:
 * files of daemons, and sockets that they listen on. Members of the group may
 * write to that directory, but only use the rack. */
bool trust_serves(const struct trust *t, uid_t uid);

/* A user's or group's name, or its number. */
bool trust_name_is_valid(const char *name);
/* The number of a user or group: digits, and not the one that means none. NULL
 * is none. */
bool trust_id_parse(const char *text, uint32_t *id);

#endif
