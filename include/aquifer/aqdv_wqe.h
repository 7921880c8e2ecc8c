/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work requests as the NIC reads them from a managed queue (aqdv.h): the
 * segment layout of ConnectX, so that programs, RECVs, READs, WRITEs and
 * atomics can write and rewrite requests that wait in memory.
 *
 * A send queue is a ring of 64-byte blocks. A request starts at a block, is
 * made of 16-byte segments and takes as many whole blocks as it needs; behind
 * the last block it continues at block 0. Its first segment is the control
 * segment; what follows depends on the opcode:
 *
 *   NOP                     nothing; further segments are ignored
 *   SEND, SEND_IMM          data
 *   WRITE, WRITE_IMM, READ  remote address, data
 *   CAS, FAA                remote address, atomic, data (8 bytes)
 *   MASKED_FAA              remote address, masked_faa, data (8 bytes)
 *   MASKED_CAS              remote address, atomic, cas_mask, data (8 bytes)
 *   WAIT, SEND_ENABLE,
 *   RECV_ENABLE             order
 *
 * A receive queue is a ring of entries of equal size, each an array of data
 * segments; a segment with the key AQDV_WQE_END ends the list early. A segment
 * with AQDV_WQE_INLINE in its byte_count gets the immediate value of the
 * message, as it was sent, instead of data; an entry has at most AQDV_WQE_IMMS
 * of these, and refuses a message without an immediate value. (ConnectX leaves
 * the value in the completion, from where a READ of the chain would fetch it.)
 *
 * Every number is big-endian. The functions at the end write them.
 */
#ifndef AQUIFER_AQDV_WQE_H
#define AQUIFER_AQDV_WQE_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define AQDV_LAYOUT(cond, what) static_assert(cond, what)
#else
#define AQDV_LAYOUT(cond, what) _Static_assert(cond, what)
#endif

#define AQDV_WQE_BLOCK_BYTES 64u
#define AQDV_WQE_SEG_BYTES   16u

enum aqdv_wqe_opcode {
	AQDV_WQE_NOP = 0x00,
	AQDV_WQE_WRITE = 0x08,
	AQDV_WQE_WRITE_IMM = 0x09,
	AQDV_WQE_SEND = 0x0a,
	AQDV_WQE_SEND_IMM = 0x0b,
	AQDV_WQE_WAIT = 0x0f, /* for completions of a counting CQ */
	AQDV_WQE_READ = 0x10,
	AQDV_WQE_CAS = 0x11,
	AQDV_WQE_FAA = 0x12,
	AQDV_WQE_MASKED_CAS = 0x14,
	AQDV_WQE_MASKED_FAA = 0x15,
	AQDV_WQE_RECV_ENABLE = 0x16, /* more of a receive queue */
	AQDV_WQE_SEND_ENABLE = 0x17, /* more of a send queue */
};

enum aqdv_wqe_flags {
	AQDV_WQE_SOLICITED = 1u << 1,
	AQDV_WQE_CQE = 2u << 2,	  /* ends in a completion */
	AQDV_WQE_FENCE = 4u << 5, /* after all READs and atomics before it */
};

struct aqdv_wqe_ctrl {
	uint32_t opmod_idx_opcode; /* opcode in the lowest 8 bits */
	uint32_t qpn_ds;   /* number of segments, this included: lowest 8 */
	uint8_t signature; /* ignored */
	uint8_t reserved[2];
	uint8_t flags; /* enum aqdv_wqe_flags */
	uint32_t imm;  /* immediate, passed on as it is */
};

struct aqdv_wqe_raddr {
	uint64_t addr;
	uint32_t rkey;
	uint32_t reserved;
};

struct aqdv_wqe_atomic {
	uint64_t swap_add;
	uint64_t compare;
};

struct aqdv_wqe_cas_mask {
	uint64_t swap_mask;
	uint64_t compare_mask;
};

struct aqdv_wqe_masked_faa {
	uint64_t add;
	uint64_t boundary; /* topmost bit of each field */
};

/* byte_count with this bit: that many bytes follow behind byte_count itself,
 * padded to whole segments; not for READs and atomics. */
