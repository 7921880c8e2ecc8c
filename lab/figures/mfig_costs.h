/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What machines, rivals and workloads cost in the figures of `aquifer sim
 * mind`, each number with its source. NICs, bus, links and the switch's delay
 * are in sim/model_constants.h, where also the kinds of source are explained.
 *
 * Short names of sources:
 *   [M]     Lee et al., MIND: In-Network Memory Management for Disaggregated
 *           Data Centers, SOSP 2021, and the chapter on it in Y. Tang's
 *           dissertation
 *   [Mgit]  the public code and data beside it
 */
#ifndef AQ_FIGURES_MFIG_COSTS_H
#define AQ_FIGURES_MFIG_COSTS_H

#include "sim/model_constants.h"

#define MFIG_COSTS(X)                                                          \
	X(fault_ps, 5450000, "ps", FITTED,                                     \
	  "a page fault beside its get: [M] fig 7 left, 9 us from I to S; "    \
	  "the other transitions follow")                                      \
	X(inval_ps, 1500000, "ps", ASSUMED,                                    \
	  "an INVAL at a machine: page tables, and the other cores' TLBs")     \
	X(access_ps, 10000, "ps", ASSUMED,                                     \
	  "a load or store of a cached page, with the instructions around "    \
	  "it; [M] has below 100 ns")                                          \
	X(scale, 32, "", ASSUMED,                                              \
	  "footprint, caches and directory are divided by it")                 \
	X(footprint_bytes, 2147483648, "B", DERIVED,                           \
	  "[M] setup: caches of 512 MB are about 25 % of it")                  \
	X(cache_bytes, 536870912, "B", PUBLISHED, "[M] setup, of a machine")   \
	X(entries, 30624, "entries", PUBLISHED,                                \
	  "[Mgit]: slots of the directory")                                    \
	X(epoch_ms, 1, "ms", DERIVED,                                          \
	  "the shortest that the program has: [M] has 100 ms in runs of 60 "   \
	  "s, here runs are of 2 to 300 ms")                                   \
	X(region_pages, 4, "pages", PUBLISHED,                                 \
	  "[M]: regions begin with 16 KB")                                     \
	X(nodes, 4, "nodes", PUBLISHED,                                        \
	  "[M] setup: NICs of the memory server; pages lie on them in turns, " \
	  "1 MB each")                                                         \
	X(weights_bytes, 102400000, "B", DERIVED,                              \
	  "ResNet-50: 25.6 million parameters of 4 bytes")                     \
	X(batch, 128, "images", ASSUMED, "of a step of training")              \
	X(image_accesses, 200, "accesses", DERIVED,                            \
	  "of an image on a page of weights, one way: ResNet-50 on 32 x 32 "   \
	  "pixels is 0.5 GFLOP forward and back, 20,000 for each of 25,000 "   \
	  "pages, with vectors of 8 and 6 operations per load")                \
	X(line_accesses, 64, "accesses", DERIVED,                              \
	  "of a page that is read or written as a whole: lines")               \
	X(edge_bytes, 8, "B", ASSUMED, "of an edge, of a vertex's value")      \
	X(degree, 15, "edges", DERIVED,                                        \
	  "of a vertex: values and edges fill the footprint; [M] uses the "    \
	  "Twitter graph, which has more")                                     \
	X(edge_accesses, 4, "accesses", ASSUMED,                               \
	  "of an edge beside the value it reads: list, sum, loop")             \
	X(item_bytes, 1365, "B", ASSUMED,                                      \
	  "of an item with its header: three in a page; YCSB's have 1 KB")     \
	X(op_accesses, 100, "accesses", ASSUMED,                               \
	  "of a request of a key-value store: 1 us")                           \
	X(locks, 1024, "locks", ASSUMED,                                       \
	  "of items, 64 bytes each: as memcached has for a table of this "     \
	  "size")                                                              \
	X(store_buffer, 16, "stores", ASSUMED,                                 \
	  "that a thread of PSO has under way")                                \
	X(gam_access_factor, 10, "x", PUBLISHED,                               \
	  "[M] 7.1: a local access of GAM, through its library")               \
	X(gam_lock_permille, 250, "1/1000", DERIVED,                           \
	  "of it, what one thread keeps the others of its machine from: [M] "  \
	  "fig 6 left, GAM scales to 4 threads")                               \
	X(gam_message_ps, 2500000, "ps", ASSUMED,                              \
	  "a message between two machines of GAM, from call to handler")       \
	X(gam_handler_ps, 1000000, "ps", ASSUMED,                              \
	  "of it, time of the one thread that handles messages")               \
	X(swap_fault_ps, 3000000, "ps", ASSUMED,                               \
	  "a page fault of FastSwap beside its READ, as in sim walk")          \
	X(uniform_pages, 400000, "pages", PUBLISHED,                           \
	  "[M] fig 7 right: of a machine's own part, and of the shared one")   \
	X(vma_tf, 1500, "areas", ASSUMED,                                      \
	  "memory areas of the program: [M] says 1 to 2 thousand")             \
	X(vma_gc, 1000, "areas", ASSUMED, "the same")                          \
	X(vma_m, 1200, "areas", ASSUMED, "the same")                           \
	X(blades, 8, "nodes", ASSUMED, "memory nodes that they lie on")        \
	X(thread_bytes, 268435456, "B", ASSUMED,                               \
	  "that a program's areas have in all for each thread")

struct mfig_costs {
	MFIG_COSTS(MODEL_FIELD)
};

extern const struct mfig_costs mfig_costs;

#endif
