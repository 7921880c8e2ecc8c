/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's state, shared by its queues and its matching disciplines. */
#ifndef AQ_EDM_SCHED_PRIV_H
#define AQ_EDM_SCHED_PRIV_H

#include "edm_sched.h"

#define SCHED_NO_KEY UINT64_MAX

enum {
	SCHED_SRC,
	SCHED_DST,
	SCHED_SIDES,
	SCHED_NONE = 0,		     /* entry 0 is never used */
	SCHED_TOKEN_TICK = 1u << 31, /* a slot boundary or a PIM iteration */
};

/* One notification. Those of a lane are a list; only its head competes. */
struct sched_entry {
	uint64_t order; /* older ones have smaller numbers */
	uint64_t at_ps;
	uint32_t handle;
	uint32_t left_bytes;
	uint32_t size_bytes; /* most that were left, ever */
	uint32_t next;
	uint16_t first_extra_bytes;
	uint8_t first_down_blocks;
	bool started;
	bool aged;
	bool live;
};

struct sched_pair {
	uint32_t head, tail;
	uint16_t count;
	bool wanted; /* RESERVE: whether it was, at that epoch */
	uint32_t epoch;
	uint16_t place[SCHED_SIDES]; /* in the lists of its two ports */
};

/* The head of a lane as one of its ports sees it. Smaller keys go first; no
 * two are equal. */
struct sched_rival {
	uint64_t key;
	uint16_t peer;
	uint16_t lane;
};

struct sched_port {
	uint64_t free_ps; /* held until then */
	uint64_t hold_ps; /* length of the last hold */
	uint64_t debt_ps; /* of control blocks not made up for */
	uint64_t wake_ps; /* the wake that will release it */
	uint64_t round;	  /* the last in which it was granted something */
	struct sched_rival *rival; /* room for all ports */
	uint32_t rival_count;
	uint16_t top; /* place of the smallest key */
	bool top_known;
	bool parked;  /* RESERVE: free, but its messages are reserved */
	bool stirred; /* RESERVE: in the list of ports to try again */
	bool disabled;
	bool matched;	  /* scratch of one matching */
	bool asked;	  /* PIM: takes part in this round */
	bool asks;	  /* wants to take part in the next round */
	uint32_t request; /* PIM: the port it asks for; scratch */
	uint32_t request_lane;
	uint64_t request_key;
};

struct edm_sched {
	struct edm_sched_config c;
	struct sched_port *port[SCHED_SIDES];
	struct sched_pair *pair; /* [(src * ports + dst) * lanes + lane] */
	struct sched_rival *rival_memory;
	struct sched_entry *entry;
	uint32_t entry_used, entry_size, entry_free;
	uint32_t backlog;
	uint64_t order;
	uint32_t *depth; /* notifications per destination */
	/* SRPT with an age cap: entries in order of arrival. */
	uint32_t *age;
	uint64_t *age_order;
	uint32_t age_head, age_count, age_size;
	bool ticking;
	uint32_t round_left;  /* PIM: iterations left of this round */
	uint16_t *round;      /* PIM: destinations of this round */
	uint16_t *round_lane; /* SLOT: scratch */
	uint32_t *stir;	      /* RESERVE: port << 1 | side */
	uint32_t stir_count;
	uint32_t epoch; /* RESERVE: changes with every change of keys */
	uint32_t round_count;
	uint16_t *later; /* PIM: destinations of the next round */
	uint32_t later_count;
	/* Rounds of a matching that takes time: ports of this round and of the
	 * next one, port << 1 | side; when this round began. */
	uint32_t *in_round, *next_round;
	uint32_t in_count, next_count;
	uint64_t round_ps;
	uint64_t round_number;
	struct edm_sched_stats stats;
};

static inline struct sched_pair *sched_pair_of(const struct edm_sched *s,
					       uint32_t src, uint32_t dst,
					       uint32_t lane)
{
	return &s->pair[((size_t)src * s->c.ports + dst) * s->c.lanes + lane];
}

/* The other side's port number makes the pair. */
static inline struct sched_pair *sched_pair_at(const struct edm_sched *s,
					       int side, uint32_t port,
					       uint32_t peer, uint32_t lane)
{
	return side == SCHED_SRC ? sched_pair_of(s, port, peer, lane)
				 : sched_pair_of(s, peer, port, lane);
}

static inline bool sched_free(const struct edm_sched *s, int side,
			      uint32_t port, uint64_t now_ps)
{
	return s->port[side][port].free_ps <= now_ps;
}

/* How long before its release a port may be matched. */
uint64_t sched_lead_ps(const struct edm_sched *s, const struct sched_port *p);

/* Free, or so nearly that a matching may count on it. */
static inline bool sched_near(const struct edm_sched *s, int side,
			      uint32_t port, uint64_t now_ps)
{
	const struct sched_port *p = &s->port[side][port];

	return p->free_ps <= now_ps + sched_lead_ps(s, p);
}

/* The same inside a matching, which gives a port one chunk. */
static inline bool sched_open(const struct edm_sched *s, int side,
			      uint32_t port, uint64_t now_ps)
{
	return sched_near(s, side, port, now_ps) &&
	       (!s->c.match_ps || s->port[side][port].round != s->round_number);
}

static inline int sched_other(int side)
{
	return side == SCHED_SRC ? SCHED_DST : SCHED_SRC;
}

/* The key of a lane by its first entry. */
uint64_t sched_key(const struct edm_sched *s, uint32_t head);
/* The place of the smallest key; the list must not be empty. */
uint32_t sched_top(struct sched_port *p);
uint32_t sched_chunk_blocks(const struct edm_sched *s, uint32_t src,
			    uint32_t dst, uint32_t lane);
/* Grants the next chunk of the lane's head. */
void sched_grant(struct edm_sched *s, uint64_t now_ps, uint32_t src,
		 uint32_t dst, uint32_t lane);

/* The disciplines: what to do when a pair gets a new head, when a port may have
 * become free, and at a tick. */
void sched_match_arrival(struct edm_sched *s, uint64_t now_ps, uint32_t src,
			 uint32_t dst, uint32_t lane);
void sched_match_release(struct edm_sched *s, uint64_t now_ps, int side,
			 uint32_t port);
void sched_match_tick(struct edm_sched *s, uint64_t now_ps);
/* The best message of this port, not better than `floor`, that a matching
 * knows and whose other port is near; NULL: none. */
const struct sched_rival *sched_best(const struct edm_sched *s, uint64_t now_ps,
				     int side, uint32_t port, uint64_t floor);
/* Grants a message of that port. */
void sched_grant_at(struct edm_sched *s, uint64_t now_ps, int side,
		    uint32_t port, const struct sched_rival *r);
/* Of a matching that takes no time: grants the best of this port that may go.
 */
void sched_reserve_try(struct edm_sched *s, uint64_t now_ps, int side,
		       uint32_t port);
void sched_reserve_settle(struct edm_sched *s, uint64_t now_ps);

void sched_round_ask(struct edm_sched *s, uint64_t now_ps, int side,
		     uint32_t port);
void sched_round_tick(struct edm_sched *s, uint64_t now_ps);

void sched_pim_ask(struct edm_sched *s, uint64_t now_ps, uint32_t dst);
void sched_pim_release(struct edm_sched *s, uint64_t now_ps, int side,
		       uint32_t port);
void sched_pim_tick(struct edm_sched *s, uint64_t now_ps);

#endif
