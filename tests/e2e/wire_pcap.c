/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a capture file with one packet of every opcode over IPv4 and IPv6,
 * and prints what a dissector should find in each, one line per packet.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "wire/wire.h"

enum {
	PCAP_SNAPLEN = 65535,
	PCAP_ETHERNET = 1,
};

/* Host byte order; the magic number tells which. */
struct pcap_file {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t zone;
	uint32_t sigfigs;
	uint32_t snaplen;
	uint32_t link;
};

struct pcap_record {
	uint32_t seconds;
	uint32_t microseconds;
	uint32_t captured_bytes;
	uint32_t original_bytes;
};

STATIC_ASSERT(sizeof(struct pcap_file) == 24, "file header");
STATIC_ASSERT(sizeof(struct pcap_record) == 16, "record header");

static const uint8_t payload[10] = "0123456789";

static void make_pkt(uint8_t opcode, bool ipv4, uint32_t psn,
		     struct wire_pkt *pkt)
{
	static const uint8_t ip4[16] = {
		[10] = 0xff, [11] = 0xff, [12] = 192, [14] = 2};
	static const uint8_t ip6[16] = {0x20, 0x01, 0x0d, 0xb8};
	bool is_add = wire_opcodes[opcode].flags & WIRE_OP_ADD;

	*pkt = (struct wire_pkt){
		.dst_mac = {2, 0, 0, 0, 0, 2},
		.src_mac = {2, 0, 0, 0, 0, 1},
		.ttl = 64,
		.src_port = 0xc123,
		.opcode = opcode,
		.ack_req = psn & 1,
		.solicited = psn & 2,
		.pkey = 0xffff,
		.dest_qpn = 0x110 + psn,
		.psn = psn,
		.syndrome = WIRE_ACK_UNLIMITED,
		.msn = 0x300 + psn,
		.rkey = 0x12340000 + psn,
		.dma_len = 10,
		.va = UINT64_C(0x7f0012345678) + psn,
		.atomic = {.is_add = is_add,
			   .swap_add = 0x1111222233334444,
			   .compare = 0x5555666677778888,
			   .swap_mask = UINT64_MAX,
			   .compare_mask = UINT64_MAX},
		.original = 0x9999aaaabbbbcccc,
		.imm = be32_put(0xfeed0000 + psn),
		.qkey = 0x11111111,
		.src_qpn = 0x220 + psn,
		.payload = payload,
	};
	memcpy(pkt->src_ip, ipv4 ? ip4 : ip6, sizeof(pkt->src_ip));
	memcpy(pkt->dst_ip, ipv4 ? ip4 : ip6, sizeof(pkt->dst_ip));
	pkt->src_ip[15] = 1;
	pkt->dst_ip[15] = 2;
	if (wire_opcodes[opcode].flags & WIRE_OP_PAYLOAD)
		pkt->payload_len = 10 - psn % 4;
}

/* What tshark calls them. It does not know the vendor's. */
static const char *const dissector_names[256] = {
	[WIRE_RC_SEND_FIRST] = "RC Send First ",
	[WIRE_RC_SEND_MIDDLE] = "RC Send Middle ",
	[WIRE_RC_SEND_LAST] = "RC Send Last ",
	[WIRE_RC_SEND_LAST_IMM] = "RC Send Last Immediate ",
	[WIRE_RC_SEND_ONLY] = "RC Send Only ",
	[WIRE_RC_SEND_ONLY_IMM] = "RC Send Only Immediate ",
	[WIRE_RC_WRITE_FIRST] = "RC RDMA Write First ",
	[WIRE_RC_WRITE_MIDDLE] = "RC RDMA Write Middle ",
	[WIRE_RC_WRITE_LAST] = "RC RDMA Write Last ",
	[WIRE_RC_WRITE_LAST_IMM] = "RC RDMA Write Last Immediate ",
	[WIRE_RC_WRITE_ONLY] = "RC RDMA Write Only ",
	[WIRE_RC_WRITE_ONLY_IMM] = "RC RDMA Write Only Immediate ",
	[WIRE_RC_READ_REQ] = "RC RDMA Read Request ",
	[WIRE_RC_READ_RESP_FIRST] = "RC RDMA Read Response First ",
	[WIRE_RC_READ_RESP_MIDDLE] = "RC RDMA Read Response Middle ",
	[WIRE_RC_READ_RESP_LAST] = "RC RDMA Read Response Last ",
	[WIRE_RC_READ_RESP_ONLY] = "RC RDMA Read Response Only ",
	[WIRE_RC_ACK] = "RC Acknowledge ",
	[WIRE_RC_ATOMIC_ACK] = "RC Atomic Acknowledge ",
	[WIRE_RC_CAS] = "RC Compare Swap ",
	[WIRE_RC_FAA] = "RC Fetch Add ",
	[WIRE_RC_SEND_LAST_INV] = "RC Send Last Invalidate ",
	[WIRE_RC_SEND_ONLY_INV] = "RC Send Only Invalidate ",
	[WIRE_UD_SEND_ONLY] = "UD Send Only ",
	[WIRE_UD_SEND_ONLY_IMM] = "UD Send Only Immediate ",
	[WIRE_RC_MASKED_CAS] = "Unknown OpCode",
	[WIRE_RC_MASKED_FAA] = "Unknown OpCode",
	[WIRE_RC_WALK] = "Unknown OpCode",
	[WIRE_RC_WALK_ANSWER] = "Unknown OpCode",
	[WIRE_UD_WALK_ON] = "Unknown OpCode",
	[WIRE_UD_WALK_BACK] = "Unknown OpCode",
};

