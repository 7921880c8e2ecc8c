/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rack of `aquifer sim elastic --figure`: the shipped controller's core on a
 * clock that figures move, asked as clients ask it, and memory nodes that make
 * and free shipped blocks as they are ordered to. What lies in the blocks is
 * address space only: pages that nobody writes cost nothing.
 */
#ifndef AQ_FIGURES_EFIG_RACK_H
#define AQ_FIGURES_EFIG_RACK_H

#include <jansson.h>

#include "block/blk.h"
#include "control/ctl_http.h"

struct efig_rack;

struct efig_rack_config {
	unsigned nodes, tenants;
	uint64_t node_bytes;
	uint64_t seed;
};

/* One block of an object, as its map has it. */
struct efig_place {
	uint64_t number;
	unsigned node, index;
	uint64_t generation;
};

/* -ENOMEM, or -EPROTO: the controller refused. */
int efig_rack_open(const struct efig_rack_config *c,
		   struct efig_rack **out) MUST_CHECK;
void efig_rack_close(struct efig_rack *r);

/* Moves the clock there: ticks of the controller, beats of nodes. */
void efig_rack_run(struct efig_rack *r, uint64_t now_ns);
/* The status; *answer is the caller's, or NULL. Takes the body, which may be
 * NULL. Orders that follow are carried out. */
unsigned efig_rack_ask(struct efig_rack *r, unsigned tenant,
		       enum ctl_method method, const char *path, json_t *body,
		       json_t **answer);
/* Asks for blocks behind `after` (-1: the first); those that are new to the
 * caller go to out, up to `room`. -ENOSPC, -ENOENT. */
int efig_rack_grow(struct efig_rack *r, unsigned tenant, const char *path,
		   int64_t after, struct efig_place *out, unsigned room,
		   unsigned *count) MUST_CHECK;
/* NULL: the node has freed it. */
struct blk_block *efig_rack_block(struct efig_rack *r,
				  const struct efig_place *p);
/* A queue's block was emptied for good: the node says so. */
void efig_rack_drained(struct efig_rack *r, const struct efig_place *p);
/* Of all blocks that there are. */
uint64_t efig_rack_allocated(const struct efig_rack *r);
uint64_t efig_rack_requests(const struct efig_rack *r);

#endif
