/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, makes and replaces the tokens of a rack. */
#include "rack_token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "error.h"
#include "log.h"
#include "statedir.h"

static const struct {
	const char *name;
	const char *setting;
	const char *variable;
} kinds[RACK_TOKEN_KINDS] = {
	[RACK_TOKEN_DEFAULT] = {"token", "token_file", "AQUIFER_TOKEN"},
	[RACK_TOKEN_ADMIN] = {"admin-token", "admin_token_file",
			      "AQUIFER_ADMIN_TOKEN"},
	[RACK_TOKEN_ENGINE] = {"engine-token", "engine_token_file",
			       "AQUIFER_ENGINE_TOKEN"},
	[RACK_TOKEN_NODE] = {"node-token", "node_token_file",
			     "AQUIFER_NODE_TOKEN"},
};

const char *rack_token_name(enum rack_token_kind kind)
{
	return kinds[kind].name;
}

const char *rack_token_setting(enum rack_token_kind kind)
{
	return kinds[kind].setting;
}

const char *rack_token_given(const struct rack_token_place *place,
			     enum rack_token_kind kind)
{
	return place->config ? config_string(place->config, "rack",
					     kinds[kind].setting)
			     : "";
}

static int join(char path[RACK_TOKEN_PATH_MAX], const char *dir,
		const char *name)
{
	int len = snprintf(path, RACK_TOKEN_PATH_MAX, "%s%s%s", dir,
			   name[0] ? "/" : "", name);

	return len < 0 || len >= RACK_TOKEN_PATH_MAX
		       ? error_set(-ENAMETOOLONG, "%s is too long", dir)
		       : 0;
}

int rack_token_kept(const struct rack_token_place *place,
		    enum rack_token_kind kind, char path[RACK_TOKEN_PATH_MAX])
{
	const char *given = rack_token_given(place, kind);
	char state[STATEDIR_PATH_MAX];
	int err;

	if (given[0])
		return join(path, given, "");
	err = statedir_path(place->rack, state);
	return err ? err : join(path, state, kinds[kind].name);
}

/* ---- for programs ------------------------------------------------------- */

int rack_token_find(const struct rack_token_place *place,
		    enum rack_token_kind kind, char text[SECRET_TEXT],
		    char from[RACK_TOKEN_PATH_MAX])
{
	const char *variable = secure_getenv(kinds[kind].variable);
	const char *given = rack_token_given(place, kind);
	char path[RACK_TOKEN_PATH_MAX];
	int err;

	if (variable && variable[0]) {
		if (!secret_is_valid(variable))
			return error_set(-EINVAL,
					 "%s is no token of %d lower-case hex "
					 "digits",
					 kinds[kind].variable, SECRET_CHARS);
		memcpy(text, variable, SECRET_TEXT);
		return from ? join(from, kinds[kind].variable, "") : 0;
	}
	if (given[0]) {
		err = secret_read(given, text);
		if (err)
			return error_prefix(err == -EPERM ? err : -EINVAL,
					    "rack.%s: ", kinds[kind].setting);
		return from ? join(from, given, "") : 0;
	}
	err = join(path, place->rundir, kinds[kind].name);
	if (!err)
		err = secret_read_runtime(path, text);
	if (err)
		return error_prefix(err == -EBADMSG ? -EINVAL : err,
				    "the token cannot be read: ");
	return from ? join(from, path, "") : 0;
}

/* ---- for daemons -------------------------------------------------------- */

/* The copy is the last of what changes: who reads it finds a token that is kept
 * already. */
static int publish(const struct rack_token_place *place,
		   enum rack_token_kind kind, const char *text)
{
	char path[RACK_TOKEN_PATH_MAX], now[SECRET_TEXT];
	int err = join(path, place->rundir, kinds[kind].name);

	if (err)
		return err;
	err = secret_read_runtime(path, now);
	if (!err && strcmp(now, text) == 0)
		return 0;
	/* What somebody else has put there is shown, not covered up. */
	if (err && err != -ENOENT && err != -EBADMSG)
		return err;
	return secret_replace(path, text);
}

/* The token of a release that had it in the runtime directory only, or a new
 * one. */
static int make(const struct rack_token_place *place, enum rack_token_kind kind,
		const char *kept)
{
	char path[RACK_TOKEN_PATH_MAX], text[SECRET_TEXT];
	int err = join(path, place->rundir, kinds[kind].name);

	if (!err)
		err = secret_read_runtime(path, text);
	if (err == -ENOENT)
		err = secret_make(text);
	if (!err)
		err = secret_create(kept, text);
	secret_forget(text);
	return err == -EEXIST ? 0 : err; /* another daemon was faster */
}

/* Without a state directory the copy is all there is, as in earlier releases.
 */
static int find_kept(const struct rack_token_place *place,
		     enum rack_token_kind kind, char kept[RACK_TOKEN_PATH_MAX])
{
	char state[STATEDIR_PATH_MAX];

	if (rack_token_given(place, kind)[0] ||
	    statedir_make(place->rack, state) == 0)
		return rack_token_kept(place, kind, kept);
	log_warn("token", "%s; the %s does not survive a reboot", error_last(),
		 kinds[kind].name);
	return join(kept, place->rundir, kinds[kind].name);
}

int rack_token_obtain(const struct rack_token_place *place,
		      enum rack_token_kind kind, char text[SECRET_TEXT])
{
	const char *given = rack_token_given(place, kind);
	char kept[RACK_TOKEN_PATH_MAX];
	int err = find_kept(place, kind, kept);

	if (err)
		return err;
	err = secret_read(kept, text);
	if (err == -ENOENT && given[0])
		return error_prefix(err,
				    "rack.%s: `aquifer token new%s` makes it: ",
				    kinds[kind].setting,
				    kind == RACK_TOKEN_ADMIN	? " --admin"
				    : kind == RACK_TOKEN_ENGINE ? " --engine"
								: "");
	if (err == -ENOENT) {
		err = make(place, kind, kept);
		if (!err)
			err = secret_read(kept, text);
	}
	return err ? err : publish(place, kind, text);
}

int rack_token_keep(const struct rack_token_place *place,
		    enum rack_token_kind kind, const char *text)
{
	const char *given = rack_token_given(place, kind);
	char kept[RACK_TOKEN_PATH_MAX], state[STATEDIR_PATH_MAX];
	char now[SECRET_TEXT];
	int err;

	if (given[0]) {
		err = secret_read(given, now);
		if (err || strcmp(now, text) != 0)
			err = error_set(-EACCES,
					"rack.%s gives %s, which does not hold "
					"the new token yet",
					kinds[kind].setting, given);
		secret_forget(now);
	} else {
		err = statedir_make(place->rack, state);
		if (!err)
			err = rack_token_kept(place, kind, kept);
		if (!err)
			err = secret_replace(kept, text);
	}
	return err ? err : publish(place, kind, text);
}

int rack_token_store(const struct rack_token_place *place,
		     enum rack_token_kind kind, const char *text)
{
	char kept[RACK_TOKEN_PATH_MAX], copy[RACK_TOKEN_PATH_MAX];
	int err = rack_token_kept(place, kind, kept);

	if (!err)
		err = join(copy, place->rundir, kinds[kind].name);
	if (!err && !rack_token_given(place, kind)[0] &&
	    access(kept, F_OK) != 0)
		return error_set(-ENOENT,
				 "%s is not there: the first daemon makes it",
				 kept);
	if (!err)
		err = secret_give(kept, text);
	if (!err)
		(void)unlink(copy); /* perhaps there is none */
	return err;
}
