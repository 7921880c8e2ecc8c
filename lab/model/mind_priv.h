/* SPDX-License-Identifier: Apache-2.0 */
/* What the files about events share. */
#ifndef AQ_MODEL_MIND_PRIV_H
#define AQ_MODEL_MIND_PRIV_H

#include "mind_world.h"

static inline uint8_t region_at(const struct mind_world *w, uint64_t page)
{
	return (uint8_t)(page / mind_unit_pages(w->config));
}

static inline struct coh_range region_range(const struct mind_world *w,
					    uint8_t region)
{
	uint32_t pages = mind_unit_pages(w->config);

	return (struct coh_range){(uint64_t)region * pages, pages};
}

/* Executes what the directory wants; `fresh`: the bytes that came with the
 * event. */
void mind_dir_did(struct mind_world *w, const struct coh_dir_out *out,
		  bool fresh);

/* ---- mind_node.c --------------------------------------------------------- */
/* For the page of the lane, or what the machine gives back of it. */
void mind_node_read(struct mind_world *w, uint8_t page, uint8_t machine,
		    uint8_t lane);
void mind_node_write(struct mind_world *w, uint8_t page, uint8_t machine,
		     bool fresh);
void mind_node_executes(struct mind_world *w, uint8_t node, uint8_t page);
void mind_node_dies(struct mind_world *w, uint8_t node, unsigned executed);
void mind_node_single(struct mind_world *w);
void mind_node_told(struct mind_world *w);
/* Their part of the switch's death: of each queue so many were executed, in
 * digits to the base of 8; a node that is away stays so. */
void mind_node_cut(struct mind_world *w, unsigned executed, bool stays_away);
/* One alone counts from now on, for keeper and switch. */
void mind_node_drop(struct mind_world *w);
/* The page's next bytes count as its last store, at all nodes. */
void mind_node_decree(struct mind_world *w, uint8_t page);

/* ---- mind_fate.c --------------------------------------------------------- */
void mind_die(struct mind_world *w, struct mind_machine *m);
void mind_gone(struct mind_world *w, uint8_t machine);
void mind_keeper_notes(struct mind_world *w, uint8_t machine);
void mind_join(struct mind_world *w, uint8_t machine);
void mind_switch_dies(struct mind_world *w, unsigned executed, bool stays_away);
void mind_repair(struct mind_world *w, uint8_t region);
void mind_resolve_doubt(struct mind_world *w);

#endif
