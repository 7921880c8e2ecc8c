/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One point of a figure of SwordBox: threads of several machines read and write
 * keys of a store in one memory node, through a switch, on hardware's costs,
 * for a span of virtual time. Store, NICs and switch are the shipped code.
 */
#ifndef AQ_RIG_VFIG_H
#define AQ_RIG_VFIG_H

#include "base/base.h"
#include "index/vlist.h"

enum vfig_system {
	VFIG_PLAIN,  /* the store without steering */
	VFIG_WRITES, /* appends are steered */
	VFIG_FULL,   /* READs, too */
	VFIG_FUSEE,  /* pointers that are swapped, no list: like FUSEE */
	VFIG_STORES,
	/* Figure 2.9, no store: a word that all compare and swap. */
	VFIG_CAS = VFIG_STORES,
	VFIG_CAS_REPLACED, /* by a WRITE of the switch's */
	VFIG_CAS_MOVED,	   /* on connections that are the switch's */
	VFIG_SYSTEMS,
};

extern const char *const vfig_system_names[VFIG_SYSTEMS];
/* The same for an option. */
#define VFIG_SYSTEM_LIST "plain|writes|full|fusee-like|cas|replaced|moved"

/* Counters of the program `steer`; they have its names. */
#define VFIG_STEER(X)        \
	X(appends)           \
	X(appends_steered)   \
	X(reads_steered)     \
	X(reads_behind)      \
	X(committed)         \
	X(failed)            \
	X(held)              \
	X(went_back)         \
	X(taken_along)       \
	X(released)          \
	X(vouched_reads)     \
	X(reads_held)        \
	X(successors_hidden) \
	X(sent_again)        \
	X(given_up)          \
	X(not_admitted)      \
	X(key_unknown)       \
	X(forgotten)

enum vfig_steer_count {
#define VFIG_STEER_ENUM(name) VFIG_STEER_##name,
	VFIG_STEER(VFIG_STEER_ENUM)
#undef VFIG_STEER_ENUM
	VFIG_STEER_COUNTS
};

extern const char *const vfig_steer_names[VFIG_STEER_COUNTS];

enum {
	VFIG_KEYS = 1024,
	VFIG_VALUE = 128,
	VFIG_HOSTS = 7,
	VFIG_THREADS_MAX = 400,
};

struct sim_fabric_choice;

struct vfig_config {
	enum vfig_system system;
	uint32_t threads;
	uint32_t write_percent;
	uint32_t steer_keys;  /* 0: all */
	uint32_t theta_milli; /* of the Zipfian distribution */
	bool in_device;	      /* the word is in the NIC's memory */
	/* A thread remembers by itself and reads no shortcut, as no client of
	 * Clover does. */
	bool private_places;
	bool on_core; /* the switch is a core: a packet costs it time */
	uint64_t warm_ps;
	uint64_t span_ps;
	uint64_t seed;
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
};

/* Operations by the round trips that they took: 1, 2, or more. */
enum {
	VFIG_TRIPS = 3
};

struct vfig_trips {
	double share; /* of the reads, or of the writes */
	double p50_us, p99_us;
};

struct vfig_result {
	double mops;
	double success; /* share of attempts that were the last of theirs */
	double bytes;	/* on the memory node's link, per operation */
	double read_p50_us, read_p99_us;
	double write_p50_us, write_p99_us;
	uint64_t reads, writes;
	uint64_t evictions;
	uint64_t errors;
	/* What the store's clients and the switch did in the span. */
	uint64_t done;
	struct vlist_stats work;
	uint64_t steer[VFIG_STEER_COUNTS];
	struct vfig_trips trips[2][VFIG_TRIPS]; /* reads, writes */
};

/* 0 or -errno. Sets the process's verbs provider meanwhile. */
int vfig_run(const struct vfig_config *cfg, struct vfig_result *res) MUST_CHECK;

#endif
