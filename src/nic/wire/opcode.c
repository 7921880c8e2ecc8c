/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The opcode table: what each opcode is called, belongs to and carries. Every
 * other question about an opcode is answered from here.
 */
#include "wire_priv.h"

#define FIRST	WIRE_OP_FIRST
#define LAST	WIRE_OP_LAST
#define ONLY	(WIRE_OP_FIRST | WIRE_OP_LAST)
#define RESP	WIRE_OP_RESPONSE
#define DATA	WIRE_OP_PAYLOAD
#define RECV	WIRE_OP_RECV
#define ADD	WIRE_OP_ADD
#define DETH	WIRE_OP_DETH
#define RETH	WIRE_OP_RETH
#define ATOMIC	WIRE_OP_ATOMIC
#define CMASK	WIRE_OP_CMASK
#define FMASK	WIRE_OP_FMASK
#define AETH	WIRE_OP_AETH
#define ATOMACK WIRE_OP_ATOMIC_ACK
#define IMM	WIRE_OP_IMM
#define INV	WIRE_OP_INV
#define WALK	WIRE_OP_WALK

/*
 * X(opcode, transport, kind, flags). The printed name is the name of the
 * constant, and the length of the extensions follows from the flags, so neither
 * can disagree with the rest.
 *
 * RECV stands on every packet of a SEND, because each of them needs the receive
 * that the first one takes, and on those packets of a WRITE that bring an
 * immediate.
 */
#define WIRE_OPCODES(X)                                                      \
	X(RC_SEND_FIRST, RC, SEND, FIRST | DATA | RECV)                      \
	X(RC_SEND_MIDDLE, RC, SEND, DATA | RECV)                             \
	X(RC_SEND_LAST, RC, SEND, LAST | DATA | RECV)                        \
	X(RC_SEND_LAST_IMM, RC, SEND, LAST | DATA | RECV | IMM)              \
	X(RC_SEND_ONLY, RC, SEND, ONLY | DATA | RECV)                        \
	X(RC_SEND_ONLY_IMM, RC, SEND, ONLY | DATA | RECV | IMM)              \
	X(RC_WRITE_FIRST, RC, WRITE, FIRST | DATA | RETH)                    \
	X(RC_WRITE_MIDDLE, RC, WRITE, DATA)                                  \
	X(RC_WRITE_LAST, RC, WRITE, LAST | DATA)                             \
	X(RC_WRITE_LAST_IMM, RC, WRITE, LAST | DATA | RECV | IMM)            \
	X(RC_WRITE_ONLY, RC, WRITE, ONLY | DATA | RETH)                      \
	X(RC_WRITE_ONLY_IMM, RC, WRITE, ONLY | DATA | RECV | RETH | IMM)     \
	X(RC_READ_REQ, RC, READ, ONLY | RETH)                                \
	X(RC_READ_RESP_FIRST, RC, READ_RESP, FIRST | RESP | DATA | AETH)     \
	X(RC_READ_RESP_MIDDLE, RC, READ_RESP, RESP | DATA)                   \
	X(RC_READ_RESP_LAST, RC, READ_RESP, LAST | RESP | DATA | AETH)       \
	X(RC_READ_RESP_ONLY, RC, READ_RESP, ONLY | RESP | DATA | AETH)       \
	X(RC_ACK, RC, ACK, ONLY | RESP | AETH)                               \
	X(RC_ATOMIC_ACK, RC, ATOMIC_ACK, ONLY | RESP | AETH | ATOMACK)       \
	X(RC_CAS, RC, ATOMIC, ONLY | ATOMIC)                                 \
	X(RC_FAA, RC, ATOMIC, ONLY | ADD | ATOMIC)                           \
	X(RC_SEND_LAST_INV, RC, SEND, LAST | DATA | RECV | INV)              \
	X(RC_SEND_ONLY_INV, RC, SEND, ONLY | DATA | RECV | INV)              \
	X(UD_SEND_ONLY, UD, SEND, ONLY | DATA | RECV | DETH)                 \
	X(UD_SEND_ONLY_IMM, UD, SEND, ONLY | DATA | RECV | DETH | IMM)       \
	X(RC_MASKED_CAS, RC, ATOMIC, ONLY | ATOMIC | CMASK)                  \
	X(RC_MASKED_FAA, RC, ATOMIC, ONLY | ADD | ATOMIC | FMASK)            \
	X(RC_WALK, RC, WALK, ONLY | DATA | WALK)                             \
	X(RC_WALK_ANSWER, RC, WALK_ANSWER, ONLY | RESP | DATA | AETH | WALK) \
	X(UD_WALK_ON, UD, WALK_ON, ONLY | DATA | DETH | WALK)                \
	X(UD_WALK_BACK, UD, WALK_BACK, ONLY | DATA | DETH | WALK)

#define EXT_BYTES(f)                                                    \
	((uint8_t)(((f)&DETH ? sizeof(struct wire_deth) : 0) +          \
		   ((f)&RETH ? sizeof(struct wire_reth) : 0) +          \
		   ((f)&ATOMIC ? sizeof(struct wire_atomic_eth) : 0) +  \
		   ((f)&CMASK ? sizeof(struct wire_cmask) : 0) +        \
		   ((f)&FMASK ? sizeof(struct wire_fmask) : 0) +        \
		   ((f)&AETH ? sizeof(struct wire_aeth) : 0) +          \
		   ((f)&ATOMACK ? sizeof(struct wire_atomic_ack) : 0) + \
		   ((f)&IMM ? sizeof(be32) : 0) +                       \
		   ((f)&INV ? sizeof(be32) : 0) +                       \
		   ((f)&WALK ? sizeof(struct wire_walk_eth) : 0)))

#define ENTRY(op, trans, what, f)          \
	[WIRE_##op] = {                    \
		.name = #op,               \
		.transport = WIRE_##trans, \
		.kind = WIRE_##what,       \
		.ext_bytes = EXT_BYTES(f), \
		.flags = (f),              \
	},

const struct wire_opcode wire_opcodes[256] = {WIRE_OPCODES(ENTRY)};

#define FITS(op, trans, what, f)                                         \
	STATIC_ASSERT(WIRE_ETH_BYTES + WIRE_IP6_BYTES + WIRE_UDP_BYTES + \
				      WIRE_BTH_BYTES + EXT_BYTES(f) <=   \
			      WIRE_HDR_MAX,                              \
		      #op);

WIRE_OPCODES(FITS)

size_t wire_header_bytes(uint8_t opcode, bool ipv4)
{
	return WIRE_ETH_BYTES + (ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES) +
	       WIRE_UDP_BYTES + WIRE_BTH_BYTES + wire_opcodes[opcode].ext_bytes;
}
