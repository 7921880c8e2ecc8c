/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state directory of a rack: what has to be there after a reboot, tokens
 * and tenants. <state>/<rack>, where <state> is
 *
 *   $AQUIFER_STATEDIR, or rack.state_dir     when set
 *   $AQUIFER_RUNDIR/state                    when set, and not in /run
 *   /var/lib/aquifer                         as root
 *   $XDG_STATE_HOME/aquifer                  by default ~/.local/state/aquifer
 *
 * It is made with mode 0700, and must belong to the caller.
 */
#ifndef AQ_STATEDIR_H
#define AQ_STATEDIR_H

#include "base.h"

enum {
	STATEDIR_PATH_MAX = 400, /* with the NUL */
};

/* Where it is or would be; touches nothing. -ENOENT: there is no place for it;
 * error_last() has the words. */
int statedir_path(const char *rack, char path[STATEDIR_PATH_MAX]) MUST_CHECK;
/* The same, and makes what is missing. Also -EPERM: it is somebody else's, or
 * somebody else can write it. */
int statedir_make(const char *rack, char path[STATEDIR_PATH_MAX]) MUST_CHECK;

#endif
