/* SPDX-License-Identifier: Apache-2.0 */
/* What the rack knows of its hosts. */
#ifndef AQ_SIM_RACK_PRIV_H
#define AQ_SIM_RACK_PRIV_H

#include "rack.h"

int sim_host_create(struct sim *sim, struct sim_net *net, unsigned index,
		    const struct sim_host_config *cfg,
		    struct sim_host **out) MUST_CHECK;
void sim_host_destroy(struct sim_host *host);
int sim_host_open(struct sim_host *host, uint32_t slot,
		  struct nic_host **out) MUST_CHECK;
uint64_t sim_host_guid(unsigned index);

#endif
