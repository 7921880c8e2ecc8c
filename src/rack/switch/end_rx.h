/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An end of the switch that is asked: the responder of an RC connection whose
 * other end is a queue pair of somebody's NIC. It counts packets and messages,
 * tells of gaps, and says answers; what is asked and what was answered is the
 * owner's business. A message that the owner cannot take now is refused: it is
 * asked for by a NAK as soon as everything before it was answered.
 *
 * A NAK for a missing packet says that all before it was executed, so it waits
 * until that is so.
 */
#ifndef AQ_END_RX_H
#define AQ_END_RX_H

#include "tor_end.h"

struct end_rx {
	/* Set by the owner. */
	struct tor_instance *self;
	/* It speaks in a server's name, and programs see what it says; else it
	 * is an end of the switch itself (tor_end.h). */
	bool is_guise;
	uint64_t *naks; /* how many were said; or NULL */
	/* Of each packet to the other end: addresses, number; the owner keeps
	 * it, or end_rx_hear() does. */
	struct wire_pkt header;
	uint32_t next_psn; /* what comes next */

	uint32_t next_msn;
	uint32_t incomplete; /* messages that were taken and not answered */
	bool asked;	     /* next_psn was asked for by a NAK */
	bool refused;	     /* packets were refused, from refused_psn on */
	uint32_t refused_psn;
};

/* The way back of what came from the queue pair `qpn`. */
void end_rx_hear(struct end_rx *r, const struct wire_pkt *w, uint32_t qpn);

/* 0: it is the next packet; < 0: it came before; > 0: something is missing. */
static inline int end_rx_step(const struct end_rx *r, uint32_t psn)
{
	return wire_psn_diff(psn, r->next_psn);
}

/* Something is missing: asks for it, now or when all before was answered. */
void end_rx_gap(struct end_rx *r);
/* So many packets were taken, the end of a message behind them. */
void end_rx_take(struct end_rx *r, uint32_t packets, bool is_whole);
/* A packet cannot be taken now. */
void end_rx_refuse(struct end_rx *r, uint32_t psn);
/* What was refused can be taken now, for another reason than an answer. */
void end_rx_invite(struct end_rx *r);
/* A message that was taken is answered; `psn` and `msn` are its last ones. */
void end_rx_done(struct end_rx *r, uint32_t psn, uint32_t msn);

/* ---- answers ------------------------------------------------------------- */

/* A packet to the other end, without payload. */
struct wire_pkt end_rx_packet(const struct end_rx *r, uint8_t opcode,
			      uint32_t psn, uint32_t msn, uint8_t syndrome);
void end_rx_say(const struct end_rx *r, const struct wire_pkt *w);
/* The answer to a READ, in packets of up to mtu bytes, from number `psn` on. */
void end_rx_data(const struct end_rx *r, uint32_t psn, uint32_t msn,
		 const uint8_t *bytes, uint32_t len_bytes, uint32_t mtu);

/* An acknowledgement, or a NAK. */
void end_rx_ack(const struct end_rx *r, uint32_t psn, uint32_t msn,
		uint8_t syndrome);

/* ---- messages of several packets ----------------------------------------- */

/* A WRITE or SEND that is coming. */
struct end_rx_message {
	bool is_open;	/* packets are missing */
	uint8_t kind;	/* enum wire_kind */
	uint8_t *bytes; /* set by the owner at its first packet */
	uint32_t got_bytes;
	uint32_t len_bytes; /* of a WRITE: what it says to be */
	uint32_t rkey;	    /* of a WRITE */
	uint64_t va;
};

enum end_rx_part {
	END_RX_WRONG, /* no packet of such a message */
	END_RX_PART,
	END_RX_WHOLE,
};

/* Takes the next packet; m->bytes has room for max_bytes. */
enum end_rx_part end_rx_part(struct end_rx_message *m, const struct wire_pkt *w,
			     uint32_t mtu, uint32_t max_bytes);

#endif
