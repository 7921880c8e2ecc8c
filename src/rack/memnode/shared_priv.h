/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coherent shared memory at a memory node (docs/mind.md): the arena, segments
 * in it, and, if this node leads, the members and their leases, what is lost,
 * and everything that the switch's program `coherence` is told. All of it is
 * under the node's lock. One node of a switch leads: its arena is number 0. The
 * others offer theirs to the switch, where the lead finds them (follow.c).
 *
 * A segment that is deleted stays until the switch has taken back all copies of
 * its pages; only then its place, its charge and its memory are given back.
 *
 * A member is counted until the switch has gone through all that it had and the
 * node has noted what that lost: the next switch must be told of both.
 */
#ifndef AQ_MEM_SHARED_PRIV_H
#define AQ_MEM_SHARED_PRIV_H

#include "arena.h"
#include "coherence/coherence.h"
#include "control/ctl_metrics.h"
#include "memory_priv.h"
#include "switch_priv.h"
#include "wire/coherence_wire.h"

enum {
	MEM_SEGMENT_MAX = 4096,
	MEM_ALLOW_MAX = 32,   /* of a segment */
	MEM_LOST_MAX = 16384, /* regions that are noted one by one */
	MEM_MEMBER_NAME_MAX = 63,
	MEM_SHARED_NODE = 0, /* the lead's own */
	MEM_SHARED_NAME = 40,
	MEM_CONN_WORDS = 256,
};

/* What another tenant may do with a part of a segment. */
struct mem_allow {
	struct mem_tenant *tenant;
	uint64_t offset, length;
	enum coh_right right;
};

struct mem_segment {
	struct mem_tenant *tenant; /* whose it is */
	char name[MEM_REGION_NAME_MAX + 1];
	uint64_t id; /* of all segments of this run of the node */
	/* Whose arena has its part, which has its address; and where its memory
	 * is now, which may be elsewhere (shared_move.c). */
	uint8_t node, where;
	struct arena_part part, there;
	/* How many nodes shall have it, and the second one that does
	 * (shared_copy.c). */
	uint8_t copies;
	bool has_copy;
	uint8_t copy_node;
	struct arena_part copy;
	uint64_t va;
	uint64_t size_bytes; /* whole pages of the part; charged */
	/* As it was asked for. An object begins with 0, and has no part then.
	 */
	uint64_t length_bytes;
	/* Members that have it open. One that has no name any more is deleted
	 * when nobody has it open. */
	uint16_t users;
	bool is_unlinked;
	bool is_leaving;   /* deleted */
	bool is_withdrawn; /* and nobody has a right to it */
	bool goes_on; /* with memory's bytes, when a machine dies with newer */
	/* Nobody knows what of it was lost: no right to it is declared. */
	bool is_lost;
	char lost_by[MEM_MEMBER_NAME_MAX + 1]; /* the last machine; or "" */
	unsigned allow_count;
	struct mem_allow allow[MEM_ALLOW_MAX];
};

/* A connection of a member: whose numbers they are, see lead_declare_member. */
struct mem_member_end {
	uint32_t qpn, psn;
};

/* What a machine says about its connections. */
struct mem_member_ends {
	union ibv_gid gid;
	enum ibv_mtu mtu;
	struct mem_member_end talk, lane[COH_LANES_MAX];
	unsigned lanes;
};

struct mem_member {
	bool used;
	bool was_connected; /* in any term: it may have copies */
	bool is_connected;  /* in this term */
	bool is_going;	    /* expelled, or it left */
	bool is_told;	    /* and the switch of this term knows */
	char name[MEM_MEMBER_NAME_MAX + 1];
	struct mem_tenant *tenant; /* NULL: deleted */
	uint64_t nonce;
	uint64_t beat_ns;
	unsigned lanes;
	/* The switch's ends of this term, and the keys. */
	union ibv_gid own_gid;
	uint32_t mtu_bytes;
	uint32_t own_qpn; /* of the talk; lane i has 1 + i more */
	uint32_t own_psn;
	uint32_t key[COH_WRITE + 1]; /* to give back, to read, to write */
};

/* Counters of the switch's program that say whether to look at the rest. */
struct mem_shared_seen {
	json_int_t lost, expelled, nodes_lost, offers;
};

/* What the switch's program counts, as it was told last (shared_use.c). */
enum {
	MEM_SHARED_USES = 16,
};
struct mem_shared_use {
	uint64_t value[MEM_SHARED_USES];
};

struct mem_dirty {
	struct arena_part part;
	bool stays; /* the place is an address of a segment that is elsewhere */
};

