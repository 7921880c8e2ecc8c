/* SPDX-License-Identifier: Apache-2.0 */
/* What applications of Cowbird's figures do beside reading. */
#include "offload_costs.h"
#include "offload_plan.h"

enum {
	REDY_FAR_PPM = 944000, /* 1 of 18 GB is local, uniform */
};

void offload_app_probe(struct fig_config *c)
{
	c->app_ps = offload_costs.probe_ps;
	c->far_ppm = OFFLOAD_PROBE_FAR_PPM;
}

void offload_app_store(struct fig_config *c)
{
	bool small = c->bytes <= 64;

	c->has_record = true;
	c->app_ps =
		small ? offload_costs.store_64_ps : offload_costs.store_512_ps;
	c->far_ppm = (uint32_t)(small ? offload_costs.store_64_far_ppm
				      : offload_costs.store_512_far_ppm);
}

void offload_app_store_uniform(struct fig_config *c)
{
	offload_app_store(c);
	c->far_ppm = REDY_FAR_PPM;
}

/* Nothing but requests. */
void offload_app_none(struct fig_config *c)
{
	c->far_ppm = 1000000;
	c->burst = true;
}

/* Reads of small objects, without pause. */
void offload_app_objects(struct fig_config *c)
{
	c->far_ppm = 1000000;
}
