/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes as /sys shows them. */
#include "numa.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/node_bind.h"

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

unsigned run_numa_count(void)
{
	unsigned n = 0;
	uint64_t bytes;

	for (uint32_t node = 0; node <= NODE_BIND_MAX; node++)
		n += run_numa_bytes(node, &bytes) == 0;
	return n;
}
