/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An application's rings and a memory node for cowbird, the engine inside the
 * switch: what it asked is remembered and answered in order, rightly or as the
 * fuzzer likes.
 */
#ifndef AQ_FUZZ_TOR_RINGS_H
#define AQ_FUZZ_TOR_RINGS_H

#include <string.h>

#include "wire/offload_map.h"
#include "wire/wire.h"

enum {
	RINGS_ENTRIES = 16,
	RINGS_DATA_BYTES = 4096,
	RINGS_BYTES = 16384,
	RINGS_AT = 4096,
	RINGS_OWN_QPN = 64,  /* the switch's first end */
	RINGS_QPN = 31,	     /* the application's */
	RINGS_NODE_QPN = 41, /* the node's, for reads; the next is for writes */
	RINGS_PSN = 16777210,
	RINGS_OWN = 8, /* the last byte of the switch's address */
	RINGS_APP = 1,
	RINGS_NODE = 3,
	RINGS_ASKED = 256,
};

struct rings_asked {
	uint32_t psn;
	uint32_t qpn;
	uint32_t len_bytes;
	uint64_t va;
	bool is_read;
};

struct rings {
	struct offload_map map;
	uint8_t memory[RINGS_BYTES];
	struct rings_asked asked[RINGS_ASKED];
	unsigned first, count;
};

/* Requests wait from the beginning: writes and reads, one of two packets. */
static inline void rings_init(struct rings *r)
{
	static const struct offload_meta meta[] = {
		{OFFLOAD_WRITE, 0, 700, 0, 100},
		{OFFLOAD_READ, 0, 700, 100, 0},
		{OFFLOAD_READ, 0, 8, 1000, 704},
		{OFFLOAD_WRITE, 0, 8, 704, 1000},
	};
	struct offload_preamble p;

	ASSERT(offload_map_make(RINGS_ENTRIES, RINGS_DATA_BYTES,
				RINGS_DATA_BYTES, &r->map) == 0 &&
	       r->map.total_bytes <= RINGS_BYTES);
	offload_preamble_init(&p, &r->map, "fuzz");
	p.green.tail = ARRAY_LEN(meta);
	memcpy(r->memory, &p, sizeof(p));
	memcpy(r->memory + r->map.meta_at, meta, sizeof(meta));
}

/* A packet that has left the switch. */
static inline void rings_note(struct rings *r, const struct wire_pkt *w)
{
	if (w->src_ip[15] != RINGS_OWN || r->count == RINGS_ASKED)
		return;
	r->asked[(r->first + r->count++) % RINGS_ASKED] =
		(struct rings_asked){w->psn, w->dest_qpn, w->dma_len, w->va,
				     w->opcode == WIRE_RC_READ_REQ};
}

/*
 * The answer to what was asked first, with payload of r->memory or of `zeros`.
 * Bits of `how`: 1 it is lost, 2 it comes again, 4 of another length, 8 another
 * syndrome. False: there is none.
 */
static inline bool rings_answer(struct rings *r, uint8_t how,
				const uint8_t *zeros, struct wire_pkt *w)
{
	const struct rings_asked *a = &r->asked[r->first % RINGS_ASKED];
	uint64_t at = a->va - RINGS_AT;

	if (!r->count)
		return false;
	if (!(how & 2)) {
		r->first++;
		r->count--;
	}
	w->psn = a->psn;
	w->dest_qpn = a->qpn == RINGS_QPN
			      ? RINGS_OWN_QPN
			      : RINGS_OWN_QPN + 1 + a->qpn - RINGS_NODE_QPN;
	w->opcode = a->is_read ? WIRE_RC_READ_RESP_ONLY : WIRE_RC_ACK;
	w->syndrome = how & 8 ? (uint8_t)(how >> 1) : WIRE_ACK_UNLIMITED;
	if (a->is_read) {
		w->payload = a->qpn == RINGS_QPN && at < RINGS_BYTES - 1024
				     ? r->memory + at
				     : zeros;
		w->payload_len = how & 4 ? how : a->len_bytes;
	}
	return !(how & 1);
}

#endif
