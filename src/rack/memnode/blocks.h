/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of elastic structures at a node: made and freed by orders of the
 * controller, which come with the answers to beats, late and more than once;
 * what became of them is said in the next beats. A thread of its own executes
 * the clients' messages (block/blk_server.h). The node's lock is taken before
 * the server's.
 */
#ifndef AQ_MEM_BLOCKS_H
#define AQ_MEM_BLOCKS_H

#include "block/blk_server.h"
#include "control/ctl_ticket.h"
#include "memory_priv.h"

enum {
	BLOCKS_TOLD = 512, /* of a list in a beat, as the controller has it */
	BLOCKS_TRIES = 20, /* of an order that lacks an allowance */
	BLOCKS_SLEEP_MS = 100,
	BLOCKS_DOZE_US = 500, /* at most, on the next frame */
	BLOCKS_DOZY_MS = 2,   /* after the last message */
	/* Larger ones stay in the spill tier: others would wait for the copy.
	 */
	BLOCKS_BACK_MAX = 64 << 20,
	BLOCKS_BACK_KEEP = 16, /* one part of the pool in so many stays free */
};

struct mem_block {
	struct list node;
	struct mem_tenant *tenant;
	struct memory memory;
	uint32_t index;
	uint64_t generation;
	uint64_t charged_bytes;
	bool is_spilled; /* it lies in the spill tier, not in the pool */
	bool is_busy;	 /* is made or freed, without the lock */
	bool is_told;	 /* what the controller was told last: */
	struct blk_report told;
};

struct mem_blocks {
	struct mem_node *of;
	struct blk_server *server;
	pthread_t thread;
	bool has_thread;
	atomic_bool stops;
	pthread_mutex_t keys_lock;
	struct ctl_ticket_keys keys;
	struct list list; /* of mem_block */
	unsigned count;
	/* News for the controller, and how much of it the last beat had. */
	json_t *freed, *failed;
	size_t freed_told, failed_told;
	struct mem_trunks *trunks; /* connections of chains */
	uint64_t brought_back;	   /* blocks from the spill tier */
	uint8_t tries[BLK_INDEX_MAX];
};

/* There is news for the controller. */
void mem_blocks_wake(const struct mem_node *node);

/* ---- blocks.c ------------------------------------------------------------ */

/* Makes the server and its thread, if they are not there. */
int mem_blocks_start(struct mem_node *node) MUST_CHECK;
/* Without the lock; there are no connections any more. */
void mem_blocks_stop(struct mem_node *node);
/* Members of a beat, and of the answer to one. May let the lock go. */
void mem_blocks_say(struct mem_node *node, json_t *beat);
void mem_blocks_hear(struct mem_node *node, const json_t *answer);
/* Frees those of a tenant, or of all (NULL). Lets the lock go. */
void mem_blocks_end(struct mem_node *node, const struct mem_tenant *tenant);
/* May let the lock go. */
void mem_blocks_tick(struct mem_node *node);
void mem_blocks_metrics(struct ctl_metrics *m, const struct mem_node *node);

/* A block that was to be filled is, with what p->image has, or could not be:
 * then it is given up, and the controller hears why. May let the lock go. */
void mem_block_filled(struct mem_node *node, struct mem_block *m,
		      const struct blk_place *p, int err);

/* ---- trunk.c ------------------------------------------------------------- */

int mem_trunks_create(struct mem_node *node,
		      struct mem_trunks **out) MUST_CHECK;
/* Before the server is. */
void mem_trunks_destroy(struct mem_trunks *all);
void mem_trunks_say(struct mem_node *node, json_t *beat);
void mem_trunks_hear(struct mem_node *node, const json_t *answer);
void mem_trunks_tick(struct mem_node *node);

/* ---- block_thread.c ------------------------------------------------------ */

int block_thread_start(struct mem_blocks *b) MUST_CHECK;
/* As in struct blk_server_config; ctx is a struct mem_blocks. */
enum block_status block_ticket_judge(void *ctx, const char *tenant,
				     const uint8_t by[BLK_BY_BYTES],
				     const uint8_t *ticket, uint32_t len_bytes,
				     struct blk_right *out);
void block_thread_stop(struct mem_blocks *b);

/* ---- block_conn.c -------------------------------------------------------- */

int block_conn_open(struct mem_node *node, struct mem_conn *c,
		    const uint8_t session[BLOCK_SESSION_BYTES]) MUST_CHECK;
void block_conn_close(struct mem_node *node, struct mem_conn *c, bool is_gone);
/* "blocks" of a request to connect: {"version", "session"}. */
int block_conn_parse(const json_t *body, struct conn_peer *peer) MUST_CHECK;

#endif
