/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel and the firmware say about NUMA nodes. */
#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "probe_priv.h"

enum {
	PATH_MAX_HERE = 256,
	TEXT_MAX = 4096,
	LISTED_MAX = 160,
	MEMORY_TIERS = 512, /* the kernel numbers them by 4s and more */
	CACHES_MAX = 8,	    /* of a processor */
};

/* One line of /sys; false: there is none, or it is odd. */
static bool read_text(const char *path, char text[TEXT_MAX])
{
	FILE *f = fopen(path, "re");
	size_t n;

	if (!f)
		return false;
	n = fread(text, 1, TEXT_MAX - 1, f);
	text[n] = '\0';
	(void)fclose(f); /* it was only read */
	return n > 0;
}

static void read_number(const char *root, uint32_t node, const char *name,
			uint32_t *out)
{
	char path[PATH_MAX_HERE], text[TEXT_MAX];
	uint64_t v;

	/* Class 1 leaves out what is no processor; the first one is there
	 * without it, too. */
	for (int access = 1; access >= 0; access--) {
		(void)snprintf(path, sizeof(path),
			       "%s/devices/system/node/node%u/access%d/"
			       "initiators/%s",
			       root, node, access, name);
		if (read_text(path, text) &&
		    tier_sysfs_number(text, UINT32_MAX, &v) == 0) {
			*out = (uint32_t)v;
			return;
		}
	}
}

static void read_memory_tier(const char *root, uint32_t node, uint32_t *out)
{
	char path[PATH_MAX_HERE], text[TEXT_MAX];
	struct tier_set set;

	for (uint32_t t = 0; t < MEMORY_TIERS; t++) {
		(void)snprintf(path, sizeof(path),
			       "%s/devices/virtual/memory_tiering/"
			       "memory_tier%u/nodelist",
			       root, t);
		if (read_text(path, text) && tier_sysfs_list(text, &set) == 0 &&
		    tier_set_has(&set, node))
			*out = t;
	}
}

static bool has_cpus(uint32_t node)
{
	struct bitmask *cpus = numa_allocate_cpumask();
	bool has = numa_node_to_cpus((int)node, cpus) == 0 &&
		   numa_bitmask_weight(cpus) > 0;

	numa_free_cpumask(cpus);
	return has;
}

/* The nearest node that has processors. */
static uint32_t nearest(uint32_t node)
{
	uint32_t best = node;
	int least = INT32_MAX;

	for (int n = 0; n <= numa_max_node(); n++) {
		int d = numa_distance((int)node, n);

		if (d > 0 && d < least && has_cpus((uint32_t)n)) {
			best = (uint32_t)n;
			least = d;
		}
	}
	return best;
}

int probe_nodes_find(struct tier_set *nodes)
{
	*nodes = (struct tier_set){{0}};
	if (numa_available() < 0)
		return error_set(-ENODEV, "the kernel has no NUMA nodes, not "
					  "even one (CONFIG_NUMA)");
	for (int n = 0; n <= numa_max_node() && n <= TIER_NODE_MAX; n++)
		if (numa_bitmask_isbitset(numa_all_nodes_ptr, (unsigned)n) &&
		    numa_node_size64(n, NULL) > 0)
			nodes->word[n / 64] |= 1ull << n % 64;
	return 0;
}

int probe_node_check(uint32_t node)
{
	char listed[LISTED_MAX] = "";
	struct tier_set nodes;
	int err = probe_nodes_find(&nodes), len = 0;

	if (err)
		return err;
	if (tier_set_has(&nodes, node))
		return 0;
	for (uint32_t n = 0; n <= TIER_NODE_MAX && len < LISTED_MAX - 8; n++)
		if (tier_set_has(&nodes, n))
			len += snprintf(listed + len,
					sizeof(listed) - (size_t)len, "%s%u",
					len ? ", " : "", n);
	return error_set(-ENODEV,
			 "this machine has no NUMA node %u with memory; it has "
			 "node %s",
			 node, listed);
}

void probe_node_read(const char *root, uint32_t node, struct probe_facts *out)
{
	long long free_bytes = 0;

	*out = (struct probe_facts){0};
	if (numa_available() >= 0) {
		long long size = numa_node_size64((int)node, &free_bytes);
		int distance;

		out->size_bytes = size > 0 ? (uint64_t)size : 0;
		out->free_bytes = free_bytes > 0 ? (uint64_t)free_bytes : 0;
		out->has_cpus = has_cpus(node);
		out->cpu_node = out->has_cpus ? node : nearest(node);
		distance = numa_distance((int)out->cpu_node, (int)node);
		out->distance = distance > 0 ? (uint32_t)distance : 0;
	}
	read_number(root, node, "read_latency", &out->hmat_read_ns);
	read_number(root, node, "write_latency", &out->hmat_write_ns);
	read_number(root, node, "read_bandwidth", &out->hmat_read_mbs);
	read_number(root, node, "write_bandwidth", &out->hmat_write_mbs);
	read_memory_tier(root, node, &out->memory_tier);
}

void probe_node_cpus(uint32_t cpu_node, cpu_set_t *out)
{
	struct bitmask *cpus = numa_allocate_cpumask();
	cpu_set_t mine;

	CPU_ZERO(out);
	CPU_ZERO(&mine);
	(void)sched_getaffinity(0, sizeof(mine), &mine); /* then none is left */
	if (numa_available() >= 0 &&
	    numa_node_to_cpus((int)cpu_node, cpus) == 0)
		for (unsigned c = 0; c < CPU_SETSIZE && c < cpus->size; c++)
			if (numa_bitmask_isbitset(cpus, c) &&
			    CPU_ISSET(c, &mine))
				CPU_SET(c, out);
	if (CPU_COUNT(out) == 0)
		*out = mine;
	numa_free_cpumask(cpus);
}

uint64_t probe_cache_bytes(const char *root, uint32_t cpu)
{
	uint64_t most = 0, bytes;

	for (unsigned i = 0; i < CACHES_MAX; i++) {
		char path[PATH_MAX_HERE], text[TEXT_MAX];

		(void)snprintf(path, sizeof(path),
			       "%s/devices/system/cpu/cpu%u/cache/index%u/size",
			       root, cpu, i);
		if (read_text(path, text) && tier_sysfs_size(text, &bytes) == 0)
			most = u64_max(most, bytes);
	}
	return most;
}
