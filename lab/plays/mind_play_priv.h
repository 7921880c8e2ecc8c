/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the play "mind". */
#ifndef AQ_PLAYS_MIND_PLAY_PRIV_H
#define AQ_PLAYS_MIND_PLAY_PRIV_H

#include "mind_litmus.h"
#include "mind_play.h"
#include "rig/coh_machine.h"
#include "sim/fiber.h"

enum {
	MP_MACHINES = 8,
	MP_THREADS = 4, /* of a machine */
	MP_NODES = 2,
	MP_PAGES = 16,
	MP_WORDS = COHERENCE_PAGE_BYTES / 8,
	MP_HOT_WORDS = 2, /* of a page, that random operations use */
	MP_LANES = 4,
	MP_OPS = 24, /* of a thread */
};

/* Steps of a machine at which it may die, as enum rig_coh_step has them. */
#define MP_POINTS(X)                           \
	X("a get is sent")                     \
	X("a page that has come is mapped")    \
	X("threads have used the page")        \
	X("an INVAL is looked at")             \
	X("a range is protected")              \
	X("a page is given back")              \
	X("a give-back's completion is taken") \
	X("a range is unmapped")               \
	X("FIN is sent")                       \
	X("EVICT is sent")                     \
	X("CLEAN is sent")

struct mp;

/* One instruction of a thread. */
struct mp_op {
	struct mp_op *next; /* of those that wait */
	uint8_t call;	    /* enum lin_call */
	uint8_t right;	    /* enum coh_right */
	bool is_done, has_failed;
	uint32_t process;
	uint32_t page, word;
	uint64_t a, b;
	uint64_t got;
	uint32_t gen; /* of the page, when it began */
	int64_t lin;
};

struct mp_machine {
	struct mp *p;
	uint8_t number;
	struct rig_host *host;
	struct rng rand;
	bool is_dead;
	unsigned threads; /* that have not ended */
	uint32_t limit;	  /* pages that it keeps */

	struct rig_coh coh;

	/* The MMU: what processes may do, as actions said; and the pages. */
	uint8_t mmu[MP_PAGES];
	uint64_t mem[MP_PAGES][MP_WORDS];
	struct mp_op *waiting;
	struct sim_wait changed;
};

struct mp_thread {
	struct mp_machine *m;
	struct rng rand;
	uint32_t process;
	int litmus; /* which thread of the shape; -1: none */
};

struct mp {
	struct play_run run;
	struct mind_play_counts *n;
	struct rig_tor *tor;
	enum ibv_mtu mtu;
	char program[160];
	unsigned machine_count, node_count, page_count;
	struct mp_machine machines[MP_MACHINES];
	struct mp_thread threads[MP_MACHINES * MP_THREADS];
	struct rig_coh_node nodes[MP_NODES];
	bool is_over; /* servers end */

	/* The last store to each word, and which life of it this is: what is
	 * repaired begins anew. */
	uint64_t shadow[MP_PAGES][MP_WORDS];
	uint32_t gen[MP_PAGES];
	uint64_t next_value;

	/* The keeper of members, outside the switch. */
	uint32_t term;
	uint32_t turn; /* of connections to nodes */
	uint16_t members;
	uint16_t going;	  /* dead ones that the switch was told of */
	uint16_t to_tell; /* dead ones that it was not */
	uint64_t tell_ns;
	bool has_switch_died, has_begun;
	bool all_lost, is_page_lost[MP_PAGES];
	uint64_t repair_ns; /* when to; 0: nothing to repair */
	/* The lower half goes to the second node, too, when it is time. */
	uint64_t move_ns; /* 0: never, or it was tried */
	bool is_moving, has_moved;
	/* Both nodes have both halves, until the keeper has noted that one of
	 * them has a half alone; -1: it has not. */
	bool has_copies;
	int alone[MP_NODES];
	uint64_t note_ns;  /* when it notes what it has seen; 0: nothing */
	bool dies_unnoted; /* the switch, between seeing and noting */
	int silent;	   /* a node that answers nobody; -1: none */

	/* Fate. */
	int victim; /* machine; -1: none */
	enum rig_coh_step death_point;
	unsigned death_countdown;
	bool may_repair;

	struct mind_litmus litmus;
};

/* Which node has the page: the upper half is moved to the second one. Of two
 * that have it, one that lives. */
static inline unsigned mp_node_of(const struct mp *p, uint32_t page)
{
	unsigned half = page >= MP_PAGES / 2;

	if (!p->has_copies)
		return p->node_count > 1 && (half || p->has_moved);
	if (p->alone[half] >= 0)
		return (unsigned)p->alone[half];
	return p->nodes[half].is_dead ? !half : half;
}

/* Where in a node's arena: in the second one the upper half comes first. */
static inline const uint64_t *mp_memory_at(const struct mp *p, unsigned node,
					   uint32_t page)
{
	uint32_t at = node ? (page + MP_PAGES / 2) % MP_PAGES : page;

	return (const void *)(p->nodes[node].arena->mem +
			      at * COHERENCE_PAGE_BYTES);
}

static inline const uint64_t *mp_memory_of(const struct mp *p, uint32_t page)
{
	return mp_memory_at(p, mp_node_of(p, page), page);
}

/* ---- mind_machine.c: a machine and its server -----------------------------
 */

int mp_machine_start(struct mp *p, unsigned number) MUST_CHECK;
void mp_machine_stop(struct mp_machine *m);
/* New connections to a switch that has begun a term. */
int mp_machine_connect(struct mp_machine *m, bool was_member) MUST_CHECK;
/* The switch is gone. */
void mp_machine_cut(struct mp_machine *m);
/* Begins an instruction; it may be done at once. */
void mp_op_begin(struct mp_machine *m, struct mp_op *op);
/* Whether nothing of it is under way. */
bool mp_machine_is_idle(const struct mp_machine *m);

/* ---- mind_thread.c: what threads do ----------------------------------------
 */

int mp_threads_start(struct mp *p) MUST_CHECK;
/* Executes it on the machine's copy, which has the right. */
void mp_op_execute(struct mp_machine *m, struct mp_op *op);
void mp_op_fail(struct mp_machine *m, struct mp_op *op);

/* ---- mind_play.c -----------------------------------------------------------
 */

/* The switch was killed, and is there again. */
void mp_switch_is_new(void *ctx);

/* ---- mind_keeper.c: members, terms, repair ----------------------------------
 */

/* The first term, with all machines. */
int mp_keeper_start(struct mp *p) MUST_CHECK;
/* The machine is dead; the switch hears of it later. */
void mp_keeper_dead(struct mp *p, unsigned machine);
/* Does what is due; call it often. False: it went wrong. */
bool mp_keeper_run(struct mp *p);

#endif
