/* SPDX-License-Identifier: Apache-2.0 */
/* A host whose NIC gathers (walk/gather.h) and executes no other walk, as a
 * memory node does for engines. */
#ifndef AQ_RIG_GATHERER_H
#define AQ_RIG_GATHERER_H

#include <aquifer/aqdv.h>

#include "stage.h"

struct rig_gatherer;

int rig_gatherer_open(struct rig_host *host,
		      struct rig_gatherer **out) MUST_CHECK;
/* No queue pair of the host is left. NULL: nothing. */
void rig_gatherer_close(struct rig_gatherer *g);
/* aqdv_post_walk as a doorbell that the meter sees. */
int rig_gatherer_post(struct ibv_qp *qp, struct aqdv_walk_wr *wr,
		      struct aqdv_walk_wr **bad);

#endif
