/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every frame that a NIC sends, whoever it is for. */
#include <string.h>

#include "verbs_priv.h"
#include "wire/wire.h"

enum {
	SAMPLE = 4, /* one frame in so many: parsing computes a CRC */
};

struct vs_node *vs_wire_node(struct vs *vs, const uint8_t ip[16])
{
	for (unsigned i = 0; i < vs->node_count; i++) {
		if (memcmp(vs->nodes[i].gid.raw, ip, 16) == 0)
			return &vs->nodes[i];
	}
	return NULL;
}

void vs_wire_check(void *ctx, const uint8_t *frame, size_t len_bytes)
{
	struct vs *vs = ctx;
	const struct wire_opcode *op;
	struct wire_pkt pkt;
	enum wire_error err;

	if (vs->tapped++ % SAMPLE)
		return;
	err = wire_parse(frame, len_bytes, &pkt);
	if (err) {
		vs_fail(vs, "a frame was sent that is no packet (error %u)",
			err);
		return;
	}
	op = &wire_opcodes[pkt.opcode];
	if (pkt.solicited &&
	    !((op->flags & WIRE_OP_RECV) && (op->flags & WIRE_OP_LAST)))
		vs_fail(vs, "%s asks for an event, but ends no message",
			op->name);
	else if (pkt.has_mac != (vs->opt->auth && op->transport == WIRE_RC))
		vs_fail(vs, "%s has %s MAC", op->name,
			pkt.has_mac ? "a" : "no");
	else if (pkt.payload_len > WIRE_MTU_MAX)
		vs_fail(vs, "%s carries %u bytes", op->name, pkt.payload_len);
	else if (!vs_wire_node(vs, pkt.src_ip) || !vs_wire_node(vs, pkt.dst_ip))
		vs_fail(vs, "%s has an address of nobody", op->name);
}
