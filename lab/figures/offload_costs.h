/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processors cost in the figures of `aquifer sim offload`, each number
 * with its source. NIC, bus and links are in sim/model_constants.h.
 *
 * Kinds of source, beside those of model_constants.h:
 *   MEASURED  on this project's code: an AMD EPYC at 2.6 GHz, one thread, the
 *             best of 20,000 rounds of 32 requests, 1,024 entries, unless it
 *             says median
 *
 * Short names of sources:
 *   [C]     Chen et al., Cowbird, SIGCOMM 2023
 *   [Cgit]  the README beside its public code (cxinyic/cowbird, 450da517)
 */
#ifndef AQ_RIG_OFFLOAD_COSTS_H
#define AQ_RIG_OFFLOAD_COSTS_H

#include "sim/model_constants.h"

#define OFFLOAD_COSTS(X)                                                       \
	X(probe_ps, 77000, "ps", DERIVED,                                      \
	  "a hash probe without its record: [Cgit] 9.06 Mops with 64 B and "   \
	  "one thread through Cowbird, which [C] 8.1 puts 11.4 % below local " \
	  "memory: 98 ns, less record_ps and the check")                       \
	X(record_ps, 20000, "ps", ASSUMED,                                     \
	  "a record in local memory: a miss of 85 ns, three quarters of it "   \
	  "hidden behind other work")                                          \
	X(record_line_ps, 4000, "ps", ASSUMED,                                 \
	  "each further line of it: 16 GB/s of one core")                      \
	X(check_ps_per_byte, 14, "ps/B", MEASURED,                             \
	  "reading a record: slope of copying 8 to 512 B")                     \
	X(ring_client_ps, 51000, "ps", MEASURED,                               \
	  "issue and poll of one read of 64 B, whose result another core "     \
	  "has written: median of aquifer bench offload --only caller64")      \
	X(ring_issue_ps, 5300, "ps", MEASURED, "offload_ring_read")            \
	X(ring_take_ps, 3000, "ps", MEASURED,                                  \
	  "offload_ring_take per request, without its bytes")                  \
	X(ring_copy_ps_per_byte, 14, "ps/B", MEASURED,                         \
	  "offload_ring_take from 8 to 512 B")                                 \
	X(ring_look_ps, 1000, "ps", MEASURED,                                  \
	  "offload_ring_look with nothing new: one load and a branch")         \
	X(dma_line_ps, 6000, "ps", ASSUMED,                                    \
	  "a line of a far record, which the NIC wrote: from the last level "  \
	  "cache, prefetched")                                                 \
	X(dma_news_ps, 40000, "ps", ASSUMED,                                   \
	  "the line of the bookkeeping, once per publication: a miss")         \
	X(store_64_ps, 180000, "ps", MEASURED,                                 \
	  "hlog, 3 million records of 64 B, YCSB-C Zipfian, memory device "    \
	  "with 5 of 18 local: 143 ns and 37 ns for the generator")            \
	X(store_512_ps, 214000, "ps", MEASURED,                                \
	  "the same, 500,000 records of 512 B, 5 of 24 local: 185 and 29 ns")  \
	X(store_paper_ps, 526000, "ps", DERIVED,                               \
	  "the least that FASTER with 512 B takes: [C] 8.1 has 16 threads "    \
	  "within 8 % of local memory, and 100 Gb/s carry 20.5 million "       \
	  "records of 610 B in packets of their own, 73 % of all requests: "   \
	  "30.4 Mops of local memory at most, 1.9 of a thread")                \
	X(store_64_far_ppm, 768000, "ppm", MEASURED,                           \
	  "reads that went to the device in that run")                         \
	X(store_512_far_ppm, 733000, "ppm", MEASURED, "as above")              \
	X(engine_request_ps, 45000, "ps", MEASURED,                            \
	  "offload_engine_step less the verbs calls in it, in this "           \
	  "simulation: 115 cycles per request of the time stamp counter")      \
	X(engine_turn_ps, 20000, "ps", ASSUMED,                                \
	  "one turn of its loop with nothing to do")                           \
	X(wqe_ps, 15000, "ps", ASSUMED,                                        \
	  "a further entry in a list of work requests: 64 B of stores and "    \
	  "checks, no doorbell")                                               \
	X(server_ps, 100000, "ps", ASSUMED,                                    \
	  "a server's thread finds a request and looks the record up")         \
	X(redy_hand_ps, 60000, "ps", ASSUMED,                                  \
	  "a request to an I/O thread on another core and back: two lines "    \
	  "that move between caches, overlapped with work")                    \
	X(redy_io_ps, 70000, "ps", ASSUMED,                                    \
	  "an I/O thread per request: take it, copy it into a batch, find "    \
	  "its answer, hand it back")                                          \
	X(redy_server_ps, 40000, "ps", ASSUMED,                                \
	  "the memory server per request of a batch")                          \
	X(tcp_message_ps, 1000000, "ps", ASSUMED,                              \
	  "a small message through a TCP stack in user space, at one end: "    \
	  "protocol, copies, notice of the packet")                            \
	X(thread_switch_ps, 200000, "ps", ASSUMED,                             \
	  "a user-level thread that blocks and is scheduled again")            \
	X(smt_percent, 62, "%", ASSUMED,                                       \
	  "speed of a thread whose core runs another one, too")                \
	X(cores, 8, "cores", PUBLISHED, "[C] 7: Xeon Silver 4110")             \
	X(tcp_gbps, 25, "Gb/s", PUBLISHED, "[C] 8.4: the third machine's NIC") \
	X(tcp_window_bytes, 655360, "B", ASSUMED,                              \
	  "ten flows with 64 KiB under way each")                              \
	X(nic_mpps, 69, "M/s", ASSUMED,                                        \
	  "packets that the limited NIC of figure 14 takes, in and out: near " \
	  "it TCP loses a part beside the engine in the switch; --nic-mpps")

struct offload_costs {
	OFFLOAD_COSTS(MODEL_FIELD)
};

extern const struct offload_costs offload_costs;

#endif
