/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `aquifer run`: an unmodified program whose heap and anonymous mappings live
 * in far memory, with a bounded part of them resident.
 *
 * Three parties: the supervisor (the caller), the pager (a child of it, with
 * the NIC and all userfaultfds), and the program with the preload library.
 * Supervisor and pager share one table of descriptors: if either is killed, the
 * other still holds the userfaultfds, so a page that is not there never turns
 * into zeros. A supervisor without pager kills the program. The pager is
 * confined; a broker beside it does what takes rights (broker.h).
 */
#ifndef AQ_RUN_H
#define AQ_RUN_H

#include <stdatomic.h>
#include <sys/types.h>

#include "base/base.h"
#include "tier/spec.h"

#define RUN_LOCAL_MIN (1ull << 20)

/* The user that the program runs as. */
struct run_user {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* run_user_release frees them */
	int group_count;
	bool is_other; /* not the caller: the user has to be changed */
};

/*
 * The named user; without a name the caller, or, where sudo made the caller
 * root, the user who called sudo (SUDO_UID, SUDO_GID): far memory needs root,
 * the program does not. -ENOENT, -EINVAL, -EPERM, with words in
 * aq_last_error().
 */
int run_user_find(const char *name, struct run_user *out) MUST_CHECK;
void run_user_release(struct run_user *u);
/* The process, of one thread, is that user for good, without capabilities. */
int run_user_become(const struct run_user *u) MUST_CHECK;

/* Nodes of this machine that pages are on; see tiers_priv.h. */
struct run_tiers {
	struct tier_spec spec; /* all zero: one tier, wherever */
	struct tier_ratio ratio;
	uint64_t promote_mb; /* at most, a second; 0: nothing is promoted */
	/* That the top node moves at most; 0: as the firmware says. */
	uint64_t peak_bytes_s;
};

struct run_options {
	uint64_t local_bytes;  /* of far-managed memory that may be resident */
	uint64_t min_bytes;    /* smaller mappings stay local */
	unsigned prefetch_max; /* pages; 0: off */
	unsigned copies;       /* of every page, on different nodes; 0: 1 */
	unsigned threads;      /* of the pager, 1 or 2; 0: as it helps */
	/* Local memory above local_bytes that may be used when far memory is
	 * full; UINT64_MAX: all there is. */
	uint64_t overflow_bytes;
	struct run_tiers tiers; /* local_bytes is their sum */
	unsigned patience_ms;	/* how long a node may be silent */
	bool is_strict;		/* nothing runs whose limit cannot be kept */
	/* How nodes keep pages, as of the page store; NULL: "auto". */
	const char *mode;
	bool is_unmapped;    /* also on one host, pages go through the NICs */
	bool is_unmoved;     /* pages leave as before Linux 6.8 */
	bool shows_stats;    /* a line per second on stderr */
	const char *rack;    /* NULL: as configured */
	const char *preload; /* path of the library */
	const struct run_user *user;
};

/* Counted by the pager; readers see values of slightly different moments. */
struct run_stats {
	_Atomic uint64_t faults;
	_Atomic uint64_t zero_fills; /* pages that were first touched */
	_Atomic uint64_t loads;	     /* pages from far memory on demand */
	_Atomic uint64_t prefetched; /* pages from far memory beforehand */
	_Atomic uint64_t second;     /* evicted, and back before they left */
	_Atomic uint64_t evicted;    /* pages */
	_Atomic uint64_t evicted_clean;
	_Atomic uint64_t evicted_zero;
	_Atomic uint64_t stored;      /* pages to far memory */
	_Atomic uint64_t discarded;   /* pages that the program gave back */
	_Atomic uint64_t given_back;  /* pages that nodes were told to free */
	_Atomic uint64_t pinned;      /* times that a page could not leave */
	_Atomic uint64_t write_waits; /* writes that met an eviction */
	_Atomic uint64_t forks;
	_Atomic uint64_t resident_pages;
	_Atomic uint64_t resident_peak;
	_Atomic uint64_t
		buffered_pages;	    /* on their way, of the local bytes too */
	_Atomic uint64_t far_pages; /* in use in far memory */
	_Atomic uint64_t far_peak;
	_Atomic uint64_t heap_peak; /* pages of all processes, wherever */
	_Atomic uint64_t spaces;
	_Atomic uint64_t spaces_ever;
	_Atomic uint64_t lost_pages; /* asked for after their node was lost */
	_Atomic uint64_t returned;  /* pages that found no room and came back */
	_Atomic uint64_t over_peak; /* pages above the local bytes */
	_Atomic uint64_t refused;   /* attempts to attach */
	_Atomic uint64_t locked;    /* pages that could not leave */
	/* With tiers: pages on their nodes, and how they moved. */
	_Atomic uint64_t top_pages, top_peak;
	_Atomic uint64_t slow_pages, slow_peak;
	_Atomic uint64_t promoted, demoted;
	_Atomic uint64_t sampled; /* slow pages, to see whether they are hot */
	_Atomic uint64_t cold;	  /* of these, too late, or not touched */
	_Atomic uint64_t limited; /* hot, but too many in a second */
	_Atomic uint64_t guarded; /* the top node was too busy, or full */
	_Atomic uint64_t guard;	  /* enum run_guard */
};

/* Whether promotion stops while the top node is busy; else, what is missing. */
enum run_guard {
	RUN_GUARD_NONE,	      /* nothing is promoted anyway */
	RUN_GUARD_NO_COUNTER, /* the kernel does not say what the node moves */
	RUN_GUARD_NO_PEAK,    /* nobody says how much it can */
	RUN_GUARD_ON,
};

enum {
	RUN_PIDS_MAX = 1024,
	RUN_TEXT_MAX = 256,
};

/* The process that had most memory that was not far; see near.h. */
struct run_near {
	uint64_t bytes;
	char text[RUN_TEXT_MAX]; /* "of 'NAME' (process ...) because ..." */
};

/* Memory that supervisor and pager share. */
struct run_shared {
	struct run_stats stats;
	_Atomic int ends_when_idle;	 /* the supervisor's wish */
	_Atomic int ready;		 /* 1, or -errno with `text` */
	_Atomic pid_t pid[RUN_PIDS_MAX]; /* of spaces; 0: no entry */
	char text[RUN_TEXT_MAX];
	struct run_near near; /* the pager's, until it has ended */
};

/* The modes of run_options.mode: those of page_mode_parse. */
#define RUN_MODES "auto|static|dynamic-1m|dynamic-4k|two-sided|chain|sparse"

struct run_result {
	int status; /* as of waitpid */
	struct run_stats *stats;
	const struct run_near *near; /* NULL: nothing worth a line */
};

/*
 * Runs argv and returns when it and all its children have ended. `result`
 * points to memory that stays until the process ends. -errno with words: it was
 * not started.
 */
int run_program(const struct run_options *options, char **argv,
		struct run_result *result) MUST_CHECK;

#endif
