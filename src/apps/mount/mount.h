/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of elastic memory as a file system (libfuse3), for programs that know
 * nothing of it: read, create, append, rename, remove. Files grow at their end
 * only; a write in the middle is -EOPNOTSUPP. Queues and stores are seen, and
 * cannot be opened.
 *
 * Extended attributes of a name: user.aquifer.lease, and of a file
 * user.aquifer.map, as JSON.
 */
#ifndef AQ_MOUNT_H
#define AQ_MOUNT_H

#include "base/base.h"

struct mount_options {
	const char *path;   /* what is mounted, "/" or below */
	const char *folder; /* where */
	bool is_foreground;
	uint64_t block_bytes; /* of files that are made; 0: the default */
	/* It is there; an error of it ends the mount. */
	int (*mounted)(void *ctx);
	void *ctx;
};

/* Until it is unmounted or a signal ends it; in the background it returns in
 * the child only. 0, or -errno with words. */
int mount_serve(const struct mount_options *options) MUST_CHECK;

#endif
