/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upkeep of a table: what its clients wish is done on a thread of the process
 * that has it open. It makes the table larger before it is full, makes copies
 * that were lost, and ends resizes whose clients died.
 */
#ifndef AQ_KV_UPKEEP_H
#define AQ_KV_UPKEEP_H

#include "kv_table_priv.h"

/* ---- kv_upkeep_plan.c --------------------------------------------------- */

/* What was wished, of one generation. */
struct kv_need {
	bool any;
	bool rows, extents, copy, end;
	uint32_t generation;
	uint64_t bytes; /* the largest value that found no place */
};

void kv_need_add(struct kv_need *n, const struct kv_wish *w);
/* What the table should become; *share says which part of the whole increase it
 * is, from 1 on: where there is no room for it, ask with twice as much.
 * -ENOSPC: it has its largest size. */
int kv_upkeep_plan(const struct kv_geometry *g, const struct kv_need *need,
		   uint64_t keys, unsigned *share,
		   struct aq_kv_options *o) MUST_CHECK;

/* ---- kv_upkeep.c -------------------------------------------------------- */

struct kv_upkeep;

/* No thread runs before the first wish. NULL: no memory. */
struct kv_upkeep *kv_upkeep_create(struct aq_kv *kv);
/* Waits for work under way, up to the rack's deadline; then others have to go
 * on with it. NULL is allowed. */
void kv_upkeep_destroy(struct kv_upkeep *u);
/* As kv_client_config.wish, with the upkeep as its context. */
int kv_upkeep_wish(void *ctx, const struct kv_wish *w);
/* A client of the table is opened: a table of two copies is looked at now and
 * then, also when nobody uses it. */
void kv_upkeep_watch(struct kv_upkeep *u);

#endif
