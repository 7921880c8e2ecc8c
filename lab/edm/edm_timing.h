/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the nanoseconds of an idle fabric go: the stages of Table 1 as the
 * simulation uses them, and what one message takes when it is alone.
 */
#ifndef AQ_EDM_TIMING_H
#define AQ_EDM_TIMING_H

#include "edm_config.h"

struct edm_timing {
	uint64_t block_ps;
	uint64_t make_ps;    /* host: build a notification or a request */
	uint64_t link_ps;    /* transmitter, cable, receiver */
	uint64_t notify_ps;  /* switch: classify, insert into the queue */
	uint64_t match_ps;   /* switch: one PIM iteration */
	uint64_t emit_ps;    /* switch: build a grant */
	uint64_t grant_ps;   /* host: take a grant, build the data */
	uint64_t request_ps; /* memory: take a request, build the data */
	uint64_t forward_ps; /* switch: cross to the other port */
	uint64_t receive_ps; /* host: hand the data over */
};

void edm_timing_init(struct edm_timing *t, const struct edm_config *c);

/* A message alone in the fabric, perfectly pipelined: from its making until its
 * last block is handed over. */
uint64_t edm_timing_alone_ps(const struct edm_config *c, enum edm_op op,
			     uint32_t bytes);

/*
 * The same for a rival: its host stack, link and switch. Cut-through: the
 * serialization of a packet counts once, which is generous to store-and-forward
 * switches.
 */
struct edm_path {
	uint64_t byte_ps;
	uint64_t send_ps;      /* host stack on the way out */
	uint64_t link_ps;      /* MAC, PCS, PMA, cable, PMA, PCS, MAC */
	uint64_t switch_ps;    /* forwarding */
	uint64_t receive_ps;   /* host stack on the way in */
	uint32_t header_bytes; /* per packet, with preamble and gap */
	uint32_t packet_min;   /* on the wire */
	uint32_t mtu_bytes;    /* payload of one packet */
	uint32_t
		control_bytes; /* acknowledgement, credit, request to arbiter */
};

void edm_path_init(struct edm_path *p, const struct edm_config *c);

static inline uint32_t edm_path_bytes(const struct edm_path *p,
				      uint32_t payload_bytes)
{
	return u32_max(payload_bytes + p->header_bytes, p->packet_min);
}

/* Host to host, first byte, without queueing. */
static inline uint64_t edm_path_one_way_ps(const struct edm_path *p)
{
	return p->send_ps + 2 * p->link_ps + p->switch_ps + p->receive_ps;
}

#endif