/* A node that has shared memory, as the lead knows it; its number is that of
 * the switch, and its place among these. */
struct mem_shared_node {
	bool used;
	bool is_told; /* the switch of this term knows it */
	bool is_here; /* and has not given it up */
	bool is_odd;  /* what it offers was refused, and that was said */
	char name[MEM_SHARED_NAME];
	uint64_t id;	  /* of its run */
	uint64_t va;	  /* of its arena */
	uint64_t here_ns; /* since when machines are told of its addresses */
	struct arena arena;
	/* Parts that are taken until the node has made zeros of them. The first
	 * ones are told to the switch of this term. */
	unsigned dirty_count, dirty_told;
	struct mem_dirty *dirty;
};

/* The segment that goes elsewhere. */
struct mem_shared_move {
	struct mem_segment *segment; /* NULL: none */
	/* Where it goes; when it is noted to be there, where it was. */
	uint8_t node;
	struct arena_part part;
	bool is_noted;	   /* it is there; the switch may not have heard it */
	bool is_cancelled; /* the switch has heard that it stays */
	bool is_copy;	   /* and stays where it is, too */
};

struct mem_shared {
	struct mem_shared_node nodes[COHERENCE_NODES];
	struct mem_shared_move move;
	/* Of a node that does not lead: who does, and which parts are zeros by
	 * now. */
	char lead[MEM_SHARED_NAME]; /* "": this node leads */
	uint64_t id;
	uint32_t scrubbed, scrub_term;

	uint64_t size_bytes; /* of its own arena */
	struct ibv_pd *pd;   /* nothing else is in it */
	struct memory memory;
	struct ibv_qp *qp; /* the switch's connection to it; or NULL */
	unsigned segment_count;
	struct mem_segment *segments[MEM_SEGMENT_MAX];
	uint64_t last_id;
	uint32_t last_domain;
	struct mem_member members[COH_MACHINES_MAX];

	char run[CTL_SWITCH_RUN_TEXT]; /* of the switch that has our term */
	bool has_begun;		       /* our term there */
	bool is_ready;		       /* and machines may connect */
	uint64_t wait_ns; /* until then other nodes may come back */
	bool wants_term;  /* a node was given up, and is here again */
	uint32_t term;
	union ibv_gid switch_gid[2]; /* of its ends, IPv6 and IPv4 */
	struct mem_shared_seen seen;
	struct mem_shared_use use;
	bool all_lost; /* a machine died together with the switch */
	unsigned lost_count;
	struct coh_range *lost; /* by page */
	char why[160];		/* it is not ready */
	char *saved;		/* the file's text; NULL: it has none yet */
};

static inline uint64_t segment_va(const struct mem_segment *g)
{
	return g->va;
}

/* -EHOSTDOWN with words: there is no switch that knows us, so nothing can be
 * made or changed. */
int shared_check(const struct mem_node *node) MUST_CHECK;
/* By which the switch knows the tenant; the same on all machines. */
uint32_t shared_domain(struct mem_shared *s, struct mem_tenant *t);
/* A call to the program: -EHOSTDOWN, the switch does not answer; -EBUSY, it
 * refuses. With words. */
PRINTF(2, 3)
int shared_tell(struct mem_node *node, const char *fmt, ...) MUST_CHECK;
/* With an answer, which is the caller's. */
int shared_ask(struct mem_node *node, const char *line,
	       json_t **out) MUST_CHECK;

/* ---- shared_conn.c: the switch's connection to this node's arena ----------
 */

/* Where the switch's ends are. */
void shared_conn_addresses(struct mem_shared *s, const json_t *hello);
/* Ends the one that was, and makes another: the words that tell the switch. */
int shared_conn_make(struct mem_node *node,
		     char words[MEM_CONN_WORDS]) MUST_CHECK;

/* ---- shared_node.c: whose memory it is, as the lead knows it ---------------
 */

/* Number 0 is this node itself. */
int shared_node_open(struct mem_shared *s, const char *name,
		     uint64_t size_bytes) MUST_CHECK;
void shared_node_close(struct mem_shared *s);
/* One that is known from before, and away. */
int shared_node_restore(struct mem_shared *s, uint8_t at, const char *name,
			uint64_t id, uint64_t va,
			uint64_t size_bytes) MUST_CHECK;
