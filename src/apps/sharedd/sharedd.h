/* SPDX-License-Identifier: Apache-2.0 */
/* The server of a machine's cache of coherent shared memory, as a process. */
#ifndef AQ_SHAREDD_H
#define AQ_SHAREDD_H

#include "base/base.h"
#include "daemon/daemon.h"
#include "held.h"

/* What d->self of a struct daemon points to. */
struct shd_options {
	uint64_t cache_bytes; /* of cached pages at most; 0: the default */
	uint32_t idle_ms; /* it ends that long after the last program; 0: never
			   */
};

/* A server until a signal, or until nobody uses it; see daemon/daemon.h. */
extern const struct daemon_kind shd_daemon;

/* What the cache of this machine has. *out: NULL, if it has none; else the
 * caller's, to free. -errno with words. */
int shd_held_ask(const char *rack, struct shd_held **out) MUST_CHECK;

struct shd_group {
	const char *name;
	unsigned copies; /* memory nodes that have each object made, 1 or 2 */
};

/* This process, what it executes and its children become programs of a group:
 * their environment names the cache server, which is started where there is
 * none, and their futex calls on shared memory go to it. The library is the
 * caller's to name. -EINVAL: no name of a group, or no such number of copies;
 * -errno with words. */
int shd_launch_join(const struct shd_group *group) MUST_CHECK;

#endif
