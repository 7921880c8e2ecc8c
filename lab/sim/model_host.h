/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Puts the host cost model under a simulated host, so that the shipped NIC
 * code runs with the times of hardware.
 */
#ifndef AQ_SIM_MODEL_HOST_H
#define AQ_SIM_MODEL_HOST_H

#include "model.h"
#include "rack.h"

struct model_host;

enum model_host_limits {
	MODEL_HOST_DEVICE_KEYS_MAX = 64,
};

int sim_model_host_create(struct sim *sim, const struct model_params *params,
			  uint64_t seed, struct model_host **out) MUST_CHECK;
/* Call it after the rack that uses it was destroyed. */
void sim_model_host_destroy(struct model_host *mh);

/* Sets the link's rate and latency, the poller's delay and the hooks; faults
 * and everything else stay. One model_host serves one host. The switch's delay
 * is the caller's: sim_net_set_switch_ps(net, params->switch_ps). */
void sim_model_host_config(struct model_host *mh, struct sim_host_config *cfg);

/* Frames do not say where a key's memory is, so keys of device memory are
 * registered here. -ENOSPC. */
int sim_model_host_add_device_key(struct model_host *mh,
				  uint32_t rkey) MUST_CHECK;
/* The NIC takes so many packets, in and out together; 0: no limit. */
void sim_model_host_limit(struct model_host *mh, uint64_t packets_per_s);
/* A packet that is no RDMA wants to leave: it may at *at_ps. False, with
 * rdma_first only: there is nothing left beside RDMA, ask again at *at_ps. */
bool sim_model_host_take(struct model_host *mh, bool rdma_first,
			 uint64_t *at_ps);

#endif