#define AQDV_WQE_INLINE 0x80000000u
#define AQDV_WQE_END	0x100u /* key that ends a receive's list */
#define AQDV_WQE_IMMS	2u     /* places for an immediate in a receive */

struct aqdv_wqe_data {
	uint32_t byte_count;
	uint32_t lkey;
	uint64_t addr;
};

/*
 * WAIT: `number` is that of a counting CQ (aqdv_count_cq); the queue goes on
 * when that CQ has counted `index` successful completions. `base`, if it is not
 * 0, is the number of another counting CQ, whose count at the time when the
 * request is fetched is added to the index. So a queue can wait until as many
 * requests have completed as messages have come.
 *
 * SEND_ENABLE, RECV_ENABLE: `number` is that of a managed queue pair of the
 * same protection domain, `index` how many of its blocks (receives) may be
 * executed since it was made. An index that is not ahead of what was enabled
 * before does nothing; one that is more than a ring ahead of what was executed
 * is an error.
 *
 * Indices count modulo 2^32 and only ever grow. `step`, if it is not 0, is
 * added to the index in memory when the request is fetched, so that it is right
 * again when the ring comes round; with 0 the sender of the chain's arguments
 * may send the next index with them.
 */
struct aqdv_wqe_order {
	uint32_t step;
	uint32_t base;
	uint32_t index;
	uint32_t number;
};

AQDV_LAYOUT(sizeof(struct aqdv_wqe_ctrl) == 16, "control segment");
AQDV_LAYOUT(offsetof(struct aqdv_wqe_ctrl, flags) == 11, "control flags");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_raddr) == 16, "remote address segment");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_atomic) == 16, "atomic segment");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_cas_mask) == 16, "mask segment");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_masked_faa) == 16, "masked FAA segment");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_data) == 16, "data segment");
AQDV_LAYOUT(sizeof(struct aqdv_wqe_order) == 16, "order segment");
AQDV_LAYOUT(offsetof(struct aqdv_wqe_order, index) == 8, "order index");

/* ---- requests of one block, for the common cases ------------------------ */

struct aqdv_wqe_rdma { /* READ, WRITE, WRITE_IMM with up to two pieces */
	struct aqdv_wqe_ctrl ctrl;
	struct aqdv_wqe_raddr raddr;
	struct aqdv_wqe_data data[2];
};

struct aqdv_wqe_amo { /* CAS, FAA, MASKED_FAA */
	struct aqdv_wqe_ctrl ctrl;
	struct aqdv_wqe_raddr raddr;
	union {
		struct aqdv_wqe_atomic atomic;
		struct aqdv_wqe_masked_faa masked_faa;
	};
	struct aqdv_wqe_data data;
};

struct aqdv_wqe_control { /* WAIT, SEND_ENABLE, RECV_ENABLE, NOP */
	struct aqdv_wqe_ctrl ctrl;
	struct aqdv_wqe_order order;
	uint8_t unused[32];
};

/* One block, in each of its forms. */
union aqdv_wqe {
	struct aqdv_wqe_ctrl ctrl;
	struct aqdv_wqe_rdma rdma;
	struct aqdv_wqe_amo amo;
	struct aqdv_wqe_control control;
	struct aqdv_wqe_data data[4]; /* blocks behind the first */
	uint8_t bytes[64];
};

AQDV_LAYOUT(sizeof(union aqdv_wqe) == AQDV_WQE_BLOCK_BYTES, "one block");

static inline void aqdv_wqe_put_ctrl(struct aqdv_wqe_ctrl *ctrl,
				     enum aqdv_wqe_opcode opcode, uint32_t segs,
				     uint8_t flags)
{
	ctrl->opmod_idx_opcode = htobe32((uint32_t)opcode);
	ctrl->qpn_ds = htobe32(segs & 0xff);
	ctrl->signature = 0;
	ctrl->reserved[0] = ctrl->reserved[1] = 0;
	ctrl->flags = flags;
	ctrl->imm = 0;
}

static inline void aqdv_wqe_put_raddr(struct aqdv_wqe_raddr *raddr,
				      uint64_t addr, uint32_t rkey)
{
	raddr->addr = htobe64(addr);
	raddr->rkey = htobe32(rkey);
	raddr->reserved = 0;
}

