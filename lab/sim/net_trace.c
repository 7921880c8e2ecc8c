/* SPDX-License-Identifier: Apache-2.0 */
/* Writes frames as text or pcap; what happened to them is the network's. */
#include "net_trace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "sim.h"
#include "wire/wire.h"

enum {
	PCAP_MAGIC_NS = (int)0xa1b23c4d, /* host order, times in nanoseconds */
	PCAP_ETHERNET = 1,
	LINE_BYTES = 256,
};

struct pcap_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	uint32_t zone;
	uint32_t sigfigs;
	uint32_t snap_bytes;
	uint32_t link_type;
};

struct pcap_record {
	uint32_t sec;
	uint32_t nsec;
	uint32_t kept_bytes;
	uint32_t len_bytes;
};

STATIC_ASSERT(sizeof(struct pcap_header) == 24, "pcap file header");
STATIC_ASSERT(sizeof(struct pcap_record) == 16, "pcap record header");

int net_trace_pcap_header(struct net_trace *t)
{
	struct pcap_header h = {.magic = (uint32_t)PCAP_MAGIC_NS,
				.major = 2,
				.minor = 4,
				.snap_bytes = 65535,
				.link_type = PCAP_ETHERNET};

	if (t->pcap && fwrite(&h, sizeof(h), 1, t->pcap) != 1)
		return -EIO;
	return 0;
}

static void write_pcap(struct net_trace *t, uint64_t now_ps,
		       const uint8_t *frame, size_t len_bytes)
{
	struct pcap_record r = {.sec = (uint32_t)(now_ps / SIM_S),
				.nsec = (uint32_t)(now_ps % SIM_S / SIM_NS),
				.kept_bytes = (uint32_t)len_bytes,
				.len_bytes = (uint32_t)len_bytes};

	/* A trace that cannot be written ends; the simulation does not. */
	if (fwrite(&r, sizeof(r), 1, t->pcap) != 1 ||
	    fwrite(frame, len_bytes, 1, t->pcap) != 1)
		t->pcap = NULL;
}

void net_trace_frame(struct net_trace *t, uint64_t now_ps, const char *event,
		     const uint8_t *frame, size_t len_bytes)
{
	struct wire_pkt pkt;
	char line[LINE_BYTES];

	if (t->pcap && strcmp(event, "deliver") == 0)
		write_pcap(t, now_ps, frame, len_bytes);
	if (!t->text)
		return;
	if (wire_parse(frame, len_bytes, &pkt) == WIRE_OK)
		net_text(&pkt, line, sizeof(line));
	else
		snprintf(line, sizeof(line), "(damaged, %zu bytes)", len_bytes);
	fprintf(t->text, "%12" PRIu64 ".%03" PRIu64 " %-8s %s\n",
		now_ps / SIM_NS, now_ps % SIM_NS, event, line);
}

/* Where the remote address of a request stands; 0: it has none. */
static size_t address_at(const struct wire_pkt *pkt)
{
	if (!(wire_opcodes[pkt->opcode].flags &
	      (WIRE_OP_RETH | WIRE_OP_ATOMIC)))
		return 0;
	return WIRE_ETH_BYTES +
	       (wire_is_ipv4(pkt->dst_ip) ? WIRE_IP4_BYTES : WIRE_IP6_BYTES) +
	       WIRE_UDP_BYTES + WIRE_BTH_BYTES;
}

void net_trace_note(const struct net_trace *t, struct sim *sim,
		    const uint8_t *frame, size_t len_bytes)
{
	struct wire_pkt pkt;
	size_t at = 0, behind, end = len_bytes;

	if (t->hides_addresses) {
		/* Where a damaged frame has its address is not to be known. */
		if (wire_parse(frame, len_bytes, &pkt) != WIRE_OK) {
			sim_note(sim, SIM_NOTE_FRAME, &len_bytes,
				 sizeof(len_bytes));
			return;
		}
		at = address_at(&pkt);
		/* The ICRC covers the address, and what is hidden. */
		if (t->hides_payload)
			end = (size_t)(pkt.payload - frame);
		else if (at)
			end = len_bytes - WIRE_ICRC_BYTES;
	}
	if (!at) {
		sim_note(sim, SIM_NOTE_FRAME, frame, end);
		return;
	}
	behind = at + sizeof(uint64_t);
	sim_note(sim, SIM_NOTE_FRAME, frame, at);
	sim_note(sim, SIM_NOTE_FRAME, frame + behind, end - behind);
}
