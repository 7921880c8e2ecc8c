/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the rival fabrics share: packets and queues of them, host uplinks,
 * switch egress ports, and the way reads are made of two messages. Uplinks and
 * first-come egress queues are pipes; protocols with other queues bring their
 * own.
 */
#ifndef AQ_EDM_RIVAL_H
#define AQ_EDM_RIVAL_H

#include "edm_link.h"
#include "edm_run.h"
#include "edm_timing.h"

enum {
	EDM_PACKET_NONE = 0, /* so zeroed memory is empty queues */
	EDM_RIVAL_ARRAYS_MAX = 4,
};

enum edm_part {
	EDM_PART_DATA,	  /* a write, or the answer to a read */
	EDM_PART_REQUEST, /* of a read */
	EDM_PART_ACK,
};

struct edm_packet {
	uint64_t seq; /* for the protocol's use */
	uint32_t msg;
	uint32_t turn;
	uint32_t bytes;	     /* payload */
	uint32_t wire_bytes; /* with headers */
	uint32_t next;	     /* free list, or a queue */
	uint16_t src, dst;
	uint8_t part;
	bool marked;
	bool flag; /* for the protocol's use */
};

/* Packets, or what waits to be made into some, in their order. */
struct edm_fifo {
	uint32_t head, tail;
};

/* Numbers in no order. */
struct edm_list {
	uint32_t *item;
	uint32_t count, size;
};

struct edm_rival {
	struct edm_run *run;
	struct edm_path path;
	uint32_t nodes;
	struct edm_pipe *up;   /* of hosts */
	struct edm_pipe *down; /* of the switch */
	struct edm_packet *packet;
	uint32_t packet_used, packet_size, packet_free;
	void *array[EDM_RIVAL_ARRAYS_MAX]; /* of the protocol */
	unsigned array_count;
	uint64_t queue_max_ps; /* longest wait at an egress port */
	uint64_t drops, marks, pauses, timeouts, grants;
};

/* A protocol of so many bytes, which begins with a struct edm_rival; zeroed
 * beside that. NULL: no memory. It is in *out from here on, and the run
 * destroys what is there after any failure. */
void *edm_rival_create(struct edm_run *run, size_t bytes, void **out);
void edm_rival_destroy(void *proto); /* and the protocol's memory */
/* Zeroed memory that goes with the protocol. NULL: there is none. */
void *edm_rival_array(struct edm_rival *r, size_t count, size_t bytes);
void edm_rival_report(void *proto, struct edm_result *out);

uint32_t edm_rival_packet(struct edm_rival *r); /* zeroed */
void edm_rival_packet_put(struct edm_rival *r, uint32_t packet);
/* A packet that stands in a queue for what is to be sent of a message: a
 * request or its data. */
uint32_t edm_rival_part(struct edm_rival *r, uint32_t msg, bool request);

void edm_fifo_push(struct edm_rival *r, struct edm_fifo *f, uint32_t packet);
/* The head, which must be there. */
uint32_t edm_fifo_pop(struct edm_rival *r, struct edm_fifo *f);

void edm_list_add(struct edm_list *l, uint32_t item);
/* Takes out what is at that place. */
uint32_t edm_list_take(struct edm_list *l, uint32_t place);

static inline uint64_t edm_rival_now(const struct edm_rival *r)
{
	return edm_queue_now(r->run->q);
}

/* Sender and receiver of a message's data. */
static inline uint16_t edm_rival_data_src(const struct edm_msg *m)
{
	return m->op == EDM_WRITE ? m->src : m->dst;
}

static inline uint16_t edm_rival_data_dst(const struct edm_msg *m)
{
	return m->op == EDM_WRITE ? m->dst : m->src;
}

static inline uint32_t edm_rival_request_bytes(const struct edm_msg *m)
{
	return m->op == EDM_RMW ? EDM_RMW_BYTES : EDM_ADDRESS_BYTES;
}

/* Of the request, or of the data. */
static inline uint32_t edm_rival_part_bytes(const struct edm_msg *m,
					    bool request)
{
	return request ? edm_rival_request_bytes(m) : m->bytes;
}

/* Sends a packet up its host's link, first come first served; its first byte is
 * at the egress queue at the time of an event of this kind. */
void edm_rival_send(struct edm_rival *r, uint32_t packet, int kind);
/* The same with a new packet that carries the request of a read. */
void edm_rival_request(struct edm_rival *r, uint32_t msg, int kind);
/* Takes the packet through the egress pipe; an event of this kind follows when
 * its last byte is handed over, or for a request when its answer is made.
 * Returns the wait in the queue. */
uint64_t edm_rival_forward(struct edm_rival *r, uint32_t packet, int kind);

/* Bytes of a message's data arrived; ends the message with the last. */
void edm_rival_got(struct edm_rival *r, uint32_t msg, uint32_t bytes);

/* The packet is at its receiver: returns its message and frees the packet. */
uint32_t edm_rival_take(struct edm_rival *r, uint32_t packet);
/* The same for one with data, which is counted. */
void edm_rival_take_data(struct edm_rival *r, uint32_t packet);

/* The time from birth to submit that all rivals have: their sending stack. */
uint64_t edm_rival_lead_ps(const struct edm_config *c);

#endif
