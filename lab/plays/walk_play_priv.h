/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the play "walk" share. */
#ifndef AQ_PLAYS_WALK_PLAY_PRIV_H
#define AQ_PLAYS_WALK_PLAY_PRIV_H

#include <aquifer/walk.h>

#include "client/link.h"
#include "walk_play.h"
#include "walk_rack.h"

enum {
	WP_SLOT = 128, /* bytes of a node of the structures */
	WP_STRIPE = 4096,
	WP_STRIPES = 16,
	WP_SLOTS = WP_STRIPES * WP_STRIPE / WP_SLOT,
	WP_BUCKETS = 4, /* the last one's chain is on several nodes */
	WP_KEYS = 12,	/* 1 to WP_KEYS */
	WP_LIST = 240,	/* stations of the list that counts visits */
	WP_TREE = 31,
	WP_CIRCLE = 3,
	WP_BLOB = 32,
	WP_WALKERS = 2,
	WP_DEPTH = 4,
	WP_GUEST_RING = 4,
	WP_GENERATIONS = 8,
	WP_CIRCLE_MAX = 600, /* iterations of walks into a circle */
};

/* Where a walk runs, and who sends it on to the next node. */
enum wp_place {
	WP_BY_SWITCH, /* on nodes; the switch, where it can */
	WP_HERE,
	WP_BY_CLIENT, /* on nodes */
	WP_PLACES,
};

/* A node of every structure; pointers are offsets in the region. */
struct wp_slot {
	uint64_t key;
	uint64_t value;
	uint64_t next;
	uint64_t left, right;
	uint64_t tally;
	uint8_t blob[WP_BLOB];
	uint8_t unused[WP_SLOT - 48 - WP_BLOB];
};

STATIC_ASSERT(sizeof(struct wp_slot) == WP_SLOT, "a slot");

/* One life of the region. The slots of all structures are the same in each. */
struct wp_generation {
	unsigned number; /* from 1 */
	bool is_ready;
	bool is_lost; /* all may fail from here on */
	enum wp_has {
		WP_ABSENT,
		WP_LINKED,
		WP_UNSURE
	} has[WP_KEYS + 1];
	uint8_t tag[WP_KEYS + 1]; /* of the blob that was written last */
	uint32_t acked[WP_LIST], unknown[WP_LIST]; /* visits */
};

enum wp_kind {
	WP_FIND,
	WP_HASH,
	WP_BLOB_FIND,
	WP_TREE_FIND,
	WP_SET,
	WP_SWAP,
	WP_ADD,
	WP_KINDS,
};

/* The programs' pads. Those of ready walks begin with struct aq_walk_find. */
struct wp_find_pad {
	uint64_t found, state[2], key;
	uint8_t value[WP_BLOB];
};

struct wp_store_pad {
	uint64_t key;
	uint64_t value;	 /* SET, SWAP: the new one */
	uint64_t expect; /* SWAP */
	uint64_t was;
	uint64_t found;
};

struct wp;

/* A walk under way. */
struct wp_op {
	bool busy;
	enum wp_kind kind;
	struct wp_generation *g;
	unsigned key;		/* or the station where ADD begins */
	unsigned last;		/* ADD: and ends */
	bool is_bad, is_circle; /* where it starts */
	uint64_t value;
	int64_t op; /* of the history; -1: none */
	uint64_t start, start_ns;
	unsigned shaken; /* resizes begun when it started */
	enum wp_place place;
	unsigned again; /* how often the same lookup was made before */
	struct aq_walk_result first;
	union {
		struct wp_find_pad find;
		struct wp_store_pad store;
	} pad, first_pad;
	size_t pad_bytes;
};

struct wp_walker {
	struct wp *p;
	unsigned index;
	struct rig_host *host;
	struct rng rand;
	struct aq_rack *rack;
	struct aq_region *region;
	struct wp_generation *g; /* of the region that is open */
	struct aq_walks *walks;
	struct aq_walk *walk[WP_KINDS][WP_PLACES];
	struct wp_op op[WP_DEPTH];
	unsigned lives; /* processes so far */
	unsigned left;	/* to begin */
	bool done;
};

