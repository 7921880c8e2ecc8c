/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as /sys shows them, and policies of memory. */
#include "numa.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tier/spec.h"

enum {
	WORDS = (TIER_NODE_MAX + 64) / 64,
	/* The kernel wants one more than there are bits. */
	BITS = WORDS * 64 + 1,
};

struct node_mask {
	uint64_t word[WORDS];
};

static struct node_mask mask_of(uint32_t node)
{
	struct node_mask m = {{0}};

	m.word[node / 64] = 1ull << node % 64;
	return m;
}

int run_numa_bytes(uint32_t node, uint64_t *bytes)
{
	char path[64], line[128];
	uint64_t kib = 0;
	FILE *f;

	(void)snprintf(path, sizeof(path),
		       "/sys/devices/system/node/node%" PRIu32 "/meminfo",
		       node);
	f = fopen(path, "re");
	if (!f)
		return -ENOENT;
	while (!kib && fgets(line, sizeof(line), f))
		(void)!sscanf(line, "Node %*u MemTotal: %" SCNu64 " kB", &kib);
	(void)fclose(f); /* only read */
	if (!kib)
		return -ENOENT;
	*bytes = kib << 10;
	return 0;
}

bool run_numa_is_allowed(uint32_t node)
{
	struct node_mask m = {{0}};

	return syscall(SYS_get_mempolicy, NULL, m.word, BITS, NULL,
		       MPOL_F_MEMS_ALLOWED) == 0 &&
	       (m.word[node / 64] >> node % 64 & 1);
}

unsigned run_numa_count(void)
{
	unsigned n = 0;
	uint64_t bytes;

	for (uint32_t node = 0; node <= TIER_NODE_MAX; node++)
		n += run_numa_bytes(node, &bytes) == 0;
	return n;
}

int run_numa_prefer(uint32_t node)
{
	struct node_mask m = mask_of(node);

	return syscall(SYS_set_mempolicy, MPOL_PREFERRED, m.word, BITS) == 0
		       ? 0
		       : -errno;
}

int run_numa_prefer_for(void *mem, size_t bytes, uint32_t node)
{
	struct node_mask m = mask_of(node);

	return syscall(SYS_mbind, mem, bytes, MPOL_PREFERRED, m.word, BITS,
		       0) == 0
		       ? 0
		       : -errno;
}

/* Balancing only looks at tasks whose policy is the kernel's default. LOCAL
 * places pages as that does. */
void run_numa_keep_off(void)
{
	int mode;

	if (syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0) == 0 &&
	    mode == MPOL_DEFAULT)
		(void)syscall(SYS_set_mempolicy, MPOL_LOCAL, NULL, 0);
}
