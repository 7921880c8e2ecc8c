/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tokens of a rack, and where they are. Each has a file of its own:
 *
 *   the one that rack.ini gives        rack.token_file, admin_token_file, ...
 *   <state>/<rack>/token, ...          where none is given; survives a reboot
 *   <runtime>/<rack>/token, ...        a copy, for the programs of this machine
 *
 * A daemon that needs a token makes it where there is none, and takes over what
 * only the runtime directory has, from a release that kept it there.
 */
#ifndef AQ_RACK_TOKEN_H
#define AQ_RACK_TOKEN_H

#include "base.h"
#include "secret.h"

struct config;

enum rack_token_kind {
	RACK_TOKEN_DEFAULT, /* of the tenant "default" */
	RACK_TOKEN_ADMIN,   /* of the administrator */
	RACK_TOKEN_ENGINE,  /* of who may use engines */
	RACK_TOKEN_NODE,    /* of what joins a controller */
	RACK_TOKEN_KINDS,
};

enum {
	RACK_TOKEN_PATH_MAX = 512, /* with the NUL */
};

/* Where a rack and its settings are. */
struct rack_token_place {
	const struct config *config; /* that describes this rack; or NULL */
	const char *rack;	     /* its name */
	const char *rundir;	     /* its runtime directory */
};

/* Its name in the directories: "admin-token". */
const char *rack_token_name(enum rack_token_kind kind);
/* The setting that gives its file, and that file; "": none is given. */
const char *rack_token_setting(enum rack_token_kind kind);
const char *rack_token_given(const struct rack_token_place *place,
			     enum rack_token_kind kind);
/* Where the token is kept: the file that is given, or in the state directory.
 */
int rack_token_kept(const struct rack_token_place *place,
		    enum rack_token_kind kind,
		    char path[RACK_TOKEN_PATH_MAX]) MUST_CHECK;

/*
 * What a program of this machine uses: the environment (AQUIFER_TOKEN,
 * AQUIFER_ADMIN_TOKEN, AQUIFER_ENGINE_TOKEN, AQUIFER_NODE_TOKEN), else the file
 * that is given, else the runtime directory's. `from` gets which of them, or is
 * NULL. -ENOENT: the runtime directory has none; -EACCES: this user cannot read
 * it; -EINVAL: what is there or given is no token; -EPERM as in secret.h.
 */
int rack_token_find(const struct rack_token_place *place,
		    enum rack_token_kind kind, char text[SECRET_TEXT],
		    char from[RACK_TOKEN_PATH_MAX]) MUST_CHECK;

/* What a daemon uses: finds the token or makes it, and puts the copy into the
 * runtime directory. Several daemons that do so at once have the same token. */
int rack_token_obtain(const struct rack_token_place *place,
		      enum rack_token_kind kind,
		      char text[SECRET_TEXT]) MUST_CHECK;

/* Another token from now on: replaces what is kept, and the copy. Of a file
 * that is given only the copy is replaced: -EACCES when that file does not hold
 * this token yet. */
int rack_token_keep(const struct rack_token_place *place,
		    enum rack_token_kind kind, const char *text) MUST_CHECK;
/* The same while no daemon runs, for whoever sets the rack up: replaces or
 * makes the file that is given, or replaces what the state directory has. The
 * copy is removed; daemons make it when they start. -ENOENT: there is no state
 * yet. */
int rack_token_store(const struct rack_token_place *place,
		     enum rack_token_kind kind, const char *text) MUST_CHECK;

#endif
