/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far paging at the scale of the ODRP paper (NSDI 2025): clients with several
 * workers, each with a shipped page store, and one memory node with the shipped
 * page frames, chains and page server, on the costs of hardware. One point of a
 * figure is one run.
 */
#ifndef AQ_RIG_PAGING_H
#define AQ_RIG_PAGING_H

#include "page/page_store.h"

enum {
	PAGING_CLIENTS_MAX = 8,
	PAGING_WORKERS_MAX = 24, /* of one client */
	PAGING_CORES_MAX = 32,
	PAGING_FLOODERS_MAX = 4,
};

/* What all workers do, again and again. */
enum paging_work {
	PAGING_LOAD,
	PAGING_MAPPED,	 /* stores to pages that are there */
	PAGING_UNMAPPED, /* stores to pages that are not */
	/* Dynamic modes: each store needs a piece of its own. */
	PAGING_ALLOCATE,
	PAGING_PROGRAM, /* a program whose memory is partly far */
};

/* What a program does with its pages. */
enum paging_pattern {
	PAGING_QUICKSORT,
	PAGING_SCANS,	/* reads all of it, several times */
	PAGING_POPULAR, /* Zipfian pages, some written */
	PAGING_GRAPH,	/* scans edges, touches random vertices */
};

struct paging_program {
	const char *name;
	enum paging_pattern pattern;
	uint32_t set_mb;  /* working set of all its workers */
	uint32_t workers; /* threads, or tasks of one client */
	/* Faults per second of a worker that go far, with half of the memory
	 * local and nothing to wait for: this sets how much it computes. */
	uint32_t faults_per_s;
	uint32_t write_percent;
	double overhead; /* published: chains over static, less 1 */
};

extern const struct paging_program paging_programs[];
extern const unsigned paging_program_count;

struct sim_fabric_choice;

struct paging_config {
	enum page_mode mode;
	uint32_t clients;
	uint32_t workers; /* of each client */
	uint32_t cores;	  /* of the node, for modes that need its processor */
	uint32_t without; /* optimisations of the chains: enum page_without */
	enum paging_work work;
	uint32_t depth;	  /* operations under way per worker; 0: 1 */
	uint64_t span_ps; /* of measuring; 0: a default */
	uint64_t seed;
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
	/* PAGE_CHAIN: more clients, that send nothing but nonsense. */
	uint32_t flooders;
	/* PAGING_PROGRAM: */
	const struct paging_program *program;
	uint32_t local_percent;
	bool bursts;	/* of quicksort's faults; see paging_program.c */
	bool frees;	/* slots, as Linux does; see paging_memory.c */
	uint32_t scale; /* all memory is so many times smaller; 0: 1024 */
};

struct paging_result {
	uint64_t ops; /* counted ones */
	uint64_t failed;
	double mops;
	double mean_us;
	double p99_us;
	double elapsed_ms; /* programs: mean of the workers */
	double cores;	   /* of the node's processor, busy on average */
	double utilisation;
	/* Programs: */
	uint64_t faults;
	uint64_t loads;
	uint64_t mapped;
	uint64_t unmapped;
	uint64_t discards; /* of pages that were given up */
	uint64_t steps;	   /* requests executed by chains */
	uint64_t nonsense; /* messages of flooders */
	uint64_t broken;   /* their chains that ended over it */
};

/* 0, or -errno if the point could not be run. */
int paging_run(const struct paging_config *cfg,
	       struct paging_result *res) MUST_CHECK;

#endif
