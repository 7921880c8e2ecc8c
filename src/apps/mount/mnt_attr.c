/* SPDX-License-Identifier: Apache-2.0 */
/* Extended attributes: what the controller says of a name. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/client.h"
#include "mnt_priv.h"

#define LEASE "user.aquifer.lease"
#define MAP   "user.aquifer.map"

static int ask(struct mnt *m, const char *route, const char *name, json_t **out)
{
	char path[AQ_NAME_MAX + 16];
	struct timespec now;
	uint64_t deadline_ns;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	deadline_ns = (uint64_t)now.tv_sec * 1000000000u +
		      (uint64_t)now.tv_nsec +
		      aq_rack_deadline(m->rack) * 1000000ull;
	(void)snprintf(path, sizeof(path), "%s%s", route,
		       strcmp(name, "/") == 0 ? "" : name);
	return client_control_call(m->rack, "GET", path, NULL, deadline_ns,
				   out);
}

/* The lease, with what else is known; without what lies below. */
static int lease_text(struct mnt *m, const char *name, char **out)
{
	json_t *all = NULL;
	int err = ask(m, "/v1/ns", name, &all);

	if (!err) {
		(void)json_object_del(all, "entries");
		*out = json_dumps(all, JSON_COMPACT);
		err = *out ? 0 : -ENOMEM;
	}
	json_decref(all);
	return err;
}

/* The blocks and where they are; the ticket is for whoever opens it. */
static int map_text(struct mnt *m, const char *name, char **out)
{
	json_t *all = NULL;
	int err = ask(m, "/v1/map", name, &all);

	if (!err) {
		(void)json_object_del(all, "ticket");
		*out = json_dumps(all, JSON_COMPACT);
		err = *out ? 0 : -ENOMEM;
	}
	json_decref(all);
	return err;
}

int mnt_getxattr(const char *path, const char *name, char *value, size_t room)
{
	struct mnt *m = fuse_get_context()->private_data;
	char at[AQ_NAME_MAX], *text = NULL;
	size_t len;
	int err = mnt_name(m, path, at);

	if (!err && strcmp(name, LEASE) == 0)
		err = lease_text(m, at, &text);
	else if (!err && strcmp(name, MAP) == 0)
		err = map_text(m, at, &text);
	else if (!err)
		err = -ENODATA;
	if (err)
		return err == -EISDIR ? -ENODATA : err;
	len = strlen(text);
	if (room && len > room)
		err = -ERANGE;
	else if (room)
		memcpy(value, text, len);
	free(text);
	return err ? err : (int)len;
}

int mnt_listxattr(const char *path, char *list, size_t room)
{
	static const char lease[] = LEASE, both[] = LEASE "\0" MAP;
	struct mnt *m = fuse_get_context()->private_data;
	struct aq_name found;
	char at[AQ_NAME_MAX];
	bool is_folder;
	size_t len;
	int err = mnt_name(m, path, at);

	is_folder = strcmp(path, "/") == 0;
	if (!err && !is_folder) {
		err = aq_name_stat(m->rack, at, &found);
		is_folder = !err && found.kind == AQ_NAME_FOLDER;
	}
	if (err)
		return err;
	len = is_folder ? sizeof(lease) : sizeof(both);
	if (room && len > room)
		return -ERANGE;
	if (room)
		memcpy(list, is_folder ? lease : both, len);
	return (int)len;
}
