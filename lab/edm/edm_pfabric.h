/* SPDX-License-Identifier: Apache-2.0 */
/* pFabric's egress queue: most urgent out, least urgent dropped. */
#ifndef AQ_EDM_PFABRIC_H
#define AQ_EDM_PFABRIC_H

#include "edm_rival.h"

/* A packet's seq holds what is left of its message in the upper half and its
 * number in the message in the lower half. */
struct edm_pfabric_queue {
	struct edm_list packets;
	uint64_t bytes, bytes_max, limit_bytes;
};

/* Returns the packets that had to be dropped, a list through `next`, or
 * EDM_MSG_NONE. */
uint32_t edm_pfabric_push(struct edm_pfabric_queue *q,
			  struct edm_packet *packets, uint32_t packet);
/* The earliest packet of the most urgent message; EDM_MSG_NONE: empty. */
uint32_t edm_pfabric_pop(struct edm_pfabric_queue *q,
			 const struct edm_packet *packets);
void edm_pfabric_release(struct edm_pfabric_queue *q);

#endif
