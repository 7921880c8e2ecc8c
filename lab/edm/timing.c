/* SPDX-License-Identifier: Apache-2.0 */
/* The constants of Table 1, stage by stage, in picoseconds. */
#include "edm_timing.h"

#include "latency.h"

/* Cycles of the switch; its ASIC runs at 3 GHz. */
static uint64_t switch_ps(const struct edm_config *c, uint32_t cycles)
{
	return c->asic ? cycles * 1000u / 3 : cycles * EDM_LAT_CYCLE_PS;
}

void edm_timing_init(struct edm_timing *t, const struct edm_config *c)
{
	if (c->latency == EDM_LATENCY_HOPS) {
		*t = (struct edm_timing){.block_ps = edm_block_ps(c->gbps),
					 .link_ps = EDM_LAT_CABLE_PS};
		return;
	}
	*t = (struct edm_timing){
		.block_ps = edm_block_ps(c->gbps),
		.make_ps = EDM_CYCLES_MAKE * EDM_LAT_CYCLE_PS,
		.link_ps = 2 * EDM_LAT_PCS_EDM_PS + 2 * EDM_LAT_PMA_PS +
			   EDM_LAT_CABLE_PS,
		.notify_ps = switch_ps(c, EDM_CYCLES_NOTIFY),
		.match_ps = switch_ps(c, EDM_CYCLES_ITERATION),
		.emit_ps = switch_ps(c, EDM_CYCLES_EMIT),
		.grant_ps = EDM_CYCLES_GRANT * EDM_LAT_CYCLE_PS,
		.request_ps = EDM_CYCLES_REQUEST * EDM_LAT_CYCLE_PS + c->mem_ps,
		.forward_ps = switch_ps(c, EDM_CYCLES_FORWARD),
		.receive_ps = EDM_CYCLES_RECEIVE * EDM_LAT_CYCLE_PS,
	};
}

uint64_t edm_timing_alone_ps(const struct edm_config *c, enum edm_op op,
			     uint32_t bytes)
{
	struct edm_timing t;
	uint32_t chunks, blocks = edm_data_blocks(c, op, bytes, &chunks);
	uint32_t request = edm_request_blocks(c->md, op);

	edm_timing_init(&t, c);
	/* The switch takes a request whole before it passes it on, so its
	 * length counts once; so does the data's, which is cut through. */
	return t.make_ps + 4 * t.link_ps + t.notify_ps + t.match_ps +
	       t.emit_ps + (op == EDM_WRITE ? t.grant_ps : t.request_ps) +
	       t.forward_ps + t.receive_ps +
	       ((uint64_t)request - 1 + blocks - 1) * t.block_ps;
}

static void path_full(struct edm_path *p, const struct edm_config *c)
{
	p->link_ps = 2 * EDM_LAT_MAC_PS + 2 * EDM_LAT_PCS_PS +
		     2 * EDM_LAT_PMA_PS + EDM_LAT_CABLE_PS;
	p->switch_ps = EDM_LAT_L2_PS;
	switch (c->proto) {
	case EDM_PROTO_DCTCP:
	case EDM_PROTO_PFABRIC:
		p->send_ps = p->receive_ps = EDM_LAT_TCP_PS;
		break;
	case EDM_PROTO_PFC:
		p->send_ps = p->receive_ps = EDM_LAT_ROCE_PS;
		break;
	case EDM_PROTO_CXL:
		p->link_ps = EDM_LAT_CABLE_PS;
		p->send_ps = p->receive_ps = EDM_CXL_PORT_PS;
		p->switch_ps = 2 * EDM_CXL_PORT_PS + EDM_CXL_ARBITER_PS;
		break;
	case EDM_PROTO_EDM:
	case EDM_PROTO_IRD:
	case EDM_PROTO_FASTPASS:
	case EDM_PROTO_COUNT:
		break; /* raw Ethernet: no stack */
	}
}

static void path_frame(struct edm_path *p, enum edm_proto proto)
{
	switch (proto) {
	case EDM_PROTO_DCTCP:
	case EDM_PROTO_PFABRIC:
		p->header_bytes = EDM_FRAME_AROUND + EDM_TCP_HEADERS;
		break;
	case EDM_PROTO_PFC:
		p->header_bytes = EDM_FRAME_AROUND + EDM_ROCE_HEADERS;
		break;
	case EDM_PROTO_EDM:
	case EDM_PROTO_IRD:
	case EDM_PROTO_FASTPASS:
	case EDM_PROTO_COUNT:
	case EDM_PROTO_CXL: /* flits are counted by the protocol itself */
		p->header_bytes = EDM_FRAME_AROUND;
		break;
	}
	p->packet_min = EDM_WIRE_MIN;
	p->control_bytes = EDM_WIRE_MIN;
}

void edm_path_init(struct edm_path *p, const struct edm_config *c)
{
	*p = (struct edm_path){
		.byte_ps = edm_block_ps(c->gbps) / 8,
		.packet_min = 8,
		.control_bytes = 8,
		.mtu_bytes = 1460,
	};
	if (c->framing == EDM_FRAMING_WIRE)
		path_frame(p, c->proto);
	switch (c->latency) {
	case EDM_LATENCY_FULL:
		path_full(p, c);
		return;
	case EDM_LATENCY_SCHED:
		p->link_ps = 2 * EDM_LAT_PCS_EDM_PS + 2 * EDM_LAT_PMA_PS +
			     EDM_LAT_CABLE_PS;
		p->switch_ps = EDM_CYCLES_FORWARD * EDM_LAT_CYCLE_PS;
		p->send_ps = EDM_CYCLES_MAKE * EDM_LAT_CYCLE_PS;
		p->receive_ps = EDM_CYCLES_RECEIVE * EDM_LAT_CYCLE_PS;
		return;
	case EDM_LATENCY_HOPS:
		p->link_ps = EDM_LAT_CABLE_PS;
		return;
	}
}
