/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the play "hostile" share. */
#ifndef AQ_PLAYS_HOSTILE_PLAY_PRIV_H
#define AQ_PLAYS_HOSTILE_PLAY_PRIV_H

#include <infiniband/verbs.h>

#include "client/heartbeat_plan.h"
#include "hostile_play.h"
#include "pageframe/pframe.h"
#include "pageframe/pframe_chain.h"
#include "pageframe/pframe_server.h"
#include "wire/page_wire.h"
#include "wire/wire.h"

enum {
	HP_HONEST = 3, /* one per way to pages */
	HP_PAGES = 3,  /* of an honest tenant */
	HP_FOE_PAGES =
		2, /* of each space of the hostile one: it meets itself */
	HP_FOE_ENTRIES = 6, /* of its tables; it may have fewer pages */
	HP_PAGE_BYTES = 256,
	HP_DEPTH = 4, /* messages under way at the node, per connection */
	HP_REGION_BYTES = 1024,
	HP_WORDS = 8, /* for atomics, at the end of a region */
	HP_DATA_BYTES = HP_REGION_BYTES - 8 * HP_WORDS,
	HP_GRANT_BYTES = 64, /* of the first tenant's region: may be read */
	HP_OPS = 160,	     /* of each honest tenant */
	HP_QUEUE = 32,
	HP_SPACES = 3, /* of the hostile one: messages, pieces, chains */
	HP_GUESTS = 3, /* of the hostile one, on each space that has some */
	HP_CONNS = 2,  /* its one-sided connections */
	HP_HEADS = 512,
	HP_KEYS = 16,  /* keys that it remembers */
	HP_TAPES = 64, /* frames that it remembers */
	HP_TAPE_BYTES = 512,
	/* Honest tenants write bytes from here on, the hostile one below: so
	 * its memory shows whether it has read bytes of others. */
	HP_TELLTALE = 0x80,
};

/* Connections of the hostile one at the same time. */
#define HP_FOE_CONNECTIONS \
	(HP_CONNS + HP_BY_CHAINS * HP_GUESTS + PAGE_CHAIN_COUNT)

struct hp;

/* The ways to pages. */
enum hp_way {
	HP_BY_SERVER,
	HP_BY_PIECES,
	HP_BY_CHAINS,
};

/* A tenant at the node. */
struct hp_tenant {
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint8_t *mem; /* of its region */
};

struct hp_piece {
	uint64_t addr;
	uint32_t rkey;
	/* What the hostile one knows about it. */
	uint64_t index;
	unsigned guest;
	bool is_stale;
};

/* What the NIC of an honest tenant sends from and receives into. */
struct hp_desk {
	struct page_request head;
	uint8_t page[HP_PAGE_BYTES]; /* right behind */
	uint8_t in[HP_REGION_BYTES];
	struct page_piece piece;
};

struct hp_client {
	struct hp *p;
	unsigned index;
	enum hp_way way;
	struct rig_host *host;
	struct ibv_cq *cq;
	struct hp_tenant tenant;
	struct rig_pair conn; /* one-sided */
	struct rig_region *desk;
	struct ibv_pd *chain_pd;
	struct pframe_space *space;
	struct pframe_guest *guest;
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	struct rig_pair page[PAGE_CHAIN_COUNT]; /* a guest: the first */
	struct rng rand;
	/* What must be at the node. */
	uint8_t shadow[HP_REGION_BYTES];
	uint8_t stored[HP_PAGES][HP_PAGE_BYTES];
	bool is_stored[HP_PAGES];
	struct hp_piece piece[HP_PAGES];
	bool stopped; /* by a violation */
	bool done;
};

struct hp_guest {
	struct pframe_guest *guest; /* NULL: closed */
	struct rig_pair pair;
	unsigned withheld; /* receives that it has not posted */
};

struct hp_foe_desk {
	uint8_t out[HP_REGION_BYTES];
	uint8_t in[HP_REGION_BYTES];	/* must not contain bytes of others */
	uint8_t aside[HP_REGION_BYTES]; /* what it may know */
	/* Beginnings of messages, one behind the other: the NIC may have to
	 * send one again. */
	struct page_request head[HP_HEADS];
};

struct hp_tape {
	uint32_t len_bytes;
	uint8_t bytes[HP_TAPE_BYTES];
};

