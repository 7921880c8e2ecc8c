/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the version-list store share: the client and its parts. */
#ifndef AQ_INDEX_VLIST_PRIV_H
#define AQ_INDEX_VLIST_PRIV_H

#include "vlist.h"

enum {
	VLIST_CACHE_KEYS = 4096, /* unless told otherwise */
	VLIST_CACHE_KEYS_MAX = 1 << 24,
	VLIST_COLLECT_EVERY = 4,
	VLIST_DEADLINE_MS = 5000,
	VLIST_STEER_TRIES = 3,	/* of an append, before the list is read */
	VLIST_STEER_READS = 32, /* not vouched for, before plain READs */
	VLIST_STEER_VAIN = 8,	/* steered READs in a row that met old nodes */
	VLIST_PUT_STEPS = 4,	/* of a list followed between two appends */
	VLIST_SCAN_BATCH = 16,
	VLIST_RIDE = 2, /* keys whose versions are freed beside a write */
	VLIST_RIDE_LOOKS = 24, /* at own versions, to find such keys */
	VLIST_SCAN_LOOKS = 4,  /* for the newest version of a key */
	VLIST_SCAN_NODES = 32, /* in one round of collecting */
	VLIST_SCAN_STEPS = 64, /* of a list followed in it, per key */
};

#define VLIST_NONE UINT32_MAX

/* What the client remembers of a key. */
struct vlist_memo {
	uint64_t key1;	/* key + 1; 0: nothing */
	uint64_t place; /* pointer to a committed version; 0: not known */
	uint64_t entry; /* offset of its entry; 0: not known */
	uint64_t head;	/* as the entry was last seen; 0: not yet */
	/* The newest of this client's versions, or VLIST_NONE; void if its
	 * generation has changed. */
	uint32_t newest;
	uint32_t newest_generation;
	uint32_t writes; /* since its entry was moved on last */
	uint64_t since;	 /* this client's writes when `place` was set */
};

enum vlist_mine_state {
	VLIST_MINE_FREE,
	VLIST_MINE_BUSY,  /* of the write that is under way */
	VLIST_MINE_USED,  /* committed */
	VLIST_MINE_LIMBO, /* of unknown outcome */
};

/* A node of a chunk that this client has. */
struct vlist_mine {
	uint64_t offset;
	uint64_t key;
	uint32_t generation;
	/* An older version of the same key, or VLIST_NONE; void if its
	 * generation has changed. */
	uint32_t older;
	uint32_t older_generation;
	uint32_t next; /* in the list of free ones */
	uint8_t state;
};

/* A key of which this client has versions that may be old. */
struct vlist_old {
	uint64_t key;
	uint64_t entry;
	uint64_t head;	/* as read */
	uint64_t place; /* a committed version, perhaps the newest */
	/* One of this client's versions, and the newest at that time. */
	uint32_t mine, mine_generation;
	uint32_t newest, newest_generation;
	bool is_newest;
	bool is_lost;
};

/* Answers of atomics, by what they are about. */
enum vlist_atom {
	VLIST_ATOM_APPEND,
	VLIST_ATOM_HEAD,
	VLIST_ATOM_LATER,
	VLIST_ATOM_COUNT,
};

/* An entry that is to be moved on together with the next write. */
struct vlist_later {
	uint64_t entry; /* 0: none */
	uint64_t head;	/* what it said before `node` was appended */
	uint64_t node;
	uint32_t mine; /* the same, and its generation */
	uint32_t generation;
};

/* Freeing versions of some keys, see vlist_gather.c. */
struct vlist_gather {
	enum {
		VLIST_GATHER_IDLE,
		VLIST_GATHER_HEADS,
		VLIST_GATHER_LOOK,
		VLIST_GATHER_MOVE,
	} stage;
	unsigned count, looks;
	struct vlist_old old[VLIST_SCAN_BATCH];
};

