/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work queue entries in memory: the segment layout of ConnectX, as mlx5dv.h
 * documents it, so that a chain of requests built for this NIC can be carried
 * to hardware and remote operations can rewrite requests that are queued.
 *
 * A send queue is an array of 64-byte blocks (WQEBB). A request starts at a
 * block and is made of 16-byte segments: control, then by opcode a datagram
 * (48 bytes), a remote address, an atomic, then data pointers or inline data.
 * A request that does not fit behind the last block goes on at block 0.
 */
#ifndef AQ_WQE_H
#define AQ_WQE_H

#include "base/base.h"
#include "base/bytes.h"

enum {
	WQE_BLOCK_BYTES = 64,
	WQE_SEG_BYTES = 16,
};

enum wqe_opcode {
	WQE_NOP = 0x00,
	WQE_SEND_INVAL = 0x01,
	WQE_WRITE = 0x08,
	WQE_WRITE_IMM = 0x09,
	WQE_SEND = 0x0a,
	WQE_SEND_IMM = 0x0b,
	WQE_WAIT = 0x0f,
	WQE_READ = 0x10,
	WQE_CAS = 0x11,
	WQE_FAA = 0x12,
	WQE_MASKED_CAS = 0x14,
	WQE_MASKED_FAA = 0x15,
	WQE_RECV_ENABLE = 0x16,
	WQE_SEND_ENABLE = 0x17,
	WQE_LOCAL_INVAL = 0x1b,
	WQE_BIND_MW = 0x18,
	WQE_WALK = 0x1d, /* ours: ConnectX has none */
};

enum wqe_ctrl_flags {
	WQE_CTRL_SOLICITED = 1u << 1,
	WQE_CTRL_CQE = 2u << 2, /* always produce a completion */
	WQE_CTRL_FENCE = 4u << 5,
};

struct wqe_ctrl {
	be32 opmod_idx_opcode; /* opmod 8 | index 16 | opcode 8 */
	be32 qpn_ds;	       /* qpn 24 | number of segments 8 */
	uint8_t signature;
	uint8_t reserved[2];
	uint8_t flags; /* enum wqe_ctrl_flags */
	be32 imm;      /* immediate, or the key to invalidate */
};

struct wqe_raddr {
	be64 addr;
	be32 rkey;
	be32 reserved;
};

struct wqe_atomic {
	be64 swap_add;
	be64 compare;
};

/* Behind wqe_atomic in WQE_MASKED_CAS. */
struct wqe_cas_mask {
	be64 swap_mask;
	be64 compare_mask;
};

/* WQE_MASKED_FAA has this in place of wqe_atomic. */
struct wqe_masked_faa {
	be64 add;
	be64 boundary;
};

/* Behind the remote address in WQE_WALK. */
struct wqe_walk {
	be64 program;
	be32 iterations;
	/* Of the data behind the result, with the request; and a flag. */
	be32 send_bytes;
};

#define WQE_WALK_FORWARD (1u << 31) /* in send_bytes */

struct wqe_datagram {
	be32 qkey;
	be32 reserved0;
	be32 dest_qpn;
	uint8_t reserved1[4];
	be64 ah; /* address handle: host pointer value, valid while posted */
	uint8_t reserved2[24];
};

struct wqe_bind {
	be64 addr;
	be64 length;
	be32 mw_rkey; /* the key the window has now */
	be32 new_rkey;
	be32 mr_lkey;
	be32 access;
	uint8_t reserved[16];
};

struct wqe_data {
	be32 byte_count; /* top bit set: inline data of that many bytes */
	be32 lkey;
	be64 addr;
};

/* WAIT and the ENABLEs. `step` and `base` are ours, in what ConnectX leaves
 * unused. */
struct wqe_order {
	be32 step; /* added to `index` in memory when it is fetched */
	be32 base; /* WAIT: a CQ whose count is added to `index`; 0: none */
	be32 index;
	be32 number; /* of a CQ or queue pair */
};

#define WQE_INLINE_FLAG	 0x80000000u
#define WQE_INVALID_LKEY 0x100u /* ends a receive's list of pointers */

STATIC_ASSERT(sizeof(struct wqe_ctrl) == 16, "control segment");
STATIC_ASSERT(sizeof(struct wqe_raddr) == 16, "remote address segment");
STATIC_ASSERT(sizeof(struct wqe_atomic) == 16, "atomic segment");
STATIC_ASSERT(sizeof(struct wqe_cas_mask) == 16, "mask segment");
STATIC_ASSERT(sizeof(struct wqe_masked_faa) == 16, "masked FAA segment");
STATIC_ASSERT(sizeof(struct wqe_walk) == 16, "walk segment");
STATIC_ASSERT(sizeof(struct wqe_datagram) == 48, "datagram segment");
STATIC_ASSERT(sizeof(struct wqe_bind) == 48, "bind segment");
STATIC_ASSERT(sizeof(struct wqe_data) == 16, "data segment");
STATIC_ASSERT(sizeof(struct wqe_order) == 16, "order segment");

#endif
