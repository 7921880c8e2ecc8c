/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory node's half of elastic structures: blocks, and connections whose
 * messages one thread executes, one operation at a time per block. Values that
 * are not in a message are fetched from the client's memory right to their
 * place in the block; data of answers leaves right from the block.
 */
#ifndef AQ_BLK_SERVER_H
#define AQ_BLK_SERVER_H

#include <infiniband/verbs.h>

#include "blk_chain.h"
#include "blk_image.h"

struct blk_server;
struct blk_guest; /* one client's connection, of one session */

enum {
	BLK_GUESTS_MAX = 4096,
	BLK_INDEX_MAX = 65536,
	BLK_TENANT_MAX = 32,	     /* characters of a tenant's name */
	BLK_BY_BYTES = 6,	     /* by which a token is known */
	BLK_SESSION_KEEP_MS = 60000, /* without a connection */
	BLK_ITEMS_KEEP_MS = 2000,    /* the same of items that it has taken */
	BLK_HALT_MS = 10000,	     /* changes of a block wait, at most */
	BLK_DENIALS_MAX = 8,	     /* in a row end a connection */
	BLK_TRUNKS_MAX = 64,	     /* other nodes */
	BLK_CHAINED_SLEEP_MS = 5,    /* at most, where there are chains */
};

/* What a ticket allows. */
struct blk_right {
	uint64_t object;
	uint64_t end_s; /* wall clock; nothing is allowed after it */
	bool may_change;
};

struct blk_server_config {
	struct ibv_context *context;
	void *ctx;
	/* Whether the ticket is good for a connection of that tenant, made with
	 * the token that is known by `by`. Called with the server's lock. */
	enum block_status (*judge)(void *ctx, const char *tenant,
				   const uint8_t by[BLK_BY_BYTES],
				   const uint8_t *ticket, uint32_t len_bytes,
				   struct blk_right *out);
	/* Whether that memory, which is a file's, has had an error. NULL where
	 * there is no such memory. */
	bool (*is_bad)(void *ctx, const void *mem, uint64_t bytes);
	uint64_t (*wall_s)(void *ctx);
	uint64_t (*now_ns)(void *ctx);
};

/* How much was done since the server began. */
struct blk_counts {
	uint64_t messages;
	uint64_t ops;
	uint64_t refused; /* for want of rights, or of the right generation */
	uint64_t bad;	  /* messages that no correct client sends */
	uint64_t pulled_bytes;
	uint64_t pushed_bytes;
	uint64_t sessions_ended;
	uint64_t link_messages; /* of other members of chains */
	uint64_t link_dropped;	/* to or from them */
	uint64_t copied_bytes;	/* to new members */
};

int blk_server_create(const struct blk_server_config *config,
		      struct blk_server **out) MUST_CHECK;
/* It must have no guests any more, and blocks only that were removed. */
void blk_server_destroy(struct blk_server *s);
/* Executes what has arrived and returns how many messages that was. One thread
 * calls it; other threads may make the other calls meanwhile. */
unsigned blk_server_step(struct blk_server *s);
void blk_server_wait(struct blk_server *s, uint32_t timeout_ms);
/* Now and then: ends sessions that have had no connection for long, and before
 * that gives back what they have taken. */
void blk_server_tick(struct blk_server *s, uint64_t now_ns);
void blk_server_counts(struct blk_server *s, struct blk_counts *out);

/* ---- blocks -------------------------------------------------------------- */

struct blk_place {
	struct blk_options options;
	uint32_t index;
	uint64_t object;
	struct ibv_pd *pd; /* of its tenant */
	struct ibv_mr *mr; /* of its memory, in that domain */
	uint8_t *mem;	   /* zeros */
	/* A member of a chain; it joins: it gets a copy first. */
	bool is_chained, joins;
	/* Its memory is a file's, and may be gone when it is touched. */
	bool is_spilled;
	/* What it begins with; NULL: nothing. */
	const struct blk_image *image;
};

/* -EEXIST, -ENOMEM; -EBADMSG: the image does not fit. */
int blk_server_add(struct blk_server *s, const struct blk_place *p) MUST_CHECK;
/* From now on it answers BLOCK_STALE. -EBUSY: something of it is under way; try
 * again. 0: its memory is the caller's again. -ENOENT. */
