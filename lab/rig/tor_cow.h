/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the offload engine that is a program of the switch: their far
 * ends, and what the control plane tells the switch about them. */
#ifndef AQ_RIG_TOR_COW_H
#define AQ_RIG_TOR_COW_H

#include "offload_rig.h"
#include "tor_net.h"

/* A session of the switch; its pairs have far ends only. */
int rig_cow_open(struct rig_session *s) MUST_CHECK;
/* The switch forgets it. One that was restarted has done so already. */
void rig_cow_close(struct rig_session *s);
/* 0: it is served. */
int rig_cow_err(const struct rig_session *s);

#endif
