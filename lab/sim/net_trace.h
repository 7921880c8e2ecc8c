/* SPDX-License-Identifier: Apache-2.0 */
/* Frames for people to read: one line of text each, or a pcap file. */
#ifndef AQ_SIM_NET_TRACE_H
#define AQ_SIM_NET_TRACE_H

#include <stdio.h>

#include "base/base.h"

struct sim;
struct wire_pkt;

struct net_trace {
	FILE *text; /* NULL: none */
	FILE *pcap;
	bool hides_addresses;
	bool hides_payload; /* in the trace hash */
};

static inline bool net_trace_on(const struct net_trace *t)
{
	return t->text || t->pcap;
}

int net_trace_pcap_header(struct net_trace *t) MUST_CHECK;
void net_trace_frame(struct net_trace *t, uint64_t now_ps, const char *event,
		     const uint8_t *frame, size_t len_bytes);

/* One line of text, never more than fits; what follows is cut. */
void net_text(const struct wire_pkt *pkt, char *buf, size_t len_bytes);

/* Adds the frame to the simulation's hash. */
void net_trace_note(const struct net_trace *t, struct sim *sim,
		    const uint8_t *frame, size_t len_bytes);

#endif
