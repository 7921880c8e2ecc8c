/* SPDX-License-Identifier: Apache-2.0 */
/* The stage's inside. */
#ifndef AQ_SCENARIO_STAGE_PRIV_H
#define AQ_SCENARIO_STAGE_PRIV_H

#include "stage.h"

struct stage_link {
	struct client_link link; /* what its user sees */
	struct stage_link *next;
	struct stage_link **prev;
	struct scenario_host *host;
	struct scenario_pair pair;
	bool owns_cq;
};

struct scenario_stage {
	struct scenario_stage_config cfg;
	struct sim *sim;
	struct sim_rack *rack;
	const struct client_verbs *verbs;
	struct scenario_host *hosts[SCENARIO_HOSTS_MAX];
	unsigned host_count;
	struct scenario_region *regions;
	struct stage_link *links;
};

/* Puts the meter between the host's programs and its NIC. */
void scenario_meter_install(struct scenario_host *host);

/* The stage's first one. */
void scenario_region_close(struct scenario_region *region);

#endif
