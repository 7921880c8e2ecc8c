/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtime directory of a rack: where sockets and counter files live.
 *
 *   $AQUIFER_RUNDIR/<rack>             when set (tests, several users)
 *   /run/aquifer/<rack>                as root, or with rack.user or rack.group
 *   $XDG_RUNTIME_DIR/aquifer/<rack>    without root
 *   /tmp/aquifer-<uid>/<rack>          without either
 *
 * Where another user has taken that name in /tmp: /run/user/<uid>/aquifer/
 * <rack> if there is one of ours, else ~/.local/state/aquifer/run/<rack>.
 *
 * Directories are made with mode 0700. An existing one must belong to the
 * caller and be writable by no other user. Any user can take names in /tmp, so
 * a directory found there is checked, and symbolic links are not followed.
 *
 * rack.user and rack.group of rack.ini open the rack's directory, and nothing
 * more: it then belongs to that user (root, if only a group is named). With a
 * group its mode is 3770, so that members can write; the sticky bit keeps them
 * from removing each other's files. All users may enter its parent, but not
 * list it.
 */
#ifndef AQ_RUNDIR_H
#define AQ_RUNDIR_H

#include "base.h"

enum {
	RUNDIR_RACK_MAX = 32,
	RUNDIR_PATH_MAX = 256, /* with the NUL */
};

/* A rack's name: 1 to 32 of a-z, 0-9 and '-'. */
bool rundir_rack_is_valid(const char *rack);

/* Where the directory is or would be; touches nothing. -EINVAL for a bad rack
 * name, -ENAMETOOLONG; error_last() has the words. */
int rundir_path(const char *rack, char path[RUNDIR_PATH_MAX]) MUST_CHECK;

/* The same, and makes what is missing. Also -EPERM when another user owns or
 * could write a directory on the path, or the error of mkdir(2). */
int rundir_make(const char *rack, char path[RUNDIR_PATH_MAX]) MUST_CHECK;
/* The same; the descriptor (O_DIRECTORY, O_CLOEXEC) or -errno. */
int rundir_open(const char *rack) MUST_CHECK;

/* Opens a file of a daemon there, with O_CREAT of mode 0600. Members of
 * rack.group may have put something in its place: -EPERM for what is no regular
 * file, or in such a rack not the rack's own, or has a second name. No link is
 * followed, no pipe waited for. The descriptor (O_CLOEXEC), or -errno with
 * words. */
int rundir_file_open(const char *path, int flags) MUST_CHECK;

/* Makes one directory of ours inside an existing one, with the same checks;
 * returns a descriptor (O_DIRECTORY, O_CLOEXEC) or -errno. */
int rundir_subdir_open(const char *path, const char *name) MUST_CHECK;
/* The same for a directory of all who may use the rack, as rack.user and
 * rack.group say; files in it are their owners' alone to remove. */
int rundir_shared_open(const char *path, const char *name) MUST_CHECK;

#endif
