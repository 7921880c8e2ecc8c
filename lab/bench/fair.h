/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two tenants of one memory node: one works, the other floods the node with
 * several processes. What each process does, and the page they share.
 */
#ifndef AQ_BENCH_FAIR_H
#define AQ_BENCH_FAIR_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	FAIR_PROCESSES_MAX = 64,
	FAIR_WHY_BYTES = 200,
};

/* What the hostile processes do now. */
enum fair_mode {
	/* Send nothing, but use their core as in the flood before. */
	FAIR_BUSY,
	FAIR_FLOOD, /* send whatever they may */
	FAIR_QUIT,
};

/* Shared by all processes; zeroes at first. */
struct fair_page {
	_Atomic int mode;
	_Atomic unsigned ready;	 /* processes that have set up */
	_Atomic unsigned failed; /* processes that could not go on */
	_Atomic uint64_t worked; /* operations of the tenant that works */
	_Atomic uint64_t flooded;
	char why[FAIR_WHY_BYTES]; /* of the last process that failed */
};

/* The main functions of the processes; they return when the mode is FAIR_QUIT.
 * The tenant is that of AQUIFER_TOKEN. */
int fair_work(struct fair_page *page);
/* `index`: every third asks for pages by chains, every third by messages, the
 * others READ. */
int fair_flood(struct fair_page *page, unsigned index);

#endif
