/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of one block, by what they look like in memory. */
#ifndef AQ_NIC_WQE_SHAPE_H
#define AQ_NIC_WQE_SHAPE_H

#include "base/base.h"
#include "wire/wqe.h"

/* The WQE of a READ or WRITE with one segment: one block, which never wraps. */
struct plain_wqe {
	struct wqe_ctrl ctrl;
	struct wqe_raddr raddr;
	struct wqe_data data;
};

enum {
	PLAIN_WQE_SEGS = sizeof(struct plain_wqe) / WQE_SEG_BYTES,
};
STATIC_ASSERT(sizeof(struct plain_wqe) <= WQE_BLOCK_BYTES, "one block");

/* The first block of a request that a managed queue has fetched. */
union chain_wqe {
	uint8_t bytes[WQE_BLOCK_BYTES];
	struct wqe_ctrl ctrl;
	struct {
		struct wqe_ctrl ctrl;
		struct wqe_order order;
	} control;
	struct plain_wqe plain;
	struct {
		struct wqe_ctrl ctrl;
		struct wqe_raddr raddr;
		struct wqe_atomic atomic;
		struct wqe_data data;
	} amo;
};
STATIC_ASSERT(sizeof(union chain_wqe) == WQE_BLOCK_BYTES, "one block");

static inline uint8_t chain_opcode(const union chain_wqe *wqe)
{
	return (uint8_t)(be32_get(wqe->ctrl.opmod_idx_opcode) & 0xff);
}

#endif
