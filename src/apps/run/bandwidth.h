/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many bytes the memory of a NUMA node has moved, where the kernel counts
 * that: resctrl's monitoring, mounted by the administrator. It has counters per
 * group of processors that share a last cache; a node's are what the groups of
 * its own processors have moved to and from local memory, by tasks of
 * all control groups that there are when the counters are opened.
 */
#ifndef AQ_RUN_BANDWIDTH_H
#define AQ_RUN_BANDWIDTH_H

#include "base/base.h"

enum {
	BANDWIDTH_CACHES_MAX = 64,
	BANDWIDTH_COUNTERS_MAX = 256,
};

/* Folders of the kernel; a test has its own. */
struct bandwidth_roots {
	const char *resctrl; /* /sys/fs/resctrl */
	const char *system;  /* /sys/devices/system */
};

extern const struct bandwidth_roots bandwidth_roots;

struct bandwidth {
	int fd[BANDWIDTH_COUNTERS_MAX];
	unsigned count;
};

/* Opens the counters of a node; -ENOENT: there are none. */
int bandwidth_open(struct bandwidth *b, const struct bandwidth_roots *roots,
		   uint32_t node) MUST_CHECK;
void bandwidth_close(struct bandwidth *b);
/* Their sum, without those whose group is gone; -EIO: one is no number now, or
 * all are gone. */
int bandwidth_read(struct bandwidth *b, uint64_t *bytes) MUST_CHECK;

/* What the firmware says (HMAT) that can be read from a node in a second; 0: it
 * says nothing. */
uint64_t bandwidth_promised(const struct bandwidth_roots *roots, uint32_t node);

#endif
