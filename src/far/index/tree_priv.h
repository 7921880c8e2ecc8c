/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the ordered index share: the client and its parts. */
#ifndef AQ_INDEX_TREE_PRIV_H
#define AQ_INDEX_TREE_PRIV_H

#include <stdatomic.h>

#include "tree.h"
#include "tree_node.h"

enum {
	TREE_DEADLINE_MS = 5000,
	TREE_CACHE_NODES = 4096,
	TREE_CACHE_NODES_MAX = 1 << 20,
	TREE_CACHE_WAYS = 4,
	TREE_SCAN_BATCH = 8, /* leaves read together */
	TREE_HANDED_MAX = 4, /* times that a lock is handed on at home */
	TREE_BACKOFF_NS_MIN = 500,
	TREE_BACKOFF_NS_MAX = 100000,
	TREE_TORN_SHARE = 4, /* of the failure time: a torn node is mended */
	TREE_RESTARTS = 3,   /* then all that is remembered is forgotten */
	TREE_RIGHT_STEPS = 1 << 16,
	TREE_HELPS = 4, /* separators put in after one operation */
	TREE_NESTED_MAX = 3,
	TREE_DEAD_ROW = 64, /* empty leaves beside each other, taken out */
};

/* The words that atomics answer with. */
enum tree_atom {
	TREE_ATOM_LOCK,
	TREE_ATOM_OTHER,
	TREE_ATOM_ROOT,
	TREE_ATOM_COUNT = 8,
};

/* A copy of an inner node, with its entries in order. */
struct tree_inner {
	uint64_t self;
	uint64_t op; /* the operation that read it */
	uint32_t count;
	uint16_t *order; /* slots */
	struct tree_node *node;
};

/* A node that may be used, and what it was last. */
struct tree_spare {
	uint32_t number;
	uint32_t generation;
	uint32_t version;
};

/* The lock that this client has. */
struct tree_hold {
	uint32_t lock;
	uint64_t word;
	bool is_held;
	bool hands_on; /* to another client here */
};

/* A separator that a parent should have. */
struct tree_missing {
	uint8_t level; /* of the parent; 0: none */
	uint8_t key_len;
	uint8_t key[TREE_KEY_MAX];
	uint64_t child;
};

struct tree_client {
	struct kit_client kit;
	struct tree_geometry g;
	struct tree_config config;
	struct tree_stats stats;
	uint64_t op;	     /* the number of the operation under way */
	uint32_t lock_count; /* locks taken so far */

	uint64_t *atom;		 /* TREE_ATOM_COUNT */
	uint64_t *zero;		 /* eight bytes of it */
	struct tree_node *node;	 /* that is read or changed */
	struct tree_node *right; /* made from its right half */
	struct tree_node *look;	 /* an inner node that is read */
	uint8_t *batch;		 /* TREE_SCAN_BATCH nodes */
	struct tree_item *items; /* TREE_SLOTS_MAX */

	struct tree_hold hold;
	struct tree_missing missing;
	unsigned restarts; /* of this operation */
	unsigned nested;   /* works on the tree that another one waits for */

	uint64_t root; /* 0: not known */
	uint64_t root_op;
	uint8_t root_level; /* of `root` */
	bool knows_level;
	struct tree_inner **cache; /* sets of TREE_CACHE_WAYS */
	uint32_t cache_mask;	   /* of sets */

	struct tree_spare *spare;
	uint32_t spare_count, spare_room;
	uint64_t *chunk; /* this client's */
	uint32_t chunk_count, chunk_room;
	uint64_t chunk_hint;
	bool is_making; /* nodes are being looked for */
};

int tree_late(const struct tree_client *c);

/* ---- tree_client.c ------------------------------------------------------ */

/* An operation begins: its time, and a connection that is not broken. */
int tree_begin(struct tree_client *c) MUST_CHECK;

/* ---- tree_lock.c -------------------------------------------------------- */

/* Takes the node's lock and reads the node. Under the lock it is whole: what a
 * dead client left torn is mended. *verdict is not TREE_TORN. With an error
 * there is no lock. */
