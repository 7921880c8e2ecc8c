/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A rack of a few machines and pages in which the shipped directory and caches
 * (rack/coherence) play all that can happen: one state of it, the events that
 * are possible there, and the promises that must hold in each.
 *
 * Between a machine and the switch each message travels by itself: a get, a
 * give-back, a FIN, an EVICT, a CLEAN and an INVAL may pass each other, because
 * they may be on different lanes. Lanes lose nothing but by death: with the
 * switch dies all that is under way; of what it had sent to the memory node any
 * part may have been executed, in order, and the node takes nothing of it later
 * (it ends the old connection before it makes the new one). What a dead machine
 * has sent may arrive until the switch drops its lanes; then it looks at one
 * entry after the other, and anything may happen between two of them. The
 * keeper of members does not die; it notes what a dead machine lost some time
 * after the switch has been through.
 *
 * Where two memory nodes have all pages, a node may fall silent once, with any
 * part of what it was sent executed. It may be back when the switch has died,
 * with what it has; if the keeper has not noted by then that the other one
 * alone counts, both do.
 *
 * Bytes: of each copy of a page, wherever it is, one bit says whether it has
 * the last store. A store makes one copy fresh and all others old.
 */
#ifndef AQ_MODEL_MIND_WORLD_H
#define AQ_MODEL_MIND_WORLD_H

#include "coherence/cache.h"
#include "coherence/copies.h"
#include "coherence/dir.h"

enum {
	MIND_MACHINES_MAX = 3,
	MIND_PAGES_MAX = 2,
	MIND_SLOTS_MAX = MIND_MACHINES_MAX * MIND_PAGES_MAX,
	/* Requests for one page at one node. */
	MIND_MEMORY_MAX = 2 * MIND_MACHINES_MAX,
	MIND_BOTH = 3,	     /* nodes, as a set */
	MIND_WORDS_MAX = 10, /* of a packed state */
	MIND_EVENTS_MAX = 128,
};

/* What may happen, beside the programs' loads and stores. */
struct mind_config {
	uint32_t machines, pages, region_pages, entries;
	bool evict, recall;
	/* The region of two pages is split and joined, at any moment at which
	 * it is idle; messages then say how many pages they mean. */
	bool split;
	bool read_only;			/* nobody writes the second page */
	bool machine_dies, switch_dies; /* once each */
	bool keep_going;		/* after a loss, with memory's bytes */
	bool goes_on;			/* the same, said of the pages */
	bool copies;			/* two nodes have the one page */
	bool node_dies;			/* once, one of them */
};

enum mind_way {
	MIND_NOWHERE,
	MIND_THERE,   /* to the switch */
	MIND_MEMORY,  /* a give-back: to the memory node */
	MIND_BACK,    /* the answer, or the acknowledgement */
	MIND_REFUSED, /* the refusal */
};

/* One message, or none. */
struct mind_msg {
	uint8_t way;
	bool fresh; /* the bytes that it carries */
};

struct mind_machine {
	bool alive;
	uint8_t gone_at; /* the next entry that the switch looks at; 0: none */
	struct coh_cache cache;
	struct coh_cache_page pages[MIND_PAGES_MAX];
	struct coh_cache_lane lanes[MIND_PAGES_MAX];
	struct coh_cache_job jobs[MIND_PAGES_MAX];
	struct coh_cache_leave leaves[MIND_PAGES_MAX];
	bool fresh[MIND_PAGES_MAX];
	uint8_t want[MIND_PAGES_MAX]; /* what a thread waits for */
	/* By lane, page and region. */
	struct mind_msg get[MIND_PAGES_MAX];
	struct coh_get asked[MIND_PAGES_MAX]; /* by the last get of a lane */
	struct mind_msg give[MIND_PAGES_MAX];
	/* Of a give-back that nodes have, also when the machine is gone. */
	bool has_failed[MIND_PAGES_MAX][COH_TWO];
	bool is_held[MIND_PAGES_MAX];
	struct mind_msg evict[MIND_PAGES_MAX];
	struct mind_msg clean;
	bool has_inval[MIND_PAGES_MAX], has_fin[MIND_PAGES_MAX];
	struct coh_inval inval[MIND_PAGES_MAX];
	struct coh_fin fin[MIND_PAGES_MAX];
};

/* A request to a memory node, on its one connection. */
struct mind_request {
	bool write;
	uint8_t machine, lane;
	bool fresh; /* of a write */
};

