/* SPDX-License-Identifier: Apache-2.0 */
/* The responder's half of walks. */
#ifndef AQ_NIC_WALK_PRIV_H
#define AQ_NIC_WALK_PRIV_H

#include "base/list.h"
#include "key_priv.h"
#include "nic.h"
#include "responder_priv.h"
#include "wire/walk_wire.h"

struct nic_qp;
struct wire_pkt;

enum walk_state {
	WALK_IDLE,  /* none, or it has its answer */
	WALK_WAITS, /* for room at the walker */
	WALK_RUNS,
};

/* Beside each responder resource of a queue pair that takes walks, and in each
 * place of one that takes those that a switch carries on. */
struct walk_res {
	struct nic_walk walk; /* what the walker sees */
	struct nic_qp *qp;
	struct resp_res *res; /* NULL: a switch carried it on (hop.c) */
	struct list wait;     /* on pd->walks while it waits */
	enum walk_state state;
	uint32_t rkey;
	uint32_t space;
	uint16_t pad_bytes; /* the most that the answer may bring of the pad */
	uint8_t hops;
	bool stores;		   /* so it stays with its client */
	uint8_t refused;	   /* syndrome, because of the key; 0: not */
	uint32_t epoch;		   /* of the keys when `key` was found */
	const struct nic_key *key; /* valid in that epoch */
	uint32_t took;		   /* at nodes before this one */
	struct wire_walk answer;
};

/* Whether the queue pair takes walks at all. */
bool walk_is_allowed(const struct nic_qp *qp);
/* Whether the key lets a walk begin. */
enum key_verdict walk_check_key(const struct nic_qp *qp, uint32_t rkey,
				const struct nic_key **key);
/* Whether what it was asked with still opens memory: else its answer may not be
 * carried on, perhaps into a region of the same name that came after. */
bool walk_is_open(const struct walk_res *w);
/* Whether the pads of this request fit. */
bool walk_fits(const struct nic_qp *qp, const struct wire_pkt *pkt);
/* Copies the request, whose key was checked, into its resource ... */
void walk_take(struct nic_qp *qp, struct resp_res *res,
	       const struct wire_pkt *pkt);
void walk_fill(struct walk_res *w, const struct wire_walk *asked,
	       const uint8_t *pad, uint32_t pad_bytes);
/* ... and lets the walker have it, now or when there is room. */
void walk_start(struct walk_res *w);
/* Nobody waits for its answer any more. */
void walk_forget(struct walk_res *w);
void walk_forget_all(struct nic_qp *qp);
/* A turn of the walker; then those that wait. */
void walk_turn(struct nic *nic);
/* Room for the walks of so many resources. */
int walk_res_init(struct nic_qp *qp, uint32_t res_count) MUST_CHECK;
void walk_res_release(struct nic_qp *qp);

static inline struct walk_res *walk_of(const struct responder *rsp,
				       const struct resp_res *res)
{
	return &rsp->walks[res - rsp->res];
}

/* ---- hop.c: walks that a switch carries on ------------------------------- */

/* A datagram that says so. */
void hop_input(struct nic_qp *qp, const struct wire_pkt *pkt);
/* The walker is done with it. */
void hop_ended(struct walk_res *w);
/* Sends what ended. False: the path was full. */
bool hop_run(struct nic_qp *qp);
void hop_forget_all(struct nic_qp *qp);
void hop_release(struct nic_qp *qp);

#endif
