/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the play "page" share. */
#ifndef AQ_PLAYS_PAGE_PLAY_PRIV_H
#define AQ_PLAYS_PAGE_PLAY_PRIV_H

#include <infiniband/verbs.h>

#include "page_play.h"
#include "pageframe/pframe.h"
#include "pageframe/pframe_chain.h"
#include "wire/page_wire.h"

enum {
	PP_CLIENTS = 2,
	PP_PAGES = 8, /* of each client */
	PP_PAGE_BYTES = 1024,
	PP_DEPTH = 4,
	PP_OPS = 48,
	PP_NONSENSE = 40,
};

struct pp;

/* One operation under way; its place in the array is its tag. */
struct pp_op {
	bool busy;
	enum page_chain chain;
	uint32_t page;
	uint32_t version; /* that is stored, or must be loaded */
};

/* What the NIC sends and receives for it. */
struct pp_slot {
	uint8_t head[28];
	uint32_t imm; /* of a store */
	uint8_t page[PP_PAGE_BYTES];
};

struct pp_client {
	struct pp *p;
	unsigned index;
	struct rig_host *host;
	struct ibv_cq *cq;
	struct rig_pair pair[PAGE_CHAIN_COUNT];
	struct ibv_pd *node_pd;
	struct pframe_space *space; /* the node's; NULL: taken back */
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	struct rig_region *slots; /* struct pp_slot [PP_DEPTH] */
	struct rng rand;
	struct pp_op op[PP_DEPTH];
	uint32_t version[PP_PAGES]; /* 0: not stored */
	bool stopped;		    /* has failed: does nothing more */
	bool done;
};

struct pp {
	struct play_run run;
	const struct page_play_options *opt;
	struct page_play_counts *n;
	struct rig_host *node;
	struct pframe_pool *pool;
	struct pp_client client[PP_CLIENTS];
};

struct pp_slot *pp_slot_of(const struct pp_client *c, uint32_t tag);
/* Is this what the client stored last as page `number`? */
bool pp_page_is(const struct pp_client *c, uint32_t number,
		const uint8_t *bytes);
/* The clients' fibers: one that works, one that sends nonsense. */
void pp_client_main(void *arg);
void pp_liar_main(void *arg);

#endif
