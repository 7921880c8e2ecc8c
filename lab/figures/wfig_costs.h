/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What accelerators, servers and swap systems cost in the figures of `aquifer
 * sim walk`, each number with its source. NICs, bus and links are in
 * sim/model_constants.h, where also the kinds of source are explained.
 *
 * Short names of sources:
 *   [P]     Tang et al., PULSE, ASPLOS 2025, and the chapter on it in Y. Tang's
 *           dissertation, with its appendix
 *   [Pgit]  the public code beside it (yale-nova/pulse, cfb33af)
 */
#ifndef AQ_FIGURES_WFIG_COSTS_H
#define AQ_FIGURES_WFIG_COSTS_H

#include "sim/model_constants.h"

#define WFIG_COSTS(X)                                                          \
	X(net_ps, 430000, "ps", PUBLISHED,                                     \
	  "[P] latency breakdown: the accelerator's network stack, each way")  \
	X(sched_ps, 5100, "ps", PUBLISHED,                                     \
	  "[P] latency breakdown: its scheduler")                              \
	X(load_ps, 132000, "ps", PUBLISHED,                                    \
	  "[P] latency breakdown: its memory pipeline, with translation and "  \
	  "protection")                                                        \
	X(load_bytes, 256, "B", PUBLISHED,                                     \
	  "[P] dispatch engine: the load of an iteration; memory is booked "   \
	  "in pieces of "                                                      \
	  "that size for all systems")                                         \
	X(cycle_ps, 4000, "ps", PUBLISHED,                                     \
	  "[P] implementation: pipelines at 250 MHz")                          \
	X(step_ps, 1667, "ps", DERIVED,                                        \
	  "one instruction: [P] latency breakdown has 10 ns for an iteration " \
	  "of the hash "                                                       \
	  "find, whose listing executes 6 instructions beside the load")       \
	X(logic_pipes, 3, "pipes", PUBLISHED, "[P] implementation")            \
	X(memory_pipes, 4, "pipes", PUBLISHED, "[P] implementation")           \
	X(spaces, 7, "workspaces", PUBLISHED, "[P] implementation")            \
	X(bus_ps_per_byte, 40, "ps/B", PUBLISHED,                              \
	  "[P] setup: 25 GB/s of a memory node, also of those with "           \
	  "processors")                                                        \
	X(pipe_ps_per_byte, 80, "ps/B", DERIVED,                               \
	  "how long a load keeps its pipeline: in [P] two memory "             \
	  "pipelines saturate 25 GB/s, so loads overlap in one")               \
	X(dram_ps, 80000, "ps", PUBLISHED,                                     \
	  "[P] future trends: local DRAM, as it is simulated there")           \
	X(cpu_step_ps, 200, "ps", ASSUMED,                                     \
	  "one instruction of a walk on a core at 2.6 GHz: two per cycle")     \
	X(rpc_cores, 16, "cores", PUBLISHED, "[Pgit]: threads of the server")  \
	X(rpc_ps, 500000, "ps", ASSUMED,                                       \
	  "a request at the server beside its NIC: poll, parse, hand over, "   \
	  "answer")                                                            \
	X(arm_cores, 8, "cores", PUBLISHED,                                    \
	  "[P] setup: Cortex-A72 of the DPU")                                  \
	X(arm_dram_ps, 150000, "ps", ASSUMED, "its memory")                    \
	X(arm_step_ps, 500, "ps", ASSUMED,                                     \
	  "one instruction at 2.5 GHz, four fifths of one per cycle")          \
	X(arm_rpc_ps, 1500000, "ps", ASSUMED, "as rpc_ps, on such a core")     \
	X(client_ps, 500000, "ps", ASSUMED,                                    \
	  "the client's library per request that it sends, beside its NIC")    \
	X(client_threads, 32, "threads", PUBLISHED,                            \
	  "[Pgit]: of the client, one request each; here per memory node")     \
	X(fault_ps, 3000000, "ps", ASSUMED,                                    \
	  "a page fault of the swap system beside the READ of its page")       \
	X(swap_ps, 1000000, "ps", ASSUMED,                                     \
	  "of it, what one fault keeps others from: locks, reclaim; [P] "      \
	  "says that its swap system reached less than 1 Gb/s, so this rival " \
	  "is stronger")                                                       \
	X(look_ps, 500000, "ps", ASSUMED,                                      \
	  "until a thread looks again for a page that another one brings")     \
	X(page_bytes, 4096, "B", PUBLISHED, "of swap")                         \
	X(cache_ppm, 62500, "ppm", DERIVED,                                    \
	  "[P] setup: caches of 2 GB, here of 32 GB; [P] motivation begins "   \
	  "with 6.25 %")                                                       \
	X(granule_ppm, 31250, "ppm", DERIVED,                                  \
	  "an allocation of 1 GB, as a part of 32 GB")                         \
	X(streams, 12, "streams", DERIVED,                                     \
	  "of the time series, interleaved in memory: the microPMU data "      \
	  "has 12 streams of 120 values per second; 1 s is 27 leaves "         \
	  "that are half full, which [P]'s 38, 65, 119, 227 visits agree to")  \
	X(object_bytes, 8192, "B", PUBLISHED,                                  \
	  "[P] applications: of the web service")                              \
	X(web_permille, 136, "1/1000", PUBLISHED,                              \
	  "[P] motivation: share of traversals with everything cached; the "   \
	  "rest is "                                                           \
	  "the application's own work")                                        \
	X(range_permille, 637, "1/1000", PUBLISHED, "as web_permille")         \
	X(tsv_permille, 558, "1/1000", PUBLISHED, "as web_permille")           \
	X(allocate_trips, 2, "trips", PUBLISHED,                               \
	  "[P] insertions: more of them for a node whose memory is not "       \
	  "reserved")                                                          \
	X(cxl_local_ps, 50000, "ps", PUBLISHED,                                \
	  "[Pgit] the simulation of CXL: local memory")                        \
	X(cxl_far_ps, 300000, "ps", PUBLISHED, "the same: memory over CXL")    \
	X(cxl_node_ps, 7000, "ps", PUBLISHED,                                  \
	  "the same: the accelerator beside an access")                        \
	X(cxl_hop_ps, 300000, "ps", ASSUMED,                                   \
	  "the same: more for an access whose node is behind another switch "  \
	  "port than the one before, there and back; a walk goes there only")

struct wfig_costs {
	WFIG_COSTS(MODEL_FIELD)
};

extern const struct wfig_costs wfig_costs;

#endif
