/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directory: which machines may have copies of which region, and who waits
 * for whom. One thread. All arrays belong to the caller; no call allocates, and
 * every call fills `out`, which the caller executes before the next call.
 *
 * A region without an entry is I: nobody has a copy, the memory node's bytes
 * are current. Entries come from a fixed pool; when it is empty, one is
 * recalled, and who needs it waits.
 *
 *  state  event                next    what is done
 *  -----  -------------------  ------  ---------------------------------------
 *  I      R, W of b            S M{b}  READ, answer b
 *  S      R of b               S+b     READ, answer b
 *  S      W of b, alone        M{b}    READ, answer b
 *  S      W of b               toM     INVAL to I to the others; READ, hold
 *  M{b}   R, W of b            M{b}    READ, answer b (a page it has not)
 *  M{o}   R of b               toS     INVAL to S to o
 *  M{o}   W of b               toM     INVAL to I to o
 *  S, M   recall               rec     INVAL to I to all
 *  busy   R, W                 same    wait in the region's queue
 *  toS    give of target by o  toS     write; answer b at once
 *  toM    give of target by o  toM     write; hold the bytes for b
 *  M busy any other give by o  same    write (busy: a false invalidation)
 *  any    any other give       same    refuse
 *  toS    FIN, the last        S{o,b}  READ, answer b, if it has no answer
 *  toM    FIN, the last        M{b}    answer b with what is held, or READ
 *  rec    FIN, the last        I
 *  any    FIN, not waited for  same    ignored
 *  S, M   EVICT of b           -b      I when nobody is left
 *  busy   EVICT                same    ignored: its FIN will come
 *  L      R, W                 L       refuse: lost
 *  L      repair               S, I    memory's bytes count
 *
 *  a machine is gone:
 *  S, M   a sharer             -b      I when nobody is left
 *  M{o}   the owner            L       (or I, if memory's bytes shall count)
 *  busy   a sharer             same    counts as its FIN
 *  busy   the owner            L       refuse all who wait (or as its FIN)
 *  busy   who asked            same    the region goes on without it
 *
 * Regions have sizes of their own: entries begin with region_pages, are split
 * where they are invalidated for pages that nobody asked for, and joined where
 * they are quiet (split.h). "busy" is toS, toM or rec; b is who asks, o the
 * owner. A grant counts from its decision: until the answer has arrived, an
 * INVAL names it and the machine waits for it. An entry that is I with an empty
 * queue goes back to the pool.
 *
 * Terms: a switch that begins while machines may have copies of a former term
 * knows nothing about them. All gets wait until each of these machines has
 * given back what it stored and said CLEAN. If one is gone before, nobody knows
 * what it had: all is lost until repair (or memory's bytes count). Where they
 * count for some ranges only, gets of these wait until the keeper has repaired,
 * which it does by itself when all are clean; others are refused. So a keeper
 * outside the switch knows the members and what is lost. It counts a machine as
 * a member until coh_dir_gone has looked at all entries and the keeper has
 * noted what that lost; what it noted, it tells the next switch.
 */
#ifndef AQ_COHERENCE_DIR_H
#define AQ_COHERENCE_DIR_H

#include "coherence.h"

enum {
	COH_SLOT_NONE = 0xffff,
	COH_NOBODY = 0xff,
	COH_DIR_SCAN_MAX = 64, /* entries looked at for a recall in one call */
	/* One action for each get of the rack, and the INVALs of one entry and
	 * of one recall. */
	COH_DIR_OUT_MAX =
		COH_MACHINES_MAX * COH_LANES_MAX + 2 * COH_MACHINES_MAX + 2,
};
#define COH_ENTRY_NONE UINT32_MAX

enum coh_dir_state {
	COH_DIR_FREE,	     /* no region's */
	COH_DIR_SHARED,	     /* S; with no sharers I, for a moment */
	COH_DIR_MODIFIED,    /* M: the one sharer owns it */
	COH_DIR_TO_SHARED,   /* an owner shall become a sharer */
	COH_DIR_TO_MODIFIED, /* all others shall have nothing */
	COH_DIR_RECALL,	     /* all shall have nothing */
	COH_DIR_LOST,	     /* the owner died with stores */
};

struct coh_dir_entry {
	uint64_t page;		   /* its first */
	uint32_t seq;		   /* of the INVALs that are under way */
	uint8_t order;		   /* it has 1 << order pages */
	uint32_t next;		   /* of its bucket, or of the free ones */
	uint32_t false_invals;	   /* in this epoch (split.h) */
	uint16_t sharers, waiting; /* machines; whose FIN is waited for */
	uint16_t asker;		   /* slot that waits for FINs, or none */
	uint16_t first, last;	   /* slots in its queue */
	uint8_t state;
	uint8_t gainer; /* machine that becomes sharer or owner */
	bool owned;	/* busy: whose FIN is waited for may have stores */
};

/* A lane's get. */
enum coh_slot_state {
	COH_SLOT_FREE,
	COH_SLOT_QUEUED,   /* behind a busy region */
	COH_SLOT_ROOM,	   /* until there is an entry, or all are clean */
	COH_SLOT_ASKING,   /* FINs are waited for; it has no bytes */
	COH_SLOT_FETCHING, /* the same; memory is being read */
	COH_SLOT_HOLDING,  /* the same; its bytes are held */
	COH_SLOT_GRANTED,  /* memory is being read, the answer follows */
	COH_SLOT_ORPHAN,   /* memory is being read for a machine that is gone */
};

struct coh_dir_slot {
	uint64_t page;
	uint32_t serial;
	uint32_t granted; /* serial of the last granted get; 0: none */
	uint16_t next;	  /* of its queue */
	uint8_t state;
	uint8_t right;
};

enum coh_dir_counter {
	COH_DIR_C_invals,
	COH_DIR_C_false_invals, /* pages given back that nobody asked for */
	COH_DIR_C_recalls,
	COH_DIR_C_waits,	 /* gets that met a busy region */
	COH_DIR_C_lost,		 /* regions whose owner died */
	COH_DIR_C_old_bytes,	 /* of them, those that went on with memory's */
	COH_DIR_C_refused_gets,	 /* of strangers, or beside another one */
	COH_DIR_C_refused_gives, /* by who is no owner */
	COH_DIR_C_stray_fins,	 /* that nobody waits for */
	COH_DIR_COUNTER_COUNT
};

struct coh_dir {
	/* Set by the caller before coh_dir_init. */
	struct coh_dir_entry *entries;
	uint32_t *buckets; /* first entry of each */
	struct coh_dir_slot *slots;
	uint32_t entry_count, bucket_count; /* buckets: a power of two */
	uint32_t region_pages;	 /* of a new entry at least; a power of two */
	uint8_t machines, lanes; /* lanes of each machine */
	bool keep_going;	 /* memory's bytes count when an owner dies */
	/* The same for these ranges, in the order of their pages. */
	const struct coh_range *goes_on;
	uint32_t goes_on_count;

	uint32_t new_pages; /* of a new entry (split.h) */
	uint32_t term, seq;
	uint32_t free;			  /* first free entry */
	uint32_t used;			  /* entries that are not */
	uint32_t order_count[COH_ORDERS]; /* of these, by their size */
	uint32_t hand;	      /* where the search for a recall goes on */
	uint32_t recalls;     /* under way */
	uint32_t lost_count;  /* entries that are lost */
	uint32_t room_count;  /* slots that wait for an entry */
	uint16_t first, last; /* of these */
	uint16_t members;
	uint16_t unclean; /* members of a former term that may have copies */
	bool lost;	  /* all of it: nobody knows what a machine had */
	uint64_t counters[COH_DIR_COUNTER_COUNT];
};

enum coh_dir_action_kind {
	COH_DIR_READ,	/* READ `page` from memory; then coh_dir_read_done */
	COH_DIR_HOLD,	/* keep the bytes that came for this lane */
	COH_DIR_ANSWER, /* answer this lane's get with those that came */
	COH_DIR_ANSWER_HELD, /* answer it with those that were kept */
	COH_DIR_WRITE,	     /* write to memory; then acknowledge the give */
	COH_DIR_REFUSE_GIVE,
	COH_DIR_REFUSE_GET,  /* NAK: not a member, or not this lane's turn */
	COH_DIR_REFUSE_LOST, /* NAK: the region is lost */
	COH_DIR_INVAL,
};

struct coh_dir_action {
	enum coh_dir_action_kind kind;
	uint8_t machine, lane;
	enum coh_right right; /* of an answer */
	uint64_t page;
	struct coh_inval inval;
};

struct coh_dir_out {
	uint32_t count;
	struct coh_dir_action action[COH_DIR_OUT_MAX];
};

/* Begins term `term`. `unclean`: members of former terms that may have copies;
 * they are members. `lost`: all was lost in a former term, and is not repaired.
 */
void coh_dir_init(struct coh_dir *d, uint32_t term, uint16_t unclean,
		  bool lost);
/* Before the first get: the region, of a size that regions may have, was lost
 * in a former term, and is not repaired. Without a free entry all is lost. */
void coh_dir_set_lost(struct coh_dir *d, const struct coh_range *region);

/* A machine that has nothing becomes a member. -EBUSY: memory is still being
 * read for a machine of that number; -EINVAL: there is no such number, or it is
 * a member. */
int coh_dir_join(struct coh_dir *d, uint8_t machine) MUST_CHECK;
/* A member is dead, or its lease is over; the caller has dropped its lanes. The
 * first call takes *at = 0; each looks at one entry, and there are more while
 * it returns true. The machine may not join before that. */
bool coh_dir_gone(struct coh_dir *d, uint8_t machine, uint32_t *at,
		  struct coh_dir_out *out);

/* ---- what machines say --------------------------------------------------- */
void coh_dir_get(struct coh_dir *d, const struct coh_get *get,
		 struct coh_dir_out *out);
void coh_dir_give(struct coh_dir *d, uint8_t machine, uint64_t page,
		  struct coh_dir_out *out);
void coh_dir_fin(struct coh_dir *d, uint8_t machine, const struct coh_fin *fin,
		 struct coh_dir_out *out);
/* The range has up to COH_REGION_PAGES_MAX pages; of a longer one the rest is
 * ignored. */
void coh_dir_evict(struct coh_dir *d, uint8_t machine,
		   const struct coh_range *range, struct coh_dir_out *out);
void coh_dir_clean(struct coh_dir *d, uint8_t machine, uint32_t term,
		   struct coh_dir_out *out);

/* ---- what else happens --------------------------------------------------- */
/* Memory's bytes for a lane's get have come. */
void coh_dir_read_done(struct coh_dir *d, uint8_t machine, uint8_t lane,
		       struct coh_dir_out *out);
/* Takes the region's entry back, if it is idle. */
void coh_dir_recall(struct coh_dir *d, uint64_t page, struct coh_dir_out *out);
/* Goes on with what was too much for one call: gets that wait for an entry, and
 * the search for one to recall. Every millisecond or so. */
void coh_dir_tick(struct coh_dir *d, struct coh_dir_out *out);
/* Memory's bytes of this page's region count; of all regions, if all is lost.
 * -EBUSY: machines of a former term may still give back what they have. */
int coh_dir_repair(struct coh_dir *d, uint64_t page,
		   struct coh_dir_out *out) MUST_CHECK;

/* ---- sizes of regions ---------------------------------------------------- */
/* An idle entry becomes two of half the size. False: it is busy, lost or one
 * page, or there is no free entry. Nobody but the directory need know. */
bool coh_dir_split(struct coh_dir *d, struct coh_dir_entry *e);
/* The entry and the region to the right of it become one: both idle, or the
 * right one I; S with S, or M with M of the same machine. False: they cannot.
 */
bool coh_dir_merge(struct coh_dir *d, struct coh_dir_entry *e);

/* The region's entry, or NULL: it is I. */
const struct coh_dir_entry *coh_dir_find(const struct coh_dir *d,
					 uint64_t page);
static inline uint32_t coh_dir_pages(const struct coh_dir_entry *e)
{
	return 1u << e->order;
}

const char *coh_dir_state_name(enum coh_dir_state state);
/* NULL, or the invariant that does not hold, in words. */
const char *coh_dir_check(const struct coh_dir *d);

#endif
