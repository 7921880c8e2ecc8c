/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verbs library as a program under `aquifer exec` would see it: loaded by
 * path and asked through its public ABI. So `info` and `doctor` report what
 * such a program would find, for the soft NIC and for hardware alike.
 */
#ifndef AQ_CLI_VERBS_H
#define AQ_CLI_VERBS_H

#include <infiniband/verbs.h>

#include "base/base.h"

enum {
	CLI_VERBS_GIDS = 16
};

struct cli_verbs_device {
	char name[64];
	uint64_t guid; /* host order */
	struct ibv_device_attr attr;
	struct ibv_port_attr port; /* port 1 */
	uint64_t dm_bytes;	   /* device memory; 0: none */
	unsigned gid_count;
	union ibv_gid gids[CLI_VERBS_GIDS];
};

/*
 * Loads `path` (a bare name uses the system's search) and describes device
 * `index`. -ENOENT: cannot be loaded or lacks a symbol; -ENODEV: no such
 * device; else what opening it said. `why` then explains in words.
 */
int cli_verbs_query(const char *path, unsigned index,
		    struct cli_verbs_device *out, char why[256]) MUST_CHECK;

/* Loads it and counts its devices; a negative errno with `why` as above. */
int cli_verbs_device_count(const char *path, char why[256]) MUST_CHECK;

#endif
