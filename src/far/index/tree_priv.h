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
	TREE_HANDED_MAX = 4, /* times a lock is handed on in the process */
	TREE_BACKOFF_NS_MIN = 500,
	TREE_BACKOFF_NS_MAX = 100000,
	TREE_TORN_SHARE = 4, /* of the failure time: a torn node is mended */
	TREE_RESTARTS = 3,   /* before the whole cache is dropped */
	TREE_RIGHT_STEPS = 1 << 16,
	TREE_HELPS = 4, /* separators put in after one operation */
	TREE_NESTED_MAX = 3,
	TREE_DEAD_ROW = 64, /* adjacent empty leaves that are taken out */
};

/* Words that atomics return their old values in. */
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

/* A free node, and its last generation and version. */
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
	bool hands_on; /* to another client of this process */
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
	struct tree_pad *pad;	 /* of walks, as large as any; or NULL */

	struct tree_hold hold;
	struct tree_missing missing;
	unsigned restarts; /* of this operation */
	unsigned nested;   /* operations that another one waits for */

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

/* Has the walker execute a walk on c->pad, and counts it. -EOPNOTSUPP. */
int tree_walk_run(struct tree_client *c, enum tree_walk walk) MUST_CHECK;

/* ---- tree_lock.c -------------------------------------------------------- */

/* Takes the node's lock and reads the node. Under the lock it is whole: what a
 * dead client left torn is mended. *verdict is not TREE_TORN. With an error
 * there is no lock. */
int tree_lock_read(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict) MUST_CHECK;
/* Adds to the batch: drops the lock, or hands it to a client of this
 * process. */
void tree_unlock_add(struct tree_client *c);
/* Runs the batch, after which the lock is not held, even on an error. */
int tree_unlock_run(struct tree_client *c) MUST_CHECK;
/* Both, with nothing else in the batch. */
int tree_unlock(struct tree_client *c) MUST_CHECK;

/* ---- tree_cache.c: copies of inner nodes --------------------------------- */

int tree_cache_init(struct tree_client *c) MUST_CHECK;
void tree_cache_release(struct tree_client *c);
void tree_cache_forget_all(struct tree_client *c);
void tree_cache_forget(struct tree_client *c, uint64_t pointer);
struct tree_inner *tree_cache_find(struct tree_client *c, uint64_t pointer);
/* Keeps a copy of an inner node that is whole; NULL: no memory. */
struct tree_inner *tree_cache_put(struct tree_client *c,
				  const struct tree_node *n);
/* The entry that leads to the key, or with is_before to keys before it; -1. */
int tree_inner_find(const struct tree_client *c, const struct tree_inner *in,
		    struct tree_key key, bool is_before);
struct tree_item tree_inner_item(const struct tree_client *c,
				 const struct tree_inner *in, uint32_t i);

/* ---- tree_walk.c: the way to a node ------------------------------------- */

/* What is looked for: the node of that level whose range contains the key; with
 * is_before, the one that contains, or ends, just before it. */
struct tree_target {
	struct tree_key key;
	uint8_t level;
	bool is_before;
};

struct tree_way {
	uint64_t pointer;
	uint64_t parent; /* that led there; 0: root, or by a sibling */
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
/* The cached path led nowhere: forgets it, so that the next try reads the
 * nodes. -ETIMEDOUT. */
int tree_way_failed(struct tree_client *c, const struct tree_way *w) MUST_CHECK;
/* Reads a node until it is whole. *verdict is not TREE_TORN. */
int tree_read_node(struct tree_client *c, uint64_t pointer, struct tree_node *n,
		   enum tree_verdict *verdict) MUST_CHECK;
/* Reads, or locks and reads, the target into `n`; *pointer says which it is. It
 * is alive, or with is_before perhaps dead. -ERANGE: there is no such level. */
int tree_reach(struct tree_client *c, const struct tree_target *t, bool lock,
	       struct tree_node *n, uint64_t *pointer) MUST_CHECK;

/* ---- tree_change.c ------------------------------------------------------ */

/* Gives the parent a pointer to the node, unless it has one already. */
int tree_name(struct tree_client *c, uint8_t level, struct tree_key key,
	      uint64_t child) MUST_CHECK;
/* After an operation: puts in the separators that it found missing. */
int tree_help(struct tree_client *c) MUST_CHECK;

/* ---- tree_prune.c: empty nodes ------------------------------------------ */

/* Gives the range of a dead node to the node before it, removes it from the
 * parent, and frees its memory. Others may do it, too. */
int tree_prune(struct tree_client *c, uint8_t level, struct tree_key low,
	       uint64_t pointer) MUST_CHECK;
/* Removes a parent's pointer to a node that no longer exists. */
int tree_unname(struct tree_client *c, uint8_t level, struct tree_key sep,
		uint64_t child) MUST_CHECK;

/* ---- tree_pool.c: this client's memory ---------------------------------- */

/* Makes sure that there is a free node; -ENOSPC. No lock may be held. */
int tree_pool_fill(struct tree_client *c) MUST_CHECK;
/* -ENOSPC: fill first. */
int tree_pool_take(struct tree_client *c, uint64_t *pointer,
		   uint32_t *version) MUST_CHECK;
/* Gives back a node that was not used. */
void tree_pool_give(struct tree_client *c, uint64_t pointer, uint32_t version);
/* Leaves the chunks to other clients. */
int tree_pool_leave(struct tree_client *c) MUST_CHECK;
void tree_pool_forget(struct tree_client *c);

#endif
