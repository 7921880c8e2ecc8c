/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A machine's half: what its processes may do with each cached page, and what
 * it owes the switch. One thread. All arrays belong to the caller; no call
 * allocates, and every call fills `out`, which the caller executes in its order
 * before the next call.
 *
 * Page: what processes may do (NONE, READ, WRITE), and beside that
 *   dirty   stores that the memory node may not have; with WRITE always
 *   giving  a give-back is under way
 *   leaving it goes when the give-back is complete
 *
 *  event                       next, and what is done
 *  --------------------------  -----------------------------------------------
 *  touch, the right is there   nothing: hit
 *  touch                       get, if no get and no give-back of the page, no
 *                              EVICT over it is under way, a lane is free, and
 *                              the switch is connected and knows us as clean;
 *                              else later
 *  answer to a get             NONE, READ -> READ or WRITE + dirty; map
 *  INVAL                       wait for the gets that it names; then WRITE ->
 *                              READ, protect; give back what is dirty, the
 *                              target first; wait until all give-backs of the
 *                              range are complete; to NONE: -> NONE, unmap; FIN
 *  give-back complete          not dirty; leaving: -> NONE, unmap
 *  evict a page                dirty: protect, give back, leaving; else unmap
 *  flush a page                dirty: protect, give back; it stays
 *  leave a range               EVICT, if nothing of it is here, asked for or
 *                              being invalidated
 *  suspend, resume             processes may do nothing, and again what they
 *                              could
 *  cut: the switch is gone     gets, give-backs, INVALs and EVICTs are over; a
 *                              page whose give-back was not complete is dirty
 *  connect: another term       WRITE -> READ, protect all; give back all that
 *                              is dirty; when that is complete unmap all; CLEAN
 *  expelled                    all is gone: fail
 *
 * FIN follows the completion of all give-backs, and so does CLEAN: a machine
 * with stores that are not in memory blocks everybody else, so nobody's old
 * bytes can come home over newer ones, wherever the switch dies (docs/mind.md).
 */
#ifndef AQ_COHERENCE_CACHE_H
#define AQ_COHERENCE_CACHE_H

#include "coherence.h"

enum {
	COH_CACHE_GIVES_MAX = 16, /* give-backs under way */
	/* Those, gets of freed lanes excluded, which are touched again; FINs of
	 * all INVALs, and what belongs to them. */
	COH_CACHE_OUT_MAX = 256,
	COH_CACHE_JOBS_MAX = 64,
};

struct coh_cache_page {
	uint8_t right; /* enum coh_right */
	uint8_t get;   /* the right that a get under way asks for, or NONE */
	bool dirty, giving, leaving;
};

struct coh_cache_lane {
	uint64_t page;
	uint32_t serial; /* of the get that it carries or carried last */
	uint8_t right;	 /* COH_NONE: it is free */
};

/* An INVAL that has no FIN yet. */
enum coh_job_state {
	COH_JOB_FREE,
	COH_JOB_WAITS, /* for the answers to granted gets */
	COH_JOB_GIVES,
};

struct coh_cache_job {
	struct coh_inval inval;
	uint8_t state;
	uint32_t at; /* pages before it are given, or being given */
};

/* A range that is left: until the EVICT is complete there is no get in it. */
struct coh_cache_leave {
	struct coh_range range; /* of count 0: free */
};

enum coh_cache_link {
	COH_CACHE_CUT,	   /* no switch */
	COH_CACHE_CLEANS,  /* connected; gives back what is of a former term */
	COH_CACHE_CLEANED, /* CLEAN is under way */
	COH_CACHE_MEMBER,
};

struct coh_cache {
	/* Set by the caller before coh_cache_init. */
	struct coh_cache_page *pages;
	struct coh_cache_lane *lanes;
	struct coh_cache_job *jobs;
	struct coh_cache_leave *leaves;
	uint64_t first_page;
	uint32_t page_count;
	uint8_t machine, lane_count, job_count, leave_count;

	uint32_t term;
	uint32_t giving; /* give-backs under way */
	uint32_t at;	 /* COH_CACHE_CLEANS: as of a job */
	uint8_t link;
	bool suspended;
	uint64_t stray; /* messages that made no sense, and were dropped */
};

