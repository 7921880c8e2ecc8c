/* SPDX-License-Identifier: Apache-2.0 */
/* The table of work request opcodes. */
#include "wqe_op.h"

#include <errno.h>
#include <infiniband/verbs.h>

#include "wire/wire.h"
#include "wire/wqe.h"

#define SEND_FLAGS  (WQE_OP_DATA)
#define WRITE_FLAGS (WQE_OP_RADDR | WQE_OP_DATA)
#define READ_FLAGS  (WQE_OP_RADDR | WQE_OP_DATA | WQE_OP_RESPONSE)
#define AMO_FLAGS   (READ_FLAGS | WQE_OP_ATOMIC)
#define WALK_FLAGS  (READ_FLAGS | WQE_OP_WALK)

#define ONLY(opcode)            \
	{                       \
		0, 0, 0, opcode \
	}

const struct wqe_op wqe_ops[WQE_OP_COUNT + 1] = {
	[WQE_NOP] = {"NOP", WQE_OP_LOCAL, 0, IBV_WC_SEND, 0, ONLY(0)},
	[WQE_SEND] = {"SEND",
		      SEND_FLAGS | WQE_OP_UD,
		      0,
		      IBV_WC_SEND,
		      0,
		      {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
		       WIRE_RC_SEND_LAST, WIRE_RC_SEND_ONLY}},
	[WQE_SEND_IMM] = {"SEND_IMM",
			  SEND_FLAGS | WQE_OP_UD,
			  0,
			  IBV_WC_SEND,
			  0,
			  {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
			   WIRE_RC_SEND_LAST_IMM, WIRE_RC_SEND_ONLY_IMM}},
	[WQE_SEND_INVAL] = {"SEND_INVAL",
			    SEND_FLAGS | WQE_OP_KEY,
			    0,
			    IBV_WC_SEND,
			    0,
			    {WIRE_RC_SEND_FIRST, WIRE_RC_SEND_MIDDLE,
			     WIRE_RC_SEND_LAST_INV, WIRE_RC_SEND_ONLY_INV}},
	[WQE_WRITE] = {"WRITE",
		       WRITE_FLAGS,
		       IBV_ACCESS_REMOTE_WRITE,
		       IBV_WC_RDMA_WRITE,
		       1,
		       {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE,
			WIRE_RC_WRITE_LAST, WIRE_RC_WRITE_ONLY}},
	/* The peer gets a completion: it must see a packet. */
	[WQE_WRITE_IMM] = {"WRITE_IMM",
			   WRITE_FLAGS,
			   0,
			   IBV_WC_RDMA_WRITE,
			   1,
			   {WIRE_RC_WRITE_FIRST, WIRE_RC_WRITE_MIDDLE,
			    WIRE_RC_WRITE_LAST_IMM, WIRE_RC_WRITE_ONLY_IMM}},
	[WQE_READ] = {"READ", READ_FLAGS, IBV_ACCESS_REMOTE_READ,
		      IBV_WC_RDMA_READ, 1, ONLY(WIRE_RC_READ_REQ)},
	[WQE_CAS] = {"CAS", AMO_FLAGS, IBV_ACCESS_REMOTE_ATOMIC,
		     IBV_WC_COMP_SWAP, 2, ONLY(WIRE_RC_CAS)},
	[WQE_FAA] = {"FAA", AMO_FLAGS, IBV_ACCESS_REMOTE_ATOMIC,
		     IBV_WC_FETCH_ADD, 2, ONLY(WIRE_RC_FAA)},
	[WQE_MASKED_CAS] = {"MASKED_CAS", AMO_FLAGS, IBV_ACCESS_REMOTE_ATOMIC,
			    IBV_WC_COMP_SWAP, 3, ONLY(WIRE_RC_MASKED_CAS)},
	[WQE_MASKED_FAA] = {"MASKED_FAA", AMO_FLAGS, IBV_ACCESS_REMOTE_ATOMIC,
			    IBV_WC_FETCH_ADD, 2, ONLY(WIRE_RC_MASKED_FAA)},
	/* Not one-sided: the peer executes it, also where its memory is mapped
	 * here. */
	[WQE_WALK] = {"WALK", WALK_FLAGS, 0, IBV_WC_RDMA_READ, 2,
		      ONLY(WIRE_RC_WALK)},
	[WQE_BIND_MW] = {"BIND_MW", WQE_OP_LOCAL, 0, IBV_WC_BIND_MW, 3,
			 ONLY(0)},
	[WQE_LOCAL_INVAL] = {"LOCAL_INVAL", WQE_OP_LOCAL | WQE_OP_KEY, 0,
			     IBV_WC_LOCAL_INV, 0, ONLY(0)},
};

int wqe_opcode_from_wr(unsigned wr_opcode)
{
	/* One more than the opcode, so that holes are 0. */
	static const uint8_t plus_one[] = {
		[IBV_WR_RDMA_WRITE] = WQE_WRITE + 1,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = WQE_WRITE_IMM + 1,
		[IBV_WR_SEND] = WQE_SEND + 1,
		[IBV_WR_SEND_WITH_IMM] = WQE_SEND_IMM + 1,
		[IBV_WR_SEND_WITH_INV] = WQE_SEND_INVAL + 1,
		[IBV_WR_RDMA_READ] = WQE_READ + 1,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = WQE_CAS + 1,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = WQE_FAA + 1,
		[IBV_WR_LOCAL_INV] = WQE_LOCAL_INVAL + 1,
		[IBV_WR_BIND_MW] = WQE_BIND_MW + 1,
	};

	if (wr_opcode >= ARRAY_LEN(plus_one) || !plus_one[wr_opcode])
		return -EINVAL;
	return plus_one[wr_opcode] - 1;
}
