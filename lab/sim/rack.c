/* SPDX-License-Identifier: Apache-2.0 */
/* The rack: its list of hosts, and the provider that verbs sees. */
#include "rack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "rack_priv.h"

enum {
	HOST_MAX = 512,
};

struct sim_rack {
	struct sim *sim;
	struct sim_net *net;
	struct nic_provider provider;
	struct sim_host *hosts[HOST_MAX];
	unsigned host_count;
	uint32_t slot_next; /* each opening of a device has its own QPNs */
};

static unsigned provider_count(void *ctx)
{
	return ((struct sim_rack *)ctx)->host_count;
}

static void provider_describe(void *ctx, unsigned index, char name[64],
			      uint64_t *guid)
{
	snprintf(name, 64, "sim%u", index);
	*guid = sim_host_guid(index);
}

/* All hosts are in the simulated rack, whatever its name. */
static int provider_open(void *ctx, unsigned index, const char *name,
			 struct nic_host **out)
{
	struct sim_rack *rack = ctx;

	if (index >= rack->host_count)
		return -ENODEV;
	return sim_host_open(rack->hosts[index],
			     rack->slot_next++ % NIC_SLOT_COUNT, out);
}

int sim_rack_create(struct sim *sim, struct sim_rack **out)
{
	struct sim_rack *rack = calloc(1, sizeof(*rack));
	int err;

	if (!rack)
		return -ENOMEM;
	rack->sim = sim;
	err = sim_net_create(sim, &rack->net);
	if (err) {
		free(rack);
		return err;
	}
	rack->slot_next = 1;
	rack->provider = (struct nic_provider){.ctx = rack,
					       .count = provider_count,
					       .describe = provider_describe,
					       .open = provider_open};
	*out = rack;
	return 0;
}

void sim_rack_destroy(struct sim_rack *rack)
{
	if (!rack)
		return;
	for (unsigned i = 0; i < rack->host_count; i++)
		sim_host_destroy(rack->hosts[i]);
	sim_net_destroy(rack->net);
	free(rack);
}

struct sim_net *sim_rack_net(struct sim_rack *rack)
{
	return rack->net;
}

const struct nic_provider *sim_rack_provider(struct sim_rack *rack)
{
	return &rack->provider;
}

int sim_host_add(struct sim_rack *rack, const struct sim_host_config *cfg,
		 struct sim_host **out)
{
	struct sim_host *host;
	int err;

	if (rack->host_count == HOST_MAX)
		return -ENOSPC;
	err = sim_host_create(rack->sim, rack->net, rack->host_count, cfg,
			      &host);
	if (err)
		return err;
	rack->hosts[rack->host_count++] = host;
	*out = host;
	return 0;
}