enum coh_cache_action_kind {
	COH_CACHE_MAP, /* the answer's bytes, with this right; wake threads */
	COH_CACHE_PROTECT, /* no more stores to the range */
	COH_CACHE_UNMAP,   /* the range is gone */
	COH_CACHE_GET,
	COH_CACHE_GIVE,
	COH_CACHE_FIN,
	COH_CACHE_EVICT, /* `index`: of the leave */
	COH_CACHE_CLEAN,
	COH_CACHE_HIDE,	  /* processes may touch nothing */
	COH_CACHE_UNHIDE, /* they may again */
	COH_CACHE_FAIL,	  /* the page is lost: SIGBUS for who waits for it */
};

struct coh_cache_action {
	enum coh_cache_action_kind kind;
	struct coh_range range; /* or the one page */
	uint8_t index;
	enum coh_right right;
	struct coh_get get;
	struct coh_fin fin;
	uint32_t term;
};

struct coh_cache_out {
	uint32_t count;
	struct coh_cache_action action[COH_CACHE_OUT_MAX];
};

enum coh_touch {
	COH_TOUCH_HIT,
	COH_TOUCH_SENT,
	COH_TOUCH_LATER, /* touch again after every other event */
};

/* Empty, without a switch. */
void coh_cache_init(struct coh_cache *c);
/* What processes may do with a page of the range. */
enum coh_right coh_cache_right(const struct coh_cache *c, uint64_t page);

/* ---- what programs and the machine want ---------------------------------- */
enum coh_touch coh_cache_touch(struct coh_cache *c, uint64_t page,
			       enum coh_right right, struct coh_cache_out *out);
/* -EBUSY: not now. */
int coh_cache_evict(struct coh_cache *c, uint64_t page,
		    struct coh_cache_out *out) MUST_CHECK;
/* Stores to the page shall be in the memory node: 0 if they are; -EBUSY: not
 * yet, ask again after other events. */
int coh_cache_flush(struct coh_cache *c, uint64_t page,
		    struct coh_cache_out *out) MUST_CHECK;
/* A range of whole regions, up to COH_REGION_PAGES_MAX pages. -EBUSY. */
int coh_cache_leave(struct coh_cache *c, const struct coh_range *range,
		    struct coh_cache_out *out) MUST_CHECK;

/* ---- what comes from the switch ------------------------------------------ */
void coh_cache_answer(struct coh_cache *c, uint8_t lane,
		      struct coh_cache_out *out);
/* A get was refused: the region is lost. */
void coh_cache_refused(struct coh_cache *c, uint8_t lane,
		       struct coh_cache_out *out);
void coh_cache_inval(struct coh_cache *c, const struct coh_inval *inval,
		     struct coh_cache_out *out);
/* Whether a get that the INVAL names has no answer yet: who delays INVALs until
 * threads have used their pages delays them until then, too. */
bool coh_cache_is_named(const struct coh_cache *c,
			const struct coh_inval *inval) MUST_CHECK;
void coh_cache_given(struct coh_cache *c, uint64_t page,
		     struct coh_cache_out *out);
void coh_cache_left(struct coh_cache *c, uint8_t index);
void coh_cache_cleaned(struct coh_cache *c);

/* ---- terms and leases ---------------------------------------------------- */
void coh_cache_cut(struct coh_cache *c);
/* A machine that was a member of another term cleans first; a new one, with
 * nothing in its cache, does not have to. */
void coh_cache_connect(struct coh_cache *c, uint32_t term, bool was_member,
		       struct coh_cache_out *out);
void coh_cache_suspend(struct coh_cache *c, struct coh_cache_out *out);
void coh_cache_resume(struct coh_cache *c, struct coh_cache_out *out);
/* The others went on without us, which a refused give-back also means: nothing
 * that is here counts. */
void coh_cache_expelled(struct coh_cache *c, struct coh_cache_out *out);

/* NULL, or the invariant that does not hold, in words. */
const char *coh_cache_check(const struct coh_cache *c);

#endif
