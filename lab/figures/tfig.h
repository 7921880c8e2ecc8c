/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory tiers at the scale of the chapter on CXL: placement, promotion and the
 * guard are the shipped policies (tier/), on pages whose memories are modelled.
 *
 *	memory	latency at a load from published curves; what a memory moves is
 *		shared by all who use it (tfig_memory.c)
 *	load	an application as threads that compute, wait for misses, and
 *		stream; how many operations they do is where their time and the
 *		latency at their load agree (tfig_load.c)
 *	pages	where each page is, and what the policies make of it, on a
 *		virtual clock (tfig_pages.c)
 */
#ifndef AQ_FIGURES_TFIG_H
#define AQ_FIGURES_TFIG_H

#include "base/rng.h"
#include "report/figure.h"
#include "tfig_curves.h"
#include "tier/guard.h"
#include "tier/place.h"
#include "tier/promote.h"

/* ---- memory (tfig_memory.c) --------------------------------------------- */

/* Who uses a memory, or some equal ones that share the load. */
struct tfig_users {
	double units;	    /* memories */
	double threads;	    /* of all of them */
	double write_share; /* 0 to 1 */
};

double tfig_memory_ns(enum tfig_memory m, const struct tfig_users *u,
		      double gbs);
/* What they move at most. */
double tfig_memory_peak(enum tfig_memory m, const struct tfig_users *u);

/* ---- load (tfig_load.c) ------------------------------------------------- */

enum {
	TFIG_PLACES = 3, /* top, slow, slow from the other socket */
};

/* A memory that an application uses, and how many of them there are. */
struct tfig_place {
	enum tfig_memory memory;
	double units;
	double share;	 /* of all lines */
	double more_gbs; /* that pages on the move take */
};

struct tfig_load {
	double threads;
	double compute_ns; /* of an operation */
	double misses;	   /* that wait for each other */
	double lines;	   /* that do not */
	double under_way;  /* of those, at a time */
	double write_share;
	double ssd_reads; /* of an operation, each of which is waited for */
	double ssd_bytes; /* of an operation, in a stream */
	double ssd_gbs;	  /* of all SSDs */
	double overhead;  /* share of the threads' time that is lost */
	struct tfig_place place[TFIG_PLACES];
};

struct tfig_rate {
	double ops_s;
	double op_ns;
	double gbs[TFIG_PLACES];
	double ns[TFIG_PLACES];
};

void tfig_load_solve(const struct tfig_load *l, struct tfig_rate *out);

/* ---- pages (tfig_pages.c) ----------------------------------------------- */

enum tfig_stream {
	TFIG_ZIPFIAN, /* popular pages anywhere */
	TFIG_LATEST,  /* popular are those that were made last */
	TFIG_EVEN,    /* all alike: shuffled data, a model's weights */
};

struct tfig_pages_config {
	enum tfig_stream stream;
	uint64_t bytes;
	struct tier_ratio ratio; /* all zero: everything on top */
	uint64_t top_bytes;	 /* that fit; 0: all */
	double ssd_share;	 /* of the pages, the least popular ones */
	bool is_promoted;
	bool is_guarded;
	double top_peak_gbs;
	uint32_t processes; /* whose pages are looked at by turns */
	double visits;	    /* of pages, by one operation */
	double made;	    /* new pages, by one operation */
	double seconds;	    /* that are played; the last quarter counts */
	uint64_t seed;
};

struct tfig_pages_result {
	struct tfig_rate rate;
	double top_share;    /* of the lines */
	double promoted_mbs; /* and as much demoted, once top is full */
	double overhead;
	double threshold_ms;
	double guarded; /* share of the judgements */
};

/* -ENOMEM. `load` says everything but shares and overhead. */
int tfig_pages_run(const struct tfig_pages_config *c,
		   const struct tfig_load *load,
		   struct tfig_pages_result *out) MUST_CHECK;

/* ---- figures (tfig_plan.c, tfig_claims.c, tfig_figure.c) ---------------- */

enum tfig_kind {
	TFIG_KIND_MEMORY, /* idle and peak, or the knee */
	TFIG_KIND_PAGES,
	TFIG_KIND_COST,
	TFIG_KIND_VM,
};

struct tfig_result {
	double idle_ns, peak_gbs, knee;
	double kops, gbs; /* gbs: of all memories */
	double latency_us;
	double top_gbs, slow_gbs, remote_gbs;
	double top_ns, slow_ns;
	double top_share;
	double promoted_mbs, overhead, threshold_ms, guarded;
	double servers, saving, revenue;
};

struct tfig_row {
	struct figure_point p;
	enum tfig_kind kind;
	/* TFIG_KIND_MEMORY */
	enum tfig_memory memory;
	double write_share;
	/* TFIG_KIND_PAGES */
	struct tfig_pages_config pages;
	struct tfig_load load;
	double machines; /* that do the same together */
	struct tfig_result res;
};

struct tfig_figure_options {
	struct figure_options f;
	uint64_t seed;
};

int tfig_plan_ladder(struct figure_run *r);
int tfig_plan_knee(struct figure_run *r);
int tfig_plan_keydb(struct figure_run *r);
int tfig_plan_keydb_cxl(struct figure_run *r);
int tfig_plan_spark(struct figure_run *r);
int tfig_plan_llm(struct figure_run *r);
int tfig_plan_vm(struct figure_run *r);
int tfig_plan_cost(struct figure_run *r);
int tfig_plan_guard(struct figure_run *r);
/* A point's result, as its kind asks for. */
int tfig_point(void *row);

void tfig_judge_knee(struct figure_run *r);
void tfig_judge_keydb(struct figure_run *r);
void tfig_judge_spark(struct figure_run *r);
void tfig_judge_llm(struct figure_run *r);

enum {
	TFIG_CLAIMS = 77,
};

extern const struct figure_claim tfig_claims[];

#endif
