/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A daemon gives up what it does not need, for good, before it starts its first
 * thread, so no thread still has it. In this order:
 *
 *   user		becomes another user, if asked to (only root can)
 *   capabilities	all but those its ports need, the bounding set too
 *   no new privileges	nothing that it starts could have more
 *   landlock		files: only the given ones, no program at all; signals
 *			only to itself, and no sockets with abstract names
 *   seccomp		system calls: those that a daemon makes (seccomp.c has
 *			the list); others fail with EPERM or ENOSYS
 *   not dumpable	no core with tenants' data, no ptrace by its own user
 *
 * Landlock and seccomp are left out where the kernel has none, and that is
 * logged; the others must succeed.
 */
#ifndef AQ_CONFINE_H
#define AQ_CONFINE_H

#include <limits.h>

#include "base/base.h"
#include "base/config.h"
#include "base/rundir.h"

enum {
	CONFINE_PATH_MAX = 64,
	CONFINE_DIRS = 18,
};

enum confine_use {
	CONFINE_READ,	/* a file, or all below a directory */
	CONFINE_WRITE,	/* read, write, make and remove all below a directory */
	CONFINE_DEVICE, /* read, write and control devices */
	CONFINE_SOCKET, /* make and remove sockets in a directory */
	CONFINE_LIST,	/* read the names in a directory */
};

struct confine_path {
	enum confine_use use;
	const char *path;
};

struct confine {
	const char *user;  /* to become; NULL: the same user */
	const char *group; /* to join, if it stays root; NULL: none */
	bool packets;	   /* packet sockets: keeps CAP_NET_RAW */
	bool low_port;	   /* listens below 1024: keeps CAP_NET_BIND_SERVICE */
	bool makes_code;   /* pages may become executable once nobody can
			      write them any more */
	bool others_files; /* what it reads may be another user's: keeps
			      CAP_DAC_READ_SEARCH */
	unsigned path_count;
	struct confine_path paths[CONFINE_PATH_MAX];
	/* Names that `paths` points to: it cannot be copied with them. */
	char config_path[CONFIG_PATH_MAX];
	unsigned dir_count;
	char dirs[CONFINE_DIRS][PATH_MAX];
};

/* Adds a path, which must live until confine_start. A path that does not exist
 * then, "" and NULL are left out. -ENOSPC: too many. */
int confine_add(struct confine *c, enum confine_use use,
		const char *path) MUST_CHECK;

/* The same for the directory that `path` is in. */
int confine_add_parent(struct confine *c, enum confine_use use,
		       const char *path) MUST_CHECK;
/* What the rack asks for, before anything is given up: the rights that
 * `nic.port` needs, rack.group, and as root, where no user is named, to become
 * rack.user. The settings must live as long as `c`, as below. */
void confine_set_rack(struct confine *c, const struct config *config);
/* The files that everybody needs who has a NIC in this rack: its runtime
 * directory, which is made and named, rack.ini, and certificates of nodes and
 * engines. */
int confine_add_rack(struct confine *c, const struct config *config,
		     const char *rack, char rundir[RUNDIR_PATH_MAX]) MUST_CHECK;

/* Only the first two steps, for a daemon that still has to make files that
 * belong to the user. error_last() has the words. */
int confine_become(const struct confine *c) MUST_CHECK;
/* All steps, for this thread and all that it will start. -EBUSY: there is a
 * second one already, which would keep everything. */
int confine_start(const struct confine *c) MUST_CHECK;

/* The capabilities alone, for a thread that needs fewer than its process: it
 * and those that it starts keep no others (bits by the numbers of
 * linux/capability.h), and gain none by executing a program. */
int confine_thread(uint64_t keep) MUST_CHECK;

/* A user, by name or number, and its group; -ENOENT with words if there is
 * none. */
int confine_user_find(const char *name, uint32_t *uid,
		      uint32_t *gid) MUST_CHECK;

/* The version of landlock that the kernel has, 0: none. */
int confine_landlock_version(void);
/* Whether there is a filter for this kind of processor. */
bool confine_has_filter(void);

#endif
