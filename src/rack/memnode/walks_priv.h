/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks of tenants: the programs that a node keeps, and the engine that its NIC
 * calls to execute them.
 *
 * The NIC calls with its own lock held and must not wait for the node's, so
 * programs have a lock of their own (walks->lock), which is taken last. The
 * engine belongs to the NIC's lock alone. A program that is deleted stays until
 * the last walk that executes it has ended; its memory is then given back by a
 * request or a tick.
 */
#ifndef AQ_MEM_WALKS_PRIV_H
#define AQ_MEM_WALKS_PRIV_H

#include "base/lock.h"
#include "mem_priv.h"
#include "walk/engine.h"
#include "walk/gather.h"
#include "walk/program.h"

enum {
	MEM_WALK_BUCKETS = 256,
	MEM_WALK_ID_TEXT = 16 + 1, /* a program's hash in hex digits */
};

struct mem_program {
	struct list link; /* in its bucket, or among the dead */
	struct mem_tenant *tenant;
	const struct ibv_pd *pd; /* of its tenant's connections */
	struct walk_program *program;
	uint64_t hash;
	uint64_t charged_bytes;
	/* Under walks->lock. */
	unsigned users; /* walks under way */
	bool ended;
	uint64_t runs;
	uint64_t iterations;
};

struct mem_walks {
	/* Under the NIC's lock. */
	struct walk_engine *engine;
	struct walk_gathers *gathers;
	uint32_t running; /* walks in it */
	uint64_t cost;	  /* of the longest paths of all their programs */
	struct mem_walk_config config;
	struct lock lock; /* of all below */
	struct list bucket[MEM_WALK_BUCKETS];
	struct list dead;
	unsigned count;
	uint64_t unknown; /* walks whose program is not here */
};

/* Hosts the engine where the NIC supports walks; else node->walks stays
 * NULL. */
int walks_open(struct mem_node *node) MUST_CHECK;
/* No connection and no program is left. */
void walks_close(struct mem_node *node);

/* Verifies the image and keeps it for the tenant. *is_new: it was not there
 * already. -EINVAL: refused, with words; -EDQUOT, -ENOSPC, -EAGAIN. */
int walks_add(struct mem_node *node, struct mem_tenant *tenant,
	      const void *image, size_t len_bytes, struct mem_program **out,
	      bool *is_new) MUST_CHECK;
struct mem_program *walks_find(struct mem_node *node,
			       const struct mem_tenant *tenant, uint64_t hash);
/* Walks that execute it go on. */
void walks_remove(struct mem_node *node, struct mem_program *p);

typedef void (*walks_fn)(void *ctx, struct mem_program *p);
/* All programs of a tenant, or of all tenants (NULL). `each` may remove the
 * one that it is given. */
void walks_each(struct mem_node *node, const struct mem_tenant *tenant,
		walks_fn each, void *ctx);

#endif