struct hp_foe {
	struct hp *p;
	struct rig_host *host;
	struct ibv_cq *cq;
	struct hp_tenant tenant;
	struct ibv_mr *grant_mr;
	struct rig_region *desk;
	struct rig_pair conn[HP_CONNS];
	struct ibv_pd *chain_pd;
	struct pframe_space *space[HP_SPACES];
	struct hp_guest guest[HP_SPACES][HP_GUESTS];
	struct pframe_chain *chain[PAGE_CHAIN_COUNT];
	struct rig_pair pair[PAGE_CHAIN_COUNT];
	unsigned chain_withheld[PAGE_CHAIN_COUNT];
	struct hp_piece key[HP_KEYS];
	struct hp_tape tape[HP_TAPES];
	uint32_t tape_count;
	struct rng rand, tape_rand;
	uint32_t next_head;
	uint8_t weight[16]; /* how likely each of its acts is */
	unsigned opens;	    /* connections that it may still open */
	bool is_gone;	    /* the node has taken everything back */
};

struct hp {
	struct play_run run;
	struct hostile_play_counts *n;
	struct rig_host *node;
	struct pframe_server *server;
	struct pframe_pool *pool;
	uint8_t *ground; /* all regions, one behind the other */
	struct hp_client client[HP_HONEST];
	struct hp_foe foe;
};

/* A byte of an honest tenant. */
static inline uint8_t hp_byte(struct rng *r)
{
	return (uint8_t)(HP_TELLTALE | sim_rand_below(r, HP_TELLTALE));
}

bool hp_qp_is_broken(struct ibv_qp *qp);
/* A connection for one-sided requests; a guest; all chains of a space. */
int hp_conn_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		 struct ibv_pd *pd, struct rig_pair *out) MUST_CHECK;
int hp_guest_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		  struct pframe_space *space, struct pframe_guest **guest,
		  struct rig_pair *out) MUST_CHECK;
int hp_chains_open(struct hp *p, struct rig_host *host, struct ibv_cq *cq,
		   struct pframe_space *space, struct ibv_pd *pd,
		   struct pframe_chain **chain,
		   struct rig_pair *pair) MUST_CHECK;
void hp_chains_close(struct pframe_chain **chain, struct rig_pair *pair);

/* ---- hostile_heartbeat.c: the second act -------------------------------- */

int hp_heartbeat_run(struct hp *p) MUST_CHECK;

/* ---- hostile_honest.c --------------------------------------------------- */

int hp_client_open(struct hp_client *c) MUST_CHECK;
void hp_client_main(void *arg);
/* Checks that the node has what the client wrote. */
void hp_client_check(const struct hp_client *c);
void hp_client_close(struct hp_client *c);

/* ---- hostile_pages.c: their pages --------------------------------------- */

/* One operation on a page. */
void hp_page_turn(struct hp_client *c);
/* Posts one request on its connection and waits for it; false: it is
 * stopped. */
bool hp_conn_do(struct hp_client *c, struct ibv_send_wr *wr, uint32_t bytes);
/* Waits for a completion of that request, or for a receive. */
bool hp_await(struct hp_client *c, bool is_recv, struct ibv_wc *wc);

/* ---- hostile_foe.c ------------------------------------------------------ */

int hp_foe_open(struct hp_foe *f) MUST_CHECK;
void hp_foe_main(void *arg);
/* The node has noticed that the hostile one is gone: takes everything back. */
void hp_foe_take_back(struct hp_foe *f);
/* Has it read what it must not know? */
void hp_foe_look(struct hp_foe *f);

/* ---- hostile_ask.c: what it does by verbs ------------------------------- */

void hp_ask_own(struct hp_foe *f);
void hp_ask_beyond(struct hp_foe *f);
void hp_ask_guess(struct hp_foe *f);
void hp_ask_page(struct hp_foe *f);
void hp_ask_piece(struct hp_foe *f);
void hp_ask_chain(struct hp_foe *f);
void hp_ask_receive(struct hp_foe *f);
/* Takes its completions and remembers keys that it was given. */
void hp_ask_poll(struct hp_foe *f);

/* ---- hostile_wire.c: what it does with frames --------------------------- */

void hp_wire_tap(void *ctx, const uint8_t *frame, size_t len_bytes);
void hp_wire_forge(struct hp_foe *f);
void hp_wire_replay(struct hp_foe *f);
void hp_wire_sweep(struct hp_foe *f);

#endif