/* One column, empty when the packet does not have it. */
#define COLUMN(there, format, value)                 \
	do {                                         \
		if (there)                           \
			printf("," format, (value)); \
		else                                 \
			printf(",");                 \
	} while (0)

/* In the order and notation of the fields that wire_tshark.sh asks for. */
static void print_expected(const struct wire_pkt *pkt, uint32_t icrc)
{
	uint32_t flags = wire_opcodes[pkt->opcode].flags;
	bool vendor = flags & (WIRE_OP_CMASK | WIRE_OP_FMASK | WIRE_OP_WALK);
	bool deth = (flags & WIRE_OP_DETH) && !vendor;
	bool reth = flags & WIRE_OP_RETH;
	bool atomic = flags & WIRE_OP_ATOMIC && !vendor;
	bool aeth = flags & WIRE_OP_AETH && !vendor;

	printf("%u,%d,0,%u,0,65535,0x%06" PRIx32 ",%d,%" PRIu32, pkt->opcode,
	       pkt->solicited, -pkt->payload_len & 3, pkt->dest_qpn,
	       pkt->ack_req, pkt->psn);
	COLUMN(deth, "0x%016" PRIx64, (uint64_t)pkt->qkey);
	COLUMN(deth, "0x%08" PRIx32, pkt->src_qpn);
	COLUMN(reth || atomic, "0x%016" PRIx64, pkt->va);
	COLUMN(reth || atomic, "0x%08" PRIx32, pkt->rkey);
	COLUMN(reth, "%" PRIu32, pkt->dma_len);
	COLUMN(atomic, "%" PRIu64, pkt->atomic.swap_add);
	COLUMN(atomic, "%" PRIu64,
	       pkt->atomic.is_add ? 0 : pkt->atomic.compare);
	COLUMN(aeth, "%u", pkt->syndrome);
	COLUMN(aeth, "%" PRIu32, pkt->msn);
	COLUMN(flags & WIRE_OP_ATOMIC_ACK, "%" PRIu64, pkt->original);
	COLUMN(flags & WIRE_OP_IMM, "%08" PRIx32, be32_get(pkt->imm));
	COLUMN(flags & WIRE_OP_INV, "%08" PRIx32, pkt->rkey);
	COLUMN(!vendor, "0x%08" PRIx32, icrc);
	printf(",%sQP=0x%06" PRIx32 "\n", dissector_names[pkt->opcode],
	       pkt->dest_qpn);
}

static bool write_pkt(FILE *f, uint8_t opcode, bool ipv4, uint32_t psn)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct pcap_record record = {.seconds = psn};
	struct wire_pkt pkt;
	size_t n;
	be32 icrc; /* shown in the order of its bytes */

	make_pkt(opcode, ipv4, psn, &pkt);
	n = wire_build(&pkt, frame);
	record.captured_bytes = record.original_bytes = (uint32_t)n;
	if (fwrite(&record, sizeof(record), 1, f) != 1 ||
	    fwrite(frame, n, 1, f) != 1)
		return false;
	memcpy(&icrc, frame + n - sizeof(icrc), sizeof(icrc));
	print_expected(&pkt, be32_get(icrc));
	return true;
}

int main(int argc, char **argv)
{
	const struct pcap_file head = {.magic = 0xa1b2c3d4,
				       .major = 2,
				       .minor = 4,
				       .snaplen = PCAP_SNAPLEN,
				       .link = PCAP_ETHERNET};
	uint32_t psn = 0;
	FILE *f;
	bool ok;
	int family;
	int op;

	f = argc == 2 ? fopen(argv[1], "wb") : NULL;
	if (!f) {
		fprintf(stderr,
			"usage: wire_pcap FILE (that can be written)\n");
		return EXIT_FAILURE;
	}
	ok = fwrite(&head, sizeof(head), 1, f) == 1;
	for (family = 0; family < 2; family++)
		for (op = 0; op < 256; op++)
			if (wire_opcodes[op].name)
				ok = ok &&
				     write_pkt(f, (uint8_t)op, !family, psn++);
	ok = !fclose(f) && ok;
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