struct vlist_client {
	struct kit_client kit;
	struct vlist_geometry g;
	struct vlist_config config;
	struct vlist_stats stats;
	bool is_steered; /* the last append was vouched for */

	uint64_t *atom;		 /* answers, by enum vlist_atom */
	uint64_t *word;		 /* that is read or written alone */
	uint64_t *heads;	 /* VLIST_SCAN_BATCH, of entries */
	struct vlist_node *node; /* that is written */
	struct vlist_node *seen; /* that is read */
	struct vlist_entry *bucket;

	struct vlist_memo *memo;
	uint32_t memo_mask;

	struct vlist_mine *mine;
	uint32_t mine_count, mine_room;
	uint32_t free_first, free_last, free_count;
	uint32_t scan_at; /* where collecting goes on */
	struct vlist_gather ride;
	struct vlist_later later;
	uint64_t chunk_hint;
};

/* ---- vlist_client.c ----------------------------------------------------- */

/* After -ESTALE: makes another connection and takes another slot. */
int vlist_reconnect(struct vlist_client *c) MUST_CHECK;
/* ---- vlist_index.c ------------------------------------------------------ */

/* What is remembered of the key, if anything; another key's memo that was in
 * the same place is lost. */
struct vlist_memo *vlist_memo(struct vlist_client *c, uint64_t key);
/* The same without making an entry; NULL: nothing is remembered. */
const struct vlist_memo *vlist_memo_find(struct vlist_client *c, uint64_t key);
/* The key's entry and what its head says; -ENOENT. */
int vlist_entry_find(struct vlist_client *c, uint64_t key, uint64_t *entry,
		     uint64_t *head) MUST_CHECK;
/* The same, and takes an entry if the key has none; head may be 0. */
int vlist_entry_take(struct vlist_client *c, uint64_t key, uint64_t *entry,
		     uint64_t *head) MUST_CHECK;
/* A committed version to start from: the remembered one, else the head. */
int vlist_start(struct vlist_client *c, struct vlist_memo *m, uint64_t key,
		uint64_t *place) MUST_CHECK;

/* ---- vlist_places.c: what is known of places ---------------------------- */

