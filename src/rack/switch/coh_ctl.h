/* SPDX-License-Identifier: Apache-2.0 */
/* Control calls of shared memory, by what they are about; coh_ctl.c has the
 * list. Each reads the words of its call, and says what is wrong with them. */
#ifndef AQ_COH_CTL_H
#define AQ_COH_CTL_H

#include "coh.h"
#include "words.h"

/* ---- coh_declare.c: who is there, and who may do what ----------------------
 */

/* An arena and its connection. */
void coh_read_at(struct tor_words *p, struct coh_node_at *out);
/* With a connection, by an offer, or one that is away. */
int coh_declare_node(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_declare_outlier(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_declare_right(struct coh *c, struct tor_words *p) MUST_CHECK;
/* The talk of a machine, which is a member from now on. */
int coh_declare_machine(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_declare_lane(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_declare_key(struct coh *c, struct tor_words *p) MUST_CHECK;

/* ---- coh_offer.c: arenas of nodes that do not keep the members ------------
 */

/* A node offers its arena, in place of what it offered before. */
int coh_offer_make(struct coh *c, struct tor_words *p) MUST_CHECK;
/* The node asks what became of it, and says which parts are zeros by now. */
int coh_offer_look(struct coh *c, struct tor_words *p,
		   struct json_out *out) MUST_CHECK;
/* The keeper: this part shall be zeros. -EBUSY: many wait already. */
int coh_offer_scrub(struct coh *c, struct tor_words *p) MUST_CHECK;
/* The words offer and id; NULL with an error: there is none. */
struct coh_offer *coh_offer_read(struct coh *c, struct tor_words *p);
void coh_offer_show(const struct coh *c, struct json_out *out);

/* ---- coh_move.c ------------------------------------------------------------
 */

int coh_move_begin(struct coh *c, struct tor_words *p) MUST_CHECK;
/* -EBUSY: not all pages are there. */
int coh_move_conclude(struct coh *c, struct tor_words *p) MUST_CHECK;
/* The same, and the old place stays: from now on two nodes have the range. */
int coh_move_pair(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_move_cancel(struct coh *c, struct tor_words *p) MUST_CHECK;
void coh_move_show(const struct coh *c, struct json_out *out);
/* The range is there, whatever was said of it before. -ENOSPC. */
int coh_outlier_set(struct coh *c, uint64_t va, uint64_t size, uint32_t node,
		    uint64_t addr) MUST_CHECK;
/* It is where its arena's entry says. */
void coh_outlier_clear(struct coh *c, uint64_t va, uint64_t size);
/* The words node and at: a part of an arena of that size. */
int coh_read_part(struct coh *c, struct tor_words *p, uint64_t size,
		  uint32_t *node, uint64_t *addr) MUST_CHECK;

/* ---- coh_pair.c ------------------------------------------------------------
 */

int coh_pair_declare(struct coh *c, struct tor_words *p) MUST_CHECK;
/* -ENOENT: it is no pair. */
int coh_pair_single(struct coh *c, struct tor_words *p) MUST_CHECK;
/* Nothing of the range is a pair's any more. */
void coh_pair_clear(struct coh *c, uint64_t page, uint64_t count);
void coh_pair_show(const struct coh *c, struct json_out *out);

/* ---- coh_region.c ----------------------------------------------------------
 */

/* Pages, from the words va and size, in bytes. */
struct coh_range coh_read_pages(struct tor_words *p, uint64_t *count);
/* Lost in a former term; memory's bytes shall count; the entry is taken back;
 * halved; joined with its right neighbour. */
int coh_region_lost(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_region_repair(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_region_recall(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_region_split(struct coh *c, struct tor_words *p) MUST_CHECK;
int coh_region_join(struct coh *c, struct tor_words *p) MUST_CHECK;
/* Where an owner dies in the range, memory's bytes count. */
int coh_region_last(struct coh *c, struct tor_words *p) MUST_CHECK;
/* Takes back whatever lies in a range that nobody has a right to any more, and
 * forgets what was lost there; says how many entries are left. */
int coh_region_clear(struct coh *c, struct tor_words *p,
		     struct json_out *out) MUST_CHECK;
/* The region of a page, and who may have copies of it. */
int coh_region_find(const struct coh *c, struct tor_words *p,
		    struct json_out *out) MUST_CHECK;

#endif
