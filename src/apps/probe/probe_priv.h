/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of the probe: memory that is measured, and the two measurements. */
#ifndef AQ_PROBE_PRIV_H
#define AQ_PROBE_PRIV_H

#include <sched.h>

#include "probe.h"
#include "tier/sysfs.h"

enum {
	PROBE_SAMPLES_MAX = 20000, /* of a window */
	PROBE_POINTS = 12,	   /* windows of a curve */
};

/* ---- what is measured: port_numa.c, port_far.c --------------------------- */

/* A memory with two areas: cells of a circle of loads, and blocks. */
struct probe_port {
	/* Follows `count` cells, each of which says where the next one is. */
	int (*chase)(struct probe_port *p, uint32_t count);
	/* One block, read or written. Any thread. */
	int (*move)(struct probe_port *p, uint64_t block, bool is_write);
	uint32_t chase_count; /* cells of one sample */
	uint32_t block_bytes;
	uint64_t block_count;
	cpu_set_t cpus; /* that measure */
};

/* Memory on one NUMA node; `load` is what threads load, if there is any.
 * -errno with words. */
int probe_numa_open(const struct probe_facts *facts, uint32_t node,
		    uint32_t threads, const struct probe_memory *load,
		    struct probe_tier *tier,
		    struct probe_port **out) MUST_CHECK;
void probe_numa_close(struct probe_port *p);

/* A region on a memory node of the rack, by the tier's way. -EOPNOTSUPP: it is
 * not mapped. */
int probe_far_open(struct aq_rack *rack, const struct probe_far_node *node,
		   struct probe_tier *tier, struct probe_port **out) MUST_CHECK;
void probe_far_close(struct probe_port *p);

/* ---- arena.c: pages on a NUMA node --------------------------------------- */

struct probe_arena {
	uint8_t *memory;
	uint64_t mapped_bytes;
	uint64_t bytes; /* that were filled in time */
};

/* Fills at most `bytes`, and less where that would take longer than a second.
 * -errno with words. */
int probe_arena_make(uint32_t node, uint64_t bytes,
		     struct probe_arena *out) MUST_CHECK;
void probe_arena_free(struct probe_arena *a);
/* The part in huge pages; below 0: not known. */
double probe_arena_huge(const struct probe_arena *a);

/* ---- circle.c: loads that depend on each other --------------------------- */

/* Makes one circle of all lines, of which none that comes soon is in a cache
 * unless all are. -errno with words. */
int probe_circle_link(const struct probe_arena *a,
		      uint64_t ***first) MUST_CHECK;

/* ---- numa.c: what the system says ---------------------------------------- */

/* Nodes with memory. -ENODEV with words: the kernel knows no nodes. */
int probe_nodes_find(struct tier_set *nodes) MUST_CHECK;
/* Processors that this process may use, of that node; all of them if it may use
 * none there. */
void probe_node_cpus(uint32_t cpu_node, cpu_set_t *out);
/* The largest cache that this processor reads through; 0: not known. `root` is
 * "/sys" except in tests. */
uint64_t probe_cache_bytes(const char *root, uint32_t cpu);

/* ---- load.c -------------------------------------------------------------- */

/* A window: threads that move blocks, and one that chases. */
struct probe_load {
	struct probe_port *port;
	struct tier_ratio mix;
	uint32_t threads;
	uint64_t wait_ns; /* of a thread between two blocks */
	uint64_t window_ns;
	bool has_chase;
	/* The outcome. */
	double gbs;
	struct probe_idle idle; /* of the chase */
	double share;
};

/* 0 or -errno of the port. */
int probe_load_run(struct probe_load *l) MUST_CHECK;
/* The same, and again while others had a part of the processors' time, but not
 * more often than *again says, which is less by so many; the quietest window
 * counts. */
int probe_load_run_quiet(struct probe_load *l, uint32_t *again) MUST_CHECK;
/* The share of a short while for which this thread has a processor if it wants
 * one: for ways on which threads sleep between packets. */
double probe_load_spin(void);

#endif
