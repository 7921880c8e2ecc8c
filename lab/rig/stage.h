/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stage on which shipped rooms play: a simulated rack whose hosts have their
 * NIC open, memory that peers may use, and links between them as client/link.h
 * describes them, made without HTTP. One seed is one play.
 *
 * A host stands for one process with its NIC. Killing it ends its fibers where
 * they are and its traffic; packets that have left it still arrive. A process
 * that starts again is another host. A stage sets the process's verbs provider:
 * one stage at a time.
 */
#ifndef AQ_RIG_STAGE_H
#define AQ_RIG_STAGE_H

#include <stdio.h>

#include "client/link.h"
#include "sim/net_fabric.h"
#include "sim/rack.h"

struct rig_stage;
struct model_host;
struct model_params;

enum {
	RIG_HOSTS_MAX = 512,
	RIG_NAME_MAX = 24,
};

struct rig_stage_config {
	uint64_t seed;
	/* Hosts have the costs of a 100 Gb/s RNIC, and `link` counts for its
	 * faults only; else hosts cost nothing. */
	bool hardware;
	struct sim_link link;
	uint64_t chain_ps; /* per request of a chain; 0: nothing */
	/* Processes that wait look at least this often; 0: 1 ms. Set it where
	 * they wait for each other and not for their NICs. */
	uint64_t relax_max_ps;
	bool knows_senders;			/* as sim_host_config has it */
	const struct sim_fabric_choice *fabric; /* NULL: Ethernet */
	FILE *trace;				/* frames as text, or NULL */
	FILE *pcap;				/* delivered frames, or NULL */
};

int rig_stage_create(const struct rig_stage_config *cfg,
		     struct rig_stage **out) MUST_CHECK;
/* Ends all fibers, then closes what is open: links, regions, hosts. */
void rig_stage_destroy(struct rig_stage *stage);
struct sim *rig_stage_sim(struct rig_stage *stage);
struct sim_net *rig_stage_net(struct rig_stage *stage);
struct sim_rack *rig_stage_rack(struct rig_stage *stage);

/* ---- hosts -------------------------------------------------------------- */

/* What a host's process does with its NIC, on queues that this room made. */
struct rig_meter {
	uint64_t doorbells; /* calls of ibv_post_send */
	uint64_t requests;  /* work requests in them */
	uint64_t polls;	    /* calls of ibv_poll_cq */
	uint64_t completions;
	/* Kill the host at this doorbell, counted from 1; 0: never. */
	uint64_t kill_at;
	enum {
		RIG_KILL_BEFORE, /* none of its requests is posted */
		RIG_KILL_INSIDE, /* the first half of them */
		RIG_KILL_AFTER,	 /* all of them */
		RIG_KILL_WHENS,
	} kill_when;
};

struct rig_host {
	struct rig_stage *stage;
	struct sim_host *sim_host;
	struct model_host *model; /* NULL: no costs */
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* small, for ends that only answer */
	union ibv_gid gid;
	/* Time, and what a loop that waits must call, for the host's fibers. */
	struct client_clock clock;
	struct rig_meter meter;
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			 struct ibv_send_wr **bad);
	int (*poll_cq)(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
	bool killed;
	char name[RIG_NAME_MAX];
};

/* Lives as long as the stage. */
int rig_host_add(struct rig_stage *stage, const char *name,
		 struct rig_host **out) MUST_CHECK;
/* The same on a stage with hardware, of which this host has another kind. */
int rig_host_add_model(struct rig_stage *stage, const char *name,
		       const struct model_params *params,
		       struct rig_host **out) MUST_CHECK;
/* A thread of the host's process. */
int rig_host_spawn(struct rig_host *host, const char *name,
		   void (*fn)(void *arg), void *arg) MUST_CHECK;
/* SIGKILL. From one of the host's own fibers it does not return. */
void rig_host_kill(struct rig_host *host);
/* Tells the peers that the host is gone, as peers on one machine learn it;
 * others find out by their timeouts. */
void rig_host_tell_gone(struct rig_host *host);
/* Virtual CPU time of the calling fiber; nothing when it is 0. */
void rig_host_work_ps(struct rig_host *host, uint64_t work_ps);

/* ---- memory ------------------------------------------------------------- */

struct rig_region {
	struct rig_region *next; /* the stage's */
	struct rig_host *host;
	struct ibv_mr *mr;
	uint8_t *mem; /* NULL: device memory */
	struct ibv_dm *dm;
	uint64_t addr; /* for peers */
	uint64_t size_bytes;
	uint32_t rkey;
};

/* Zeroed memory that peers may read, write and use for atomics. In device
 * memory: -ENOSPC when the NIC has too little. Lives as long as the stage. */
int rig_region_create(struct rig_host *host, uint64_t size_bytes,
		      bool in_device, struct rig_region **out) MUST_CHECK;

/* ---- links -------------------------------------------------------------- */

/* A connected queue pair of `host` to the region's host. Unset options have
 * their defaults. */
int rig_link_open(struct rig_host *host, struct rig_region *region,
		  const struct client_link_options *options,
		  struct client_link **out) MUST_CHECK;
void rig_link_close(struct client_link *link);
/* The passive end, for code that acts as the memory node: move it to the error
 * state to fence it. */
struct ibv_qp *rig_link_far_qp(struct client_link *link);

/* ---- queue pairs -------------------------------------------------------- */

/* Two connected queue pairs, for code that does not use links. */
struct rig_pair {
	struct rig_host *near, *far;
	struct ibv_qp *near_qp, *far_qp;
	bool far_is_lent;  /* far_qp was there already */
	uint32_t near_psn; /* the first packet number towards far */
	uint32_t mtu_bytes;
};

struct rig_pair_options {
	struct ibv_cq *cq;     /* of the near end; NULL: near->cq */
	struct ibv_cq *far_cq; /* NULL: far->cq */
	/* Made already, in the state RESET; it takes messages only and is not
	 * closed with the pair. NULL: one is made. */
	struct ibv_qp *far_qp;
	struct ibv_pd *far_pd; /* of one that is made; NULL: far->pd */
	uint32_t send_depth;   /* 0: 1 */
	uint32_t recv_depth;   /* 0: 1, both ends */
	uint32_t max_sge;      /* 0: 1 */
	uint32_t max_inline;
	uint32_t rd_atomic; /* 0: CLIENT_LINK_RD_ATOMIC */
	uint32_t walk_pad;  /* the far end takes walks with such pads; 0: no */
	enum ibv_mtu mtu;   /* 0: 4096 bytes */
};

/* -ENOMEM, or the error of a verb; then nothing is open. */
int rig_pair_open(struct rig_host *near, struct rig_host *far,
		  const struct rig_pair_options *options,
		  struct rig_pair *out) MUST_CHECK;
void rig_pair_close(struct rig_pair *pair);
/* A completion queue that the meter sees. */
struct ibv_cq *rig_cq_create(struct rig_host *host, uint32_t depth);

#endif
