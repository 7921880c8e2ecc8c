/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The simulated fabrics below the simulator's network: each frame is a write
 * from the memory of its source port to that of its destination, timed by
 * EDM's scheduler and blocks or by CXL's credits. Speed and latency are the
 * fabric's own (100 Gb/s, the constants of Table 1); those of the ports' links
 * do not count. Faults remain the network's.
 */
#ifndef AQ_EDM_NET_H
#define AQ_EDM_NET_H

#include "edm_config.h"
#include "sim/net_fabric.h"

/* What `--fabric` names: ethernet, edm, edm64 (with X = 64), cxl. */
extern const struct sim_fabric_choice edm_net_choices[];

/* What the choices edm and cxl use, by `proto`; for callers that change it. */
void edm_net_config(enum edm_proto proto, uint32_t ports, struct edm_config *c);
/* Gives the network a fabric with everything set by the caller: failures,
 * other speeds. Before the first port. */
int edm_net_plug(struct sim_net *net, const struct edm_config *c) MUST_CHECK;

#endif
