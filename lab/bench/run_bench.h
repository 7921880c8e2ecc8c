/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of `bench paging` that are whole programs: on far memory by several
 * ways, all in local memory, and with the kernel's swapping. */
#ifndef AQ_BENCH_RUN_H
#define AQ_BENCH_RUN_H

#include <stdio.h>

#include "bench.h"

/* ---- works -------------------------------------------------------------- */

enum run_work_kind {
	RUN_WORK_TOUCH,	       /* random touches of incompressible pages */
	RUN_WORK_FLOOR,	       /* userfaultfd alone, a fault and a page out */
	RUN_WORK_FLOOR_SIGNAL, /* the same, in the thread that faults */
	RUN_WORK_FAULT,	       /* far faults alone, nothing goes out */
	RUN_WORK_SORT,	       /* quicksort of random numbers */
	RUN_WORK_KMEANS,       /* Lloyd's, some rounds over all points */
	RUN_WORK_PAGERANK,     /* some rounds over a random graph */
	RUN_WORK_BETWEEN,      /* betweenness centrality from some vertices */
	RUN_WORK_ETC,	       /* memcached: sizes and mix as in the pool ETC */
	RUN_WORK_OLTP,	       /* sqlite3: orders, stock and customers */
	/* Of `bench walk`. */
	RUN_WORK_WEB,	   /* lookups in chains, and objects */
	RUN_WORK_TSV,	   /* reductions over leaves of a tree */
	RUN_WORK_WEB_WALK, /* the same two by walks, whatever the place */
	RUN_WORK_TSV_WALK,
	RUN_WORK_RANGE,	      /* scans of rows in a tree */
	RUN_WORK_RANGE_WALK,  /* by walks */
	RUN_WORK_RANGE_READS, /* by a READ for each node */
	RUN_WORK_COUNT,
};

struct run_work {
	enum run_work_kind kind;
	uint64_t bytes; /* about this much memory */
	uint64_t count; /* touches, requests or transactions */
	uint64_t seed;
};

const char *run_work_name(enum run_work_kind kind);
/* Does the work in this process and prints the nanoseconds of the measured
 * part. Returns an exit code. */
int run_work_main(const struct run_work *w);
/* Parses KIND BYTES COUNT SEED and does the work. */
int run_work_from(char **argv);

/* Nanoseconds of the measured part, 0: failed. */
uint64_t run_floor(const struct run_work *w);
uint64_t run_fault(const struct run_work *w); /* of one, the median */
uint64_t run_kmeans(const struct run_work *w);
uint64_t run_pagerank(const struct run_work *w);
uint64_t run_between(const struct run_work *w);
uint64_t walk_work_native(const struct run_work *w);
uint64_t walk_work_remote(const struct run_work *w);
uint64_t run_etc(const struct run_work *w);
uint64_t run_oltp(const struct run_work *w);

/* ---- places ------------------------------------------------------------- */

/* Where the work's memory is. */
enum run_place {
	RUN_PLACE_LOCAL,  /* all of it here */
	RUN_PLACE_CABLE,  /* far, static, by the shm cable */
	RUN_PLACE_CHAIN,  /* far, by chains, by the shm cable */
	RUN_PLACE_DIRECT, /* far, sparse: page by page, mapped */
	RUN_PLACE_TIERED, /* the same, what is here as one tier, on node 0 */
	RUN_PLACE_UDP,	  /* far, by chains; the rack must be one of UDP */
	RUN_PLACE_ZRAM,	  /* a memory cgroup, and swap on zram */
	RUN_PLACE_DISK,	  /* the same on a file */
	RUN_PLACE_COUNT,
};

const char *run_place_name(enum run_place place);

/* Runs it in a process of its own with at most local_bytes here. 0 or -errno;
 * -EOPNOTSUPP: not on this machine, *why says what is missing. */
int run_work_spawn(const struct run_work *w, enum run_place place,
		   uint64_t local_bytes, uint64_t *ns,
		   const char **why) MUST_CHECK;

/* The same in a far place, without prefetching; writes its report, one line of
 * JSON, to the file. */
int run_work_spawn_counted(const struct run_work *w, enum run_place place,
			   uint64_t local_bytes, int report_fd,
			   uint64_t *ns) MUST_CHECK;

/* Swap on zram0 or on a file, page-cluster 0, and a cgroup; undone by close.
 * `why` says what is missing. */
struct run_swap {
	char cgroup[128];
	char page_cluster[16];
	char file[64]; /* "": zram */
	bool is_v2, is_on;
};
int run_swap_open(struct run_swap *s, bool on_file, uint64_t limit_bytes,
		  uint64_t swap_bytes, const char **why) MUST_CHECK;
void run_swap_close(struct run_swap *s);
/* The calling process is in the cgroup from now on. */
int run_swap_enter(const struct run_swap *s) MUST_CHECK;

/* ---- counts (run_count.c) ----------------------------------------------- */

struct run_counted {
	/* Counted by the pager, in pages. */
	uint64_t faults;	 /* of any kind */
	uint64_t loads;		 /* that had to wait for far memory */
	uint64_t prefetched;	 /* 0: it is switched off */
	uint64_t first_touches;	 /* zeros: nothing is moved */
	uint64_t second_chances; /* pages that came back before they had left */
	uint64_t stored;
	uint64_t given_back; /* that the node was told to free */
	uint64_t far_pages;  /* with a place in far memory, at most */
	uint64_t heap_bytes; /* that could be far, at most */
	/* Counted by the memory node's NIC; UINT64_MAX: not whole pages. */
	uint64_t far_in_bytes, far_out_bytes;
};

/* What `aquifer run --json` said at the end, of what the pager counts. */
int run_report_read(FILE *f, struct run_counted *out) MUST_CHECK;
/* Over the cable, alone on its rack, whose environment is set. */
int run_count(const struct run_work *w, enum run_place place,
	      uint64_t local_bytes, struct run_counted *out) MUST_CHECK;

/* ---- rows --------------------------------------------------------------- */

/* Measures touches and, if wanted, all programs: their rows, and the ratios
 * between them. 0, or -errno after bench_fail. */
int run_rows(struct bench *b, bool programs) MUST_CHECK;

#endif
