/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processors, SSDs and the kernel cost in the figures of `aquifer sim
 * tier`, and what the applications do, each number with its source. The curves
 * of memories are in tfig_curves.h; sim/model_constants.h explains the kinds of
 * source.
 *
 * Short names of sources:
 *   [C]      the chapter on CXL of Y. Tang's dissertation, and the paper that
 *            it revises (EuroSys 2024)
 *   [InferLLM] the program of the chapter's language model, by the files
 *            published beside the paper (bytedance/eurosys24-artifacts):
 *            MegEngine/InferLLM, 0835f617
 *   [Linux]  kernel/sched/fair.c and the defaults of NUMA balancing, Linux 6.1
 */
#ifndef AQ_FIGURES_TFIG_COSTS_H
#define AQ_FIGURES_TFIG_COSTS_H

#include "sim/model_constants.h"

#define TFIG_COSTS(X)                                                          \
	X(fill_buffers, 16, "lines", PUBLISHED,                                \
	  "misses of the first cache under way, Golden Cove: what scattered "  \
	  "lines have of each other")                                          \
	X(prefetched, 48, "lines", PUBLISHED,                                  \
	  "misses of the second cache under way, Golden Cove: what a stream "  \
	  "has, which is prefetched there")                                    \
	X(probe_threads, 16, "threads", PUBLISHED, "[C] 4.2: MLC's")           \
	X(page_bytes, 4096, "B", PUBLISHED, "[Linux] of the processor")        \
	X(scan_mb_s, 256, "MB/s", PUBLISHED,                                   \
	  "[Linux] scan_size_mb in each scan_period_min_ms, for a process")    \
	X(promote_mb_s, 65536, "MB/s", PUBLISHED,                              \
	  "[Linux] numa_balancing_promote_rate_limit_MBps")                    \
	X(room_part, 16, "parts", PUBLISHED,                                   \
	  "[Linux] pgdat_free_space_enough: a node has room while one of "     \
	  "this many parts is free")                                           \
	X(fault_ps, 1000000, "ps", ASSUMED,                                    \
	  "a hint fault: entry, look at the page, return")                     \
	X(migrate_ps, 2500000, "ps", ASSUMED,                                  \
	  "moving one page: unmap, copy, map, and the other processors' "      \
	  "TLBs")                                                              \
	X(ssd_ps, 100000000, "ps", ASSUMED, "a random read of an NVMe SSD")    \
	X(ssd_mb_s, 3000, "MB/s", ASSUMED, "of an SSD, reads and writes")      \
	X(keydb_threads, 7, "threads", PUBLISHED, "[C] 4.3")                   \
	X(keydb_gb, 512, "GB", PUBLISHED, "[C] 4.3: data")                     \
	X(keydb_value_bytes, 1024, "B", PUBLISHED, "[C] 4.3")                  \
	X(keydb_op_ps, 10000000, "ps", ASSUMED,                                \
	  "a request on one thread with everything in main memory, sockets "   \
	  "included")                                                          \
	X(keydb_milli_misses, 8330, "1/1000", FITTED,                          \
	  "dependent misses of a request: those that make 12.5 % less with "   \
	  "everything on CXL memory, which keydb-cxl prints")                  \
	X(spark_executors, 150, "threads", PUBLISHED, "[C] 4.3")               \
	X(spark_executor_gb, 8, "GB", PUBLISHED, "[C] 4.3: of an executor")    \
	X(spark_servers, 3, "servers", PUBLISHED, "[C] 4.3: without CXL")      \
	X(spark_cxl_servers, 2, "servers", PUBLISHED, "[C] 4.3: with it")      \
	X(spark_block_bytes, 65536, "B", ASSUMED,                              \
	  "of shuffled data: written once and read once")                      \
	X(spark_block_ps, 131000000, "ps", ASSUMED,                            \
	  "work on a block beside memory: 0.5 GB/s on a core")                 \
	X(server_ddr_units, 8, "domains", PUBLISHED,                           \
	  "[C] 4.1: two sockets of four domains, two channels each")           \
	X(server_cxl_units, 2, "devices", PUBLISHED, "[C] 4.1: on socket 0")   \
	X(server_ssds, 2, "SSDs", ASSUMED, "that a server spills to")          \
	X(llm_backend_threads, 12, "threads", PUBLISHED, "[C] 4.3")            \
	X(llm_model_mb, 4100, "MB", PUBLISHED, "[C] 4.3: read for each token") \
	X(llm_line_ps, 61246, "ps", FITTED,                                    \
	  "work on a line of 64 bytes of weights beside memory: what makes "   \
	  "24.2 GB/s at 24 threads, which llm prints")                         \
	X(llm_weights_mb_s, 12100, "MB/s", PUBLISHED,                          \
	  "[C] 4.3: what a backend reads of weights, 24.2 GB/s of two; 12 is " \
	  "named for one")                                                     \
	X(llm_serving_mb_s, 21000, "MB/s", PUBLISHED,                          \
	  "[C] 4.3: what it moves with long prompts")                          \
	X(llm_passes, 7, "passes", DERIVED,                                    \
	  "[InferLLM] src/core/op.cpp, over the products of queries and keys " \
	  "of a prompt, which are all that grows with its square: written "    \
	  "once (and read before, as every store is), scaled in place, "       \
	  "softmax in place, read for the product with values")                \
	X(llm_passes_written, 3, "passes", DERIVED,                            \
	  "those of llm_passes that write")                                    \
	X(llm_kv_line_ps, 34329, "ps", FITTED,                                 \
	  "the same of a backend that serves, whose keys and values are read " \
	  "as well: what makes 21 GB/s of one backend, which llm prints")

struct tfig_costs {
	TFIG_COSTS(MODEL_FIELD)
};

extern const struct tfig_costs tfig_costs;

#endif
