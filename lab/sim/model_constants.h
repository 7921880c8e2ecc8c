/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every constant of the host cost model, each with its source; model.h makes
 * the parameter struct from this table and `aquifer sim nic-model` prints it.
 *
 * Kinds of source:
 *   PUBLISHED  stated by a paper, its data files or a standard
 *   DERIVED    computed from published figures; the source says how
 *   FITTED     chosen so that one published figure comes out
 *   MEASURED   of this tree's own code; the source says by which command
 *   ASSUMED    plausible for this hardware; these sources do not state it
 *
 * Short names of sources:
 *   [G]    S. Grant, dissertation on RDMA and disaggregated structures
 *          (RCuckoo, SwordBox), text and captions
 *   [Gdat] the data files and plot scripts behind [G]'s figures, in its
 *          author's public repositories wantonsolutions/warm (b096f140) and
 *          wantonsolutions/RemoteDataStructres (340fa283)
 *   [O]    Wang et al., ODRP: On-Demand Remote Paging with Programmable RDMA,
 *          NSDI 2025
 */
#ifndef AQ_SIM_MODEL_CONSTANTS_H
#define AQ_SIM_MODEL_CONSTANTS_H

#include "base/base.h"

/* Such a table, X(field, value, unit, kind, source), as members of a struct, as
 * their values, and as rows for people. */