static inline void aqdv_wqe_put_data(struct aqdv_wqe_data *data, uint64_t addr,
				     uint32_t byte_count, uint32_t lkey)
{
	data->byte_count = htobe32(byte_count);
	data->lkey = htobe32(lkey);
	data->addr = htobe64(addr);
}

/* The end of a receive's list of pieces. */
static inline void aqdv_wqe_put_end(struct aqdv_wqe_data *data)
{
	aqdv_wqe_put_data(data, 0, 0, AQDV_WQE_END);
}

/* The place of a receive where the immediate value goes, four bytes. */
static inline void aqdv_wqe_put_imm(struct aqdv_wqe_data *data, uint64_t addr,
				    uint32_t lkey)
{
	aqdv_wqe_put_data(data, addr, AQDV_WQE_INLINE | 4, lkey);
}

/* A READ, WRITE or WRITE_IMM with one piece. */
static inline void aqdv_wqe_put_rdma(union aqdv_wqe *wqe,
				     enum aqdv_wqe_opcode opcode, uint8_t flags,
				     uint64_t remote, uint32_t rkey,
				     uint64_t local, uint32_t lkey,
				     uint32_t byte_count)
{
	aqdv_wqe_put_ctrl(&wqe->rdma.ctrl, opcode, 3, flags);
	aqdv_wqe_put_raddr(&wqe->rdma.raddr, remote, rkey);
	aqdv_wqe_put_data(&wqe->rdma.data[0], local, byte_count, lkey);
	aqdv_wqe_put_data(&wqe->rdma.data[1], 0, 0, 0);
}

/* CAS (swap, compare), FAA (add, 0) or MASKED_FAA (add, boundary); the word's
 * former value goes to `local`, in host byte order. */
static inline void aqdv_wqe_put_amo(union aqdv_wqe *wqe,
				    enum aqdv_wqe_opcode opcode, uint8_t flags,
				    uint64_t remote, uint32_t rkey,
				    uint64_t swap_add, uint64_t compare,
				    uint64_t local, uint32_t lkey)
{
	aqdv_wqe_put_ctrl(&wqe->amo.ctrl, opcode, 4, flags);
	aqdv_wqe_put_raddr(&wqe->amo.raddr, remote, rkey);
	wqe->amo.atomic.swap_add = htobe64(swap_add);
	wqe->amo.atomic.compare = htobe64(compare);
	aqdv_wqe_put_data(&wqe->amo.data, local, 8, lkey);
}

/* WAIT, SEND_ENABLE, RECV_ENABLE. */
static inline void aqdv_wqe_put_order(union aqdv_wqe *wqe,
				      enum aqdv_wqe_opcode opcode,
				      uint32_t number, uint32_t index,
				      uint32_t step)
{
	aqdv_wqe_put_ctrl(&wqe->control.ctrl, opcode, 2, 0);
	wqe->control.order.step = htobe32(step);
	wqe->control.order.base = 0;
	wqe->control.order.index = htobe32(index);
	wqe->control.order.number = htobe32(number);
}

/*
 * One READ that puts the eight bytes at `remote` into `local` in reverse order,
 * so that a value that an atomic left in host order becomes an address that a
 * request can hold. It takes AQDV_WQE_SWAP_BLOCKS blocks, which must not wrap.
 */
#define AQDV_WQE_SWAP_BLOCKS 3u

static inline void aqdv_wqe_put_swap(union aqdv_wqe *wqe, uint8_t flags,
				     uint64_t remote, uint32_t rkey,
				     uint64_t local, uint32_t lkey)
{
	unsigned i;

	aqdv_wqe_put_ctrl(&wqe->rdma.ctrl, AQDV_WQE_READ, 2 + 8, flags);
	aqdv_wqe_put_raddr(&wqe->rdma.raddr, remote, rkey);
	for (i = 0; i < 8; i++)
		aqdv_wqe_put_data(&wqe[(i + 2) / 4].data[(i + 2) % 4],
				  local + 7 - i, 1, lkey);
}

#ifdef __cplusplus
}
#endif

#endif
