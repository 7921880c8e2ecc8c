/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a node keeps what:
 *
 *   <rundir>/<name>.sock, <name>.lock	see rundir.h
 *   <state>/<rack>/<name>.tenants.json	where <state> is $AQUIFER_STATEDIR,
 *	$AQUIFER_RUNDIR/state unless that is in /run, /var/lib/aquifer as root,
 *or $XDG_STATE_HOME/aquifer (~/.local/state/aquifer)
 */
#ifndef AQ_MEM_PLACE_PRIV_H
#define AQ_MEM_PLACE_PRIV_H

#include "base/base.h"
#include "base/rundir.h"
#include "memnode.h"

enum {
	PLACE_PATH_MAX = MEM_STATE_PATH_MAX,
};

struct place {
	char rundir[RUNDIR_PATH_MAX];
	char socket[PLACE_PATH_MAX];
	char lock[PLACE_PATH_MAX];
	char state[PLACE_PATH_MAX];
};

/* Makes the directories. */
int place_find(const char *rack, const char *name,
	       struct place *out) MUST_CHECK;
/* A descriptor that holds the name until it is closed, or the process ends,
 * however it ends. -EBUSY: somebody else holds it. */
int place_lock(const struct place *place, const char *rack,
	       const char *name) MUST_CHECK;

#endif
