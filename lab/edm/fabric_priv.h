/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The EDM fabric: hosts, links and one or two switches. A plane is a switch
 * with its links; with a mirror there are two, every message goes through both,
 * and the first copy counts.
 */
#ifndef AQ_EDM_FABRIC_PRIV_H
#define AQ_EDM_FABRIC_PRIV_H

#include "edm_link.h"
#include "edm_run.h"
#include "edm_sched.h"
#include "edm_timing.h"

enum fabric_event {
	FABRIC_NOTIFY,	/* port: plane; a: message; b: attempt */
	FABRIC_WAKE,	/* port: plane; a: token */
	FABRIC_EMIT,	/* a: chunk; a grant that waited for the wire */
	FABRIC_DATA,	/* a: chunk; the host has it ready to send */
	FABRIC_HEAD,	/* a: chunk; its first block is at the egress port */
	FABRIC_LAST,	/* a: chunk; its last block is handed over */
	FABRIC_TIMER,	/* port: plane; a: message; b: turn */
	FABRIC_READY,	/* port: turn; a: message; b: bytes */
	FABRIC_ABANDON, /* a: message; b: turn */
	FABRIC_FAIL_SWITCH,
	FABRIC_FAIL_LINK,
};

enum {
	CHUNK_SLAB_BITS = 10,
	CHUNK_SLAB = 1 << CHUNK_SLAB_BITS,
	CHUNK_SLABS_MAX = 1 << 14,
	CHUNK_NONE = UINT32_MAX,
};

/* A granted piece of a message on its way. */
struct fabric_chunk {
	uint64_t up_end_ps;   /* when it has left the sender */
	uint64_t down_end_ps; /* when it has left the switch */
	uint32_t msg;
	uint32_t turn; /* of the message */
	uint32_t bytes;
	uint32_t offset; /* in the message; batches have none */
	uint32_t blocks;
	uint32_t next; /* free list, or parked */
	uint16_t src, dst;
	uint8_t plane;
	uint8_t attempt;
	bool first, last;
};

struct fabric_wait {
	uint32_t head, tail; /* messages beyond the limit of a pair */
};

struct fabric_plane {
	struct fabric *f;
	uint8_t index;
	bool dead;
	struct edm_sched *sched;
	struct edm_wire *up, *down;
	uint64_t *skew_ps; /* of each port's cable */
	bool *port_dead;
	uint8_t *active; /* notifications out, per pair */
	struct fabric_wait *wait;
};

struct fabric {
	struct edm_run *run;
	struct edm_timing t;
	struct edm_wire_env wire;
	struct rng rng;
	uint32_t nodes;
	unsigned planes;
	struct fabric_plane plane[EDM_PLANES];
	struct fabric_chunk *slab[CHUNK_SLABS_MAX];
	uint32_t chunk_used, chunk_free;
	uint64_t egress_max_ps;
	uint64_t drops, timeouts, duplicates;
	double copy_gap_ns;
	uint64_t *first_copy_ps; /* with a mirror: by message slot */
	uint32_t first_copy_size;
};

static inline struct fabric_chunk *fabric_chunk_at(struct fabric *f, uint32_t i)
{
	return &f->slab[i >> CHUNK_SLAB_BITS][i & (CHUNK_SLAB - 1)];
}

static inline uint64_t fabric_now(const struct fabric *f)
{
	return edm_queue_now(f->run->q);
}

static inline uint64_t fabric_link_ps(const struct fabric_plane *p,
				      uint32_t port)
{
	return p->f->t.link_ps + p->skew_ps[port];
}

static inline uint32_t fabric_request_blocks(const struct fabric *f,
					     const struct edm_msg *m)
{
	return m->request_bytes
		       ? edm_blocks(f->run->c.md, m->request_bytes)
		       : edm_request_blocks(f->run->c.md, (enum edm_op)m->op);
}

/* The sender and the receiver of a message's data. */
static inline uint16_t fabric_data_src(const struct edm_msg *m)
{
	return m->op == EDM_WRITE ? m->src : m->dst;
}

/* host side (fabric_host.c) */
void fabric_submit(struct fabric *f, uint32_t msg);
void fabric_host_freed(struct fabric_plane *p, uint32_t src, uint32_t dst);
void fabric_notify(struct fabric_plane *p, uint32_t msg, uint32_t attempt);
void fabric_timer(struct fabric_plane *p, uint32_t msg, uint32_t turn);
/* This plane has nothing more to do with the message. */
void fabric_leave(struct fabric_plane *p, uint32_t msg);

/* Where a message's notification is in the scheduler. */
struct edm_demand fabric_demand(const struct fabric *f, uint32_t msg);
/* Nobody is to grant it any more. */
void fabric_withdraw(struct fabric_plane *p, uint32_t msg);

/* failures (fabric_fault.c) */
void fabric_fail_switch(struct fabric *f);
void fabric_fail_link(struct fabric *f);
bool fabric_lost(struct fabric *f); /* by chance */
bool fabric_node_dead(const struct fabric *f, uint32_t node);

#endif
