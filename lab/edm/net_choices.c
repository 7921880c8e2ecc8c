/* SPDX-License-Identifier: Apache-2.0 */
/* The fabrics that `--fabric` names. */
#include "edm_constants.h"
#include "edm_net.h"

void edm_net_config(enum edm_proto proto, uint32_t ports, struct edm_config *c)
{
	edm_config_init(c);
	c->nodes = u32_max(ports, 2);
	c->proto = proto;
	c->framing = EDM_FRAMING_WIRE;
	/* In turns, frames of one sender would overtake each other. */
	c->cxl_fifo = true;
}

static int plug(struct sim_net *net, enum edm_proto proto, uint32_t ports)
{
	struct edm_config c;

	edm_net_config(proto, ports, &c);
	return edm_net_plug(net, &c);
}

static int plug_edm(struct sim_net *net, uint32_t ports)
{
	return plug(net, EDM_PROTO_EDM, ports);
}

/* As many notifications of a pair as it takes to fill a link between two
 * nodes; 21 times the switch's memory. */
static int plug_edm64(struct sim_net *net, uint32_t ports)
{
	struct edm_config c;

	edm_net_config(EDM_PROTO_EDM, ports, &c);
	c.active_max = 64;
	return edm_net_plug(net, &c);
}

static int plug_cxl(struct sim_net *net, uint32_t ports)
{
	return plug(net, EDM_PROTO_CXL, ports);
}

const struct sim_fabric_choice edm_net_choices[] = {
	/* Raw Ethernet of Table 1: MAC, PCS and transceiver at both ends of a
	 * cable; forwarding in the switch. */
	{.name = "ethernet",
	 .link = {.latency_ps = 2 * (EDM_LAT_MAC_PS + EDM_LAT_PCS_PS +
				     EDM_LAT_PMA_PS) +
				EDM_LAT_CABLE_PS,
		  .bits_per_s = EDM_LINK_GBPS * UINT64_C(1000000000)},
	 .switch_ps = EDM_LAT_L2_PS},
	{.name = "edm", .plug = plug_edm},
	{.name = "edm64", .plug = plug_edm64},
	{.name = "cxl", .plug = plug_cxl},
	{.name = NULL},
};
