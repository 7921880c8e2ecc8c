/* SPDX-License-Identifier: Apache-2.0 */
/* Sources that guess keys. */
#ifndef AQ_NIC_GUESS_PRIV_H
#define AQ_NIC_GUESS_PRIV_H

#include "base/base.h"
#include "nic_limits.h"

struct nic;
struct nic_qp;
struct wire_pkt;

struct guess_source {
	uint8_t ip[16];
	uint32_t slot;
	uint32_t failures;
	uint64_t since_ns;
	uint64_t blocked_until_ns;
	uint64_t born; /* the last connection before its first failure */
};

struct guess {
	struct guess_source sources[NIC_GUESS_SOURCES];
	uint64_t blocked_until_ns; /* no source is blocked after this */
	uint64_t births;	   /* connections made so far */
	uint32_t used;
	uint32_t next; /* to replace when full */
};

void guess_failure(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn);
/* Whether the source is blocked: guesses without a connection are ignored. */
bool guess_is_blocked(struct nic *nic, const uint8_t ip[16], uint32_t peer_qpn);
/* Whether this packet is dropped, because its connection is newer than the
 * source's guesses. */
bool guess_drops(struct nic *nic, const struct nic_qp *qp,
		 const struct wire_pkt *pkt);

#endif
