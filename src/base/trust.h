/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose processes may take part in a rack. Processes of the same user and of
 * root always may; root trusts root alone. rack.ini can let other users in:
 * rack.user serves the rack, and members of rack.group may use it.
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

/* Reads the settings in effect; error_last() has the words. -ENOENT: there is
 * no such user or group here. */
int trust_load(struct trust *out) MUST_CHECK;

/* Whether a process of this user may be a peer. With a group every process that
 * reached the sockets may, because only members can enter their directory. */
bool trust_peer(const struct trust *t, uid_t uid);

/* A user's or group's name, or its number. */
bool trust_name_is_valid(const char *name);
/* The number of a user or group: digits, but not (uid_t)-1, which means none.
 * NULL is no number. */
bool trust_id_parse(const char *text, uint32_t *id);

#endif