/* A part of the least used node, and its address. -ENOSPC, with words. */
int shared_node_take(struct mem_node *node, struct mem_segment *g) MUST_CHECK;
/* Nobody has a page of it any more: it becomes zeros, and then is free. */
void shared_node_give(struct mem_node *node, const struct mem_segment *g);
/* The same of one place; `stays`: it is not free. */
void shared_node_scrub_part(struct mem_node *node, uint8_t at,
			    const struct arena_part *part, bool stays);
bool shared_node_is_dirty(const struct mem_shared *s, uint8_t at,
			  const struct arena_part *part);
/* The one with the least in segments that machines know, but for those in the
 * mask; NULL: none. */
struct mem_shared_node *shared_node_best(struct mem_shared *s, uint64_t but);
bool shared_node_is_open(const struct mem_shared *s, uint8_t at);
/* One that may have segments. -ENOENT, -EHOSTDOWN, with words. */
int shared_node_find(const struct mem_shared *s, const char *name,
		     uint8_t *out) MUST_CHECK;
/* A term begins: what was given back in vain in the former one is lost. Returns
 * how many pages that were. */
uint64_t shared_node_begin(struct mem_node *node, const json_t *show);
/* Takes what is offered. */
int shared_node_admit(struct mem_node *node, const json_t *show) MUST_CHECK;
/* One that is not here in this term; NULL: all are. */
const struct mem_shared_node *shared_node_missing(const struct mem_shared *s);
/* The switch is told of those that are not here. */
int shared_node_tell_away(struct mem_node *node) MUST_CHECK;
/* Who does not answer, and who has made its zeros. */
void shared_node_note(struct mem_node *node, const json_t *show);
/* Tells parts that shall be zeros. */
int shared_node_scrub(struct mem_node *node) MUST_CHECK;
/* Whether one of them has something to do. */
bool shared_node_is_busy(const struct mem_shared *s);
/* Addresses of shared memory, from COHERENCE_BASE on. */
uint64_t shared_node_extent(const struct mem_shared *s);
/* What is taken, of how much, of all. */
uint64_t shared_node_used(const struct mem_shared *s);
/* Rows for /v1/status. */
json_t *shared_node_describe(const struct mem_shared *s);

/* ---- shared_move.c: segments that go elsewhere -----------------------------
 */

/* `is_copy`: it shall be there, too. */
int shared_move_begin(struct mem_node *node, struct mem_segment *g, uint8_t to,
		      bool is_copy) MUST_CHECK;
/* Goes on with what the switch says. */
int shared_move_look(struct mem_node *node, const json_t *show) MUST_CHECK;
void shared_move_cancel(struct mem_node *node, const char *why);
/* The switch has nothing of it any more: the place without use is free. */
void shared_move_end(struct mem_node *node);
/* Tells where segments are that are not at home. */
int shared_move_declare(struct mem_node *node) MUST_CHECK;

/* ---- shared_copy.c: segments that two nodes have ---------------------------
 */

/* A second place for a segment that has none of its pages in use. The caller
 * has charged it. -ENOSPC. */
int shared_copy_take(struct mem_node *node, struct mem_segment *g) MUST_CHECK;
/* Tells the switch. */
int shared_copy_tell(struct mem_node *node,
		     const struct mem_segment *g) MUST_CHECK;
/* It has one place, where it is now. A switch that does not answer is another
 * one when it does. */
void shared_copy_untell(struct mem_node *node, const struct mem_segment *g);
/* The node has them no longer: they go on with what the other one has.
 * `is_told`: the switch of this term knows of both. */
void shared_copy_leave(struct mem_node *node, uint8_t at, bool is_told);
/* The second copy of this one counts no more. */
void shared_copy_drop(struct mem_node *node, struct mem_segment *g);
/* The same of one whose memory is new. */
void shared_copy_forget(struct mem_node *node, uint8_t at);
/* Begins a second copy where one is missing. */
void shared_copy_look(struct mem_node *node);
/* A new switch: which segments two nodes have. */
int shared_copy_declare(struct mem_node *node) MUST_CHECK;

/* ---- shared_file.c: what a lead that was killed knows ----------------------
 */

/* Writes it if it is not what it was. */
int shared_file_save(struct mem_node *node) MUST_CHECK;
/* The segments end with this node. */
void shared_file_remove(struct mem_node *node);
int shared_file_load(struct mem_node *node) MUST_CHECK;

/* ---- follow.c: a node that does not lead -----------------------------------
 */

int follow_look(struct mem_node *node, const json_t *hello) MUST_CHECK;

/* ---- segment.c ------------------------------------------------------------
 */

