/* SPDX-License-Identifier: Apache-2.0 */
/* A key-value store of the figures: shipped blocks that the controller places,
 * and a client that splits and merges them with the messages of far/elastic,
 * which are counted. Bytes of values are reserved, and not written. */
#ifndef AQ_FIGURES_EFIG_EKV_H
#define AQ_FIGURES_EFIG_EKV_H

#include "efig_rack.h"

enum {
	EFIG_EKV_BLOCKS = 512,
};

/* What went over the network for the moves of slots. */
struct efig_moves {
	uint64_t moves;	   /* splits and merges */
	uint64_t messages; /* each with an answer */
	uint64_t bytes;	   /* that came to the client, and went on from it */
	uint64_t batches;  /* slots that wait meanwhile */
};

struct efig_ekv {
	struct efig_rack *rack;
	unsigned tenant;
	char path[64];
	uint32_t high, low; /* thousandths of a block */
	struct efig_place place[EFIG_EKV_BLOCKS];
	unsigned count;
	uint64_t sequence;
	uint8_t *carried;
	uint32_t carried_room;
	struct efig_moves moved;
	/* Called before each message of a move; may be NULL. */
	void (*message)(void *ctx, uint64_t bytes);
	void *ctx;
};

/* The name is made, in a folder that is there. -EPROTO, -ENOMEM, -ENOSPC. */
int efig_ekv_open(struct efig_ekv *kv, uint64_t block_bytes) MUST_CHECK;
void efig_ekv_close(struct efig_ekv *kv);
/* False: it has no room. */
bool efig_ekv_put(struct efig_ekv *kv, uint64_t key, uint32_t value_bytes);
bool efig_ekv_delete(struct efig_ekv *kv, uint64_t key);
/* Whether the key is there; the block that it lies in is at *at, and whether
 * it waits because its slot is on the way. */
bool efig_ekv_get(struct efig_ekv *kv, uint64_t key, unsigned *at, bool *waits);
/* Gives half of the block's bytes to a new one. */
bool efig_ekv_split(struct efig_ekv *kv, unsigned at);
uint32_t efig_ekv_slot(uint64_t key);
/* Bytes of records that are in use. */
uint64_t efig_ekv_used(struct efig_ekv *kv);

#endif
