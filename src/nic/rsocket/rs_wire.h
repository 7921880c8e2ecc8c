/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stream protocol on the wire, as the document "rsocket" of rdma-core
 * describes it: what the two sides tell each other while they connect, the
 * 32-bit message that comes with every WRITE, and the entries of the tables
 * that a peer writes. Pure: bytes in, values out.
 */
#ifndef AQ_RS_WIRE_H
#define AQ_RS_WIRE_H

#include "base/base.h"

enum {
	RS_HELLO_BYTES = 40,
	RS_SGE_BYTES = 16,
	RS_IOMAP_BYTES = 24,
};

#define RS_VALUE_MAX 0x1fffffffu

/* ---- messages ------------------------------------------------------------ */

enum rs_op {
	RS_OP_DATA = 0,	  /* value: bytes */
	RS_OP_CREDIT = 4, /* value: the number of the first message too many */
	RS_OP_IOMAP = 6,  /* value: the entry that was written */
	RS_OP_CTRL = 7,	  /* value: enum rs_ctrl */
};

enum rs_ctrl {
	RS_CTRL_DISCONNECT = 0,
	RS_CTRL_KEEPALIVE = 1,
	RS_CTRL_SHUTDOWN = 2,
};

struct rs_msg {
	enum rs_op op;
	uint32_t value;
};

uint32_t rs_msg_build(enum rs_op op, uint32_t value);
/* -EBADMSG: a reserved kind, an unknown control, or data of no bytes. */
int rs_msg_parse(uint32_t word, struct rs_msg *msg) MUST_CHECK;

/* ---- memory of a peer ---------------------------------------------------- */

struct rs_sge {
	uint64_t addr;
	uint32_t key;
	uint32_t length;
};

/* An application's buffer that its peer may write to by offset. */
struct rs_iomap {
	uint64_t offset;
	struct rs_sge sge;
};

/* Tables are written in the byte order of the machine that has them. */
void rs_sge_build(const struct rs_sge *sge, bool big, uint8_t *out);
void rs_sge_parse(const uint8_t *in, struct rs_sge *sge);
void rs_iomap_build(const struct rs_iomap *map, bool big, uint8_t *out);
void rs_iomap_parse(const uint8_t *in, struct rs_iomap *map);

/* ---- private data of request and reply ----------------------------------- */

struct rs_hello {
	uint16_t credits;     /* data messages that may come at first */
	uint16_t iomap_count; /* entries of its table of mapped buffers */
	bool big;	      /* the sender's byte order */
	struct rs_sge slots;  /* its table; length: entries */
	struct rs_sge buf;    /* the first buffer */
};

void rs_hello_build(const struct rs_hello *hello, uint8_t out[RS_HELLO_BYTES]);
/* -EPROTONOSUPPORT: another version. -EBADMSG: not such data. */
int rs_hello_parse(const uint8_t *in, size_t len_bytes,
		   struct rs_hello *hello) MUST_CHECK;
/* The number of mappings as one byte: exact up to 128. */
uint8_t rs_scale_build(uint16_t count);
uint16_t rs_scale_parse(uint8_t scale);

#endif
