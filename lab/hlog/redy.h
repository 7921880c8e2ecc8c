/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Far memory by messages: requests travel in batches as SENDs, and a server
 * beside the memory answers each batch with one. This is the way of Redy, and
 * with batches of one that of any two-sided protocol.
 *
 * A message is a struct redy_head and `count` requests, or `count` answers,
 * each with its data behind it, padded to 8 bytes. Pages are written one-sided.
 */
#ifndef AQ_HLOG_REDY_H
#define AQ_HLOG_REDY_H

#include "base/bytes.h"
#include "hlog_device.h"

enum {
	REDY_MESSAGES = 16,   /* under way, in each direction */
	REDY_BATCH_MAX = 256, /* requests of one message */
	REDY_QUEUES_MAX = 16, /* threads of one device */
};

#define REDY_MAGIC 0x59444552u /* "REDY" */

struct redy_head {
	le32 magic;
	le32 count;
	le64 reserved;
};

struct redy_request {
	le64 offset;
	le32 len_bytes;
	le32 token; /* comes back with the answer */
};

struct redy_answer {
	le32 token;
	le32 len_bytes; /* of the data behind it; UINT32_MAX: refused */
};

STATIC_ASSERT(sizeof(struct redy_head) == 16, "head");
STATIC_ASSERT(sizeof(struct redy_request) == 16, "request");
STATIC_ASSERT(sizeof(struct redy_answer) == 8, "answer");

#define REDY_REFUSED UINT32_MAX

/* Bytes of a message with so many requests of so many bytes, either way. */
static inline uint32_t redy_message_bytes(uint32_t count, uint32_t read_max)
{
	return (uint32_t)(sizeof(struct redy_head) +
			  count * (sizeof(struct redy_request) +
				   align_up(read_max, 8)));
}

/* ---- one end of a connection; one thread's ------------------------------ */

struct redy_port {
	struct client_link *link;
	struct ibv_mr *mr;
	uint8_t *memory; /* REDY_MESSAGES to send, then as many to receive */
	uint32_t message_bytes;
	uint32_t free_count;
	uint32_t free_send[REDY_MESSAGES];
};

enum redy_event_kind {
	REDY_RECEIVED,
	REDY_WRITTEN, /* a WRITE by redy_port_write */
};

struct redy_event {
	enum redy_event_kind kind;
	int err;
	uint32_t index; /* of the message, for redy_port_recycle; or as given */
	uint32_t len_bytes;
	const uint8_t *data;
};

/* The link's queue pair must take REDY_MESSAGES receives and sends and more for
 * WRITEs; it stays the caller's. */
int redy_port_init(struct redy_port *p, struct client_link *link,
		   uint32_t message_bytes) MUST_CHECK;
void redy_port_release(struct redy_port *p);
/* A message to fill, which is sent next; NULL: all are under way. */
uint8_t *redy_port_buffer(struct redy_port *p);
int redy_port_send(struct redy_port *p, uint32_t len_bytes) MUST_CHECK;
/* One-sided, to the link's memory; `index` comes back in the event. */
int redy_port_write(struct redy_port *p, uint64_t offset, const void *data,
		    uint32_t len_bytes, uint32_t lkey,
		    uint32_t index) MUST_CHECK;
/* How many events, or -errno: the connection is broken. */
int redy_port_poll(struct redy_port *p, struct redy_event *out,
		   unsigned max) MUST_CHECK;
int redy_port_recycle(struct redy_port *p, uint32_t index) MUST_CHECK;

/* Builds the answer to a batch of requests of unknown origin; 0 or -EBADMSG.
 * *len_bytes is the room before and the answer's length after. */
int redy_execute(const uint8_t *memory, uint64_t size_bytes,
		 const uint8_t *request, uint32_t request_bytes,
		 uint8_t *answer, uint32_t *len_bytes) MUST_CHECK;

/* Answers until `stop` is true. 0 or -errno: the connection is broken. */
int redy_serve(struct redy_port *p, const uint8_t *memory, uint64_t size_bytes,
	       bool (*stop)(void *ctx), void *ctx) MUST_CHECK;

struct hlog_redy_options {
	struct client_link *link; /* the I/O thread's from here on */
	uint64_t size_bytes;
	uint32_t read_max;
	uint32_t batch; /* up to REDY_BATCH_MAX */
	int io_cpu;	/* the I/O thread's core; -1: any */
};

/* The device: application threads hand requests to an I/O thread. */
int hlog_device_redy_create(const struct hlog_redy_options *opt,
			    struct hlog_device **out) MUST_CHECK;

#endif