struct mind_world {
	const struct mind_config *config;
	const char *wrong; /* a message that no honest peer may get */
	struct coh_dir dir;
	struct coh_dir_entry entries[MIND_PAGES_MAX];
	struct coh_dir_slot slots[MIND_SLOTS_MAX];
	uint32_t bucket;
	bool held[MIND_SLOTS_MAX]; /* fresh */
	struct mind_machine machine[MIND_MACHINES_MAX];
	/* The memory nodes: one, or two with the same pages. */
	uint8_t queue_len[COH_TWO][MIND_PAGES_MAX];
	struct mind_request queue[COH_TWO][MIND_PAGES_MAX][MIND_MEMORY_MAX];
	bool memory[COH_TWO][MIND_PAGES_MAX]; /* fresh */
	bool is_away[COH_TWO];		      /* the switch has given it up */
	uint8_t counts;			      /* nodes, for the switch */
	uint8_t kept_counts; /* and as the keeper has noted it */
	/* When all that is under way is done the two will have different bytes,
	 * of which one may be fresh. */
	bool differs;
	bool machine_may_die, switch_may_die, node_may_die;
	/* What the keeper of members knows, outside the switch. */
	uint16_t kept;
	bool kept_lost, kept_region_lost[MIND_PAGES_MAX];
	bool doubt; /* whether a store is lost with which all went on */
};

/* The smallest size of a region: messages of regions are told apart by where
 * they begin. */
static inline uint32_t mind_unit_pages(const struct mind_config *c)
{
	return c->split ? 1 : c->region_pages;
}

static inline uint32_t mind_region_count(const struct mind_config *c)
{
	return c->pages / mind_unit_pages(c);
}

static inline uint8_t mind_node_count(const struct mind_config *c)
{
	return c->copies ? COH_TWO : 1;
}

/* What a machine leaves at a time: it does not know how large regions are. */
static inline struct coh_range mind_leave_range(const struct mind_config *c,
						uint32_t region)
{
	return (struct coh_range){(uint64_t)region * mind_unit_pages(c),
				  c->region_pages};
}

/* All machines are members and have nothing. */
void mind_world_init(struct mind_world *w, const struct mind_config *config);
/* Copies; the pointers inside are those of the copy. */
void mind_world_copy(struct mind_world *to, const struct mind_world *from);

/* ---- mind_pack.c --------------------------------------------------------- */
struct mind_packed {
	uint64_t word[MIND_WORDS_MAX];
};

/* The same for all states that differ only in which machine is which, or in
 * how numbers are called of which only equality counts. Unused words are 0. */
void mind_pack(const struct mind_world *w, struct mind_packed *packed);
void mind_unpack(const struct mind_config *config,
		 const struct mind_packed *packed, struct mind_world *w);

/* ---- mind_event.c -------------------------------------------------------- */
enum mind_event_kind {
	/* Programs, operators and fate: need not happen. */
	MIND_E_touch,
	MIND_E_store,
	MIND_E_evict,
	MIND_E_leave,
	MIND_E_recall,
	MIND_E_split,
	MIND_E_merge,
	MIND_E_die,
	MIND_E_switch_dies,
	MIND_E_node_dies,
	MIND_E_repair,
	MIND_E_join,
	/* What happens in the end. */
	MIND_E_get,
	MIND_E_give,
	MIND_E_fin,
	MIND_E_evicted,
	MIND_E_clean,
	MIND_E_inval,
	MIND_E_answer,
	MIND_E_given,
	MIND_E_left,
	MIND_E_cleaned,
	MIND_E_memory,
	MIND_E_gone,
	MIND_E_noted,
	MIND_E_single, /* the keeper notes which node counts, */
	MIND_E_told,   /* and says so */
	MIND_E_spread, /* it ends a loss of all where memory's bytes count */
	MIND_E_connect,
};

struct mind_event {
	uint8_t kind, machine;
	uint8_t at;  /* page, lane or region */
	uint8_t arg; /* a right; a node; how many requests memory executed */
};

static inline bool mind_event_is_progress(const struct mind_event *e)
{
	return e->kind >= MIND_E_get;
}

unsigned mind_events(const struct mind_world *w,
		     struct mind_event event[MIND_EVENTS_MAX]);
void mind_apply(struct mind_world *w, const struct mind_event *e);

/* ---- mind_judge.c -------------------------------------------------------- */
/* NULL, or the promise that is broken, in words. `strict`: also the invariants
 * that directory and caches have of themselves. */
const char *mind_judge(const struct mind_world *w, bool strict);
/* Nothing is under way, and nobody waits. */
bool mind_is_quiet(const struct mind_world *w);

/* ---- mind_show.c --------------------------------------------------------- */
/* A line about what happens, and one about what is then, for people. */
void mind_event_text(const struct mind_world *w, const struct mind_event *e,
		     char *text, size_t size_bytes);
void mind_world_text(const struct mind_world *w, char *text, size_t size_bytes);

#endif
