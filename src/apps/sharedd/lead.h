/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The machine's talk with the lead: the memory node that knows segments,
 * members and leases (docs/mind.md). A thread of its own joins, connects anew
 * and sends a beat each second, so that no answer that is late holds up pages;
 * the server's loop asks for its news.
 */
#ifndef AQ_SHD_LEAD_H
#define AQ_SHD_LEAD_H

#include <infiniband/verbs.h>

#include "base/base.h"
#include "want.h"
#include "wire/coherence_wire.h"

struct config;
struct shd_lead;

/* The machine's ends of its connections. */
struct shd_ends {
	union ibv_gid gid;
	uint32_t mtu;
	uint32_t talk_qpn, talk_psn;
	uint32_t lane_count;
	uint32_t lane_qpn[COHERENCE_LANES], lane_psn[COHERENCE_LANES];
};

/* The switch's ends, and what the machine is there. */
struct shd_place {
	uint8_t number;
	bool was_member;
	uint32_t term;
	union ibv_gid gid;
	uint32_t mtu;
	uint32_t talk_qpn, talk_psn;
	uint32_t lane_qpn[COHERENCE_LANES];
	uint32_t read_key, write_key, give_key;
};

struct shd_news {
	bool has_place; /* since the last look */
	struct shd_place place;
	int err;	  /* of the last try to join or to connect; 0: none */
	bool is_stale;	  /* we are no member any more */
	uint32_t term;	  /* that the last beat was told; 0: none now */
	uint64_t sent_ns; /* of the last beat that was answered */
	uint64_t size_bytes; /* of shared memory, as that told; 0: not yet */
};

/* Finds the lead. -EOPNOTSUPP: no node has shared memory; -errno with words. */
int shd_lead_open(const struct config *config, const char *rundir,
		  const char *name, struct shd_lead **out) MUST_CHECK;
/* Addresses of shared memory from COHERENCE_BASE on, when it was found. */
uint64_t shd_lead_size(const struct shd_lead *l);
/* Starts the thread. */
int shd_lead_start(struct shd_lead *l) MUST_CHECK;
/* Join, or connect again, with these ends; tries until it is told others. */
void shd_lead_connect(struct shd_lead *l, const struct shd_ends *ends);
/* Readable when there may be news. */
int shd_lead_fd(const struct shd_lead *l);
void shd_lead_news(struct shd_lead *l, struct shd_news *out);
/* Asks for it, in turn. -EAGAIN: too many wait. */
int shd_lead_want(struct shd_lead *l, const struct shd_want *want) MUST_CHECK;
/* The next answer; false: none. */
bool shd_lead_got(struct shd_lead *l, struct shd_got *out);
/* Leaves, if it is a member, and ends the thread. */
void shd_lead_close(struct shd_lead *l);

#endif
