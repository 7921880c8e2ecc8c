/* SPDX-License-Identifier: Apache-2.0 */
/* What one RDMA READ takes when it is alone on a fabric. */
#ifndef AQ_PLAYS_READ_ALONE_H
#define AQ_PLAYS_READ_ALONE_H

#include "sim/net_fabric.h"

/*
 * The time from ibv_post_send to the completion between two hosts whose NICs
 * cost no time, so it is the fabric's alone. At most 4,096 bytes. -EREMOTEIO:
 * wrong bytes or status. Sets the process's verbs provider meanwhile.
 */
int sim_read_alone_ps(const struct sim_fabric_choice *fabric, uint32_t bytes,
		      uint64_t *out) MUST_CHECK;

#endif