/* Spreads keys over a table of a power of two. */
static inline uint32_t vlist_key_slot(uint64_t key)
{
	return (uint32_t)(key * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

/* What this client, or any of its process's, remembers; 0: nothing. */
uint64_t vlist_place_of(struct vlist_client *c, struct vlist_memo *m);
/* Remembers this place from now on. is_newest: it was just seen to be the end
 * of the list; else it is a step from the one before. */
void vlist_place_set(struct vlist_client *c, struct vlist_memo *m,
		     uint64_t place, bool is_newest);
/* What the entry says now; whether that is news. Entries are moved to what is
 * the newest version at that time, so news is probably ahead of the place. */
bool vlist_place_head(struct vlist_client *c, struct vlist_memo *m,
		      uint64_t head);
/* The remembered place is not there any more. */
void vlist_place_void(struct vlist_client *c, struct vlist_memo *m);

/* ---- vlist_walk.c ------------------------------------------------------- */

/* What a node that was read is. */
enum vlist_verdict {
	VLIST_NEWEST,	 /* and committed */
	VLIST_OLD,	 /* committed; `next` leads on */
	VLIST_STALE,	 /* the place has another use by now */
	VLIST_ASTRAY,	 /* another place, and not even of this key */
	VLIST_UNVOUCHED, /* another node, not known to be committed */
};

enum vlist_verdict vlist_judge(struct vlist_client *c,
			       const struct vlist_node *n, uint64_t key,
			       uint64_t place, bool with_value, uint64_t *self,
			       uint64_t *next);

/* Reads the node at a committed place into c->seen. *self and *next are only
 * written where the verdict says that they are of use. */
int vlist_look(struct vlist_client *c, uint64_t key, uint64_t place,
	       bool may_steer, bool with_value, enum vlist_verdict *verdict,
	       uint64_t *self, uint64_t *next) MUST_CHECK;

/* The same, together with the requests in the batch. */
int vlist_look_too(struct vlist_client *c, uint64_t key, uint64_t place,
		   bool may_steer, bool with_value, enum vlist_verdict *verdict,
		   uint64_t *self, uint64_t *next) MUST_CHECK;

enum vlist_found {
	VLIST_FOUND,
	VLIST_NOT_THERE, /* the list was followed to its end */
	VLIST_LOST,	 /* it was not */
};

/* Follows the list from a committed place, without help of a switch, looking
 * for a version; *last is the end, or what follows the version. */
int vlist_walk(struct vlist_client *c, uint64_t key, uint64_t from,
	       uint64_t target, unsigned steps, enum vlist_found *found,
	       uint64_t *last) MUST_CHECK;

/* ---- vlist_verify.c ----------------------------------------------------- */

enum vlist_fate {
	VLIST_COMMITTED_NOW,
	VLIST_NOT_LANDED, /* nothing happened; the node may be used again */
	VLIST_DEAD,	  /* it hangs on something that never was committed */
	VLIST_UNKNOWN,
};

/* Finds out what became of `node`, which was appended behind `before`; it is
 * not known whether `before` is committed. `from` is a committed place. */
int vlist_verify(struct vlist_client *c, uint64_t key, uint64_t from,
		 uint64_t node, uint64_t before,
		 enum vlist_fate *fate) MUST_CHECK;

/* ---- vlist_sweep.c: all of the store's memory --------------------------- */

/* Calls `each` for a pointer in some node's `next`, and where it stands; stops
 * when it returns true. */
typedef bool (*vlist_link_fn)(struct vlist_client *c, uint64_t link,
			      const struct vlist_node *in, void *ctx);
int vlist_links_each(struct vlist_client *c, vlist_link_fn each,
		     void *ctx) MUST_CHECK;
/* Frees those of this client's nodes of unknown outcome that nothing points
 * to. */
int vlist_sweep(struct vlist_client *c) MUST_CHECK;

/* ---- vlist_pool.c: this client's memory --------------------------------- */

/* A node for a new version, collecting old ones if need be; -ENOSPC. */
int vlist_node_take(struct vlist_client *c, uint64_t key,
		    uint32_t *mine) MUST_CHECK;
/* Puts the node at the end of the free list, to be used again late. */
void vlist_node_give(struct vlist_client *c, uint32_t mine);
uint64_t vlist_mine_pointer(const struct vlist_client *c, uint32_t mine);
/* The node is committed, and this client's newest version of the key. */
void vlist_node_committed(struct vlist_client *c, struct vlist_memo *m,
			  uint32_t mine);
/* Collects everything of a key that is older than this version. */
void vlist_collect_older(struct vlist_client *c, uint32_t mine);
void vlist_pool_forget(struct vlist_client *c);

/* Whether the pool would rather take more memory than free old versions. */
bool vlist_pool_may_grow(const struct vlist_client *c);

/* ---- vlist_gather.c: freeing versions beside writes ---------------------- */

/* Adds the key of this version, if it is new and there is room. */
int vlist_gather_key_of(struct vlist_client *c, struct vlist_gather *g,
			uint32_t mine) MUST_CHECK;
void vlist_gather_start(struct vlist_gather *g);
/* Adds the requests of the next step to the current batch. */
void vlist_gather_add(struct vlist_client *c, struct vlist_gather *g);
/* Takes the answers of that step. */
void vlist_gather_take(struct vlist_client *c, struct vlist_gather *g);
/* Runs all steps. */
int vlist_gather_run(struct vlist_client *c, struct vlist_gather *g) MUST_CHECK;
/* Starts c->ride if it is not running and little memory is free. */
void vlist_ride_begin(struct vlist_client *c);

/* ---- vlist_scan.c: looking for versions to collect ---------------------- */

int vlist_scan(struct vlist_client *c) MUST_CHECK;

#endif
