/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transmitters. A first-come-first-served transmitter needs no queue: the time
 * until which it is busy is its whole state, including how much is waiting.
 */
#ifndef AQ_EDM_LINK_H
#define AQ_EDM_LINK_H

#include "base/rng.h"
#include "edm_units.h"

struct edm_pipe {
	uint64_t busy_ps;
};

/* When a transmission of that length begins. */
static inline uint64_t edm_pipe_send(struct edm_pipe *p, uint64_t now_ps,
				     uint64_t length_ps)
{
	uint64_t start_ps = u64_max(now_ps, p->busy_ps);

	p->busy_ps = start_ps + length_ps;
	return start_ps;
}

static inline uint64_t edm_pipe_backlog(const struct edm_pipe *p,
					uint64_t now_ps)
{
	return p->busy_ps > now_ps ? p->busy_ps - now_ps : 0;
}

/* The frames of one link: when the next one comes, and how much of those that
 * came has not been sent, both in time of the wire. */
struct edm_frames {
	uint64_t next_ps, at_ps; /* at_ps: accounted for until then */
	uint64_t waiting_ps, sent_ps;
	bool started;
};

/* One direction of an EDM link: memory messages back to back, single control
 * blocks between their blocks, frames of the network in what is left. */
struct edm_wire {
	struct edm_frames frames;
	struct edm_pipe pipe;
	uint64_t control_ps; /* control blocks are sent until then */
	uint64_t last_ps;    /* length of the last data sent */
	uint64_t *end_ps;    /* of the last data sent; moved by insertions */
};

struct edm_wire_env {
	uint64_t block_ps;
	uint32_t ip_load_ppm;
	enum edm_ip_policy ip_policy;
	bool nest; /* requests may stand inside messages */
	struct rng *rng;
};

/* Time that frames took of this wire until now. */
uint64_t edm_wire_frames_ps(struct edm_wire *w, const struct edm_wire_env *env,
			    uint64_t now_ps);

/* A message of several blocks, which must stay together; *end_ps is kept up to
 * date while control blocks slip in. */
uint64_t edm_wire_data(struct edm_wire *w, const struct edm_wire_env *env,
		       uint64_t now_ps, uint32_t blocks, uint64_t *end_ps);
/* A request of a few blocks: before any message that has not begun, and inside
 * one that has where requests nest. */
uint64_t edm_wire_request(struct edm_wire *w, const struct edm_wire_env *env,
			  uint64_t now_ps, uint32_t blocks);
/* A control block: at the next block boundary. */
uint64_t edm_wire_control(struct edm_wire *w, const struct edm_wire_env *env,
			  uint64_t now_ps);

#endif