int tree_lock_read(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict) MUST_CHECK;
/* Adds to the batch: lets it go, or leaves it to a client here. */
void tree_unlock_add(struct tree_client *c);
/* Runs the batch, after which the lock is not ours, whatever happened. */
int tree_unlock_run(struct tree_client *c) MUST_CHECK;
/* Both, with nothing before them. */
int tree_unlock(struct tree_client *c) MUST_CHECK;

/* ---- tree_cache.c: copies of inner nodes --------------------------------- */

int tree_cache_init(struct tree_client *c) MUST_CHECK;
void tree_cache_release(struct tree_client *c);
void tree_cache_forget_all(struct tree_client *c);
void tree_cache_forget(struct tree_client *c, uint64_t pointer);
struct tree_inner *tree_cache_find(struct tree_client *c, uint64_t pointer);
/* Of an inner node that is whole; NULL: no memory. */
struct tree_inner *tree_cache_put(struct tree_client *c,
				  const struct tree_node *n);
/* Which of its entries leads to the key, or with is_before to what is before
 * the key; -1. */
int tree_inner_find(const struct tree_client *c, const struct tree_inner *in,
		    struct tree_key key, bool is_before);
struct tree_item tree_inner_item(const struct tree_client *c,
				 const struct tree_inner *in, uint32_t i);

/* ---- tree_walk.c: the way to a node ------------------------------------- */

/* The node of that level in whose range the key is; or with is_before the one
 * in whose range, or at whose end, what is just before the key is. */
struct tree_target {
	struct tree_key key;
	uint8_t level;
	bool is_before;
};

struct tree_way {
	uint64_t pointer;
	uint64_t parent; /* that led there; 0: it is the root, or beside */
	uint64_t via;	 /* the node that the pointer is from; 0: none */
	bool is_fresh;	 /* the parent, or the root, was read just now */
	uint8_t level;	 /* of the pointer, if there is a parent */
	uint8_t sep_len; /* the entry of the parent */
	uint8_t sep[TREE_KEY_MAX];
};

/* Where the copies of inner nodes lead to; those that are missing are read.
 * -ERANGE: the tree has no such level. */
int tree_way_find(struct tree_client *c, const struct tree_target *t,
		  struct tree_way *w) MUST_CHECK;
/* It led nowhere: the next one will not go by what is remembered of this one.
 * -ETIMEDOUT. */
int tree_way_failed(struct tree_client *c, const struct tree_way *w) MUST_CHECK;
/* Reads a node until it is whole. *verdict is not TREE_TORN. */
int tree_read_node(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict) MUST_CHECK;
/* Reads, or locks and reads, the target into `n`; *pointer says which it is. It
 * is alive, or with is_before perhaps dead. -ERANGE: there is no such level. */
int tree_reach(struct tree_client *c, const struct tree_target *t, bool lock,
	       struct tree_node *n, uint64_t *pointer) MUST_CHECK;

/* ---- tree_change.c ------------------------------------------------------ */

/* A pointer to a node for its parent. Nothing when there is one already. */
int tree_name(struct tree_client *c, uint8_t level, struct tree_key key,
	      uint64_t child) MUST_CHECK;
/* After an operation: puts in the separators that it found missing. */
int tree_help(struct tree_client *c) MUST_CHECK;

/* ---- tree_prune.c: empty nodes ------------------------------------------ */

/* The range of a dead node goes to the one before it, the parent forgets it,
 * and its memory is free. Others may be at it, too. */
int tree_prune(struct tree_client *c, uint8_t level, struct tree_key low,
	       uint64_t pointer) MUST_CHECK;
/* A parent of that level has a pointer to what is no node any more. */
int tree_unname(struct tree_client *c, uint8_t level, struct tree_key sep,
		uint64_t child) MUST_CHECK;

/* ---- tree_pool.c: this client's memory ---------------------------------- */

/* One node at least is at hand; -ENOSPC. No lock may be held. */
int tree_pool_fill(struct tree_client *c) MUST_CHECK;
/* -ENOSPC: fill first. */
int tree_pool_take(struct tree_client *c, uint64_t *pointer,
		   uint32_t *version) MUST_CHECK;
/* It was not used after all. */
void tree_pool_give(struct tree_client *c, uint64_t pointer, uint32_t version);
/* Others may have what is left of the chunks. */
int tree_pool_leave(struct tree_client *c) MUST_CHECK;
void tree_pool_forget(struct tree_client *c);

#endif
