/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end of the switch that asks: the requester of an RC connection whose other
 * end is a queue pair of a server. A program owns as many as it needs. One
 * packet number is one packet, which is on its way until it is acknowledged;
 * NAKs and timeouts go back to the oldest one. What a packet was is asked from
 * the program when it is sent again, so that an end needs no memory for
 * payload; a program that has none either fetches it again, and all behind that
 * packet wait.
 *
 * A message may have several packets. Those of a WRITE or SEND are sent one by
 * one (FIRST, MIDDLE, LAST). A READ is one packet that takes as many numbers as
 * its answer has packets; `executed` is called for each, and what is missing is
 * asked for again from the first missing one on.
 */
#ifndef AQ_END_TX_H
#define AQ_END_TX_H

#include "tor_end.h"

enum {
	END_TX_WINDOW = 128, /* packets on the way */
	END_TX_TRIES = 60,   /* before the connection is given up */
};

#define END_TX_RTO_NS	  2000000ull
#define END_TX_RTO_MAX_NS 64000000ull

/* What an end counts: its owner has a counter for each, in this order. */
enum end_tx_counter {
	END_TX_C_coalesced, /* acknowledged by the answer to a later one */
	END_TX_C_naks,
	END_TX_C_timeouts,
	END_TX_C_resent,
	END_TX_C_dead,
};

struct end_tx;

struct end_tx_ops {
	/* What the packet with this number asks: key, address, length, payload,
	 * operands; the same each time. For a number inside a READ: what is
	 * asked from there on. False: its payload is not at hand, and
	 * end_tx_again() will be called when it is. */
	bool (*describe)(struct end_tx *e, uint32_t psn, struct wire_pkt *w);
	/* The oldest one was executed; `w` is its answer if it has one. */
	void (*executed)(struct end_tx *e, uint32_t psn,
			 const struct wire_pkt *w);
	/* Nothing will be known of what was on the way. */
	void (*lost)(struct end_tx *e);
	/* There may be room for more. Returns whether something waits that no
	 * answer on this end will set free: then it is asked again later. */
	bool (*push)(struct end_tx *e);
};

/* What is to be known of a packet to understand its answer. */
struct end_tx_sent {
	uint8_t opcode;
	uint8_t behind;	    /* numbers of the same READ behind this one */
	uint32_t len_bytes; /* of a READ: of its packet of answer */
};

struct end_tx {
	/* Set by the owner before end_tx_init(), as `header`. */
	uint32_t qpn;	  /* of the server */
	uint32_t una_psn; /* the oldest one on the way, or the first one */
	uint64_t rto_ns;
	/* Given up when the oldest one has no answer for so long; 0: after
	 * END_TX_TRIES. */
	uint64_t patience_ns;

	uint32_t next_psn;
	uint32_t sent_psn; /* those before it were sent since going back */
	uint32_t answers;  /* READs and atomics on the way */
	bool dead;

	bool waits;	/* what `push` said last */
	bool went_back; /* because the answer to una_psn is missing */
	uint32_t tries;
	uint64_t since_ns; /* the oldest one is the oldest one */
	struct timer timer;
	struct tor_instance *self;
	const struct end_tx_ops *ops;
	uint64_t *counters;
	/* Addresses and the like, of each packet; the rest is of the last one
	 * that was sent. */
	struct wire_pkt header;
	struct tor_route route;
	struct end_tx_sent sent[END_TX_WINDOW]; /* by psn */
};

void end_tx_init(struct end_tx *e, struct tor_instance *self,
		 const struct end_tx_ops *ops, uint64_t *counters);
void end_tx_stop(struct end_tx *e);
/* Nothing will be sent for long: if nothing is on the way, the timer does not
 * look once more whether something is. */
void end_tx_rest(struct end_tx *e);
/* What the next send or answer needs is fetched into the cache. */
void end_tx_prefetch(const struct end_tx *e);

static inline bool end_tx_is_full(const struct end_tx *e)
{
	return wire_psn_diff(e->next_psn, e->una_psn) >= END_TX_WINDOW;
}

/* Sends the packet with the number next_psn, which `describe` must know
 * already; behind others that are sent again, if there are such. The end is not
 * full and not dead. */
void end_tx_send(struct end_tx *e, uint8_t opcode, uint32_t len_bytes);
/* The same for a READ whose answer has packets of up to mtu bytes, as many as
 * end_tx_packets() says; there is room for that many. */
void end_tx_read(struct end_tx *e, uint32_t len_bytes, uint32_t mtu);

static inline uint32_t end_tx_packets(uint32_t len_bytes, uint32_t mtu)
{
	return len_bytes > mtu ? (len_bytes + mtu - 1) / mtu : 1;
}

/* Numbers that are free. */
static inline uint32_t end_tx_room(const struct end_tx *e)
{
	return END_TX_WINDOW - (uint32_t)wire_psn_diff(e->next_psn, e->una_psn);
}
/* Sends more of what is to be sent again; `describe` may be asked again for
 * what was not at hand. */
void end_tx_go_on(struct end_tx *e);
/* The payload of this one is at hand while this is called. */
void end_tx_again(struct end_tx *e, uint32_t psn);

/* Asks the owner for more, and sees to the timer. */
void end_tx_run(struct end_tx *e);

/* A response that is for this end. */
void end_tx_reply(struct end_tx *e, const struct wire_pkt *w);

#endif
