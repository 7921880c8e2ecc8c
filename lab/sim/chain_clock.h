/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of a simulated host's chains: asks the host's cost model when each
 * request is due and lets the NIC go on with it then.
 */
#ifndef AQ_SIM_CHAIN_CLOCK_H
#define AQ_SIM_CHAIN_CLOCK_H

#include "core/nic.h"
#include "rack.h"

struct chain_due;

/* Embedded in its host. All zeroes but `clock`, sim_chain_clock_init's. */
struct sim_chain_clock {
	struct nic_chain_clock clock; /* for the NIC */
	struct sim *sim;
	struct sim_host *host;
	const struct sim_host_model *model;
	/* A request is due. */
	void (*resume)(struct sim_host *host, uint32_t qpn);
	struct chain_due *free;
	struct chain_due *all;
};

void sim_chain_clock_init(struct sim_chain_clock *c);
/* Nothing is due any more. */
void sim_chain_clock_release(struct sim_chain_clock *c);

#endif
