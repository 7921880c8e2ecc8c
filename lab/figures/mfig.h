/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of the figures of `aquifer sim mind`: machines whose threads run a
 * workload on shared memory, by one of several systems, on the host cost model.
 *
 * MIND is the shipped switch with its program `coherence`, shipped NICs, and
 * the shipped cache of each machine (rig/coh_machine.h). Threads, page faults
 * and caches' limits are here. A page's first word counts the stores to it, and
 * a load that sees another number than the last is counted as wrong.
 */
#ifndef AQ_FIGURES_MFIG_H
#define AQ_FIGURES_MFIG_H

#include "base/base.h"

enum mfig_system {
	MFIG_MIND,
	MFIG_PSO,      /* a store does not wait for its page */
	MFIG_PSO_PLUS, /* the same, and the directory has no bound */
	MFIG_AT_NODE,  /* the directory is at the memory node, on a core */
	MFIG_GAM,      /* a library with directories at home machines: a model
			*/
	MFIG_SWAP,     /* one machine swaps: READs and WRITEs of pages */
	MFIG_SYSTEMS,
};

enum mfig_work {
	MFIG_TF,      /* training: shared weights, private activations */
	MFIG_GC,      /* PageRank, in place */
	MFIG_MA,      /* a table with locks and LRU lists, YCSB A */
	MFIG_MC,      /* the same, YCSB C */
	MFIG_KVS_A,   /* a table without them, YCSB A */
	MFIG_KVS_C,   /* the same, YCSB C */
	MFIG_UNIFORM, /* any page: shared or own, read or written */
	MFIG_WORKS,
};

/* What one transition takes, instead of a workload. */
enum mfig_transition {
	MFIG_NONE,
	MFIG_I_S,
	MFIG_S_S,
	MFIG_I_M,
	MFIG_S_M,
	MFIG_M_S,
	MFIG_M_M,
	MFIG_S7_M, /* seven machines have read it */
	MFIG_TRANSITIONS,
};

enum {
	MFIG_MACHINES_MAX = 8,
	MFIG_THREADS_MAX = 10, /* of a machine */
};

struct mfig_config {
	enum mfig_system system;
	enum mfig_work work;
	enum mfig_transition transition;
	uint32_t machines, threads; /* threads of each */
	uint32_t pages, cache_pages;
	uint32_t entries, region_pages, epoch_ms;
	bool has_no_stalls; /* of NICs; see docs/mind-figures.md */
	bool is_static;	    /* regions keep their size */
	uint32_t share_percent, read_percent; /* of MFIG_UNIFORM */
	uint64_t units; /* to do by all threads, after as many that warm up */
	uint64_t seed;
};

struct mfig_result {
	double kops;	   /* units of work per ms */
	double latency_us; /* of the transition: median */
	double mean_us;
	double miss;	/* share of steps that needed a get */
	double use;	/* directory entries at most, of those there are */
	double entries; /* the same as a number */
	uint64_t gets, invals, false_invals, recalls, splits, joins;
	uint64_t gives, waits;
	double virtual_ms;
	uint64_t wrong; /* loads that did not see the last store */
};

/* All but system, work, machines and threads as the scale of mfig_costs.h says.
 */
void mfig_config_init(struct mfig_config *cfg, enum mfig_work work);
/* 0, -ENOMEM, or -EIO: it did not come to its end. */
int mfig_run(const struct mfig_config *cfg, struct mfig_result *res) MUST_CHECK;

extern const char *const mfig_system_names[MFIG_SYSTEMS];
extern const char *const mfig_work_names[MFIG_WORKS];
extern const char *const mfig_transition_names[MFIG_TRANSITIONS];

/* ---- mfig_rules.c: tables of translation and protection -------------------
 */

enum mfig_placement {
	MFIG_PARTS,    /* rights to powers of two */
	MFIG_2M_PAGES, /* a rule for each page */
	MFIG_1G_PAGES,
	MFIG_PLACEMENTS,
};

extern const char *const mfig_placement_names[MFIG_PLACEMENTS];

struct mfig_rules {
	double rules; /* entries of the switch's tables */
	double jain;  /* Jain's index of the nodes' bytes */
};

/* The areas of a program with so many threads, placed. */
int mfig_rules_run(enum mfig_work work, enum mfig_placement placement,
		   uint32_t threads, uint64_t seed,
		   struct mfig_rules *out) MUST_CHECK;

#endif
