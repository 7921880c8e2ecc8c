/* SPDX-License-Identifier: Apache-2.0 */
/* What a fabric has to know of a frame of the NIC to carry it as its own. */
#ifndef AQ_EDM_NET_ROCE_H
#define AQ_EDM_NET_ROCE_H

#include "sim/net.h"

enum {
	NET_BTH_BYTES = 12,
	NET_AETH_BYTES = 4,
};

/* Its transport header, or NULL: it is not RoCE. */
const uint8_t *net_bth(const struct sim_frame *frame);
/* What of it crosses: Ethernet, IP, UDP and check sum do not, ports and virtual
 * circuits stand for them. */
uint32_t net_inner_bytes(const struct sim_frame *frame, const uint8_t *bth);
uint32_t net_psn(const uint8_t *bth);
/* What the answer to this request will take, or 0: it is none, or a long one.
 */
uint32_t net_answer_bytes(const struct sim_frame *frame, const uint8_t *bth,
			  uint32_t mtu_bytes);

#endif