/* One that is not deleted; NULL: none. */
struct mem_segment *segment_find(const struct mem_shared *s,
				 const struct mem_tenant *owner,
				 const char *name);
/* What a segment is asked for. */
struct mem_segment_wish {
	const char *name;
	uint64_t size_bytes;
	uint8_t copies;
	bool goes_on;
};

int segment_create(struct mem_node *node, struct mem_tenant *t,
		   const struct mem_segment_wish *wish,
		   struct mem_segment **out) MUST_CHECK;
/* Copies that a tenant has already are not taken back. */
int segment_allow(struct mem_node *node, struct mem_segment *g,
		  const struct mem_allow *allow) MUST_CHECK;
/* Tells the switch that nobody has a right to it. */
int segment_withdraw(struct mem_node *node, struct mem_segment *g) MUST_CHECK;
int segment_delete(struct mem_node *node, struct mem_segment *g) MUST_CHECK;
/* One that is not deleted, with a name or without; NULL: none. */
struct mem_segment *segment_find_id(const struct mem_shared *s,
				    const struct mem_tenant *owner,
				    uint64_t id);
/* Longer, within its place; the first time it gets one. -EOPNOTSUPP: shorter;
 * -ENOSPC: there is no room behind it. */
int segment_resize(struct mem_node *node, struct mem_segment *g,
		   uint64_t length_bytes) MUST_CHECK;
/* Deletes those without a name that no machine has open. */
void segment_sweep(struct mem_node *node);
/* As callers see it. */
json_t *segment_describe(const struct mem_shared *s,
			 const struct mem_segment *g,
			 const struct mem_tenant *caller);
/* Whatever it has, without the switch. */
void segment_free(struct mem_node *node, struct mem_segment *g);
/* The most that a tenant may do somewhere in it. */
enum coh_right segment_right(const struct mem_segment *g,
			     const struct mem_tenant *t);
/* Tells the switch all rights to it. */
int segment_declare(struct mem_node *node, struct mem_segment *g) MUST_CHECK;

/* ---- lost.c ---------------------------------------------------------------
 */

/* What the switch says to be lost; `by`: who has died, or NULL. */
int lost_note(struct mem_shared *s, const json_t *show,
	      const char *by) MUST_CHECK;
uint64_t lost_bytes(const struct mem_shared *s, const struct mem_segment *g);
/* Without the switch: another segment will be there. */
void lost_forget(struct mem_shared *s, const struct mem_segment *g);
/* Its bytes are not what they were; `by`: whose fault that is, or NULL. */
void lost_whole(struct mem_segment *g, const char *by, const char *why);
/* Nobody knows what a machine had: all segments are lost. */
int lost_spread(struct mem_node *node, const char *by) MUST_CHECK;
/* Memory's bytes count again. -EBUSY: not all machines are clean. */
int lost_repair(struct mem_node *node, struct mem_segment *g) MUST_CHECK;

/* ---- member.c -------------------------------------------------------------
 */

int member_find(const struct mem_shared *s, const struct mem_tenant *t,
		const char *id, struct mem_member **out) MUST_CHECK;
int member_join(struct mem_node *node, struct mem_tenant *t, const char *name,
		const struct mem_member_ends *ends,
		struct mem_member **out) MUST_CHECK;
/* In a new term. -EEXIST: it is connected in this one. */
int member_connect(struct mem_node *node, struct mem_member *m,
		   const struct mem_member_ends *ends) MUST_CHECK;
/* Nothing of it counts any more. */
void member_expel(struct mem_member *m, const char *why);
/* Those whose lease is over, and what the switch is told of them. */
void member_tick(struct mem_node *node);
/* The switch may have found out by itself that some are gone. */
void member_note(struct mem_shared *s, const json_t *show);
/* Those of which the switch has nothing any more; what that lost is noted. */
void member_forget(struct mem_shared *s, const json_t *show);
/* The bits of those that may have copies. */
uint32_t member_unclean(const struct mem_shared *s);

/* ---- lead.c ---------------------------------------------------------------
 */

/* Learns what the switch has found out: who is gone, and what that lost. */
int lead_take_news(struct mem_node *node) MUST_CHECK;
/* Gives back what was deleted, where no machine has a page of it any more. */
int lead_free_segments(struct mem_node *node) MUST_CHECK;

/* ---- shared_use.c: what it does --------------------------------------------
 */

void shared_use_note(struct mem_shared_use *u, const json_t *program);
json_t *shared_use_describe(const struct mem_shared_use *u);
void shared_use_metrics(struct ctl_metrics *m, const struct mem_shared_use *u);

#endif
