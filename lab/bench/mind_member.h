/* SPDX-License-Identifier: Apache-2.0 */
/* A machine without programs: the shipped connections and cache of a cache
 * server, around nothing. What a get costs without a fault is seen here. */
#ifndef AQ_BENCH_MIND_MEMBER_H
#define AQ_BENCH_MIND_MEMBER_H

#include "coherence/cache.h"
#include "sharedd/nic.h"

enum {
	MIND_MEMBER_LEAVES = 8,
};

struct mind_member {
	struct shd_lead *lead;
	struct shd_nic nic;
	struct coh_cache cache;
	struct coh_cache_out out;
	struct coh_cache_lane lanes[COHERENCE_LANES];
	struct coh_cache_job jobs[COH_CACHE_JOBS_MAX];
	struct coh_cache_leave leaves[MIND_MEMBER_LEAVES];
	uint64_t answers; /* gets that were answered */
	uint64_t fins;	  /* invalidations that are over */
	bool is_lost;	  /* a get was refused, or a connection broke */
};

/* Joins the rack of the environment; 0, or -errno with words. */
int mind_member_open(struct mind_member *m, const char *name) MUST_CHECK;
void mind_member_close(struct mind_member *m);
/* Takes what has come, and answers it. False: something is lost. */
bool mind_member_turn(struct mind_member *m) MUST_CHECK;
/* Asks for the page; LATER: there is no lane for it. */
enum coh_touch mind_member_get(struct mind_member *m, uint64_t page,
			       enum coh_right right) MUST_CHECK;
/* Forgets a page that it has to read, or gives back one that it has written,
 * so that it can be asked for again; needs turns. */
void mind_member_drop(struct mind_member *m, uint64_t page);
/* The first page of a segment of the rack; 0 or -errno with words. */
int mind_member_segment(const char *name, uint64_t *page) MUST_CHECK;

#endif