/* A process with links of its own, for WRITEs and compare-and-swaps. */
struct wp_hand {
	struct wp *p;
	struct rig_host *host;
	struct rng rand;
	struct aq_rack *rack;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t area[64]; /* what is sent and where answers go */
	struct aq_region *region;
	struct client_link *link[WALK_NODES_MAX];
	struct wp_generation *g;
};

struct wp {
	struct play_run run;
	struct walk_play_counts *n;
	struct walk_nodes nodes;
	/* Where everything is: slots of the region. */
	uint32_t bucket[WP_BUCKETS];
	uint32_t key[WP_KEYS + 1];
	uint32_t list[WP_LIST];
	uint32_t tree[WP_TREE];
	uint32_t circle[WP_CIRCLE];
	uint32_t lost_end; /* its next pointer leads out of the region */
	uint32_t torn_end; /* ... across a stripe */
	struct wp_generation gen[WP_GENERATIONS];
	struct wp_generation *now; /* the last one */
	uint64_t size_bytes;
	unsigned resizes; /* begun */
	bool is_resizing;
	struct wp_walker walker[WP_WALKERS];
	struct wp_hand keeper; /* makes regions and looks after nodes */
	struct wp_hand writer;
	struct wp_hand guest; /* its key is taken back */
	struct aq_walks *guest_walks;
	struct aq_walk *guest_walk;
	uint64_t guest_acked, guest_unknown; /* visits */
	bool guest_lost;		     /* its node was killed */
	bool is_revoked;		     /* its key was taken back */
	bool guest_done, writer_done, trouble_done;
	bool is_paused; /* nobody begins a walk */
};

static inline uint64_t wp_offset(uint32_t slot)
{
	return (uint64_t)slot * WP_SLOT;
}

/* ---- walk_field.c: the structures ---------------------------------------- */

void wp_field_draw(struct wp *p);
/* Fills a region that nobody uses yet. */
void wp_field_fill(struct wp *p, struct wp_hand *h);
/* What the tree has under key number `i` in that generation. */
uint64_t wp_tree_value(const struct wp_generation *g, unsigned i);
uint64_t wp_tree_key(unsigned i);
/* The station whose key it is, and the key of a station. */
uint64_t wp_list_key(unsigned i);
/* A value that says where it belongs. */
uint64_t wp_value(struct wp *p, const struct wp_generation *g, unsigned key);
bool wp_value_is_of(uint64_t value, const struct wp_generation *g,
		    unsigned key);
uint8_t wp_blob_byte(unsigned key, uint8_t tag, unsigned i);
/* The walks of a process. Those that store run on nodes only. */
int wp_walks_load(struct aq_rack *rack,
		  struct aq_walk *walk[WP_KINDS][WP_PLACES]);
int wp_ring_load(struct aq_rack *rack, struct aq_walk **walk);
/* An image that reads outside of its window; `join`: on one of two ways. */
json_t *wp_bad_image(bool join);
/* The shape of the ready walk of that kind. */
struct aq_walk_shape wp_shape(enum wp_kind kind);

/* ---- walk_hand.c --------------------------------------------------------- */

int wp_hand_open(struct wp *p, struct wp_hand *h, const char *name,
		 unsigned stream) MUST_CHECK;
/* Opens the region and a link to each piece. */
int wp_hand_attach(struct wp_hand *h, const char *name, uint32_t pieces,
		   bool is_revocable) MUST_CHECK;
void wp_hand_detach(struct wp_hand *h);
void wp_hand_close(struct wp_hand *h);
/* The memory of a slot, as the node has it; for who looks from outside. */
struct wp_slot *wp_hand_look(const struct wp_hand *h, uint32_t slot);
void wp_writer_main(void *arg);
void wp_guest_main(void *arg);
/* Visits that the guest's ring has counted. */
uint64_t wp_guest_visits(const struct wp *p);

/* ---- walk_client.c ------------------------------------------------------- */

int wp_walker_open(struct wp_walker *w) MUST_CHECK;
void wp_walker_main(void *arg);
/* Also of one that was killed. */
void wp_walker_close(struct wp_walker *w);

/* ---- walk_trouble.c ------------------------------------------------------ */

void wp_trouble_main(void *arg);
/* Every visit of a station that is known of was made, and no other one. */
void wp_check_visits(struct wp *p);
/* The first region; in a fiber. */
int wp_generation_begin(struct wp *p) MUST_CHECK;

#endif