#define MODEL_FIELD(name, value, unit, kind, source) uint64_t name;
#define MODEL_VALUE(name, value, unit, kind, source) .name = (value),
#define MODEL_CONSTANT(name, value, unit, kind, source) \
	{#name, (value), unit, #kind, source},

struct model_constant {
	const char *name;
	uint64_t value;
	const char *unit, *kind, *source;
};

#define MODEL_CONSTANTS(X)                                                     \
	X(link_ps_per_byte, 80, "ps/B", PUBLISHED,                             \
	  "100 Gb/s links: [G] 1.2.2 and 2.4.1, [O] 5.1")                      \
	X(cable_ps, 10000, "ps", ASSUMED, "two metres of cable")               \
	X(switch_ps, 300000, "ps", ASSUMED,                                    \
	  "cut-through delay class of the Onyx switch in [G] 2.4.1")           \
	X(switch_core_ps, 259000, "ps", MEASURED,                              \
	  "what a packet costs a switch that is one core: `aquifer bench "     \
	  "switch`, swordbox_moved_rate 1.93 with two packets to it per "      \
	  "operation, on a busy machine")                                      \
	X(home_wait_ps, 300000, "ps", ASSUMED,                                 \
	  "how often a client looks that waits for another one of its "        \
	  "machine")                                                           \
	X(mtu_bytes, 4096, "B", ASSUMED, "largest RoCE path MTU")              \
	X(pcie_read_ps, 341424, "ps", DERIVED,                                 \
	  "[G] fig 1.2: a contended host CAS takes one PCIe round trip, "      \
	  "2.929 Mops in [Gdat] rdma_cas_throughput.py; [Gdat] READ latency "  \
	  "host minus device agrees (345 ns)")                                 \
	X(pcie_post_ps, 171000, "ps", DERIVED,                                 \
	  "half a PCIe round trip: posted writes go one way")                  \
	X(pcie_ps_per_byte, 68, "ps/B", DERIVED,                               \
	  "PCIe Gen3 x16 ([G] 2.4.1: 16x slot): 63.5 ps/B after 128b/130b, "   \
	  "7 % for flow control")                                              \
	X(pcie_tlp_bytes, 26, "B", DERIVED, "PCIe TLP, DLLP and framing")      \
	X(pcie_payload_bytes, 256, "B", ASSUMED, "largest TLP payload")        \
	X(cpu_post_ps, 75000, "ps", FITTED,                                    \
	  "[G] fig 3.1: 0.8 us less PCIe and wire; how the four share it is "  \
	  "assumed")                                                           \
	X(cpu_poll_ps, 65000, "ps", FITTED, "as cpu_post_ps")                  \
	X(nic_tx_ps, 150000, "ps", FITTED, "as cpu_post_ps")                   \
	X(nic_rx_ps, 150000, "ps", FITTED, "as cpu_post_ps")                   \
	X(push_ps_per_byte, 300, "ps/B", FITTED,                               \
	  "[G] fig 3.1: 0.05 us from 64 to 128 B, inline data pushed by CPU")  \
	X(inline_bytes, 220, "B", ASSUMED,                                     \
	  "inline limit of common benchmarks; step 128 to 256 B of fig 3.1")   \
	X(push_wqes, 4, "WQEs", DERIVED,                                       \
	  "knee of [G] fig 1.1 beyond four requests per queue pair: 256 B of " \
	  "write-combined doorbell, further entries are fetched over PCIe")    \
	X(wqe_bytes, 64, "B", PUBLISHED, "mlx5 work queue basic block")        \
	X(message_ps, 5000, "ps", ASSUMED,                                     \
	  "vendor's 200 million messages per second; every figure here hits "  \
	  "another limit first")                                               \
	X(read_engine_ps, 10300, "ps", FITTED,                                 \
	  "[G] fig 1.1, 1.2: READ and device atomics level off at 93.7 and "   \
	  "91.1 Mops while WRITE goes on to the link rate")                    \
	X(qp_host_ps, 54760, "ps", PUBLISHED,                                  \
	  "[G] fig 2.1 and 2.3: one queue pair writes 18.26 Mops [Gdat]")      \
	X(qp_device_ps, 45172, "ps", PUBLISHED,                                \
	  "[G] fig 2.3: one queue pair writes 22.14 Mops to device memory "    \
	  "[Gdat]")                                                            \
	X(qp_sched_ps, 28000, "ps", DERIVED,                                   \
	  "[Gdat] per_thread_faa.dat: latency 2.10 us with one thread, 2.79 "  \
	  "us with 24, 3.01 us with 32")                                       \
	X(qp_sched_max, 32, "QPs", DERIVED, "no data beyond 32 threads")       \
	X(qp_cache, 1024, "QPs", ASSUMED,                                      \
	  "contexts held on the NIC; [G] 1.2.1 states the effect, no number")  \
	X(qp_miss_ps, 50000, "ps", ASSUMED,                                    \
	  "spacing of context fetches, each also costs a PCIe round trip")     \
	X(cas_host_ps, 341424, "ps", PUBLISHED,                                \
	  "[G] fig 1.2, 2.3: 2.929 Mops on one address in host memory [Gdat]") \
	X(cas_device_ps, 111421, "ps", PUBLISHED,                              \
	  "[G] fig 1.2, 2.3: 8.975 Mops on one address in device memory "      \
	  "[Gdat]")                                                            \
	X(faa_host_ps, 393805, "ps", PUBLISHED,                                \
	  "[Gdat] faa_host_mem.dat: 2.539 Mops on one address")                \
	X(faa_device_ps, 129489, "ps", PUBLISHED,                              \
	  "[Gdat] faa_dev_mem.dat: 7.723 Mops on one address")                 \
	X(atomic_slots, 18, "ops", DERIVED,                                    \
	  "[G] fig 1.1: host atomics stop at 50.6-51.8 Mops; times 341 ns "    \
	  "this is 17.3-17.7 in flight")                                       \
	X(atomic_buckets, 4096, "buckets", ASSUMED,                            \
	  "atomics whose low 12 address bits agree exclude each other")        \
	X(line_read_host_ps, 43329, "ps", PUBLISHED,                           \
	  "[Gdat] faa_host_mem.dat: READs of one host address, 23.08 Mops")    \
	X(line_write_device_ps, 45172, "ps", PUBLISHED,                        \
	  "[Gdat] faa_dev_mem.dat: WRITEs to one device address, 22.14 Mops")  \
	X(stall_every_ps, 60000000, "ps", FITTED,                              \
	  "[G] fig 2.2: 97 % of responses keep their order at 1 Mops")         \
	X(stall_max_ps, 12500000, "ps", FITTED,                                \
	  "[G] fig 2.2: reorderings of up to 13 requests at 1 Mops")           \
	X(chain_order_ps, 100000, "ps", FITTED,                                \
	  "one WAIT or ENABLE; [O] fig 11: load 5.5 us with 3 of them, "       \
	  "mapped "                                                            \
	  "store 4.6 us with 4")                                               \
	X(chain_wr_ps, 72500, "ps", FITTED,                                    \
	  "NIC time of one work request in a chain; [O] fig 10: load at "      \
	  "92.1 % of READ")                                                    \
	X(chain_sge_ps, 100000, "ps", FITTED,                                  \
	  "each further scatter entry; [O] 5.4: one READ with 8 entries "      \
	  "instead of 8 READs saves 6.2 us")

#endif
