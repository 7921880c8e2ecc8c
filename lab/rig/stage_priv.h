/* SPDX-License-Identifier: Apache-2.0 */
/* The stage's inside. */
#ifndef AQ_RIG_STAGE_PRIV_H
#define AQ_RIG_STAGE_PRIV_H

#include "stage.h"

struct stage_link {
	struct client_link link; /* what its user sees */
	struct stage_link *next;
	struct stage_link **prev;
	struct rig_host *host;
	struct rig_pair pair;
	bool owns_cq;
};

struct rig_stage {
	struct rig_stage_config cfg;
	struct sim *sim;
	struct sim_rack *rack;
	const struct client_verbs *verbs;
	struct rig_host *hosts[RIG_HOSTS_MAX];
	unsigned host_count;
	struct rig_region *regions;
	struct stage_link *links;
};

/* Puts the meter between the host's programs and its NIC. */
void rig_meter_install(struct rig_host *host);

/* The stage's first one. */
void rig_region_close(struct rig_region *region);

#endif
