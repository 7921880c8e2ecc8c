/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hail: a datagram to UDP port 4791 that is no RoCE packet (no opcode is
 * 0xff). A soft NIC answers every hail with as many bytes. `aquifer doctor`
 * finds out with hails whether the port is open and how large packets may be;
 * the UDP port finds out which of the processes that share an address has which
 * socket.
 */
#ifndef AQ_HAIL_H
#define AQ_HAIL_H

#include "base.h"
#include "bytes.h"

enum {
	HAIL_OPCODE = 0xff,
	HAIL_INDEX_AT = 8,    /* offset of `index`, for BPF programs */
	HAIL_ANY_INDEX = 255, /* any process may answer */
	HAIL_PORT = 4791,
};

enum hail_kind {
	HAIL_ASK = 1,
	HAIL_ANSWER = 2,
};

struct hail {
	uint8_t opcode;
	uint8_t magic[3];
	uint8_t kind;
	uint8_t qpn[3]; /* of a packet; 0: no queue pair has it */
	uint8_t index;	/* of the socket that should hear it */
	uint8_t pad;
	be16 slot; /* of the NIC that answers */
	be64 nonce;
};

STATIC_ASSERT(sizeof(struct hail) == 20 &&
		      offsetof(struct hail, index) == HAIL_INDEX_AT,
	      "as it stands on the wire");

/* Fills a question in. */
void hail_init(struct hail *h, uint8_t index, uint64_t nonce);
/* Copies what was received; false if it is no hail of this kind. */
bool hail_parse(const void *bytes, size_t len_bytes, enum hail_kind kind,
		struct hail *out) MUST_CHECK;

#endif