int blk_server_remove(struct blk_server *s, uint32_t index,
		      uint64_t generation) MUST_CHECK;

/*
 * Moves a block that lies in a file to memory, with a key for it: from now on
 * the block has those, its old key has ended, and its old memory is the
 * caller's. -EBUSY: something of it is under way; -ENOENT. -EIO: it cannot be
 * read, and is broken; the old key has ended, too.
 */
int blk_server_bring_back(struct blk_server *s, uint32_t index,
			  uint64_t generation, void *mem,
			  struct ibv_mr *mr) MUST_CHECK;

/* The largest generation that the node has heard of for that index: an order
 * about an older one, or the same, comes late. Notes this one, too. */
uint64_t blk_server_hear(struct blk_server *s, uint32_t index,
			 uint64_t generation);

struct blk_report {
	uint64_t used_bytes;
	bool is_sealed;
	bool is_drained;
	uint64_t epoch; /* of its chain; 0: it has none, or is not in it yet */
	bool is_whole;
};
int blk_server_report(struct blk_server *s, uint32_t index, uint64_t generation,
		      struct blk_report *out) MUST_CHECK;

/* ---- blk_halt.c ---------------------------------------------------------- */

/*
 * Changes of the block wait until its image `by` is taken, for BLK_HALT_MS at
 * most; reads go on. 0: nothing of it is under way. -EBUSY: try again; -ENOENT;
 * -EAGAIN: it cannot be now.
 */
int blk_server_halt(struct blk_server *s, uint32_t index, uint64_t generation,
		    uint64_t by) MUST_CHECK;

enum blk_image_how {
	BLK_IMAGE_LIVE,	  /* between two operations */
	BLK_IMAGE_HALTED, /* what it was when it was halted for this image;
			   * changes go on. -ETIMEDOUT: it is not any more */
	BLK_IMAGE_FINAL,  /* nobody changes or reads it by message from now on;
			   * all that was acknowledged is in the image */
};
/*
 * Its image; sums are the caller's. The block must stay until the image is
 * released. -ENOENT; -EBUSY: something of it is under way, try again; and as
 * blk_image_take.
 */
int blk_server_image(struct blk_server *s, uint32_t index, uint64_t generation,
		     enum blk_image_how how, const struct blk_image_id *id,
		     struct blk_image *out) MUST_CHECK;

/* ---- chains -------------------------------------------------------------- */

/* Who is in the chain of a block; `node` of a member is its trunk. Older epochs
 * are ignored. -ENOENT. */
int blk_server_configure(struct blk_server *s, uint32_t index,
			 uint64_t generation,
			 const struct blk_chain_config *config) MUST_CHECK;

/*
 * A trunk is the connection to another node's block server, over which chains
 * of all tenants talk. It is made with a queue pair in RESET; when that is
 * connected blk_trunk_arm lets messages in. What cannot be sent is lost, and
 * chains say it again.
 */
struct blk_trunk;
int blk_trunk_create(struct blk_server *s, struct ibv_pd *pd, unsigned slot,
		     struct blk_trunk **out) MUST_CHECK;
int blk_trunk_arm(struct blk_trunk *t) MUST_CHECK;
void blk_trunk_destroy(struct blk_trunk *t);
struct ibv_qp *blk_trunk_qp(const struct blk_trunk *t);
bool blk_trunk_is_broken(const struct blk_trunk *t);

/* ---- connections --------------------------------------------------------- */

/*
 * Makes a queue pair in the tenant's domain, in the state RESET. A connection
 * of the same session that there is has no effect any more; *is_new says that
 * nothing is known of the session. When the queue pair is connected,
 * blk_guest_arm lets messages in. -EAGAIN: there is no room.
 */
int blk_guest_create(struct blk_server *s, struct ibv_pd *pd,
		     const char *tenant, const uint8_t by[BLK_BY_BYTES],
		     const uint8_t session[BLOCK_SESSION_BYTES], bool *is_new,
		     struct blk_guest **out) MUST_CHECK;
int blk_guest_arm(struct blk_guest *g) MUST_CHECK;
/* `is_gone`: its process is, so its session ends, too. */
void blk_guest_destroy(struct blk_guest *g, bool is_gone, uint64_t now_ns);
struct ibv_qp *blk_guest_qp(const struct blk_guest *g);
/* Memory that one takes. */
uint64_t blk_guest_bytes(void);

#endif
