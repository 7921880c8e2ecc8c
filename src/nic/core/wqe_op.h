/* SPDX-License-Identifier: Apache-2.0 */
/* What each work request opcode means: the one table that posting, sending,
 * completing and the direct port read. */
#ifndef AQ_NIC_WQE_OP_H
#define AQ_NIC_WQE_OP_H

#include "base/base.h"

enum wqe_op_flags {
	WQE_OP_RESPONSE = 1u << 0, /* completes by its answer, not by an ACK */
	WQE_OP_ATOMIC = 1u << 1,
	WQE_OP_LOCAL = 1u << 2, /* never leaves this NIC */
	WQE_OP_RADDR = 1u << 3, /* has a remote address segment */
	WQE_OP_DATA = 1u << 4,	/* has data segments */
	WQE_OP_KEY = 1u << 5,	/* its immediate is a key to invalidate */
	WQE_OP_UD = 1u << 6,	/* datagrams can do it */
	WQE_OP_WALK = 1u << 7,	/* its request brings bytes, too */
};

struct wqe_op {
	const char *name; /* NULL: no such opcode */
	uint32_t flags;
	uint32_t access;   /* what the peer must grant; 0: not one-sided */
	uint8_t wc;	   /* enum ibv_wc_opcode of its completion */
	uint8_t seg_count; /* 16-byte segments between control and data */
	uint8_t wire[4];   /* packet opcodes: first, middle, last, only */
};

enum {
	WQE_WIRE_FIRST,
	WQE_WIRE_MIDDLE,
	WQE_WIRE_LAST,
	WQE_WIRE_ONLY,
};

enum {
	WQE_OP_COUNT = 0x20, /* all opcodes are below */
};

/* Holes, and the entry behind the last, have no name. */
extern const struct wqe_op wqe_ops[WQE_OP_COUNT + 1];

/* Never NULL; an unknown opcode has no name. */
static inline const struct wqe_op *wqe_op_get(uint8_t opcode)
{
	return &wqe_ops[opcode < WQE_OP_COUNT ? opcode : WQE_OP_COUNT];
}

/* enum wqe_opcode for an ibv_wr_opcode, or -EINVAL. */
int wqe_opcode_from_wr(unsigned wr_opcode);

#endif
