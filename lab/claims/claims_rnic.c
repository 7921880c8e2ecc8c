/* SPDX-License-Identifier: Apache-2.0 */
/* What the dissertation measured of its NICs. The model of hosts and NICs was
 * made from this, and is what the figures of the others stand on. */
#include "claims_docs.h"

#define NIC(where, text, figure, what)                                     \
	CLAIM_OF_INPUT(where, text, "nic-model --figure " figure, "model", \
		       what, NULL)

static const struct claim claims[] = {
	NIC("1.2.2, figure 1.1", "2.7 million compare-and-swaps a queue pair",
	    "1.1", "CAS of each of twenty queue pairs"),
	NIC("1.2.2, figure 1.1", "55 million of twenty queue pairs", "1.1",
	    "CAS of twenty queue pairs"),
	NIC("1.2.2, figure 1.1", "READs: 84.5 Mops with 360 in flight", "1.1",
	    "READ, 360 in flight"),
	NIC("1.2.2, figure 1.1", "WRITEs: 103.6 Mops with 360 in flight", "1.1",
	    "WRITE, 360 in flight"),
	NIC("1.2.2, figure 1.2",
	    "The NIC's memory: 3.1 times the compare-and-swaps of one address",
	    "1.2", "device over host, one address"),
	NIC("1.2.2, figure 1.2", "The same, many addresses: 1.8 times", "1.2",
	    "device over host, many addresses"),
	NIC("2.1.1, figure 2.1", "One queue pair writes 18.3 Mops", "2.1",
	    "WRITE, 1 queue pair"),
	NIC("2.1.1, figure 2.1", "Eight queue pairs write 117.9 Mops", "2.1",
	    "WRITE, 8 queue pairs"),
	NIC("2.1.1, figure 2.2", "3 % of responses come out of order", "2.2",
	    "responses out of order, 32 QPs at 1 Mops"),
	NIC("2.1.1, figure 2.2", "Reorderings of up to 13 requests", "2.2",
	    "largest step between responses"),
	NIC("2.1.2, figure 2.3",
	    "About 3 million compare-and-swaps of a word in host memory", "2.3",
	    "CAS, host memory"),
	NIC("2.1.2, figure 2.3", "About 9 million in the NIC's memory", "2.3",
	    "CAS, device memory"),
	NIC("2.1.2, figure 2.3", "WRITEs instead: 6.2 times", "2.3",
	    "WRITE over CAS, host memory"),
	NIC("2.1.2, figure 2.3", "The same in the NIC's memory: 2.5 times",
	    "2.3", "WRITE over CAS, device memory"),
	NIC("3.2.2, figure 3.1", "64 B take 0.85 us one way", "3.1",
	    "one way, 64 B"),
	NIC("3.2.2, figure 3.1", "1 KiB takes 1.4 us one way", "3.1",
	    "one way, 1 KiB"),
};

const struct claim_doc claim_doc_rnic = {
	"rnic", "RDMA NICs (the same, chapters 1 to 3)", claims,
	ARRAY_LEN(claims)};
