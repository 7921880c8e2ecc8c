/* SPDX-License-Identifier: Apache-2.0 */
/* A packet as one line of text for logs and traces. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "net_trace.h"
#include "wire/wire.h"

struct text {
	char *buf;
	size_t len_bytes;
	size_t used; /* below len_bytes: there is room for the NUL */
};

PRINTF(2, 3) static void text_add(struct text *t, const char *format, ...)
{
	size_t room = t->len_bytes - t->used;
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->buf + t->used, room, format, ap);
	va_end(ap);
	if (n > 0)
		t->used += u64_min((uint64_t)n, room - 1);
}

static void add_ip(struct text *t, const uint8_t ip[16])
{
	int i;

	if (wire_is_ipv4(ip)) {
		text_add(t, "%u.%u.%u.%u", ip[12], ip[13], ip[14], ip[15]);
		return;
	}
	for (i = 0; i < 16; i += 2)
		text_add(t, "%s%x", i ? ":" : "", ip[i] << 8 | ip[i + 1]);
}

static void add_atomic(struct text *t, uint32_t flags,
		       const struct wire_pkt *pkt)
{
	const struct atomic_op *op = &pkt->atomic;

	text_add(t, " va=0x%" PRIx64 " rkey=0x%" PRIx32, pkt->va, pkt->rkey);
	if (op->is_add)
		text_add(t, " add=0x%" PRIx64, op->swap_add);
	else
		text_add(t, " compare=0x%" PRIx64 " swap=0x%" PRIx64,
			 op->compare, op->swap_add);
	if (flags & WIRE_OP_CMASK)
		text_add(t, " compare_mask=0x%" PRIx64 " swap_mask=0x%" PRIx64,
			 op->compare_mask, op->swap_mask);
	if (flags & WIRE_OP_FMASK)
		text_add(t, " boundary=0x%" PRIx64, op->boundary);
}

static const char *syndrome_name(uint8_t syndrome)
{
	if (wire_syndrome_is_ack(syndrome))
		return "ack";
	if (wire_syndrome_is_rnr(syndrome))
		return "rnr";
	switch (syndrome) {
	case WIRE_NAK_PSN:
		return "nak-psn";
	case WIRE_NAK_INVALID:
		return "nak-invalid";
	case WIRE_NAK_ACCESS:
		return "nak-access";
	case WIRE_NAK_OP:
		return "nak-op";
	default:
		return "nak";
	}
}

static void add_extensions(struct text *t, uint32_t flags,
			   const struct wire_pkt *pkt)
{
	if (flags & WIRE_OP_DETH)
		text_add(t, " qkey=0x%" PRIx32 " src_qpn=0x%" PRIx32, pkt->qkey,
			 pkt->src_qpn);
	if (flags & WIRE_OP_RETH)
		text_add(t,
			 " va=0x%" PRIx64 " rkey=0x%" PRIx32
			 " dma_len=%" PRIu32,
			 pkt->va, pkt->rkey, pkt->dma_len);
	if (flags & WIRE_OP_ATOMIC)
		add_atomic(t, flags, pkt);
	if (flags & WIRE_OP_AETH)
		text_add(t, " %s syndrome=0x%02x msn=%" PRIu32,
			 syndrome_name(pkt->syndrome), pkt->syndrome, pkt->msn);
	if (flags & WIRE_OP_ATOMIC_ACK)
		text_add(t, " original=0x%" PRIx64, pkt->original);
	if (flags & WIRE_OP_IMM)
		text_add(t, " imm=0x%08" PRIx32, be32_get(pkt->imm));
	if (flags & WIRE_OP_INV)
		text_add(t, " inv=0x%" PRIx32, pkt->rkey);
	if (flags & WIRE_OP_WALK)
		text_add(t,
			 " at=0x%" PRIx64 " program=0x%" PRIx64 " left=%" PRIu32
			 " took=%" PRIu32 " status=%u",
			 pkt->walk.at, pkt->walk.program, pkt->walk.left,
			 pkt->walk.took, pkt->walk.status);
	if (flags & WIRE_OP_PAYLOAD)
		text_add(t, " len=%" PRIu32, pkt->payload_len);
}

void net_text(const struct wire_pkt *pkt, char *buf, size_t len_bytes)
{
	const struct wire_opcode *op = &wire_opcodes[pkt->opcode];
	struct text t = {.buf = buf, .len_bytes = len_bytes};

	if (!len_bytes)
		return;
	buf[0] = '\0';
	add_ip(&t, pkt->src_ip);
	text_add(&t, ":%u > ", pkt->src_port);
	add_ip(&t, pkt->dst_ip);
	if (op->name)
		text_add(&t, " %s", op->name);
	else
		text_add(&t, " opcode 0x%02x", pkt->opcode);
	text_add(&t, " qpn=0x%" PRIx32 " psn=%" PRIu32 "%s%s%s%s%s",
		 pkt->dest_qpn, pkt->psn, pkt->ack_req ? " ackreq" : "",
		 pkt->solicited ? " se" : "", pkt->fecn ? " fecn" : "",
		 pkt->becn ? " becn" : "", pkt->has_mac ? " mac" : "");
	add_extensions(&t, op->flags, pkt);
}
