/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What hardware costs in the model of EDM and of the fabrics beside it, each
 * number with its source; `aquifer sim edm --constants` prints them. Nothing
 * here was fitted. How rivals control their rates is in their own files.
 *
 * Kinds of source:
 *   PUBLISHED  stands in the source
 *   DERIVED    follows from it
 *   ASSUMED    chosen here
 *
 * Short names of sources:
 *   [E]     Su and Shrivastav, EDM, ASPLOS 2025
 *   [P]     Li et al., Pond, ASPLOS 2023, which [E] takes CXL's times from
 *   [CXL]   the CXL 2.0 specification
 *   [802.3] IEEE 802.3
 *   [IB]    the InfiniBand specification, annex 17 (RoCEv2)
 */
#ifndef AQ_EDM_CONSTANTS_H
#define AQ_EDM_CONSTANTS_H

#define EDM_CONSTANTS(X)                                                      \
	X(EDM_LAT_CYCLE_PS, 2560, "ps", PUBLISHED,                            \
	  "[E] figure 5: a cycle of the PCS, one block at 25 Gb/s")           \
	X(EDM_LAT_PCS_PS, 7680, "ps", PUBLISHED,                              \
	  "[E] table 1: one pass of a standard PCS")                          \
	X(EDM_LAT_PCS_EDM_PS, 5120, "ps", PUBLISHED,                          \
	  "[E] table 1: one pass of EDM's PCS")                               \
	X(EDM_LAT_MAC_PS, 7680, "ps", PUBLISHED,                              \
	  "[E] table 1: one pass of the MAC")                                 \
	X(EDM_LAT_PMA_PS, 19000, "ps", PUBLISHED,                             \
	  "[E] table 1: PMA, PMD and transceiver, one end")                   \
	X(EDM_LAT_CABLE_PS, 10000, "ps", PUBLISHED, "[E] table 1: one hop")   \
	X(EDM_LAT_L2_PS, 400000, "ps", PUBLISHED,                             \
	  "[E] table 1: parser 87, match-action 202, packet manager 93, "     \
	  "crossbar 18 ns")                                                   \
	X(EDM_LAT_TCP_PS, 666200, "ps", PUBLISHED,                            \
	  "[E] table 1: one pass of TCP in hardware")                         \
	X(EDM_LAT_ROCE_PS, 230200, "ps", PUBLISHED,                           \
	  "[E] table 1: one pass of RoCEv2")                                  \
	X(EDM_CYCLES_MAKE, 2, "cycles", PUBLISHED,                            \
	  "[E] 3.2.1: a notification or a request is made")                   \
	X(EDM_CYCLES_CLASSIFY, 1, "cycles", PUBLISHED,                        \
	  "[E] 3.2.2: what came is told apart")                               \
	X(EDM_CYCLES_INSERT, 2, "cycles", PUBLISHED,                          \
	  "[E] 3.1.2: into the queue of the switch")                          \
	X(EDM_CYCLES_ITERATION, 3, "cycles", PUBLISHED,                       \
	  "[E] 3.1.2: one iteration of PIM")                                  \
	X(EDM_CYCLES_EMIT, 1, "cycles", PUBLISHED, "[E] 3.2.2: a grant")      \
	X(EDM_CYCLES_PARSE, 2, "cycles", PUBLISHED,                           \
	  "[E] 3.2.1: a grant or a request taken")                            \
	X(EDM_CYCLES_CONTROLLER, 1, "cycles", PUBLISHED,                      \
	  "[E] 3.2.1: a request, to the memory controller")                   \
	X(EDM_CYCLES_QUEUE, 4, "cycles", PUBLISHED,                           \
	  "[E] 3.2.1: a grant's queue, to the sender's clock")                \
	X(EDM_CYCLES_DATA, 3, "cycles", PUBLISHED,                            \
	  "[E] 3.2.1: look up, read, make a block of data")                   \
	X(EDM_CYCLES_FORWARD, 4, "cycles", PUBLISHED,                         \
	  "[E] 3.2.2: from one port of the switch to another")                \
	X(EDM_CYCLES_RECEIVE, 3, "cycles", PUBLISHED,                         \
	  "[E] 3.2.1: data handed over")                                      \
	X(EDM_LINK_GBPS, 100, "Gb/s", PUBLISHED,                              \
	  "[E] 4.3: links of its cluster")                                    \
	X(EDM_SCHED_MHZ, 3000, "MHz", PUBLISHED,                              \
	  "[E] 3.1.3 and 4.1: the scheduler as an ASIC")                      \
	X(EDM_DRAM_PS, 82000, "ps", PUBLISHED,                                \
	  "[E] 4.2.2: an access to local memory in its model of figure 7")    \
	X(EDM_CXL_PORT_PS, 25000, "ps", PUBLISHED,                            \
	  "[P] figure 7: one pass of a port")                                 \
	X(EDM_CXL_ARBITER_PS, 20000, "ps", PUBLISHED,                         \
	  "[P] figure 7: arbitration in a switch")                            \
	X(EDM_CXL_FLIT_BYTES, 68, "B", PUBLISHED, "[CXL] 4.2")                \
	X(EDM_CXL_SLOT_BYTES, 16, "B", PUBLISHED,                             \
	  "[CXL] 4.2: four to a flit; a header takes one")                    \
	X(EDM_FRAME_AROUND, 38, "B", PUBLISHED,                               \
	  "[802.3]: header, check sum, preamble and gap")                     \
	X(EDM_WIRE_MIN, 84, "B", PUBLISHED,                                   \
	  "[802.3]: 64 bytes, preamble and gap")                              \
	X(EDM_TCP_HEADERS, 40, "B", PUBLISHED, "IP and TCP")                  \
	X(EDM_ROCE_HEADERS, 60, "B", PUBLISHED,                               \
	  "[IB]: IP 20, UDP 8, BTH 12, RETH 16, ICRC 4")                      \
	X(EDM_ROCE_OUTER, 46, "B", PUBLISHED,                                 \
	  "[IB]: Ethernet 14, IP 20, UDP 8, ICRC 4: what a port of EDM does " \
	  "not need, because the switch knows its ports")                     \
	X(EDM_ROCE_READ, 98, "B", DERIVED,                                    \
	  "[IB]: a request to read on the wire")                              \
	X(EDM_ROCE_WRITE, 198, "B", DERIVED, "[IB]: a write of 100 B")        \
	X(EDM_ROCE_ANSWER, 1110, "B", DERIVED, "[IB]: the answer with 1 KB")  \
	X(EDM_ROCE_ACK, 86, "B", DERIVED, "[IB]: an acknowledgement")         \
	X(EDM_IP_FRAME_BYTES, 1538, "B", ASSUMED,                             \
	  "frames beside memory: 1,500 B and what is around them")

#define EDM_CONSTANT_ENUM(name, value, unit, kind, source) name = (value),
enum {
	EDM_CONSTANTS(EDM_CONSTANT_ENUM)
	/* A notification or a request at the switch; a grant, and a request, at
	 * the node that has the data. */
	EDM_CYCLES_NOTIFY = EDM_CYCLES_CLASSIFY + EDM_CYCLES_INSERT,
	EDM_CYCLES_GRANT =
		EDM_CYCLES_PARSE + EDM_CYCLES_QUEUE + EDM_CYCLES_DATA,
	EDM_CYCLES_REQUEST = EDM_CYCLES_GRANT + EDM_CYCLES_CONTROLLER,
	/* Of the scheduler at its own clock. */
	EDM_PIM_ITERATION_PS = EDM_CYCLES_ITERATION * 1000000 / EDM_SCHED_MHZ,
};

#endif
