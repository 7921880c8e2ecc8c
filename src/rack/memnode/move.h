/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Regions that move to another node (decision 62). Somebody with the tenant's
 * right copies them and says what to do; each node remembers how far it is, so
 * that whoever does it may die at any point:
 *
 *	there	HOME	  ARRIVING	it is made, hidden
 *	here	HOME      LEAVING	all keys end; only the mover reads
 *	there	ARRIVING  SEALED	all of it is copied
 *	here	LEAVING   GONE		"give": it is the other node's now
 *	there	SEALED    HOME		"take": clients find it
 *
 * The node that gives decides: until then the region is its own, and comes back
 * to life when nothing is heard of the mover for a while; and what is arriving
 * ends. A sealed one stays until the mover, or the controller, says that it was
 * given (move_told.c), or never will be: a move that was given up here does not
 * begin again.
 */
#ifndef AQ_MEM_MOVE_H
#define AQ_MEM_MOVE_H

#include "mem_priv.h"

/* Whether it is no region of this node, or not yet. */
static inline bool move_is_hidden(const struct mem_region *r)
{
	return r->move.stage > MEM_STAGE_LEAVING;
}

/* Whether a request may use the region of that name, which may be NULL:
 * -ENOENT, or -EBUSY while it is changed, or on its way. */
int move_check(const struct mem_node *node, const struct mem_tenant *tenant,
	       const char *name, const struct mem_region *r) MUST_CHECK;
/* The same of a key; one of a region that moves is the mover's, to read what
 * leaves and to write what arrives. */
int move_check_grant(const struct mem_node *node, const struct ctl_call *call,
		     const char *name, const struct mem_region *r,
		     const struct grant_wish *wish) MUST_CHECK;
/* What a new region is, if it is one that arrives. *birth is 0 where nothing is
 * said. */
int move_arrival_parse(const struct mem_node *node, const json_t *body,
		       struct mem_move *move, uint64_t *birth) MUST_CHECK;
/* A member that is a number of 16 hex digits, 0 where it may be missing and
 * is. */
int move_field_id(const json_t *body, const char *name, bool required,
		  uint64_t *out) MUST_CHECK;
int move_parse_id(const char *what, const char *text, uint64_t *out) MUST_CHECK;

/* No region of a move, and no end of one. */
int move_none(uint64_t id) MUST_CHECK;
/* Whether a move may begin: -ESTALE, it was given up here, or is over; -EAGAIN,
 * no controller knows this run of the node. */
int move_may_begin(const struct mem_node *node, const struct mem_tenant *tenant,
		   uint64_t id) MUST_CHECK;
/* Why the region cannot leave: -EOPNOTSUPP, -EBUSY. */
int move_may_leave(const struct mem_region *r) MUST_CHECK;
/* All of them, which may leave. They let the lock go for a while. */
int move_leave(struct mem_node *node, uint64_t id, uint64_t until_ns,
	       struct mem_region *const *regions, unsigned count) MUST_CHECK;
/* The regions of the move are the other node's: all or none. 0 also where that
 * was said before; -EAGAIN: too many were given and not taken. */
int move_give(struct mem_node *node, const struct mem_tenant *tenant,
	      uint64_t id, const char *to) MUST_CHECK;
/* Those that are sealed become regions. -ENOENT: there is none. */
int move_take(struct mem_node *node, const struct mem_tenant *tenant,
	      uint64_t id) MUST_CHECK;
/* What was given by the move is at its new place; once nobody asks for it here
 * any more, it is forgotten. */
void move_settled(struct mem_node *node, uint64_t id);
/* The move is over: what leaves stays, what arrives ends, and names that were
 * given are free. */
int move_end(struct mem_node *node, const struct mem_tenant *tenant,
	     uint64_t id) MUST_CHECK;
/* Every tick. */
void move_tick(struct mem_node *node);

/* ---- move_told.c: with the controller -------------------------------------
 */

/* How much moves and has moved, what was given and what never will be, and what
 * waits for that. */
void move_say(const struct mem_node *node, json_t *beat);
/* Takes what was given, though nobody told it; and what never will be ends. */
void move_hear(struct mem_node *node, const json_t *answer);

#endif
