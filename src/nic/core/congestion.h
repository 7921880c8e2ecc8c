/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a queue pair may have in flight over a network that loses, delays or
 * marks packets. One per queue pair; pure arithmetic, fed by the requester and
 * the completer. On paths that lose nothing it is off and costs a branch.
 */
#ifndef AQ_CONGESTION_H
#define AQ_CONGESTION_H

#include "base/base.h"

enum {
	CONGESTION_WINDOW_MIN = 4, /* packets */
	CONGESTION_WINDOW_START = 64,
	/* Delay alone takes the window no lower: schedulers delay, too. */
	CONGESTION_DELAY_FLOOR = 32,
	CONGESTION_STEP = 4,		/* packets gained per window */
	CONGESTION_INTERVAL_HEAVY = 33, /* one loss in fewer packets: > 3 % */
	CONGESTION_BACKOFF_MAX = 8,	/* doublings of the timeout */
};

#define CONGESTION_RTO_START_NS 20000000ull
/* Shorter than a scheduler's slice: waiting longer costs more than sending a
 * window again in vain, and only a second timeout in a row is congestion. */
#define CONGESTION_RTO_MIN_NS 500000ull
#define CONGESTION_QUEUE_NS   5000000ull /* queueing beyond it is congestion */
#define CONGESTION_MIN_RTT_NS 10000000000ull /* the least rtt is forgotten */

struct congestion {
	bool on;
	bool slow_start;
	bool recovering; /* no second reaction before recover_psn is answered */
	bool timing;	 /* a round trip is being measured */
	uint8_t backoff;
	uint32_t window; /* packets */
	uint32_t window_max;
	uint32_t gained; /* answered packets since the window last grew */
	uint32_t recover_psn;
	uint32_t seen_psn;  /* everything before it was answered */
	uint32_t timed_psn; /* the last packet of the answer that is timed */
	uint64_t timed_ns;
	uint64_t srtt_ns; /* 0: nothing was measured */
	uint64_t rttvar_ns;
	uint64_t min_rtt_ns;
	uint64_t min_rtt_at_ns;
	uint32_t since_loss;	/* packets */
	uint32_t loss_interval; /* smoothed, packets; 0: no loss yet */
};

/* `window_max` is in packets; 0: this path loses nothing. */
void congestion_init(struct congestion *c, uint32_t window_max,
		     uint32_t first_psn);

/* Should the packet that is sent now be timed? Not one that may be a copy. */
static inline bool congestion_wants_time(const struct congestion *c)
{
	return c->on && !c->timing && !c->recovering;
}

static inline void congestion_time(struct congestion *c, uint32_t psn,
				   uint64_t now_ns)
{
	c->timing = true;
	c->timed_psn = psn;
	c->timed_ns = now_ns;
}

/* Everything before una_psn was answered, in_flight packets are not. True: a
 * measurement is complete, congestion_sample is due. */
bool congestion_answered(struct congestion *c, uint32_t una_psn,
			 uint32_t in_flight);
void congestion_sample(struct congestion *c, uint64_t now_ns);
/* Something was lost; next_psn is the next new packet. */
void congestion_lost(struct congestion *c, uint32_t next_psn, bool timeout);
/* The network marked a packet, there or back. True: there was a reaction. */
bool congestion_marked(struct congestion *c, uint32_t next_psn);

/* How long to wait for an answer before sending again. */
uint64_t congestion_rto_ns(const struct congestion *c);

#endif
